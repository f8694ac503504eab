"""The parts of a running server, and what it does by itself: expire decisions, write its clock and snapshots."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import math
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, Self, TypeVar

from sidelong.errors import ServiceError
from sidelong.service import logs
from sidelong.service.metrics import Metrics
from sidelong.service.store.commands import Expire
from sidelong.service.store.commits import Commits
from sidelong.service.store.experiment import Clock
from sidelong.service.store.kinds import open_database
from sidelong.service.store.store import Store
from sidelong.service.store.tokens import Tokens

if TYPE_CHECKING:
    from collections.abc import Callable

    from sidelong.service.settings import Settings

    T = TypeVar("T")

_log = logging.getLogger("sidelong.service")
_EXPORTS = 2  # at once
_LOOK_EVERY = 10.0  # seconds between looks at what other servers do


class Server:
    """Everything behind the addresses. Use it as an asynchronous context manager."""

    commits: Commits
    stopping = False  #: what goes on for ever ends now

    def __init__(self, settings: Settings, clock: Clock | None = None) -> None:
        self.settings = settings
        self.clock = clock or Clock()
        self.metrics = Metrics()
        self.database = open_database(settings.database, settings.busy_timeout)
        self.store = Store(self.database, settings, self.clock)
        self.tokens = Tokens(self.database)
        self.tokens.refresh()
        # Threads of their own: nothing waits for exports, and short looks wait for nothing.
        self.exports = ThreadPoolExecutor(_EXPORTS, "export")
        self._looks = ThreadPoolExecutor(1, "look")
        self.metrics.watch(self.store)

    async def __aenter__(self) -> Self:
        self.commits = Commits(self.store, self.metrics.batch_size.observe, self.metrics.commit_seconds.observe)
        self._sweeping = asyncio.create_task(self._sweep())
        return self

    async def __aexit__(self, *_: object) -> None:
        self._sweeping.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await self._sweeping
        try:  # so that the next start has nothing to replay
            await self.commits.submit(self.store.save_clock)
            await self.commits.submit(lambda: self.store.save(least=1))
        except Exception as error:  # noqa: BLE001  # all that is acknowledged is on the disk
            _log.warning("no snapshot at the end", extra={"why": str(error)})
        await self.commits.close()
        for threads in (self.exports, self._looks):
            threads.shutdown(wait=False, cancel_futures=True)
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

    async def _sweep(self) -> None:
        """Look for expired decisions, again and again, whatever happens."""
        last = -math.inf
        while True:
            try:
                now = self.clock.now().clock
                if now - last >= _LOOK_EVERY * 1000:
                    last = now
                    await asyncio.to_thread(self._catch_up)
                    counts = await asyncio.to_thread(self.store.counts)  # which may wait for a commit
                    if any(waiting for _, _, waiting in counts):
                        await self.commits.submit(self.store.save_clock)
                for experiment in await asyncio.to_thread(self.store.due):
                    await self.commits.submit(Expire(experiment))
            except Exception as error:  # noqa: BLE001  # a full disk, say: the next round may fare better
                _log.warning("nothing expires", extra={"why": str(error)})
            await asyncio.sleep(self.settings.sweep_every)
            logs.flush()

    def _catch_up(self) -> None:
        """Bring all experiments into memory as they are: their decisions expire even if nobody asks for them here."""
        for name in self.store.behind():
            try:
                self.store.view(name, lambda *_: None)
            except Exception as error:  # noqa: BLE001  # the others must not wait for this one
                _log.warning("experiment not opened", extra={"experiment": name, "why": str(error)})
