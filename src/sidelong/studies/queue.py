"""The cells that are still to be played, and which of them is next.

Cells wait until the machine code of their kind is there; then the longest is next, so that no long one is left alone
at the end. Of equally long ones, those of one graph and world come one after the other: a worker keeps what it built
last. A cell whose process died is next before all others, and is played with no other beside it: two of them may
need more memory than there is.
"""

from __future__ import annotations

import heapq
from typing import TYPE_CHECKING

from sidelong.studies.cell import canonical

if TYPE_CHECKING:
    from sidelong.studies.cell import Cell

_ALONE = 2  # how often the process of a cell that is played alone may die


class Queue:
    """Cells that are to be played."""

    def __init__(self) -> None:
        self.waiting: dict[str, list[Cell]] = {}  #: by kind, until its machine code is there
        self._ready: list[tuple[float, str, str, Cell]] = []  # a heap
        self._suspects: list[Cell] = []
        self._alone: dict[Cell, int] = {}

    def __bool__(self) -> bool:
        return bool(self.waiting or self._ready or self._suspects)

    def wait(self, cell: Cell) -> None:
        """Add a cell whose machine code may not be there."""
        self.waiting.setdefault(cell.kind, []).append(cell)

    def is_compiled(self, kind: str) -> None:
        """Let the cells of a kind be played."""
        for cell in self.waiting.pop(kind, []):
            self.put(cell)

    def put(self, cell: Cell) -> None:
        """Add a cell that can be played."""
        parts = canonical([cell.spec["graph"], cell.spec["world"], cell.spec["rounds"]])
        heapq.heappush(self._ready, (-float(cell.n_rounds) * cell.n_arms, parts, cell.name, cell))

    @property
    def one_by_one(self) -> bool:
        """Whether the next cell must be played with no other beside it."""
        return bool(self._suspects)

    def take(self) -> Cell | None:
        """Return the cell that is next, and remove it."""
        if self._suspects:
            return self._suspects.pop(0)
        return heapq.heappop(self._ready)[-1] if self._ready else None

    def was_killed(self, cell: Cell, *, alone: bool) -> bool:
        """Put back a cell whose process died, `alone` or beside others; return whether it has died too often."""
        self._alone[cell] = self._alone.get(cell, 0) + alone
        if self._alone[cell] >= _ALONE:
            return True
        self._suspects.append(cell)
        return False
