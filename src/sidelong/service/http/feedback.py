"""The endpoint of feedback for many decisions at once.

The items of each experiment are one command, so that they are on the disk together, or not at all. If one is wrong,
nothing is stored, unless `partial` asks for all that is right. Items of several experiments are several commands, which
wait for one flush together; they could not be undone together, and so they need `partial`.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

from pydantic import BaseModel, Field, ValidationError, WrapValidator

from sidelong.errors import ServiceError
from sidelong.service.http.decisions import parse, withdraw, withdrawing
from sidelong.service.http.endpoints import Endpoints, Reply
from sidelong.service.http.graphs import GraphMessage, graph_of_round
from sidelong.service.http.messages.decisions import MOST_ITEMS, MOST_ROUNDS, Losses
from sidelong.service.http.messages.values import Body, Plain
from sidelong.service.http.problems import invalid, misread
from sidelong.service.store.feedback import ToldItem, placed
from sidelong.service.store.rules import Tell
from sidelong.service.store.spec import ArmName  # noqa: TC001  # pydantic reads the annotations
from sidelong.service.store.store import unknown
from sidelong.service.store.tokens import Scope

if TYPE_CHECKING:
    from collections.abc import Mapping

    from sidelong.graphs import FeedbackGraph
    from sidelong.service.http.endpoints import Call
    from sidelong.service.server import Server
    from sidelong.service.store.feedback import Settled
    from sidelong.service.store.graphs import KnownGraph

    Outcome = Settled | ServiceError

endpoints = Endpoints()
_LONGEST_ID = 100


class FeedbackItem(Body):
    """The losses that one decision revealed, as in feedback for it alone."""

    id: str = Field(max_length=_LONGEST_ID)
    losses: Losses
    graph: GraphMessage | None = Field(None, description="as in feedback for it alone")
    arm: ArmName | None = Field(None, description="as in feedback for it alone")
    plain: Plain = False


class Unread(NamedTuple):
    """An item that cannot be read."""

    id: str | None  #: if it has one
    error: ValidationError


def _leniently(value: Any, read: Any) -> Any:
    """Return an item, or what is wrong with it: the others may be right."""
    try:
        return read(value)
    except ValidationError as error:
        id_ = value.get("id") if isinstance(value, dict) else None
        return Unread(id_[:_LONGEST_ID] if isinstance(id_, str) else None, error)


class FeedbackBatch(Body):
    """Feedback for decisions, of one experiment or of several."""

    items: list[Annotated[FeedbackItem, WrapValidator(_leniently)]] = Field(min_length=1, max_length=MOST_ITEMS)
    partial: bool = Field(
        default=False,
        strict=True,
        description="whether to learn the others if an item is wrong; if not, nothing is stored, and all items are "
        "decisions of one experiment",
    )


class ItemProblem(BaseModel):
    """Why an item was not learned, as in an error for it alone."""

    status: int
    code: str
    detail: str
    path: str | None


class ItemVerdict(BaseModel):
    """What became of an item."""

    id: str | None  #: null if it had none
    round: int | None  #: null if there is a problem
    learned: bool
    duplicate: bool  #: whether the same was told before
    problem: ItemProblem | None


class FeedbackBatchReply(BaseModel):
    """What became of each item, in their order."""

    learned: int
    items: list[ItemVerdict]


@endpoints.add("POST", "/v1/feedback", Scope.FEEDBACK, {200: FeedbackBatchReply}, takes=FeedbackBatch, single=True)
async def tell_many(call: Call) -> Reply:
    """Tell the losses that many decisions revealed; all of them are learned, or none, unless `partial` says so."""
    body: FeedbackBatch = call.body
    outcomes: dict[int, Outcome] = {}
    wanted: dict[str, list[int]] = {}
    told: dict[int, ToldItem] = {}
    with_graphs = [place for place, item in enumerate(body.items) if getattr(item, "graph", None) is not None]
    # Graphs are built side by side, and those that are the same once.
    built = dict(zip(with_graphs, await _graphs(call, with_graphs), strict=True))
    for place, item in enumerate(body.items):
        try:
            of, told[place] = _read(item, place, call, built.get(place))
            wanted.setdefault(of, []).append(place)
        except ServiceError as error:
            outcomes[place] = error
    async with withdrawing(call.server, *(item.graph for item in told.values())):
        outcomes |= await _tell(call, told, wanted, outcomes)
    await withdraw(
        call.server, *(item.graph for place, item in told.items() if isinstance(outcomes[place], ServiceError))
    )
    verdicts = [_verdict(item, outcomes[place]) for place, item in enumerate(body.items)]
    return Reply(FeedbackBatchReply(learned=sum(each.learned for each in verdicts), items=verdicts))


async def _tell(
    call: Call, told: Mapping[int, ToldItem], wanted: Mapping[str, list[int]], wrong: Mapping[int, Outcome]
) -> dict[int, Outcome]:
    """Return what became of the items that could be read."""
    body: FeedbackBatch = call.body
    outcomes: dict[int, Outcome] = {}
    if not body.partial:
        _check_whole(wrong, wanted)
    for of, places in wanted.items():
        await check_size(call.server, of, len(places), "body.items")
    commands = [Tell(of, [told[place] for place in places], body.partial) for of, places in wanted.items()]
    done = await asyncio.gather(*map(call.server.commits.written, commands), return_exceptions=True)
    for places, result in zip(wanted.values(), done, strict=True):
        if isinstance(result, BaseException):
            if not isinstance(result, ServiceError):
                raise result
            if not body.partial:
                raise placed(result, 0) if result.path in {"path", "path.id"} else result
        for number, place in enumerate(places):
            outcome = result if isinstance(result, ServiceError) else result[number]
            outcomes[place] = placed(outcome, place) if isinstance(outcome, ServiceError) else outcome
    return outcomes


async def _graphs(call: Call, places: list[int]) -> list[FeedbackGraph | KnownGraph | str | ServiceError]:
    """Return the graphs of items, or why one cannot be built."""
    made: dict[str, asyncio.Future[Any]] = {}
    found = []
    for place in places:
        item = call.body.items[place]
        same = f"{item.id.partition('-')[0]} {item.graph.model_dump_json()}"
        if same not in made:
            made[same] = asyncio.ensure_future(_graph(call, item))
        found.append(made[same])
    outcomes: list[Any] = await asyncio.gather(*found, return_exceptions=True)
    for outcome in outcomes:
        if isinstance(outcome, BaseException) and not isinstance(outcome, ServiceError):
            raise outcome
    return outcomes


async def _graph(call: Call, item: FeedbackItem) -> FeedbackGraph | KnownGraph | str:
    return await graph_of_round(item.graph, call, _address(item, call)[0])


def _address(item: FeedbackItem, call: Call) -> tuple[str, int]:
    """Return the experiment that an item is for, and the number of its decision."""
    of, number = parse(item.id)
    if call.access is not None and call.access.experiment not in {None, of[1:]}:
        raise unknown("#")
    return of, number


def _read(
    item: FeedbackItem | Unread, place: int, call: Call, graph: FeedbackGraph | KnownGraph | str | ServiceError | None
) -> tuple[str, ToldItem]:
    """Return the experiment that an item is for, and what it tells."""
    if isinstance(item, Unread):
        raise placed(misread(item.error, "body"), place, None if call.body.partial else item.id)
    try:
        of, number = _address(item, call)
        if isinstance(graph, ServiceError):
            raise graph
        return of, ToldItem(number, item.losses, graph, item.arm, item.plain)
    except ServiceError as error:
        raise placed(error, place) from error


def _check_whole(outcomes: Mapping[int, Outcome], wanted: Mapping[str, list[int]]) -> None:
    """Refuse a batch of which some part cannot be stored with the others."""
    for error in outcomes.values():
        if isinstance(error, ServiceError):
            raise error
    if len(wanted) > 1:
        other = list(wanted.values())[1][0]
        text = "All items are of one experiment, since they are stored together or not at all. Send a batch for each"
        raise invalid(f'{text} experiment, or "partial": true.', f"body.items.{other}.id")


async def check_size(server: Server, of: str, count: int, path: str) -> None:
    """Refuse so many decisions of an experiment without keys that others would wait for them."""
    if count > MOST_ROUNDS and not (await server.look(server.store.identity, of)).spec.keyed:
        text = f"At most {MOST_ROUNDS:,} decisions of an experiment without keys are told at once, not {count:,}."
        raise ServiceError(text, status=413, code="too_large", path=path, value=count)


def _verdict(item: FeedbackItem | Unread, outcome: Outcome) -> ItemVerdict:
    id_ = item.id
    if not isinstance(outcome, ServiceError):
        return ItemVerdict(
            id=id_, round=outcome.round, learned=outcome.learned, duplicate=outcome.duplicate, problem=None
        )
    problem = ItemProblem(status=outcome.status, code=outcome.code, detail=str(outcome), path=outcome.path)
    return ItemVerdict(id=id_, round=None, learned=False, duplicate=False, problem=problem)
