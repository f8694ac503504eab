"""Off-policy estimates: against slow, obvious sums, without bias over every path of draws, and with their coverage."""

import itertools
import math

import numpy as np
import pytest

from sidelong.errors import EvaluationError
from sidelong.evaluation import offpolicy
from sidelong.evaluation.decision_log import DecisionLog

#: Playing 0 reveals 0 and 1, playing 1 reveals 1 and 2, playing 2 reveals itself.
A = np.array([[1, 1, 0], [0, 1, 1], [0, 0, 1]], bool)


def rule(sums, counts):
    """Return the probabilities of a learner that adapts, fast and badly."""
    weights = np.exp(-3.0 * sums / np.maximum(counts, 1.0))
    return 0.1 / sums.shape[-1] + 0.9 * weights / weights.sum(axis=-1, keepdims=True)


def play(losses, graph, arms, told=None):
    """Return the log of these draws, and the probability of drawing them."""
    K = len(graph)
    sums, counts = np.zeros((2, K))
    chance, rows = 1.0, []
    told = np.ones(len(losses), bool) if told is None else told
    for t, played in enumerate(arms):
        p = rule(sums, counts)
        chance *= p[played]
        if not told[t]:
            continue
        for a in np.flatnonzero(graph[played]):
            rows.append((t, a, losses[t, a], (p @ graph)[a]))
            sums[a] += losses[t, a]
            counts[a] += 1
    cost = np.where(told, losses[np.arange(len(losses)), arms], np.nan)
    t, a, l, P = np.array(rows).reshape(-1, 4).T
    return DecisionLog(K, told, cost, t.astype(np.int64), a.astype(np.int64), l, P), chance


def draw(losses, graph, rng, runs=1, told=None):
    """Return the logs of several runs of the rule, each with its own losses: losses[run, t, arm]."""
    losses = np.broadcast_to(losses, (runs, *losses.shape[-2:]))
    sums, counts = np.zeros((2, runs, len(graph)))
    arms = np.empty(losses.shape[:2], int)
    for t in range(losses.shape[1]):
        cumulative = rule(sums, counts).cumsum(axis=1)
        arms[:, t] = (rng.random((runs, 1)) > cumulative[:, :-1]).sum(axis=1)
        if told is None or told[t]:
            sums += graph[arms[:, t]] * losses[:, t]
            counts += graph[arms[:, t]]
    return [play(losses[run], graph, arms[run], told)[0] for run in range(runs)]


def naive(log, pi):
    """The docstring of the module, round by round."""
    sums, counts = np.full(log.n_arms, 0.5), np.ones(log.n_arms)
    value, squares, low, high, low_squares, high_squares, weights = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, []
    for t in range(log.n_rounds):
        c = sums / counts
        b = pi @ c
        x, x0, x1, w = b, 0.0, 1.0, 0.0
        for e in np.flatnonzero(log.round == t):
            a, l, P = log.arm[e], log.loss[e], log.probability[e]
            x += pi[a] * (l - c[a]) / P
            x0 += pi[a] * l / P
            x1 += pi[a] * (l - 1) / P
            w += pi[a] / P
            sums[a] += l
            counts[a] += 1
        if log.told[t]:
            value += x
            squares += (x - b) ** 2
            weights.append(w)
        low += x0
        high += 1 - x1
        low_squares += (x0 - b) ** 2
        high_squares += ((1 - x1) - (1 - b)) ** 2
    m = max(log.told.sum(), 1)
    return value / m, math.sqrt(squares) / m, (low, low_squares), (high, high_squares), np.array(weights)


def wealth(total, squares, n, mean):
    """The averaged product that Ville's inequality bounds, if the mean of the means is this."""
    s = [2.0**-k for k in range(1, 17)]
    return np.mean([math.exp(min(k * (total - n * mean) - (-math.log(1 - k) - k) * squares, 700)) for k in s])


@pytest.mark.parametrize("missing", [0.0, 0.4])
def test_arms_and_distributions_are_the_sums_of_the_definition(missing):
    rng = np.random.default_rng(5)
    losses = rng.random((40, 3))
    [log] = draw(losses, A, rng, told=rng.random(40) >= missing)
    arms = offpolicy.evaluate_arms(log, 0.9)
    for pi in (*np.eye(3), np.array([0.2, 0.5, 0.3])):
        one = offpolicy.evaluate_distribution(log, pi, 0.9)
        value, error, (low, low2), (high, high2), weights = naive(log, pi)
        assert one.value == pytest.approx(value, abs=1e-12)
        assert one.error == pytest.approx(error, abs=1e-12)
        assert one.weight == pytest.approx(weights.mean(), abs=1e-12)
        assert one.effective == pytest.approx(weights.sum() ** 2 / (weights**2).sum(), rel=1e-12)
        assert one.normal_upper - one.value == pytest.approx(1.6448536269514722 * error)
        for end, total, squares in ((one.lower[0], low, low2), (1 - one.upper[0], high, high2)):
            if 0 < end < value:
                assert wealth(total, squares, 40, end) == pytest.approx(1 / 0.05, rel=1e-6)
            else:
                assert wealth(total, squares, 40, 0.0) <= 1 / 0.05
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
        found = np.append(offpolicy.evaluate_arms(log).value, offpolicy.evaluate_distribution(log, pi).value)
        found[:3][np.isnan(found[:3])] = 0.5  # an arm that was never revealed has no estimate: its baseline stands
        mean += chance * found
        certain += chance
    assert certain == pytest.approx(1.0, abs=1e-12)
    truth = losses.mean(axis=0)
    np.testing.assert_allclose(mean, np.append(truth, pi @ truth), atol=1e-12)


@pytest.mark.parametrize("hidden", [None, 0, 2])
def test_the_products_behind_the_guaranteed_interval_have_a_mean_of_at_most_one(hidden):
    """Over all 729 paths. With `hidden`, who plays that arm never tells: missing for the worst of reasons."""
    losses = np.array([[0.0, 1.0, 0.1], [1.0, 0.0, 0.9], [0.0, 0.2, 1.0]] * 2)
    truth = losses.mean(axis=0)
    mean = np.zeros((3, 2))
    for arms in itertools.product(range(3), repeat=6):
        log, chance = play(losses, A, arms, np.array(arms) != hidden)
        for a, pi in enumerate(np.eye(3)):
            _, _, low, high, _ = naive(log, pi)
            mean[a] += chance * np.array([wealth(*low, 6, truth[a]), wealth(*high, 6, 1 - truth[a])])
    assert (mean <= 1.0 + 1e-12).all()
    assert (mean > 0.3).all()  # and they waste little


def test_coverage_on_long_logs_of_a_rule_that_adapts():
    """150 logs of 300 rounds, 3 arms, 95 %, seed 0, losses with means: an interval holds for the mean too.

    If each log failed with 5 %, more than 18 of 150 would with a probability of 4e-4. The normal interval is
    approximate: if it failed twice as often, more than 27 would with 1e-3.
    """
    rng = np.random.default_rng(0)
    truth = np.array([0.3, 0.5, 0.6])
    found = [offpolicy.evaluate_arms(log) for log in draw(rng.random((150, 300, 3)) < truth, A, rng, runs=150)]
    found = offpolicy.Estimates(*map(np.array, zip(*found, strict=True)))
    assert (((truth < found.lower) | (truth > found.upper)).sum(axis=0) <= 18).all()
    assert (((truth < found.normal_lower) | (truth > found.normal_upper)).sum(axis=0) <= 27).all()
    spread = found.value.std(axis=0)
    # The spread of 150 values is known to 6 %, so that 25 % are four times that. Neither interval is long for nothing.
    np.testing.assert_allclose(np.sqrt((found.error**2).mean(axis=0)), spread, rtol=0.25)
    assert (np.abs(found.value.mean(axis=0) - truth) < 4 * spread / math.sqrt(150)).all()  # fails for 1 seed in 5,000
    assert ((found.upper - found.lower).mean(axis=0) < 5 * (found.normal_upper - found.normal_lower).mean(axis=0)).all()


def test_an_interval_narrows_and_a_watched_one_never_loses_the_truth():
    rng = np.random.default_rng(3)
    losses = (rng.random((3000, 3)) < [0.2, 0.5, 0.6]).astype(float)
    [log] = draw(losses, A, rng)
    found = offpolicy.evaluate_arms(log)
    assert ((found.upper - found.lower) < 0.35).all()
    assert (found.lower <= found.value).all()
    assert (found.value <= found.upper).all()
    assert (found.lower <= found.normal_lower).all()  # the guarantee costs something
    assert (found.upper >= found.normal_upper).all()
    np.testing.assert_allclose(found.weight, 1.0, atol=0.2)


def test_the_regret_holds_for_every_arm_at_once():
    rng = np.random.default_rng(4)
    losses = (rng.random((2000, 3)) < [0.2, 0.7, 0.9]).astype(float)
    [log] = draw(losses, A, rng, told=rng.random(2000) > 0.1)
    found = offpolicy.regret(log)
    told = log.told
    truth = log.cost[told].sum() - losses[told, 0].sum()
    assert found.best == 0
    assert found.lower <= truth <= found.upper
    assert found.value == pytest.approx(truth / told.mean(), abs=120)  # four standard errors


def test_a_log_without_feedback_says_that_it_knows_nothing():
    none = np.zeros(0)
    log = DecisionLog(2, np.zeros(5, bool), np.full(5, np.nan), none.astype(int), none.astype(int), none, none)
    found = offpolicy.evaluate_arms(log)
    assert np.isnan(found.value).all()
    assert (found.lower.tolist(), found.upper.tolist()) == ([0, 0], [1, 1])
    assert offpolicy.regret(log)[1:] == (-5.0, 5.0, -1)
    empty = log._replace(told=np.zeros(0, bool), cost=none)
    assert offpolicy.evaluate_arms(empty).upper.tolist() == [1, 1]
    assert np.isnan(offpolicy.evaluate_distribution(empty, [0.5, 0.5]).value)


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
        offpolicy.evaluate_distribution(log, pi)


@pytest.mark.parametrize("confidence", [0.0, 1.0, 95, math.nan])
def test_what_is_no_confidence_is_refused(confidence):
    with pytest.raises(EvaluationError, match="between 0 and 1"):
        offpolicy.evaluate_arms(play(np.zeros((1, 3)), A, [0])[0], confidence)
