"""The log of an experiment as arrays: what was revealed in each round, and how likely that was before the draw.

It is read from Parquet. The service exports one row for each decision. Of its columns, `round`, `action`, `reward`,
`status`, `drawn_by`, `observed`, `losses` and `observe_probabilities` are used. A log that also has
`all_observe_probabilities`, the probability of observing each arm, gives a tighter certificate. If a play reveals only
its own loss, the columns `action`, `reward` and `pscore` are enough, as the Open Bandit Pipeline names them. A column
`loss` may take the place of `reward`, which is 1 - loss.

A row is left out only if its `status` is "cancelled" or if it was `drawn_by` the service itself. A row whose status is
null counts like any other: with its losses if it has them, else as a decision without feedback.
"""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from sidelong.errors import EvaluationError

if TYPE_CHECKING:
    from collections.abc import Mapping
    from os import PathLike
    from typing import BinaryIO

    import numpy.typing as npt

    Floats = npt.NDArray[np.float64]
    Integers = npt.NDArray[np.int64]

_LISTS = ("observed", "losses", "observe_probabilities")
#: Rows with these values are left out: cancelled decisions, and rounds of the service in which most arms could not be
#: seen.
_LEFT_OUT = {"status": ["cancelled"], "drawn_by": ["frozen", "fallback", "override"]}
_EVERY = "all_observe_probabilities"
_LEAST_PROBABILITY = 1e-140  # what is smaller counts as this, so that squares of weights do not overflow


class DecisionLog(NamedTuple):
    """Decisions in the order of their rounds, without those that were cancelled."""

    n_arms: int
    told: npt.NDArray[np.bool_]  #: of each round, whether its losses are known
    cost: Floats  #: of each round, the loss of the arm that was played; NaN if it is not known
    round: Integers  #: of each revealed loss, its round, counted from 0; ascending
    arm: Integers  #: its arm
    loss: Floats  #: the loss
    probability: Floats  #: the probability, before the draw, that it would be revealed
    chances: Floats | None = None  #: of each round, that probability for every arm, where the log holds it
    spent: Floats | None = (
        None  #: what each revealed arm cost, where the log says so; NaN in rounds of which it does not
    )

    @property
    def n_rounds(self) -> int:
        """How many decisions there are."""
        return self.told.size

    @property
    def n_told(self) -> int:
        """How many of them have feedback."""
        return int(self.told.sum())


def read_log(
    source: str | PathLike[str] | BinaryIO,
    n_arms: int | None = None,
    most_losses: int | None = None,
    where: Mapping[str, Any] | None = None,
    *,
    trusted: bool = False,
) -> DecisionLog:
    """Read a log from a Parquet file.

    Args:
        source: the file.
        n_arms: how many arms there are, where the file does not say and the highest arm is not the last.
        most_losses: a log with more is refused before it is read.
        where: the decisions alone whose context had these values, such as {"weekday": "Monday"}. What is known before
            a draw may be chosen by; all estimates then hold for such decisions.
        trusted: whether it may lack the probabilities, as in `from_table`.
    """
    from pyarrow import ArrowException, parquet  # noqa: PLC0415  # an extra

    wanted = {"round", "action", "reward", "loss", "pscore", "status", "drawn_by", "cost", "costs", *_LISTS, _EVERY}
    wanted |= {"context"} if where else set()
    try:
        with parquet.ParquetFile(source) as file:
            _check_size(file.metadata, most_losses)
            about = (file.schema_arrow.metadata or {}).get(b"sidelong.experiment")
            table = file.read([name for name in file.schema_arrow.names if name in wanted])
    except (OSError, ArrowException) as error:
        raise EvaluationError(f"The log cannot be read as Parquet: {error}") from error
    if n_arms is None and about is not None:
        n_arms = _declared(about)
    if where:
        table = _where(table, where)
    return from_table(table, n_arms, trusted=trusted)


def _where(table: Any, where: Mapping[str, Any]) -> Any:
    """Return the rows whose context, which is JSON, has some values."""
    import pyarrow as pa  # noqa: PLC0415

    if "context" not in table.column_names:
        raise EvaluationError("where needs a column context, which holds JSON, and this log has none.")
    try:
        contexts = [None if text is None else json.loads(text) for text in table["context"].to_pylist()]
    except (TypeError, ValueError) as error:
        raise EvaluationError(f"The column context must hold JSON: {error}.") from error
    kept = [isinstance(each, dict) and all(_same(each.get(name), where[name]) for name in where) for each in contexts]
    if not any(kept):
        raise EvaluationError(f"No decision of the log had a context with {json.dumps(dict(where), default=str)}.")
    return table.filter(pa.array(kept))


def _same(found: Any, wanted: Any) -> bool:
    """Tell whether two values of JSON are the same: 1 and 1.0 are, and 1 and true are not."""
    return bool(found == wanted) and isinstance(found, bool) == isinstance(wanted, bool)


def _declared(about: bytes) -> int:
    try:
        n_arms = json.loads(about)["n_arms"]
    except (ValueError, KeyError, TypeError):
        n_arms = None
    if type(n_arms) is not int or n_arms < 1:
        raise EvaluationError("The log's metadata, sidelong.experiment, must say how many arms there are: n_arms.")
    return n_arms


def _check_size(metadata: Any, most: int | None) -> None:
    """Refuse a log with too many losses, each of which is a value of the longest column."""
    groups = [metadata.row_group(index) for index in range(metadata.num_row_groups)]
    size = sum(max(group.column(index).num_values for index in range(group.num_columns)) for group in groups)
    if most is not None and size > most:
        raise EvaluationError(
            f"The log has {size:,} losses, and at most {most:,} are read here. Use: sidelong evaluate FILE_OR_ADDRESS"
        )


def from_table(table: Any, n_arms: int | None = None, *, trusted: bool = False) -> DecisionLog:
    """Make a log of an Arrow table with these columns; if it is `trusted`, every probability is taken to be 1."""
    if "action" not in table.column_names or not {"reward", "loss"} & set(table.column_names):
        raise EvaluationError(
            f"A log has a column action, and reward or loss; this one has: {', '.join(table.column_names) or 'none'}."
        )
    for name, values in _LEFT_OUT.items():
        if name in table.column_names:
            table = _without(table, name, values)
    if "round" in table.column_names:
        table = table.sort_by("round")
    cost = _numbers(table, "loss") if "loss" in table.column_names else 1.0 - _numbers(table, "reward")
    action = _numbers(table, "action")
    if trusted:
        table = _certain(table)
    if set(_LISTS) <= set(table.column_names):
        told, row, arm, loss, probability = _revealed(table)
    elif trusted or "pscore" in table.column_names:
        told = ~np.isnan(cost)
        row = np.flatnonzero(told)
        arm, loss = action[told], cost[told]
        probability = np.ones(row.size) if trusted else _numbers(table, "pscore")[told]
    else:
        raise EvaluationError(f"A log has a column pscore, or all of {', '.join(_LISTS)}; this one has neither.")
    K = _count(action, arm, n_arms)
    revealed = _checked(K, row, arm, loss, probability)
    chances = _chances(table, K, row, revealed)
    return DecisionLog(
        K, told, cost, row, *revealed, chances, _spent(table, told, np.bincount(row, minlength=told.size))
    )


def _spent(table: Any, told: npt.NDArray[np.bool_], sizes: Integers) -> Floats | None:
    """Return what revealed arms cost, if the log has a column costs of lists, or cost of the arms that were played."""
    if not {"cost", "costs"} & set(table.column_names):
        return None
    if set(_LISTS) <= set(table.column_names) and "costs" in table.column_names:
        given = zip(table["costs"].to_pylist(), sizes.tolist(), told.tolist(), strict=True)
        lists = [[math.nan] * size if each is None else each for each, size, known in given if known]
        if [len(each) for each in lists] != sizes[told].tolist():
            raise EvaluationError(
                "The lists costs and losses of a round must be equally long. In some rounds they are not."
            )
        return np.array([cost for each in lists for cost in each], np.float64)
    if (sizes[told] != 1).any() or "cost" not in table.column_names:
        return None
    return _numbers(table, "cost")[told]


def _certain(table: Any) -> Any:
    """Return a table whose losses were all certain to be revealed, where it has lists of what was."""
    import pyarrow as pa  # noqa: PLC0415

    names = set(table.column_names)
    table = table.drop_columns(list({_LISTS[2], _EVERY} & names))
    if not set(_LISTS[:2]) <= names:
        return table
    ones = [None if each is None else [1.0] * len(each) for each in table[_LISTS[1]].to_pylist()]
    return table.append_column(_LISTS[2], pa.array(ones, pa.list_(pa.float64())))


def _without(table: Any, name: str, values: list[str]) -> Any:
    """Return the rows that have none of these values in a column; rows without a value stay."""
    import pyarrow as pa  # noqa: PLC0415
    from pyarrow import compute  # noqa: PLC0415

    try:
        column = table[name].cast("string")
    except pa.ArrowException as error:
        raise EvaluationError(f"The column {name} must hold text: {error}") from error
    return table.filter(compute.invert(compute.is_in(column, pa.array(values))))


def _numbers(table: Any, name: str) -> Floats:
    from pyarrow import ArrowException  # noqa: PLC0415

    try:
        column = table[name].cast("float64").to_numpy()
    except ArrowException as error:
        raise EvaluationError(f"The column {name} must hold numbers: {error}") from error
    return np.asarray(column, np.float64)  # null is NaN


def _revealed(table: Any) -> tuple[npt.NDArray[np.bool_], Integers, Floats, Floats, Floats]:
    """Return which rounds have feedback; and the round, arm, loss and probability of each revealed loss."""
    from pyarrow import compute  # noqa: PLC0415

    known = [compute.is_valid(table[name]).to_numpy() for name in _LISTS]
    told = known[0] & known[1]
    if (told & ~known[2]).any():
        raise EvaluationError(
            "A round of the log has losses and no observe_probabilities: its learner draws without knowing them, as "
            "ts-n does. So only what was played can be evaluated."
        )
    table = table.filter(told)
    lengths = [compute.list_value_length(table[name]).to_numpy() for name in _LISTS]
    if not all(np.array_equal(lengths[0], other) for other in lengths[1:]):
        raise EvaluationError(
            f"The lists {', '.join(_LISTS)} of a round must be equally long. In some rounds they are not."
        )
    row = np.repeat(np.flatnonzero(told), lengths[0])
    arm, loss, probability = (np.asarray(compute.list_flatten(table[name]).to_numpy(), np.float64) for name in _LISTS)
    return told, row, arm, loss, probability


def _chances(table: Any, K: int, row: Integers, revealed: tuple[Integers, Floats, Floats]) -> Floats | None:
    """Return the probability of observing each arm in each round, if the log has it."""
    from pyarrow import compute  # noqa: PLC0415

    if _EVERY not in table.column_names:
        return None
    if missing := [name for name in _LISTS if name not in table.column_names]:
        raise EvaluationError(
            f"A log with {_EVERY} needs {', '.join(missing)} beside it, the lists of what was revealed."
        )
    sizes = compute.list_value_length(table[_EVERY]).to_numpy()
    if not (sizes == K).all():  # null is NaN
        raise EvaluationError(f"A list of {_EVERY} has one number for each of the {K} arms. In some rounds it has not.")
    found = np.asarray(compute.list_flatten(table[_EVERY]).to_numpy(), np.float64).reshape(-1, K)
    arm, _, P = revealed
    if not ((found >= 0) & (found <= 1 + 1e-9)).all() or not np.allclose(found[row, arm], P, rtol=1e-9, atol=0.0):
        raise EvaluationError(
            f"The numbers of {_EVERY} must be probabilities, and those of revealed arms as in observe_probabilities."
        )
    return np.minimum(found, 1.0)


def _count(action: Floats, arm: Floats, n_arms: int | None) -> int:
    highest = max(action.max(initial=-1), arm.max(initial=-1))
    if n_arms is None:
        return int(highest) + 1 if highest >= 0 else 1
    if highest >= n_arms:
        raise EvaluationError(f"The log has an arm {highest:g}, and there are {n_arms} arms, from 0 to {n_arms - 1}.")
    return n_arms


def _checked(K: int, row: Integers, arm: Floats, loss: Floats, P: Floats) -> tuple[Integers, Floats, Floats]:
    """Return arms, losses and probabilities, if they can be that."""
    for right, rule, values in (
        ((arm >= 0) & (arm == np.floor(arm)), "an arm is a whole number from 0", arm),
        ((loss >= 0) & (loss <= 1), "a loss, and a reward, is a number in [0, 1]", loss),
        ((P > 0) & (P <= 1 + 1e-9), "a probability is above 0, and at most 1", P),
    ):
        if not right.all():
            first = np.flatnonzero(~right)[0]
            raise EvaluationError(
                f"In a log {rule}; in row {row[first] + 1} (without cancelled ones) it is {values[first]:.12g}."
            )
    whole = arm.astype(np.int64)
    if np.unique(row * K + whole).size < whole.size:
        raise EvaluationError("A round of the log lists an arm twice among those it reveals. List each arm once.")
    return whole, loss, np.clip(P, _LEAST_PROBABILITY, 1.0)
