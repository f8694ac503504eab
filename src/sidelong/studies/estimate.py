"""How long a study will take: from cells that are done, and from the first rounds of others.

Compiling counts as no part of it, neither in what is measured nor in the time that measuring may take: it is kept for
the run. If it did, the first learners of a study would use up that time, and all others would be guessed from them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sidelong.errors import SidelongError
from sidelong.studies import work
from sidelong.studies.cell import canonical, name_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sidelong.studies.cell import Cell
    from sidelong.studies.files import Files

_FIRST = 500  # rounds
_ENOUGH = 0.05  # seconds
_BUDGET = 15.0  # seconds of playing


def seconds_of(cells: Sequence[Cell], files: Files, done: Sequence[tuple[Cell, float]] = ()) -> float:
    """Return about how many seconds one core takes for some cells.

    Args:
        cells: to be played.
        files: which they may need.
        done: cells that were played, with the seconds they took.

    """
    spent = 0.0
    pace = {_sort(cell): seconds / cell.n_rounds for cell, seconds in done}  # seconds a round
    by_learner = {name_of(cell.spec["learner"]): seconds / cell.n_rounds / _arms(cell) for cell, seconds in done}
    total = 0.0
    for cell in cells:
        learner = name_of(cell.spec["learner"])
        if _sort(cell) not in pace and (spent < _BUDGET or learner not in by_learner):
            try:
                pace[_sort(cell)], seconds = _measured(cell, files)
                spent += seconds
            except SidelongError:
                continue  # it will fail as fast
            by_learner[learner] = pace[_sort(cell)] / _arms(cell)
        # Where time is up: by the arms, from the same learner, of which one cell at least was measured.
        total += pace.get(_sort(cell), by_learner[learner] * _arms(cell)) * cell.n_rounds
    return total


def _arms(cell: Cell) -> int:
    """Return how many arms a cell has; 1 if only code of the study's author knows, which a dry run does not run."""
    return cell.n_arms or 1


def _measured(cell: Cell, files: Files) -> tuple[float, float]:
    """Return how long a round takes, from so many rounds that starting does not count, and how long it took to see."""
    rounds, spent = _FIRST, 0.0
    while True:
        played = work.probe(cell.spec, files, rounds)
        spent += played.seconds
        if played.seconds >= _ENOUGH or rounds >= cell.spec["rounds"]:
            return played.seconds / int(played.rounds[-1]), spent
        rounds *= 8


def _sort(cell: Cell) -> str:
    """Return what decides how long a round takes."""
    return canonical([cell.spec["learner"], cell.spec["graph"], cell.kind])
