"""Who goes first: a lock that is handed over in turn, and requests before what happens in the background."""

from __future__ import annotations

import threading
import time
from collections import deque
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable


class FairLock:
    """A lock that is handed over in the order in which it was asked for, to commands first.

    The thread that writes serves all experiments, so it never waits for one of them: it requests the lock of an
    experiment, and is called when it holds the lock.
    """

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._held = False
        self._commands: deque[Callable[[], None]] = deque()
        self._others: deque[Callable[[], None]] = deque()

    def request(self, granted: Callable[[], None]) -> bool:
        """Take it, and return True; or False, and `granted` is called, by another thread, as soon as it is ours."""
        with self._guard:
            if self._held:
                self._commands.append(granted)
                return False
            self._held = True
            return True

    def acquire(self, timeout: float = -1, *, first: bool = False) -> bool:
        """Wait for it, for so many seconds at most, as a command if `first`; tell whether it is ours."""
        with self._guard:
            if not self._held:
                self._held = True
                return True
            if timeout == 0:
                return False
            handed = threading.Semaphore(0)
            waiting = self._commands if first else self._others
            waiting.append(handed.release)
        if handed.acquire(timeout=None if timeout < 0 else timeout):
            return True
        with self._guard:
            if handed.release not in waiting:  # it became ours in the last moment
                return True
            waiting.remove(handed.release)
            return False

    def release(self) -> None:
        """Hand it over to whoever is next."""
        with self._guard:
            waiting = self._commands or self._others
            first = waiting.popleft() if waiting else None
            self._held = first is not None
        if first is not None:
            first()

    def __enter__(self) -> None:
        self.acquire()

    def __exit__(self, *_: object) -> None:
        self.release()


class RequestPriority:
    """Lets requests go before a thread that computes in the background, and lets that thread go on nevertheless.

    Both need Python's lock, which a thread that computes gives back only after a while, and a request takes it a dozen
    times. So that thread works in portions, between which it waits as long as decisions or feedback are being answered,
    but not for long: it has at least a third of the time.
    """

    _PORTION, _WAIT, _STEP = 0.002, 0.004, 0.0005  # seconds

    def __init__(self) -> None:
        self.active = 0  #: how many requests are being answered; only the event loop changes it
        self.loading: set[object] = set()  #: the commands of those that wait for the background work themselves
        self._begun = 0.0

    def pause(self) -> None:
        """Wait a moment if there are requests and the last pause was a portion of work ago; one thread calls it."""
        if self.active <= len(self.loading) or time.perf_counter() - self._begun < self._PORTION:
            return
        end = time.perf_counter() + self._WAIT
        while self.active > len(self.loading) and time.perf_counter() < end:
            time.sleep(self._STEP)
        self._begun = time.perf_counter()
