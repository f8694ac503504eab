"""Errors as replies: one shape for all of them (RFC 9457, application/problem+json)."""

from __future__ import annotations

import errno
import math
from contextlib import contextmanager
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel
from pydantic_core import to_json
from starlette.responses import Response

from sidelong.errors import ServiceError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from pydantic import ValidationError

_LONGEST = 200

#: Each status of an error, with its title and its codes. The titles of Python's `http` change from version to version.
PROBLEMS = {
    400: ("Bad Request", ("malformed",)),
    401: ("Unauthorized", ("unauthenticated",)),
    403: ("Forbidden", ("forbidden",)),
    404: ("Not Found", ("not_found",)),
    405: ("Method Not Allowed", ("method_not_allowed",)),
    408: ("Request Timeout", ("timeout",)),
    409: (
        "Conflict",
        (
            "exists",
            "conflict",
            "told",
            "cancelled",
            "key_reused",
            "full",
            "no_features",
            "fixed_arms",
            "over_ceiling",
            "stopped",
            "archived",
        ),
    ),
    410: ("Gone", ("expired", "cut")),
    413: ("Content Too Large", ("too_large",)),
    415: ("Unsupported Media Type", ("unsupported_media_type",)),
    422: ("Unprocessable Content", ("invalid",)),
    429: ("Too Many Requests", ("too_fast", "too_many_outstanding")),
    500: ("Internal Server Error", ("internal",)),
    503: ("Service Unavailable", ("busy", "unavailable", "refused")),
    507: ("Insufficient Storage", ("disk_full",)),
}


class Problem(BaseModel):
    """An error (RFC 9457, application/problem+json)."""

    type: str  #: a name for this sort of error
    title: str  #: of the status
    status: int  #: of the reply
    detail: str  #: what is wrong and what to do, for people
    code: str  #: by which programs tell errors apart
    path: str | None  #: where in the request that is; null if it is no value of it
    value: Any  #: what was received; only its beginning, as a string, if it is long


def reply(error: ServiceError) -> Response:
    """Return the reply that says what was wrong."""
    problem = {
        "type": f"urn:sidelong:error:{error.code}",
        "title": PROBLEMS[error.status][0],
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
    return Response(_json(problem), error.status, headers, "application/problem+json")


def not_allowed(method: str, allowed: Iterable[str]) -> Response:
    """Return the reply to a method that a path does not have."""
    listed = ", ".join(allowed)
    response = reply(
        ServiceError(f"{method} is not for this address; send {listed}.", status=405, code="method_not_allowed")
    )
    response.headers["Allow"] = listed
    return response


def invalid(text: str, path: str | None, value: object = None) -> ServiceError:
    """Return the error for a value that is wrong."""
    return ServiceError(text, status=422, code="invalid", path=path, value=value)


def misread(error: ValidationError, within: str) -> ServiceError:
    """Return what is wrong with a part of a request: the first of what pydantic has found."""
    first = error.errors()[0]
    if first["type"] == "json_invalid":
        text = f"The body is not JSON: {first['ctx']['error']}."
        return ServiceError(text, status=400, code="malformed", path="body")
    # The tags of the kinds of graphs, and of lists and dicts, are not part of what was sent.
    path = ".".join([within, *(str(part) for part in first["loc"] if "[" not in str(part))])
    if first["type"] == "missing":
        return invalid(f"{path} is missing.", path)
    given = _json(_shown(first["input"])).decode()
    return invalid(f"{path}: {first['msg']}; it is {given}.", path, first["input"])


@contextmanager
def for_temporary_files() -> Iterator[None]:
    """Say it as for the database's own disk, where the one for temporary files is full."""
    try:
        yield
    except OSError as error:
        if error.errno not in {errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.ENOENT}:  # the last: no folder will do
            raise
        text = f"No temporary file can be written: {error.strerror}. Send the request again later."
        raise ServiceError(text, status=507, code="disk_full", retry_after=5.0) from error


def _shown(value: Any) -> Any:
    """Return a value if it is JSON and short, or else the beginning of what it is in JSON, as a string."""
    if isinstance(value, str):
        text = value = value.encode("utf-8", "replace").decode()  # no half of a character
    else:
        text = _json(value).decode()
    return value if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."


def _json(value: Any) -> bytes:
    """Return JSON, in which NaN and Infinity are strings, and so is what JSON cannot hold."""
    return to_json(value, inf_nan_mode="strings", fallback=str)
