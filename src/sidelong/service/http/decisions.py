"""Addresses of decisions: draw, tell, cancel, look."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

from sidelong.errors import ServiceError
from sidelong.service.http import views
from sidelong.service.http.exchange import Reply
from sidelong.service.http.graphs import graph_of
from sidelong.service.http.problems import invalid
from sidelong.service.store.commands import Cancel, Decide, Tell
from sidelong.service.store.experiment import expires_at

if TYPE_CHECKING:
    from sidelong.service.http.exchange import Call
    from sidelong.service.http.messages.decisions import DecideRequest, Feedback
    from sidelong.service.store.commands import Decided, Settled

_ID = re.compile(r"([0-9a-f]{16})-([1-9][0-9]{0,17})")
_KEY = re.compile(r"[\x21-\x7e]{1,200}")


async def decide(call: Call) -> Reply:
    """Draw an arm. A request that is sent again with the same Idempotency-Key gets the same decision."""
    server = call.server
    body: DecideRequest = call.body
    key = _key(call.headers.get(b"idempotency-key"))
    graph = None if body.graph is None else await graph_of(body.graph, server)
    context = None if body.context is None else _context(body.context, server.settings.max_context)
    made: Decided = await server.commits.written(Decide(call.place["name"], graph, context, key, body.available))
    event = made.event
    content = {
        "id": f"{made.experiment}-{event.round}",
        "round": event.round,
        "arm": event.arm,
        "probability": event.probability,
        "reveals": made.reveals,
        "expires_at": expires_at(event.at, made.expire_after),
        "duplicate": made.duplicate,
    }
    return Reply(content, 200 if made.duplicate else 201)


async def feedback(call: Call) -> Reply:
    """Tell the losses that a decision revealed."""
    of, number = _parse(call)
    body: Feedback = call.body
    graph = None if body.graph is None else await graph_of(body.graph, call.server)
    told: Settled = await call.server.commits.written(Tell(of, number, body.losses, graph))
    learned = not told.duplicate
    return Reply({"id": call.place["id"], "round": told.round, "learned": learned, "duplicate": told.duplicate})


async def cancel(call: Call) -> Reply:
    """Give up a decision that was never carried out: nothing is learned from it."""
    cancelled: Settled = await call.server.commits.written(Cancel(*_parse(call)))
    return Reply({"id": call.place["id"], "round": cancelled.round, "duplicate": cancelled.duplicate})


async def look_up(call: Call) -> Reply:
    """Return a decision, whatever became of it."""
    server = call.server
    of, number = _parse(call)
    await server.loading.wait(of, server.settings.request_timeout)
    return Reply(await server.reads.run(views.decision, server.store, of, number))


def _parse(call: Call) -> tuple[str, int]:
    """Return the experiment and the round of a decision."""
    id_ = call.place["id"]
    found = _ID.fullmatch(id_)
    if found is None:
        raise ServiceError(f"There is no decision {id_[:60]!r}.", status=404, code="not_found", path="path.id")
    return f"#{found[1]}", int(found[2])


def _key(given: bytes | None) -> str | None:
    if given is None:
        return None
    key = given.decode("latin-1")
    if _KEY.fullmatch(key) is None:
        text = "An Idempotency-Key has 1 to 200 characters of printable ASCII, without blanks."
        raise invalid(text, "header.idempotency-key", key)
    return key


def _context(given: dict[str, Any], most: int) -> str:
    text = json.dumps(given, separators=(",", ":"), allow_nan=True)
    if len(text) > most:
        raise ServiceError(f"A context has at most {most:,} bytes.", status=413, code="too_large", path="body.context")
    if "NaN" in text or "Infinity" in text:
        try:
            json.dumps(given, allow_nan=False)
        except ValueError:
            raise invalid("A context holds no NaN and no Infinity.", "body.context") from None
    return text
