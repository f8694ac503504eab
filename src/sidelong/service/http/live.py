"""What happens to an experiment, as it happens: Server-Sent Events, read off the journal.

Reading the journal, and not listening in memory, shows what other servers do as well, and lets a browser that was cut
off go on where it was.
"""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING

from pydantic_core import to_json

from sidelong.errors import ServiceError
from sidelong.service.store.experiment import timestamp

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from sidelong.service.server import Server
    from sidelong.service.store.database import Database
    from sidelong.service.store.journal import Event
    from sidelong.service.store.tokens import Tokens

_EVERY = 0.25
_ALIVE = 15.0
_MOST = 500


async def stream(server: Server, experiment: int, after: int, token: str | None) -> AsyncIterator[bytes]:
    """Yield the events after one, until the service stops or the token is revoked."""
    yield b": sidelong\n\n"
    spoken = time.monotonic()
    while not server.stopping:
        try:
            if not await asyncio.to_thread(_is_allowed, server.tokens, token):
                return
            found = await asyncio.to_thread(_read, server.database, experiment, after)
        except ServiceError:  # the database is away: the next time, perhaps
            found = []
        if found:
            after, spoken = found[-1].seq, time.monotonic()
            yield b"".join(map(_format, found))
        elif time.monotonic() - spoken > _ALIVE:
            spoken = time.monotonic()
            yield b": alive\n\n"
        if len(found) < _MOST:  # else there is more: who falls behind would never catch up
            await asyncio.sleep(_EVERY)


def _is_allowed(tokens: Tokens, token: str | None) -> bool:
    tokens.refresh()
    return tokens.is_valid(token)


def _read(database: Database, experiment: int, after: int) -> list[Event]:
    with database.reading() as reading:
        return reading.events(experiment, after, _MOST)


def _format(event: Event) -> bytes:
    kind = event.kind.name.lower()
    data = {"sequence": event.seq, "kind": kind, "round": event.round, "arm": event.arm, "at": timestamp(event.at)}
    return b"id: %d\nevent: %s\ndata: %s\n\n" % (event.seq, kind.encode(), to_json(data))
