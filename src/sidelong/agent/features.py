"""What is known before a decision, as numbers: a vector, a mapping of names, or a row for each arm."""

from __future__ import annotations

import math
import zlib
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from sidelong.checks import check_number, plain, short
from sidelong.errors import FeatureError
from sidelong.tables import as_list, in_order

if TYPE_CHECKING:
    import numpy.typing as npt

    Table = npt.NDArray[np.float64]

KINDS = {
    "vector": "a list of numbers",
    "names": "a mapping of names to numbers and words",
    "rows": "a row of numbers for each arm",
    "named rows": "a mapping of names to numbers and words for each arm",
}


class Reader:
    """Turns what `ask` is given into a table: one row for all arms, or a row for each.

    The first `x` that is kept says which of the kinds it is, and how many features there are.

    Args:
        n_arms: the number of arms.
        hashed: how many numbers a mapping becomes.
        constant: whether there is a last feature beside those of `x`, which is always 1.
        most: how large a feature may be, where larger ones would leave nothing of the others but rounding.
    """

    def __init__(self, n_arms: int, hashed: int, *, constant: bool, most: float = math.inf) -> None:
        self.n_arms = n_arms
        self.hashed = hashed
        self.kind = ""  #: that of the first x, and "" before it
        self.size = 0  #: how many features that one had
        self._constant = int(constant)
        self._most = most

    @property
    def columns(self) -> int:
        """How many columns a table has."""
        return self.size + self._constant

    def read(self, x: Any) -> tuple[str, Table]:
        """Return the kind of `x`, and its table.

        Raises:
            FeatureError: it cannot be read, or is not like the first one.
        """
        if self.kind == "vector" and _is_plain(x, self.size):  # the usual case, in short
            row = np.empty((1, self.size + self._constant))
            row[0, -1] = 1.0
            row[0, : self.size] = x
            if np.vdot(row, row) < self._most * self._most:
                return "vector", row
        kind, table = self._parse(x)
        return kind, self._checked(kind, table[None])[0]

    def read_many(self, x: Any, keys: Sequence[Any]) -> tuple[str, Table]:
        """Return the kind of the features of some keys, and a table for each.

        Args:
            x: what `read` takes, for each key: a list, or an array with a row or a table for each.
            keys: the keys, which errors name.
        """
        listed: Any = None if not in_order(x) else x if isinstance(x, np.ndarray) else as_list(x)
        if listed is None or len(listed) != len(keys):
            found = short(x) if listed is None else f"{len(listed):,}"
            raise FeatureError(
                f"x must have the features of each of the {len(keys):,} keys, one after the other, not {found}."
            )
        if not len(keys):
            return self.kind, np.empty((0, self.n_arms if "rows" in self.kind else 1, self.columns))
        if isinstance(listed, np.ndarray) and listed.dtype.kind in "fiub" and listed.ndim in {2, 3}:
            kind = "vector" if listed.ndim == 2 else "rows"
            return kind, self._checked(kind, _numbers(listed.reshape(len(keys), -1, listed.shape[-1]), (3,)))
        parsed: list[tuple[str, Table]] = []
        for key, each in zip(keys, listed, strict=True):
            try:
                parsed.append(self._parse(each))
            except FeatureError as error:
                raise FeatureError(f"The features of the key {short(key)}: {error}") from error
            if (parsed[-1][0], parsed[-1][1].shape) != (parsed[0][0], parsed[0][1].shape):
                raise FeatureError(f"The features of the key {short(key)} are not like those of {short(keys[0])}.")
        kind = parsed[0][0]
        return kind, self._checked(kind, np.array([table for _, table in parsed]))

    def _parse(self, x: Any) -> tuple[str, Table]:
        """Return the kind of `x`, and its numbers as a table."""
        if isinstance(x, Mapping):
            return "names", self._hash([x])
        if isinstance(x, Sequence) and x and isinstance(x[0], Mapping):
            return "named rows", self._hash(x)
        table = _numbers(x)
        return "vector" if table.ndim == 1 else "rows", np.atleast_2d(table)

    def _checked(self, kind: str, tables: Table) -> Table:
        """Return tables of one kind with the constant feature, if they are like the first one that was kept."""
        _, rows, columns = tables.shape
        if self.kind and kind != self.kind:
            raise FeatureError(f"x must be {KINDS[self.kind]}, as the first one was, and is {KINDS[kind]}.")
        if "rows" in kind and rows != self.n_arms:
            raise FeatureError(f"x must have a row for each of the {self.n_arms} arms, and has {rows}.")
        if self.kind and columns != self.size:
            raise FeatureError(f"x must have {self.size} features, as the first one had, and has {columns}.")
        if np.abs(tables).max() > self._most:
            raise FeatureError(
                f"Features must be of the size of 1, and at most {self._most:,.6g}; one is {np.abs(tables).max():.6g}. "
                f"Divide it by its usual size, or take its logarithm."
            )
        return np.append(tables, np.ones((len(tables), rows, self._constant)), axis=2)

    def keep(self, kind: str, columns: int) -> None:
        """Let all later tables be like one of this kind, with so many columns."""
        self.kind, self.size = kind, columns - self._constant

    def _hash(self, rows: Sequence[Any]) -> Table:
        table = np.zeros((len(rows), self.hashed))
        for row, x in zip(table, rows, strict=True):
            if not isinstance(x, Mapping):
                raise FeatureError(f"x must be {KINDS['named rows']}; one of them is {short(x)}.")
            for name, value in x.items():
                _add(row, name, value)
        return table


def _is_plain(x: Any, size: int) -> bool:
    """Tell whether `x` is an array or a list of so many numbers."""
    if type(x) is list:
        return len(x) == size and set(map(type, x)) <= {float, int}
    return isinstance(x, np.ndarray) and x.shape == (size,)


def _numbers(x: Any, dimensions: tuple[int, ...] = (1, 2)) -> Table:
    try:
        table = np.array(x, np.float64, order="C")
    except (OverflowError, TypeError, ValueError) as error:
        raise FeatureError(
            f"x must be {KINDS['vector']}, {KINDS['names']}, or {KINDS['rows']}, not {short(x)}. "
            f"Words need names: ask({{'weekday': 'Monday', 'temperature': 21.5}})."
        ) from error
    if table.ndim not in dimensions or table.size == 0:
        raise FeatureError(f"x must be {KINDS['vector']} or {KINDS['rows']}; its shape is {table.shape}.")
    if not np.isfinite(table).all():
        at = [int(i) for i in np.argwhere(~np.isfinite(table))[0]]
        raise FeatureError(
            f"Features must be finite numbers, and x{at} is {table[tuple(at)]}. Put a number in its place, "
            f"or leave its name out of a mapping."
        )
    return table


def _add(row: Table, name: Any, value: Any) -> None:
    """Add one feature to its place: a number by its name, and a word, which counts as 1, by both.

    The place and the sign come from a CRC-32, which is the same on every machine. Two features may share a place, and
    as often as not have opposite signs there (Weinberger et al. 2009).
    """
    if not isinstance(name, str):
        raise FeatureError(f"The name of a feature must be text, not {short(name)}.")
    if isinstance(value, str):
        key, number = f"{name}={value}", 1.0
    elif isinstance(value, bool | np.bool_):
        key, number = name, float(value)
    else:
        read = plain(value)
        if read != read:  # noqa: PLR0124  # not a number
            raise FeatureError(
                f"The feature {short(name)} must be a number or a word, not {short(value)}. Leave out what is missing."
            )
        key, number = name, check_number(FeatureError, f"The feature {short(name)}", value)
    code = zlib.crc32(key.encode())
    row[code % row.size] += number if code < 2**31 else -number
