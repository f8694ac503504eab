"""Decisions and feedback for many keys in columns, which the client uses: less to write and to read than objects."""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, GetPydanticSchema, WithJsonSchema
from pydantic_core import core_schema

from sidelong.errors import ServiceError
from sidelong.service.http.decisions import context_of, key_of, parse, withdrawing
from sidelong.service.http.endpoints import Endpoints, Reply
from sidelong.service.http.feedback import check_size
from sidelong.service.http.graphs import GraphMessage, graph_of_round
from sidelong.service.http.messages.decisions import MOST_ITEMS, Available, Key, ProductKey
from sidelong.service.http.messages.values import Body, Plain, Timestamp
from sidelong.service.http.problems import invalid
from sidelong.service.store import feedback as store
from sidelong.service.store.clock import expires_at
from sidelong.service.store.feedback import placed
from sidelong.service.store.rules import Decide, Tell
from sidelong.service.store.spec import ArmName, Whole  # noqa: TC001  # pydantic reads the annotations
from sidelong.service.store.store import unknown
from sidelong.service.store.tokens import Scope

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sidelong.graphs import FeedbackGraph
    from sidelong.service.http.endpoints import Call
    from sidelong.service.store.feedback import Settled
    from sidelong.service.store.graphs import KnownGraph
    from sidelong.service.store.rules import Decided

endpoints = Endpoints()
_ITEM = re.compile(r"body\.items\.(\d+)\.(id|losses|arm|graph)(\..*)?")
_COLUMNS = {"id": "ids", "arm": "arms", "graph": "graph_of"}  # of what an item says
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


class KeysRequest(Body):
    """The keys to decide for, and what a request for one decision may say, for all of them."""

    keys: list[ProductKey] = Field(min_length=1, max_length=MOST_ITEMS)
    graph: GraphMessage | None = Field(None, description="the graph of this round alone")
    available: Available | None = Field(None, description="as at a single decision")
    context: dict[str, Any] | None = Field(None, description="kept in the log; the learner does not see it")


class DecisionColumns(BaseModel):
    """What to play for each key, in the order of the keys."""

    ids: str  #: what the ids begin with; the number of the decision follows
    first: int  #: that of the first key; the others count on from there
    rounds: list[int]  #: of each key, from 1
    arms: list[int]
    labels: dict[str, str] | None  #: by arm, what it is called; null if the arms have no labels
    probabilities: list[float] | None  #: null if the learner draws without knowing them
    reveals: dict[str, list[int]]  #: by arm, what playing it reveals
    expires_at: Timestamp | None
    duplicate: bool  #: whether this Idempotency-Key was answered before


class FeedbackColumns(Body):
    """The losses that decisions of one experiment revealed."""

    model_config = ConfigDict(val_json_bytes="base64")

    ids: list[Annotated[str, Field(max_length=100)]] = Field(min_length=1, max_length=MOST_ITEMS)
    sizes: list[Whole] = Field(max_length=MOST_ITEMS, description="how many losses each decision has")
    losses: Reals = Field(description="of all decisions, in the order of `reveals`, as float64, little-endian, base64")
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


class ColumnProblem(BaseModel):
    """Why a decision was not learned, as in an error for it alone."""

    id: str
    status: int
    code: str
    detail: str
    path: str | None


class FeedbackColumnsReply(BaseModel):
    """How many decisions were learned, and what became of the others."""

    learned: int
    duplicates: list[str]  #: the ids of those that were told the same before
    problems: list[ColumnProblem]  #: only where `partial` was asked for


@endpoints.add(
    "POST",
    "/v1/experiments/{name}/decisions/columns",
    Scope.DECIDE,
    {201: DecisionColumns, 200: DecisionColumns},
    takes=KeysRequest,
    headers={"Idempotency-Key": Key},
)
async def decide_for_keys(call: Call) -> Reply:
    """Draw an arm for each key. The same again with the same Idempotency-Key gets the same decisions."""
    server, name = call.server, call.of
    body: KeysRequest = call.body
    key = key_of(call.headers.get(b"idempotency-key"))
    context = None if body.context is None else context_of(body.context, server.settings.max_context)
    graph = None if body.graph is None else await graph_of_round(body.graph, call, name)
    async with withdrawing(server, graph):
        command = Decide(name, graph, context, key, body.available, keys=body.keys)
        drawn: Decided = await server.commits.written(command)
    draws, arms = drawn.draws, sorted(set(drawn.draws.arms))
    content = {
        "ids": f"{drawn.experiment}-",
        "first": draws.numbers[0],
        "rounds": draws.rounds,
        "arms": draws.arms,
        "labels": drawn.labels and {str(arm): drawn.labels[arm] for arm in arms},
        "probabilities": None if any(map(math.isnan, draws.probabilities)) else draws.probabilities,
        "reveals": {str(arm): drawn.graph.row(arm).tolist() for arm in arms},
        "expires_at": expires_at(drawn.at, drawn.expire_after),
        "duplicate": drawn.duplicate,
    }
    return Reply(content, 200 if drawn.duplicate else 201)


@endpoints.add(
    "POST",
    "/v1/feedback/columns",
    Scope.FEEDBACK,
    {200: FeedbackColumnsReply},
    takes=FeedbackColumns,
    single=True,
)
async def tell_in_columns(call: Call) -> Reply:
    """Tell the losses that decisions of one experiment revealed: all of them, or none, unless `partial` says so."""
    body: FeedbackColumns = call.body
    of, numbers = _numbers(body.ids)
    if call.access is not None and call.access.experiment not in {None, of[1:]}:
        raise _in_columns(unknown("#"))
    _check_lengths(body)
    graphs = [await _graph(each, place, call, of) for place, each in enumerate(body.graphs or ())]
    columns = store.ToldItems(numbers, body.sizes, body.losses, graphs, body.graph_of, body.arms, body.plain)
    try:
        await check_size(call.server, of, len(numbers), "body.ids")
        async with withdrawing(call.server, *graphs):
            told: Sequence[Settled | ServiceError] = await call.server.commits.written(Tell(of, columns, body.partial))
    except ServiceError as error:
        raise _in_columns(error) from error
    learned, duplicates, problems = 0, [], []
    for place, (id_, outcome) in enumerate(zip(body.ids, told, strict=True)):
        if isinstance(outcome, ServiceError):
            problem = {"id": id_, "status": outcome.status, "code": outcome.code, "detail": str(outcome)}
            problems.append({**problem, "path": _in_columns(placed(outcome, place)).path})
        elif outcome.duplicate:
            duplicates.append(id_)
        else:
            learned += outcome.learned
    return Reply({"learned": learned, "duplicates": duplicates, "problems": problems})


def _numbers(ids: list[str]) -> tuple[str, list[int]]:
    """Return the experiment of decisions, and their numbers."""
    try:
        of = parse(ids[0])[0]
    except ServiceError as error:
        raise _in_columns(error) from error
    begin, numbers = f"{of[1:]}-", []
    for place, id_ in enumerate(ids):
        digits = id_.removeprefix(begin)
        if len(digits) == len(id_) or not digits.isdecimal() or not digits.isascii() or len(digits) > 18:
            text = f"There is no decision {id_[:60]!r} of the same experiment as the first one."
            raise ServiceError(text, status=404, code="not_found", path=f"body.ids.{place}", value=id_)
        numbers.append(int(digits))
    return of, numbers


async def _graph(given: GraphMessage, place: int, call: Call, of: str) -> FeedbackGraph | KnownGraph | str:
    """Return one of the graphs that came with outcomes."""
    try:
        return await graph_of_round(given, call, of)
    except ServiceError as error:
        if (error.path or "").startswith("body.graph"):
            error.path = f"body.graphs.{place}{(error.path or '').removeprefix('body.graph')}"
        raise


def _in_columns(error: ServiceError) -> ServiceError:
    """Return the error of an item with the place that its value has in columns."""
    path = "body.items.0.id" if error.path in {"path", "path.id"} else error.path
    found = _ITEM.fullmatch(path or "")
    if found is None:
        return error
    where = "body.losses" if found[2] == "losses" else f"body.{_COLUMNS[found[2]]}.{found[1]}"
    return ServiceError(str(error), status=error.status, code=error.code, path=where, value=error.value)


def _check_lengths(body: FeedbackColumns) -> None:
    n, total = len(body.ids), sum(body.sizes)
    for name, column in (("sizes", body.sizes), ("graph_of", body.graph_of), ("arms", body.arms)):
        if column is not None and len(column) != n:
            raise invalid(f"{name} has one number for each of the {n:,} ids, not {len(column):,}.", f"body.{name}")
    if total != body.losses.size:
        text = f"losses has as many numbers as sizes says, {total:,}, and there are {body.losses.size:,}."
        raise invalid(text, "body.losses")
    if (body.graph_of is None) != (body.graphs is None):
        raise invalid("graphs and graph_of are sent together.", "body.graphs")
    if body.graph_of is not None and max(body.graph_of) >= len(body.graphs or ()):
        raise invalid("graph_of counts the graphs from 0, and one of it is beyond them.", "body.graph_of")
