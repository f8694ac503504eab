"""Group commit: requests that wait for the disk at the same time share one flush.

All that is written is written by one thread. While it flushes a batch, further requests come in, and they are the next
batch; so that a lone request waits for one flush, and a thousand at once do not wait for a thousand.
"""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections import deque
from typing import TYPE_CHECKING, Any

from sidelong.errors import ServiceError
from sidelong.service.store.commands import Command

if TYPE_CHECKING:
    from collections.abc import Callable

    from sidelong.service.store.store import Store

_log = logging.getLogger("sidelong.service")
_MOST = 512


class Commits:
    """The thread that writes.

    Args:
        store: what it writes to.
        sizes: is told how many requests each batch had.
        seconds: is told how long it took.
    """

    def __init__(self, store: Store, sizes: Callable[[float], None], seconds: Callable[[float], None]) -> None:
        self._store = store
        self._sizes = sizes
        self._seconds = seconds
        self._waiting: deque[tuple[asyncio.Future[Any], Command | Callable[[], Any]]] = deque()
        self._wake = threading.Event()
        self._waking = False
        self._stopping = False
        self._loop = asyncio.get_running_loop()
        self._thread = threading.Thread(target=self._work, name="commits", daemon=True)
        self.failing: ServiceError | None = None  #: why the last batch could not be written
        self._thread.start()

    def submit(self, job: Command | Callable[[], Any]) -> asyncio.Future[Any]:
        """Let a command, or a function that writes, have its turn; the result is on the disk when it comes."""
        future = self._loop.create_future()
        self._waiting.append((future, job))
        if not self._waking:  # after the requests that are at hand, so that one flush serves all of them
            self._waking = True
            self._loop.call_soon(self._wake_up)
        return future

    async def written(self, job: Command | Callable[[], Any]) -> Any:
        """Return the result of a job once it is on the disk, if that does not take longer than a request may."""
        future = self.submit(job)
        waiting = self._loop.call_later(self._store.settings.request_timeout, _give_up, future)
        try:
            return await future
        finally:
            waiting.cancel()

    def _wake_up(self) -> None:
        self._waking = False
        self._wake.set()

    async def close(self) -> None:
        """Finish what is waiting, and stop."""
        self._stopping = True
        self._wake.set()
        await asyncio.to_thread(self._thread.join)

    def _work(self) -> None:
        while not (self._stopping and not self._waiting):
            self._wake.wait()
            self._wake.clear()
            while self._waiting:
                batch = self._take()
                begun = time.perf_counter()
                outcomes = self._run([job for _, job in batch])
                self._sizes(len(batch))
                self._seconds(time.perf_counter() - begun)
                futures = [future for future, _ in batch]
                self._loop.call_soon_threadsafe(_settle, futures, outcomes)
                self._save()

    def _take(self) -> list[tuple[asyncio.Future[Any], Command | Callable[[], Any]]]:
        """Take commands up to the first function, or one function."""
        batch = [self._waiting.popleft()]
        if isinstance(batch[0][1], Command):
            while self._waiting and len(batch) < _MOST and isinstance(self._waiting[0][1], Command):
                batch.append(self._waiting.popleft())
        return batch

    def _run(self, jobs: list[Any]) -> list[Any]:
        if isinstance(jobs[0], Command):
            outcomes = self._store.run(jobs)
        else:
            try:
                outcomes = [jobs[0]()]
            except Exception as error:  # noqa: BLE001  # whoever waits for it gets it
                outcomes = [error]
        last = outcomes[-1]
        broken = isinstance(last, ServiceError) and last.code in {"disk_full", "busy", "unavailable"}
        self.failing = last if broken else None
        return outcomes

    def _save(self) -> None:
        if self.failing is None:
            try:
                self._store.save(least=self._store.settings.snapshot_every)
            except Exception as error:  # noqa: BLE001  # a snapshot only saves time; this thread must go on
                _log.warning("no snapshot", extra={"why": str(error)})


def _give_up(future: asyncio.Future[Any]) -> None:
    if not future.done():
        text = "It took too long to write this. Send the request again, with its Idempotency-Key."
        future.set_exception(ServiceError(text, status=503, code="busy", retry_after=1.0))


def _settle(futures: list[asyncio.Future[Any]], outcomes: list[Any]) -> None:
    for future, outcome in zip(futures, outcomes, strict=True):
        if future.done():  # whoever waited has gone
            continue
        if isinstance(outcome, Exception):
            future.set_exception(outcome)
        else:
            future.set_result(outcome)
