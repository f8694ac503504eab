"""Endpoints of experiments: make one, list them, look at one in every way."""

from __future__ import annotations

import functools
import json
import re
from typing import TYPE_CHECKING

from starlette.responses import Response, StreamingResponse

from sidelong.service.http import export, views
from sidelong.service.http.decisions import context_of
from sidelong.service.http.endpoints import Endpoints, Reply
from sidelong.service.http.graphs import GraphDrawing, GraphSummary, UploadQuery, graph_of, read_upload
from sidelong.service.http.messages.experiments import (
    ChangeExperiment,
    ChangeList,
    CloneExperiment,
    CreateExperiment,
    DeletedExperiment,
    DeleteQuery,
    DrawingQuery,
    ExperimentList,
    ExperimentState,
    ListQuery,
    PredictionRequest,
    Predictions,
    Rates,
    RatesQuery,
    Sequence,
    StateQuery,
)
from sidelong.service.http.problems import invalid
from sidelong.service.store import creation
from sidelong.service.store.lifecycle_commands import Change, Delete
from sidelong.service.store.tokens import Scope

if TYPE_CHECKING:
    from sidelong.service.http.endpoints import Call

endpoints = Endpoints()
_MADE = {201: ExperimentState, 200: ExperimentState}
_PATIENCE = 1.0  # seconds that the list waits for experiments to come into memory


@endpoints.add("POST", "/v1/experiments", Scope.ADMIN, _MADE, takes=CreateExperiment)
async def create_experiment(call: Call) -> Reply:
    """Make an experiment. The first one of a learner may take some seconds of compilation."""
    server = call.server
    body: CreateExperiment = call.body
    graph = await graph_of(body.graph, call)
    log = None if body.log is None else body.log.model_dump(exclude_none=True)
    draft = await server.builds.run(creation.draft, server.store, body.name, body, graph, log)
    by = call.access and call.access.name
    _, new = await server.commits.written(lambda: creation.create(server.store, draft, by))
    return Reply(await server.view(body.name, views.state), 201 if new else 200)


@endpoints.add("POST", "/v1/experiments/{name}/clone", Scope.ADMIN, _MADE, takes=CloneExperiment, creates=True)
async def clone_experiment(call: Call) -> Reply:
    """Make an experiment like another, with or without what that has learned. It begins with round 1, and runs."""
    server = call.server
    body: CloneExperiment = call.body
    wanted = {part: getattr(body, part) for part in ("seed", "description", "holdout") if part in body.model_fields_set}
    make = functools.partial(creation.clone, learned=body.learned)
    draft = await server.builds.run(make, server.store, call.of, body.name, wanted)
    by = call.access and call.access.name
    _, new = await server.commits.written(lambda: creation.create(server.store, draft, by))
    return Reply(await server.view(body.name, views.state), 201 if new else 200)


@endpoints.add("GET", "/v1/experiments/{name}/agent", Scope.READ, {200: "application/octet-stream"})
async def download_agent(call: Call) -> Response:
    """Return the agent as it stands, as a file that `Agent.load` reads."""
    data = await call.server.view(call.of, views.agent_file)
    headers = {"Content-Disposition": f'attachment; filename="{call.place["name"]}.sidelong"'}
    return Response(data, headers=headers, media_type="application/octet-stream")


@endpoints.add("GET", "/v1/experiments/{name}/changes", Scope.READ, {200: ChangeList})
async def list_changes(call: Call) -> Reply:
    """Return who made an experiment, and who changed what."""
    return Reply(await call.server.reads.run(views.changes, call.server.store, call.of))


@endpoints.add("PATCH", "/v1/experiments/{name}", Scope.ADMIN, {200: ExperimentState}, takes=ChangeExperiment)
async def change_experiment(call: Call) -> Reply:
    """Freeze, stop, archive, bring back, rename or describe an experiment. What is so already is no change."""
    server, name = call.server, call.of
    body: ChangeExperiment = call.body
    wanted = body.model_dump(include=body.model_fields_set)
    for part in ("state", "name", "description"):
        if part in wanted and wanted[part] is None:
            raise invalid(f"body.{part} cannot be null. Leave it out if it is to stay.", f"body.{part}")
    await server.commits.written(Change(name, wanted, call.access and call.access.name))
    now = wanted.get("name", name)
    return Reply(await server.view(now, views.state))


@endpoints.add("DELETE", "/v1/experiments/{name}", Scope.ADMIN, {200: DeletedExperiment}, query=DeleteQuery)
async def delete_experiment(call: Call) -> Reply:
    """Delete an experiment with all of its data; its name must be repeated. Nothing brings it back."""
    if call.query.name != call.place["name"]:
        raise invalid("To delete an experiment, repeat its name: ?name=...", "query.name", call.query.name)
    gone = await call.server.commits.written(Delete(call.of, call.access and call.access.name))
    return Reply(views.deleted_experiment(gone))


@endpoints.add("GET", "/v1/experiments", Scope.READ, {200: ExperimentList}, query=ListQuery, single=True)
async def list_experiments(call: Call) -> Reply:
    """List the experiments, by name, and those that are being replayed or are refused."""
    server, query = call.server, call.query
    only = call.access and call.access.experiment
    _, names = await server.look(server.store.names, query.offset, query.limit, only)
    await server.loading.wait_for_all(names, _PATIENCE)
    return Reply(await server.reads.run(views.summaries, server.store, query.offset, query.limit, only))


@endpoints.add("GET", "/v1/experiments/{name}", Scope.READ, {200: ExperimentState}, query=StateQuery)
async def show_state(call: Call) -> Reply:
    """Return all about an experiment or, where it has keys, about one of them."""
    return Reply(await call.server.view(call.of, functools.partial(views.state, query=call.query)))


@endpoints.add("GET", "/v1/experiments/{name}/graph", Scope.READ, {200: GraphDrawing}, query=DrawingQuery)
async def show_graph(call: Call) -> Reply:
    """Return the graph, for drawing."""
    return Reply(await call.server.view(call.of, functools.partial(views.drawing, limit=call.query.limit)))


@endpoints.add("POST", "/v1/experiments/{name}/predictions", Scope.READ, {200: Predictions}, takes=PredictionRequest)
async def predict(call: Call) -> Reply:
    """Return what the learner of an experiment with features predicts each arm to cost, without a decision."""
    body: PredictionRequest = call.body
    context = context_of(body.context, call.server.settings.max_context)
    look = functools.partial(views.predictions, context=json.loads(context), limit=body.limit, key=body.key)
    return Reply(await call.server.view(call.of, look))


@endpoints.add("GET", "/v1/experiments/{name}/rates", Scope.READ, {200: Rates}, query=RatesQuery)
async def show_rates(call: Call) -> Reply:
    """Return what happened in each of the last minutes."""
    now = call.server.clock.now().at
    return Reply(await call.server.view(call.of, lambda each, _: views.rates(each, call.query.minutes, now)))


@endpoints.add(
    "GET",
    "/v1/experiments/{name}/events",
    Scope.READ,
    {200: "text/event-stream"},
    headers={"Last-Event-ID": Sequence},
)
async def follow_events(call: Call) -> Response:
    """Stream what happens, from now on, or from behind the event that Last-Event-ID names."""
    server = call.server
    experiment, head = await server.look(server.store.position, call.of)
    after = _last_event(call.headers.get(b"last-event-id", b"%d" % head))
    headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
    token = call.access and call.access.token
    events = server.tail.stream(experiment, after, head, token)
    return StreamingResponse(events, headers=headers, media_type="text/event-stream")


@endpoints.add("GET", "/v1/experiments/{name}/log", Scope.READ, {200: "application/vnd.apache.parquet"})
async def download_log(call: Call) -> Response:
    """Return all decisions, as Parquet with the column names of the Open Bandit Pipeline."""
    server, name = call.server, call.of
    return await server.exports.run(export.reply, server.store, name)


@endpoints.add(
    "POST", "/v1/graphs", Scope.ADMIN, {201: GraphSummary, 200: GraphSummary}, takes="file", query=UploadQuery
)
async def upload_graph(call: Call) -> Reply:
    """Keep a graph file, for experiments and decisions that name it by its id."""
    server = call.server
    query: UploadQuery = call.query
    made = await server.builds.run(read_upload, call.body, f".{query.format}", server.settings)
    known, new = await server.builds.run(creation.keep_graph, server.store, made)
    return Reply(views.graph_summary(known.id, known.graph), 201 if new else 200)


def _last_event(given: bytes) -> int:
    if re.fullmatch(rb"[0-9]{1,18}", given) is None:
        raise invalid("Last-Event-ID is the number of an event.", "header.last-event-id", given.decode("latin-1"))
    return int(given)
