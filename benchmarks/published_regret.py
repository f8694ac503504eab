"""Figures that other groups have published, and what our learners give in their settings by options alone.

``python benchmarks/published regret`` plays them for the table of docs/published.md, in about a minute.

UCB-N of H. Qi, G. Fei, L. Zhu, "Graph Feedback Bandits with Similar Arms", UAI 2024, with their code: Bernoulli arms
whose means are uniform, an arm reveals those whose means are less than 0.05 away. EXP3.G of a student's repository on
N. Alon, N. Cesa-Bianchi, O. Dekel, T. Koren, "Online Learning with Feedback Graphs: Beyond Bandits", COLT 2015
(debrajk22/Online-Learning-with-Feedback-Graphs on GitHub): ten arms whose losses never change, on a strongly and on a
weakly observable graph; its figures are read off two plots.
"""

from __future__ import annotations

import itertools
import math

import numpy as np

import sidelong as sl

#: Regret by round, or by horizon, as published.
UCB_N = {100: 43.0, 1_000: 273.0, 5_000: 621.7, 10_000: 772.0}
STRONG = {500: 105.0, 2_500: 250.0, 5_000: 351.0}
WEAK = {500: 202.0, 2_500: 640.0, 5_000: 1_027.0}


def similar_arms(seed: int, K: int = 1_000) -> tuple[sl.FeedbackGraph, np.ndarray]:
    """Return the graph and the mean losses that their seed gives; their rewards are one less the losses."""
    random = np.random.RandomState(seed + 1)  # theirs
    random.uniform(0, 1, K)  # the spreads of arms, which Bernoulli arms do not have
    means = 1.0 - random.uniform(0, 1, K)
    return sl.FeedbackGraph.from_matrix(np.abs(means[:, None] - means[None, :]) < 0.05), means


def ucb_n(**options: float) -> np.ndarray:
    """Return the regret of 20 seeds at the published rounds."""
    found = []
    for seed in range(20):
        graph, means = similar_arms(seed)
        world = sl.losses.bernoulli(means)
        result = sl.simulate("ucb-n", graph, world, 10_000, seed=seed, checkpoints=[*UCB_N], progress=False, **options)
        found.append(result.regret[0])
    return np.array(found)


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


def exp3_g(horizons: list[int], *, weak: bool, own: bool) -> list[np.ndarray]:
    """Return the regret of 200 runs for each horizon, with the constants of that repository or with our own."""
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
            "exp3.g", graph, world, T, runs=200, seed=0, checkpoints=1, progress=False, **({} if own else theirs)
        )
        found.append(result.regret[:, -1])
    return found
