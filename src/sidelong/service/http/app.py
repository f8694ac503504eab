"""The application: what happens to a request, from the server below to the reply."""

from __future__ import annotations

import asyncio
import itertools
import logging
import re
import secrets
import time
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from pydantic_core import to_json
from starlette.exceptions import HTTPException
from starlette.responses import Response
from starlette.routing import Router
from starlette.staticfiles import StaticFiles

from sidelong.errors import ServiceError
from sidelong.service.http import bodies, problems
from sidelong.service.http.addresses import ADDRESSES
from sidelong.service.http.exchange import Call
from sidelong.service.http.gate import Gate
from sidelong.service.http.problems import PROBLEMS
from sidelong.service.server import Server

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from starlette.types import Message, Receive, Send
    from starlette.types import Scope as Connection

    from sidelong.service.http.addresses import Address
    from sidelong.service.settings import Settings
    from sidelong.service.store.clock import Clock

__all__ = ["Application"]

_log = logging.getLogger("sidelong.service")
_BOOT = secrets.token_hex(4)  # what the names of this process's requests begin with
_JSON = "application/json"
_PAGE_POLICY = b"default-src 'self'; img-src 'self' data:; frame-ancestors 'none'; base-uri 'none'; form-action 'none'"


class Application:
    """All addresses, and the dashboard, as a server calls them (ASGI). Its server begins and ends with it."""

    server: Server
    _gate: Gate

    def __init__(self, settings: Settings, clock: Clock | None = None) -> None:
        self._settings = settings
        self._clock = clock
        self._numbers = itertools.count(1)
        self._pages = StaticFiles(directory=Path(__file__).parents[1] / "dashboard", html=True)
        by_path = {address.path: {} for address in ADDRESSES}  # type: dict[str, dict[str, Address]]
        for address in ADDRESSES:
            by_path[address.path][address.method] = address
        # In the order of the table, where the most frequent ones come first.
        self._routes = [
            (path, re.compile(re.sub(r"\\\{(\w+)\\\}", r"(?P<\1>[^/]+)", re.escape(path))), methods)
            for path, methods in by_path.items()
        ]

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Open the server, and close it at the end."""
        async with await asyncio.to_thread(Server, self._settings, self._clock) as self.server:
            self._gate = Gate(self.server)
            yield

    async def __call__(self, scope: Connection, receive: Receive, send: Send) -> None:
        """Answer a request, count it and log it; a mistake of ours becomes a reply."""
        if scope["type"] == "lifespan":
            await Router(lifespan=lambda _: self.running()).lifespan(scope, receive, send)
            return
        begun = time.perf_counter()
        number, status = f"{_BOOT}-{next(self._numbers)}", 0
        call = Call(self.server, dict(scope["headers"]))

        async def answer(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                headers = [(b"x-request-id", number.encode()), (b"x-content-type-options", b"nosniff")]
                if not scope["path"].startswith("/v1/"):
                    headers.append((b"content-security-policy", _PAGE_POLICY))
                message["headers"] = [*message.get("headers", ()), *headers]
            await send(message)

        try:
            reply = await self._reply(call, scope, receive)
            await reply(scope, receive, answer)
        except Exception:
            _log.exception("request failed", extra={"request": number, "path": scope["path"]})
            if status:  # half of a reply is out
                raise
            wrong = ServiceError("The service has made a mistake. It is in its log.", status=500, code="internal")
            await problems.reply(wrong)(scope, receive, answer)
        finally:
            seconds = time.perf_counter() - begun
            self.server.metrics.answered(call.route, status, seconds)
            about = {"request": number, "method": scope["method"], "path": scope["path"][:200], "status": status}
            about |= {"milliseconds": round(seconds * 1000, 3), "token": call.access and call.access.token}
            _log.info("request", extra=about)

    async def _reply(self, call: Call, scope: Connection, receive: Receive) -> Response:
        try:
            address = self._find(call, scope["method"], scope["path"])
            if address is None:
                return await self._pages.get_response(self._pages.get_path(scope), scope)
            if address.scope != "none":
                client = scope["client"][0] if scope["client"] else ""
                await self._gate.admit(call, address.scope, client)
            if address.query is not None:
                call.query = bodies.read_query(address.query, scope["query_string"])
            if address.takes == "file":
                call.body = await bodies.read_body(receive, call.headers, self._settings)
            elif address.takes is not None:
                call.body = await bodies.read(address.takes, receive, call.headers, self._settings)
            reply = await address.handle(call)
        except ServiceError as error:
            return problems.reply(error)
        except HTTPException as error:  # of the dashboard's files
            return problems.reply(_nothing(405 if error.status_code == 405 else 404))
        return reply if isinstance(reply, Response) else Response(to_json(reply.content), reply.status, None, _JSON)

    def _find(self, call: Call, method: str, path: str) -> Address | None:
        """Return the address of a request; None if it is not in the table."""
        for route, pattern, methods in self._routes:
            found = pattern.fullmatch(path)
            if found is not None:
                call.route, call.place = route, found.groupdict()
                if method not in methods:
                    raise _nothing(405)
                return methods[method]
        return None


def _nothing(status: int) -> ServiceError:
    code = PROBLEMS[status][1][0]
    return ServiceError("There is nothing here.", status=status, code=code)
