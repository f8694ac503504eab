"""The rules that a practitioner writes in ten lines, each using the graph: all count what they see on the side.

While some arm was never seen they play the arm that reveals most of those. Then:

- follow the means: the arm with the least mean;
- epsilon-greedy: the same, but with chance 1 / sqrt(t) any arm of a cover of the graph;
- root bonus: the least mean - 0.3 / sqrt(count);
- Bernstein bonus: the least mean - sqrt(2 v z / count) - z / count, z = ln(t) / 4, v the observed variance;
- Gaussian Thompson: the least draw from the normal law of the mean and v / count;
- Maillard: at random, in proportion to exp(-count (mean - least mean)^2 / v).
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
from numba import njit

if TYPE_CHECKING:
    from owners import Problem

RULES = ("follow the means", "epsilon-greedy", "root bonus", "Bernstein bonus", "Gaussian Thompson", "Maillard")
_, GREEDY, ROOT, BERNSTEIN, THOMPSON, MAILLARD = range(6)


def play(rule: str, problem: Problem, seed: int) -> float:
    """Return what a rule is charged in a problem: the mean over its tables."""
    graphs = np.stack([graph.matrix() for graph in problem.graphs])
    charged = np.ascontiguousarray(problem.charged)
    number = RULES.index(rule)
    totals = [
        _play(number, graphs, problem.which[run], problem.losses[run], charged[run], np.random.default_rng(seed + run))
        for run in range(problem.runs)
    ]
    return float(np.mean(totals))


@njit(cache=True)
def _play(
    rule: int, graphs: np.ndarray, which: np.ndarray, losses: np.ndarray, charged: np.ndarray, rng: np.random.Generator
) -> float:
    T, K = losses.shape
    count, mean, squares = np.zeros(K), np.zeros(K), np.zeros(K)
    cover = _cover(graphs[which[0]])
    total = 0.0
    for t in range(T):
        A = graphs[which[t]]
        arm = _first(A, count) if (count == 0).any() else _choose(rule, t + 1.0, count, mean, squares, cover, rng)
        total += charged[t, arm]
        for i in range(K):
            if A[arm, i]:
                count[i] += 1
                away = losses[t, i] - mean[i]
                mean[i] += away / count[i]
                squares[i] += away * (losses[t, i] - mean[i])
    return total


@njit(cache=True)
def _choose(
    rule: int,
    t: float,
    count: np.ndarray,
    mean: np.ndarray,
    squares: np.ndarray,
    cover: np.ndarray,
    rng: np.random.Generator,
) -> int:
    v = (squares + 0.1) / (count + 1)
    index = mean.copy()
    if rule == GREEDY and rng.random() < 1 / math.sqrt(t):
        return cover[rng.integers(0, cover.size)]
    if rule == ROOT:
        index -= 0.3 / np.sqrt(count)
    if rule == BERNSTEIN:
        z = math.log(t) / 4
        index -= np.sqrt(2 * v * z / count) + z / count
    if rule == THOMPSON:
        for i in range(count.size):
            index[i] += math.sqrt(v[i] / count[i]) * rng.standard_normal()
    if rule == MAILLARD:
        weights = np.cumsum(np.exp(-count * (mean - mean.min()) ** 2 / v))
        return int(np.searchsorted(weights, rng.random() * weights[-1]))
    for i in range(count.size):
        index[i] += 1e-9 * rng.random()  # between equal ones, any
    return int(np.argmin(index))


@njit(cache=True)
def _first(A: np.ndarray, count: np.ndarray) -> int:
    """Return the arm that reveals most of what was never seen."""
    arm, most = 0, 0
    for j in range(count.size):
        new = 0
        for i in range(count.size):
            new += A[j, i] and count[i] == 0
        if new > most:
            arm, most = j, new
    return arm


@njit(cache=True)
def _cover(A: np.ndarray) -> np.ndarray:
    seen, cover = np.zeros(A.shape[0]), np.empty(0, np.int64)
    while (seen == 0).any():
        arm = _first(A, seen)
        seen += A[arm]
        cover = np.append(cover, arm)
    return cover
