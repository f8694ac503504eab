"""Who did best in a study: the scoreboard of its results."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import numpy as np

from sidelong.simulation.scoreboard import Scoreboard
from sidelong.studies.cell import describe
from sidelong.studies.results import read_results

if TYPE_CHECKING:
    from os import PathLike

__all__ = ["read_scoreboard"]

_KINDS = ("learner", "graph", "world")


def read_scoreboard(folder: str | PathLike[str]) -> Scoreboard:
    """Return the regret of each learner on each instance of a study, a graph and a world, at the end of all runs.

    Learners and instances have the names by which `describe` calls them: ``nested(n=10) in bernoulli(means=...)``.
    """
    table = read_results(folder)
    last = table.filter(np.asarray(table["round"]) == np.asarray(table["horizon"]))
    keys = [key for kind in _KINDS for key in (kind, f"{kind}_options")] + ["horizon", "delay", "arms"]
    columns = {key: last[key].to_pylist() for key in keys}
    runs: dict[tuple[str, str], list[float]] = {}
    arms: dict[str, int] = {}
    for *texts, horizon, delay, n_arms, regret in zip(*columns.values(), last["regret"].to_pylist(), strict=True):
        learner, graph, world = (
            describe({"name": name, **json.loads(options)})
            for name, options in zip(texts[::2], texts[1::2], strict=True)
        )
        instance = f"{graph} in {world}, {horizon:,} rounds{f', {delay:,} late' * (delay > 0)}"
        arms[instance] = n_arms
        runs.setdefault((learner, instance), []).append(regret)
    learners = tuple(dict.fromkeys(learner for learner, _ in runs))
    regret, error = np.full((2, len(learners), len(arms)), np.nan)
    for (learner, instance), values in runs.items():
        place = learners.index(learner), [*arms].index(instance)
        regret[place] = np.mean(values)
        error[place] = np.std(values, ddof=1) / np.sqrt(len(values)) if len(values) > 1 else np.nan
    return Scoreboard(learners, tuple(arms), regret, error, np.array([*arms.values()]))
