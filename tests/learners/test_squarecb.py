import math

import numpy as np
import pytest

import naive
import sidelong as sl
from convex import optimum
from sidelong.errors import LearnerError
from sidelong.learners import squarecb
from sidelong.learners.interface import Asked

pytestmark = pytest.mark.interpreted

PATH5, NESTED4 = sl.graphs.path(5), sl.graphs.nested(4)
F = np.array([0.5, 0.2, 0.9, 0.4, 0.3])


def played(f, graph, gamma):
    """Return the probabilities, and the value that the kernel says they have."""
    params = squarecb.configure(graph, gamma_scale=gamma / math.sqrt(graph.n_arms + 1))
    state, p = squarecb.init(params, graph), np.empty(graph.n_arms)
    trace = np.append(np.empty(3), f)
    squarecb.distribution(params, state, graph.arrays, Asked.new(1, p, trace))
    assert trace[0] == pytest.approx(gamma)
    assert state.Theta[0] == pytest.approx(graph.n_arms + 1 + trace[1] * gamma)
    assert np.array_equal(trace[3:], f)
    return p, trace[1]


def instances(count, seed=0, most=8):
    """Yield predictions, a graph and gamma: a third of the graphs nested, the others directed and random."""
    rng = np.random.default_rng(seed)
    for n in range(count):
        K = int(rng.integers(2, most + 1))
        if n % 3 == 0:
            graph = sl.graphs.nested(K, reveals="lower" if n % 2 else "higher")
        else:
            graph = sl.FeedbackGraph.from_matrix((rng.random((K, K)) < rng.random()) | np.eye(K, dtype=bool))
        f = rng.random(K) * rng.choice([1.0, 0.3, 0.1])
        if n % 7 == 0:
            f = f.round(1)  # with ties
        yield n % 3 == 0, f, graph, float(10 ** rng.uniform(0, 4))


def test_the_closed_forms_have_the_known_values():
    A = PATH5.matrix()
    p = naive.squarecb_greedy(F, A, 10)
    assert p.tolist() == pytest.approx([0, 2 / 3, 0, 0, 1 / 3])
    assert naive.squarecb_value(p, F, A, 10) == pytest.approx(0.2333333333)
    value, low = optimum(F, A, 10.0, [p])
    assert value == pytest.approx(0.116442, abs=1e-6)
    assert low == pytest.approx(value, rel=1e-6)
    A, f = NESTED4.matrix(), F[:4]
    assert naive.squarecb_value(naive.squarecb_greedy(f, A, 10), f, A, 10) == pytest.approx(0.13125)
    p = naive.squarecb_nested(f, 10)
    assert p.tolist() == pytest.approx([0, 2 / 3, 0, 1 / 3])
    assert naive.squarecb_value(p, f, A, 10) == pytest.approx(1 / 9)
    assert optimum(f, A, 10.0, [p])[0] == pytest.approx(0.092116, abs=1e-6)


def test_the_kernel_plays_what_the_oracle_says():
    for _, f, graph, gamma in instances(60, seed=1):
        A = graph.matrix()
        expected = naive.squarecb_played(f, A, gamma)
        for each in (graph, graph.as_arcs()):
            p, value = played(f, each, gamma)
            assert p.sum() == pytest.approx(1, abs=1e-12)
            assert value == pytest.approx(naive.squarecb_value(p, f, A, gamma), rel=1e-9, abs=1e-12 / gamma)
            # Equal values may belong to different p, where the oracle rounds otherwise.
            assert value == pytest.approx(naive.squarecb_value(expected, f, A, gamma), rel=1e-9, abs=1e-12 / gamma)


def test_the_value_of_what_is_played_is_within_the_bounds():
    for nested, f, graph, gamma in instances(500):
        A = graph.matrix()
        p, _ = played(f, graph, gamma)
        value, size = naive.squarecb_value(p, f, A, gamma), len(naive.squarecb_set(f, A))
        assert value <= (size + 1) / gamma * (1 + 1e-9)
        assert value <= 2 * size / gamma * (1 + 1e-9)
        if nested:
            top = f[-1] if graph.out_neighbors(0).size == 1 else f[0]
            assert value <= (2 + math.log(1 + gamma * (top - f.min()))) / gamma * (1 + 1e-9)


def test_it_is_not_far_from_the_optimum_of_a_solver():
    ratios = []
    for _, f, graph, gamma in instances(40, seed=2):
        A = graph.matrix()
        p, value = played(f, graph, gamma)
        best, low = optimum(f, A, gamma, [p, np.full(len(f), 1 / len(f))])
        assert low <= value * (1 + 1e-6) + 1e-9 / gamma
        if best * gamma > 1e-6:  # else there is nothing to lose
            ratios.append(value / min(best, value))
    assert np.median(ratios) < 1.5
    assert max(ratios) < 6


def test_a_good_arm_that_shows_it_too_is_played_in_place_of_a_bad_one():
    # Arm 0 is best and does not reveal arm 3, which is bad; arm 1 reveals all, and is not in S, as arm 0 reveals it.
    A = np.array([[1, 1, 1, 0], [1, 1, 1, 1], [0, 0, 1, 0], [0, 0, 0, 1]], bool)
    f = np.array([0.1, 0.14, 0.5, 0.9])
    intervals = sl.FeedbackGraph.from_intervals([0, 0, 2, 3], [3, 4, 3, 4])
    for graph in (intervals, intervals.as_arcs()):
        assert np.array_equal(graph.matrix(), A)
        p, value = played(f, graph, 100.0)
        assert p.tolist() == pytest.approx([78 / 79, 1 / 79, 0, 0])
        assert 100 * value < 0.2
    assert 100 * naive.squarecb_value(naive.squarecb_greedy(f, A, 100), f, A, 100) > 0.9


def test_absent_arms_are_as_if_they_did_not_exist():
    rng = np.random.default_rng(5)
    for _ in range(20):
        there = np.sort(rng.choice(6, int(rng.integers(1, 7)), replace=False))
        A, f = (rng.random((6, 6)) < 0.4) | np.eye(6, dtype=bool), rng.random(6)
        mask = np.isin(np.arange(6), there)
        p, value = played(f, sl.FeedbackGraph.from_matrix(A & mask & mask[:, None]), 20.0)
        q = naive.squarecb_played(f[there], A[np.ix_(there, there)], 20.0)
        assert not p[~mask].any()
        assert value == pytest.approx(naive.squarecb_value(q, f[there], A[np.ix_(there, there)], 20.0), abs=1e-12)


def test_a_single_arm_and_equal_predictions():
    assert played([0.3], sl.graphs.self_loops(1), 5.0) == (np.array([1.0]), 0.0)
    p, _ = played(np.zeros(4), sl.graphs.self_loops(4), 5.0)
    assert p.tolist() == pytest.approx([0.25] * 4)
    p, _ = played(np.zeros(4), NESTED4, 5.0)
    assert p[3] > 0.5  # it reveals all


def test_gamma_scale_is_checked():
    with pytest.raises(LearnerError, match="gamma_scale must be a number above 0"):
        squarecb.configure(NESTED4, gamma_scale=0)


def test_it_is_no_learner_of_an_agent_without_features():
    assert "squarecb.g" not in sl.learners.names()
    with pytest.raises(LearnerError, match="make a ContextualAgent"):
        sl.Agent("squarecb.g", NESTED4)
