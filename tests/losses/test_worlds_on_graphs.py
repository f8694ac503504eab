import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import sidelong as sl
from sidelong.numerics import log


def naive_ucb_n(matrix, rounds, loss):
    """Play UCB-N: the smallest mean - sqrt(2 ln t / O), unobserved arms first, then the lowest index."""
    K = len(matrix)
    seen = [[] for _ in range(K)]
    played = []
    for t in range(1, rounds + 1):
        index = [
            sum(l) / len(l) - math.sqrt(2 * log(float(t)) / len(l)) if l else -math.inf
            for l in seen
        ]  # fmt: skip
        arm = index.index(min(index))
        played.append(arm)
        for j in range(K):
            if matrix[arm][j]:
                seen[j].append(loss(t, j))
    return played


GRAPHS = {
    "star": sl.graphs.star(4),
    "nested": sl.graphs.nested(5),
    "self-loops": sl.graphs.self_loops(3),
    "complete": sl.graphs.complete(4),
    "cycle": sl.graphs.directed_cycle(5),
    "no self-loops": sl.FeedbackGraph.from_edges([(0, 1), (1, 2), (2, 0)]),
}


@pytest.mark.parametrize("graph", GRAPHS.values(), ids=GRAPHS)
def test_ucb_n_loses_every_round_against_its_breaker(graph):
    T, K = 1500, graph.n_arms
    world = sl.losses.breaker(graph, rounds=T)
    played = naive_ucb_n(graph.matrix().tolist(), T, lambda t, arm: world.loss(0, 0, t, arm))
    suffered = sum(world.loss(0, 0, t, arm) for t, arm in enumerate(played, 1))
    assert suffered == T
    assert K * (suffered - world.best_total(0, 0, [T])[0]) >= T * (K - 1)


@pytest.mark.interpreted
def test_a_breaker_recorded_for_longer_begins_alike():
    short, long = (sl.losses.breaker(sl.graphs.star(4), rounds) for rounds in (50, 80))
    np.testing.assert_array_equal(long.arrays.integers[:50], short.arrays.integers)


@pytest.mark.interpreted
def test_a_breaker_takes_loss_1_once_a_round():
    world = sl.losses.breaker(sl.graphs.cycle(4), rounds=50)
    assert all(sum(world.loss(run, run, t, arm) for arm in range(4)) == 1 for t in range(1, 51) for run in (0, 1))


def set_of(world):
    return set(np.flatnonzero(world.arrays.integers[:-1] >= 0).tolist())


@pytest.mark.interpreted
def test_lower_bound_means():
    world = sl.losses.lower_bound(sl.graphs.star(5), gap=0.125)
    for run in range(20):
        means = [world.mean(7, run, 3, arm) for arm in range(5)]
        assert means[0] == 1.0  # the hub is seen by all
        assert sorted(means[1:]) == [0.375, 0.5, 0.5, 0.5]
        assert means == [world.mean(7, run, 10**9, arm) for arm in range(5)]  # for the whole run
        assert world.loss(7, run, 4, 0) == 1.0


def test_the_best_arm_of_a_lower_bound_is_uniform_on_the_set():
    runs, size = 4000, 4
    world = sl.losses.lower_bound(sl.graphs.path(8), gap=0.5)
    assert set_of(world) == {0, 2, 4, 7}
    best = [next(arm for arm in set_of(world) if world.mean(1, run, 1, arm) == 0.0) for run in range(runs)]
    # Hoeffding: each of the four counts is off by more than this with probability 1e-9.
    allowed = math.sqrt(runs * math.log(2e9) / 2)
    assert all(abs(best.count(arm) - runs / size) < allowed for arm in set_of(world))


@pytest.mark.interpreted
def test_lower_bound_gap_from_horizon():
    world = sl.losses.lower_bound(sl.graphs.self_loops(4), horizon=100)
    assert world.arrays.numbers.tolist() == [0.25 * math.sqrt(4 / 100)]


@pytest.mark.interpreted
def test_lower_bound_on_a_given_set():
    assert set_of(sl.losses.lower_bound(sl.graphs.self_loops(5), gap=0.1, independent_set=(4, 1))) == {1, 4}


@given(st.integers(1, 9), st.data())
def test_the_greedy_set_is_independent_and_cannot_grow(n, data):
    edges = data.draw(st.lists(st.tuples(st.integers(0, n - 1), st.integers(0, n - 1)), max_size=3 * n))
    graph = sl.FeedbackGraph.from_edges(edges, n_arms=n, self_loops=True)
    chosen = set_of(sl.losses.lower_bound(graph, gap=0.1))
    joined = graph.matrix() | graph.matrix().T
    assert not any(joined[i, j] for i in chosen for j in chosen if i != j)
    assert all(i in chosen or any(joined[i, j] for j in chosen) for i in range(n))


def test_no_edge_list_is_made_for_a_long_ladder():
    graph = sl.graphs.nested(100_000)
    assert sl.losses.lower_bound(graph, gap=0.1).n_arms == 100_000
    assert sl.losses.breaker(graph, 20).rounds == 20
