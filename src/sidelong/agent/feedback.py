"""The forms in which losses come: by arm, in order, in tables, and as numbers of any kind."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from sidelong.checks import as_float, is_whole, short
from sidelong.errors import LossError
from sidelong.tables import as_list, column, in_order, objects

if TYPE_CHECKING:
    import numpy.typing as npt

    Integers = npt.NDArray[np.int64]


class LossColumns(NamedTuple):
    """The losses that `tell` was given."""

    values: npt.NDArray[np.float64]  #: of all decisions, one after the other; NaN where something else was given
    given: np.ndarray  #: the same as it was given, for messages
    arms: Integers | None = None  #: of each value, in any order; None if they are in the order of what is revealed
    of: Integers | None = None  #: the decision of each value, if `arms` are given


def read_floats(losses: Any, reveals: list[int], slots: Any) -> int:
    """Write losses into `slots` if they are what most are: floats by arm in a dict, or in order; return how many.

    -1 says that they are something else, and what is in the slots means nothing. Whether they fit is not looked at.
    """
    if type(losses) is dict:
        values: Any = map(losses.get, reveals)
    elif type(losses) is list or type(losses) is tuple:
        values = losses
    elif type(losses) is np.ndarray and losses.dtype == np.float64 and losses.shape == (len(reveals),):
        slots[: losses.size] = losses
        return losses.size
    else:
        return -1
    if len(losses) != len(reveals):
        return -1
    k = 0  # a loop by hand: every nanosecond of it is that of a decision
    for value in values:
        if type(value) is not float:
            return -1
        slots[k] = value
        k += 1
    return k


def of_one(losses: Any, labels: Sequence[str] | None = None) -> LossColumns:
    """Return the losses of one decision, by arm, of which some may have labels, or in the order of the revealed arms.

    Raises:
        LossError: they are neither.
    """
    if isinstance(losses, Mapping):
        arms = [_arm(arm, labels) for arm in losses]
        values = list(losses.values())
        return LossColumns(_floats(values), objects(values), np.array(arms, np.int64), np.zeros(len(arms), np.int64))
    if isinstance(losses, np.ndarray) and losses.ndim == 1:
        return LossColumns(_floats(losses.tolist()), losses)
    if isinstance(losses, Sequence) and not isinstance(losses, str | bytes):
        return LossColumns(_floats(list(losses)), objects(list(losses)))
    raise LossError(f"losses must be given by arm, or a list in the order of the revealed arms, not {short(losses)}.")


def _arm(arm: Any, labels: Sequence[str] | None) -> int:
    if isinstance(arm, str) and labels is not None and arm in labels:
        return labels.index(arm)
    try:
        whole = int(arm) if not isinstance(arm, str) else None
    except (TypeError, ValueError, OverflowError):  # not even a number
        whole = None
    if whole is None or whole != arm:
        called = f", or called by their labels, such as {short(labels[0])}" if labels else ""
        raise LossError(f"Arm {arm!r} was not revealed, and a loss was told for it. Arms are whole numbers{called}.")
    return whole


def of_many(given: Any) -> LossColumns:
    """Return losses that come one after the other, decision after decision."""
    if not isinstance(given, np.ndarray):
        if not in_order(given):
            raise LossError(
                f"losses must be an array in the order of the revealed arms, or a table, not {short(given)}."
            )
        given = np.asarray(given) if hasattr(given, "__array__") else objects(list(given))
    if given.ndim != 1:
        raise LossError(f"losses must be one number after the other, and this has {given.ndim} dimensions.")
    if isinstance(given, np.ma.MaskedArray):
        given = objects(given.tolist())  # None where it is masked
    return LossColumns(given.astype(np.float64) if given.dtype.kind in "fiu" else _floats(given.tolist()), given)


def of_table(table: Any, names: list[str], by: str) -> tuple[LossColumns, Integers, list[Any]]:
    """Return the losses of a table, its column of arms, and the column that names the decisions, `by` id or key."""
    heard, arms = of_many(column(table, "loss", names)), column(table, "arm", names)
    named = as_list(column(table, by, names))
    for name, rows in ((by, len(named)), ("loss", heard.values.size)):
        if rows != arms.size:
            raise LossError(
                f"The columns of a table are equally long; {name} has {rows:,} rows, and arm {arms.size:,}."
            )
    for at, arm in enumerate(arms.tolist() if arms.dtype.kind not in "iu" else []):
        if not is_whole(arm) or abs(arm) >= 2**63:
            raise LossError(
                f"The column arm has the number of one arm in each row, and row {at}, of the {by} {short(named[at])}, "
                f"has {short(arm)}. Give a row for each arm that a decision reveals."
            )
    return heard, arms.astype(np.int64), named


def _floats(values: list[Any]) -> npt.NDArray[np.float64]:
    """Return values as numbers, NaN where something is none."""
    return np.array([value if type(value) is float else as_float(value) for value in values], np.float64)
