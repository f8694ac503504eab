"""What every request passes before it is understood: who sends it, how fast, how much, how slowly."""

from __future__ import annotations

import asyncio
import inspect
import json
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, TypeVar

from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from pydantic import BaseModel, ValidationError
from pydantic_core import from_json
from starlette.exceptions import HTTPException
from starlette.requests import Request

from sidelong.errors import ServiceError
from sidelong.service import problems
from sidelong.service.tokens import Scope

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from starlette.responses import Response

    from sidelong.service.service import Service

__all__ = ["GuardedRoute", "from_http", "guarded", "read", "read_body"]

M = TypeVar("M", bound=BaseModel)
_SCOPE = "x-sidelong-scope"
_LOCAL = ("localhost", "127.0.0.1", "[::1]")


def guarded(scope: Scope | None, **more: Any) -> dict[str, Any]:
    """Return what to give to a route so that it needs a scope; with None, any token will do."""
    return {_SCOPE: scope or "any", **more}


class LimitedRequest(Request):
    """A request whose body may not be too large, nor come too slowly, nor be nested too deeply."""

    async def body(self) -> bytes:
        """Return the body, if it is small enough and comes in time."""
        if not hasattr(self, "_body"):
            self._body = await read_body(self)
        return self._body

    async def json(self) -> Any:
        """Return what the body says. Python's own reader fails on deep nesting; this one refuses it."""
        try:
            return from_json(await self.body())
        except ValueError as error:
            raise json.JSONDecodeError(str(error), "", 0) from None


async def read_body(request: Request) -> bytes:
    """Return the body of a request, if it is small enough and comes in time."""
    settings = request.app.state.service.settings
    length = dict(request.scope["headers"]).get(b"content-length")
    if length == b"0":
        return b""
    if length is not None and int(length) > settings.max_body:
        raise _too_large(settings.max_body)
    body = b""
    try:
        async with asyncio.timeout(settings.request_timeout):
            more = True
            while more:
                message = await request.receive()
                if message["type"] == "http.disconnect":
                    raise ServiceError("The connection broke off.", status=400, code="malformed")
                body += message.get("body", b"")
                more = message.get("more_body", False)
                if len(body) > settings.max_body:
                    raise _too_large(settings.max_body)
    except TimeoutError:
        raise ServiceError("The body came too slowly.", status=408, code="timeout") from None
    return body


async def read(request: Request, kind: type[M]) -> M | None:
    """Return what the body of a request says, or None if it is empty."""
    body = await read_body(request)
    if not body:
        return None
    _check_media_type(dict(request.scope["headers"]).get(b"content-type", b""))
    try:
        return kind.model_validate_json(body)
    except ValidationError as error:
        raise problems.invalid(error.errors(), "body") from None


class GuardedRoute(APIRoute):
    """A route that lets nothing pass which its scope and the limits do not allow."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """Return the handler, with a guard before it.

        A handler that takes nothing but the request is called directly: the search for what else it may need takes
        longer than a decision.
        """
        plain = list(inspect.signature(self.endpoint).parameters) == ["request"]
        handle = self.endpoint if plain else super().get_route_handler()
        named = (self.openapi_extra or {}).get(_SCOPE)
        scope = Scope(named) if named in set(Scope) else None
        takes_json = self.body_field is not None

        async def guard(request: Request) -> Response:
            service: Service = request.app.state.service
            try:
                if named is not None:
                    await _admit(service, request, scope)
                if plain:
                    return await handle(request)
                if takes_json:
                    _check_media_type(dict(request.scope["headers"]).get(b"content-type", b""))
                return await handle(LimitedRequest(request.scope, request.receive))
            except ServiceError as error:
                return problems.reply(error)
            except RequestValidationError as error:
                return problems.reply(problems.invalid(error.errors()))
            except HTTPException as error:
                return problems.reply(from_http(error))

        return guard


def from_http(error: HTTPException) -> ServiceError:
    """Return an error of the framework as one of ours."""
    codes = {400: "malformed", 404: "not_found", 405: "method_not_allowed"}
    detail = error.detail if error.detail != HTTPStatus(error.status_code).phrase else "There is nothing here."
    return ServiceError(detail, status=error.status_code, code=codes.get(error.status_code, "internal"))


async def _admit(service: Service, request: Request, scope: Scope | None) -> None:
    tokens = service.tokens
    if not tokens.is_fresh():
        await asyncio.to_thread(tokens.refresh)
    headers = dict(request.scope["headers"])
    host = headers.get(b"host", b"").decode("latin-1")
    if tokens.open:
        _check_local(host, service.settings.host)
    if b"origin" in headers:
        _check_origin(headers[b"origin"].decode("latin-1"), host)
    access = tokens.check(headers.get(b"authorization", b"").decode("latin-1"))
    request.scope["sidelong.access"] = access
    if scope is not None and not access.allows(scope):
        raise ServiceError(
            f"This token allows {', '.join(sorted(access.scopes))}, and this needs {scope}.",
            status=403,
            code="forbidden",
            path="header.authorization",
        )
    sender = access.token or (request.client.host if request.client else "")
    service.limits.take(sender, scope or Scope.READ)


def _check_local(host: str, bound: str) -> None:
    """Refuse a name that only looks like this machine: a web page may point its own name at 127.0.0.1."""
    name = host.rpartition(":")[0] if host.rpartition(":")[2].isdigit() else host
    if name.lower() not in {*_LOCAL, bound}:
        raise ServiceError(
            "Without tokens the service answers only to localhost. Make one with: sidelong token create",
            status=403,
            code="forbidden",
            path="header.host",
            value=host,
        )


def _check_origin(origin: str, host: str) -> None:
    """Refuse what a page of another site sends from someone's browser."""
    if origin.partition("://")[2] != host:
        raise ServiceError(
            "Pages of other sites may not use the service.",
            status=403,
            code="forbidden",
            path="header.origin",
            value=origin,
        )


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


def _too_large(most: int) -> ServiceError:
    return ServiceError(f"A body has at most {most:,} bytes here.", status=413, code="too_large", path="body")
