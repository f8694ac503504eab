"""Every learner and every simple rule on owners' problems: `python research/shares.py [0|1] [NAME ...]`.

The *share* of a learner on a problem is its regret, divided by the regret of random play: 0 is the best fixed arm, 1
is random. Its *excess* is its share less the smallest share of all. Where the world turns, regret / sqrt(K T) is shown.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import numpy as np
import owners
import rules
import suites

import sidelong as sl
from sidelong.errors import SidelongError
from sidelong.learners import catalogue
from sidelong.learners.interface import Need

if TYPE_CHECKING:
    from contests import Contestant

SEED = 7


def main(half: int, names: list[str]) -> None:
    """Print a table for the problems that stay, and one for those that turn."""
    print(f"half {half}: {'tuned on' if half == 0 else 'not tuned on'}\n")
    played = list(owners.problems(owners.STAYING, half))
    print(f"What stays, {len(played)} problems\n")
    print_shares(played, regrets(played, names))
    played = list(owners.problems(owners.TURNING, half))
    print(f"What turns, {len(played)} problems: regret / sqrt(K T)\n")
    print_turning(played, regrets(played, names))


def regrets(played: list[owners.Problem], names: list[str]) -> dict[str, list[float]]:
    """Return the mean regret of each contestant on each problem; NaN where it cannot play."""
    found = {}
    for name in rules.RULES:
        found[name] = [rules.play(name, each, SEED) - least(each) for each in played]
    for each in suites.CONTESTANTS:
        if not names or each.name in names or each.learner == "uniform":
            found[each.name] = [charge(each, problem) - least(problem) for problem in played]
            print(each.name, end=" ", file=sys.stderr, flush=True)
    return {name: values for name, values in found.items() if not np.isnan(values).all()}


def least(problem: owners.Problem) -> float:
    """Return what the best fixed arm is charged."""
    return float(problem.charged.sum(1).mean(0).min())


def charge(contestant: Contestant, problem: owners.Problem) -> float:
    """Return what a learner is charged, the mean over the tables."""
    options = dict(contestant.options)
    module = catalogue.choose(contestant.learner, options)
    if Need.HORIZON in catalogue.needs(module, options):
        options["horizon"] = problem.rounds
    try:
        return float(np.mean([_play(contestant.learner, options, problem, run) for run in range(problem.runs)]))
    except SidelongError:  # it cannot play such graphs or losses
        return float("nan")


def _play(learner: str, options: dict[str, object], problem: owners.Problem, run: int) -> float:
    graphs, table = problem.graphs, problem.losses[run]
    graph = graphs[0] if len(graphs) == 1 else sl.graphs.scheduled(graphs, problem.which[run])
    world = sl.losses.table(table)
    result = sl.simulate(learner, graph, world, problem.rounds, seed=SEED + run, checkpoints=1, threads=1, **options)
    if problem.charged is problem.losses:
        return float(result.loss[0, -1])
    return float(result.plays[0] @ problem.charged[run, 0])


def print_shares(played: list[owners.Problem], found: dict[str, list[float]]) -> None:
    """Print shares and excesses, the smallest mean excess first."""
    random = np.array(found.pop("uniform"))
    shares = {name: np.array(values) / random for name, values in found.items()}
    best = np.fmin.reduce(list(shares.values()))
    rounds = np.array([each.rounds for each in played])
    head = " | ".join(f"{horizon:,}" for horizon in owners.HORIZONS)
    print(f"| learner | mean excess | worst excess | {head} | worst on |")
    print(f"|---|---:|---:|{'---:|' * len(owners.HORIZONS)}---|")
    for name in sorted(shares, key=lambda name: np.nanmean(shares[name] - best)):
        excess = shares[name] - best
        at = [np.nanmean(shares[name][rounds == horizon]) for horizon in owners.HORIZONS]
        worst = played[int(np.nanargmax(excess))].name
        means = " | ".join(f"{each:.2f}" for each in at)
        print(f"| {name} | {np.nanmean(excess):.3f} | {np.nanmax(excess):.2f} | {means} | {worst} |")
    print()


def print_turning(played: list[owners.Problem], found: dict[str, list[float]]) -> None:
    """Print the mean over the horizons of each kind."""
    kinds = np.array([each.kind for each in played])
    scale = np.array([np.sqrt(each.rounds * each.losses.shape[2]) for each in played])
    print(f"| learner | {' | '.join(owners.TURNING)} |\n|---|{'---:|' * len(owners.TURNING)}")
    for name, values in found.items():
        scaled = np.array(values) / scale
        print(f"| {name} | {' | '.join(f'{scaled[kinds == kind].mean():.2f}' for kind in owners.TURNING)} |")
    print()


if __name__ == "__main__":
    main(int((sys.argv[1:] or ["1"])[0]), sys.argv[2:])
