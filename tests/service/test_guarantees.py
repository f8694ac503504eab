"""What the service says about the guarantee of an experiment: whether it holds, which half, and with which bound."""

import math

import numpy as np
import pytest

import sidelong as sl
from sidelong.evaluation.arm_delays import LEVEL, ArmDelays
from sidelong.service.http import views
from sidelong.service.store import snapshots

PROMPT = ["adversarial", "stochastic"]


def found(bench):
    return bench.store.view("e", views.state).guarantee


def two_clients(bench, rounds):
    """Let two clients take turns: each tells as soon as it has its outcome, after the other has asked."""
    waiting = bench.decide()
    for _ in range(rounds):
        waiting, done = bench.decide(), waiting
        bench.tell(done)
    bench.tell(waiting)


@pytest.mark.parametrize("learner", ["exp3.g++", "exp3-set"])
@pytest.mark.parametrize("late", ["plain", "guarded"])
def test_with_two_clients_it_holds_with_the_delay_it_has_had(bench, learner, late):
    bench.create(learner=learner, late=late)
    two_clients(bench, 40)
    guarantee = found(bench)
    assert guarantee.holds
    assert guarantee.proved == ["adversarial"]
    assert guarantee.delay.late == 40
    assert guarantee.delay.most == 1
    assert guarantee.bound == bench.store.view("e", lambda each, reading: each.agent_of(reading).lateness().bound)
    assert guarantee.random == pytest.approx(41 * 3 / 4)
    said = " ".join(guarantee.reasons + guarantee.notes)
    assert "40 of 41 decisions were told after a later one was drawn." in said
    assert ("stochastic half" in said) == (learner == "exp3.g++" and late == "plain")


def test_of_a_learner_with_a_bound_it_says_in_which_case_delay_is_not_covered(bench):
    bench.create(learner="exp3-set", track=1)
    two_clients(bench, 5)
    [reason] = found(bench).reasons
    assert reason.endswith("no theorem covers late feedback for exp3-set with track=....")


def test_absent_arms_and_late_feedback_together_are_not_covered(bench):
    bench.create(learner="exp3-set")
    bench.tell(bench.decide(available=(0, 1)))
    two_clients(bench, 5)
    guarantee = found(bench)
    assert not guarantee.holds
    [reason] = guarantee.reasons
    assert reason.endswith("no theorem covers late feedback for exp3-set where arms are absent.")


@pytest.mark.parametrize("learner", ["glance", "ucb-n", "exp3-ix"])
def test_where_no_theorem_covers_delay_it_says_so(bench, learner):
    bench.create(learner=learner)
    two_clients(bench, 5)
    guarantee = found(bench)
    assert not guarantee.holds
    assert guarantee.proved == []
    assert guarantee.bound is None
    [reason] = guarantee.reasons
    assert reason.endswith(f"Estimates stay unbiased, but no theorem covers late feedback for {learner}.")


def test_prompt_feedback_keeps_both_halves(bench):
    bench.create()
    for _ in range(10):
        bench.tell(bench.decide())
    guarantee = found(bench)
    assert (guarantee.holds, guarantee.proved, guarantee.reasons, guarantee.notes) == (True, PROMPT, [], [])
    assert guarantee.delay.late == guarantee.delay.most == 0


@pytest.mark.parametrize("learner", ["exp3.g++", "glance"])
def test_what_expired_or_was_cancelled_is_a_note_where_the_bound_counts_it(bench, learner):
    bench.create(learner=learner, expire_after=10.0)
    for _ in range(6):
        bench.tell(bench.decide())
    bench.decide()
    bench.hands.move(11.0)
    bench.expire()
    bench.cancel(bench.decide())
    guarantee = found(bench)
    if learner == "glance":
        assert not guarantee.holds
        assert [reason.split(" decisions ")[1] for reason in guarantee.reasons] == [
            "expired without feedback.",
            "was cancelled.",
        ]
        return
    assert guarantee.holds
    assert guarantee.reasons == []
    expired, cancelled = guarantee.notes
    assert expired.startswith("1 of 8 decisions expired without feedback. Each costs at most 1")
    assert cancelled.startswith("1 of 8 decisions was cancelled. That costs nothing, if")
    lateness = bench.store.view("e", lambda each, reading: each.agent_of(reading).lateness())
    assert (lateness.lost, lateness.cancelled) == (1, 1)


@pytest.mark.parametrize(
    ("learner", "proved"), [("exp3.g++", ["adversarial"]), ("exp3-set", ["adversarial"]), ("glance", ["adversarial"])]
)
def test_a_graph_that_was_known_only_after_the_draw(bench, learner, proved):
    bench.create(learner=learner)
    made = bench.decide()
    bench.tell(made, [0.5] * 4, graph=sl.graphs.complete(4))
    guarantee = found(bench)
    assert guarantee.proved == proved
    assert len(guarantee.reasons) == (learner != "exp3-set")


@pytest.mark.parametrize(
    ("learner", "options", "proved", "reason"),
    [
        ("exp3.g++", {"beta": 100}, ["adversarial"], "With these options only the adversarial half"),
        ("ucb-n", {"width": 0.5}, [], "No theorem bounds the regret of ucb-n with these options."),
        ("uniform", {}, [], "No theorem bounds the regret of uniform."),
        ("exp3.g", {"horizon": 2}, [], "exp3.g was made for 2 rounds, and 3 were decided."),
        ("exp3-set", {"track": 1, "horizon": 2}, [], "exp3-set was made for 2 rounds, and 3 were decided."),
    ],
)
def test_options_and_horizons_decide_what_is_proved(bench, learner, options, proved, reason):
    bench.create(learner=learner, **options)
    for _ in range(3):
        bench.tell(bench.decide())
    guarantee = found(bench)
    assert guarantee.proved == proved
    assert guarantee.holds == bool(proved)
    assert guarantee.reasons[0].startswith(reason)


@pytest.mark.parametrize(
    ("learner", "options", "known"),
    [("exp3.g++", {}, True), ("exp3.g++", {"rate": "fixed"}, True), ("exp3.g++", {"eta_scale": 2}, False)],
)
def test_it_says_from_which_round_on_the_theorem_is_worth_something(bench, learner, options, known):
    bench.create(learner=learner, **options)
    guarantee = found(bench)
    setting = sl.theory.Setting(sl.graphs.nested(4))
    rows = {tuple(row.options): row for row in sl.theory.promises(setting, [learner])}
    if known:
        assert guarantee.worth_from == math.ceil(sl.theory.worth_from(setting, rows[tuple(options)]))
    else:
        assert guarantee.worth_from is None


# Delays that depend on the arm


def delays(rng, rounds, depends):
    """Return the p-value after each decision of three arms; if it `depends`, arm 2 reports later than others."""
    test, seen = ArmDelays(3), []
    for _ in range(rounds):
        p = rng.dirichlet([1.0, 1.0, 1.0])
        arm = int(rng.choice(3, p=p))
        delay = int(rng.pareto(1.0)) + int(rng.integers(0, 3)) + (6 if depends and arm == 2 else 0)
        test.told(arm, p, delay)
        seen.append(test.p_value)
    return seen


def test_delays_that_depend_on_the_arm_are_noticed():
    found = delays(np.random.default_rng(1), 400, depends=True)
    assert found[-1] <= LEVEL
    assert (np.diff(found) <= 0).all()


def test_delays_that_do_not_are_hardly_ever_said_to():
    """By Ville's inequality at most a tenth ever has p <= 0.1: 100 or more of 500 would with less than 1e-10."""
    rng = np.random.default_rng(2)
    assert sum(delays(rng, 60, depends=False)[-1] <= 0.1 for _ in range(500)) < 100


def test_the_service_says_so_and_keeps_it(bench):
    bench.create(learner="exp3-set", graph=sl.graphs.self_loops(2))
    slow = []
    for _ in range(120):
        made = bench.decide()
        if made.arm == 0:
            slow.append(made)
        else:
            bench.tell(made, 0.5)
        if len(slow) > 5:
            bench.tell(slow.pop(0), 0.5)
    guarantee = found(bench)
    assert not guarantee.delay.by_arm.ok
    assert guarantee.delay.by_arm.level == LEVEL
    assert not guarantee.holds
    assert "Feedback of some arms comes later than that of others" in guarantee.reasons[-1]
    live = bench.store.view("e", lambda each, _: each)
    again = snapshots.unpack(live.identity, snapshots.pack(live), lambda _: live.graph)
    assert again.counters.arm_delays.p_value == live.counters.arm_delays.p_value == guarantee.delay.by_arm.p_value


def test_a_learner_that_does_not_tell_its_probabilities_cannot_be_tested(bench):
    bench.create(learner="exp3.g++", refresh="epoch")
    bench.tell(bench.decide())
    by_arm = found(bench).delay.by_arm
    assert (by_arm.p_value, by_arm.ok) == (None, True)
    assert by_arm.unknown == "the learner does not tell all probabilities"


def test_under_a_ceiling_no_theorem_bounds_the_regret_in_losses(bench):
    bench.create(learner="glance", ceiling=1.0)
    guarantee = found(bench)
    assert (guarantee.holds, guarantee.bound) == (False, None)
    assert "keeps to a ceiling" in guarantee.reasons[-1]
