"""The results of a study as statements and figures ask for them: a mean over runs for each cell and checkpoint."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from sidelong.studies.cell import describe, flat, name_of
from sidelong.studies.results import read_tables

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    import numpy.typing as npt
    import pyarrow as pa


@dataclass(frozen=True)
class PlayedCell:
    """A cell with its results."""

    spec: dict[str, Any]
    table: pa.Table

    @cached_property
    def facts(self) -> dict[str, Any]:
        """What a statement may ask for: ``learner``, ``graph``, ``graph.n``, ``world.means.gap``, ``delay``."""
        names = {"graph": name_of(self.spec["graph"]), "world": name_of(self.spec["world"])}
        learner = {"learner": describe(self.spec["learner"])}
        told = {".".join(place): value for place, value in flat(self.spec).items()}
        return {**told, **names, **learner}

    def fits(self, wanted: Mapping[str, Any]) -> bool:
        """Tell whether all facts are as wanted; a list stands for any of its values."""
        for key, value in wanted.items():
            if self.facts.get(key) not in (value if isinstance(value, list) else [value]):
                return False
        return True

    @cached_property
    def rounds(self) -> npt.NDArray[np.int64]:
        """The checkpoints."""
        return np.unique(self.table["round"].to_numpy())

    def means(self, column: str) -> npt.NDArray[np.float64]:
        """Return the mean over runs of a column at each checkpoint.

        ``misses.3`` is not a column: how often another arm than 3 was played, at the end alone.
        """
        if column.startswith("misses."):
            plays = np.array(self.table["plays"].drop_null().to_pylist())
            return np.array([plays.sum(axis=1).mean() - plays[:, int(column[7:])].mean()])
        values: npt.NDArray[np.float64] = self.table[column].to_numpy().reshape(-1, self.rounds.size).mean(axis=0)
        return values


def read_cells(folder: Path) -> list[PlayedCell]:
    """Return the cells in a folder of results, in the order of the study."""
    return [PlayedCell(told["cell"], table) for table, told in read_tables(folder)]
