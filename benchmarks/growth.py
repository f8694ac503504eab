"""How the time of a round grows: in step with the number of arms, and not at all with the number of rounds."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

from measure import Row, best_within, means, print_table, seconds

import sidelong as sl

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

ARMS = (100, 1_000, 10_000, 100_000)
ROUNDS = 1_000
#: With a gap of 0.2 none is known yet after as many rounds. With one of 0.9 most are, and their order keeps changing.
CASES: tuple[tuple[str, float, Callable[[int], sl.FeedbackGraph]], ...] = (
    ("self-loops", 0.2, sl.graphs.self_loops),
    ("nested", 0.2, sl.graphs.nested),
    ("nested, gaps known", 0.9, sl.graphs.nested),
)
GOALS = {("nested", 100_000): 15e-9, ("nested, gaps known", 100_000): 25e-9}
SHORT, LONG = 100_000, 10_000_000


def rows() -> Iterator[Row]:
    """Measure both."""
    for name, gap, family in CASES:
        times = best_within(10.0, *(functools.partial(an_arm, family(K), gap) for K in ARMS))
        for K, time in zip(ARMS[1:], times[1:], strict=True):
            goal = GOALS.get((name, K))
            yield Row(f"an arm, {name}, K = {K:,}", time, f"K = {ARMS[0]}", times[0], at_most=goal)
    short, long = best_within(5.0, lambda: a_round(SHORT), lambda: a_round(LONG))
    yield Row(f"a round of {LONG:,}, K = 10", long, f"a round of {SHORT:,}", short)


def an_arm(graph: sl.FeedbackGraph, gap: float) -> float:
    """Return the seconds that a round takes for each arm. Fewer arms get more runs, for the same work in all.

    The initial rounds, one an arm and quick, are left out.
    """
    K = graph.n_arms
    world = sl.losses.bernoulli(means(K, gap))
    runs = ARMS[-1] // K
    options = {"checkpoints": 1, "threads": 1, "start": "none"}
    return seconds(lambda: sl.simulate("exp3.g++", graph, world, ROUNDS, runs, **options)) / (runs * ROUNDS * K)


def a_round(rounds: int) -> float:
    """Return the seconds of a round at ten arms."""
    graph, world = sl.graphs.cliques([5, 5]), sl.losses.bernoulli(means(10))
    return seconds(lambda: sl.simulate("exp3.g++", graph, world, rounds, checkpoints=1, threads=1)) / rounds


if __name__ == "__main__":
    print_table(rows())
