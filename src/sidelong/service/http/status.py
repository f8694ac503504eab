"""Addresses that tell how the server itself is, and what a token may do."""

from __future__ import annotations

from typing import TYPE_CHECKING

from starlette.responses import Response

from sidelong._version import __version__
from sidelong.errors import ServiceError
from sidelong.service.http.exchange import Reply

if TYPE_CHECKING:
    from sidelong.service.http.exchange import Call


async def show_access(call: Call) -> Reply:
    """Tell what this token may do, and do nothing else."""
    access = call.access
    assert access is not None  # noqa: S101  # the table demands a token
    server, only = call.server, access.experiment
    found = None if only is None else await server.look(server.store.listed, only)
    if found == []:
        text = "The experiment that this token is for was deleted."
        raise ServiceError(text, status=404, code="not_found", path="header.authorization")
    single = found[0].name if found else None
    about = {"token": access.token, "scopes": sorted(access.scopes), "open": server.tokens.open, "experiment": single}
    return Reply(about)


async def health(_: Call) -> Reply:
    """Tell that the process is alive."""
    return Reply({"status": "ok", "version": __version__})


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


async def metrics(call: Call) -> Response:
    """Return numbers for Prometheus."""
    text = await call.server.reads.run(call.server.metrics.text)
    return Response(text, media_type="text/plain; version=1.0.0; charset=utf-8")
