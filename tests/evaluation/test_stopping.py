"""When the best arm is known: against the mixture itself, and how often an answer is wrong."""

import numpy as np
import pytest

import sidelong as sl
from sidelong.errors import EvaluationError
from sidelong.evaluation.stopping import RHO, best_arm, limits

pytestmark = pytest.mark.interpreted


def naive_wealth(n, away):
    """The mean of exp(r S - r^2 n / 8) over r from N(0, 1 / rho), by a sum over a fine grid."""
    r = np.linspace(-8, 8, 400_001) / np.sqrt(RHO)
    law = np.exp(-(r**2) * RHO / 2) * np.sqrt(RHO / (2 * np.pi))
    return float(np.sum(np.exp(r * n * away - r**2 * n / 8) * law) * (r[1] - r[0]))


@pytest.mark.parametrize(("n", "K", "confidence"), [(1, 2, 0.9), (40, 5, 0.95), (3000, 24, 0.99)])
def test_a_limit_is_where_the_mixture_reaches_the_number_of_arms_over_the_risk(n, K, confidence):
    lower, upper = limits(np.full(K, n), np.full(K, 0.5), confidence)
    assert naive_wealth(n, 0.5 - lower[0]) == pytest.approx(K / (1 - confidence), rel=1e-3)
    assert (upper - 0.5).tolist() == pytest.approx((0.5 - lower).tolist())


def naive_best(counts, means, confidence, retired):
    """Every arm against every other, by the limits of each."""
    lower, upper = limits(np.array(counts), np.array(means), confidence)
    there = [k for k in range(len(counts)) if k not in retired]
    found = [k for k in there if all(upper[k] < lower[j] for j in there if j != k)]
    return found[0] if found else None


def test_the_answer_is_the_arm_below_all_others_or_none():
    rng = np.random.default_rng(1)
    answers = set()
    for _ in range(300):
        counts, means = rng.integers(0, 2000, 3), rng.random(3)
        retired = tuple(np.flatnonzero(rng.random(3) < 0.2)) if rng.random() < 0.5 else ()
        answer = best_arm(counts, means, 0.9, retired)
        if len(retired) < 3:
            assert answer == naive_best(counts, means, 0.9, retired)
        answers.add(answer)
    assert answers == {None, 0, 1, 2}


def test_an_answer_is_wrong_in_no_more_runs_than_the_risk():
    """Two arms of one mean whose losses move against each other; more than 60 of 400 runs have a chance of 1e-12."""
    rng, wrong = np.random.default_rng(2), 0
    for _ in range(400):
        means = np.cumsum(rng.integers(0, 2, 200)) / np.arange(1, 201)
        wrong += any(best_arm(np.full(2, t), np.array([m, 1 - m]), 0.95) is not None for t, m in enumerate(means, 1))
    assert wrong <= 60


@pytest.mark.parametrize("learner", ["glance", "uniform", "ts-n"])
def test_an_agent_stops_at_the_best_arm_whatever_its_learner(learner):
    """The other arms are 0.6 worse, and the best one reveals them; the chance of another answer is 0.05."""
    graph = sl.graphs.nested(3)
    agent = sl.Agent(learner, graph, seed=3)
    world = sl.losses.bernoulli([0.8, 0.8, 0.2])
    assert agent.stop() is None
    for t in range(1, 2000):
        decision = agent.ask()
        agent.tell(decision, {int(arm): world.loss(3, 0, t, int(arm)) for arm in decision.reveals})
        if agent.stop() is not None:
            break
    assert agent.stop() == 2
    assert agent.stop(confidence=1 - 1e-9) is None or t > 100


@pytest.mark.parametrize("learner", ["uniform", "ucb-n", "ts-n"])
def test_where_the_outcome_decides_what_is_seen_no_answer_is_given(learner):
    """Also where a learner plays one arm for certain, so that all losses have the same weight."""
    agent = sl.Agent(learner, sl.graphs.nested(3), seed=1)
    decision = agent.ask()
    agent.tell(decision, [1.0], graph=sl.graphs.self_loops(3))
    for each in (agent, sl.Agent.from_contents(*agent.contents(), "a copy")):
        with pytest.raises(EvaluationError, match="which losses were revealed"):
            each.stop()


def test_confidence_is_between_0_and_1():
    for confidence in (0, 1, 2, "x"):
        with pytest.raises(EvaluationError):
            sl.Agent("uniform", sl.graphs.nested(3)).stop(confidence)
