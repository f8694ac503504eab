"""Errors as replies: one shape for all of them (RFC 9457, application/problem+json)."""

from __future__ import annotations

import errno
import math
from contextlib import contextmanager
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

from pydantic_core import to_json
from starlette.responses import Response

from sidelong.errors import ServiceError
from sidelong.service.http.messages import Problem

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

__all__ = ["DOCUMENTED", "for_temporary_files", "invalid", "reply"]

_LONGEST = 200

#: For the OpenAPI document: the errors that any request may get.
DOCUMENTED: dict[int | str, dict[str, Any]] = {
    status: {
        "description": HTTPStatus(status).phrase,
        "content": {"application/problem+json": {"schema": {"$ref": "#/components/schemas/Problem"}}},
        "model": Problem,
    }
    for status in (400, 401, 403, 404, 405, 408, 409, 410, 413, 415, 422, 429, 500, 503, 507)
}


def reply(error: ServiceError) -> Response:
    """Return the reply that says what was wrong."""
    phrase = HTTPStatus(error.status).phrase
    problem = {
        "type": f"urn:sidelong:error:{error.code}",
        "title": phrase,
        "status": error.status,
        "detail": str(error),
        "code": error.code,
        "path": error.path,
        "value": _shown(error.value),
    }
    headers = {}
    if error.retry_after is not None:
        headers["Retry-After"] = str(max(1, math.ceil(error.retry_after)))
    if error.status == HTTPStatus.UNAUTHORIZED:
        headers["WWW-Authenticate"] = "Bearer"
    return Response(to_json(problem), error.status, headers, "application/problem+json")


def invalid(errors: Sequence[Any], within: str = "") -> ServiceError:
    """Return what is wrong with a request: the first of what pydantic has found, `within` a part of it."""
    first = errors[0]
    if first["type"] == "json_invalid":
        return ServiceError(
            f"The body is not JSON: {first.get('ctx', {}).get('error', first['msg'])}.",
            status=400,
            code="malformed",
            path="body",
        )
    # The tags of the kinds of graphs, and of lists and dicts, are not part of what was sent.
    path = ".".join([within] * bool(within) + [str(part) for part in first["loc"] if "[" not in str(part)])
    given = _shown(first["input"])
    return ServiceError(
        f"{path}: {first['msg']}; it is {given!r}." if first["type"] != "missing" else f"{path} is missing.",
        status=422,
        code="invalid",
        path=path,
        value=None if first["type"] == "missing" else first["input"],
    )


@contextmanager
def for_temporary_files() -> Iterator[None]:
    """Say it as for the database's own disk, where the one for temporary files is full."""
    try:
        yield
    except OSError as error:
        if error.errno not in {errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.ENOENT}:  # the last: no folder will do
            raise
        raise ServiceError(
            f"No temporary file can be written: {error.strerror}. Send the request again later.",
            status=507,
            code="disk_full",
            retry_after=5.0,
        ) from error


def _shown(value: Any) -> Any:
    """Return what JSON can hold of a value, and not much of it."""
    if isinstance(value, bool | int | None):
        return value if not isinstance(value, int) or abs(value) < 2**63 else str(value)[:_LONGEST]
    if isinstance(value, float):
        return value if math.isfinite(value) else {math.inf: "Infinity", -math.inf: "-Infinity"}.get(value, "NaN")
    text = value if isinstance(value, str) else repr(value)[:_LONGEST]
    text = text.encode("utf-8", "replace").decode()
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."
