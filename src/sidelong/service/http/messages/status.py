"""What the server says of itself, and of what went wrong."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel


class Problem(BaseModel):
    """An error (RFC 9457, application/problem+json)."""

    type: str
    title: str
    status: int
    detail: str
    code: str
    path: str | None
    value: Any  #: what was received; only its beginning, as a string, if it is long


class AccessReply(BaseModel):
    """What a token may do."""

    token: str | None
    scopes: list[Literal["decide", "feedback", "read", "admin"]]
    open: bool
    experiment: str | None  #: the only one that it is for, if it is for one


class Health(BaseModel):
    """The process is alive."""

    status: Literal["ok"]
    version: str


class ExperimentCounts(BaseModel):
    """How many experiments are in which state."""

    live: int  #: in memory
    loading: int  #: being replayed: their decisions come later, or 503 `busy`
    refused: int  #: cannot go on: the list of experiments says why


class Ready(BaseModel):
    """The database answers."""

    status: Literal["ok", "degraded"]
    database: Literal["sqlite", "postgresql"]
    writes: str
    experiments: ExperimentCounts
