"""Decisions that were carried out with another arm: what learns from them, and what does not."""

import numpy as np
import pytest

import sidelong as sl
from sidelong.errors import ConflictError, DecisionError, GraphError, LearnerError, LossError

pytestmark = pytest.mark.interpreted

GRAPH = sl.graphs.nested(4).labelled(["none", "some", "more", "all"])


def state(agent):
    return [array.tobytes() for name, array in sorted(agent.contents()[1].items()) if name.startswith("state.")]


def test_means_learn_what_the_arm_that_was_carried_out_reveals_and_the_learner_does_not():
    agent, other = (sl.Agent("exp3-set", GRAPH, seed=2) for _ in range(2))
    decision, cancelled = agent.ask(), other.ask()
    arm = (decision.arm + 1) % 4
    now = agent.override(decision, GRAPH.labels[arm])
    assert (now.arm, now.carried_out, now.id) == (decision.arm, arm, decision.id)
    assert now.reveals.tolist() == list(range(arm + 1))
    with pytest.raises(LossError):
        agent.tell(decision, [0.5] * (decision.reveals.size + 4))
    assert agent.tell(decision, [0.25] * (arm + 1))
    other.cancel(cancelled)
    assert state(agent) == state(other)
    assert agent.estimates().counts.tolist() == [1] * (arm + 1) + [0] * (3 - arm)
    assert agent.estimates().means[arm] == 0.25
    assert agent.health().overridden == 1
    assert "1 decision was carried out with another arm" in str(agent.health())
    assert agent.lateness().lost == 1
    assert not agent.tell(decision, [0.25] * (arm + 1))


def test_the_arm_that_was_drawn_is_no_override():
    agent, other = (sl.Agent("exp3-set", GRAPH, seed=2) for _ in range(2))
    decision, plain = agent.ask(), other.ask()
    agent.override(decision.id, decision.arm)
    for each, made in ((agent, decision), (other, plain)):
        each.tell(made, [0.5] * made.reveals.size)
    assert state(agent) == state(other)
    assert agent.health().overridden == 0


class OneKey:
    """A key of a family, asked and told like an agent."""

    def __new__(cls, *given, **options):
        return sl.Family(*given, **options, health=True)["a"]


@pytest.mark.parametrize("kind", [sl.Agent, OneKey])
def test_what_was_carried_out_is_said_once_and_cannot_be_cancelled_as_if_it_was_not(kind):
    agent = kind("exp3-set", GRAPH, seed=2)
    decision = agent.ask()
    first, second = ((decision.arm + k) % 4 for k in (1, 2))
    agent.override(decision, first)
    assert agent.override(decision.id, first).carried_out == first
    for arm in (second, decision.arm):
        with pytest.raises(ConflictError, match=rf"carried out with arm {first} .* as was said before. That stays"):
            agent.override(decision.id, arm)
    with pytest.raises(DecisionError, match="carried out with another arm"):
        agent.cancel(decision.id)
    assert agent.pending[0].carried_out == first
    agent.cancel(decision.id, lost=True)
    assert (agent.health().overridden, agent.lateness().lost, agent.lateness().cancelled) == (1, 1, 0)


@pytest.mark.parametrize("kind", [sl.Agent, OneKey])
def test_old_decisions_expire_and_those_that_were_overridden_count_as_lost(kind):
    agent = kind("exp3-set", GRAPH, seed=2)
    old, overridden, new = (agent.ask() for _ in range(3))
    agent.override(overridden, (overridden.arm + 1) % 4)
    with pytest.raises(LearnerError, match="age must be a whole number of at least 0, not -1"):
        agent.expire(-1)
    assert agent.expire(3) == []
    assert agent.expire(1) == [old.id, overridden.id]
    assert [made.id for made in agent.pending] == [new.id]
    assert (agent.health().overridden, agent.lateness().lost, agent.lateness().cancelled) == (1, 1, 1)
    assert agent.expire(0, lost=True) == [new.id]
    assert (agent.pending, agent.lateness().lost) == ((), 2)


def test_an_override_survives_a_file_and_a_certificate_counts_it_as_lost(tmp_path):
    agent, lost = (sl.Agent("glance", GRAPH, seed=2, certificate=True) for _ in range(2))
    decision = agent.ask()
    lost.cancel(lost.ask(), lost=True)
    agent.override(decision, (decision.arm + 1) % 4)
    agent.save(tmp_path / "agent")
    agent = sl.Agent.load(tmp_path / "agent")
    (waits,) = agent.pending
    assert waits.carried_out == (decision.arm + 1) % 4
    agent.tell(waits, [0.5] * waits.reveals.size)
    assert str(agent.certificate()) == str(lost.certificate())


def test_what_cannot_have_been_carried_out_is_refused():
    agent = sl.Agent("exp3-set", GRAPH, seed=2)
    decision = agent.ask(available=["none", "some"])
    with pytest.raises(DecisionError, match=r"Arm 3 \('all'\) was absent"):
        agent.override(decision, "all")
    with pytest.raises(GraphError, match="must name arms from 0 to 3, not 9"):
        agent.override(decision, 9)
    agent.cancel(decision)
    with pytest.raises(DecisionError, match="only a pending one can be overridden"):
        agent.override(decision, 0)


@pytest.mark.compiled
@pytest.mark.parametrize("learner", ["glance", "exp3.g++", "exp3-set"])
def test_a_family_does_the_same_as_its_agents(learner):
    options = {"late": "guarded"} if learner == "exp3-set" else {}
    family = sl.Family(learner, GRAPH, seed=5, health=True, certificate=True, **options)
    keys = ["a", "b", "c"]
    agents = {key: sl.Agent(learner, GRAPH, seed=family.seed_of(key), certificate=True, **options) for key in keys}
    for t in range(8):
        plan = family.ask(keys)
        made = {key: agent.ask() for key, agent in agents.items()}
        carried = [(int(arm) + (t % 3 == 0)) % 4 for arm in plan.arms]
        family.override(plan, carried)
        sizes = [arm + 1 for arm in carried]
        family.tell(plan, np.full(sum(sizes), t / 10))
        for key, arm in zip(keys, carried, strict=True):
            agents[key].override(made[key], arm)
            agents[key].tell(made[key], [t / 10] * (arm + 1))
    for key, agent in agents.items():
        one, other = family[key].estimates(), agent.estimates()
        for name in ("means", "counts", "spreads", "weights"):
            np.testing.assert_array_equal(getattr(one, name), getattr(other, name))
        assert str(family[key].certificate()) == str(agent.certificate())
        assert family[key].health() == agent.health()
        np.testing.assert_equal(family[key].lateness(), agent.lateness())  # which may be NaN
    with pytest.raises(DecisionError, match="one arm for each of the 3 decisions"):
        family.override(family.ask(keys), [0])


def test_a_regressor_learns_what_was_carried_out():
    agent = sl.ContextualAgent("squarecb.g", sl.graphs.self_loops(3), seed=1)
    decision = agent.ask([0.5])
    arm = (decision.arm + 1) % 3
    agent.override(decision, arm)
    agent.tell(decision, {arm: 1.0})
    found = agent.predict([0.5])
    assert found[arm] > 0
    assert np.delete(found, arm).tolist() == [0.0, 0.0]
