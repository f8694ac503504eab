"""Group commit: requests that wait for the disk at the same time share one flush.

Decisions and feedback are written by one thread. While it flushes a batch, further requests come in, and they are the
next batch; so that a lone request waits for one flush, and a thousand at once do not wait for a thousand.

That thread waits for the disk alone. The commands of an experiment that must be replayed first, that somebody looks at,
or that another server has locked, wait aside, and the others go on.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections import deque
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TYPE_CHECKING, Any

from sidelong.errors import ServiceError
from sidelong.service.store.commands import Command
from sidelong.service.store.store import Behind, Locked

if TYPE_CHECKING:
    from collections.abc import Callable

    from sidelong.service.store.loading import Loading
    from sidelong.service.store.replay import Replayed
    from sidelong.service.store.saving import Saving
    from sidelong.service.store.store import Store

    Item = tuple[asyncio.Future[Any], Any]  # a command or a function, and who waits for it

_MOST = 512
_ASIDE = 4  # experiments that wait for other servers at the same time


class Commits:
    """The thread that writes.

    Args:
        store: what it writes to.
        loading: what brings experiments into memory.
        saving: what writes snapshots.
        sizes: is told how many requests each batch had.
        seconds: is told how long it took.
    """

    def __init__(
        self,
        store: Store,
        loading: Loading,
        saving: Saving,
        sizes: Callable[[float], None],
        seconds: Callable[[float], None],
    ) -> None:
        self._store = store
        self._loading = loading
        self._saving = saving
        self._sizes = sizes
        self._seconds = seconds
        self._waiting: deque[Item] = deque()
        self._queued: dict[Replayed, list[Item]] = {}  # whose locks were asked for
        self._granted: deque[Replayed] = deque()
        self._aside = ThreadPoolExecutor(_ASIDE, "commits-aside")
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
        await asyncio.to_thread(self._aside.shutdown)

    def _work(self) -> None:
        while not (self._stopping and not self._waiting and not self._queued):
            self._wake.wait()
            self._wake.clear()
            while self._waiting or self._granted:
                held, batch = self._take()
                if batch:
                    self._write(held, batch)

    def _take(self) -> tuple[dict[str, Replayed], list[Item]]:
        """Take commands that can be run now, up to the first function, with the experiments whose locks are held."""
        held: dict[str, Replayed] = {}
        batch: list[Item] = []
        while self._granted:
            replayed = self._granted.popleft()
            for item in self._queued.pop(replayed):
                held[item[1].of] = replayed
                batch.append(item)
        ours = set(held.values())
        while self._waiting and len(batch) < _MOST:
            job = self._waiting[0][1]
            if not isinstance(job, Command):
                return held, batch or [self._waiting.popleft()]
            item = self._waiting.popleft()
            found = self._store.known(job.of)
            if found is None or (found.live is None and found.refused is None):
                self._load([item])
            elif found in self._queued:
                self._queued[found].append(item)
            elif found in ours or found.lock.request(partial(self._grant, found)):
                ours.add(found)
                held[job.of] = found
                batch.append(item)
            else:
                self._queued[found] = [item]
        return held, batch

    def _grant(self, replayed: Replayed) -> None:
        self._granted.append(replayed)
        self._wake.set()

    def _load(self, items: list[Item]) -> None:
        """Let commands wait until their experiment is in memory."""

        def then(error: Exception | None) -> None:
            if error is None:
                self._waiting.extendleft(reversed(items))
                self._wake.set()
            else:
                self._settle(items, [error] * len(items))

        self._loading.want(items[0][1].of, then)

    def _write(self, held: dict[str, Replayed], batch: list[Item]) -> None:
        begun = time.perf_counter()
        if held:
            outcomes = self._store.run_held([job for _, job in batch], held, wait=False)
        else:
            outcomes = [_outcome(batch[0][1])]
        self._sizes(len(batch))
        self._seconds(time.perf_counter() - begun)
        locked: dict[Replayed, list[Item]] = {}
        settled = []
        for item, outcome in zip(batch, outcomes, strict=True):
            if isinstance(outcome, Behind):
                self._load([item])
            elif isinstance(outcome, Locked):
                locked.setdefault(held[item[1].of], []).append(item)
            else:
                settled.append((item, outcome))
        if settled:
            self._note(settled[-1][1])
            self._settle(*map(list, zip(*settled, strict=True)))
        for replayed in set(held.values()):
            live = replayed.live
            if live is not None and live.done - live.saved >= self._store.settings.snapshot_every:
                self._saving.note(replayed)
            if replayed in locked:
                self._aside.submit(self._write_aside, replayed, locked[replayed])
            else:
                replayed.lock.release()
            if live is None and replayed.refused is None:
                # What could not be written was forgotten, and its decisions must expire.
                self._loading.want(f"#{replayed.identity.key}", _nothing)

    def _write_aside(self, replayed: Replayed, items: list[Item]) -> None:
        """Write to an experiment that another server has locked; its lock in this server is held."""
        try:
            outcomes = self._store.run_held(
                [job for _, job in items], {job.of: replayed for _, job in items}, wait=True
            )
        finally:
            replayed.lock.release()
        self._saving.note(replayed)
        for item, outcome in zip(items, outcomes, strict=True):
            if isinstance(outcome, Behind):  # the other server has renamed it
                self._load([item])
            else:
                self._settle([item], [outcome])

    def _note(self, outcome: Any) -> None:
        broken = isinstance(outcome, ServiceError) and outcome.code in {"disk_full", "busy", "unavailable"}
        self.failing = outcome if broken else None

    def _settle(self, items: list[Item], outcomes: list[Any]) -> None:
        self._loop.call_soon_threadsafe(_settle, [future for future, _ in items], outcomes)


def _nothing(_: object) -> None:
    """Wait for nothing."""


def _outcome(function: Callable[[], Any]) -> Any:
    try:
        return function()
    except Exception as error:  # noqa: BLE001  # whoever waits for it gets it
        return error


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
