"""Hedge against its oracle, EXP3-SET and its bounds."""

import math

import numpy as np
import pytest

import sidelong as sl
from learners.stepping import Stepper
from nightly import share
from sidelong.errors import ObservabilityError


@pytest.mark.interpreted
@pytest.mark.parametrize("graph", [sl.graphs.complete(5), sl.graphs.complete(5).as_arcs()])
def test_its_weights_are_those_of_exp3_set_on_the_complete_graph_at_the_same_rate(graph):
    """EXP3-SET has the rate sqrt(ln K / (K + t - 1)) in round t; Hedge has it in round 4 (K + t - 1)."""
    rng = np.random.default_rng(1)
    exp3_set, hedge = Stepper("exp3-set", graph), Stepper("hedge", graph)
    for t in range(1, 301):
        hedge.t = 4 * (5 + t - 1) - 1
        np.testing.assert_allclose(hedge.distribution(), exp3_set.distribution(), rtol=1e-11)
        assert hedge.traced("learning_rate") == pytest.approx(exp3_set.traced("learning_rate"), rel=1e-14)
        arm, losses = int(rng.integers(5)), rng.random(5)
        hedge.update(arm, losses)
        exp3_set.update(arm, losses)


@pytest.mark.interpreted
@pytest.mark.parametrize("K", share([2, 10, 3], 2))
@pytest.mark.parametrize("adversary", ["the likeliest", "alternating", "drifting", "random"])
def test_its_expected_regret_stays_below_the_bound_on_every_sequence(K, adversary):
    """It sees all losses whatever it draws, so that the expected regret is a number, not a matter of chance."""
    rng = np.random.default_rng(K)
    stepper = Stepper("hedge", sl.graphs.complete(K))
    suffered, totals = 0.0, np.zeros(K)
    for t in range(1, 2001):
        p = stepper.distribution()
        losses = {
            "the likeliest": np.arange(K) == np.argmax(p),
            "alternating": np.arange(K) % 2 == t % 2,
            "drifting": (np.arange(K) + t // 50) % K < K / 2,
            "random": rng.random(K) < 0.5,
        }[adversary].astype(float)
        suffered += p @ losses
        totals += losses
        stepper.update(int(rng.integers(K)), losses)
        assert suffered - totals.min() <= math.sqrt(t * math.log(K)) + 1e-9


def test_in_a_stochastic_world_its_regret_stops_growing():
    """The mean of 16 runs is 20 and the bound 342; after round 10,000 other arms have probability e^-30 or so.

    With a standard error of 2.4, the probability of failure is below 1e-9.
    """
    gap, K = 0.1, 10
    world = sl.losses.bernoulli([0.45] + [0.55] * (K - 1))
    result = sl.simulate("hedge", sl.graphs.complete(K), world, rounds=100_000, runs=16, checkpoints=[10_000, 100_000])
    early, late = result.regret.mean(axis=0)
    assert late < (4 * math.log(K) + 25) / gap
    assert late - early < 0.1


def test_a_graph_that_is_not_complete_is_refused_when_the_agent_is_made_and_when_it_is_told():
    with pytest.raises(
        ObservabilityError, match=r"hedge needs every arm to reveal all arms, and arm 1 .* reveals 1 of 3"
    ):
        sl.Agent("hedge", sl.graphs.out_star(3))
    agent = sl.Agent("hedge", sl.graphs.complete(3))
    decision = agent.ask()
    with pytest.raises(ObservabilityError, match="hedge needs every arm"):
        agent.tell(decision, {decision.arm: 0.5}, graph=sl.graphs.self_loops(3))
