"""What every request passes before it is understood: who sends it, how fast, how much, how slowly."""

from __future__ import annotations

import asyncio
import inspect
import json
from collections import Counter
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, TypeVar

from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from pydantic import BaseModel, ValidationError
from starlette.exceptions import HTTPException

from sidelong.errors import ServiceError
from sidelong.service.http import problems
from sidelong.service.store.tokens import Scope

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from starlette.requests import Request
    from starlette.responses import Response

    from sidelong.service.server import Server

__all__ = ["GuardedRoute", "from_http", "guarded", "headers_of", "read", "read_body"]

M = TypeVar("M", bound=BaseModel)
_SCOPE = "x-sidelong-scope"
#: A body that is too large is read up to here and thrown away: many clients hear the reply only when all is sent.
_HOPELESS = 2**25
_LOCAL = ("localhost", "127.0.0.1", "[::1]")


def guarded(scope: Scope | None, **more: Any) -> dict[str, Any]:
    """Return what to give to a route so that it needs a scope; with None, any token will do."""
    return {_SCOPE: scope or "any", **more}


def headers_of(request: Request) -> dict[bytes, bytes]:
    """Return the headers of a request, by their names in small letters."""
    found: dict[bytes, bytes] | None = request.scope.get("sidelong.headers")
    if found is None:
        found = request.scope["sidelong.headers"] = dict(request.scope["headers"])
    return found


async def read_body(request: Request) -> bytes:
    """Return the body of a request, if it is small enough and comes in time."""
    settings = request.app.state.service.settings
    length = headers_of(request).get(b"content-length")
    if length == b"0":
        return b""
    if length is not None and int(length) > _HOPELESS:
        raise _too_large(settings.max_body)
    parts: list[bytes] = []
    size, more = 0, True
    try:
        async with asyncio.timeout(settings.request_timeout):
            while more:
                message = await request.receive()
                if message["type"] == "http.disconnect":
                    raise ServiceError("The connection broke off.", status=400, code="malformed")
                part = message.get("body", b"")
                size += len(part)
                if size <= settings.max_body:
                    parts.append(part)
                elif size > _HOPELESS:
                    break
                more = message.get("more_body", False)
    except TimeoutError:
        raise ServiceError("The body came too slowly.", status=408, code="timeout") from None
    if size > settings.max_body:
        raise _too_large(settings.max_body)
    return b"".join(parts)


async def read(request: Request, kind: type[M]) -> M:
    """Return what the body of a request says; an empty one says {}."""
    body = await read_body(request)
    if body:
        _check_media_type(headers_of(request).get(b"content-type", b""))
    try:
        message = kind.model_validate_json(body or b"{}")
    except ValidationError as error:
        raise problems.invalid(error.errors(), "body") from None
    losses = getattr(message, "losses", None)
    names = len(message.model_fields_set) + (len(losses) if isinstance(losses, dict) else 0)
    if body.count(b":") > names:  # which most bodies do not have, and reading them twice takes as long as once
        _check_names(body)
    return message


class GuardedRoute(APIRoute):
    """A route that lets nothing pass which its scope and the limits do not allow."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """Return the handler, with a guard before it.

        A handler that takes nothing but the request is called directly: the search for what else it may need takes
        longer than a decision. None lets FastAPI read its body, which it would do at any size and for any time.
        """
        assert self.body_field is None, f"{self.path} must use `read`."  # noqa: S101  # a mistake in this package
        plain = list(inspect.signature(self.endpoint).parameters) == ["request"]
        handle = self.endpoint if plain else super().get_route_handler()
        named = (self.openapi_extra or {}).get(_SCOPE)
        scope = Scope(named) if named in set(Scope) else None

        async def guard(request: Request) -> Response:
            service: Server = request.app.state.service
            try:
                if named is not None:
                    await _admit(service, request, scope)
                return await handle(request)
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


async def _admit(service: Server, request: Request, scope: Scope | None) -> None:
    tokens = service.tokens
    if not tokens.is_fresh():
        await service.look(tokens.refresh)
    headers = headers_of(request)
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
    request.app.state.limits.take(sender, scope or Scope.READ)


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


def _check_names(body: bytes) -> None:
    """Refuse a name that stands twice in one object, of which pydantic would take the last; the body is JSON."""

    def pairs(found: list[tuple[str, Any]]) -> None:
        if len(dict(found)) < len(found):
            name = next(name for name, times in Counter(name for name, _ in found).items() if times > 1)
            raise ServiceError(
                f"{name[:60]!r} stands twice in one object. Say it once.",
                status=422,
                code="invalid",
                path="body",
                value=name,
            )

    json.loads(body, object_pairs_hook=pairs, parse_int=len, parse_float=len)  # not a digit is read twice


def _too_large(most: int) -> ServiceError:
    return ServiceError(f"A body has at most {most:,} bytes here.", status=413, code="too_large", path="body")
