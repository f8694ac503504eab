"""What the state of an experiment says about costs, regret and feedback: against the log, and over many runs."""

import numpy as np
import pytest

import sidelong as sl
from service.stores import opened
from sidelong.evaluation import offpolicy
from sidelong.evaluation.decision_log import read_log
from sidelong.service.http import estimates, export, views
from sidelong.service.store.journal import Kind
from sidelong.service.store.tallies import Tallies

OWN = sl.FeedbackGraph.from_edges([(0, 2), (3, 1)], 4, self_loops=True)


@pytest.fixture
def bench(tmp_path):
    with opened(f"sqlite:///{tmp_path}/service.db") as made:
        yield made


def state(bench, **how):
    return bench.store.view("e", lambda experiment, _: views.state(experiment, **how))


@pytest.mark.parametrize("late", [0, 7])
def test_costs_and_regret_are_those_of_the_log(bench, tmp_path, late):
    """Graphs that change, and one that is told. Late feedback is weighed in the order in which it came."""
    rng = np.random.default_rng(2)
    bench.create(preset="practical")
    waiting, order = [], []
    for t in range(60):
        waiting.append((t, bench.decide(graph=OWN if t % 3 == 1 else None)))
        while len(waiting) > (late if t < 59 else 0):
            number, made = waiting.pop(int(rng.integers(len(waiting))))
            order.append(number)
            shown = sl.graphs.complete(4) if number % 7 == 3 else None
            bench.tell(made, rng.random(4 if shown else len(made.reveals)).tolist(), graph=shown)
    export.write(bench.store, "e", tmp_path / "log.parquet")
    log = read_log(tmp_path / "log.parquet")
    place = np.argsort(order)[log.round]  # as if rounds had been drawn in the order in which they were told
    came = np.argsort(place, kind="stable")
    log = log._replace(round=place[came], arm=log.arm[came], loss=log.loss[came], probability=log.probability[came])
    arms, regret, found = offpolicy.evaluate_arms(log), offpolicy.regret(log), state(bench)
    for shown, column in (("mean", arms.value), ("low", arms.lower), ("high", arms.upper)):
        seen = [getattr(arm, shown) for arm in found.arms.items]
        np.testing.assert_allclose(seen, np.clip(column, 0.0, 1.0), atol=1e-7)
    assert found.regret.rounds == 60
    assert found.regret.own_loss == pytest.approx(log.cost.sum())
    assert found.regret.best_arm == regret.best
    assert found.regret.best_loss == pytest.approx(60 * arms.value[regret.best])
    for shown, value in (("estimate", regret.value), ("low", regret.lower), ("high", regret.upper)):
        assert getattr(found.regret, shown) == pytest.approx(value, abs=1e-5)


def played(rounds, seed):
    """Return the tallies of a run of a bandit, and its losses."""
    agent = sl.Agent("exp3.g++", sl.graphs.self_loops(4), seed=seed, preset="practical")
    losses = (np.random.default_rng(seed).random((rounds, 4)) < [0.3, 0.5, 0.6, 0.7]).astype(float)
    tallies = Tallies(4)
    for row in losses:
        made = agent.ask()
        known = made.reveals, row[made.reveals], made.revealed_probabilities
        tallies.told(made.arm, made.probabilities, *known, after=False, delayed=False)
        tallies.counts[Kind.TOLD] += 1
        agent.tell(made, row[made.reveals])
    return tallies, losses


def test_intervals_hold_for_arms_that_are_hardly_played_any_more():
    """100 runs of 200 rounds, 4 arms. If an interval missed with 5 %, 15 or more of 100 would with 2e-4."""
    missed, wrong, outside = np.zeros(4), 0, 0
    for seed in range(100):
        tallies, losses = played(200, seed)
        truth, mean = losses.mean(axis=0), estimates.costs(tallies)
        low, high = estimates.intervals(tallies, [0, 1, 2, 3])
        missed += (truth < low) | (truth > high)
        outside += ((mean < low) | (mean > high)).sum()
        regret = estimates.regret(tallies)
        wrong += not regret.low <= tallies.paid[0] - losses.sum(axis=0).min() <= regret.high
    assert (missed < 15).all()
    assert wrong < 15
    assert outside == 0


def test_feedback_that_comes_after_a_later_decision_is_told_about(bench):
    bench.create()
    bench.tell(bench.decide())
    assert state(bench).guarantee.holds
    first, second = bench.decide(), bench.decide()
    bench.tell(second)
    assert state(bench).guarantee.holds  # the first may still be cancelled
    bench.tell(first)
    [reason] = state(bench).guarantee.reasons
    assert reason.startswith("1 of 3 decisions was told after a later one was drawn")


def test_the_sample_ratio_check_is_calibrated_and_finds_feedback_that_is_lost_for_one_arm():
    """5,000 counts of 500 draws: below 0.01 come 50, give or take 7, and 36 at most too many or too few with 3e-7."""
    rng, p = np.random.default_rng(8), np.array([0.4, 0.3, 0.2, 0.09, 0.008, 0.002])
    tallies = Tallies(6)
    tallies.counts[Kind.TOLD], tallies.expected = 500, 500 * p
    low = 0
    for plays in rng.multinomial(500, p, 5000):
        tallies.plays = plays
        low += estimates.sample_ratio(tallies).p_value < 0.01
    assert 14 <= low <= 86
    told = rng.multinomial(5000, p) * [1, 0.7, 1, 1, 1, 1]
    tallies.plays, tallies.expected = told, told.sum() * p
    assert not estimates.sample_ratio(tallies).ok
