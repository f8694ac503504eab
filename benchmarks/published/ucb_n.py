"""UCB-N on similar arms: H. Qi, G. Fei, L. Zhu, "Graph Feedback Bandits with Similar Arms", UAI 2024, with their code.

Bernoulli arms whose means are uniform; an arm reveals those whose means are less than 0.05 away.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from regrets import joined, summary

import sidelong as sl

T, SEEDS = 10_000, 20
#: Regret by round, as published.
PUBLISHED = {100: 43.0, 1_000: 273.0, 5_000: 621.7, 10_000: 772.0}
THEIRS = {"width": 1.0, "delta": 1 / (math.sqrt(2) * T**2), "unseen": 1.0}


def similar_arms(seed: int, K: int = 1_000) -> tuple[sl.FeedbackGraph, np.ndarray]:
    """Return the graph and the mean losses that their seed gives; their rewards are one less the losses."""
    random = np.random.RandomState(seed + 1)  # theirs
    random.uniform(0, 1, K)  # the spreads of arms, which Bernoulli arms do not have
    means = 1.0 - random.uniform(0, 1, K)
    return sl.FeedbackGraph.from_matrix(np.abs(means[:, None] - means[None, :]) < 0.05), means


def regrets(**options: float) -> np.ndarray:
    """Return the regret of each seed at the published rounds."""
    found = []
    for seed in range(SEEDS):
        graph, means = similar_arms(seed)
        world = sl.losses.bernoulli(means)
        result = sl.simulate("ucb-n", graph, world, T, seed=seed, checkpoints=[*PUBLISHED], progress=False, **options)
        found.append(result.regret[0])
    return np.array(found)


def play() -> dict[str, Any]:
    """Return mean regrets by round: published, with the constants of the source, and as shipped."""
    return summary(PUBLISHED, regrets(**THEIRS), regrets())


def rows(found: dict[str, Any]) -> list[tuple[str, str, str, str]]:
    """Return the row of the table."""
    published, ours = joined(found)
    rounds = " / ".join(f"{each:,}" for each in found["at"])
    return [("Qi and others, UAI 2024", f"UCB-N, 1,000 similar arms, regret at t = {rounds}", published, ours)]


def brief(found: dict[str, Any]) -> list[tuple[str, str, str]]:
    """Return the row of the README."""
    published, alike, shipped = (f"{found[name][-1]:,.0f}" for name in ("published", "alike", "shipped"))
    setting = f"Regret of UCB-N after {found['at'][-1]:,} rounds (Qi et al., 2024)"
    return [(setting, published, f"{alike} with their constants, {shipped} with ours")]
