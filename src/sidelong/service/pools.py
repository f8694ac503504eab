"""Threads for work that is not a decision: a few for each kind, so that one kind cannot keep another waiting.

So many pieces of work are done at once, so many more may wait, and nobody waits for one longer than a deadline. If
whoever wanted a piece leaves, it is not begun; one that was begun ends where it next calls `check`.
"""

from __future__ import annotations

import asyncio
import os
import sys
import threading
from collections import OrderedDict
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from sidelong.errors import ServiceError

if TYPE_CHECKING:
    from collections.abc import Callable

K = TypeVar("K")
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


class WorkQueue(Generic[K]):
    """Threads that do pieces of work in the order in which they came.

    They end with the process, whatever they do.

    Args:
        name: of the threads.
        do: does a piece, and raises nothing.
        threads: how many there are.
    """

    def __init__(self, name: str, do: Callable[[K], None], threads: int = 1) -> None:
        self._do = do
        self._guard = threading.Condition()
        self._pieces: OrderedDict[K, None] = OrderedDict()
        self._stopping = False
        names = (f"{name}-{number}" for number in range(threads))
        self._threads = [threading.Thread(target=self._run, name=each, daemon=True) for each in names]
        for thread in self._threads:
            thread.start()

    def __len__(self) -> int:
        return len(self._pieces)

    def add(self, piece: K) -> bool:
        """Let a piece be done, which may wait already; tell whether it will be: not after `close`."""
        with self._guard:
            if not self._stopping:
                self._pieces[piece] = None
                self._guard.notify()
            return not self._stopping

    def close(self, *, wait: bool = True) -> None:
        """Begin nothing more, and wait for what was begun."""
        with self._guard:
            self._stopping = True
            self._guard.notify_all()
        for thread in self._threads if wait else ():
            thread.join()

    def _run(self) -> None:
        while True:
            with self._guard:
                self._guard.wait_for(lambda: self._pieces or self._stopping)
                if self._stopping:
                    return
                piece, _ = self._pieces.popitem(last=False)
            self._do(piece)


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
        self._work: WorkQueue[tuple[threading.Event, Callable[[], None]]] = WorkQueue(name, _begin, threads)

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

        if len(self._work) >= self._waiting:
            raise self._busy(f"Too many {self.name} are waiting.")
        self._work.add((left, work))
        try:
            async with asyncio.timeout(self._seconds):
                return await done
        except TimeoutError:
            raise self._busy(f"One of the {self.name} took longer than {self._seconds:g} seconds.") from None
        finally:
            left.set()

    def close(self) -> None:
        """Begin nothing more. Nobody would wait for what was begun."""
        self._work.close(wait=False)

    @staticmethod
    def _busy(text: str) -> ServiceError:
        return ServiceError(f"{text} Send the request again later.", status=503, code="busy", retry_after=2.0)


def _begin(piece: tuple[threading.Event, Callable[[], None]]) -> None:
    """Do a piece of work of a pool, unless whoever wanted it has left."""
    left, work = piece
    if not hasattr(_mine, "left"):
        _step_back()
    if not left.is_set():
        _mine.left = left
        work()
