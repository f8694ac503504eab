"""What a key of a family can do that an agent can: certificate, lateness, health, log, and arms that come and go."""

import gc
import weakref

import numpy as np
import pytest

import sidelong as sl
from sidelong.agent import states
from sidelong.errors import EvaluationError, GraphError, LearnerError

pytestmark = pytest.mark.interpreted

GRAPH = sl.graphs.nested(4)
KEYS = ["a", "b", "c"]


def twins(learner="exp3-set", **options):
    family = sl.Family(learner, GRAPH, seed=5, certificate=True, health=True, **options)
    agents = {key: sl.Agent(learner, GRAPH, seed=family.seed_of(key), certificate=True, **options) for key in KEYS}
    return family, agents


def play(family, agents, rounds, waits=()):
    """Ask and tell both sides, in random order; what is left pending goes into `waits`."""
    rng = np.random.default_rng(rounds)
    pending = list(waits)
    for _ in range(rounds):
        plan = family.ask(KEYS)
        pending += [(key, name, agents[key].ask()) for key, name in zip(plan.keys, plan.ids, strict=True)]
        while len(pending) > 4:
            key, name, made = pending.pop(int(rng.integers(len(pending))))
            losses = rng.random(made.reveals.size)
            family.tell([name], losses)
            agents[key].tell(made.id, losses)
    return pending


def check(family, agents):
    for key, agent in agents.items():
        assert str(family[key].certificate()) == str(agent.certificate())
        np.testing.assert_equal(family[key].lateness(), agent.lateness())  # which may be NaN
        assert family[key].health() == agent.health()
        one, other = family[key].estimates(), agent.estimates()
        for name in ("means", "counts", "spreads", "weights"):
            np.testing.assert_array_equal(getattr(one, name), getattr(other, name))


@pytest.mark.parametrize("learner", ["exp3-set", "exp3.g++", "glance"])
def test_certificate_lateness_and_health_are_those_of_the_agent(learner, tmp_path):
    family, agents = twins(learner)
    waits = play(family, agents, 12)
    check(family, agents)
    key, name, made = waits.pop()
    family.cancel([name], lost=True)
    agents[key].cancel(made, lost=True)
    family.save(tmp_path / "family")
    family = sl.Family.join(sl.Family.load(tmp_path / "family").split(2))
    play(family, agents, 4, waits)
    check(family, agents)


@pytest.mark.parametrize("learner", ["exp3-set", "glance"])
def test_arms_come_and_go_as_they_do_for_an_agent(learner):
    family, agents = twins(learner)
    waits = play(family, agents, 6)
    for each in (family, *agents.values()):
        assert each.add_arm(reveals=[0], revealed_by=[3]) == 4
    waits = play(family, agents, 6, waits)
    check(family, agents)
    for each in (family, *agents.values()):
        each.retire(1)
    play(family, agents, 6, waits)
    check(family, agents)
    assert 1 not in family.ask(KEYS * 20).arms
    with pytest.raises(GraphError, match="which is retired"):
        family.retire(1)


@pytest.mark.parametrize("kept", [{"health": True}, {"certificate": True}])
def test_an_arm_may_come_before_the_first_key(kept, tmp_path):
    family = sl.Family("glance", sl.graphs.nested(3), seed=1, **kept)
    family.add_arm(reveals=[0])
    family.save(tmp_path / "family")
    for each in (family, sl.Family.load(tmp_path / "family")):
        assert each.ask(["a"]).rounds.tolist() == [1]
        assert each["a"].estimates().weights.size == 4


def test_a_learner_without_a_rule_for_arms_that_come_says_so():
    with pytest.raises(LearnerError, match="add_arm needs a learner"):
        sl.Family("exp3.g++", GRAPH).add_arm()


@pytest.mark.parametrize("learner", ["exp3-set", "glance"])
def test_logs_are_learned_by_key(learner):
    family, agents = twins(learner)
    log = {"action": [0, 1, 2, 3] * 5, "loss": [0.2, 0.9] * 10, "pscore": [0.25] * 20}
    assert family.learn({"a": log, "c": log}) == 40
    for key in ("a", "c"):
        agents[key].learn(log)
    play(family, agents, 4)
    check(family, agents)
    bad = {**log, "pscore": [1.0] * 20}
    before = family.contents()[1]
    with pytest.raises(EvaluationError, match="could not be seen"):
        family.learn({"b": log, "d": bad})
    after = family.contents()[1]
    assert all(before[name].tobytes() == after[name].tobytes() for name in before)


def test_what_a_family_does_not_keep_is_refused_by_a_sentence():
    family = sl.Family("glance", GRAPH)
    family.ask(["a"])
    with pytest.raises(EvaluationError, match="certificate=True"):
        family["a"].certificate()
    with pytest.raises(EvaluationError, match="health=True"):
        family["a"].health()


def test_it_remembers_as_many_decisions_as_it_is_told_to():
    family = sl.Family("glance", GRAPH, seed=1)
    plans = []
    family.remembers = 6
    for t in range(8):
        plans.append(family.ask(["a"]))
        family.tell(plans[-1], np.full(plans[-1].reveals.size, t / 10))
    assert family.tell(plans[2], np.full(plans[2].reveals.size, 0.2)) == 0
    family.remembers = 2
    assert family.remembers == 2
    with pytest.raises(sl.errors.DecisionError, match="remembers the last 2"):
        family.tell(plans[2], np.full(plans[2].reveals.size, 0.2))


def test_large_graphs_that_no_pending_decision_needs_are_forgotten(monkeypatch):
    monkeypatch.setattr("sidelong.agent.graphs._MANY_EDGES", 100)
    agent, family = sl.Agent("exp3-set", sl.graphs.nested(4)), sl.Family("exp3-set", sl.graphs.nested(4))
    alive = []
    for k in range(40):
        graph = sl.FeedbackGraph.from_matrix(np.eye(4) + (np.random.default_rng(k).random((4, 4)) < 0.5) > 0)
        alive.append(weakref.ref(graph))
        for each in (agent, family["a"]):
            decision = each.ask(graph)
            if k:  # the first one stays pending
                assert each.tell(decision, [0.5] * decision.reveals.size)
    del graph, decision
    gc.collect()
    assert 1 <= sum(each() is not None for each in alive) < 30
    for each in (agent, family["a"]):
        (first,) = each.pending
        assert first.graph == alive[0]()
        assert each.tell(first.id, [0.5] * first.reveals.size)


def test_steps_between_common_states_are_forgotten(monkeypatch):
    monkeypatch.setattr(states, "_STEPS", 50)
    family = sl.Family("exp3-set", sl.graphs.self_loops(14), seed=1)
    rng = np.random.default_rng(1)
    for t in range(60):
        flags = rng.random(14) < 0.5
        flags[0] = True
        family.ask([t], available=flags)
    assert len(family._rounds.common._after) == 50


@pytest.mark.parametrize("losses", [{}, [], 0.5, "bad", [[0.5]]])
def test_what_is_no_losses_is_refused_as_an_agent_refuses_it(losses):
    family = sl.Family("glance", GRAPH, seed=7)
    agent = sl.Agent("glance", GRAPH, seed=family.seed_of("a"))
    for which in ("pending", "told", "cancelled", "unknown"):
        caught = []
        for one in (agent, family["a"]):
            decision = one.ask()
            name = decision.id if which != "unknown" else "99-x"
            if which == "told":
                one.tell(decision, [0.5] * decision.reveals.size)
            elif which == "cancelled":
                one.cancel(decision)
            with pytest.raises(sl.errors.SidelongError) as error:
                one.tell(name, losses)
            caught.append(error.type)
        assert caught[0] is caught[1], which


def test_what_is_neither_end_of_a_scale_is_not_a_matter_of_a_wider_scale():
    agent = sl.Agent("ts-n", sl.graphs.nested(3), scale=sl.outcomes.Scale(best=5, worst=-5))
    decision = agent.ask()
    with pytest.raises(sl.errors.LossError, match=r"must be -5 or 5 for ts-n.*Another learner") as error:
        agent.tell(decision, [0.0] * decision.reveals.size)
    assert error.type is sl.errors.LossError
