"""Endpoints of decisions: draw, tell, override, cancel, look."""

from __future__ import annotations

import json
import math
import re
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from sidelong.errors import ServiceError
from sidelong.service.http import views
from sidelong.service.http.endpoints import Endpoints, Reply, look_through
from sidelong.service.http.graphs import graph_of_round
from sidelong.service.http.messages.decisions import (
    Cancelled,
    DecideRequest,
    DecisionBatch,
    DecisionReply,
    DecisionState,
    Feedback,
    FeedbackReply,
    Key,
    OverrideReply,
    OverrideRequest,
)
from sidelong.service.http.problems import invalid
from sidelong.service.store.clock import expires_at
from sidelong.service.store.feedback import ToldItem
from sidelong.service.store.graphs import KnownGraph
from sidelong.service.store.rules import Cancel, Decide, Override, Tell
from sidelong.service.store.tokens import Scope

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from sidelong.graphs import FeedbackGraph
    from sidelong.service.http.endpoints import Call
    from sidelong.service.server import Server
    from sidelong.service.store.feedback import Settled
    from sidelong.service.store.rules import Command, Decided, Overridden

endpoints = Endpoints()
_DECISIONS = (DecisionReply, DecisionBatch)
_ID = re.compile(r"([0-9a-f]{16})-([1-9][0-9]{0,17})")
_KEY = re.compile(r"[\x21-\x7e]{1,200}")


@endpoints.add(
    "POST",
    "/v1/experiments/{name}/decisions",
    Scope.DECIDE,
    {201: _DECISIONS, 200: _DECISIONS},
    takes=DecideRequest,
    headers={"Idempotency-Key": Key},
)
async def decide(call: Call) -> Reply:
    """Draw an arm, or several, which come in columns. The same again with the same Idempotency-Key gets the same."""
    server = call.server
    body: DecideRequest = call.body
    key = key_of(call.headers.get(b"idempotency-key"))
    name = call.of
    context = _context(body, server.settings.max_context)
    graph = None if body.graph is None else await graph_of_round(body.graph, call, name)
    keys = None if body.key is None and body.keys is None else _keys(body)
    asked = Decide(name, graph, context, key, body.available, body.count or 1, keys, body.subject, _advice(body))
    try:
        made: Decided = await _written(server, asked, graph)
    except ServiceError as error:
        if body.keys is None and (error.path or "").startswith("body.keys"):  # where one is like many
            error.path = "body.key"
        raise
    status = 200 if made.duplicate else 201
    if body.keys is None and body.count is None:
        return Reply(_decision(made), status)
    return Reply(await look_through(len(made.draws.arms), _columns, made), status)


def _keys(body: DecideRequest) -> list[Any]:
    """Return the keys of a request, which says either one or several, and not how many decisions."""
    if body.keys is not None and body.key is not None:
        raise invalid("Send key, or keys, and not both.", "body.key", body.key)
    if body.count is not None:
        raise invalid(
            "Name a key several times to get several decisions for it; count is for experiments without keys.",
            "body.count",
            body.count,
        )
    return [body.key] if body.keys is None else list(body.keys)


def _context(body: DecideRequest, most: int) -> str | None:
    """Return the context of a request as it is kept: one for all decisions, or a list with that of each key."""
    given = body.context
    if not isinstance(given, list):
        return None if given is None else context_of(given, most)
    if body.keys is None or len(given) != len(body.keys):
        n = "no keys" if body.keys is None else f"{len(body.keys):,} keys"
        text = f"A list has the context of each key, and there are {n} and {len(given):,} contexts."
        raise invalid(text, "body.context", len(given))
    return f"[{','.join(context_of(each, most) for each in given)}]"


def _advice(body: DecideRequest) -> Any:
    """Return the advice of a request; that for a single key is a list, as that for many."""
    given = body.advice
    if given is None or body.key is None:
        return given
    return {name: [each] for name, each in given.items()} if isinstance(given, dict) else [given]


def _decision(made: Decided, place: int = 0, carried_out: int | None = None) -> dict[str, Any]:
    """Return one of the decisions; what it reveals is that of the arm that was carried out."""
    number, key, round_, arm, p, by = made.draws.row(place)
    return {
        "id": f"{made.experiment}-{number}",
        "key": key,
        "round": round_,
        "arm": arm,
        "label": made.labels and made.labels[arm],
        "probability": None if math.isnan(p) else p,
        "drawn_by": by,
        "reveals": made.draws.graph(place, made.graph).row(arm if carried_out is None else carried_out).tolist(),
        "expires_at": expires_at(made.at, made.expire_after),
        "duplicate": made.duplicate,
    }


def _columns(made: Decided) -> dict[str, Any]:
    """Return all of the decisions."""
    draws, arms = made.draws, sorted(set(made.draws.arms))
    return {
        "ids": [f"{made.experiment}-{number}" for number in draws.numbers],
        "rounds": draws.rounds,
        "arms": draws.arms,
        "labels": made.labels and {str(arm): made.labels[arm] for arm in arms},
        "probabilities": None if any(map(math.isnan, draws.probabilities)) else draws.probabilities,
        "drawn_by": draws.drawn_by,
        "reveals": {str(arm): made.graph.row(arm).tolist() for arm in arms},
        "absent": draws.absent,
        "expires_at": expires_at(made.at, made.expire_after),
        "duplicate": made.duplicate,
    }


@endpoints.add(
    "POST",
    "/v1/decisions/{id}/feedback",
    Scope.FEEDBACK,
    {200: FeedbackReply},
    takes=Feedback,
    headers={"Idempotency-Key": Key},
)
async def feedback(call: Call) -> Reply:
    """Tell the losses that a decision revealed. Those of a sticky one may come several times, each with its own key."""
    of, number = parse(call.place["id"])
    body: Feedback = call.body
    graph = None if body.graph is None else await graph_of_round(body.graph, call, of)
    item = ToldItem(number, body.losses, graph, body.arm, body.plain, body.costs)
    key = key_of(call.headers.get(b"idempotency-key"))
    command = Tell(of, [item], partial=True, alone=True, key=key)
    (told,) = await _written(call.server, command, graph)
    content = {"id": call.place["id"], "round": told.round, "learned": told.learned, "duplicate": told.duplicate}
    return Reply(content)


async def _written(server: Server, command: Command, graph: FeedbackGraph | KnownGraph | str | None) -> Any:
    """Return what a command replies; most have no graph, and nothing to withdraw."""
    if graph is None:
        return _accepted(await server.commits.written(command))
    async with withdrawing(server, graph):
        return _accepted(await server.commits.written(command))


def _accepted(reply: Any) -> Any:
    """Return a reply, or raise the error that is the outcome of the only item of a request."""
    if isinstance(reply, list) and isinstance(reply[0], ServiceError):
        raise reply[0]
    return reply


@asynccontextmanager
async def withdrawing(server: Server, *graphs: FeedbackGraph | KnownGraph | str | None) -> AsyncIterator[None]:
    """Send a command with these graphs of rounds; if it is refused, nothing is kept of them."""
    try:
        yield
    except ServiceError:
        await withdraw(server, *graphs)
        raise


async def withdraw(server: Server, *graphs: FeedbackGraph | KnownGraph | str | None) -> None:
    """Let go of graphs that were kept for a request which was refused."""
    for graph in graphs:
        if isinstance(graph, KnownGraph) and graph.new:
            await server.builds.run(server.store.withdraw, graph)


@endpoints.add("POST", "/v1/decisions/{id}/cancel", Scope.DECIDE, {200: Cancelled})
async def cancel(call: Call) -> Reply:
    """Give up a decision that was never carried out: nothing is learned from it."""
    cancelled: Settled = await call.server.commits.written(Cancel(*parse(call.place["id"])))
    return Reply({"id": call.place["id"], "round": cancelled.round, "duplicate": cancelled.duplicate})


@endpoints.add("POST", "/v1/decisions/{id}/override", Scope.FEEDBACK, {200: OverrideReply}, takes=OverrideRequest)
async def override(call: Call) -> Reply:
    """Say that a decision was carried out with another arm, before its outcome is told."""
    found: Overridden = await call.server.commits.written(Override(*parse(call.place["id"]), call.body.arm))
    content = _decision(found.decided, found.place, found.carried_out)
    return Reply({**content, "carried_out": found.carried_out})


@endpoints.add("GET", "/v1/decisions/{id}", Scope.READ, {200: DecisionState})
async def look_up(call: Call) -> Reply:
    """Get a decision in any state."""
    server = call.server
    of, number = parse(call.place["id"])
    await server.loading.wait(of, server.settings.request_timeout)
    return Reply(await server.reads.run(views.decision, server.store, of, number))


def parse(id_: str) -> tuple[str, int]:
    """Return the experiment and the round of a decision."""
    found = _ID.fullmatch(id_)
    if found is None:
        text = f"There is no decision {id_[:60]!r}."
        raise ServiceError(text, status=404, code="not_found", path="path.id", value=id_)
    return f"#{found[1]}", int(found[2])


def key_of(given: bytes | None) -> str | None:
    """Return the Idempotency-Key of a request."""
    if given is None:
        return None
    key = given.decode("latin-1")
    if _KEY.fullmatch(key) is None:
        text = "An Idempotency-Key has 1 to 200 characters of printable ASCII, without blanks."
        raise invalid(text, "header.idempotency-key", key)
    return key


def context_of(given: dict[str, Any], most: int) -> str:
    """Return a context as it is kept."""
    text = json.dumps(given, separators=(",", ":"), allow_nan=True)
    if len(text) > most:
        raise ServiceError(f"A context has at most {most:,} bytes.", status=413, code="too_large", path="body.context")
    if "NaN" in text or "Infinity" in text:
        try:
            json.dumps(given, allow_nan=False)
        except ValueError:
            raise invalid("A context holds no NaN and no Infinity.", "body.context") from None
    return text
