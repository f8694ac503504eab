"""Numbers of graphs against trying all sets of arms."""

import numpy as np
import pytest

import naive
import sidelong as sl
from sidelong.errors import GraphError
from sidelong.graphs import numbers


@pytest.mark.parametrize("seed", range(60))
def test_strong_independence_of_random_digraphs_and_intervals(seed):
    rng = np.random.default_rng(seed)
    K = int(rng.integers(1, 9))
    if seed % 2:
        low = np.sort([rng.integers(0, i + 1) for i in range(K)])
        high = np.sort([rng.integers(i + 1, K + 1) for i in range(K)])
        graph = sl.FeedbackGraph.from_intervals(np.minimum(low, np.arange(K)), np.maximum(high, np.arange(1, K + 1)))
    else:
        graph = sl.FeedbackGraph.from_matrix((rng.random((K, K)) < rng.uniform(0.1, 0.9)) | np.eye(K, dtype=bool))
    found = numbers.strong_independence(graph)
    A = graph.matrix()
    assert found.value == naive.strong_independence(A)
    chosen = found.certificate
    assert chosen.size == found.value
    assert not any(A[i, j] and A[j, i] for i in chosen for j in chosen if i != j)


def test_large_intervals_need_no_edges():
    assert numbers.strong_independence(sl.graphs.nested(100_000)).value == 100_000
    assert numbers.strong_independence(sl.graphs.complete(100_000)).value == 1


def test_a_graph_that_is_too_large_is_refused_with_what_to_do():
    n = 4000
    low = np.where(np.arange(n) % 2, 0, np.arange(n) // 2)  # not sorted
    with pytest.raises(GraphError, match="Give strong_independence yourself"):
        numbers.strong_independence(sl.FeedbackGraph.from_intervals(low, np.full(n, n)))
