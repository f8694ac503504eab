"""Endpoints: what a handler is given and returns, and how it is registered beside its code.

A module of handlers has an `endpoints = Endpoints()`, and each handler says above itself which requests it answers:

    @endpoints.add("POST", "/v1/decisions/{id}/cancel", Scope.DECIDE, {200: Cancelled})
    async def cancel(call: Call) -> Reply:
        '''Give up a decision that was never carried out: nothing is learned from it.'''

`openapi` collects the endpoints of all modules. Requests are routed by them (`app`), and the OpenAPI document is made
of them. There a handler's name is the name of the operation, and its docstring says what it does.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeVar

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from pydantic import BaseModel
    from starlette.responses import Response

    from sidelong.errors import ServiceError
    from sidelong.service.server import Server
    from sidelong.service.store.tokens import Access, Scope

    Handler = Callable[["Call"], Awaitable["Reply | Response"]]
    #: By status: a message, one of several, or the media type of what is no JSON.
    Gives = Mapping[int, type[BaseModel] | tuple[type[BaseModel], ...] | str]


T = TypeVar("T")
_MANY = 1000  # decisions, of which any look at all of them takes a millisecond


async def look_through(many: int, function: Callable[..., T], *arguments: Any) -> T:
    """Return what a function makes of so many decisions; where they are many, others have their turns meanwhile."""
    return function(*arguments) if many < _MANY else await asyncio.to_thread(function, *arguments)


@dataclass(slots=True)
class Call:
    """A request. What it may hold is said where its handler is registered."""

    server: Server
    headers: dict[bytes, bytes]  #: by their names in small letters
    route: str = "/"  #: the path of its endpoint; that of the dashboard for all that has no endpoint
    place: dict[str, str] = field(default_factory=dict)  #: the parts of its path that have a name
    of: str = ""  #: the experiment that it is about, by name, or by "#" and key for who may reach no other
    access: Access | None = None  #: what its sender may do
    query: Any = None
    body: Any = None
    error: ServiceError | None = None  #: why it was refused
    is_urgent: bool = False  #: whether it decides or tells, so that work in the background waits for it


class Reply(NamedTuple):
    """What is sent as JSON."""

    content: Any
    status: int = 200


class Endpoint(NamedTuple):
    """What a handler answers, what it takes and gives, and what one must be allowed to do to use it."""

    method: str
    path: str
    scope: Scope | Literal["any", "none"]  #: "any": with any token; "none": without one
    handle: Handler
    gives: Gives
    takes: type[BaseModel] | Literal["file"] | None = None  #: the body, which may be left out where {} is right
    query: type[BaseModel] | None = None
    headers: Mapping[str, Any] = {}  # never changed
    #: Of an endpoint that names no experiment and no decision: whether a token for one experiment may use it. Its
    #: handler then shows and changes nothing of others.
    single: bool = False
    creates: bool = False  #: whether it makes an experiment, which no token for one experiment may


class Endpoints(list[Endpoint]):
    """The endpoints of one module."""

    def add(
        self, method: str, path: str, scope: Scope | Literal["any", "none"], gives: Gives, **more: Any
    ) -> Callable[[Handler], Handler]:
        """Return a decorator that registers a handler; further arguments are fields of `Endpoint`."""

        def register(handle: Handler) -> Handler:
            self.append(Endpoint(method, path, scope, handle, gives, **more))
            return handle

        return register
