"""Two folders of results, compared cell by cell and to the bit."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from sidelong.studies.cell import Cell
from sidelong.studies.folder import difference, read_study
from sidelong.studies.results import read_tables

if TYPE_CHECKING:
    from pathlib import Path


@dataclass(frozen=True)
class ResultDiff:
    """What two folders of results have in common."""

    same: int  #: cells whose tables are the same to the bit
    differing: tuple[tuple[Cell, str], ...]  #: cells that both have, and where their tables differ first
    only: tuple[tuple[Cell, ...], tuple[Cell, ...]]  #: cells that only the first has, and only the second
    studies: tuple[str, ...]  #: where the two studies differ

    @property
    def equal(self) -> bool:
        """Whether both have the same cells, with the same tables."""
        return not self.differing and not any(self.only)


def compare(one: Path, two: Path) -> ResultDiff:
    """Compare the results in two folders.

    Raises:
        StudyError: there are no results, or a file is truncated or altered.
    """
    tables = [{Cell(told["cell"]): table for table, told in read_tables(folder)} for folder in (one, two)]
    first, second = tables
    both = [cell for cell in first if cell in second]
    found = [(cell, _first_difference(first[cell], second[cell])) for cell in both]
    said = [(read_study(folder) or {}).get("study", {}) for folder in (one, two)]
    return ResultDiff(
        sum(not where for _, where in found),
        tuple((cell, where) for cell, where in found if where),
        tuple(tuple(cell for cell in these if cell not in others) for these, others in (tables, tables[::-1])),  # type: ignore[arg-type]
        tuple(difference(said[0], said[1])),
    )


def _first_difference(one: pa.Table, two: pa.Table) -> str:
    """Return in which column two tables differ first, and how; nothing if they are the same to the bit."""
    if one.column_names != two.column_names or one.num_rows != two.num_rows:
        return (
            f"one has {one.num_rows:,} rows and {one.num_columns} columns, "
            f"the other {two.num_rows:,} and {two.num_columns}"
        )
    for name in one.column_names:
        mine, other = one[name], two[name]
        if mine.type != other.type:
            return f"{name} is of type {mine.type}, and of {other.type}"
        if pa.types.is_floating(mine.type):
            numbers = [each.to_numpy() for each in (mine, other)]
            apart = numbers[0].view(np.int64) != numbers[1].view(np.int64)  # to the bit: NaN is itself, and -0 is not 0
            if apart.any():
                most = float(np.abs(numbers[0] - numbers[1])[apart].max())
                return f"{name} differs in {apart.sum():,} of {one.num_rows:,} rows, by up to {most:.3g}"
        elif not mine.equals(other):
            return f"{name} differs"
    return ""
