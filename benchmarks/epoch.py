"""The two schedules of EXP3.G++ side by side: the time of a round from 10 to a million arms, and the regret.

`python benchmarks/epoch.py` prints the times, in about five minutes, and `python benchmarks/epoch.py regret` the regret
of several growths, in about as many.
"""

from __future__ import annotations

import math
import resource
import sys
import time
from typing import TYPE_CHECKING, Any

import numpy as np
from measure import Row, machine, means, print_table, seconds

import sidelong as sl
from sidelong._jit import entry
from sidelong.graphs.sequences import fixed
from sidelong.learners import exp3gpp_epoch
from sidelong.simulation.loop import loop_for, new_tally

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy.typing as npt

ARMS = tuple(10**power for power in range(1, 7))
EXACT: dict[str, Any] = {"refresh": "round"}
EPOCHS: dict[str, Any] = {"refresh": "epoch"}
FAMILIES = {
    "ring of 5": lambda K: sl.graphs.circulant(K, 2),
    "intervals of 5": lambda K: sl.graphs.banded(K, 2),
    "cliques of 5": lambda K: sl.graphs.cliques([5] * (K // 5)),
}


def rows() -> Iterator[Row]:
    """Measure a round of both, over ten rounds an arm and at least a million for the epochs."""
    for name, family in FAMILIES.items():
        for K in ARMS:
            graph, goal = family(K), 3e-6 if (name, K) == ("ring of 5", ARMS[-1]) else None
            epochs = a_round(graph, max(10**6, 10 * K), **EPOCHS)
            exact = a_round(graph, max(20, 2 * 10**7 // K), **EXACT)
            yield Row(f"{name}, K = {K:,}", epochs, "every round", exact, at_most=goal)


def a_round(graph: sl.FeedbackGraph, rounds: int, **options: str) -> float:
    """Return the seconds of a round, refreshes included; the initial rounds, which are quick, are left out."""
    world = sl.losses.bernoulli(means(graph.n_arms))
    settings: dict[str, Any] = {"checkpoints": 1, "threads": 1, "start": "none", **options}
    sl.simulate("exp3.g++", graph, world, 2, **settings)  # compiled beforehand
    return seconds(lambda: sl.simulate("exp3.g++", graph, world, rounds, **settings)) / rounds


def single_rounds(K: int, rounds: int) -> npt.NDArray[np.float64]:
    """Return the time of each of the last rounds, one call of the loop each, on a ring."""
    graph, world = sl.graphs.circulant(K, 2), sl.losses.bernoulli(means(K))
    params = exp3gpp_epoch.configure(graph, start="none")
    state = exp3gpp_epoch.init(params, graph)
    known = (params, state, fixed(graph).arrays, world.arrays, np.uint64(0), 0)
    tally = new_tally(K, len(exp3gpp_epoch.TRACES))
    play = entry(loop_for(exp3gpp_epoch, world, anew=False), *known, 1, 0, tally)
    play(*known, 1, 10**6, tally)
    marks = np.zeros(rounds + 1)
    for k in range(rounds):
        marks[k] = time.perf_counter()
        play(*known, 10**6 + 1 + k, 10**6 + 1 + k, tally)
    marks[rounds] = time.perf_counter()
    return np.diff(marks)


def print_rounds() -> None:
    """Print the usual round, a rare one and the longest: a refresh is a pause."""
    for K in (10**3, 10**6):
        times = single_rounds(K, 300_000)
        median, rare, longest = np.quantile(times, [0.5, 0.999, 1.0])
        print(
            f"K = {K:,}, a call a round: median {median * 1e6:.2f} us, 99.9 % {rare * 1e6:.1f} us, "
            f"longest {longest * 1e3:.2f} ms"
        )
    print(f"memory: {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3:.0f} MB")


GROWTHS = (0.02, 0.05, 0.1, 0.2, 0.5)
SMALL = {
    "ring of 5, K = 50": sl.graphs.circulant(50, 2),
    "cliques of 5, K = 50": sl.graphs.cliques([5] * 10),
    "self-loops, K = 10": sl.graphs.self_loops(10),
    "star, K = 20": sl.graphs.star(20),
    "nested, K = 20": sl.graphs.nested(20),
    "random, K = 20": sl.graphs.erdos_renyi(20, 0.2, 1, directed=True),
}


def print_regret(rounds: int = 100_000, runs: int = 32) -> None:
    """Print the regret of each growth as a share of the exact schedule's, with 95 % intervals of the paired runs."""
    print("| graph | world | every round | " + " | ".join(f"growth {growth:g}" for growth in GROWTHS) + " |")
    print("|---|---|---:|" + "---:|" * len(GROWTHS))
    for name, graph in SMALL.items():
        K = graph.n_arms
        worlds = sl.losses.bernoulli(means(K)), sl.losses.constrained(gaps=0.2, n_arms=K, best=K // 2)
        for label, world in zip(("stochastic", "constrained"), worlds, strict=True):
            settings: dict[str, Any] = {"rounds": rounds, "runs": runs, "seed": 1, "checkpoints": 1}
            exact = sl.simulate("exp3.g++", graph, world, **settings).regret[:, 0]
            cells = []
            for growth in GROWTHS:
                epochs = sl.simulate("exp3.g++", graph, world, **settings, **EPOCHS, growth=growth).regret[:, 0]
                share = (epochs - exact) / exact.mean()
                cells.append(f"{100 * share.mean():+.1f} ± {196 * share.std(ddof=1) / math.sqrt(runs):.1f} %")
            print(f"| {name} | {label} | {exact.mean():.0f} | " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    print(machine())
    if "regret" in sys.argv:
        print_regret()
    else:
        print_table(rows())
        print_rounds()
