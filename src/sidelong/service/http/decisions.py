"""Addresses of decisions: draw, tell, cancel, look."""

from __future__ import annotations

import asyncio
import json
import re
from typing import TYPE_CHECKING, Any

from fastapi import APIRouter, Request
from pydantic_core import to_json
from starlette.responses import Response

from sidelong.errors import ServiceError
from sidelong.service.http import documents, views
from sidelong.service.http.gate import GuardedRoute, guarded, headers_of, read
from sidelong.service.http.graphs import build
from sidelong.service.http.messages import (
    Cancelled,
    DecideRequest,
    DecisionReply,
    DecisionState,
    Feedback,
    FeedbackReply,
)
from sidelong.service.http.messages import KnownGraph as KnownGraphMessage
from sidelong.service.http.problems import DOCUMENTED
from sidelong.service.store.commands import Cancel, Decide, Tell
from sidelong.service.store.tokens import Scope

if TYPE_CHECKING:
    from sidelong.service.server import Server
    from sidelong.service.store.commands import Decided, Settled

__all__ = ["router"]

router = APIRouter(prefix="/v1", route_class=GuardedRoute, responses=DOCUMENTED, tags=["decisions"])

_ID = re.compile(r"([0-9a-f]{16})-([1-9][0-9]{0,17})")
_KEY = re.compile(r"[\x21-\x7e]{1,200}")


@router.post(
    "/experiments/{name}/decisions",
    status_code=201,
    response_model=DecisionReply,
    responses={200: {"model": DecisionReply, "description": "The decision that was made before under this key."}},
    openapi_extra=guarded(Scope.DECIDE, **documents.takes(DecideRequest, "name", key=True, required=False)),
)
async def decide(request: Request) -> Response:
    """Draw an arm."""
    service: Server = request.app.state.service
    key = _key(request)
    body = await read(request, DecideRequest)
    graph = await graph_of(body.graph, service)
    context = _context(body.context, service.settings.max_context)
    made: Decided = await waited(service, Decide(request.path_params["name"], graph, context, key))
    event = made.event
    content = {
        "id": f"{made.experiment}-{event.round}",
        "round": event.round,
        "arm": event.arm,
        "probability": event.probability,
        "reveals": made.reveals,
        "expires_at": views.expires_at(event.at, made.expire_after),
        "duplicate": made.duplicate,
    }
    return answer(content, 200 if made.duplicate else 201)


@router.post(
    "/decisions/{id}/feedback",
    response_model=FeedbackReply,
    openapi_extra=guarded(Scope.FEEDBACK, **documents.takes(Feedback, "id")),
)
async def feedback(request: Request) -> Response:
    """Tell the losses that a decision revealed."""
    service: Server = request.app.state.service
    id_ = request.path_params["id"]
    of, number = parse(id_)
    body = await read(request, Feedback)
    graph = await graph_of(body.graph, service)
    told: Settled = await waited(service, Tell(of, number, body.losses, graph))
    return answer({"id": id_, "round": told.round, "learned": not told.duplicate, "duplicate": told.duplicate})


@router.post(
    "/decisions/{id}/cancel",
    response_model=Cancelled,
    openapi_extra=guarded(Scope.DECIDE, **documents.takes(None, "id")),
)
async def cancel(request: Request) -> Response:
    """Give up a decision that was never carried out: nothing is learned from it."""
    id_ = request.path_params["id"]
    cancelled: Settled = await waited(request.app.state.service, Cancel(*parse(id_)))
    return answer({"id": id_, "round": cancelled.round, "duplicate": cancelled.duplicate})


@router.get(
    "/decisions/{id}",
    response_model=DecisionState,
    openapi_extra=guarded(Scope.READ, **documents.takes(None, "id")),
)
async def look(request: Request) -> Response:
    """Return a decision, whatever became of it."""
    store = request.app.state.service.store
    of, number = parse(request.path_params["id"])
    return answer(await asyncio.to_thread(views.decision, store, of, number))


def answer(content: Any, status: int = 200) -> Response:
    """Return a reply in JSON."""
    return Response(to_json(content), status, media_type="application/json")


async def waited(service: Server, job: Any) -> Any:
    """Return the result of a command, once it is on the disk."""
    written = service.commits.submit(job)
    patience = asyncio.get_running_loop().call_later(service.settings.request_timeout, _give_up, written)
    try:
        return await written
    finally:
        patience.cancel()


def _give_up(written: asyncio.Future[Any]) -> None:
    if not written.done():
        text = "It took too long to write this. Send the request again, with its Idempotency-Key."
        written.set_exception(ServiceError(text, status=503, code="busy", retry_after=1.0))


async def graph_of(message: Any, service: Server) -> Any:
    """Return the graph of a request, or the id of a known one."""
    if message is None or isinstance(message, KnownGraphMessage):
        return message and message.id
    return await asyncio.to_thread(build, message, service.settings)


def parse(id_: str) -> tuple[str, int]:
    """Return the experiment and the round of a decision."""
    found = _ID.fullmatch(id_)
    if found is None:
        raise ServiceError(f"There is no decision {id_[:60]!r}.", status=404, code="not_found", path="path.id")
    return f"#{found[1]}", int(found[2])


def _key(request: Request) -> str | None:
    given = headers_of(request).get(b"idempotency-key")
    if given is None:
        return None
    key: str = given.decode("latin-1")
    if _KEY.fullmatch(key) is None:
        raise ServiceError(
            "An Idempotency-Key has 1 to 200 characters of printable ASCII, without blanks.",
            status=422,
            code="invalid",
            path="header.idempotency-key",
            value=key,
        )
    return key


def _context(given: dict[str, Any] | None, most: int) -> str | None:
    if given is None:
        return None
    text = json.dumps(given, separators=(",", ":"), allow_nan=True)
    if len(text) > most:
        raise ServiceError(f"A context has at most {most:,} bytes.", status=413, code="too_large", path="body.context")
    if "NaN" in text or "Infinity" in text:
        try:
            json.dumps(given, allow_nan=False)
        except ValueError:
            raise ServiceError(
                "A context holds no NaN and no Infinity.", status=422, code="invalid", path="body.context"
            ) from None
    return text
