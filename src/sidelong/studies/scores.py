"""Who did best in a study: the scoreboard of its results."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from sidelong.simulation.scoreboard import Scoreboard, mean_and_error
from sidelong.studies.cell import describe
from sidelong.studies.curves import read_curves

if TYPE_CHECKING:
    from os import PathLike

    from sidelong.studies.curves import Curve

__all__ = ["read_scoreboard"]


def read_scoreboard(folder: str | PathLike[str]) -> Scoreboard:
    """Return the regret of each learner on each instance of a study, a graph and a world, at the end of all runs.

    Learners and instances have the names by which `describe` calls them: ``nested(n=10) in bernoulli(means=...)``.
    """
    games: dict[tuple[str, str], list[Curve]] = {}
    for curve in read_curves(Path(folder)):
        games.setdefault((curve.learner, _instance(curve)), []).append(curve)
    learners = {learner: row for row, learner in enumerate(dict.fromkeys(learner for learner, _ in games))}
    arms = {instance: curves[0].arms for (_, instance), curves in games.items()}
    columns = {instance: column for column, instance in enumerate(arms)}
    regret, error = np.full((2, len(learners), len(arms)), np.nan)
    for (learner, instance), curves in games.items():
        place = learners[learner], columns[instance]
        regret[place], error[place] = mean_and_error(np.concatenate([curve.final for curve in curves]))
    return Scoreboard(tuple(learners), tuple(arms), regret, error, np.array([*arms.values()]))


def _instance(curve: Curve) -> str:
    late = f", {curve.delay:,} late" if curve.delay else ""
    where = f"{describe(curve.spec['graph'])} in {describe(curve.spec['world'])}"
    return f"{where}, {int(curve.spec['rounds']):,} rounds{late}"
