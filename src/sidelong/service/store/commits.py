"""Group commit: requests that wait for the disk at the same time share one flush.

Decisions and feedback are written by one thread. While it flushes a batch, further requests come in, and they are the
next batch; so that a lone request waits for one flush, and a thousand at once do not wait for a thousand.

That thread waits for the disk alone. The commands of an experiment that must be replayed first, that somebody looks at,
or that another server has locked, wait aside, and the others go on. What takes long, such as a batch of thousands of
keys, is done ahead, in another thread, and only written here.
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
from sidelong.service.store.rules import Command
from sidelong.service.store.store import Ahead, Behind, Locked, Overtaken

if TYPE_CHECKING:
    from collections.abc import Callable

    from sidelong.service.store.replay import Loading, Replayed
    from sidelong.service.store.snapshots import Saving
    from sidelong.service.store.store import Store

    Item = tuple[Any, Any]  # the future of whoever waits for it, and a command or a function

_MOST = 512
_ASIDE = 4  # experiments that wait for other servers at the same time
_AHEAD = 2  # experiments that compute at the same time


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
        self._computing = ThreadPoolExecutor(_AHEAD, "commits-ahead")
        self._ahead: dict[Replayed, list[Item]] = {}  # whose commands are done ahead, and not written yet
        self._made: deque[tuple[Replayed, Ahead]] = deque()  # of these, what is to be written
        self._overtaken: set[Replayed] = set()  # whose next commands are not
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
        await asyncio.to_thread(self._computing.shutdown)

    def _work(self) -> None:
        while not (self._stopping and not self._waiting and not self._queued and not self._ahead):
            self._wake.wait()
            self._wake.clear()
            while self._waiting or self._granted or self._made:
                held, batch = self._take()
                if batch:
                    self._write(held, batch)

    def _take(self) -> tuple[dict[str, Replayed], list[Item]]:
        """Take commands that can be run now, up to the first function, with the experiments whose locks are held."""
        held, batch = self._due()
        ours = set(held.values()) - self._ahead.keys()
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
            elif found in ours and not self._takes_long(found, job):
                held[job.of] = found
                batch.append(item)
            elif not found.lock.request(partial(self._grant, found)):
                self._queued[found] = [item]
            elif self._takes_long(found, job):
                self._begin_ahead(found, [item])
            else:
                ours.add(found)
                held[job.of] = found
                batch.append(item)
        return held, batch

    def _due(self) -> tuple[dict[str, Replayed], list[Item]]:
        """Take what was done ahead, and commands whose experiments are handed to us by now."""
        held: dict[str, Replayed] = {}
        batch: list[Item] = []
        while self._made:
            replayed, made = self._made.popleft()
            held[made.of] = replayed
            batch.append((None, made))
        while self._granted:
            replayed = self._granted.popleft()
            items = self._queued.pop(replayed)
            if any(self._takes_long(replayed, job) for _, job in items):
                self._begin_ahead(replayed, items)
                continue
            for item in items:
                held[item[1].of] = replayed
                batch.append(item)
        return held, batch

    def _takes_long(self, replayed: Replayed, job: Command) -> bool:
        live = replayed.live
        return live is not None and replayed not in self._overtaken and job.takes_long(live)

    def _begin_ahead(self, replayed: Replayed, items: list[Item]) -> None:
        """Let commands be done ahead of the transaction that writes them; the lock of their experiment is held."""
        self._ahead[replayed] = items
        self._computing.submit(self._go_ahead, replayed)

    def _go_ahead(self, replayed: Replayed) -> None:
        items = self._ahead[replayed]
        try:
            made = self._store.run_ahead([job for _, job in items], replayed)
        except Exception:  # noqa: BLE001  # whatever it is, it happens again in the transaction, and is handled there
            self._do_again(replayed)
        else:
            self._made.append((replayed, made))
            self._wake.set()

    def _do_again(self, replayed: Replayed) -> None:
        """Let commands be done in the transaction, since it did not work ahead of it."""
        items = self._back(replayed)
        replayed.live = None
        self._overtaken.add(replayed)
        replayed.lock.release()
        self._load(items)

    def _back(self, replayed: Replayed) -> list[Item]:
        """Take commands back that were done ahead; whoever stops the thread that writes may wait for nothing else."""
        items = self._ahead.pop(replayed)
        self._wake.set()
        return items

    def _grant(self, replayed: Replayed) -> None:
        self._granted.append(replayed)
        self._wake.set()

    def _load(self, items: list[Item]) -> None:
        """Let commands wait until their experiment is in memory."""
        futures, loading = [future for future, _ in items], self._store.priority.loading
        loading.update(futures)

        def then(error: Exception | None) -> None:
            loading.difference_update(futures)
            if error is None:
                self._waiting.extendleft(reversed(items))
                self._wake.set()
            else:
                self._resolve(items, [error] * len(items))

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
        for item, outcome in zip(batch, outcomes, strict=True):
            if isinstance(outcome, Locked):
                locked.setdefault(held[item[1].of], []).append(item)
        self._finish(held, batch, outcomes)
        settings = self._store.settings
        for replayed in set(held.values()):
            live = replayed.live
            if live is not None and live.wants_saving(settings.snapshot_every, settings.max_key_bytes):
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
        held = {job.of: replayed for _, job in items}
        try:
            self._finish(held, items, self._store.run_held([job for _, job in items], held, wait=True))
        finally:
            replayed.lock.release()
        self._saving.note(replayed)

    def _finish(self, held: dict[str, Replayed], batch: list[Item], outcomes: list[Any]) -> None:
        """Tell those who wait what became of their commands, or let them be done again."""
        settled: list[tuple[Item, Any]] = []
        for item, outcome in zip(batch, outcomes, strict=True):
            job = item[1]
            if isinstance(outcome, Locked):
                continue
            if isinstance(job, Ahead):
                settled += self._opened(held[job.of], outcome)
                continue
            if isinstance(job, Command) and not isinstance(outcome, Behind):
                self._overtaken.discard(held[job.of])
            settled.append((item, outcome))
        for item, outcome in settled:
            if isinstance(outcome, Behind):  # or another server has renamed it
                self._load([item])
        done = [pair for pair in settled if not isinstance(pair[1], Behind)]
        if done:
            self._note(done[-1][1])
            self._resolve([item for item, _ in done], [outcome for _, outcome in done])

    def _opened(self, replayed: Replayed, outcome: Any) -> list[tuple[Item, Any]]:
        """Return the commands that were done ahead, each with its outcome."""
        items = self._back(replayed)
        if isinstance(outcome, list):
            return list(zip(items, outcome, strict=True))
        if isinstance(outcome, Overtaken):
            self._overtaken.add(replayed)
            outcome = Behind()
        return [(item, outcome) for item in items]

    def _note(self, outcome: Any) -> None:
        broken = isinstance(outcome, ServiceError) and outcome.code in {"disk_full", "busy", "unavailable"}
        self.failing = outcome if broken else None

    def _resolve(self, items: list[Item], outcomes: list[Any]) -> None:
        self._loop.call_soon_threadsafe(_resolve, [future for future, _ in items], outcomes)


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


def _resolve(futures: list[asyncio.Future[Any]], outcomes: list[Any]) -> None:
    for future, outcome in zip(futures, outcomes, strict=True):
        if future.done():  # whoever waited has gone
            continue
        if isinstance(outcome, Exception):
            future.set_exception(outcome)
        else:
            future.set_result(outcome)
