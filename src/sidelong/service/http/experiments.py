"""Addresses of experiments: make one, list them, look at one in every way."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from starlette.responses import Response, StreamingResponse

from sidelong.service.http import export, views
from sidelong.service.http.exchange import Reply
from sidelong.service.http.graphs import graph_of, read_upload
from sidelong.service.http.problems import invalid
from sidelong.service.store import creation

if TYPE_CHECKING:
    from collections.abc import Callable

    from sidelong.service.http.exchange import Call
    from sidelong.service.http.messages.experiments import CreateExperiment, StateQuery
    from sidelong.service.http.messages.graphs import UploadQuery

_PATIENCE = 1.0  # seconds that the list waits for experiments to come into memory


async def create_experiment(call: Call) -> Reply:
    """Make an experiment. The first one of a learner may take some seconds of compilation."""
    server = call.server
    body: CreateExperiment = call.body
    graph = await graph_of(body.graph, server)
    spec = body.model_dump(include={"learner", "options", "seed", "expire_after", "description", "labels"})
    if body.certificate:
        spec["certificate"] = True  # experiments of older programs do not say
    draft = await server.builds.run(creation.draft, server.store, body.name, spec, graph)
    _, new = await server.commits.written(lambda: creation.create(server.store, draft))
    state = await server.view(body.name, lambda each, _: views.state(each))
    return Reply(state, 201 if new else 200)


async def list_experiments(call: Call) -> Reply:
    """List the experiments, by name, and those that are being replayed or are refused."""
    server, query = call.server, call.query
    _, names = await server.look(server.store.names, query.offset, query.limit)
    await server.loading.wait_for_all(names, _PATIENCE)
    return Reply(await server.reads.run(views.summaries, server.store, query.offset, query.limit))


async def show_state(call: Call) -> Reply:
    """Return all about an experiment."""
    query: StateQuery = call.query
    return await _view(call, lambda each: views.state(each, query))


async def show_graph(call: Call) -> Reply:
    """Return the graph, for drawing."""
    return await _view(call, lambda each: views.drawing(each, call.query.limit))


async def show_rates(call: Call) -> Reply:
    """Return what happened in each of the last minutes."""
    now = call.server.clock.now().at
    return await _view(call, lambda each: views.rates(each, call.query.minutes, now))


async def follow_events(call: Call) -> Response:
    """Stream what happens, from now on, or from behind the event that Last-Event-ID names."""
    server = call.server
    experiment, head = await server.look(server.store.position, call.place["name"])
    after = _last_event(call.headers.get(b"last-event-id", b"%d" % head))
    headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
    token = call.access and call.access.token
    events = server.tail.stream(experiment, after, head, token)
    return StreamingResponse(events, headers=headers, media_type="text/event-stream")


async def download_log(call: Call) -> Response:
    """Return all decisions, as Parquet with the column names of the Open Bandit Pipeline."""
    server, name = call.server, call.place["name"]
    return await server.exports.run(export.reply, server.store, name)


async def upload_graph(call: Call) -> Reply:
    """Keep a graph file, for experiments and decisions that name it by its id."""
    server = call.server
    query: UploadQuery = call.query
    made = await server.builds.run(read_upload, call.body, f".{query.format}", server.settings)
    known, new = await server.commits.written(lambda: creation.keep_graph(server.store, made))
    return Reply(views.graph_summary(known.id, known.graph), 201 if new else 200)


def _last_event(given: bytes) -> int:
    if re.fullmatch(rb"[0-9]{1,18}", given) is None:
        raise invalid("Last-Event-ID is the number of an event.", "header.last-event-id", given.decode("latin-1"))
    return int(given)


async def _view(call: Call, look: Callable[[Any], Any]) -> Reply:
    """Return what is seen of the experiment that a request names."""
    return Reply(await call.server.view(call.place["name"], lambda each, _: look(each)))
