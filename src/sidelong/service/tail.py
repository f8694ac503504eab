"""What happens to an experiment, as it happens: Server-Sent Events, read off the journal.

Reading the journal, and not listening in memory, shows what other servers do as well, and lets a browser that was cut
off go on where it was. One task reads for all streams: however many there are, the database is asked once every quarter
of a second, and each event is read and formatted once. Only who comes back after a break reads what was missed.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import deque
from typing import TYPE_CHECKING

from pydantic_core import to_json

from sidelong.errors import ServiceError
from sidelong.service.store.clock import timestamp
from sidelong.service.store.journal import arm_of

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterable

    from sidelong.service.store.database import Database, Listed
    from sidelong.service.store.journal import Event
    from sidelong.service.store.tokens import Tokens

_log = logging.getLogger("sidelong.service")
_ALIVE = 15.0
_MOST = 500
_MOST_BYTES = 2**22  # of the columns of events that are read at once
_CATCHING_UP = 2  # streams that read at the same time
_GROUP = 10  # streams that are served at once: the loop serves others between two groups


class _Followed:
    """An experiment that streams follow."""

    def __init__(self, head: int) -> None:
        self.head = head  #: the last event that was read for them
        self.recent: deque[tuple[int, bytes]] = deque(maxlen=_MOST)
        self.streams: set[asyncio.Event] = set()  #: what each of them waits for
        self.end: bytes | None = None  #: what says that it was deleted
        self._page: tuple[int, int, bytes] = (0, 0, b"")  # what was last asked for, which most streams ask for

    def since(self, after: int) -> bytes:
        """Return the recent events after one."""
        if self._page[:2] != (after, self.head):
            text = b"".join(text for number, text in self.recent if number > after)
            self._page = after, self.head, text
        return self._page[2]

    @property
    def oldest(self) -> int:
        """The first event that need not be read again."""
        return self.recent[0][0] if self.recent else self.head + 1


class Tail:
    """The end of all journals, read for all streams, with pauses of `every` seconds."""

    stopping = False  #: all streams end

    def __init__(self, database: Database, tokens: Tokens, every: float = 0.25) -> None:
        self._database = database
        self._every = every
        self._tokens = tokens
        self._followed: dict[int, _Followed] = {}
        self._used: dict[str | None, int] = {}  # how many streams each token has
        self._reading: asyncio.Task[None] | None = None
        self._turns = asyncio.Semaphore(_CATCHING_UP)

    def stop(self) -> None:
        """End all streams."""
        self.stopping = True
        self._wake(self._followed)

    async def stream(self, experiment: int, after: int, head: int, token: str | None) -> AsyncIterator[bytes]:
        """Yield the events after one, until the service stops or the token is revoked; `head` is the last there is.

        If the experiment is deleted, an event without a number says so, and is the last one.
        """
        yield b": sidelong\n\n"
        followed = self._followed.setdefault(experiment, _Followed(head))
        news = asyncio.Event()
        followed.streams.add(news)
        self._used[token] = self._used.get(token, 0) + 1
        if self._reading is None:
            self._reading = asyncio.create_task(self._read())
        try:
            spoken = time.monotonic()
            while not self.stopping and self._tokens.is_valid(token):
                if followed.end is not None:
                    yield followed.end
                    return
                text, after = await self._after(experiment, followed, after)
                if text:
                    spoken = time.monotonic()
                    yield text
                    continue
                news.clear()
                try:
                    async with asyncio.timeout(max(spoken + _ALIVE - time.monotonic(), 0.0)):
                        await news.wait()
                except TimeoutError:
                    spoken = time.monotonic()
                    yield b": alive\n\n"
        finally:
            followed.streams.discard(news)
            self._used[token] -= 1
            if not self._used[token]:
                del self._used[token]
            if not followed.streams:
                self._followed.pop(experiment, None)

    async def _after(self, experiment: int, followed: _Followed, after: int) -> tuple[bytes, int]:
        """Return what comes after an event, and its last number: of what was read for all, or else of the journal."""
        if after + 1 >= followed.oldest:
            return followed.since(after), max(followed.head, after)
        async with self._turns:
            try:
                found = await asyncio.to_thread(_page, self._database, experiment, after)
            except ServiceError:  # the database is away: the next time, perhaps
                found = []
        return b"".join(text for _, text in found), found[-1][0] if found else after

    async def _read(self) -> None:
        """Read what has happened, again and again, while somebody follows."""
        while self._followed and not self.stopping:
            try:
                found, ended = await asyncio.to_thread(
                    self._news, {of: each.head for of, each in self._followed.items()}
                )
            except ServiceError:
                found, ended = {}, {}
            except Exception:  # noqa: BLE001  # the streams must go on
                _log.exception("streams stand still")
                found, ended = {}, {}
            for of, end in ended.items():
                if of in self._followed:
                    self._followed[of].end = end
            for of, page in found.items():
                followed = self._followed.get(of)
                if followed is not None:
                    followed.recent.extend(page)
                    followed.head = page[-1][0]
            await self._wake_in_groups([*found, *ended])
            if not all(self._tokens.is_valid(token) for token in self._used):
                self._wake(self._followed)
            if not any(len(page) == _MOST for page in found.values()):  # else there is more
                await asyncio.sleep(self._every)
        self._reading = None

    def _wake(self, experiments: Iterable[int]) -> None:
        for of in experiments:
            for news in self._followed[of].streams if of in self._followed else ():
                news.set()

    async def _wake_in_groups(self, experiments: Iterable[int]) -> None:
        """Wake the streams of experiments, a few at a time, so that a thousand of them do not hold up the others."""
        waiting = [news for of in experiments if of in self._followed for news in self._followed[of].streams]
        pause = self._every * _GROUP / max(len(waiting), 1)
        for first in range(0, len(waiting), _GROUP):
            for news in waiting[first : first + _GROUP]:
                news.set()
            if len(waiting) > _GROUP:
                await asyncio.sleep(pause)

    def _news(self, heads: dict[int, int]) -> tuple[dict[int, list[tuple[int, bytes]]], dict[int, bytes]]:
        """Return the events behind those of these numbers, of experiments that have some; and the end of deleted ones.

        A deleted one is not asked for its last events, which are erased.
        """
        self._tokens.refresh()
        with self._database.reading() as reading:
            now = {each.id: each.head for each in reading.experiments() if each.id in heads}
            deletions = reading.experiments(deleted=True) if len(now) < len(heads) else []
        ended = {each.id: _format_end(each) for each in deletions if each.id in heads}
        found = {of: _page(self._database, of, heads[of]) for of, head in now.items() if head > heads[of]}
        return {of: page for of, page in found.items() if page}, ended


def _page(database: Database, experiment: int, after: int) -> list[tuple[int, bytes]]:
    with database.reading() as reading:
        return [(event.seq, _format(event)) for event in reading.events(experiment, after, _MOST, _MOST_BYTES)]


def _format_end(deletion: Listed) -> bytes:
    data = {"sequence": None, "kind": "deleted", "round": None, "arm": None, "at": timestamp(deletion.changed_at or 0)}
    return b"event: deleted\ndata: %s\n\n" % to_json(data)


def _format(event: Event) -> bytes:
    kind = event.kind.name.lower()
    round_ = None if event.round < 0 else event.round
    data = {"sequence": event.seq, "kind": kind, "round": round_, "arm": arm_of(event), "at": timestamp(event.at)}
    return b"id: %d\nevent: %s\ndata: %s\n\n" % (event.seq, kind.encode(), to_json(data))
