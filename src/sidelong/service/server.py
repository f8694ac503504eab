"""The parts of a running server, and what it does by itself: expire decisions, write snapshots, cut journals."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import logging
import math
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, Self, TypeVar

from sidelong.errors import ServiceError
from sidelong.service import logs
from sidelong.service.metrics import Metrics
from sidelong.service.pools import Pool
from sidelong.service.store.clock import Clock
from sidelong.service.store.commits import Commits
from sidelong.service.store.kinds import open_database
from sidelong.service.store.replay import Loading
from sidelong.service.store.retention import Retention
from sidelong.service.store.rules import Expire
from sidelong.service.store.snapshots import Saving
from sidelong.service.store.store import Store
from sidelong.service.store.tokens import Tokens
from sidelong.service.tail import Tail

if TYPE_CHECKING:
    from collections.abc import Callable

    from sidelong.service.settings import Settings
    from sidelong.service.store.database import Reading
    from sidelong.service.store.experiment import LiveExperiment
    from sidelong.service.store.retention import Export

    T = TypeVar("T")

_log = logging.getLogger("sidelong.service")
_LOOK_EVERY = 10.0  # seconds between looks at what other servers do
_STATES_FOR = 1.0  # seconds that /ready, which needs no token, says the same
_COLLECT_EVERY = 60.0  # seconds between looks for graphs that nothing uses


class Server:
    """Everything behind the endpoints. Use it as an asynchronous context manager.

    Args:
        settings: what the operator has chosen.
        export: writes the log of an experiment, before it is cut.
        clock: another clock than that of the machine.
    """

    commits: Commits
    loading: Loading
    tail: Tail
    is_loaded = False  #: whether all experiments were in memory, or refused, since the start
    _states: asyncio.Future[dict[str, int]] | None = None
    _states_until = 0.0

    def __init__(self, settings: Settings, export: Export, clock: Clock | None = None) -> None:
        self.settings = settings
        self._export = export
        self.clock = clock or Clock()
        self.metrics = Metrics()
        self.database = open_database(settings.database, settings.busy_timeout)
        self.store = Store(self.database, settings, self.clock)
        self.tokens = Tokens(self.database)
        self.tokens.refresh()
        # Threads of their own for each kind of work: nothing waits for exports, and short looks wait for nothing.
        short, long = settings.request_timeout, settings.work_timeout
        self.reads = Pool("reads", 4, 500, short)
        self.builds = Pool("graphs and experiments to be made", 2, 64, long)
        self.exports = Pool("exports", 2, 64, long)
        self.evaluations = Pool("evaluations", 1, 64, long)
        self._looks = ThreadPoolExecutor(1, "look")
        self.metrics.watch(self.store)

    async def __aenter__(self) -> Self:
        self.tail = Tail(self.database, self.tokens)
        self.loading = Loading(self.store)
        sizes, seconds = self.metrics.batch_size.observe, self.metrics.commit_seconds.observe
        self._saving = Saving(self.store)
        self._retention = Retention(self.store, self._export, self.metrics.cut)
        self._retention.start()
        self.commits = Commits(self.store, self.loading, self._saving, sizes, seconds)
        self._sweeping = asyncio.create_task(self._sweep())
        return self

    async def __aexit__(self, *_: object) -> None:
        self.tail.stop()
        self._sweeping.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await self._sweeping
        await asyncio.to_thread(self._retention.close)
        await asyncio.to_thread(self.loading.close)
        await self.commits.close()
        await asyncio.to_thread(self._saving.close)
        try:  # so that the next start has nothing to replay
            await asyncio.to_thread(self.store.save_clock)
            await asyncio.to_thread(self.store.save, least=1)
        except Exception as error:  # noqa: BLE001  # all that is acknowledged is on the disk
            _log.warning("no snapshot at the end", extra={"why": str(error)})
        for pool in (self.reads, self.builds, self.exports, self.evaluations):
            pool.close()
        self._looks.shutdown(wait=False, cancel_futures=True)
        self.database.close()

    async def look(self, function: Callable[..., T], *arguments: Any) -> T:
        """Return what a short look at the database finds; one that does not say anything is as good as none."""
        try:
            async with asyncio.timeout(self.settings.busy_timeout):
                return await asyncio.get_running_loop().run_in_executor(self._looks, function, *arguments)
        except TimeoutError:
            raise ServiceError(
                "The database does not answer.", status=503, code="unavailable", retry_after=2.0
            ) from None

    async def states(self) -> dict[str, int]:
        """Return how many experiments are in which state, or were a moment ago: the database is asked once a second."""
        now = asyncio.get_running_loop().time()
        found = self._states
        if found is None or (found.done() and (now >= self._states_until or found.exception() is not None)):
            found = self._states = asyncio.ensure_future(self.look(self.store.states))
            self._states_until = now + _STATES_FOR
        await asyncio.wait([found])
        error = found.exception()
        if error is not None:
            raise error.with_traceback(None)  # which would grow with each who asks
        states = found.result()
        self.is_loaded = self.is_loaded or not states["loading"]
        return states

    async def view(self, of: str, look: Callable[[LiveExperiment, Reading], T]) -> T:
        """Return what `look` sees of an experiment; one that is not in memory is loaded first, in its turn."""
        await self.loading.wait(of, self.settings.request_timeout)
        return await self.reads.run(self.store.view, of, look)

    async def _sweep(self) -> None:
        """Look for expired decisions, again and again, whatever happens."""
        last = collected = -math.inf
        while True:
            try:
                now = self.clock.now().clock
                if now - collected >= _COLLECT_EVERY * 1000:
                    collected = now
                    await asyncio.to_thread(self.store.collect)
                if now - last >= _LOOK_EVERY * 1000:
                    last = now
                    await asyncio.to_thread(self.store.drop_idle)
                    for name in await asyncio.to_thread(self.store.behind):
                        self.loading.want(name, functools.partial(_opened, name))
                    if any(each.pending for _, each in self.store.measured()):
                        await self.commits.submit(self.store.save_clock)
                due = [self.commits.submit(Expire(each)) for each in await asyncio.to_thread(self.store.due)]
                if due:  # one that is busy does not keep the others from their next turn
                    done, _ = await asyncio.wait(due, timeout=self.settings.sweep_every)
                    for each in done:
                        each.result()
            except Exception as error:  # noqa: BLE001  # a full disk, say: the next round may fare better
                _log.warning("nothing expires", extra={"why": str(error)})
            await asyncio.sleep(self.settings.sweep_every)
            logs.flush()


def _opened(name: str, error: Exception | None) -> None:
    """Note that all decisions of an experiment expire in time, even if nobody asks for it here, or that they do not."""
    if error is not None:
        _log.warning("experiment not opened", extra={"experiment": name, "why": str(error)})
