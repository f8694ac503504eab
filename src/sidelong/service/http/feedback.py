"""The endpoint of feedback for many decisions at once, in columns.

All decisions are of one experiment and are told by one command, so that they are on the disk together, or not at all.
If one is wrong, nothing is stored, unless `partial` asks for all that is right.
"""

from __future__ import annotations

import asyncio
import itertools
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
from pydantic import BaseModel, ConfigDict, Discriminator, Field, GetPydanticSchema, Tag, WithJsonSchema
from pydantic_core import core_schema

from sidelong.errors import ServiceError
from sidelong.service.http.decisions import parse, withdrawing
from sidelong.service.http.endpoints import Endpoints, Reply, look_through
from sidelong.service.http.graphs import GraphMessage, graph_of_round
from sidelong.service.http.messages import Body, Loss, Plain
from sidelong.service.http.messages.decisions import MOST_ITEMS, MOST_ROUNDS
from sidelong.service.http.problems import invalid
from sidelong.service.store.feedback import ToldItems, placed
from sidelong.service.store.rules import Tell
from sidelong.service.store.spec import ArmName, Whole  # noqa: TC001  # pydantic reads the annotations
from sidelong.service.store.store import unknown
from sidelong.service.store.tokens import Scope

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sidelong.graphs import FeedbackGraph
    from sidelong.service.http.endpoints import Call
    from sidelong.service.store.feedback import Settled
    from sidelong.service.store.graphs import KnownGraph

endpoints = Endpoints()
#: How many graphs one batch of feedback may name.
MOST_GRAPHS = 256


def _reals(*_: Any) -> core_schema.CoreSchema:
    """Return how numbers are read: pydantic's parser decodes base64 in a fifth of Python's time."""
    numbers = core_schema.no_info_after_validator_function(
        lambda data: np.frombuffer(data, "<f8").astype(np.float64), core_schema.bytes_schema()
    )
    wrong = "This is no base64 of numbers of 8 bytes"
    return core_schema.custom_error_schema(numbers, "base64", custom_error_message=wrong)


#: Numbers of 8 bytes (float64, little-endian), one after the other, in base64.
Reals = Annotated[Any, GetPydanticSchema(_reals), WithJsonSchema({"type": "string", "format": "byte"})]


Numbers = Annotated[
    Annotated[list[Loss], Tag("[list]")] | Annotated[Reals, Tag("[base64]")],
    Discriminator(lambda value: "[base64]" if isinstance(value, str) else "[list]"),
]


class FeedbackBatch(Body):
    """The losses that decisions of one experiment revealed, in columns."""

    model_config = ConfigDict(val_json_bytes="base64")

    ids: list[Annotated[str, Field(max_length=100)]] = Field(min_length=1, max_length=MOST_ITEMS)  #: of the decisions
    sizes: list[Whole] = Field(max_length=MOST_ITEMS, description="how many losses each decision has")
    losses: Numbers = Field(
        description="of all decisions, one after the other: a list, or numbers of 8 bytes (float64, little-endian) in "
        "base64"
    )
    costs: Numbers | None = Field(
        None, description="under a ceiling, what the same arms cost, in the same order and form"
    )
    reveals: list[ArmName] | None = Field(
        None,
        description="the arm of each loss, by number or label; without it, losses are in the order of what each "
        "decision reveals",
    )
    arms: list[ArmName] | None = Field(
        None,
        max_length=MOST_ITEMS,
        description="that were played, by number or label; one that the decision does not play is refused",
    )
    graphs: list[GraphMessage] | None = Field(None, max_length=MOST_GRAPHS, description="that came with outcomes")
    graph_of: list[Whole] | None = Field(
        None, max_length=MOST_ITEMS, description="for each decision, which of the graphs came with its outcome"
    )
    partial: bool = Field(default=False, strict=True, description="whether to learn the others if one is wrong")
    plain: Plain = False


class DecisionProblem(BaseModel):
    """Why a decision was not learned, as in an error for it alone."""

    id: str  #: of the decision
    status: int  #: of the error that it alone would have had
    code: str  #: of that error, by which programs tell errors apart
    detail: str  #: what is wrong, for people
    path: str | None  #: where that is in the request; null if it is no value of it


class FeedbackBatchReply(BaseModel):
    """How many decisions were learned, and what became of the others."""

    learned: int  #: how many decisions were learned by this request
    duplicates: list[str]  #: the ids of those that were told the same before
    problems: list[DecisionProblem]  #: only where `partial` was asked for


@endpoints.add("POST", "/v1/feedback", Scope.FEEDBACK, {200: FeedbackBatchReply}, takes=FeedbackBatch, single=True)
async def tell_many(call: Call) -> Reply:
    """Tell the losses that decisions of one experiment revealed: all of them, or none, unless `partial` says so."""
    body: FeedbackBatch = call.body
    of, numbers = await look_through(len(body.ids), _numbers, body.ids)
    if call.access is not None and call.access.experiment not in {None, of[1:]}:
        raise placed(unknown("#"), 0)
    await look_through(len(numbers), _check_lengths, body)
    await _check_size(call, of, len(numbers))
    graphs = await asyncio.gather(*(_graph(each, place, call, of) for place, each in enumerate(body.graphs or ())))
    losses = np.asarray(body.losses, np.float64)
    costs = None if body.costs is None else np.asarray(body.costs, np.float64)
    told = ToldItems(numbers, body.sizes, losses, graphs, body.graph_of, body.arms, body.plain, body.reveals, costs)
    async with withdrawing(call.server, *graphs):
        try:
            outcomes: Sequence[Settled | ServiceError] = await call.server.commits.written(Tell(of, told, body.partial))
        except ServiceError as error:
            raise placed(error, 0) if error.path in {"path", "path.id"} else error from error
    return Reply(await look_through(len(numbers), _said, body, told, outcomes))


def _said(body: FeedbackBatch, told: ToldItems, outcomes: Sequence[Settled | ServiceError]) -> dict[str, Any]:
    """Return how many decisions were learned, and what became of the others."""
    learned, duplicates, problems = 0, [], []
    starts = itertools.accumulate(body.sizes, initial=0)
    for place, (id_, outcome, first) in enumerate(zip(body.ids, outcomes, starts, strict=False)):
        if isinstance(outcome, ServiceError):
            problem = {"id": id_, "status": outcome.status, "code": outcome.code, "detail": str(outcome)}
            problems.append({**problem, "path": placed(outcome, place, told, first).path})
        elif outcome.duplicate:
            duplicates.append(id_)
        else:
            learned += outcome.learned
    return {"learned": learned, "duplicates": duplicates, "problems": problems}


def _numbers(ids: list[str]) -> tuple[str, list[int]]:
    """Return the experiment of decisions, and their numbers."""
    try:
        of = parse(ids[0])[0]
    except ServiceError as error:
        raise placed(error, 0) from error
    begin, numbers = f"{of[1:]}-", []
    for place, id_ in enumerate(ids):
        digits = id_.removeprefix(begin)
        if len(digits) == len(id_) or not digits.isdecimal() or not digits.isascii() or len(digits) > 18:
            text = f"There is no decision {id_[:60]!r} of the same experiment as the first one."
            raise ServiceError(text, status=404, code="not_found", path=f"body.ids.{place}", value=id_)
        numbers.append(int(digits))
    return of, numbers


async def _check_size(call: Call, of: str, count: int) -> None:
    """Refuse so many decisions of an experiment without keys that others would wait for them."""
    server = call.server
    if count > MOST_ROUNDS and not (await server.look(server.store.identity, of)).spec.keyed:
        text = f"At most {MOST_ROUNDS:,} decisions of an experiment without keys are told at once, not {count:,}."
        raise ServiceError(text, status=413, code="too_large", path="body.ids", value=count)


async def _graph(given: GraphMessage, place: int, call: Call, of: str) -> FeedbackGraph | KnownGraph | str:
    """Return one of the graphs that came with outcomes."""
    try:
        return await graph_of_round(given, call, of)
    except ServiceError as error:
        if (error.path or "").startswith("body.graph"):
            error.path = f"body.graphs.{place}{(error.path or '').removeprefix('body.graph')}"
        raise


def _check_lengths(body: FeedbackBatch) -> None:
    n, total = len(body.ids), sum(body.sizes)
    for name, column in (("sizes", body.sizes), ("graph_of", body.graph_of), ("arms", body.arms)):
        if column is not None and len(column) != n:
            raise invalid(f"{name} has one number for each of the {n:,} ids, not {len(column):,}.", f"body.{name}")
    for name, values in (("losses", body.losses), ("costs", body.costs), ("reveals", body.reveals)):
        if values is not None and len(values) != total:
            text = f"{name} has as many values as sizes says, {total:,}, and there are {len(values):,}."
            raise invalid(text, f"body.{name}")
    if body.reveals is not None:
        whose = itertools.chain.from_iterable(itertools.repeat(k, size) for k, size in enumerate(body.sizes))
        if len(set(zip(whose, map(str, body.reveals), strict=True))) < total:
            raise invalid("reveals names an arm twice for one decision. Tell one loss of it.", "body.reveals")
    if (body.graph_of is None) != (body.graphs is None):
        raise invalid("graphs and graph_of are sent together.", "body.graphs")
    if body.graph_of is not None and max(body.graph_of) >= len(body.graphs or ()):
        raise invalid("graph_of counts the graphs from 0, and one of it is beyond them.", "body.graph_of")
