"""A number of seconds to spend, and how many are left. To compile and to load modules does not count."""

from __future__ import annotations

import contextlib
import time
from numbers import Real
from typing import TYPE_CHECKING

from numba.core import event

from sidelong.errors import GraphError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

__all__ = ["Budget", "uncounted"]

_compiling = event.TimingListener()
event.register("numba:compile", _compiling)
_uncounted = [0.0]
_SLICE = 0.02  # seconds, about


class Budget:
    """Seconds to spend, from now on."""

    def __init__(self, seconds: float) -> None:
        if not (isinstance(seconds, Real) and seconds >= 0):
            raise GraphError(f"A budget is a number of seconds, 0 or more, not {seconds!r}.")
        self._begun: float = _now()
        self._seconds: float = float(seconds)

    @property
    def spent(self) -> float:
        """The seconds since the beginning."""
        return _now() - self._begun

    @property
    def left(self) -> float:
        """The seconds that are left, 0 if none."""
        return max(0.0, self._seconds - self.spent)

    @property
    def ended(self) -> bool:
        """Whether nothing is left."""
        return self.left <= 0

    def in_slices(self, search: Callable[[int], bool], nodes: int) -> int:
        """Let a search go over some nodes at a time, until it says that it has ended or nothing is left.

        A slice takes about as long as one may be late. Return how many nodes that were, to go on with.
        """
        while True:
            before = self.spent
            if search(nodes) or self.ended:
                return nodes
            if self.spent - before < _SLICE:
                nodes *= 2

    def part(self, share: float) -> Budget:
        """Return a budget of its own, beginning now, of a share of what is left."""
        return Budget(share * self.left)


def _now() -> float:
    compiling: float = _compiling.duration if _compiling.done else 0.0
    return time.perf_counter() - compiling - _uncounted[0]


@contextlib.contextmanager
def uncounted() -> Iterator[None]:
    """Let what is done inside, without compiling, not count as time spent."""
    begun = time.perf_counter()
    try:
        yield
    finally:
        _uncounted[0] += time.perf_counter() - begun
