"""EXP3-IX against its oracle, closed forms and its theorem."""

import math

import numpy as np
import pytest

import naive
import sidelong as sl
from learners.stepping import Stepper, random_digraph


@pytest.mark.interpreted
def test_a_path_by_hand():
    stepper = Stepper("exp3-ix", sl.graphs.path(3))
    assert stepper.distribution() == pytest.approx([1 / 3] * 3)
    gamma = stepper.traced("learning_rate")
    assert gamma == pytest.approx(math.sqrt(math.log(3) / 3))
    stepper.update(0, [1, 0.5, 1])
    assert stepper.state.Lhat == pytest.approx([1 / (2 / 3 + gamma), 0.5 / (1 + gamma), 0])
    Q = 2 / 3 / (2 / 3 + gamma) + 1 / 3 / (1 + gamma)
    assert stepper.traced("Q") == pytest.approx(Q)
    stepper.distribution()
    assert stepper.traced("learning_rate") == pytest.approx(math.sqrt(math.log(3) / (3 + Q)))


def test_the_estimate_is_optimistic_by_what_gamma_says():
    """Over the draw, enumerated, each arm's estimate grows by l P / (P + gamma)."""
    A = random_digraph(np.random.default_rng(3), 6)
    losses = np.linspace(0, 1, 6)
    expected = np.zeros(6)
    for arm in range(6):
        stepper = Stepper("exp3-ix", sl.FeedbackGraph.from_matrix(A))
        stepper.state.Lhat[:] = before = np.arange(6.0)
        stepper.distribution()
        gamma, P = stepper.traced("learning_rate"), naive.observation(stepper.p, A)
        stepper.update(arm, losses)
        expected += stepper.p[arm] * (stepper.state.Lhat - before)
    assert 0.1 < gamma < 1
    np.testing.assert_allclose(expected, losses * P / (P + gamma), rtol=1e-12, atol=1e-15)


@pytest.mark.interpreted
def test_a_round_told_late_is_weighted_by_its_own_gamma():
    agent = sl.Agent("exp3-ix", sl.graphs.complete(2), seed=1)
    late = agent.ask()
    gamma = math.sqrt(math.log(2) / 2)
    for _ in range(50):
        agent.tell(agent.ask(), [0.5, 0.5])
    agent.tell(late, [1.0, 0.0])
    before, after = agent.estimates().weights, agent.ask().probabilities
    assert before.tolist() == after.tolist()
    eta = math.sqrt(math.log(2) / (2 + sum(_complete_graph_Q(51))))
    assert after[0] / after[1] == pytest.approx(math.exp(-eta / (1 + gamma)))


def _complete_graph_Q(rounds):
    """Yield Q of each round in the order in which they are told: the first one last."""
    past, values = 2.0, []
    for t in range(rounds):
        values.append(1 / (1 + math.sqrt(math.log(2) / past)))
        past += values[-1] if t else 0.0  # the first is told after all others
    return values
