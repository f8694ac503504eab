"""Arms that come and go: what `ask(available=...)`, `add_arm` and `retire` take, refuse, keep and save."""

import pickle

import numpy as np
import pytest

import sidelong as sl
from sidelong.errors import GraphError, LearnerError, LossError, SimulationError
from sidelong.learners import catalogue

pytestmark = pytest.mark.interpreted

LABELLED = sl.graphs.nested(4).labelled(["none", "small", "middle", "large"])


def losses_of(decision):
    return {int(arm): (decision.round * (int(arm) + 2)) % 5 / 4 for arm in decision.reveals}


def play(agent, rounds, available=lambda _: None):
    """Ask and tell; return all that was decided."""
    record = []
    for _ in range(rounds):
        decision = agent.ask(available=available(agent.round))
        record.append((decision.id, decision.arm, decision.probabilities.tobytes(), decision.reveals.tolist()))
        agent.tell(decision, losses_of(decision))
    return record


def some(t):
    return [arm for arm in range(4) if (arm + t) % 3]


@pytest.mark.parametrize(
    "available",
    [
        [0, 2],
        (2, 0),
        {0, 2},
        iter([0, 2]),
        np.array([0, 2]),
        np.array([0, 2], np.uint8),
        ["none", "middle"],
        [0, "middle"],
        [True, False, True, False],
        np.array([1, 0, 1, 0], bool),
    ],
)
def test_available_arms_are_numbers_labels_or_flags(available):
    decision = sl.Agent("exp3-set", LABELLED, seed=1).ask(available=available)
    assert decision.probabilities.tolist() == [0.5, 0, 0.5, 0]
    assert decision.reveals.tolist() == ([0] if decision.arm == 0 else [0, 2])
    assert decision.observe_probabilities.tolist() == [1, 0, 0.5, 0]
    assert decision.graph.labels == LABELLED.labels


@pytest.mark.parametrize(
    ("available", "message"),
    [
        ([], "names no arm"),
        ([False] * 4, "names no arm"),
        ([1, 0, 1, 1], r"names arm 1 \('small'\) twice. Flags are True and False"),
        ([True] * 3, "one flag for each of the 4 arms, not 3"),
        ([4], "arms from 0 to 3, not 4"),
        ([-1], "arms from 0 to 3, not -1"),
        ([0.5], "arms from 0 to 3, not 0.5"),
        (["smal"], "names the arm 'smal', and no arm is called so. Did you mean 'small'"),
        ("small", "must be arms, by number or label"),
        (2, "must be arms, by number or label"),
    ],
)
def test_what_is_no_choice_of_arms_is_refused_and_nothing_changes(available, message):
    agent = sl.Agent("exp3-set", LABELLED, seed=1)
    with pytest.raises(GraphError, match=message):
        agent.ask(available=available)
    assert agent.round == 0
    assert agent.pending == ()


@pytest.mark.parametrize(("available", "retired"), [([1], None), (None, 0)])
def test_a_round_whose_graph_lacks_the_arms_that_can_be_played_is_refused(available, retired):
    there = np.diag([True, False, False]) if available is None else np.diag([True, False, True])
    agent = sl.Agent("exp3-set", sl.graphs.self_loops(3), seed=1)
    if retired is not None:
        agent.retire(retired)
    with pytest.raises(GraphError, match="none is in the graph of this round"):
        agent.ask(sl.FeedbackGraph.from_matrix(there), available=available)
    assert agent.round == 0
    assert np.isfinite(agent.ask().probabilities).all()


@pytest.mark.parametrize("arm", [True, [0], 1.0])
def test_what_is_no_arm_is_not_retired(arm):
    agent = sl.Agent("exp3-set", LABELLED)
    with pytest.raises(GraphError, match="arm must name arms from 0 to 3, not"):
        agent.retire(arm)


def test_a_learner_with_another_rate_for_late_feedback_says_which_one_to_take():
    with pytest.raises(LearnerError, match="Use glance or exp3-set, with default options"):
        sl.Agent("exp3-set", LABELLED, late="guarded").ask(available=[0])


def test_a_label_needs_labels():
    with pytest.raises(GraphError, match="the graph has no labels"):
        sl.Agent("exp3-set", sl.graphs.nested(4)).ask(available=["small"])


@pytest.mark.parametrize("learner", [name for name in sl.learners.names() if name not in {"glance", "exp3-set"}])
def test_learners_without_a_rule_for_absent_arms_name_the_one_that_has(learner):
    horizon = {"horizon": 100} if "horizon" in catalogue.option_names(catalogue.find(learner)) else {}
    agent = sl.Agent(learner, sl.graphs.complete(4), **horizon)
    for act in (lambda: agent.ask(available=[0]), lambda: agent.retire(0), agent.add_arm):
        with pytest.raises(LearnerError, match="Use glance or exp3-set"):
            act()
    assert agent.round == 0


def test_epochs_have_no_rule_for_absent_arms():
    agent = sl.Agent("exp3.g++", sl.graphs.nested(4), refresh="epoch")
    with pytest.raises(LearnerError, match=r"exp3\.g\+\+ with refresh=.epoch. has none\. Use glance or exp3-set"):
        agent.ask(available=[0])


def test_the_loss_of_an_absent_arm_is_refused():
    agent = sl.Agent("exp3-set", LABELLED, seed=1)
    decision = agent.ask(available=[0, 3])
    while decision.arm != 3:
        decision = agent.ask(available=[0, 3])
    with pytest.raises(LossError, match="Arm 1 was not revealed"):
        agent.tell(decision, dict.fromkeys(range(4), 0.5))
    assert agent.tell(decision, {0: 0.5, 3: 0.25})


def test_the_graph_of_the_outcome_is_taken_without_the_absent_arms():
    agent = sl.Agent("exp3-set", LABELLED, seed=1)
    decision = agent.ask(available=[0, 2])
    assert agent.tell(decision, {0: 0.5, 2: 0.25}, graph=sl.graphs.complete(4))
    assert not agent.tell(decision, {0: 0.5, 2: 0.25}, graph=sl.graphs.complete(4))
    assert agent.estimates().counts[[1, 3]].tolist() == [0, 0]


@pytest.mark.parametrize("whole", [False, True])
def test_a_decision_that_waited_while_arms_came_is_told_with_the_graph_of_its_outcome(whole):
    orders = sl.outcomes.StockOrders(4, holding=1, shortage=4)
    agent = sl.Agent("exp3-set", orders.graph, seed=1)
    waiting = agent.ask()
    agent.add_arm()
    agent.add_arm()
    seen = orders.outcome(waiting.arm, sales=0)
    given = (seen,) if whole else (seen.losses, seen.graph)
    assert agent.tell(waiting, *given)
    agent.add_arm()
    assert not agent.tell(waiting, *given)
    later = agent.ask()
    with pytest.raises(GraphError, match="must have the agent's 8 arms"):
        agent.tell(later, [0.5] * 5, graph=seen.graph)


@pytest.mark.parametrize("copy", ["file", "pickle"])
def test_absent_new_and_retired_arms_survive_saving_and_loading(copy, tmp_path):
    def change(agent):
        made = [agent.ask(available=[1, 2]) for _ in range(3)]
        agent.add_arm(reveals=["none"], revealed_by=["large", 2], label="huge")
        agent.retire("small")
        made.append(agent.ask())
        return made

    def go_on(agent, made):
        for decision in made[::-1]:
            agent.tell(decision.id, losses_of(decision))
        return play(agent, 20, lambda t: [0, 2, 4] if t % 2 else None), agent.contents()

    one, other = (sl.Agent("exp3-set", LABELLED, seed=5) for _ in range(2))
    for agent in (one, other):
        play(agent, 10, some)
    ours, theirs = change(one), change(other)
    if copy == "file":
        other.save(tmp_path / "agent.sidelong")
        other = sl.Agent.load(tmp_path / "agent.sidelong")
    else:
        other = pickle.loads(pickle.dumps(other))  # noqa: S301
    assert other.graph == one.graph
    assert other.graph.labels == (*LABELLED.labels, "huge")
    a, b = go_on(one, ours), go_on(other, theirs)
    assert a[0] == b[0]
    assert a[1][0] == b[1][0]
    assert all(a[1][1][name].tobytes() == b[1][1][name].tobytes() for name in a[1][1])


def test_a_new_arm_extends_the_graph():
    agent = sl.Agent("exp3-set", LABELLED, seed=5)
    assert agent.add_arm(reveals=range(4), label="huge") == 4
    assert agent.graph == sl.graphs.nested(5)
    assert agent.graph.labels == ("none", "small", "middle", "large", "huge")
    assert agent.graph.representation == "intervals"
    assert agent.add_arm(revealed_by=["huge"], label="free") == 5
    assert agent.graph.out_neighbors(4).tolist() == [0, 1, 2, 3, 4, 5]
    assert agent.graph.out_neighbors(5).tolist() == [5]
    assert agent.ask().probabilities.tolist() == [1 / 6] * 6
    assert agent.estimates().counts.tolist() == [0] * 6


def test_a_decision_from_before_a_new_arm_is_told_as_it_was_asked():
    agent = sl.Agent("exp3-set", sl.graphs.complete(3), seed=5)
    play(agent, 5)
    decision = agent.ask()
    agent.add_arm(revealed_by=range(3))
    with pytest.raises(LossError, match="Arm 3 was not revealed"):
        agent.tell(decision, dict.fromkeys(range(4), 0.5))
    assert agent.tell(decision, dict.fromkeys(range(3), 0.5))
    assert agent.ask().reveals.tolist() == [0, 1, 2, 3]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"label": "small"}, "'small' stands there twice"),
        ({}, "has labels: give label"),
        ({"label": "huge", "reveals": [4]}, "reveals must name arms from 0 to 3, not 4"),
        ({"label": "huge", "revealed_by": ["big"]}, "revealed_by names the arm 'big'"),
        ({"label": "huge", "reveals": [1]}, r"reveals names arm 1 \('small'\), which is retired"),
    ],
)
def test_an_arm_that_does_not_fit_is_refused_and_nothing_changes(arguments, message):
    agent = sl.Agent("exp3-set", LABELLED, seed=5)
    agent.retire("small")
    before = agent.contents()
    with pytest.raises(GraphError, match=message):
        agent.add_arm(**arguments)
    assert str(agent.contents()) == str(before)


def test_a_retired_arm_is_gone_for_good():
    agent = sl.Agent("exp3-set", LABELLED, seed=5)
    play(agent, 10)
    agent.retire(0)
    assert agent.graph.matrix()[0].sum() == agent.graph.matrix()[:, 0].sum() == 0
    decision = agent.ask(sl.graphs.complete(4))
    assert decision.reveals.tolist() == [1, 2, 3]
    assert decision.probabilities[0] == 0
    for available in ([0, 1], [True] * 4):
        with pytest.raises(GraphError, match=r"available names arm 0 \('none'\), which is retired"):
            agent.ask(available=available)
    with pytest.raises(GraphError, match=r"arm names arm 0 \('none'\), which is retired"):
        agent.retire("none")
    agent.retire(1)
    agent.retire(2)
    with pytest.raises(GraphError, match=r"Arm 3 \('large'\) is the last one"):
        agent.retire(3)


def test_the_best_arm_is_one_that_is_left():
    agent = sl.Agent("exp3-set", sl.graphs.complete(3), seed=5)
    for _ in range(20):
        agent.tell(agent.ask(), [0.0, 0.4, 0.5])
    assert agent.estimates().best == 0
    agent.retire(0)
    known = agent.estimates()
    assert (known.best, known.retired) == (1, (0,))
    assert known.weights[0] == 0
    assert known.sure > 0.9
    assert "cheapest so far: 1" in str(known)


def test_a_range_of_many_arms_stays_intervals_and_holes_are_refused_where_they_would_fill_the_memory():
    graph = sl.graphs.nested(50_000)
    agent = sl.Agent("exp3-set", graph)
    decision = agent.ask(available=range(1_000, 20_000))
    assert decision.graph.representation == "intervals"
    assert 1_000 <= decision.arm < 20_000
    with pytest.raises(GraphError, match="Let a range of arms be available"):
        agent.ask(available=np.delete(np.arange(50_000), 7))


def test_absent_arms_leave_the_bound_of_prompt_feedback_and_none_of_late():
    """ln K / eta + the sum of eta theta / 2 is proved for both; together with delay nothing is."""
    agent = sl.Agent("exp3-set", LABELLED, seed=5)
    play(agent, 10, some)
    assert agent.lateness().bound > 0
    agent.add_arm(label="huge")
    assert agent.lateness().bound > 0
    waiting = [agent.ask(), agent.ask()]
    for decision in waiting:
        agent.tell(decision, losses_of(decision))
    assert agent.lateness().bound is None


def test_an_agent_with_a_certificate_takes_absent_new_and_retired_arms():
    agent = sl.Agent("exp3-set", LABELLED, seed=5, certificate=True)
    play(agent, 10, some)
    assert agent.certificate().bound > 0
    agent.add_arm(label="huge")
    agent.retire("small")
    play(agent, 5)
    found = agent.certificate()
    assert found.rounds == 15
    assert found.lower.size == 5


def test_a_simulation_refuses_absent_arms_against_which_it_could_not_measure():
    graph = sl.Agent("exp3-set", LABELLED).graph_of_round(available=[0, 2])
    with pytest.raises(SimulationError, match=r"Ask an Agent with available"):
        sl.simulate("exp3-set", sl.graphs.alternating([LABELLED, graph]), sl.losses.bernoulli([0.5] * 4), 9)
