"""The application: what happens to a request, from the server below to the reply."""

from __future__ import annotations

import asyncio
import itertools
import json
import logging
import secrets
import time
from collections import Counter
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import parse_qsl

from pydantic import BaseModel, ValidationError
from pydantic_core import to_json
from starlette.exceptions import HTTPException
from starlette.responses import Response
from starlette.routing import Router
from starlette.staticfiles import StaticFiles

from sidelong.errors import ServiceError
from sidelong.service.http import export, problems, tracing
from sidelong.service.http.access import AccessControl
from sidelong.service.http.endpoints import Call
from sidelong.service.http.openapi import ENDPOINTS
from sidelong.service.http.problems import invalid, misread
from sidelong.service.server import Server
from sidelong.service.store.tokens import Scope

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from starlette.types import Message, Receive, Send
    from starlette.types import Scope as Connection

    from sidelong.service.connections import TimedConnection
    from sidelong.service.http.endpoints import Endpoint, Reply
    from sidelong.service.settings import Settings
    from sidelong.service.store.clock import Clock

M = TypeVar("M", bound=BaseModel)

_log = logging.getLogger("sidelong.service")
_BOOT = secrets.token_hex(4)  # what the names of this process's requests begin with
_JSON = "application/json"
#: A body that is too large is read up to here and thrown away: many clients hear the reply only when all is sent.
_LARGEST_DISCARDED = 2**25
_FAILURES = {"unavailable", "disk_full"}  # codes of errors that somebody must look after
_LARGE = 2**17  # bytes of a body that takes milliseconds to read
_PAGE_POLICY = b"default-src 'self'; img-src 'self' data:; frame-ancestors 'none'; base-uri 'none'; form-action 'none'"


class Application:
    """All endpoints, and the dashboard, as a server calls them (ASGI). Its server begins and ends with it."""

    server: Server
    _access_control: AccessControl

    def __init__(self, settings: Settings, clock: Clock | None = None) -> None:
        self._settings = settings
        self._clock = clock
        self._numbers = itertools.count(1)
        self._pages = StaticFiles(directory=Path(__file__).parents[1] / "dashboard", html=True)
        self._routes = _Route()
        for endpoint in ENDPOINTS:
            self._routes.add(endpoint)

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Open the server, and close it at the end."""
        async with await asyncio.to_thread(Server, self._settings, export.write, self._clock) as self.server:
            self._access_control = AccessControl(self.server)
            yield

    async def __call__(self, scope: Connection, receive: Receive, send: Send) -> None:
        """Answer a request, count it and log it; a mistake of ours becomes a reply."""
        if scope["type"] == "lifespan":
            await Router(lifespan=lambda _: self.running()).lifespan(scope, receive, send)
            return
        headers = dict(scope["headers"])
        with tracing.span(headers) as span:
            call = Call(self.server, headers)
            status = await self._answer(call, scope, receive, send)
            span.end(scope["method"], call.route, status)

    async def _answer(self, call: Call, scope: Connection, receive: Receive, send: Send) -> int:
        """Answer a request, and return the status of the reply."""
        begun = time.perf_counter()
        number, status = tracing.request_id(call.headers, f"{_BOOT}-{next(self._numbers)}"), 0
        traced = tracing.trace_of(call.headers)

        async def answer(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                headers = [(b"x-request-id", number.encode()), (b"x-content-type-options", b"nosniff")]
                if traced is not None:
                    headers.append((b"traceparent", traced[0]))
                if not scope["path"].startswith("/v1/"):
                    headers.append((b"content-security-policy", _PAGE_POLICY))
                message["headers"] = [*message.get("headers", ()), *headers]
            await send(message)

        try:
            reply = await self._reply(call, scope, receive)
            await reply(scope, receive, answer)
        except asyncio.CancelledError:  # the server stops, and waits no longer for what takes so long
            if status:
                raise
            stopping = "The service is stopping. Send the request again: it may have been carried out."
            wrong = ServiceError(stopping, status=503, code="unavailable", retry_after=2.0)
            await problems.reply(wrong)(scope, receive, answer)
        except Exception:
            _log.exception("request failed", extra={"request": number, "path": scope["path"]})
            if status:  # half of a reply is out
                raise
            wrong = ServiceError("The service has made a mistake. It is in its log.", status=500, code="internal")
            await problems.reply(wrong)(scope, receive, answer)
        finally:
            self.server.store.priority.active -= call.is_urgent
            seconds = time.perf_counter() - begun
            self.server.metrics.answered(call.route, status, seconds)
            about = {"request": number, "method": scope["method"], "path": scope["path"][:200], "status": status}
            about |= {"milliseconds": round(seconds * 1000, 3), "token": call.access and call.access.token}
            about |= {} if traced is None else {"trace": traced[1]}
            _log.log(self._level(call, about), "request", extra=about)
        return status

    def _level(self, call: Call, about: dict[str, Any]) -> int:
        """Return how serious a request is for who reads the log: an error if the database or its disk failed it."""
        if call.error is None or call.error.code not in _FAILURES or self.server.tail.stopping:
            return logging.INFO
        about["why"] = str(call.error)
        return logging.ERROR

    async def _reply(self, call: Call, scope: Connection, receive: Receive) -> Response:
        method, path = scope["method"], scope["path"]
        try:
            methods = self._find(call, path)
            if methods is None and not path.startswith("/v1/"):
                return await self._pages.get_response(self._pages.get_path(scope), scope)
            if methods is None:
                raise _nothing()
            if method not in methods:
                return problems.not_allowed(method, methods)
            endpoint = methods[method]
            if endpoint.scope in {Scope.DECIDE, Scope.FEEDBACK}:
                call.is_urgent = True
                self.server.store.priority.active += 1
            await self._admit(call, endpoint, scope)
            if endpoint.query is not None:
                call.query = _read_query(endpoint.query, scope["query_string"])
            if endpoint.takes == "file":
                call.body = await _read_body(scope, receive, call.headers, self._settings)
            elif endpoint.takes is not None:
                call.body = await _read(endpoint.takes, scope, receive, call, self._settings)
            reply = await _while_there(receive, endpoint, call)
        except ServiceError as error:
            call.error = error
            return problems.reply(error)
        except HTTPException as error:  # of the dashboard's files
            return (
                problems.not_allowed(method, ("GET", "HEAD"))
                if error.status_code == 405
                else problems.reply(_nothing())
            )
        return reply if isinstance(reply, Response) else Response(to_json(reply.content), reply.status, None, _JSON)

    async def _admit(self, call: Call, endpoint: Endpoint, scope: Connection) -> None:
        """Let a request in, or refuse it; where it has a valid token, its connection is spared from now on."""
        connection = _connection_of(scope)
        _check_room(connection, call.route)
        if endpoint.scope == "none":
            return
        await self._access_control.admit(call, endpoint, scope["client"][0] if scope["client"] else "")
        if connection is not None:
            connection.registry.authenticate(connection)

    def _find(self, call: Call, path: str) -> dict[str, Endpoint] | None:
        """Return the endpoints of a path by their methods; None if it has none."""
        route, place = self._routes, {}
        for part in path.split("/"):
            if part in route.parts:
                route = route.parts[part]
            elif route.named is not None and part:
                name, route = route.named
                place[name] = part
            else:
                return None
        if not route.methods:
            return None
        call.route, call.place, call.of = route.path, place, place.get("name", "")
        return route.methods


class _Route:
    """A node of the tree of paths: what may follow in a path, and the endpoints that it has if nothing does."""

    def __init__(self) -> None:
        self.path = ""
        self.parts: dict[str, _Route] = {}
        self.named: tuple[str, _Route] | None = None  #: the name of a part that may be anything, and what follows it
        self.methods: dict[str, Endpoint] = {}

    def add(self, endpoint: Endpoint) -> None:
        """Route requests to an endpoint."""
        route = self
        for part in endpoint.path.split("/"):
            if part.startswith("{"):
                route.named = route.named or (part[1:-1], _Route())
                route = route.named[1]
            else:
                route = route.parts.setdefault(part, _Route())
        route.path = endpoint.path
        route.methods[endpoint.method] = endpoint


def _nothing() -> ServiceError:
    return ServiceError("There is nothing here.", status=404, code="not_found")


async def _while_there(receive: Receive, endpoint: Endpoint, call: Call) -> Reply | Response:
    """Return what a handler replies; end it if its client leaves. What is being written is written all the same."""
    if call.is_urgent:
        return await endpoint.handle(call)
    handling = asyncio.ensure_future(endpoint.handle(call))
    leaving = asyncio.ensure_future(_until_left(receive))
    try:
        await asyncio.wait({handling, leaving}, return_when=asyncio.FIRST_COMPLETED)
        if not handling.done():
            handling.cancel()
            raise ServiceError("The client has left.", status=400, code="malformed")
        return await handling
    finally:
        leaving.cancel()


async def _until_left(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


def _check_room(connection: TimedConnection | None, route: str) -> None:
    """Refuse where too many connections are open; but /health, whose silence would get the process killed."""
    if connection is not None and route != "/health" and connection.registry.is_full_for(connection):
        text = "Too many connections are open. Send the request again later, and use one connection for several."
        raise ServiceError(text, status=503, code="busy", retry_after=2.0)


def _connection_of(scope: Connection) -> TimedConnection | None:
    found: TimedConnection | None = scope.get("state", {}).get("connection")
    return found


async def _read_body(scope: Connection, receive: Receive, headers: dict[bytes, bytes], settings: Settings) -> bytes:
    """Return the body of a request."""
    length = headers.get(b"content-length")
    if length == b"0":
        return b""
    if length is not None and int(length) > _LARGEST_DISCARDED:
        raise _too_large(settings.max_body)
    parts: list[bytes] = []
    size, more = 0, True
    connection = _connection_of(scope)
    deadline = None if connection is not None and connection.ended else settings.request_timeout
    try:
        async with asyncio.timeout(deadline):
            while more:
                message = await receive()
                if message["type"] == "http.disconnect":
                    raise ServiceError("The connection broke off.", status=400, code="malformed")
                part = message.get("body", b"")
                size += len(part)
                if size <= settings.max_body:
                    parts.append(part)
                elif size > _LARGEST_DISCARDED:
                    break
                more = message.get("more_body", False)
    except TimeoutError:
        raise ServiceError("The body came too slowly.", status=408, code="timeout") from None
    if size > settings.max_body:
        raise _too_large(settings.max_body)
    return b"".join(parts)


async def _read(kind: type[M], scope: Connection, receive: Receive, call: Call, settings: Settings) -> M:
    """Return what the body of a request says; an empty one says {}."""
    body = await _read_body(scope, receive, call.headers, settings)
    if body:
        _check_media_type(call.headers.get(b"content-type", b""))
    try:
        if len(body) < _LARGE:
            message = kind.model_validate_json(body or b"{}")
        else:  # others have their turns in between
            message = await asyncio.to_thread(kind.model_validate_json, body)
    except ValidationError as error:
        raise misread(error, "body") from None
    losses = message.__dict__.get("losses")  # which takes a tenth of the time where a message has none
    names = len(message.model_fields_set) + (len(losses) if isinstance(losses, dict) else 0)
    if body.count(b":") > names:  # which most bodies do not have, and reading them twice takes as long as once
        _check_names(body)
    return message


def _read_query(kind: type[M], query: bytes) -> M:
    """Return what the query of a request says."""
    try:
        return kind.model_validate(dict(parse_qsl(query.decode("latin-1"), keep_blank_values=True)))
    except ValidationError as error:
        raise misread(error, "query") from None


def _check_media_type(given: bytes) -> None:
    kind = given.decode("latin-1").partition(";")[0].strip().lower()
    if kind != "application/json":
        raise ServiceError(
            f"The body is JSON: send Content-Type: application/json, not {kind!r}.",
            status=415,
            code="unsupported_media_type",
            path="header.content-type",
            value=kind,
        )


def _check_names(body: bytes) -> None:
    """Refuse a name that stands twice in one object, of which pydantic would take the last; the body is JSON."""

    def pairs(found: list[tuple[str, Any]]) -> None:
        if len(dict(found)) < len(found):
            name = next(name for name, times in Counter(name for name, _ in found).items() if times > 1)
            raise invalid(f"{name[:60]!r} stands twice in one object. Say it once.", "body", name)

    json.loads(body, object_pairs_hook=pairs, parse_int=len, parse_float=len)  # not a digit is read twice


def _too_large(most: int) -> ServiceError:
    return ServiceError(f"A body has at most {most:,} bytes here.", status=413, code="too_large", path="body")
