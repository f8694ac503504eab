"""What the state of an experiment says about costs, regret and feedback: against the log, and over many runs."""

import numpy as np
import pytest

import sidelong as sl
from evaluation.four_sums import limit, naive
from sidelong import evaluation
from sidelong.service.http import estimates, export, views
from sidelong.service.store.counters import Counters, LearnedColumns, ToldColumns
from sidelong.service.store.journal import Kind

OWN = sl.FeedbackGraph.from_edges([(0, 2), (3, 1)], 4, self_loops=True)


def state(bench, **how):
    return bench.store.view("e", lambda experiment, reading: views.state(experiment, reading, **how))


@pytest.mark.parametrize("lost", [False, True])
@pytest.mark.parametrize("late", [0, 7])
def test_costs_and_regret_are_those_of_the_log(bench, tmp_path, late, lost):
    """Graphs that change, and one that is told. What a round is compared with was known when it was drawn."""
    rng = np.random.default_rng(2)
    bench.create(learner="glance")
    waiting, order, before = [], [], []
    for t in range(60):
        before.append(order.copy())
        waiting.append((t, bench.decide(graph=OWN if t % 3 == 1 else None)))
        while len(waiting) > (late if t < 59 else 0):
            number, made = waiting.pop(int(rng.integers(len(waiting))))
            if lost and number % 5 == 4:
                continue
            order.append(number)
            shown = sl.graphs.complete(4) if number % 7 == 3 else None
            bench.tell(made, rng.random(4 if shown else len(made.reveals)).tolist(), graph=shown)
    export.write(bench.store, "e", tmp_path / "log.parquet")
    log = evaluation.read_log(tmp_path / "log.parquet")
    each = [{} if t in order else None for t in range(60)]
    for t, arm, loss, P in zip(log.round, log.arm, log.loss, log.probability, strict=True):
        each[int(t)][int(arm)] = float(loss), float(P)
    found = state(bench)
    for arm in found.arms.items:
        mean, (low, high) = naive(each, arm.arm, before)
        assert arm.mean == pytest.approx(min(max(mean, 0), 1))
        assert arm.low == pytest.approx(max(min(limit(*low, 60, 0.025), mean), 0), abs=1e-6)
        assert arm.high == pytest.approx(min(max(1 - limit(*high, 60, 0.025), mean), 1), abs=1e-6)
        assert not arm.rejected
    if not late and not lost:
        means = evaluation.evaluate_arms(log).value
        np.testing.assert_allclose([arm.mean for arm in found.arms.items], np.clip(means, 0, 1), atol=1e-12)
    assert found.regret.rounds == 60
    assert found.regret.own_loss == pytest.approx(60 * np.nanmean(log.cost))
    best = naive(each, found.regret.best_arm, before)[0]
    assert found.regret.best_loss == pytest.approx(60 * best)
    assert found.regret.estimate == pytest.approx(60 * (np.nanmean(log.cost) - best))
    lower = min(*(limit(*naive(each, arm, before)[1][0], 60, 0.025 / 4) for arm in range(4)), best)
    assert found.regret.high == pytest.approx(np.nansum(log.cost) + 60 - len(order) - 60 * lower, abs=1e-4)
    assert not found.regret.rejected


def tell(counters, arm, p, reveals, losses, observe, frozen):
    """Count a round that was told at once."""
    told = ToldColumns.of([arm], reveals, [0, losses.size], losses)
    counters.told(told, LearnedColumns(observe, None if p is None else [p.copy()], [0]), [frozen], after=False)


@pytest.mark.parametrize("seed", range(3))
def test_feedback_that_is_lost_because_of_the_loss_does_not_move_the_truth_out_of_an_interval(seed):
    """Two arms of mean 1/2 are played evenly, and the feedback of arm 1 is lost when its loss is 1."""
    rng, counters = np.random.default_rng(seed), Counters(2)
    losses = (rng.random((2000, 2)) < 0.5).astype(float)
    for row in losses:
        arm = int(rng.integers(2))
        counters.counts[Kind.DECIDED] += 1
        frozen = counters.baselines
        if arm == 0 or row[1] == 0.0:
            p = np.full(2, 0.5)
            tell(counters, arm, p, np.array([arm]), row[[arm]], p[:1], frozen)
            counters.counts[Kind.TOLD] += 1
    found, truth = estimates.intervals(counters, [0, 1]), losses.mean(axis=0)
    assert (found.lower <= truth).all()
    assert (truth <= found.upper).all()
    assert (found.upper - found.lower < 0.8).all()
    regret = estimates.regret(counters)
    assert regret.rounds == 2000
    assert regret.low <= 2000 * (0.5 - truth.min()) <= regret.high


def test_limits_that_cross_are_reported(bench):
    """Each arm comes in every other round, and is said to come in one of twenty."""
    counters = Counters(2)
    for t in range(400):
        arm = t % 2
        counters.counts[[Kind.DECIDED, Kind.TOLD]] += 1
        known = np.array([arm]), np.array([float(arm)]), np.full(1, 0.05)
        tell(counters, arm, None, *known, counters.baselines)
    found = estimates.intervals(counters, [0, 1])
    assert found.rejected.all()
    regret = estimates.regret(counters)
    assert (regret.rejected, regret.low, regret.high) == (True, None, None)
    bench.create(graph=sl.graphs.self_loops(2))

    def shown_with(experiment, reading):
        experiment.counters = counters
        return views.state(experiment, reading)

    shown = bench.store.view("e", shown_with).arms.items
    assert [(arm.rejected, arm.low, arm.high) for arm in shown] == [(True, None, None)] * 2


def played(rounds, seed):
    """Return the counters of a run of a bandit, and its losses."""
    agent = sl.Agent("glance", sl.graphs.self_loops(4), seed=seed)
    losses = (np.random.default_rng(seed).random((rounds, 4)) < [0.3, 0.5, 0.6, 0.7]).astype(float)
    counters = Counters(4)
    for row in losses:
        made = agent.ask()
        known = made.reveals, row[made.reveals], made.revealed_probabilities
        counters.counts[[Kind.DECIDED, Kind.TOLD]] += 1
        tell(counters, made.arm, made.probabilities, *known, counters.baselines)
        agent.tell(made, row[made.reveals])
    return counters, losses


def test_intervals_hold_for_arms_that_are_hardly_played_any_more():
    """100 runs of 200 rounds, 4 arms. If an interval missed with 5 %, 15 or more of 100 would with 2e-4."""
    missed, wrong, outside = np.zeros(4), 0, 0
    for seed in range(100):
        counters, losses = played(200, seed)
        truth, mean = losses.mean(axis=0), estimates.costs(counters)
        low, high, _ = estimates.intervals(counters, [0, 1, 2, 3])
        missed += (truth < low) | (truth > high)
        outside += ((mean < low) | (mean > high)).sum()
        regret = estimates.regret(counters)
        wrong += not regret.low <= counters.paid[0] - losses.sum(axis=0).min() <= regret.high
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
    found = state(bench).guarantee
    [note] = found.reasons + found.notes
    assert note.startswith("1 of 3 decisions was told after a later one was drawn")


def test_the_state_names_the_cheapest_arm_and_how_sure_it_is(bench):
    bench.create(graph=sl.graphs.complete(3))
    assert state(bench).best is None
    for _ in range(5):
        bench.tell(bench.decide(), [0.5, 0.2, 0.6])
    found = state(bench)
    assert (found.best.arm, found.best.mean) == (1, pytest.approx(0.2))
    assert found.best.chance > 0.9
    assert [(arm.observed_count, arm.observed_spread) for arm in found.arms.items] == [(5, pytest.approx(0.0))] * 3


def test_a_learner_that_draws_without_probabilities_has_no_estimates(bench):
    bench.create(graph=sl.graphs.complete(3), learner="ts-n")
    for _ in range(3):
        bench.tell(bench.decide(), [0, 1, 0])
    found = state(bench)
    assert [(arm.observations, arm.observed_mean, arm.mean, arm.low) for arm in found.arms.items] == [
        (3, loss, None, None) for loss in (0.0, 1.0, 0.0)
    ]
    assert (found.regret.estimate, found.regret.low, found.regret.best_arm) == (None, None, None)


def test_a_sentence_about_an_arm_has_its_label():
    said = "Arm 1 was seen in 2 of 11 rounds, in which arm 1 and arm 12 were there."
    assert estimates.called(said, 1, ["mini", r"large\1"]) == said.replace("Arm 1 ", r"large\1 ").replace(
        "arm 1 ", r"large\1 "
    )
    assert estimates.called(said, 1, None) == estimates.called(said, None, ["mini", "large"]) == said


def test_the_certificate_of_an_experiment_is_its_agents_and_narrows_the_regret(bench):
    """Decisions that expire were carried out, and count as the worst; those that were cancelled were not."""
    graph, rng = sl.graphs.nested(4), np.random.default_rng(3)
    bench.create(graph=graph, expire_after=100.0, certificate=True, seed=5)
    agent = sl.Agent("exp3.g++", graph, seed=5, certificate=True)
    for t in range(200):
        made, twin = bench.decide(), agent.ask()
        if t % 40 == 7:
            bench.cancel(made)
            agent.cancel(twin)
        elif t % 40 == 9:
            agent.cancel(twin, lost=True)
        else:
            losses = rng.random(len(made.reveals)).tolist()
            bench.tell(made, losses)
            agent.tell(twin, losses)
    bench.hands.move(200.0)
    bench.expire()
    bench.decide()
    agent.ask()
    found, own = state(bench), agent.certificate()
    shown = found.certificate
    assert (shown.bound, shown.arm, shown.paid) == (pytest.approx(own.bound), own.arm, pytest.approx(own.paid))
    assert (shown.rounds, shown.silent, shown.why) == (196, 6, own.why)
    bound = agent.certificate(0.975).bound  # lost rounds are summed in another order
    assert found.regret.high in (pytest.approx(bound), found.regret.estimate) or found.regret.high < bound
    assert not found.world.turned
    bench.create("plain")
    assert bench.store.view("plain", views.state).certificate is None


def test_an_experiment_says_that_the_world_has_turned(bench):
    bench.create(graph=sl.graphs.complete(3), learner="exp3-set")
    rng = np.random.default_rng(1)
    for t in range(1200):
        means = [0.1, 0.5, 0.5] if t < 500 else [0.9, 0.5, 0.5]
        bench.tell(bench.decide(), (rng.random(3) < means).astype(float).tolist())
        if t == 480:
            assert not state(bench).world.turned
    found = state(bench).world
    assert (found.turned, found.arm) == (True, 0)
    assert found.below < found.above
    assert found.said.startswith("The world has turned: in some window of rounds arm 0 cost at least")
