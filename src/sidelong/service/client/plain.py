"""Values as JSON has them: whatever an agent takes can be sent."""

from __future__ import annotations

import json
import math
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from numbers import Real
from typing import TYPE_CHECKING, Any

import numpy as np

from sidelong._install import pip_install
from sidelong.checks import is_whole
from sidelong.errors import EvaluationError, GraphError, LossError, ServiceError, SidelongError
from sidelong.tables import as_list

if TYPE_CHECKING:
    from sidelong.graphs import FeedbackGraph
    from sidelong.outcomes import Revealed
    from sidelong.outcomes.revealed import Losses
    from sidelong.service.client.decisions import RemoteDecision

    Log = str | os.PathLike[str] | Mapping[str, Iterable[Any]]

#: The columns of an exported log that another experiment learns from.
_LOGGED = ("action", "observed", "losses", "observe_probabilities")
_UNSEEN = ("frozen", "fallback", "override")  # rounds in which most arms could not be seen, or nobody drew the arm


def json_of(content: Any, error: type[SidelongError]) -> tuple[bytes, dict[str, str]]:
    """Return content as a body of JSON, with the header that says so; `error` is what to raise if it cannot be one."""
    try:
        text = json.dumps(content, allow_nan=False, separators=(",", ":"), default=_plain)
    except (TypeError, ValueError) as found:
        raise error(f"This cannot be sent as JSON: {found}.") from found
    return text.encode(), {"Content-Type": "application/json"}


def graph_of(graph: FeedbackGraph) -> dict[str, Any]:
    """Return a graph as the service reads it."""
    try:
        if graph.representation == "intervals":
            return {"low": graph.arrays.start.tolist(), "high": graph.arrays.stop.tolist()}
        return {"n_arms": graph.n_arms, "edges": graph.edges().tolist()}
    except AttributeError:
        raise GraphError(
            f"graph must be a FeedbackGraph, not {type(graph).__name__}. "
            f"Make one with sidelong.graphs or FeedbackGraph.from_matrix."
        ) from None


def losses_of(losses: Losses, error: type[SidelongError] = LossError) -> Any:
    """Return losses or costs as JSON has them. Whether they are right is for the service to say; JSON has no NaN."""
    what = "losses" if error is LossError else "costs"
    if not isinstance(losses, Mapping | Sequence | np.ndarray) or isinstance(losses, str | bytes):
        raise error(f"{what} must be given by arm, or a list in the order of the revealed arms, not {losses!r}.")
    pairs = losses.items() if isinstance(losses, Mapping) else enumerate(losses)
    for arm, value in pairs:
        if isinstance(value, float | np.floating) and not math.isfinite(value):
            which = f"arm {arm!r}" if isinstance(losses, Mapping) else f"place {arm}"
            rule = (
                "The loss of {} must be a number in [0, 1]" if error is LossError else "The cost of {} must be finite"
            )
            raise error(f"{rule.format(which)}, not {value!r}.")
    return {_plain_arm(arm): value for arm, value in losses.items()} if isinstance(losses, Mapping) else list(losses)


def available_of(available: Iterable[int | str | bool]) -> list[Any]:
    """Return arms as JSON has them. Whether there are such is for the service to say."""
    if isinstance(available, str | bytes) or not isinstance(available, Iterable):
        raise GraphError(f"available must be arms, by number or label, or a flag for each arm, not {available!r}.")
    return list(available)


def advice_of(advice: Any) -> Any:
    """Return advice as JSON has it: of one decision, or in columns. Whether it is any is for the service to say."""
    if isinstance(advice, Mapping):
        return {str(name): advice_of(each) for name, each in advice.items()}
    listed = as_list(advice) if hasattr(advice, "__iter__") and not isinstance(advice, str) else advice
    if isinstance(listed, list):
        made = [advice_of(each) for each in listed]
        return None if made and all(isinstance(each, float) and math.isnan(each) for each in made) else made
    return int(listed) if is_whole(listed) else listed


def asked_of(
    graph: FeedbackGraph | None,
    available: Iterable[int | str | bool] | None,
    context: Mapping[str, Any] | Sequence[Mapping[str, Any]] | None,
    advice: Any = None,
) -> dict[str, Any]:
    """Return what a request for decisions says of its round: nothing of what was not given."""
    asked: dict[str, Any] = {} if graph is None else {"graph": graph_of(graph)}
    asked |= {} if available is None else {"available": available_of(available)}
    asked |= {} if advice is None else {"advice": advice_of(advice)}
    if context is None:
        return asked
    return asked | {"context": dict(context) if isinstance(context, Mapping) else list(map(dict, context))}


def opened(
    revealed: Revealed, graph: FeedbackGraph | None, decision: RemoteDecision | str
) -> tuple[dict[int, float], FeedbackGraph]:
    """Return what an outcome revealed as losses by arm and the graph of the round, if it is one of this decision."""
    if graph is not None:
        raise LossError("What was revealed has its graph: tell it alone.")
    if not isinstance(decision, str) and decision.carried_out != revealed.arm:
        raise LossError(
            f"This is what arm {revealed.arm} revealed, and decision {decision.id} plays arm {decision.carried_out}. "
            f"Each decision is told its own outcome."
        )
    arms = revealed.graph.out_neighbors(revealed.arm).tolist()
    return dict(zip(arms, revealed.losses.tolist(), strict=True)), revealed.graph


def columns_of(log: Log) -> dict[str, list[Any]]:
    """Return a log in lists: what was given by name, or the exported log of an experiment."""
    if isinstance(log, str | os.PathLike):
        return _exported_log(log)
    return {
        name: column.to_pylist()
        if hasattr(column, "to_pylist")
        else [each.tolist() if hasattr(each, "tolist") else each for each in column]
        for name, column in log.items()
    }


def _exported_log(path: str | os.PathLike[str]) -> dict[str, list[Any]]:
    """Return the columns that `log` of an experiment takes: of the rounds that were told, in their order."""
    try:
        import pyarrow as pa  # noqa: PLC0415  # an extra
        from pyarrow import compute, parquet  # noqa: PLC0415
    except ImportError as error:
        raise EvaluationError(f"An exported log is read with pyarrow. {pip_install('pyarrow')}") from error
    try:
        table = parquet.read_table(path)
    except (OSError, pa.ArrowException) as error:
        raise EvaluationError(f"The log cannot be read as Parquet: {error}") from error
    lacks = {*_LOGGED, "round", "drawn_by"} - set(table.column_names)
    if lacks:
        raise EvaluationError(f"{path} is not the exported log of an experiment: it has no column {min(lacks)}.")
    seen = compute.invert(compute.is_in(table["drawn_by"], pa.array(_UNSEEN)))
    table = table.filter(compute.and_(seen, compute.is_valid(table["losses"]))).sort_by("round")
    there = set(table.column_names)
    has_costs = "costs" in there and table["costs"].null_count == 0
    names = [*_LOGGED, *(["key"] if "key" in there else []), *(["costs"] if has_costs else [])]
    return {name: table[name].to_pylist() for name in names}


def key_of(key: str) -> str:
    """Return a key, if the service takes it: a batch is several requests, and the first must not be stored alone."""
    if re.fullmatch(r"[\x21-\x7e]{1,200}", key) is None:
        raise ServiceError(
            f"A key has 1 to 200 characters of printable ASCII, without blanks, not {key!r}.",
            status=422,
            code="invalid",
        )
    return key


def _plain(value: Any) -> Any:
    if isinstance(value, np.generic | np.ndarray):
        return value.tolist()
    if isinstance(value, Real):  # a fraction
        return float(value)
    raise TypeError(f"{type(value).__name__} is not a value of JSON")


def _plain_arm(arm: Any) -> str:
    """Return an arm as JSON has it: 3, 3.0 and an integer of NumPy are the same to an agent."""
    whole = isinstance(arm, Real) and not isinstance(arm, bool) and math.isfinite(arm) and arm == math.floor(arm)
    return str(math.floor(arm)) if whole else str(arm)
