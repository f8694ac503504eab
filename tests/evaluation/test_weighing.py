"""The eight sums of an arm: against slow, obvious ones, and over every path of draws."""

import itertools

import numpy as np
import pytest

from evaluation.four_sums import limit, naive, wealth
from evaluation.paths import A, draw, play
from sidelong.evaluation import evaluate_arms, weighing
from sidelong.evaluation.intervals import interval


def weigh(log):
    """Return the eight sums of a log, and its told rounds as dictionaries."""
    sums, told = np.zeros((weighing.ROWS, log.n_arms)), []
    for k, t in enumerate(np.flatnonzero(log.told), 1):
        at = log.round == t
        weighing.weigh(sums, log.arm[at], log.loss[at], log.probability[at], k)
        each = zip(log.loss[at].tolist(), log.probability[at].tolist(), strict=True)
        told.append(dict(zip(log.arm[at].tolist(), each, strict=True)))
    return sums, told


@pytest.mark.interpreted
@pytest.mark.parametrize("missing", [0.0, 0.4])
def test_costs_and_limits_are_those_of_the_definition(missing):
    rng = np.random.default_rng(5)
    [log] = draw(rng.random((200, 3)), A, rng, told=rng.random(200) >= missing)
    sums, told = weigh(log)
    costs = weighing.costs(sums, len(told))
    found = interval(weighing.evidence(sums, len(told), 200), 200, 0.1, costs)
    np.testing.assert_allclose(costs, evaluate_arms(log).value, atol=1e-12)
    for arm in range(3):
        value, (low, high) = naive(told, arm, 200)
        assert costs[arm] == pytest.approx(value, abs=1e-12)
        assert found.lower[arm] == pytest.approx(min(limit(*low, 200, 0.05), value), abs=1e-6)
        assert found.upper[arm] == pytest.approx(max(1 - limit(*high, 200, 0.05), value), abs=1e-6)


@pytest.mark.parametrize("hidden", [None, 0, 2])
def test_the_products_have_a_mean_of_at_most_one(hidden):
    """Over all 243 paths. With `hidden`, who plays that arm never tells: missing for the worst of reasons."""
    losses = np.array([[0.0, 1.0, 0.1], [1.0, 0.0, 0.9], [0.0, 0.2, 1.0], [0.0, 1.0, 0.1], [1.0, 0.0, 0.9]])
    truth = losses.sum(axis=0)
    mean = np.zeros((3, 2))
    for arms in itertools.product(range(3), repeat=5):
        log, chance = play(losses, A, arms, np.array(arms) != hidden)
        _, told = weigh(log)
        for a in range(3):
            _, (low, high) = naive(told, a, 5)
            mean[a] += chance * np.array([wealth(*low, truth[a]), wealth(*high, 5 - truth[a])])
    assert (mean <= 1.0 + 1e-12).all()
    assert (mean > 0.3).all()  # and they waste little


def test_an_arm_that_was_never_revealed_is_unknown():
    sums = np.zeros((weighing.ROWS, 2))
    assert np.isnan(weighing.costs(sums, 0)).all()
    found = interval(weighing.evidence(sums, 0, 0), 0, 0.05, weighing.costs(sums, 0))
    assert (found.lower.tolist(), found.upper.tolist()) == ([0, 0], [1, 1])
