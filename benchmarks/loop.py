"""A round of `simulate` against the same loop in C and in NumPy, and against other packages."""

from __future__ import annotations

import functools
import importlib.util
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import plain_numpy
import reference
import rivals
from measure import Row, best_within, means, print_table, seconds

import sidelong as sl
from sidelong.numerics import DRAWS, uniform

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import numpy.typing as npt

SEED = 1
BUDGET = 2.5  # seconds for each row
ROUNDS = {10: 1_000_000, 100: 25_000, 1_000: 5_000, 10_000: 1_000}
#: Up to so many arms we ask for the time of the loop in C, and for 1.25 times that of one with a cheap generator.
MOST_ARMS = 1_000


def graphs(K: int) -> dict[str, sl.FeedbackGraph]:
    """Return a graph of each family."""
    return {
        "self-loops": sl.graphs.self_loops(K),
        "cliques of 5": sl.graphs.cliques([5] * (K // 5)),
        "star": sl.graphs.star(K),
        "random": sl.graphs.erdos_renyi(K, 3 / K, seed=SEED, directed=True),
        "nested": sl.graphs.nested(K),
    }


def rows() -> Iterator[Row]:
    """Measure everything."""
    for K in ROUNDS:
        for family, graph in graphs(K).items():
            yield against_c(family, graph)
    for family, graph in graphs(10).items():
        yield against_c(family, graph, strict=True)
    yield against_before()
    for K in ROUNDS:
        if K <= MOST_ARMS:
            for family, graph in graphs(K).items():
                yield against_cheap(family, graph)
    yield from against_numpy()
    yield from against_packages()
    yield from against_each_other()


def simulated(graph: sl.FeedbackGraph, rounds: int, start: str = "all") -> sl.Result:
    """Play one run on one core."""
    world = sl.losses.bernoulli(means(graph.n_arms))
    return sl.simulate("exp3.g++", graph, world, rounds, seed=SEED, checkpoints=1, threads=1, start=start)


def a_round(graph: sl.FeedbackGraph, start: str = "all") -> float:
    """Return the seconds of a round, over many."""
    rounds = ROUNDS[graph.n_arms]
    return seconds(lambda: simulated(graph, rounds, start)) / rounds


def against_c(family: str, graph: sl.FeedbackGraph, *, strict: bool = False) -> Row:
    """Leave out the initial rounds, one an arm, which take no time in C, and would be most rounds of many arms."""
    K, what = graph.n_arms, f"simulate, {family}, K = {graph.n_arms:,}"
    ours = functools.partial(a_round, graph, start="none")
    if not reference.available():
        return Row(what, *best_within(BUDGET, ours), "C: no compiler found")
    flags = reference.STRICT if strict else reference.FAST
    play = functools.partial(reference.play, graph, means(K), seed=SEED, flags=flags)
    same = np.array_equal(play(rounds=1_000), simulated(graph, 1_000, start="none").plays[0])
    mine, theirs = best_within(BUDGET, ours, lambda: seconds(lambda: play(rounds=ROUNDS[K])) / ROUNDS[K])
    return Row(
        what,
        mine,
        "C, -O3, IEEE arithmetic" if strict else "C, -O3 -ffast-math",
        theirs,
        at_least=1.0 if K <= MOST_ARMS and not strict else None,
        warning="" if same else "other arms played",
    )


def against_before() -> Row:
    """Let C draw losses as sidelong did before it took both halves of a block: other losses, so that plays differ."""
    goal = 0.737 / 0.85  # the ratio that sidelong had with the same random numbers, and the share of its time asked for
    return _against_generator("cliques of 5", graphs(10)["cliques of 5"], "TEN", "C, a block of ten for a loss", goal)


def against_cheap(family: str, graph: sl.FeedbackGraph) -> Row:
    """Let C take a cheap generator, as one does who needs neither streams nor a margin."""
    return _against_generator(family, graph, "CHEAP", "C, a cheap generator", 0.8)


def _against_generator(family: str, graph: sl.FeedbackGraph, generator: str, name: str, at_least: float) -> Row:
    K, what = graph.n_arms, f"simulate, {family}, K = {graph.n_arms:,}"
    ours = functools.partial(a_round, graph, start="none")
    if not reference.available():
        return Row(what, *best_within(BUDGET, ours), "C: no compiler found")
    flags = (*reference.FAST, f"-DGENERATOR={generator}")
    play = functools.partial(reference.play, graph, means(K), rounds=ROUNDS[K], seed=SEED, flags=flags)
    mine, theirs = best_within(BUDGET, ours, lambda: seconds(play) / ROUNDS[K])
    return Row(what, mine, name, theirs, at_least=at_least)


def against_numpy() -> Iterator[Row]:
    """Let NumPy play the same draws and losses, made beforehand."""
    K, rounds = 10, 1_000
    graph = graphs(K)["cliques of 5"]
    world = sl.losses.bernoulli(means(K))
    A = graph.matrix()
    losses = np.array([[world.loss(SEED, 0, t, arm) for arm in range(K)] for t in range(1, rounds + 1)])
    draws = np.array([uniform(SEED, DRAWS, 0, t, 0) for t in range(1, rounds + 1)])
    plays = simulated(graph, rounds).plays[0]
    players = {
        "NumPy, whole arrays": functools.partial(plain_numpy.play, A, losses, draws),
        "NumPy, oracle of the tests": functools.partial(play_oracle, A, losses, draws),
    }
    same = [np.array_equal(play(), plays) for play in players.values()]
    times = best_within(
        BUDGET,
        lambda: a_round(graph),
        *(lambda play=play: seconds(play) / rounds for play in players.values()),
    )
    for name, theirs, is_same in zip(players, times[1:], same, strict=True):
        yield Row(
            f"simulate, cliques of 5, K = {K}",
            times[0],
            name,
            theirs,
            at_least=300,
            warning="" if is_same else "other arms played",
        )


def play_oracle(
    A: npt.NDArray[np.bool_], losses: npt.NDArray[np.float64], draws: npt.NDArray[np.float64]
) -> npt.NDArray[np.int64]:
    """Play with the oracle of the tests, typed from the pseudo-code; return how often each arm was played."""
    learner = _oracle().Exp3Gpp(len(A), rate="adaptive")
    plays = np.zeros(len(A), np.int64)
    for l, draw in zip(losses, draws, strict=True):
        told = learner.distribution(A)
        arm = min(int(np.searchsorted(np.cumsum(told.p), draw, side="right")), len(A) - 1)
        learner.update(told, arm, {i: l[i] for i in range(len(A)) if A[arm, i]})
        plays[arm] += 1
    return plays


@functools.cache
def _oracle() -> Any:
    spec = importlib.util.spec_from_file_location("naive", Path(__file__).parents[1] / "tests" / "naive.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def against_packages() -> Iterator[Row]:
    """Let each package play the graph that it can play: most know self-loops only."""
    K = 10
    loops, cliques = (graphs(K)[family] for family in ("self-loops", "cliques of 5"))
    packages: list[tuple[str, str, sl.FeedbackGraph, Callable[[], float]]] = [
        ("river Exp3", "river", loops, lambda: rivals.river_exp3(K)),
        ("MABWiser UCB1", "mabwiser", loops, lambda: rivals.mabwiser_ucb1(K)),
        ("Vowpal Wabbit graph_feedback", "vowpalwabbit", cliques, lambda: rivals.vowpal_wabbit(cliques, means(K))),
    ]
    for name, module, graph, rival in packages:
        what = f"simulate, {'self-loops' if graph is loops else 'cliques of 5'}, K = {K}"
        ours = functools.partial(a_round, graph)
        if importlib.util.find_spec(module) is None:
            yield Row(what, *best_within(BUDGET, ours), f"{name}: not installed")
        else:
            mine, theirs = best_within(BUDGET, ours, rival)
            yield Row(what, mine, name, theirs)


def against_each_other() -> Iterator[Row]:
    """Let every learner play ten arms on a graph that it can play: none may take more than three times EXP3.G++.

    SPM solves for two powers of every probability in each round, and may take six times.
    """
    K, rounds = 10, 200_000
    world = sl.losses.bernoulli(means(K))
    for name in sl.learners.names():
        if name == "exp3.g++":
            continue
        graph = graphs(K)["cliques of 5"] if name != "hedge" else sl.graphs.complete(K)

        def a_round_of(learner: str, graph: sl.FeedbackGraph = graph) -> float:
            return seconds(lambda: sl.simulate(learner, graph, world, rounds, threads=1)) / rounds

        times = best_within(1.0, functools.partial(a_round_of, name), functools.partial(a_round_of, "exp3.g++"))
        at_least = {"ts-n": None, "ucb-lp": None, "spm-2024": 1 / 6}.get(name, 1 / 3)
        yield Row(f"simulate, {name}, K = {K}", times[0], "exp3.g++", times[1], at_least)


if __name__ == "__main__":
    print_table(rows())
