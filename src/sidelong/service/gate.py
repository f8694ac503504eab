"""What every request passes before it is understood: who sends it, how fast, how much, how slowly."""

from __future__ import annotations

import asyncio
import json
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from pydantic_core import from_json
from starlette.exceptions import HTTPException
from starlette.requests import Request

from sidelong.errors import ServiceError
from sidelong.service import problems
from sidelong.service.tokens import Scope

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Coroutine

    from starlette.responses import Response

    from sidelong.service.service import Service

__all__ = ["GuardedRoute", "LimitedRequest", "guarded"]

_SCOPE = "x-sidelong-scope"
_LOCAL = ("localhost", "127.0.0.1", "[::1]")


def guarded(scope: Scope | None, **more: Any) -> dict[str, Any]:
    """Return what to give to a route so that it needs a scope; with None, any token will do."""
    return {_SCOPE: scope or "any", **more}


class LimitedRequest(Request):
    """A request whose body may not be too large, nor come too slowly, nor be nested too deeply."""

    async def stream(self) -> AsyncGenerator[bytes, None]:
        """Yield the body, as long as there is not too much of it."""
        most = self.app.state.service.settings.max_body
        if int(self.headers.get("content-length") or 0) > most:
            raise _too_large(most)
        size = 0
        async for chunk in super().stream():
            size += len(chunk)
            if size > most:
                raise _too_large(most)
            yield chunk

    async def body(self) -> bytes:
        """Return the body, if it comes in time."""
        try:
            async with asyncio.timeout(self.app.state.service.settings.request_timeout):
                return await super().body()
        except TimeoutError:
            raise ServiceError("The body came too slowly.", status=408, code="timeout") from None

    async def json(self) -> Any:
        """Return what the body says. Python's own reader fails on deep nesting; this one refuses it."""
        try:
            return from_json(await self.body())
        except ValueError as error:
            raise json.JSONDecodeError(str(error), "", 0) from None


class GuardedRoute(APIRoute):
    """A route that lets nothing pass which its scope and the limits do not allow."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """Return the handler, with a guard before it."""
        handle = super().get_route_handler()
        named = (self.openapi_extra or {}).get(_SCOPE)
        scope = Scope(named) if named in set(Scope) else None
        takes_json = self.body_field is not None

        async def guard(request: Request) -> Response:
            service: Service = request.app.state.service
            try:
                if named is not None:
                    await _admit(service, request, scope)
                if takes_json:
                    _check_media_type(request)
                return await handle(LimitedRequest(request.scope, request.receive))
            except ServiceError as error:
                return problems.reply(error)
            except RequestValidationError as error:
                return problems.reply(problems.invalid(error))
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
    headers = request.headers
    if tokens.open:
        _check_local(headers.get("host", ""), service.settings.host)
    _check_origin(headers.get("origin"), headers.get("host", ""))
    access = tokens.check(headers.get("authorization"))
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


def _check_origin(origin: str | None, host: str) -> None:
    """Refuse what a page of another site sends from someone's browser."""
    if origin is not None and origin.partition("://")[2] != host:
        raise ServiceError(
            "Pages of other sites may not use the service.",
            status=403,
            code="forbidden",
            path="header.origin",
            value=origin,
        )


def _check_media_type(request: Request) -> None:
    length = request.headers.get("content-length")
    empty = length == "0" if length is not None else "transfer-encoding" not in request.headers
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if not empty and kind != "application/json":
        raise ServiceError(
            f"The body is JSON: send Content-Type: application/json, not {kind!r}.",
            status=415,
            code="unsupported_media_type",
            path="header.content-type",
            value=kind,
        )


def _too_large(most: int) -> ServiceError:
    return ServiceError(f"A body has at most {most:,} bytes here.", status=413, code="too_large", path="body")
