"""Two suites of instances: one that `glance` was tuned on, and one that it was not.

An instance is a graph, a world and a horizon. Both suites go through graphs of few and many arms, with a best arm that
reveals all, itself alone, or something between, fixed and changing. On each graph they play a stochastic world, one
with gaps that stay while the level jumps (the stochastically constrained adversary), and in turn Beta losses, a best
arm that is second best in the first rounds, and corrupted first rounds. Gaps, their shape, the level of the losses and
the horizon are drawn. The second suite has other graphs, numbers of arms, gaps, horizons and seeds, and nothing was
chosen by it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from contests import Contest, Contestant

import sidelong as sl
from sidelong.graphs import (
    alternating,
    banded,
    circulant,
    cliques,
    cocktail_party,
    complete,
    complete_bipartite,
    cycle,
    directed_circulant,
    directed_cycle,
    drawn,
    erdos_renyi,
    grid,
    hypercube,
    in_star,
    nested,
    out_star,
    path,
    petersen,
    resampled,
    rotational_tournament,
    self_loops,
    star,
    wheel,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy.typing as npt

    from sidelong.losses.world import World

__all__ = ["CONTESTANTS", "REPORT_SEED", "TUNE_SEED", "report", "tune"]

TUNE_SEED, REPORT_SEED = 11, 20_261

CONTESTANTS = [
    Contestant("tsallis-inf rv", "tsallis-inf", {"estimator": "rv"}),
    Contestant("tsallis-inf rv, graph", "tsallis-inf", {"estimator": "rv", "feedback": "graph"}),
    Contestant("tsallis-inf graph", "tsallis-inf", {"feedback": "graph"}),
    *(Contestant(name, name) for name in sl.learners.names()),
]


class Place(NamedTuple):
    """A graph, or a sequence of graphs, and the arm that is best on it."""

    name: str
    graph: sl.FeedbackGraph | sl.graphs.GraphSequence
    best: int


class Choice(NamedTuple):
    """What the draws choose between; each as often as it is listed."""

    gaps: tuple[float, ...]
    rounds: tuple[int, ...]
    worlds: tuple[str, ...]  #: all of these, and one more
    levels: tuple[float, ...]  #: from 0, where the best arm loses nothing, to 1, where the worst arm loses all


TUNE = Choice(
    gaps=(0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.5),
    rounds=(10_000, 10_000, 30_000, 100_000),
    worlds=("bernoulli", "bernoulli", "constrained", "constrained"),
    levels=(0.2, 0.5, 0.5, 0.8),
)
REPORT = Choice(
    gaps=(0.015, 0.03, 0.07, 0.15, 0.25, 0.4),
    rounds=(10_000, 10_000, 20_000, 50_000),
    worlds=("bernoulli", "constrained"),
    levels=(0.1, 0.4, 0.5, 0.6, 0.9),
)


def tune() -> Iterator[Contest]:
    """Yield 251 instances, of 2 to 100 arms and up to a million rounds."""
    places = [
        *(Place("complete", complete(K), best) for K in (2, 3, 5) for best in (0, K - 1)),
        Place("complete", complete(30), 11),
        *(Place("star", star(K), best) for K in (3, 5, 10, 40) for best in (0, K // 2)),
        *(Place("wheel", wheel(K), best) for K in (5, 12) for best in (0, K // 2)),
        *(Place("out-star", out_star(K), best) for K in (5, 20) for best in (0, K - 1)),
        *(Place("in-star", in_star(K), best) for K in (5, 15) for best in (0, 2)),
        *(Place("loops", self_loops(K), best) for K, best in ((2, 0), (5, 2), (10, 0), (30, 15), (100, 50))),
        Place("cliques", cliques([2, 2]), 0),
        Place("cliques", cliques([5] * 4), 7),
        *(Place("nested", nested(K), best) for K, best in ((6, 0), (25, 12), (10, 9))),
        Place("random .3", erdos_renyi(20, 0.3, seed=0, directed=True), 3),
        Place("undirected random .1", erdos_renyi(60, 0.1, seed=1), 0),
        Place("cycle", cycle(8), 5),
        Place("path", path(6), 0),
        Place("bipartite", complete_bipartite(3, 3), 0),
        Place("tournament", rotational_tournament(9), 4),
        Place("hypercube", hypercube(4), 0),
        Place("cocktail party", cocktail_party(6), 2),
        Place("directed cycle", directed_cycle(7), 0),
        Place("resampled .3", resampled(10, 0.3), 0),
        Place("star or loops", alternating([star(8), self_loops(8)]), 0),
        Place("one of three", drawn([complete(5), path(5), out_star(5, 2)]), 2),
    ]
    long = [
        (Place("loops", self_loops(4), 0), "bernoulli", 0.02),
        (Place("star", star(6), 0), "constrained", 0.05),
        (Place("loops", self_loops(20), 3), "bernoulli", 0.1),
        (Place("complete", complete(4), 1), "bernoulli", 0.01),
        (Place("cliques", cliques([3] * 4), 2), "bernoulli", 0.1),
        (Place("random .3", erdos_renyi(12, 0.3, seed=9, directed=True), 5), "constrained", 0.05),
    ]
    yield from games(places, long, TUNE, np.random.default_rng(5))


def report() -> Iterator[Contest]:
    """Yield 121 other instances, of 2 to 80 arms and up to a million rounds."""
    places = [
        *(Place("complete", complete(K), best) for K, best in ((2, 0), (3, 1), (4, 0), (6, 3), (50, 20))),
        *(Place("star", star(K), best) for K in (4, 7, 25) for best in (0, K - 2)),
        Place("star", star(12, hub=5), 5),
        *(Place("wheel", wheel(K), best) for K in (7, 18) for best in (0, K - 3)),
        *(Place("out-star", out_star(K), best) for K in (4, 12) for best in (0, 2)),
        *(Place("in-star", in_star(K), best) for K in (4, 10) for best in (0, 3)),
        *(Place("loops", self_loops(K), best) for K, best in ((3, 0), (7, 6), (16, 0), (60, 33))),
        Place("cliques 1, 2, 4, 8", cliques([1, 2, 4, 8]), 3),
        Place("cycle", cycle(5), 0),
        Place("grid", grid(3, 6), 7),
        Place("Petersen", petersen(), 0),
        Place("circulant", circulant(80, 3), 17),
        Place("directed circulant", directed_circulant(14, 3), 0),
        Place("banded", banded(25, 4), 12),
        Place("nested upwards", nested(14, reveals="higher"), 0),
        Place("preferential", preferential(40, 2, seed=3), 0),
        Place("random .15", erdos_renyi(50, 0.15, seed=77, directed=True), 40),
        Place("resampled .15", resampled(16, 0.15, directed=True), 5),
        Place("wheel or cycle", alternating([wheel(6), cycle(6)]), 0),
    ]
    long = [(Place("loops", self_loops(6), 0), "bernoulli", 0.05)]
    yield from games(places, long, REPORT, np.random.default_rng(REPORT_SEED))


def games(
    places: list[Place], long: list[tuple[Place, str, float]], choice: Choice, rng: np.random.Generator
) -> Iterator[Contest]:
    """Yield the instances on each place, and the long ones."""
    for k, place in enumerate(places):
        third = ("beta", "switching", "corrupted")[k % 3]
        for world in (*choice.worlds, third):
            gap, rounds = float(rng.choice(choice.gaps)), int(rng.choice(choice.rounds))
            shape = str(rng.choice(["one", "one", "spread", "two"]))
            gaps = gaps_of(shape, gap, place)
            level = float(rng.choice(choice.levels))
            losses = world_of(world, gaps, level, rng)
            name = f"{describe(place)}, {world}, {shape} gap {gap}, level {level}, T = {rounds}"
            yield Contest(name, place.graph, losses, rounds)
    for place, world, gap in long:
        losses = world_of(world, gaps_of("one", gap, place), 0.5, rng)
        yield Contest(f"{describe(place)}, {world}, one gap {gap}, T = 1000000", place.graph, losses, 1_000_000)


def describe(place: Place) -> str:
    """Return the name of a place, with its number of arms and the best one."""
    return f"{place.name}, K = {place.graph.n_arms}, best arm {place.best}"


def gaps_of(shape: str, gap: float, place: Place) -> npt.NDArray[np.float64]:
    """Return the gap of each arm: all the same, spread from it to 6 times it, or it and 5 times it in turn."""
    K = place.graph.n_arms
    gaps = {
        "one": np.full(K, gap),
        "spread": np.linspace(gap, min(6 * gap, 0.6), K),
        "two": np.where(np.arange(K) % 2 == 0, gap, min(5 * gap, 0.6)),
    }[shape]
    gaps[place.best] = 0.0
    return gaps


def world_of(kind: str, gaps: npt.NDArray[np.float64], level: float, rng: np.random.Generator) -> World:
    """Return a world with these gaps.

    Where the first rounds are others, there are so few of them that nobody can gain more than K / 2 there: a regret
    below -K would have no ratio.
    """
    early = max(1, round(gaps.size / (2 * gaps.max())))
    means = level * (1 - gaps.max()) + gaps
    if kind == "bernoulli":
        return sl.losses.bernoulli(means)
    if kind == "beta":
        return sl.losses.beta(means, 10)
    if kind == "constrained":
        return sl.losses.constrained(gaps)
    if kind == "corrupted":
        return sl.losses.corrupted(means, early, str(rng.choice(["flip", "swap"])))
    best = int(np.argmin(gaps))
    other = (best + 1) % gaps.size
    before = means.copy()
    before[[best, other]] = means[[other, best]]
    return sl.losses.switching([before, means], at=early)


def preferential(n_arms: int, links: int, seed: int) -> sl.FeedbackGraph:
    """Return an undirected graph in which each new arm is joined with some old ones, in proportion to their degrees."""
    rng = np.random.default_rng(seed)
    edges = [(i, j) for i in range(links + 1) for j in range(i)]
    for arm in range(links + 1, n_arms):
        ends = np.ravel(edges)
        joined: set[int] = set()
        while len(joined) < links:
            joined.add(int(rng.choice(ends)))
        edges += [(arm, other) for other in sorted(joined)]
    return sl.FeedbackGraph.from_edges(edges, n_arms, undirected=True, self_loops=True)
