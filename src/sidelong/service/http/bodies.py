"""Reading a request: its body, if it is small enough and comes in time, and its query, into what the table names."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import parse_qsl

from pydantic import BaseModel, ValidationError

from sidelong.errors import ServiceError
from sidelong.service.http.problems import invalid, misread

if TYPE_CHECKING:
    from starlette.types import Receive

    from sidelong.service.settings import Settings

__all__ = ["read", "read_body", "read_query"]

M = TypeVar("M", bound=BaseModel)
#: A body that is too large is read up to here and thrown away: many clients hear the reply only when all is sent.
_HOPELESS = 2**25


async def read_body(receive: Receive, headers: dict[bytes, bytes], settings: Settings) -> bytes:
    """Return the body of a request."""
    length = headers.get(b"content-length")
    if length == b"0":
        return b""
    if length is not None and int(length) > _HOPELESS:
        raise _too_large(settings.max_body)
    parts: list[bytes] = []
    size, more = 0, True
    try:
        async with asyncio.timeout(settings.request_timeout):
            while more:
                message = await receive()
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


async def read(kind: type[M], receive: Receive, headers: dict[bytes, bytes], settings: Settings) -> M:
    """Return what the body of a request says; an empty one says {}."""
    body = await read_body(receive, headers, settings)
    if body:
        _check_media_type(headers.get(b"content-type", b""))
    try:
        message = kind.model_validate_json(body or b"{}")
    except ValidationError as error:
        raise misread(error, "body") from None
    losses = getattr(message, "losses", None)
    names = len(message.model_fields_set) + (len(losses) if isinstance(losses, dict) else 0)
    if body.count(b":") > names:  # which most bodies do not have, and reading them twice takes as long as once
        _check_names(body)
    return message


def read_query(kind: type[M], query: bytes) -> M:
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
