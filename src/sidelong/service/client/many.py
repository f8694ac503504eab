"""What both clients ask for many decisions at once, and how they read the replies. Nothing is sent here.

A request holds at most 10,000 keys, or 1,000 decisions of an experiment without keys. A larger batch is several
requests, each of which is stored whole or not at all.
"""

from __future__ import annotations

import base64
import math
from hashlib import sha256
from typing import TYPE_CHECKING, Any, NamedTuple
from uuid import uuid4

import numpy as np

from sidelong.errors import LossError, ServiceError, UnknownDecisionError
from sidelong.graphs.columns import each_of
from sidelong.keys import read_keys
from sidelong.outcomes.revealed_columns import RevealedColumns
from sidelong.service.client.decisions import Learned, RemoteBatch
from sidelong.service.client.plain import asked_of, available_of, graph_of, json_of, key_of
from sidelong.service.client.wire import Question, experiment_path
from sidelong.tables import as_list, column, names_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    import numpy.typing as npt

    from sidelong.graphs import FeedbackGraph
    from sidelong.outcomes import Scale


#: Keys, losses in columns, and decisions of a table or without keys in one request.
MOST_KEYS, MOST_LOSSES, MOST_ROWS = 10_000, 250_000, 1_000

_COLUMNS, _ITEMS = "/v1/feedback/columns", "/v1/feedback"

#: The reply to no keys.
_NOTHING: dict[str, Any] = {
    "ids": "",
    "first": 1,
    "rounds": [],
    "arms": [],
    "labels": None,
    "probabilities": [],
    "reveals": {},
}


class Asking(NamedTuple):
    """The requests of one `ask_many`, and in which order its decisions come of what they answer."""

    questions: list[Question[RemoteBatch]]
    order: npt.NDArray[np.int64] | None
    nothing: RemoteBatch  #: what is answered where no key is asked for, since nothing is sent then

    def joined(self, answers: list[RemoteBatch]) -> RemoteBatch:
        """Return the decisions of all answers, in the order of the keys."""
        return RemoteBatch.join(answers or [self.nothing], self.order)


def ask(
    name: str,
    keys: Any,
    graph: Any,
    available: Iterable[int | str | bool] | None,
    context: Mapping[str, Any] | None,
    key: str | None,
) -> Asking:
    """Ask for decisions: for keys, or for so many of an experiment without keys."""
    listed = [None] * _count(keys) if isinstance(keys, int | np.integer) else read_keys(keys)
    most = MOST_ROWS if isinstance(keys, int | np.integer) else MOST_KEYS
    groups, order = _by_graph(graph, len(listed))
    listed_arms = None if available is None else available_of(available)  # once, since it may be an iterator
    under = uuid4().hex if key is None else key_of(key)
    questions: list[Question[RemoteBatch]] = []
    for shown, places in groups:
        asked = asked_of(shown, listed_arms, context)
        for k in range(0, len(places), most):
            some = [listed[place] for place in places[k : k + most]]
            questions.append(_question(name, some, asked, _key_of_request(under, len(questions))))
    return Asking(questions, order, RemoteBatch.read(_NOTHING, name, []))


def _key_of_request(key: str, number: int) -> str:
    """Return the Idempotency-Key of one of the requests of a batch: as long as others, and no key of another batch."""
    return key if number == 0 else sha256(f"{key} {number}".encode()).hexdigest()


def _count(given: int | np.integer[Any]) -> int:
    if isinstance(given, bool) or given < 0:
        text = f"Ask for keys, or say how many decisions to make, a whole number from 0 on, not {given!r}."
        raise ServiceError(text, status=422, code="invalid")
    return int(given)


def _question(name: str, keys: list[Any], asked: dict[str, Any], under: str) -> Question[RemoteBatch]:
    has_keys = keys[0] is not None
    wanted = {"keys": keys} if has_keys else {"count": len(keys)}
    body, headers = json_of({**wanted, **asked}, ServiceError)
    headers["Idempotency-Key"] = under

    def read(reply: Any, _: bool) -> RemoteBatch:  # noqa: FBT001  # what `Question` passes
        return RemoteBatch.read(reply, name, keys) if has_keys else RemoteBatch.read_items(reply, name)

    path = f"{experiment_path(name)}/decisions" + "/columns" * has_keys
    return Question("POST", path, read, body, headers, timeout=60.0)


def _by_graph(graph: Any, n: int) -> tuple[list[tuple[FeedbackGraph | None, list[int]]], npt.NDArray[np.int64] | None]:
    """Return the places of each graph, and where each place stands if they are taken graph after graph."""
    if not n:
        return [], None
    if not isinstance(graph, list | tuple):
        return [(graph, list(range(n)))], None
    bank, index = each_of(graph, n)
    groups = [(bank[g], np.flatnonzero(index == g).tolist()) for g in np.unique(index).tolist()]
    return list(groups), np.argsort(np.concatenate([places for _, places in groups]))


def tell(
    name: str, decisions: Any, losses: Any, graph: Any, scale: Scale | None, *, partial: bool
) -> Iterator[Question[Learned]]:
    """Tell the losses of decisions; each request reads how many it has learned."""
    table = decisions if losses is None else losses
    names = None if isinstance(table, RemoteBatch | RevealedColumns) else names_of(table)
    if names is not None:
        yield from _by_arm(table, names, decisions if losses is not None else None, graph, scale, partial=partial)
        return
    has_keys = not isinstance(decisions, RemoteBatch) or decisions.has_keys
    told = _in_columns(name, decisions, losses, graph, scale)
    ends = np.append(0, np.cumsum(told.sizes))
    first, n = 0, len(told.ids)
    while first < n:
        last = int(np.searchsorted(ends, ends[first] + MOST_LOSSES, "right")) - 1
        last = min(max(last, first + 1), first + (MOST_KEYS if has_keys else MOST_ROWS), n)
        some = slice(first, last)
        data = np.ascontiguousarray(told.losses[ends[first] : ends[last]], "<f8")
        content: dict[str, Any] = {"ids": told.ids[some], "sizes": told.sizes[some].tolist()}
        content |= {name: True for name, said in (("plain", told.plain), ("partial", partial)) if said}
        content["arms"] = told.arms[some].tolist()
        if told.graphs is not None:
            used, which = np.unique(told.graphs[1][some], return_inverse=True)
            content["graphs"] = [graph_of(told.graphs[0][g]) for g in used.tolist()]
            content["graph_of"] = which.reshape(-1).tolist()
        body, headers = json_of(content, LossError)
        body = b'%s,"losses":"%s"}' % (body[:-1], base64.b64encode(data.data))  # which is JSON as it is, and long
        yield Question("POST", _COLUMNS, _learned, body, headers, timeout=60.0)
        first = last


def _learned(reply: Any, repeated: bool) -> Learned:  # noqa: FBT001  # what `Question` passes
    # If the reply to an earlier attempt was lost, the repetition that the service sees is our own.
    count = reply["learned"] + (len(reply["duplicates"]) if repeated else 0)
    return Learned.of(count, ((each["id"], each) for each in reply["problems"]), _COLUMNS)


class _Columns(NamedTuple):
    """Feedback for decisions, in columns."""

    ids: list[str]
    arms: npt.NDArray[np.int64]
    sizes: npt.NDArray[np.int64]
    losses: npt.NDArray[np.float64]
    graphs: tuple[list[FeedbackGraph], npt.NDArray[np.int64]] | None
    plain: bool  #: whether these are losses: what is scaled here must not be scaled by the service


def _in_columns(name: str, decisions: Any, losses: Any, graph: Any, scale: Scale | None) -> _Columns:
    """Return losses that are told one after the other, or what outcomes revealed."""
    ids = _ids(name, decisions)
    if isinstance(losses, RevealedColumns):
        if graph is not None or scale is not None:
            raise LossError("What was revealed has its graphs, and losses in [0, 1]: tell it alone, without a scale.")
        if losses.arms.size != len(ids):
            raise LossError(f"This is what {losses.arms.size:,} plays revealed, of {len(ids):,} decisions.")
        graphs = list(losses.graph[0]), losses.graph[1]
        return _Columns(ids, losses.arms, np.diff(losses.offsets), losses.losses, graphs, plain=True)
    if not isinstance(decisions, RemoteBatch):
        raise LossError("Of ids, tell a table with the columns decision, arm and loss, or what outcomes revealed.")
    arms, sizes, shown = decisions.arms, np.diff(decisions.offsets), None
    if graph is not None:
        shown = each_of(graph, len(ids))
        pairs = zip(shown[1].tolist(), arms.tolist(), strict=True)
        sizes = np.array([shown[0][g].out_neighbors(arm).size for g, arm in pairs], np.int64)
    given = np.asarray(losses)
    if given.ndim != 1 or given.dtype.kind not in "fiu":
        raise LossError("losses must be numbers, one after the other in the order of batch.reveals, or a table.")
    if given.size != int(sizes.sum()):
        raise LossError(
            f"Losses must be one for each of the {int(sizes.sum()):,} revealed arms of these {len(ids):,} decisions, "
            f"in the order of batch.reveals; {given.size:,} were given."
        )
    values = given.astype(np.float64)
    if scale is not None:
        values = np.array(scale.losses(values.tolist()), np.float64)
    return _Columns(ids, arms, sizes, values, shown, plain=scale is not None)


def _ids(name: str, decisions: Any) -> list[str]:
    if isinstance(decisions, RemoteBatch):
        if decisions.experiment != name:
            raise UnknownDecisionError(
                f"Experiment {name!r} made no such decisions: {decisions.experiment!r} did, and is to be told."
            )
        return decisions.ids
    return [str(each) for each in decisions]


def _by_arm(
    table: Any, names: list[str], decisions: Any, graph: Any, scale: Scale | None, *, partial: bool
) -> Iterator[Question[Learned]]:
    """Tell a table of decision or key, arm and loss: by arm, so that the service sees what is missing."""
    if graph is not None:
        raise LossError("A table has no place for graphs: tell a batch with an array of losses, or what was revealed.")
    given = column(table, "loss", names)
    values = (given.astype(np.float64) if given.dtype.kind in "fiub" else given).tolist()
    if "decision" in names:
        of = list(map(str, as_list(column(table, "decision", names))))
    elif isinstance(decisions, RemoteBatch) and len(set(decisions.keys)) == len(decisions):
        ids = dict(zip(decisions.keys, decisions.ids, strict=True))
        of = [_known(ids, key) for key in as_list(column(table, "key", names))]
    else:
        raise LossError("A table names decisions in a column decision; or keys, beside a batch that has each key once.")
    items: dict[str, dict[str, Any]] = {}
    arms = as_list(column(table, "arm", names))
    if not len(of) == len(arms) == len(values):
        raise LossError(
            f"Columns are equally long, and these have {len(of):,}, {len(arms):,} and {len(values):,} rows."
        )
    for id_, arm, loss in zip(of, arms, values if scale is None else scale.losses(values), strict=True):
        items.setdefault(id_, {})[str(arm)] = _sent(loss)
    if sum(map(len, items.values())) < len(values):
        raise LossError("The table has two losses for one arm of a decision. Tell one.")
    more = {} if scale is None else {"plain": True}
    listed = [{"id": id_, "losses": losses, **more} for id_, losses in items.items()]
    for k in range(0, len(listed), MOST_ROWS):
        content = {"items": listed[k : k + MOST_ROWS], **({"partial": True} if partial else {})}
        yield Question("POST", _ITEMS, _learned_items, *json_of(content, LossError), timeout=60.0)


def _known(ids: Mapping[Any, str], key: Any) -> str:
    if key not in ids:
        raise UnknownDecisionError(f"No decision of this batch is for the key {key!r}.")
    return ids[key]


def _sent(loss: Any) -> Any:
    """Return a loss as JSON has it. What is none is text, so that the service refuses its decision, and not others."""
    return str(loss) if isinstance(loss, float) and not math.isfinite(loss) else loss


def _learned_items(reply: Any, repeated: bool) -> Learned:  # noqa: FBT001
    count = sum(1 for item in reply["items"] if item["learned"] or (repeated and item["duplicate"]))
    wrong = ((item["id"], item["problem"]) for item in reply["items"] if item["problem"] is not None)
    return Learned.of(count, wrong, _ITEMS)
