"""Off-policy estimates: against slow, obvious sums, without bias over every path of draws, and what they refuse."""

import itertools
import math

import numpy as np
import pyarrow as pa
import pytest

from evaluation.paths import A, draw, play
from sidelong import evaluation
from sidelong.errors import EvaluationError
from sidelong.evaluation import DecisionLog
from sidelong.evaluation.decision_log import from_table

RATES = np.array([4.0**k for k in range(2, -10, -1)])


def naive(log, pi):
    """The docstring of the module, round by round: the estimate, the evidence for both ends, and the weights."""
    sums, counts = np.full(log.n_arms, 0.5), np.ones(log.n_arms)
    value, dear, cheap, weights = 0.0, np.zeros(12), np.zeros(12), []
    for t in range(log.n_rounds):
        c = sums / counts
        x, w, much, little = pi @ c, 0.0, np.ones(12), np.ones(12)
        for e in np.flatnonzero(log.round == t):
            a, l, P = log.arm[e], log.loss[e], log.probability[e]
            x += pi[a] * (l - c[a]) / P
            w += pi[a] / P
            much += (np.exp(RATES * pi[a] * l) - 1) / P
            little += (np.exp(RATES * pi[a] * (1 - l)) - 1) / P
            sums[a] += l
            counts[a] += 1
        if log.told[t]:
            value += x
            weights.append(w)
        dear, cheap = dear + np.log(much), cheap + np.log(little)
    return value / max(log.told.sum(), 1), dear, cheap, np.array(weights)


def wealth(evidence, cost):
    """What Ville's inequality bounds, if this is the cost of all rounds."""
    return np.exp(np.minimum(evidence - RATES * cost, 700)).mean()


@pytest.mark.parametrize("missing", [0.0, 0.4])
def test_arms_and_distributions_are_the_sums_of_the_definition(missing):
    rng = np.random.default_rng(5)
    losses = rng.random((40, 3))
    [log] = draw(losses, A, rng, told=rng.random(40) >= missing)
    arms = evaluation.evaluate_arms(log, 0.9)
    for pi in (*np.eye(3), np.array([0.2, 0.5, 0.3])):
        one = evaluation.evaluate_distribution(log, pi, 0.9)
        value, dear, cheap, weights = naive(log, pi)
        assert one.value == pytest.approx(value, abs=1e-12)
        assert one.weight == pytest.approx(weights.mean(), abs=1e-12)
        assert one.effective == pytest.approx(weights.sum() ** 2 / (weights**2).sum(), rel=1e-12)
        assert one.rounds == (weights > 0).sum()
        assert not one.rejected
        assert 0 < one.lower < value < one.upper < 1
        assert wealth(dear, 40 * one.lower[0]) == pytest.approx(1 / 0.05, rel=1e-5)
        assert wealth(cheap, 40 * (1 - one.upper[0])) == pytest.approx(1 / 0.05, rel=1e-5)
        if 1 in pi:
            for name, column in arms._asdict().items():
                assert column[pi.argmax()] == pytest.approx(getattr(one, name)[0], abs=1e-11), name


def test_the_estimate_has_no_bias_over_all_paths_of_a_rule_that_adapts():
    """No randomness: 243 paths, each with its probability. The losses follow no law."""
    losses = np.random.default_rng(1).random((5, 3))
    pi = np.array([0.1, 0.3, 0.6])
    mean, certain = np.zeros(4), 0.0
    for arms in itertools.product(range(3), repeat=5):
        log, chance = play(losses, A, arms)
        found = np.append(evaluation.evaluate_arms(log).value, evaluation.evaluate_distribution(log, pi).value)
        found[:3][np.isnan(found[:3])] = 0.5  # an arm that was never revealed has no estimate: its baseline stands
        mean += chance * found
        certain += chance
    assert certain == pytest.approx(1.0, abs=1e-12)
    truth = losses.mean(axis=0)
    np.testing.assert_allclose(mean, np.append(truth, pi @ truth), atol=1e-12)


@pytest.mark.parametrize("hidden", [None, 0, 2])
def test_the_products_behind_the_interval_have_a_mean_of_at_most_one(hidden):
    """Over all 243 paths. With `hidden`, who plays that arm never tells: missing for the worst of reasons."""
    losses = np.array([[0.0, 1.0, 0.1], [1.0, 0.0, 0.9], [0.0, 0.2, 1.0]] * 2)[:5]
    mixes = np.array([*np.eye(3), [0.2, 0.5, 0.3]])
    mean = np.zeros((4, 2, 12))
    for arms in itertools.product(range(3), repeat=5):
        log, chance = play(losses, A, arms, np.array(arms) != hidden)
        for which, pi in enumerate(mixes):
            _, dear, cheap, _ = naive(log, pi)
            cost = (losses @ pi).sum()
            mean[which] += chance * np.exp([dear - RATES * cost, cheap - RATES * (5 - cost)])
    assert (mean <= 1.0 + 1e-9).all()
    if hidden is None:
        np.testing.assert_allclose(mean[:3], 1.0, rtol=1e-9)  # of an arm it is exactly one, and nothing is wasted


def test_an_interval_narrows_and_contains_its_estimate():
    rng = np.random.default_rng(3)
    losses = (rng.random((3000, 3)) < [0.2, 0.5, 0.6]).astype(float)
    [log] = draw(losses, A, rng)
    found = evaluation.evaluate_arms(log)
    assert ((found.upper - found.lower) < 0.25).all()
    assert (found.lower <= found.value).all()
    assert (found.value <= found.upper).all()
    np.testing.assert_allclose(found.weight, 1.0, atol=0.2)


def test_where_every_loss_is_revealed_nearly_nothing_is_left_open():
    losses = np.random.default_rng(2).random((1000, 3))
    log, _ = play(losses, np.ones((3, 3), bool), np.zeros(1000, int))
    found = evaluation.evaluate_arms(log)
    np.testing.assert_allclose(found.value, losses.mean(axis=0), atol=1e-12)
    assert (found.upper - found.lower < 0.001).all()


@pytest.mark.parametrize("losses", [np.random.Generator.random, lambda _, n: np.ones(n), lambda _, n: np.zeros(n)])
def test_limits_that_cross_reject_the_assumptions_and_are_not_made_a_point(losses):
    """Each arm is revealed in every other round, and the log says 0.05: the weights are ten times too large."""
    rng = np.random.default_rng(9)
    rounds, arms = np.nonzero(rng.random((400, 2)) < 0.5)
    everything = np.ones(400, bool), np.full(400, 0.5), rounds, arms, losses(rng, rounds.size)
    log = DecisionLog(2, *everything, probability=np.full(rounds.size, 0.05))
    found = evaluation.evaluate_arms(log)
    assert found.rejected.tolist() == [True, True]
    assert (found.lower > found.upper).all()
    for row in found.rows():
        assert (row["rejected"], row["lower"], row["upper"]) == (True, None, None)
    assert evaluation.evaluate_distribution(log, [0.5, 0.5]).rejected
    regret = evaluation.regret(log)
    assert regret.rejected
    assert (regret.row()["lower"], regret.row()["upper"]) == (None, None)
    right = log._replace(probability=np.full(rounds.size, 0.5))
    assert not evaluation.evaluate_arms(right).rejected.any()
    assert not evaluation.regret(right).rejected


def test_the_regret_holds_for_every_arm_at_once():
    rng = np.random.default_rng(4)
    losses = (rng.random((2000, 3)) < [0.2, 0.7, 0.9]).astype(float)
    [log] = draw(losses, A, rng, told=rng.random(2000) > 0.1)
    found = evaluation.regret(log)
    told = log.told
    truth = log.cost[told].sum() - losses[told, 0].sum()
    assert found.best == 0
    assert found.lower <= truth <= found.upper
    assert found.value == pytest.approx(truth / told.mean(), abs=120)  # four standard errors


def test_the_regret_is_not_estimated_from_rounds_that_hide_what_was_paid():
    """Whether the loss of the arm that was played is revealed depends on the arm: what is known is no sample."""
    log, _ = play(np.full((4, 3), 0.5), A, [0, 1, 2, 0])
    assert evaluation.regret(log).value == pytest.approx(0.0, abs=0.5)
    hiding = evaluation.regret(log._replace(cost=np.array([0.5, np.nan, 0.5, 0.5])))
    assert math.isnan(hiding.value)
    assert hiding.upper == pytest.approx(evaluation.regret(log).upper + 0.5)  # 1 may have been paid where 0.5 was


def test_a_log_without_feedback_says_that_it_knows_nothing():
    none = np.zeros(0)
    log = DecisionLog(2, np.zeros(5, bool), np.full(5, np.nan), none.astype(int), none.astype(int), none, none)
    found = evaluation.evaluate_arms(log)
    assert np.isnan(found.value).all()
    assert (found.lower.tolist(), found.upper.tolist()) == ([0, 0], [1, 1])
    assert evaluation.regret(log)[1:] == (-5.0, 5.0, -1, False)
    assert evaluation.regret(log).row()["best"] is None
    empty = log._replace(told=np.zeros(0, bool), cost=none)
    assert evaluation.evaluate_arms(empty).upper.tolist() == [1, 1]
    assert np.isnan(evaluation.evaluate_distribution(empty, [0.5, 0.5]).value)


def test_a_probability_near_zero_does_not_overflow():
    log = from_table(pa.table({"action": [0, 1], "loss": [1.0, 0.0], "pscore": [5e-324, 0.5]}))
    found = evaluation.evaluate_arms(log)
    assert found.rejected.tolist() == [True, False]  # what was impossible has happened
    assert np.isfinite(found.effective).all()


@pytest.mark.parametrize(
    ("pi", "says"),
    [
        ([0.5, 0.5], "one number for each of the 3 arms"),
        ([0.5, 0.6, -0.1], "at least 0"),
        ([0.5, 0.5, 0.5], "not 1.5"),
        ([0.5, 0.5, np.nan], "at least 0"),
        (["x", 0, 0], "a list of numbers"),
    ],
)
def test_what_is_no_distribution_is_refused(pi, says):
    log, _ = play(np.zeros((1, 3)), A, [0])
    with pytest.raises(EvaluationError, match=says):
        evaluation.evaluate_distribution(log, pi)


@pytest.mark.parametrize("confidence", [0.0, 1.0, 95, math.nan])
def test_what_is_no_confidence_is_refused(confidence):
    with pytest.raises(EvaluationError, match="between 0 and 1"):
        evaluation.evaluate_arms(play(np.zeros((1, 3)), A, [0])[0], confidence)
