"""The application: all addresses, what wraps them, and the dashboard."""

from __future__ import annotations

import asyncio
import itertools
import logging
import secrets
import time
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fastapi import APIRouter, FastAPI, Request
from starlette.exceptions import HTTPException
from starlette.responses import Response
from starlette.staticfiles import StaticFiles

from sidelong._version import __version__
from sidelong.errors import ServiceError
from sidelong.service.http import decisions, documents, evaluation, experiments, problems
from sidelong.service.http.decisions import answer
from sidelong.service.http.gate import GuardedRoute, from_http, guarded
from sidelong.service.http.limits import Limits
from sidelong.service.http.messages import Access, Health, Ready
from sidelong.service.http.problems import DOCUMENTED
from sidelong.service.server import Server
from sidelong.service.store.tokens import Scope

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from starlette.types import ASGIApp, Message, Receive, Send
    from starlette.types import Scope as Connection

    from sidelong.service.settings import Settings
    from sidelong.service.store.clock import Clock

__all__ = ["make_app"]

_log = logging.getLogger("sidelong.service")
_BOOT = secrets.token_hex(4)  # what the names of this process's requests begin with
_PAGE_POLICY = "default-src 'self'; img-src 'self' data:; frame-ancestors 'none'; base-uri 'none'; form-action 'none'"

router = APIRouter(route_class=GuardedRoute, responses=DOCUMENTED, tags=["server"])


def make_app(settings: Settings, clock: Clock | None = None) -> FastAPI:
    """Make the application; its service begins with it and ends with it."""

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        service = await asyncio.to_thread(Server, settings, clock)
        async with service:
            app.state.service = service
            app.state.limits = Limits(settings)
            yield

    app = FastAPI(
        title="sidelong",
        summary="Online decisions that learn from what they see on the side.",
        version=__version__,
        lifespan=lifespan,
        docs_url=None,  # their pages load scripts from elsewhere
        redoc_url=None,
        exception_handlers={HTTPException: _framework_error, 404: _framework_error, 405: _framework_error},
    )
    # flat, and the most frequent first: half the search
    for part in (decisions.router, router, experiments.router, evaluation.router):
        app.router.routes.extend(part.routes)
    app.mount("/", StaticFiles(directory=Path(__file__).parents[1] / "dashboard", html=True), name="dashboard")
    app.add_middleware(_Watched)
    documents.complete(app)
    return app


@router.get("/v1/access", response_model=Access, openapi_extra=guarded(None))
async def access(request: Request) -> Response:
    """Tell what this token may do, and do nothing else."""
    found = request.scope["sidelong.access"]
    open_ = request.app.state.service.tokens.open
    return answer({"token": found.token, "scopes": sorted(found.scopes), "open": open_})


@router.get("/health", response_model=Health)
async def health() -> Response:
    """Tell that the process is alive."""
    return answer({"status": "ok", "version": __version__})


@router.get("/ready", response_model=Ready)
async def ready(request: Request) -> Response:
    """Tell whether the database answers."""
    service: Server = request.app.state.service
    await service.look(service.store.names, 0, 1)
    failing = service.commits.failing
    content = {
        "status": "ok" if failing is None else "degraded",
        "database": service.database.name,
        "writes": "ok" if failing is None else str(failing),
    }
    return answer(content)


@router.get("/metrics", response_class=Response, openapi_extra=guarded(Scope.READ))
async def metrics(request: Request) -> Response:
    """Return numbers for Prometheus."""
    text = await asyncio.to_thread(request.app.state.service.metrics.text)
    return Response(text, media_type="text/plain; version=1.0.0; charset=utf-8")


async def _framework_error(_: Request, error: Any) -> Response:
    return problems.reply(from_http(error))


class _Watched:
    """Counts and logs every request, and turns a mistake of ours into a reply."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app
        self._numbers = itertools.count(1)

    async def __call__(self, scope: Connection, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        begun = time.perf_counter()
        request = f"{_BOOT}-{next(self._numbers)}"
        status = 0

        async def answer_(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                headers = [(b"x-request-id", request.encode()), (b"x-content-type-options", b"nosniff")]
                if not scope["path"].startswith("/v1/"):
                    headers.append((b"content-security-policy", _PAGE_POLICY.encode()))
                message["headers"] = [*message.get("headers", ()), *headers]
            await send(message)

        try:
            await self._app(scope, receive, answer_)
        except Exception:
            _log.exception("request failed", extra={"request": request, "path": scope["path"]})
            if status:  # half of a reply is out
                raise
            wrong = ServiceError("The service has made a mistake. It is in its log.", status=500, code="internal")
            await problems.reply(wrong)(scope, receive, answer_)
        finally:
            seconds = time.perf_counter() - begun
            route = getattr(scope.get("route"), "path", "unknown")
            scope["app"].state.service.metrics.answered(route, status, seconds)
            found = scope.get("sidelong.access")
            _log.info(
                "request",
                extra={
                    "request": request,
                    "method": scope["method"],
                    "path": scope["path"][:200],
                    "status": status,
                    "milliseconds": round(seconds * 1000, 3),
                    "token": found and found.token,
                },
            )
