"""EXP3++ against its oracle, golden values and EXP3.G++, of which it is a special case."""

import math

import numpy as np
import pytest

import sidelong as sl
from learners.stepping import Stepper, play_alike


@pytest.mark.interpreted
def test_on_self_loops_it_is_exp3gpp_up_to_the_constants():
    """The exploration rates leave their cap within these rounds, so that every line is compared."""
    graph = sl.graphs.self_loops(2)
    constants = {"gamma": 0.1, "beta": 0.2}
    a = Stepper("exp3++", graph, **constants)
    b = Stepper("exp3.g++", graph, rate="fixed", exploration=2, eta_scale=math.sqrt(0.5), **constants)
    play_alike(a, b, rounds=1500, seed=2, rtol=1e-11, losses=lambda _: [0.1, 0.9])
    assert a.state.eps[1] < 0.7 * a.state.eps[0]
    np.testing.assert_allclose(a.state.eps, b.state.eps, rtol=1e-11)


def test_with_its_own_constants_it_is_exp3gpp_with_those():
    graph = sl.graphs.self_loops(7)
    a = Stepper("exp3++", graph)
    same = {"gamma": 3, "beta": 256, "exploration": 7, "eta_scale": math.sqrt(0.5)}
    b = Stepper("exp3.g++", graph, rate="fixed", **same)
    means = np.linspace(0.2, 0.9, 7)
    play_alike(a, b, rounds=3000, seed=3, rtol=1e-10, losses=lambda rng: rng.random(7) < means)


@pytest.mark.interpreted
def test_golden_values_where_the_exploration_rate_leaves_its_cap():
    stepper = Stepper("exp3++", sl.graphs.path(4), gamma=4, beta=1)
    state = stepper.state
    state.O[:] = [4e5, 9e5, 5e5, 2.5e5]
    state.mean[:] = [0.1, 0.5, 0.9, 0.6]
    state.width[:] = 1 / np.sqrt(state.O)
    stepper.t = 10**6 - 1
    p = stepper.distribution()
    assert state.gap == pytest.approx([0, 0.38597518, 0.78405860, 0.48094102], abs=1e-8)
    assert state.eps == pytest.approx([2.9435250e-4, 9.2735962e-5, 2.2473458e-5, 5.9728733e-5], rel=1e-7)
    assert stepper.traced("exploration_mass") == pytest.approx(math.fsum(state.eps))
    assert p == pytest.approx((1 - math.fsum(state.eps)) / 4 + state.eps, rel=1e-12)


@pytest.mark.interpreted
def test_what_is_revealed_on_the_side_is_not_used():
    a, b = Stepper("exp3++", sl.graphs.complete(4)), Stepper("exp3++", sl.graphs.self_loops(4))
    play_alike(a, b, rounds=100)
    assert a.state.O.sum() == 100


@pytest.mark.interpreted
def test_each_arm_is_played_once_at_first():
    agent = sl.Agent("exp3++", sl.graphs.self_loops(4))
    decisions = [agent.ask() for _ in range(5)]
    assert [d.arm for d in decisions[:4]] == [0, 1, 2, 3]
    assert [d.probability for d in decisions[:4]] == [1.0] * 4
    assert decisions[4].probabilities == pytest.approx([0.25] * 4)
