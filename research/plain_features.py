"""Decisions with features beside what a practitioner writes in ten lines: `python research/plain_features.py`.

The ten lines are a ridge regression for each arm, which learns all that is revealed and plays the arm with the least
prediction; and the same with a share of 0.1 of the rounds played at random. Each problem is drawn anew, with a split
and a seed that nothing was chosen by. The numbers are mean losses over 8 seeds.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

sys.path.append(str(Path(__file__).parents[1] / "benchmarks"))

from early_exits import NAMES, Problem, linear, orders, problem

import sidelong as sl

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["main"]

ROUNDS, SEEDS = (50, 365, 3_000), range(8)


def plain(graph: sl.FeedbackGraph, given: Problem, seed: int, random: float) -> list[float]:
    """Return what the ten lines pay in each round."""
    rng, (rounds, d), K = np.random.default_rng(seed), given.x.shape, graph.n_arms
    A, b = np.tile(np.eye(d + 1), (K, 1, 1)), np.zeros((K, d + 1))
    paid = []
    for t in range(rounds):
        x = np.append(given.x[t], 1.0)
        predicted = [x @ np.linalg.solve(A[i], b[i]) for i in range(K)]
        arm = int(rng.integers(K)) if rng.random() < random else int(np.argmin(predicted))
        for i in graph.out_neighbors(arm):
            A[i] += np.outer(x, x)
            b[i] += given.losses[t, i] * x
        paid.append(given.losses[t, arm])
    return paid


def ours(graph: sl.FeedbackGraph, given: Problem, seed: int, name: str) -> list[float]:
    """Return what an agent pays in each round, with features or without."""
    with_features = sl.ContextualAgent("squarecb.g", graph, seed=seed)
    without = sl.Agent("glance", graph, seed=seed)
    paid = []
    for x, losses in zip(given.x, given.losses, strict=True):
        decision = with_features.ask(x) if name == "squarecb.g" else without.ask()
        agent = with_features if name == "squarecb.g" else without
        agent.tell(decision, losses[decision.reveals])
        paid.append(losses[decision.arm])
    return paid


def problems() -> Iterator[Problem]:
    """Yield nine problems."""
    most = max(ROUNDS)
    yield from (problem(name, rounds=most, seed=2, split=2) for name in (*NAMES, "classification", "hastie"))
    yield from (orders(name, rounds=most, seed=2) for name in ("diabetes", "friedman1"))
    yield linear(10, rounds=most, seed=2)


def main() -> None:
    """Print a table."""
    names = ("squarecb.g", "greedy", "greedy, 0.1 at random", "glance, no features")
    print("| problem | rounds |", " | ".join(names), "| best fixed arm |")
    print("|---|---:|---:|---:|---:|---:|---:|", flush=True)
    wins = {rounds: dict.fromkeys(names, 0) for rounds in ROUNDS}
    for given in problems():
        graph = sl.graphs.nested(given.losses.shape[1])
        paid = {
            names[0]: [ours(graph, given, seed, "squarecb.g") for seed in SEEDS],
            names[1]: [plain(graph, given, 0, 0.0)],
            names[2]: [plain(graph, given, seed, 0.1) for seed in SEEDS],
            names[3]: [ours(graph, given, seed, "glance") for seed in SEEDS],
        }
        for rounds in ROUNDS:
            means = {name: float(np.mean(np.array(runs)[:, :rounds])) for name, runs in paid.items()}
            wins[rounds][min(means, key=lambda name: means[name])] += 1
            fixed = given.losses[:rounds].mean(axis=0).min()
            cells = " | ".join(f"{each:.3f}" for each in means.values())
            print(f"| {given.name} | {rounds:,} | {cells} | {fixed:.3f} |", flush=True)
    for rounds, won in wins.items():
        print(f"least loss at {rounds:,} rounds: " + ", ".join(f"{name} {count}" for name, count in won.items()))


if __name__ == "__main__":
    main()
