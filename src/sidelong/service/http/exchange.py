"""A request and its reply, as handlers see them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from sidelong.errors import ServiceError
    from sidelong.service.server import Server
    from sidelong.service.store.tokens import Access


@dataclass(slots=True)
class Call:
    """A request. What it may hold stands in the table of addresses."""

    server: Server
    headers: dict[bytes, bytes]  #: by their names in small letters
    route: str = "/"  #: the address as the table has it; that of the dashboard for all that is not in it
    place: dict[str, str] = field(default_factory=dict)  #: the parts of its path that have a name
    of: str = ""  #: the experiment that it is about, by name, or by "#" and key for who may reach no other
    access: Access | None = None  #: what its sender may do
    query: Any = None
    body: Any = None
    error: ServiceError | None = None  #: why it was refused


class Reply(NamedTuple):
    """What is sent as JSON."""

    content: Any
    status: int = 200
