"""Bringing experiments into memory, aside of everything else.

One thread replays them, a page of each in turn: an experiment with few events does not wait for one with a million, and
nobody who decides or looks waits for either. Each page is read in a transaction of its own, so that no replay keeps a
database from tidying up.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections import deque
from typing import TYPE_CHECKING

from sidelong.errors import ServiceError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from sidelong.service.store.replay import Replayed
    from sidelong.service.store.store import Store

    Then = Callable[[Exception | None], None]

_log = logging.getLogger("sidelong.service")


class Loading:
    """The thread that replays."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._guard = threading.Condition()
        self._turns: deque[str] = deque()
        self._then: dict[str, list[Then]] = {}
        self._stopping = False
        self._thread = threading.Thread(target=self._work, name="loading", daemon=True)
        self._thread.start()

    def want(self, of: str, then: Then) -> None:
        """Load an experiment, or let it catch up; `then` is told, in another thread, why it cannot be, or None."""
        with self._guard:
            stopping = self._stopping
            if not stopping:
                if of not in self._then:
                    self._then[of] = []
                    self._turns.append(of)
                self._then[of].append(then)
                self._guard.notify()
        if stopping:
            then(_stopping())

    async def wait(self, of: str, seconds: float) -> None:
        """Wait until an experiment is in memory, or raise why it is not."""
        known = self._store.known(of)
        if known is not None and known.live is not None:
            return
        loop = asyncio.get_running_loop()
        done: asyncio.Future[None] = loop.create_future()

        def settle(error: Exception | None) -> None:
            if not done.done():
                done.set_result(None) if error is None else done.set_exception(error)

        def tell(error: Exception | None) -> None:
            loop.call_soon_threadsafe(settle, error)

        self.want(of, tell)
        try:
            async with asyncio.timeout(seconds):
                await done
        except TimeoutError:
            raise self._store.named(of).loading() from None

    async def wait_for_all(self, every: Sequence[str], seconds: float) -> None:
        """Wait until experiments are in memory or refused, for so many seconds at most."""
        known = {of: self._store.known(of) for of in every}
        wanted = [of for of, found in known.items() if found is None or not found.is_settled]
        await asyncio.gather(*(self.wait(of, seconds) for of in wanted), return_exceptions=True)

    def close(self) -> None:
        """Stop after the page that is being replayed."""
        with self._guard:
            self._stopping = True
            self._guard.notify()
        self._thread.join()
        for of in list(self._then):
            self._tell(of, _stopping())

    def _work(self) -> None:
        while True:
            with self._guard:
                while not self._turns and not self._stopping:
                    self._guard.wait()
                if self._stopping:
                    return
                of = self._turns.popleft()
            try:
                done, error = self._step(of), None
            except Exception as caught:  # noqa: BLE001  # the others must not wait for this one
                done, error = True, caught
                if not isinstance(caught, ServiceError):
                    _log.exception("experiment not opened", extra={"experiment": of})
            if done:
                self._tell(of, error)
            else:
                with self._guard:
                    self._turns.append(of)

    def _step(self, of: str) -> bool:
        found: Replayed = self._store.named(of)
        return found.step(self._store.database)

    def _tell(self, of: str, error: Exception | None) -> None:
        with self._guard:
            waiting = self._then.pop(of, [])
        for then in waiting:
            then(error)


def _stopping() -> ServiceError:
    return ServiceError("The service is stopping.", status=503, code="unavailable", retry_after=2.0)
