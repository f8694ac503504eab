"""A number of seconds to spend, and how many are left. To compile, and to load what was compiled, does not count."""

from __future__ import annotations

import contextlib
import threading
import time
from typing import TYPE_CHECKING, TypeVar

from sidelong._jit import choose, run_plain
from sidelong.checks import plain, short
from sidelong.errors import GraphError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

T = TypeVar("T")

_FEW = 2_000  # numbers among the arguments of a kernel: some forty arms
_aside = threading.local()  # the seconds of this thread that do not count


class Budget:
    """Seconds to spend, from now on."""

    def __init__(self, seconds: float) -> None:
        if not plain(seconds) >= 0:
            raise GraphError(f"A budget is a number of seconds, 0 or more, not {short(seconds)}.")
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

    def part(self, share: float) -> Budget:
        """Return a budget of its own, beginning now, of a share of what is left."""
        return Budget(share * self.left)

    def at_most(self, seconds: float) -> Budget:
        """Return a budget of its own, beginning now, of so many seconds or what is left."""
        return Budget(min(seconds, self.left))


def call(kernel: Callable[..., T], *arguments: object) -> T:
    """Call a kernel; that it may have to be compiled or loaded first does not count.

    Neither does plain Python, which does the first of a few arms where machine code is not at hand.
    """
    with uncounted():
        code = choose(kernel, arguments, _FEW)
        if code is None:
            return run_plain(kernel, arguments)  # type: ignore[no-any-return,arg-type]  # it is a kernel
    return code(*arguments)  # type: ignore[no-any-return]


def _now() -> float:
    return time.perf_counter() - getattr(_aside, "seconds", 0.0)


@contextlib.contextmanager
def uncounted() -> Iterator[None]:
    """Let what is done inside not count as time spent."""
    begun = _now()
    try:
        yield
    finally:
        _aside.seconds = getattr(_aside, "seconds", 0.0) + _now() - begun
