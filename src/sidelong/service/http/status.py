"""Addresses that tell how the server itself is, and what a token may do."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from starlette.responses import Response

from sidelong._version import __version__
from sidelong.service.http.exchange import Reply

if TYPE_CHECKING:
    from sidelong.service.http.exchange import Call


async def show_access(call: Call) -> Reply:
    """Tell what this token may do, and do nothing else."""
    access = call.access
    assert access is not None  # noqa: S101  # the table demands a token
    return Reply({"token": access.token, "scopes": sorted(access.scopes), "open": call.server.tokens.open})


async def health(_: Call) -> Reply:
    """Tell that the process is alive."""
    return Reply({"status": "ok", "version": __version__})


async def ready(call: Call) -> Reply:
    """Tell whether the database answers."""
    server = call.server
    await server.look(server.store.names, 0, 1)
    failing = server.commits.failing
    status, writes = ("ok", "ok") if failing is None else ("degraded", str(failing))
    return Reply({"status": status, "database": server.database.name, "writes": writes})


async def metrics(call: Call) -> Response:
    """Return numbers for Prometheus."""
    text = await asyncio.to_thread(call.server.metrics.text)
    return Response(text, media_type="text/plain; version=1.0.0; charset=utf-8")
