"""Renew what the reference studies are expected to give, from what `sidelong reproduce` has played.

``sidelong reproduce && python scripts/expected.py results/reproduce glance`` renews the statements whose cells have a
learner of that name, or that compare with all learners. Do so after a learner was changed on purpose, and look at the
diff: it says what became better or worse. A tolerance is five standard errors, by the bootstrap over runs.
"""

from __future__ import annotations

import re
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from sidelong.studies import reference
from sidelong.studies.reproduce.cells import read_cells
from sidelong.studies.reproduce.statements import judge, read_expected

if TYPE_CHECKING:
    from sidelong.studies.reproduce.cells import PlayedCell

RESAMPLES = 200


def resampled(cell: PlayedCell, random: np.random.Generator) -> PlayedCell:
    """Return the cell with as many of its runs, drawn with replacement."""
    rows = np.arange(cell.table.num_rows).reshape(-1, cell.rounds.size)
    return replace(cell, table=cell.table.take(rows[random.integers(len(rows), size=len(rows))].ravel()))


def main(played: Path, learner: str) -> None:
    """Write the expected number and the tolerance of each such statement."""
    for folder in sorted(played.iterdir()):
        random, cells, path = np.random.default_rng(0), read_cells(folder), reference.find(folder.name)
        place = path.with_suffix(".expected.toml")
        text = place.read_text("utf-8")
        for statement in read_expected(path).statement:
            if (
                learner not in (statement.of.get("learner"), statement.over.get("learner"))
                and statement.value != "worst"
            ):
                continue
            measured = judge(statement, cells).measured
            drawn = [judge(statement, [resampled(cell, random) for cell in cells]).measured for _ in range(RESAMPLES)]
            numbers = f"expected = {measured:.3g}\ntolerance = {5.0 * np.std(drawn):.2g}\n"
            entry = rf"(says = \"{re.escape(statement.says)}\"\n(?:.+\n)*?)expected = .*\ntolerance = .*\n"
            text = re.sub(entry, lambda found, numbers=numbers: found[1] + numbers, text)
        place.write_text(text, "utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
