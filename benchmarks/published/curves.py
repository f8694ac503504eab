"""How many examples to train on every night: the learning curves of lcdb 0.1.0 (Mohr and others, ECML PKDD 2022).

A problem is a data set of OpenML and a classifier of scikit-learn, with at least 16 sizes of training sets, each about
1.4 times the one before, and 25 measured curves. Of such problems every sixth is played, for 365 nights. A night has
one of the curves at random; its loss is 0.8 times the error on test data and 0.2 times the share of the largest size.
Whoever trains on a size knows the curve up to there. Published are the curves; what a night costs is computed from them
without a learner: all data, the size that is best in hindsight, and patience, which looks while it trains and stops
two sizes after the least loss on validation data.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pyarrow.csv
from packages import package

import sidelong as sl

NIGHTS, SIZES, CURVES, EVERY = 365, 16, 25, 6
LEARNERS = ("glance", "ucb-n", "exp3.g++")


def problems() -> list[tuple[np.ndarray, np.ndarray]]:
    """Return for each problem the losses on test and on validation data, with a row for each curve."""
    path = package("lcdb", "0.1.0", "database-accuracy") / "lcdb-0.1.0" / "lcdb" / "database-accuracy.csv"
    names, scores = ["openmlid", "learner", "size_train", "outer_seed", "inner_seed"], ["score_test", "score_valid"]
    options = pyarrow.csv.ConvertOptions(include_columns=names + scores)
    table = pyarrow.csv.read_csv(path, convert_options=options).to_pandas()
    found = []
    for _, problem in table.groupby(["openmlid", "learner"]):
        if problem.size_train.nunique() < SIZES:
            continue
        curves = problem.pivot_table(scores, index=["outer_seed", "inner_seed"], columns="size_train")
        test, valid = (curves[name].dropna(axis=1) for name in scores)
        if test.shape[1] < SIZES or len(test) < CURVES:
            continue
        cost = 0.2 * test.columns.to_numpy() / test.columns.max()
        found.append((0.8 * (1 - test.to_numpy()) + cost, 0.8 * (1 - valid.to_numpy()) + cost))
    return found[::EVERY]


def patience(test: np.ndarray, valid: np.ndarray) -> float:
    """Return what a night costs whose training stops two sizes after the least loss on validation data."""
    paid = []
    for known, of in zip(test, valid, strict=True):
        last = next((i for i in range(2, of.size) if of[: i + 1].argmin() <= i - 2), of.size - 1)
        paid.append(known[last])
    return float(np.mean(paid))


def play() -> dict[str, Any]:
    """Return what a night costs on average over the problems, with the standard error of what is above the best."""
    costs: dict[str, list[float]] = {}
    for number, (test, valid) in enumerate(problems()):
        nights = test[np.random.default_rng(number).integers(len(test), size=NIGHTS)]
        world, graph = sl.losses.table(nights), sl.graphs.nested(nights.shape[1])
        best = float(nights.mean(axis=0).min())
        paid = {"best size in hindsight": best, "all data": nights[:, -1].mean(), "patience": patience(test, valid)}
        for learner in LEARNERS:
            result = sl.simulate(learner, graph, world, NIGHTS, seed=number, checkpoints=1, progress=False)
            paid[learner] = best + float(result.regret[0, -1]) / NIGHTS
        for name, each in paid.items():
            costs.setdefault(name, []).append(each)
    above = {name: np.subtract(each, costs["best size in hindsight"]) for name, each in costs.items()}
    count = len(costs["all data"])
    errors = {name: float(each.std(ddof=1)) / math.sqrt(count) for name, each in above.items()}
    return {"problems": count, "costs": {name: [float(np.mean(costs[name])), errors[name]] for name in costs}}


def rows(found: dict[str, Any]) -> list[tuple[str, str, str, str]]:
    """Return the row of the table."""
    said = {name: f"{cost:.4f} ± {error:.4f}" for name, (cost, error) in found["costs"].items()}
    said["best size in hindsight"] = f"{found['costs']['best size in hindsight'][0]:.4f}"
    theirs = ", ".join(f"{name} {each}" for name, each in said.items() if name not in LEARNERS)
    ours = ", ".join(f"`{name}` {said[name]}" for name in LEARNERS)
    setting = f"training size of {found['problems']} nightly trainings, loss of a night over {NIGHTS}"
    return [("lcdb 0.1.0, its curves without a learner", setting, theirs, ours)]
