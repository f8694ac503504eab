"""A request and its reply, as handlers see them, and what handlers share."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from sidelong.errors import ServiceError

if TYPE_CHECKING:
    from sidelong.service.server import Server
    from sidelong.service.store.tokens import Access

__all__ = ["Call", "Reply", "written"]


@dataclass(slots=True)
class Call:
    """A request. What it may hold stands in the table of addresses."""

    server: Server
    headers: dict[bytes, bytes]  #: by their names in small letters
    route: str = "unknown"  #: the address as the table has it
    place: dict[str, str] = field(default_factory=dict)  #: the parts of its path that have a name
    access: Access | None = None  #: what its sender may do
    query: Any = None
    body: Any = None


class Reply(NamedTuple):
    """What is sent as JSON."""

    content: Any
    status: int = 200


async def written(server: Server, job: Any) -> Any:
    """Return the result of a command, once it is on the disk."""
    waiting = server.commits.submit(job)
    patience = asyncio.get_running_loop().call_later(server.settings.request_timeout, _give_up, waiting)
    try:
        return await waiting
    finally:
        patience.cancel()


def _give_up(waiting: asyncio.Future[Any]) -> None:
    if not waiting.done():
        text = "It took too long to write this. Send the request again, with its Idempotency-Key."
        waiting.set_exception(ServiceError(text, status=503, code="busy", retry_after=1.0))
