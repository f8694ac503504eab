"""Endpoints that tell how the server itself is, and what a token may do."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from pydantic import BaseModel
from starlette.responses import Response

from sidelong._version import __version__
from sidelong.errors import ServiceError
from sidelong.service.http.endpoints import Endpoints, Reply
from sidelong.service.store.tokens import Scope

if TYPE_CHECKING:
    from sidelong.service.http.endpoints import Call

endpoints = Endpoints()


class AccessReply(BaseModel):
    """What a token may do."""

    token: str | None  #: the name that the log and `sidelong token list` have for it; null if none was sent
    scopes: list[Literal["decide", "feedback", "read", "admin"]]  #: what it may do; admin includes the others
    open: bool  #: whether no token was ever made, so that none is needed
    experiment: str | None  #: the only one that it is for, if it is for one


class Health(BaseModel):
    """The process is alive."""

    status: Literal["ok"]  #: always ok: a dead process answers nothing
    version: str  #: of the program


class ExperimentCounts(BaseModel):
    """How many experiments are in which state."""

    live: int  #: in memory
    loading: int  #: being replayed: their decisions come later, or 503 `busy`
    refused: int  #: cannot go on: the list of experiments says why


class Ready(BaseModel):
    """The database answers."""

    status: Literal["ok", "degraded"]  #: degraded if writes fail, or some experiments are being replayed or refused
    database: Literal["sqlite", "postgresql"]  #: where everything is kept
    writes: str  #: ok, or why the last one failed
    experiments: ExperimentCounts  #: how many are in which state


@endpoints.add("GET", "/v1/access", "any", {200: AccessReply}, single=True)
async def show_access(call: Call) -> Reply:
    """Tell what this token may do, and do nothing else."""
    access = call.access
    assert access is not None  # noqa: S101  # the endpoint demands a token
    server, only = call.server, access.experiment
    found = None if only is None else await server.look(server.store.listed, only)
    if found == []:
        text = "The experiment that this token is for was deleted."
        raise ServiceError(text, status=404, code="not_found", path="header.authorization")
    single = found[0].name if found else None
    about = {"token": access.token, "scopes": sorted(access.scopes), "open": server.tokens.open, "experiment": single}
    return Reply(about)


@endpoints.add("GET", "/health", "none", {200: Health})
async def health(_: Call) -> Reply:
    """Tell that the process is alive."""
    return Reply({"status": "ok", "version": __version__})


@endpoints.add("GET", "/ready", "none", {200: Ready})
async def ready(call: Call) -> Reply:
    """Tell whether the database answers, and whether all experiments were loaded since the start."""
    server = call.server
    states = await server.states()
    if not server.is_loaded:
        text = f"{states['loading']:,} of {sum(states.values()):,} experiments are still being loaded."
        raise ServiceError(text, status=503, code="busy", retry_after=2.0)
    failing = server.commits.failing
    fine = failing is None and not states["loading"] and not states["refused"]
    return Reply(
        {
            "status": "ok" if fine else "degraded",
            "database": server.database.name,
            "writes": "ok" if failing is None else str(failing),
            "experiments": states,
        }
    )


@endpoints.add("GET", "/metrics", Scope.READ, {200: "text/plain"})
async def metrics(call: Call) -> Response:
    """Return numbers for Prometheus."""
    text = await call.server.reads.run(call.server.metrics.text)
    return Response(text, media_type="text/plain; version=1.0.0; charset=utf-8")
