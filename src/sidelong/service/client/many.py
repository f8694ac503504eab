"""What both clients ask for many decisions at once, and how they read the replies. Nothing is sent here.

A request holds at most 10,000 keys, or 1,000 decisions of an experiment without keys. A larger batch is several
requests, each of which is stored whole or not at all.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping
from hashlib import sha256
from typing import TYPE_CHECKING, Any, NamedTuple
from uuid import uuid4

import numpy as np

from sidelong.errors import AdviceError, CostError, FeatureError, LossError, ServiceError, UnknownDecisionError
from sidelong.graphs.columns import each_of
from sidelong.keys import read_keys
from sidelong.outcomes.revealed_columns import RevealedColumns
from sidelong.service.client.decisions import Learned, RemoteBatch
from sidelong.service.client.plain import advice_of, asked_of, available_of, graph_of, json_of, key_of
from sidelong.service.client.wire import Question, experiment_path
from sidelong.tables import as_list, column, names_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    import numpy.typing as npt

    from sidelong.graphs import FeedbackGraph


#: Keys, losses in columns, and decisions of a table or without keys in one request.
MOST_KEYS, MOST_LOSSES, MOST_ROWS = 10_000, 250_000, 1_000

_FEEDBACK = "/v1/feedback"

#: The reply to no keys.
_NOTHING: dict[str, Any] = {
    "ids": [],
    "rounds": [],
    "arms": [],
    "labels": None,
    "probabilities": [],
    "drawn_by": [],
    "reveals": {},
    "absent": None,
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
    context: Mapping[str, Any] | Sequence[Mapping[str, Any]] | None,
    key: str | None,
    advice: Any = None,
) -> Asking:
    """Ask for decisions: for keys, or for so many of an experiment without keys."""
    listed = [None] * _count(keys) if isinstance(keys, int | np.integer) else read_keys(keys)
    most = MOST_ROWS if isinstance(keys, int | np.integer) else MOST_KEYS
    groups, order = _by_graph(graph, len(listed))
    listed_arms = None if available is None else available_of(available)  # once, since it may be an iterator
    under, advised = uuid4().hex if key is None else key_of(key), advice_of(advice)
    questions: list[Question[RemoteBatch]] = []
    for shown, places in groups:
        for k in range(0, len(places), most):
            chosen = places[k : k + most]
            asked = asked_of(shown, listed_arms, _context_at(context, chosen, listed))
            some = [listed[place] for place in chosen]
            told = {} if advice is None else {"advice": _advice_at(advised, chosen, listed)}
            questions.append(_question(name, some, asked | told, _key_of_request(under, len(questions))))
    return Asking(questions, order, RemoteBatch.read(_NOTHING, name, []))


def _context_at(
    context: Mapping[str, Any] | Sequence[Mapping[str, Any]] | None, places: list[int], keys: list[Any]
) -> Mapping[str, Any] | list[Mapping[str, Any]] | None:
    """Return the context of some of the keys, which is one for all or a list."""
    if context is None or isinstance(context, Mapping):
        return context
    if len(context) != len(keys):
        raise FeatureError(f"The context is one for all, or a list of one for each of the {len(keys):,} keys.")
    return [context[place] for place in places]


def _advice_at(advice: Any, places: list[int], keys: list[Any]) -> Any:
    """Return the advice for some of the keys, of which each adviser has a column; without keys, it is for all."""
    if isinstance(advice, dict):
        return {name: _advice_at(each, places, keys) for name, each in advice.items()}
    if keys[0] is None or advice is None:
        return advice
    if not isinstance(advice, list) or len(advice) != len(keys):
        raise AdviceError(f"Advice has an arm, or probabilities, for each of the {len(keys):,} keys.")
    return [advice[place] for place in places]


def _key_of_request(key: str, number: int) -> str:
    """Return the Idempotency-Key of one of the requests of a batch: as long as others, and no key of another batch."""
    return key if number == 0 else sha256(f"{key} {number}".encode()).hexdigest()


def _count(given: int | np.integer[Any]) -> int:
    if isinstance(given, bool) or given < 0:
        text = f"Ask for keys, or say how many decisions to make, a whole number from 0 on, not {given!r}."
        raise ServiceError(text, status=422, code="invalid")
    return int(given)


def _question(name: str, keys: list[Any], asked: dict[str, Any], under: str) -> Question[RemoteBatch]:
    wanted = {"count": len(keys)} if keys[0] is None else {"keys": keys}
    body, headers = json_of({**wanted, **asked}, ServiceError)
    headers["Idempotency-Key"] = under

    def read(reply: Any, _: bool) -> RemoteBatch:  # noqa: FBT001  # what `Question` passes
        return RemoteBatch.read(reply, name, keys)

    return Question("POST", f"{experiment_path(name)}/decisions", read, body, headers, timeout=60.0)


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
    name: str, decisions: Any, losses: Any, graph: Any, *, partial: bool, costs: Any = None
) -> Iterator[Question[Learned]]:
    """Tell the losses of decisions; each request reads how many it has learned."""
    table = decisions if losses is None else losses
    names = None if isinstance(table, RemoteBatch | RevealedColumns) else names_of(table)
    if names is None:
        has_keys = not isinstance(decisions, RemoteBatch) or decisions.has_keys
        told = _in_columns(name, decisions, losses, graph)
    else:
        has_keys = False  # for all that is known here
        told = _by_arm(table, names, decisions if losses is not None else None, graph)
    if costs is not None:
        told = told._replace(costs=_costs(costs, told.losses.size))
    ends = np.append(0, np.cumsum(told.sizes))
    first, n = 0, len(told.ids)
    while first < n:
        last = int(np.searchsorted(ends, ends[first] + MOST_LOSSES, "right")) - 1
        last = min(max(last, first + 1), first + (MOST_KEYS if has_keys else MOST_ROWS), n)
        some, of = slice(first, last), slice(ends[first], ends[last])
        content: dict[str, Any] = {"ids": told.ids[some], "sizes": told.sizes[some].tolist()}
        content |= {name: True for name, said in (("plain", told.plain), ("partial", partial)) if said}
        if told.arms is not None:
            content["arms"] = told.arms[some].tolist()
        if told.reveals is not None:
            content["reveals"] = told.reveals[of]
        if told.graphs is not None:
            used, which = np.unique(told.graphs[1][some], return_inverse=True)
            content["graphs"] = [graph_of(told.graphs[0][g]) for g in used.tolist()]
            content["graph_of"] = which.reshape(-1).tolist()
        body, headers = json_of(content, LossError)
        for numbers, values in (("losses", told.losses), ("costs", told.costs)):
            if values is not None:  # base64 is JSON as it is, and long
                data = base64.b64encode(np.ascontiguousarray(values[of], "<f8").data)
                body = b'%s,"%s":"%s"}' % (body[:-1], numbers.encode(), data)
        yield Question("POST", _FEEDBACK, _learned, body, headers, timeout=60.0)
        first = last


def _learned(reply: Any, repeated: bool) -> Learned:  # noqa: FBT001  # what `Question` passes
    # If the reply to an earlier attempt was lost, the repetition that the service sees is our own.
    count = reply["learned"] + (len(reply["duplicates"]) if repeated else 0)
    return Learned.of(count, ((each["id"], each) for each in reply["problems"]), _FEEDBACK)


class _Columns(NamedTuple):
    """Feedback for decisions, in columns."""

    ids: list[str]
    arms: npt.NDArray[np.int64] | None  #: that were played
    sizes: npt.NDArray[np.int64]
    losses: npt.NDArray[np.float64]
    graphs: tuple[list[FeedbackGraph], npt.NDArray[np.int64]] | None
    plain: bool = False  #: whether these are losses in [0, 1], which an experiment with a scale refuses
    reveals: list[str] | None = None  #: the arm of each loss, where they are not in the order of what is revealed
    costs: npt.NDArray[np.float64] | None = None  #: as losses, under a ceiling


def _in_columns(name: str, decisions: Any, losses: Any, graph: Any) -> _Columns:
    """Return losses that are told one after the other, or what outcomes revealed."""
    ids = _ids(name, decisions)
    if isinstance(losses, RevealedColumns):
        if graph is not None:
            raise LossError("What was revealed has its graphs: tell it alone.")
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
    return _Columns(ids, arms, sizes, given.astype(np.float64), shown)


def _ids(name: str, decisions: Any) -> list[str]:
    if isinstance(decisions, RemoteBatch):
        if decisions.experiment != name:
            raise UnknownDecisionError(
                f"Experiment {name!r} made no such decisions: {decisions.experiment!r} did, and is to be told."
            )
        return decisions.ids
    return [str(each) for each in decisions]


def _by_arm(table: Any, names: list[str], decisions: Any, graph: Any) -> _Columns:
    """Return a table of decision or key, arm and loss: by arm, so that the service sees what is missing."""
    if graph is not None:
        raise LossError("A table has no place for graphs: tell a batch with an array of losses, or what was revealed.")
    given = column(table, "loss", names)
    if "decision" in names:
        of = list(map(str, as_list(column(table, "decision", names))))
    elif isinstance(decisions, RemoteBatch) and len(set(decisions.keys)) == len(decisions):
        ids = dict(zip(decisions.keys, decisions.ids, strict=True))
        of = [_known(ids, key) for key in as_list(column(table, "key", names))]
    else:
        raise LossError("A table names decisions in a column decision; or keys, beside a batch that has each key once.")
    arms = list(map(str, as_list(column(table, "arm", names))))
    if not len(of) == len(arms) == len(given):
        raise LossError(f"Columns are equally long, and these have {len(of):,}, {len(arms):,} and {len(given):,} rows.")
    if len(set(zip(of, arms, strict=True))) < len(of):
        raise LossError("The table has two losses for one arm of a decision. Tell one.")
    if given.dtype.kind not in "fiub":
        wrong = next(row for row, loss in enumerate(as_list(given)) if not isinstance(loss, int | float))
        text = f"Decision {of[wrong]}: the loss of arm {arms[wrong]} must be a number, not {as_list(given)[wrong]!r}."
        raise LossError(text)
    values = given.astype(np.float64)
    places = {id_: place for place, id_ in enumerate(dict.fromkeys(of))}
    whose = np.array([places[id_] for id_ in of], np.int64)
    order = np.argsort(whose, kind="stable")  # the rows of a decision one after the other
    sizes, reveals = np.bincount(whose, minlength=len(places)), [arms[row] for row in order.tolist()]
    costs = _costs(column(table, "cost", names), values.size)[order] if "cost" in names else None
    return _Columns(list(places), None, sizes, values[order], None, reveals=reveals, costs=costs)


def _costs(given: Any, n: int) -> npt.NDArray[np.float64]:
    """Return costs, which come one for each loss."""
    costs = np.asarray(given)
    if costs.ndim != 1 or costs.dtype.kind not in "fiu" or costs.size != n:
        raise CostError(f"costs must be one number for each of the {n:,} losses, in their order.")
    return costs.astype(np.float64)


def _known(ids: Mapping[Any, str], key: Any) -> str:
    if key not in ids:
        raise UnknownDecisionError(f"No decision of this batch is for the key {key!r}.")
    return ids[key]
