"""Two suites of instances: one that the practical preset of EXP3.G++ was tuned on, and one that it was not.

An instance is a graph, a world, a gap and a horizon. The worlds are a stochastic one (Bernoulli losses, one arm better
by the gap), a stochastically constrained adversary (the same gap in every round, while the level of all losses jumps)
and, in the report, a corrupted one. The second suite has other graphs, numbers of arms, gaps, horizons and seeds, and
nothing was chosen by it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

import sidelong as sl
from sidelong.simulation.scoreboard import Contestant, Instance

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["CONTESTANTS", "REPORT_SEED", "TUNE_SEED", "report", "tune"]

TUNE_SEED, REPORT_SEED = 11, 20_260

CONTESTANTS = [
    Contestant("exp3.g++ practical", "exp3.g++", {"preset": "practical"}),
    Contestant("tsallis-inf rv", "tsallis-inf", {"estimator": "rv"}),
    Contestant("tsallis-inf rv, graph", "tsallis-inf", {"estimator": "rv", "feedback": "graph"}),
    Contestant("tsallis-inf graph", "tsallis-inf", {"feedback": "graph"}),
    Contestant("ito-2022 parameter-free", "ito-2022", {"variant": "parameter-free"}),
    *(Contestant(name, name) for name in sl.learners.names()),
]


def tune() -> Iterator[Instance]:
    """96 instances: 6 graphs of 10 and 20 arms, 2 worlds, 2 gaps, 2 horizons."""
    for K, best in ((10, 3), (20, 7)):
        graphs = {
            "loops": sl.graphs.self_loops(K),
            "cliques of 5": sl.graphs.cliques([5] * (K // 5)),
            "star": sl.graphs.star(K),
            "nested": sl.graphs.nested(K),
            "random .3": sl.graphs.erdos_renyi(K, 0.3, seed=0, directed=True),
            "complete": sl.graphs.complete(K),
        }
        for name, graph in graphs.items():
            for gap in (0.1, 0.3):
                for rounds in (10_000, 100_000):
                    yield from both_worlds(name, graph, best, gap, rounds)


def report() -> Iterator[Instance]:
    """66 instances on 20 other graphs, of 7 to 50 arms, with other gaps, and horizons up to a million."""
    families = sl.graphs
    for name, graph, best, games in (
        ("path", families.path(12), 4, [(0.15, 50_000), (0.4, 20_000)]),
        ("cycle", families.cycle(9), 0, [(0.05, 200_000), (0.25, 100_000)]),
        ("wheel", families.wheel(16), 9, [(0.2, 100_000), (0.5, 30_000)]),
        ("hypercube", families.hypercube(4), 5, [(0.1, 200_000), (0.35, 30_000)]),
        ("circulant", families.circulant(30, 2), 17, [(0.2, 100_000), (0.05, 100_000)]),
        ("banded", families.banded(25, 4), 12, [(0.12, 100_000), (0.45, 10_000)]),
        ("preferential", preferential(40, 2, seed=3), 22, [(0.25, 100_000), (0.08, 100_000)]),
        ("tournament", families.rotational_tournament(15), 6, [(0.15, 50_000), (0.4, 10_000)]),
        ("cliques 1, 2, 4, 8", families.cliques([1, 2, 4, 8]), 3, [(0.1, 100_000), (0.3, 50_000)]),
        ("in-star", families.in_star(14), 5, [(0.2, 100_000)]),
        ("out-star", families.out_star(26), 11, [(0.3, 100_000)]),
        ("bipartite", families.complete_bipartite(4, 8), 7, [(0.2, 100_000)]),
        ("random .15", families.erdos_renyi(50, 0.15, seed=77, directed=True), 40, [(0.2, 100_000)]),
        ("undirected random .5", families.erdos_renyi(30, 0.5, seed=78), 13, [(0.1, 30_000)]),
        ("loops", families.self_loops(7), 6, [(0.2, 1_000_000)]),
        ("star", families.star(8), 5, [(0.25, 1_000_000), (0.5, 10_000)]),
        ("complete", families.complete(35), 20, [(0.05, 100_000), (0.5, 10_000)]),
        ("cocktail party", families.cocktail_party(12), 7, [(0.2, 30_000)]),
        ("directed cycle", families.directed_cycle(11), 4, [(0.3, 100_000)]),
        ("many loops", families.self_loops(40), 33, [(0.4, 100_000)]),
    ):
        for gap, rounds in games:
            yield from both_worlds(name, graph, best, gap, rounds)
        if name in {"path", "wheel", "cliques 1, 2, 4, 8", "loops"}:
            world = sl.losses.corrupted(means(graph.n_arms, 0.2, best), budget=300)
            yield Instance(f"{name}, corrupted, gap 0.2, T = 100000", graph, world, 100_000)


def both_worlds(name: str, graph: sl.FeedbackGraph, best: int, gap: float, rounds: int) -> Iterator[Instance]:
    """Yield the stochastic and the constrained instance."""
    K = graph.n_arms
    label = f"{name}, K = {K}, {{}}, gap {gap}, T = {rounds}"
    yield Instance(label.format("stochastic"), graph, sl.losses.bernoulli(means(K, gap, best)), rounds)
    yield Instance(label.format("constrained"), graph, sl.losses.constrained(gaps=gap, n_arms=K, best=best), rounds)


def means(n_arms: int, gap: float, best: int) -> list[float]:
    """Return mean losses around one half."""
    return [0.5 + gap / 2 - gap * (arm == best) for arm in range(n_arms)]


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
