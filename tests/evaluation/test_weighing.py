"""The eight sums of an arm: against slow, obvious ones, and over every path of draws."""

import itertools

import numpy as np
import pytest

from evaluation.four_sums import limit, naive, wealth
from evaluation.paths import A, draw, play
from sidelong.evaluation import evaluate_arms, weighing
from sidelong.evaluation.intervals import interval


def add_losses(log):
    """Return the eight sums of a log whose rounds were told at once, and its rounds for the oracle."""
    sums, rounds = np.zeros((weighing.ROWS, log.n_arms)), []
    for t in range(log.n_rounds):
        at = log.round == t
        if log.told[t]:
            b = weighing.baselines(sums)[log.arm[at]]
            weighing.add_losses(sums, log.arm[at], log.loss[at], log.probability[at], b, t + 1)
        each = zip(log.loss[at].tolist(), log.probability[at].tolist(), strict=True)
        rounds.append(dict(zip(log.arm[at].tolist(), each, strict=True)) if log.told[t] else None)
    return sums, rounds


@pytest.mark.interpreted
@pytest.mark.parametrize("missing", [0.0, 0.4])
def test_costs_and_limits_are_those_of_the_definition(missing):
    rng = np.random.default_rng(5)
    [log] = draw(rng.random((200, 3)), A, rng, told=rng.random(200) >= missing)
    sums, rounds = add_losses(log)
    costs = weighing.costs(sums, 200, log.n_told)
    found = interval(weighing.evidence(sums, 200), 200, 0.1, costs)
    if not missing:
        np.testing.assert_allclose(costs, evaluate_arms(log).value, atol=1e-12)
    for arm in range(3):
        value, (low, high) = naive(rounds, arm)
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
        _, rounds = add_losses(log)
        if not log.n_told:
            rounds[0] = {}  # no estimate, but evidence: that of rounds without feedback
        for a in range(3):
            _, (low, high) = naive(rounds, a)
            mean[a] += chance * np.array([wealth(*low, truth[a]), wealth(*high, 5 - truth[a])])
    assert (mean <= 1.0 + 1e-12).all()
    assert (mean > 0.3).all()  # and they waste little


@pytest.mark.parametrize("frozen", [True, False])
def test_estimates_have_no_bias_however_late_feedback_is(frozen):
    """Over all 243 paths: arm 0 is revealed by arm 0, whose feedback comes one round late, and by arm 2, at once.

    Baselines that are taken when feedback comes depend on what was drawn, and the estimate is off.
    """
    losses = np.array([1.0, 0.0, 1.0, 0.3, 0.9])
    mean = 0.0
    for arms in itertools.product(range(3), repeat=5):
        sums, waiting = np.zeros((weighing.ROWS, 1)), []
        for t, arm in enumerate(arms):
            mine = [(t, weighing.baselines(sums))] if arm != 1 else []
            now = mine if arm == 2 or t == 4 else []
            for s, b in [*now, *waiting]:
                known = np.zeros(1, np.intp), losses[[s]], np.full(1, 2 / 3)
                weighing.add_losses(sums, *known, b if frozen else weighing.baselines(sums), t + 1)
            waiting = [] if now else mine
        found = weighing.costs(sums, 5, 5)[0]
        mean += (0.5 if np.isnan(found) else found) / 243  # an arm that was never revealed: its baseline stands
    assert abs(mean - losses.mean()) < 1e-12 if frozen else abs(mean - losses.mean()) > 0.001


def test_an_arm_that_was_never_revealed_is_unknown():
    sums = np.zeros((weighing.ROWS, 2))
    assert np.isnan(weighing.costs(sums, 0, 0)).all()
    found = interval(weighing.evidence(sums, 0), 0, 0.05, weighing.costs(sums, 0, 0))
    assert (found.lower.tolist(), found.upper.tolist()) == ([0, 0], [1, 1])
