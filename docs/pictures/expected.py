"""Write anew what the reference studies are expected to give, from what `sidelong reproduce` has played.

``sidelong reproduce && python docs/pictures/expected.py results/reproduce`` is for a change that moves the numbers on
purpose, such as other random numbers. A number is expected as it was measured, within five standard errors by the
bootstrap over runs, or a hundredth of it if that is more. Every learner meets the same losses in a run, so runs are
drawn together for all cells.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from sidelong.studies import reference
from sidelong.studies.reproduce.cells import PlayedCell, read_cells
from sidelong.studies.reproduce.statements import judge, read_expected

if TYPE_CHECKING:
    import numpy.typing as npt

_RESAMPLES = 400


class Resampled(PlayedCell):
    """A cell of which only some runs count, some of them more than once."""

    chosen: npt.NDArray[np.int64]

    def means(self, column: str) -> npt.NDArray[np.float64]:
        """Return the mean over the chosen runs."""
        if column.startswith("misses."):
            plays = np.array(self.table["plays"].drop_null().to_pylist())[self.chosen]
            return np.array([plays.sum(axis=1).mean() - plays[:, int(column[7:])].mean()])
        values = self.table[column].to_numpy().reshape(-1, self.rounds.size)
        return np.asarray(values[self.chosen].mean(axis=0))


def main(results: Path) -> None:
    """Renew the numbers of each study that was played."""
    for name in reference.names():
        if (results / name).exists():
            path = reference.find(name).with_suffix(".expected.toml")
            path.write_text(_renewed(path.read_text("utf-8"), name, results / name), "utf-8")


def _renewed(text: str, name: str, results: Path) -> str:
    cells, rng = read_cells(results), np.random.default_rng(0)
    runs = min(cell.table.num_rows // cell.rounds.size for cell in cells)
    measured: dict[str, list[float]] = {}
    statements = read_expected(reference.find(name)).statement
    resampled = [Resampled(cell.spec, cell.table) for cell in cells]
    for _ in range(_RESAMPLES):
        chosen = rng.integers(0, runs, runs)
        for cell in resampled:
            object.__setattr__(cell, "chosen", chosen)  # frozen for those who read it
        for each in statements:
            measured.setdefault(each.says, []).append(judge(each, resampled).measured)
    for each in statements:
        found = judge(each, cells).measured
        tolerance = max(5 * float(np.std(measured[each.says])), abs(found) / 100)
        place = rf'(?s)(says = "{re.escape(each.says)}".*?\nexpected = )[^\n]*(\ntolerance = )[^\n]*'
        text = re.sub(place, rf"\g<1>{found:.3g}\g<2>{tolerance:.2g}", text, count=1)
    return text


if __name__ == "__main__":
    main(Path(sys.argv[1]))
