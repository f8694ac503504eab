"""Threads for work that is not a decision: a few for each kind, so that one kind cannot keep another waiting.

So many pieces of work are done at once, so many more may wait, and nobody waits for one longer than a deadline. If
whoever wanted a piece leaves, it is not begun; one that was begun ends where it next calls `check`.
"""

from __future__ import annotations

import asyncio
import os
import sys
import threading
from collections import deque
from typing import TYPE_CHECKING, Any, TypeVar

from sidelong.errors import ServiceError

if TYPE_CHECKING:
    from collections.abc import Callable

T = TypeVar("T")
_mine = threading.local()
_NICENESS = 5


class LeftError(Exception):
    """Nobody waits for this any more."""


def leave_with(left: threading.Event) -> None:
    """Let `check` raise in this thread once an event is set; threads of a pool have one for each piece of work."""
    _mine.left = left


def check() -> None:
    """Raise `LeftError` if nobody waits any more for what this thread does."""
    left: threading.Event | None = getattr(_mine, "left", None)
    if left is not None and left.is_set():
        raise LeftError


def _step_back() -> None:
    """Let threads that decide go first where processors are few; on Linux, where one thread can be told so."""
    if sys.platform == "linux":
        os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), _NICENESS)


class Pool:
    """Threads for one kind of work.

    Args:
        name: what it is called in messages: "reads".
        threads: how many pieces are done at once.
        waiting: how many more may wait.
        seconds: how long anybody waits for one.
    """

    def __init__(self, name: str, threads: int, waiting: int, seconds: float) -> None:
        self.name = name
        self._waiting = waiting
        self._seconds = seconds
        self._guard = threading.Condition()
        self._work: deque[tuple[threading.Event, Callable[[], None]]] = deque()
        self._stopping = False
        # They end with the process, whatever they do: nobody would wait for what they bring.
        self._threads = [
            threading.Thread(target=self._run, name=f"{name}-{number}", daemon=True) for number in range(threads)
        ]
        for thread in self._threads:
            thread.start()

    async def run(self, function: Callable[..., T], *arguments: Any) -> T:
        """Return what a function returns, in a thread of this pool."""
        loop, left = asyncio.get_running_loop(), threading.Event()
        done: asyncio.Future[T] = loop.create_future()

        def resolve(result: Any, error: BaseException | None) -> None:
            if not done.done():
                done.set_result(result) if error is None else done.set_exception(error)

        def work() -> None:
            try:
                result, error = function(*arguments), None
            except BaseException as caught:  # noqa: BLE001  # whoever waits for it gets it
                result, error = None, caught
            if not left.is_set():
                loop.call_soon_threadsafe(resolve, result, error)

        with self._guard:
            if len(self._work) >= self._waiting:
                raise self._busy(f"Too many {self.name} are waiting.")
            self._work.append((left, work))
            self._guard.notify()
        try:
            async with asyncio.timeout(self._seconds):
                return await done
        except TimeoutError:
            raise self._busy(f"One of the {self.name} took longer than {self._seconds:g} seconds.") from None
        finally:
            left.set()

    def close(self) -> None:
        """Begin nothing more."""
        with self._guard:
            self._stopping = True
            self._work.clear()
            self._guard.notify_all()

    def _run(self) -> None:
        _step_back()
        while True:
            with self._guard:
                while not self._work and not self._stopping:
                    self._guard.wait()
                if self._stopping:
                    return
                left, work = self._work.popleft()
            if not left.is_set():
                _mine.left = left
                work()

    @staticmethod
    def _busy(text: str) -> ServiceError:
        return ServiceError(f"{text} Send the request again later.", status=503, code="busy", retry_after=2.0)
