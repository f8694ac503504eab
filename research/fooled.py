"""Who is fooled, over a year and over 10^5 rounds: `python research/fooled.py [LEARNER ...]`.

Levels jump, the first tenth of the rounds is corrupted, or another arm is the best from the middle on; each on four
graphs. A number is the mean regret against the best fixed arm, over the graphs. It is negative where a learner follows
a turn that no fixed arm can. The simple rules of `rules.py` meet the same losses as the learners.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import rules
from numba import njit

import sidelong as sl
from sidelong.losses.world_kernels import loss, mean

if TYPE_CHECKING:
    import numpy.typing as npt

    from sidelong.losses.world import World

    Floats = npt.NDArray[np.float64]

SEED = 3
HORIZONS = {365: 32, 100_000: 3}  #: with the runs of each
RULES = ("follow the means", "Gaussian Thompson", "Maillard")
LEARNERS = ("glance", "exp3-set", "exp3.g++", "ucb-n")
GRAPHS = [sl.graphs.self_loops(6), sl.graphs.nested(10), sl.graphs.star(8), sl.graphs.banded(9, 1)]
KINDS = ("levels jump", "corrupted", "switching")


class Game(NamedTuple):
    """A graph and a world, as the simple rules take them."""

    graphs: list[sl.FeedbackGraph]
    losses: Floats
    charged: Floats
    which: npt.NDArray[np.int64]

    @property
    def runs(self) -> int:
        """How many tables there are."""
        return self.losses.shape[0]


def world_of(kind: str, K: int, rounds: int) -> World:
    """Return a world with a gap of 0.2 in which arm K / 2 is the best; after a switch, arm K - 1 and by as much."""
    gaps = np.full(K, 0.2)
    gaps[K // 2] = 0.0
    if kind == "levels jump":
        return sl.losses.constrained(gaps)
    if kind == "corrupted":
        return sl.losses.corrupted(0.4 + gaps, rounds // 10, "flip")
    after = np.full(K, 0.6)
    after[K - 1] = 0.4
    return sl.losses.switching([0.4 + gaps, after], at=rounds // 2)


def play(graph: sl.FeedbackGraph, world: World, rounds: int, runs: int, learners: list[str]) -> list[float]:
    """Return the mean regret of each learner, and then of each rule."""
    found = [
        float(sl.simulate(name, graph, world, rounds, runs, SEED, checkpoints=[rounds], threads=1).regret[:, -1].mean())
        for name in learners
    ]
    losses, means = np.empty((2, runs, rounds, graph.n_arms))
    for run in range(runs):
        _fill(world.arrays, run, losses[run], means[run])
    game = Game([graph], losses, means, np.zeros((runs, rounds), np.int64))
    least = means.sum(1).min(1).mean()
    return found + [rules.play(name, game, SEED) - least for name in RULES]


@njit(cache=True)
def _fill(world, run, losses, means):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
    for t in range(losses.shape[0]):
        for arm in range(losses.shape[1]):
            losses[t, arm] = loss(world, SEED, run, t + 1, arm)
            means[t, arm] = mean(world, SEED, run, t + 1, arm)


def main(learners: list[str]) -> None:
    """Print a table in Markdown."""
    print(f"| world | rounds | {' | '.join([*learners, *RULES])} |\n|---|---:|{'---:|' * (len(learners) + len(RULES))}")
    for rounds, runs in HORIZONS.items():
        for kind in KINDS:
            regret = np.mean(
                [play(graph, world_of(kind, graph.n_arms, rounds), rounds, runs, learners) for graph in GRAPHS], axis=0
            )
            print(f"| {kind} | {rounds:,} | {' | '.join(f'{each:,.0f}' for each in regret)} |", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:] or list(LEARNERS))
