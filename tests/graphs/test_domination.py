"""The greedy dominating set against a slow one, and against the smallest."""

import math

import numpy as np
import pytest

import naive
import sidelong as sl
from sidelong.graphs.cover import cover_scratch
from sidelong.graphs.domination import dominate


def dominating_set(graph):
    K = graph.n_arms
    chosen = np.ones(K, np.bool_)
    size = dominate(graph.arrays, chosen, cover_scratch(K))
    assert size == chosen.sum()
    return np.flatnonzero(chosen).tolist()


@pytest.mark.interpreted
@pytest.mark.parametrize("seed", range(40))
def test_it_is_the_greedy_choice_and_not_much_larger_than_the_smallest(seed):
    rng = np.random.default_rng(seed)
    K = int(rng.integers(1, 11))
    A = rng.random((K, K)) < rng.uniform(0.05, 0.6)
    np.fill_diagonal(A, val=True)
    found = dominating_set(sl.FeedbackGraph.from_matrix(A).as_arcs())
    assert found == sorted(naive.greedy_dominating_set(A))
    assert A[found].any(axis=0).all()
    assert len(found) <= (1 + math.log(K)) * naive.domination(A)


@pytest.mark.interpreted
@pytest.mark.parametrize("seed", range(20))
def test_intervals_and_arcs_give_the_same_set(seed):
    rng = np.random.default_rng(seed)
    K = int(rng.integers(1, 30))
    low = [int(rng.integers(max(0, i - 5), i + 1)) for i in range(K)]
    high = [int(rng.integers(i + 1, min(K, i + 6) + 1)) for i in range(K)]
    graph = sl.FeedbackGraph.from_intervals(low, high)
    assert dominating_set(graph) == dominating_set(graph.as_arcs())


@pytest.mark.interpreted
@pytest.mark.parametrize(
    ("graph", "arms"),
    [
        (sl.graphs.star(6, hub=4), [4]),
        (sl.graphs.nested(7), [6]),
        (sl.graphs.self_loops(4), [0, 1, 2, 3]),
        (sl.graphs.path(6), [1, 4]),
        (sl.graphs.cliques([2, 3, 1]), [0, 2, 5]),
    ],
)
def test_known_graphs(graph, arms):
    assert dominating_set(graph) == arms


def test_an_arm_that_is_covered_already_may_be_chosen():
    """Arm 0 reveals 0 to 3; arm 1, which it reveals, then reveals most of the rest."""
    A = np.eye(7, dtype=bool)
    A[0, :4] = True
    A[1, 4:7] = True
    assert dominating_set(sl.FeedbackGraph.from_matrix(A)) == [0, 1]
