"""Addresses of experiments: make one, list them, look at one in every way."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Annotated, Literal

from fastapi import APIRouter, Header, Query, Request
from starlette.responses import Response, StreamingResponse

from sidelong.service.http import documents, export, live, views
from sidelong.service.http.decisions import answer, graph_of, waited
from sidelong.service.http.gate import GuardedRoute, guarded, read, read_body
from sidelong.service.http.graphs import read_upload
from sidelong.service.http.messages import (
    CreateExperiment,
    ExperimentList,
    ExperimentState,
    GraphDrawing,
    GraphSummary,
    Rates,
)
from sidelong.service.http.problems import DOCUMENTED
from sidelong.service.store import creation
from sidelong.service.store.tallies import MINUTES
from sidelong.service.store.tokens import Scope

if TYPE_CHECKING:
    from sidelong.service.server import Server

__all__ = ["router"]

router = APIRouter(prefix="/v1", route_class=GuardedRoute, responses=DOCUMENTED, tags=["experiments"])

_SUFFIXES = {"json": ".json", "edges": ".edges", "npz": ".npz"}
Offset = Annotated[int, Query(ge=0, lt=2**31)]


@router.post(
    "/experiments",
    status_code=201,
    response_model=ExperimentState,
    responses={200: {"model": ExperimentState, "description": "It exists, and is the same."}},
    openapi_extra=guarded(Scope.ADMIN, **documents.takes(CreateExperiment)),
)
async def create(request: Request) -> Response:
    """Make an experiment. The first one of a learner may take some seconds of compilation."""
    service: Server = request.app.state.service
    body = await read(request, CreateExperiment)
    graph = await graph_of(body.graph, service)
    spec = body.model_dump(include={"learner", "options", "seed", "expire_after", "description", "labels"})
    draft = await asyncio.to_thread(creation.draft, service.store, body.name, spec, graph)
    _, new = await waited(service, lambda: creation.create(service.store, draft))
    state = await asyncio.to_thread(service.store.view, body.name, lambda each, _: views.state(each))
    return answer(state, 201 if new else 200)


@router.get("/experiments", response_model=ExperimentList, openapi_extra=guarded(Scope.READ))
async def list_(request: Request, offset: Offset = 0, limit: Annotated[int, Query(ge=1, le=1000)] = 100) -> Response:
    """List the experiments, by name."""
    store = request.app.state.service.store
    return answer(await asyncio.to_thread(views.summaries, store, offset, limit))


@router.get("/experiments/{name}", response_model=ExperimentState, openapi_extra=guarded(Scope.READ))
async def look(
    name: str,
    request: Request,
    offset: Offset = 0,
    limit: Annotated[int, Query(ge=1, le=1000)] = 50,
    sort: Literal["arm", "probability", "mean", "plays"] = "arm",
    digest: bool = False,  # noqa: FBT001, FBT002  # takes longer than all the rest, and decisions wait for it
) -> Response:
    """Return all about an experiment."""
    store = request.app.state.service.store
    state = await asyncio.to_thread(
        store.view, name, lambda each, _: views.state(each, offset, limit, sort, digest=digest)
    )
    return answer(state)


@router.get("/experiments/{name}/graph", response_model=GraphDrawing, openapi_extra=guarded(Scope.READ))
async def graph(name: str, request: Request, limit: Annotated[int, Query(ge=1, le=500)] = 200) -> Response:
    """Return the graph, for drawing."""
    store = request.app.state.service.store
    return answer(await asyncio.to_thread(store.view, name, lambda each, _: views.drawing(each, limit)))


@router.get("/experiments/{name}/rates", response_model=Rates, openapi_extra=guarded(Scope.READ))
async def rates(name: str, request: Request, minutes: Annotated[int, Query(ge=1, le=MINUTES)] = 60) -> Response:
    """Return what happened in each of the last minutes."""
    service: Server = request.app.state.service
    now = service.clock.now().at
    return answer(await asyncio.to_thread(service.store.view, name, lambda each, _: views.rates(each, minutes, now)))


@router.get(
    "/experiments/{name}/events",
    response_class=StreamingResponse,
    responses={200: {"content": {"text/event-stream": {}}, "description": "Events, as they happen."}},
    openapi_extra=guarded(Scope.READ),
)
async def events(
    name: str, request: Request, last_event_id: Annotated[int | None, Header(ge=0, lt=2**62)] = None
) -> Response:
    """Stream what happens."""
    service: Server = request.app.state.service
    identity, head = await asyncio.to_thread(service.store.view, name, lambda each, _: (each.identity, each.head))
    after = head if last_event_id is None else last_event_id
    headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
    token = request.scope["sidelong.access"].token
    return StreamingResponse(
        live.stream(service, identity.id, after, token), headers=headers, media_type="text/event-stream"
    )


@router.get(
    "/experiments/{name}/log",
    response_class=Response,
    responses={200: {"content": {"application/vnd.apache.parquet": {}}, "description": "A Parquet file."}},
    openapi_extra=guarded(Scope.READ),
)
async def log(name: str, request: Request) -> Response:
    """Return all decisions, as Parquet with the column names of the Open Bandit Pipeline."""
    service: Server = request.app.state.service
    return await asyncio.get_running_loop().run_in_executor(service.exports, export.reply, service.store, name)


@router.post(
    "/graphs",
    status_code=201,
    response_model=GraphSummary,
    responses={200: {"model": GraphSummary, "description": "It is known."}},
    openapi_extra=guarded(
        Scope.ADMIN,
        requestBody={"required": True, "content": {"application/octet-stream": {"schema": {"type": "string"}}}},
    ),
)
async def upload(request: Request, format: Literal["json", "edges", "npz"] = "json") -> Response:  # noqa: A002
    """Keep a graph file, for experiments and decisions that name it by its id."""
    service: Server = request.app.state.service
    data = await read_body(request)
    made = await asyncio.to_thread(read_upload, data, _SUFFIXES[format], service.settings)
    known, new = await waited(service, lambda: creation.keep_graph(service.store, made))
    return answer(views.graph_summary(known.id, known.graph), 201 if new else 200)
