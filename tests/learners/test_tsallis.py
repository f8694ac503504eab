"""Tsallis-INF against its oracle, golden values and closed forms."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import naive
import sidelong as sl
from learners.stepping import Stepper, play_alike


def weights(L, t, estimator="iw"):
    stepper = Stepper("tsallis-inf", sl.graphs.self_loops(len(L)), estimator=estimator)
    stepper.state.L[:] = L
    stepper.t = t - 1
    return stepper.distribution()


@pytest.mark.interpreted
def test_golden_weights():
    p = weights([0, 1, 5, 20], 10)
    assert p == pytest.approx([0.52294041, 0.34639802, 0.11382770, 0.01683387], abs=1e-8)
    eta = 2 / math.sqrt(10)
    assert np.array([0, 1, 5, 20]) - 2 / (eta * np.sqrt(p)) == pytest.approx([-4.3729438] * 4, abs=1e-7)


@pytest.mark.interpreted
def test_golden_weights_of_the_other_estimator():
    """eta is twice as large, so that losses half as large, in round 10, or the same ones in round 40, do the same."""
    golden = [0.52294041, 0.34639802, 0.11382770, 0.01683387]
    assert weights([0, 0.5, 2.5, 10], 10, "rv") == pytest.approx(golden, abs=1e-8)
    assert weights([0, 1, 5, 20], 40, "rv") == pytest.approx(golden, abs=1e-8)


@given(
    st.lists(st.one_of(st.floats(0, 3), st.floats(0, 1e9)), min_size=1, max_size=40),
    st.integers(1, 10**12),
    st.floats(-1e6, 1e6),
)
def test_weights_solve_their_equation(L, t, shift):
    p = weights(L, t)
    assert math.fsum(p) == pytest.approx(1, abs=1e-13)
    np.testing.assert_allclose(p, naive.tsallis_weights(L, 2 / math.sqrt(t))[0], rtol=1e-9)
    np.testing.assert_allclose(weights(np.array(L) + shift, t), p, rtol=1e-5)


@pytest.mark.interpreted
@pytest.mark.parametrize("K", [1, 2, 1000])
def test_equal_losses_have_equal_weights(K):
    assert weights([3.0] * K, 5) == pytest.approx([1 / K] * K, rel=1e-13)


@pytest.mark.interpreted
def test_reduced_variance_by_hand():
    """Two arms of p = 1/2. In round 64 eta^2 = 1/4, so that B = 1/2 for both; in round 25 eta^2 = 16/25, and B = 0."""
    for t, after in [(64, [0.5 + (0.9 - 0.5) * 2, 0.5]), (25, [1.8, 0])]:
        stepper = Stepper("tsallis-inf", sl.graphs.self_loops(2), estimator="rv")
        stepper.t = t - 1
        stepper.distribution()
        assert stepper.traced("learning_rate") == 4 / math.sqrt(t)
        stepper.update(0, [0.9, 0.3])
        np.testing.assert_allclose(stepper.state.L, after)


@pytest.mark.interpreted
@pytest.mark.parametrize("estimator", ["iw", "rv"])
def test_on_self_loops_both_kinds_of_feedback_are_one(estimator):
    a, b = (
        Stepper("tsallis-inf", sl.graphs.self_loops(5), estimator=estimator, feedback=each)
        for each in ("bandit", "graph")
    )
    play_alike(a, b, rounds=200)


@pytest.mark.interpreted
def test_bandit_feedback_ignores_what_is_revealed_on_the_side():
    stepper = Stepper("tsallis-inf", sl.graphs.complete(4))
    stepper.distribution()
    stepper.update(2, [1, 1, 0.5, 1])
    np.testing.assert_allclose(stepper.state.L, [0, 0, 2, 0])


def test_the_graph_helps():
    """On cliques of 5 the mean of 8 runs falls from 350 +- 16 to 227 +- 7: failure probability below 1e-5."""
    world = sl.losses.bernoulli([0.3] + [0.5] * 9)
    bandit, graph = (
        sl.simulate("tsallis-inf", sl.graphs.cliques([5, 5]), world, rounds=50_000, runs=8, seed=1, feedback=each)
        for each in ("bandit", "graph")
    )
    assert graph.regret[:, -1].mean() < 0.85 * bandit.regret[:, -1].mean()
