"""What plays cells: `local` on this machine, `cluster` on many."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from concurrent.futures import Future

    from sidelong.studies.cell import Cell
    from sidelong.studies.work import Outcome

__all__ = ["Engine"]


class Engine(Protocol):
    """What `execute` asks for."""

    died: tuple[type[Exception], ...]  #: what futures raise when all workers are gone

    @property
    def slots(self) -> int:
        """How many cells are played at once."""

    def warm(self, cell: Cell) -> Future[None]:
        """Compile what a cell needs."""

    def play(self, cell: Cell) -> Future[Outcome]:
        """Play a cell."""

    def rounds(self) -> int:
        """Return how many rounds were played, those of unfinished cells too; 0 if it does not know."""

    def restart(self) -> None:
        """Start new workers where they have died."""

    def close(self) -> None:
        """Stop all workers at once, whatever they do."""
