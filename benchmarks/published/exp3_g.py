"""EXP3.G on fixed losses, in a student's repository on Alon and others, "Online Learning with Feedback Graphs", 2015.

debrajk22/Online-Learning-with-Feedback-Graphs on GitHub: ten arms whose losses never change, on a strongly and on a
weakly observable graph, 200 runs. Its figures are read off two plots.
"""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
from regrets import joined, summary

import sidelong as sl

RUNS = 200
#: Regret by horizon, as published.
PUBLISHED = {
    "strongly": {500: 105.0, 2_500: 250.0, 5_000: 351.0},
    "weakly": {500: 202.0, 2_500: 640.0, 5_000: 1_027.0},
}


def student(*, weak: bool) -> tuple[np.ndarray, np.ndarray]:
    """Return the matrix of the graph and the losses, which the generator of that repository gives with its seed."""
    random, K = np.random.default_rng(5), 10
    A = np.zeros((K, K), bool)
    for i in range(K):
        if weak:  # one other arm reveals it for sure, and each of the rest with a chance of 1/2
            others = [j for j in range(K) if j != i]
            first = random.choice(others)
            A[first, i] = True
            for j in others:
                A[j, i] |= j != first and random.random() < 0.5
        else:  # itself alone, all others, or all
            kind = random.random()
            A[:, i] = kind >= 1 / 3
            A[i, i] = kind < 1 / 3 or kind >= 2 / 3
    return A, random.uniform(0, 1, K)


def regrets(horizons: list[int], *, weak: bool, own: bool) -> np.ndarray:
    """Return the regret of each run for each horizon, with the constants of that repository or with our own."""
    A, losses = student(weak=weak)
    graph, K = sl.FeedbackGraph.from_matrix(A), len(A)
    alpha = graph.numbers().independence.value
    delta = next(
        n for n in range(1, K + 1) if any(A[[*D]].any(axis=0).all() for D in itertools.combinations(range(K), n))
    )
    found = []
    for T in horizons:
        if weak:
            theirs = {"eta": (math.log(K) / (T * math.sqrt(delta))) ** (2 / 3), "explored": [0]}
            theirs |= {"gamma": (delta * math.log(K) / T) ** (1 / 3)}
        else:
            theirs = {"eta": 1 / math.sqrt(alpha * T), "gamma": 1 / math.sqrt(alpha * T), "explored": [*range(K)]}
        world = sl.losses.table(np.tile(losses, (T, 1)))
        result = sl.simulate(
            "exp3.g", graph, world, T, runs=RUNS, seed=0, checkpoints=1, progress=False, **({} if own else theirs)
        )
        found.append(result.regret[:, -1])
    return np.column_stack(found)


def play() -> dict[str, Any]:
    """Return mean regrets by horizon: published, with the constants of the source, and as shipped."""
    found = {}
    for kind, published in PUBLISHED.items():
        both = [regrets([*published], weak=kind == "weakly", own=own) for own in (False, True)]
        found[kind] = summary(published, *both)
    return found


def rows(found: dict[str, Any]) -> list[tuple[str, str, str, str]]:
    """Return the rows of the table."""
    made = []
    for kind, of in found.items():
        horizons = " / ".join(f"{each:,}" for each in of["at"])
        setting = f"EXP3.G, {kind} observable graph, regret after T = {horizons}"
        made.append(("debrajk22, on Alon and others 2015", setting, *joined(of)))
    return made
