"""The clocks of the service: the wall clock, which people are shown, and one of its own, which expiry is counted by.

The wall clock may jump: by an hour, when a machine wakes up, or when someone sets it. Decisions must not expire because
of that. So age is counted by a clock that runs only while a server does: each server advances it by its own monotonic
clock, stores it beside what it writes, and never falls behind what it reads there. An hour in which no server runs does
not count.
"""

from __future__ import annotations

import datetime as dt
import functools
import threading
import time
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable


class Moment(NamedTuple):
    """When something happened."""

    at: int  #: microseconds since 1970, by the wall clock: what people are shown
    clock: int  #: milliseconds, by the service's own clock: what expiry is counted by


class Clock:
    """A clock that continues from the latest time that was stored.

    Args:
        wall: seconds since 1970, as `time.time`.
        steady: seconds that never go back or jump, as `time.monotonic`.
    """

    def __init__(self, wall: Callable[[], float] = time.time, steady: Callable[[], float] = time.monotonic) -> None:
        self._wall = wall
        self._steady = steady
        self._lock = threading.Lock()
        self._ahead = -round(steady() * 1000)

    def now(self) -> Moment:
        """Return the moment."""
        return Moment(round(self._wall() * 1e6), round(self._steady() * 1000) + self._ahead)

    def saw(self, clock: int) -> None:
        """Take notice of a time that was stored: this clock is not behind it."""
        with self._lock:
            self._ahead = max(self._ahead, clock - round(self._steady() * 1000))


def timestamp(microseconds: int) -> str:
    """Return a moment as RFC 3339, in UTC, to the millisecond."""
    return f"{_second(microseconds // 1_000_000)}.{microseconds // 1000 % 1000:03}Z"


@functools.lru_cache(64)  # of what is said in the same second, again and again
def _second(seconds: int) -> str:
    return dt.datetime.fromtimestamp(seconds, dt.UTC).isoformat()[:19]


def expires_at(at: int, after: float | None) -> str | None:
    """Return when a decision of this moment expires, if it does."""
    return None if after is None else timestamp(at + round(after * 1e6))
