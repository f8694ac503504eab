"""Columns from whatever table there is, and tables of Arrow."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Any

import numpy as np

from sidelong._install import pip_install
from sidelong.checks import short
from sidelong.errors import FamilyError, LossError


def arrow_table(columns: Mapping[str, Any]) -> Any:
    """Return a table of Arrow.

    Raises:
        FamilyError: pyarrow is not there, or a key does not fit into 64 bits.
    """
    try:
        import pyarrow as pa  # noqa: PLC0415  # an extra
    except ImportError as error:
        raise FamilyError(f"A table of Arrow needs pyarrow. {pip_install('pyarrow')}") from error
    keys = columns["key"]
    try:
        return pa.table(dict(columns))
    except OverflowError:
        pass
    try:
        return pa.table({**columns, "key": pa.array(keys, pa.uint64())})
    except OverflowError as error:
        raise FamilyError(
            f"Arrow has whole numbers of 64 bits, with or without a sign, and the keys from {min(keys)} to {max(keys)} "
            f"do not fit. Use text as keys, or the columns without Arrow."
        ) from error


def names_of(table: Any) -> list[str] | None:
    """Return the names of the columns of a table of Arrow, pandas or Polars, or a dict of columns; None of others."""
    if isinstance(table, Mapping):
        return list(map(str, table))
    names = getattr(table, "column_names", None) or getattr(table, "columns", None)
    return None if names is None else list(map(str, names))


def column(table: Any, name: str, names: list[str]) -> np.ndarray:
    """Return a column of a table as an array.

    Raises:
        LossError: the table lacks it, or it is no column.
    """
    if name not in names:
        raise LossError(f"A table of losses has the columns decision or key, arm and loss; it has {short(names)}.")
    values = table[name]
    listed = hasattr(values, "__iter__") and not hasattr(values, "__array__")
    array = as_array(list(values) if listed else values)
    if array.ndim != 1:
        raise LossError(f"The column {name} of a table of losses has one value in each row, not {short(values)}.")
    return array


def as_array(values: Any) -> np.ndarray:
    """Return values as an array; if they are lists of several lengths, each is as it was given, for a message."""
    try:
        return np.asarray(values)
    except ValueError:
        return objects(list(values))


def are_several(values: Any) -> bool:
    """Tell whether `values` are a list, an array, a column or anything else that has several; a text is one."""
    return isinstance(values, Iterable) and not isinstance(values, str | bytes) and getattr(values, "ndim", 1) > 0


def in_order(values: Any) -> bool:
    """Tell whether they are several, one after the other: no set, and no mapping."""
    return are_several(values) and not isinstance(values, AbstractSet | Mapping)


def objects(values: Sequence[Any]) -> np.ndarray:
    """Return an array of values as they are, whatever they are."""
    made = np.empty(len(values), object)
    for k, value in enumerate(values):
        made[k] = value
    return made


def as_list(values: Any) -> list[Any]:
    """Return the values of a list, an array, or a column of pandas, Polars or Arrow, as Python has them."""
    made = next((name for name in ("tolist", "to_pylist", "to_list") if hasattr(values, name)), None)
    return list(values) if made is None else list(getattr(values, made)())
