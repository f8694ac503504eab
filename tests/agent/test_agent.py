"""Ask and tell: what a decision carries, what tell takes and refuses, and that nothing is half done."""

import copy
import math
import re
import threading
import types
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import sidelong as sl
from sidelong.errors import (
    ConflictError,
    DecisionError,
    GraphError,
    LearnerError,
    LossError,
    ObservabilityError,
    UnknownDecisionError,
)


def play(agent, rounds, loss=lambda t, arm: (t * (arm + 2)) % 5 / 4, graphs=None):
    """Ask and tell at once; return the arms."""
    arms = []
    for _ in range(rounds):
        decision = agent.ask(graphs(agent.round + 1) if graphs else None)
        agent.tell(decision, {int(i): loss(decision.round, int(i)) for i in decision.reveals})
        arms.append(decision.arm)
    return arms


def snapshot(agent):
    """Return all that an agent knows, to see whether anything changed."""
    pending = [each.id for each in agent.pending]
    return [array.tobytes() for array in agent._state], agent.round, pending, agent._rounds.rows.told.tobytes()


@pytest.fixture
def agent():
    return sl.Agent("exp3.g++", sl.graphs.nested(4), seed=7)


def test_a_decision_carries_what_it_was_drawn_with(agent):
    play(agent, 10)
    decision = agent.ask()
    p, P = decision.probabilities, decision.observe_probabilities
    assert decision.round == 11
    assert decision.probability == p[decision.arm]
    assert p.sum() == pytest.approx(1)
    assert pytest.approx([p[i:].sum() for i in range(4)]) == P
    assert decision.reveals.tolist() == list(range(decision.arm + 1))
    assert decision.id in repr(decision)
    with pytest.raises(ValueError, match="read-only"):
        p[0] = 1


def test_a_decision_keeps_its_probabilities_whatever_is_learned_later(agent):
    play(agent, 10)
    decision = agent.ask()
    before = decision.probabilities.copy()
    play(agent, 50)
    assert decision.probabilities.tolist() == before.tolist()


def test_draws_follow_the_probabilities():
    """A chi-square test over 20,000 draws of one distribution; it fails by chance once in 10,000."""
    agent = sl.Agent("exp3.g++", sl.graphs.self_loops(5), seed=3)
    play(agent, 200)
    decisions = [agent.ask() for _ in range(20_000)]
    # Nothing is told, so that only the confidence intervals move, and p stays nearly the same.
    counts = np.bincount([decision.arm for decision in decisions], minlength=5)
    expected = np.sum([decision.probabilities for decision in decisions], axis=0)
    statistic = ((counts - expected) ** 2 / expected).sum()
    assert statistic < 23.51  # the 0.9999 quantile with 4 degrees of freedom


def test_telling_by_id_is_telling_the_decision():
    one, other = (sl.Agent("exp3.g++", sl.graphs.complete(3), seed=1) for _ in range(2))
    for _ in range(20):
        a, b = one.ask(), other.ask()
        assert one.tell(a, {0: 0.1, 1: 0.9, 2: 0.4})
        assert other.tell(b.id, [0.1, 0.9, 0.4])
    assert snapshot(one)[0] == snapshot(other)[0]


@given(st.permutations(range(12)), st.integers(0, 2**64 - 1))
def test_the_order_of_telling_does_not_matter_beyond_rounding(order, seed):
    """What was asked before anything was told may be told in any order."""
    graph = sl.graphs.cliques([2, 3])
    agents = [sl.Agent("exp3.g++", graph, seed=seed, start="none") for _ in range(2)]
    decisions = [[agent.ask() for _ in range(12)] for agent in agents]
    for agent, own, sequence in zip(agents, decisions, (range(12), order), strict=True):
        for k in sequence:
            agent.tell(own[k], {int(i): (k + int(i)) % 3 / 2 for i in own[k].reveals})
    np.testing.assert_allclose(agents[0]._state.Ltilde, agents[1]._state.Ltilde, rtol=1e-12)
    np.testing.assert_allclose(agents[0]._state.Theta, agents[1]._state.Theta, rtol=1e-12)
    assert agents[0]._state.O.tolist() == agents[1]._state.O.tolist()


def test_telling_the_same_twice_is_a_no_op(agent):
    decision = agent.ask()
    assert agent.tell(decision, {0: 0.25})
    before = snapshot(agent)
    assert not agent.tell(decision, {0: 0.25})
    assert not agent.tell(decision.id, [0.25])
    assert not agent.tell(decision.id, np.array([0.25]))
    assert snapshot(agent) == before


def test_telling_something_else_is_an_error(agent):
    decision = agent.ask()
    agent.tell(decision, {0: 0.25})
    before = snapshot(agent)
    for losses in (
        {0: 0.5},
        [0.5],
        {0: 0.25, 1: 0.5},
        {1: 0.25},
        {},
        {0: math.nan},
        {"0": 0.25},
        {0: "0.25"},
        {0: None},
        "0.25",
        3,
    ):
        with pytest.raises(ConflictError, match=rf"{decision.id} was told before, with other losses"):
            agent.tell(decision, losses)
    with pytest.raises(ConflictError):
        agent.tell(decision, {0: 0.25}, graph=sl.graphs.nested(4))
    assert snapshot(agent) == before


BAD_LOSSES = [
    ({0: 1.0000001, 1: 0, 2: 0}, r"loss of arm 0 must be a number in \[0, 1\], not 1.0000001"),
    ({0: 0, 1: -0.1, 2: 0}, "loss of arm 1 must be a number in"),
    ({0: 0, 1: math.nan, 2: 0}, "loss of arm 1 must be a number in .*, not nan"),
    ({0: 0, 1: 0, 2: math.inf}, "loss of arm 2 must be a number in .*, not inf"),
    ({0: 0, 1: "0.5", 2: 0}, "loss of arm 1 must be a number in .*, not '0.5'"),
    ({0: 0, 1: True, 2: 0}, "loss of arm 1 must be a number in .*, not True"),
    ({0: 0, 1: None, 2: 0}, "loss of arm 1 must be a number in .*, not None"),
    ({0: 0, 1: 1 + 0j, 2: 0}, "loss of arm 1 must be a number"),
    ({0: 0, 1: np.array([0.1, 0.2]), 2: 0}, "loss of arm 1 must be a number"),
    ({0: 0, 2: 0}, "loss of arm 1 was revealed and is missing"),
    ({0: 0, 1: 0, 2: 0, 3: 0}, "Arm 3 was not revealed"),
    ({0: 0, 1: 0, 3: 0}, "Arm 3 was not revealed"),
    ({"0": 0, 1: 0, 2: 0}, "Arm '0' was not revealed"),
    ({}, "loss of arm 0 was revealed and is missing"),
    ([0.1, 0.2], "one for each of the 3 revealed arms, in their order; 2 were given"),
    ([0.1, 0.2, 1.5], "loss of arm 2 must be a number in"),
    (0.5, "by arm, or a list"),
    ("0.5", "by arm, or a list"),
    (np.zeros((3, 1)), "by arm, or a list"),
]


@pytest.mark.parametrize(("losses", "message"), BAD_LOSSES)
def test_bad_losses_are_refused_and_nothing_changes(agent, losses, message):
    play(agent, 2)
    decision = agent.ask()
    assert decision.reveals.tolist() == [0, 1, 2]
    before = snapshot(agent)
    with pytest.raises(LossError, match=message):
        agent.tell(decision, losses)
    assert snapshot(agent) == before
    assert agent.tell(decision, {0: 0, 1: 1, np.int64(2): np.float32(0.5)})


@pytest.mark.parametrize(
    "name", ["", "1", "0-x", "nonsense", "99-{tag}", "0-{tag}", "-1-{tag}", "1-00000000", "9" * 5000 + "-x", None, 3]
)
def test_an_unknown_decision_is_refused(agent, name):
    play(agent, 3)
    before = snapshot(agent)
    name = name.format(tag=agent.ask().id.split("-")[1]) if isinstance(name, str) else name
    before = snapshot(agent)
    with pytest.raises(UnknownDecisionError, match="made no decision"):
        agent.tell(name, {0: 0.5})
    assert snapshot(agent) == before


def test_a_decision_of_another_agent_is_refused(agent):
    other = sl.Agent("exp3.g++", sl.graphs.nested(4), seed=8)
    agent.ask()
    with pytest.raises(UnknownDecisionError):
        agent.tell(other.ask(), {0: 0.5})


def test_a_decision_of_an_agent_alike_is_refused_once_they_have_learned_different_things():
    one, other = (sl.Agent("exp3.g++", sl.graphs.complete(3)) for _ in range(2))
    play(one, 10, loss=lambda _, arm: float(arm == 0))
    play(other, 10, loss=lambda _, arm: float(arm == 1))
    mine, theirs = one.ask(), other.ask()
    assert mine.id == theirs.id
    with pytest.raises(UnknownDecisionError):
        one.tell(theirs, [0.1, 0.2, 0.3])


def test_a_decision_cannot_be_changed(agent):
    decision = agent.ask()
    for name in ("arm", "round", "graph", "probability", "id"):
        with pytest.raises(AttributeError):
            setattr(decision, name, 1)


def test_options_may_be_numbers_of_any_kind():
    plain = sl.Agent("exp3.g++", sl.graphs.complete(4), gamma=4.0, rate="fixed", strong_independence=1)
    odd = sl.Agent(
        "exp3.g++", sl.graphs.complete(4), gamma=np.float32(4), rate="fixed", strong_independence=Fraction(1)
    )
    assert odd.options == plain.options
    with pytest.raises(LearnerError, match=r"gamma of exp3.g\+\+ is <object"):
        sl.Agent("exp3.g++", sl.graphs.complete(4), gamma=object())


def test_repetitions_are_recognised_however_they_are_written():
    agent = sl.Agent("exp3.g++", sl.graphs.complete(2), seed=1)
    decision = agent.ask()
    agent.tell(decision, [-0.0, 0.25], graph=sl.graphs.complete(2))
    for losses in ([0.0, Fraction(1, 4)], {0: 0, 1: 0.25}, {0.0: 0.0, 1.0: 0.25}, np.array([0.0, 0.25])):
        assert not agent.tell(decision, losses, graph=sl.graphs.complete(2))
    for losses in ([[0.0], [0.25]], np.array([[0.0], [0.25]]), {0: 0.0}, {0.5: 0.0, 1: 0.25}):
        with pytest.raises(ConflictError, match="with other losses or another graph"):
            agent.tell(decision, losses, graph=sl.graphs.complete(2))
    with pytest.raises(ConflictError):
        agent.tell(decision, [0.0, 0.25])


def test_a_cancelled_decision_is_gone(agent):
    decision = agent.ask()
    assert agent.cancel(decision)
    assert agent.pending == ()
    with pytest.raises(DecisionError, match="was cancelled"):
        agent.tell(decision, {0: 0.5})
    assert not agent.cancel(decision.id)  # the same again
    with pytest.raises(DecisionError, match="only a pending one can be cancelled"):
        agent.cancel(decision.id, lost=True)
    again = copy.deepcopy(agent)
    assert not again.cancel(decision.id)
    told = agent.ask()
    agent.tell(told, dict.fromkeys(told.reveals.tolist(), 0.5))
    with pytest.raises(DecisionError, match="only a pending one can be cancelled"):
        agent.cancel(told)
    agent.remembers = 1
    with pytest.raises(DecisionError, match="only a pending one can be cancelled"):
        agent.cancel(decision)


def test_what_was_told_long_ago_is_refused_not_learned_again(agent):
    agent.remembers = 5
    first = agent.ask()
    agent.tell(first, {0: 0.5})
    play(agent, 4)
    assert not agent.tell(first, {0: 0.5})  # the fifth from the end
    play(agent, 1)
    before = snapshot(agent)
    with pytest.raises(DecisionError, match="it remembers the last 5"):
        agent.tell(first, {0: 0.5})
    assert snapshot(agent) == before


def test_what_it_remembers_shrinks_when_it_is_told_to(agent):
    play(agent, 20)
    agent.remembers = 3
    assert agent.contents()[1]["rows.told"].shape == (1, 3, 4)
    play(agent, 5)
    assert agent.contents()[1]["rows.told"].shape == (1, 3, 4)
    agent.remembers = 0
    play(agent, 1)
    assert agent.contents()[1]["rows.told"].shape == (1, 0, 4)


def test_a_graph_per_round_decides_what_is_revealed(agent):
    play(agent, 4)
    decision = agent.ask(graph=sl.graphs.complete(4))
    assert decision.reveals.tolist() == [0, 1, 2, 3]
    assert decision.observe_probabilities == pytest.approx([1] * 4)
    assert agent.tell(decision, [0.1, 0.2, 0.3, 0.4])


def test_estimates_stay_unbiased_where_the_graph_is_known_only_after_the_outcome():
    """Stock orders: with a demand of 2, an order of 2 or more reveals all orders, a smaller one those up to itself.

    Over the draw, enumerated, each order's estimate grows by its cost.
    """
    costs = np.array([0.9, 0.6, 0.2, 0.7])
    outcome = sl.FeedbackGraph.from_matrix([[j <= i or i >= 2 for j in range(4)] for i in range(4)])
    expected, played = np.zeros(4), set()
    for seed in range(40):
        agent = sl.Agent("exp3.g++", sl.graphs.nested(4), seed=seed, start="none")
        decision = agent.ask()
        if decision.arm in played:
            continue
        played.add(decision.arm)
        agent.tell(decision, costs[outcome.out_neighbors(decision.arm)], graph=outcome)
        expected += decision.probability * agent._state.Ltilde
    assert played == {0, 1, 2, 3}
    np.testing.assert_allclose(expected, costs, rtol=1e-12)


@pytest.mark.parametrize("method", ["ask", "tell"])
def test_an_unfit_graph_is_refused(agent, method):
    decision = agent.ask()
    before = snapshot(agent)

    def use(graph):
        if method == "ask":
            agent.ask(graph)
        else:
            agent.tell(decision, {0: 0.5}, graph=graph)

    with pytest.raises(GraphError, match="must have the agent's 4 arms"):
        use(sl.graphs.nested(5))
    with pytest.raises(ObservabilityError, match="arm 2"):
        use(sl.FeedbackGraph.from_edges([(0, 0), (1, 1), (3, 3), (0, 2)], 4))
    with pytest.raises(GraphError, match="must be a FeedbackGraph, not ndarray"):
        use(np.eye(4))
    assert snapshot(agent) == before


@pytest.mark.parametrize("name", ["certificate", "health", "pooled"])
@pytest.mark.parametrize("value", [1, "no", None, np.array([True, False])])
def test_a_flag_is_true_or_false(name, value):
    """Another value was saved, and could not be loaded."""
    for kind in (sl.Agent, sl.Family) if name == "certificate" else (sl.Family,):
        with pytest.raises(LearnerError, match=f"{name} must be True or False, not"):
            kind("glance", sl.graphs.nested(3), **{name: value})
        made = kind("glance", sl.graphs.nested(3), **{name: np.True_}).contents()
        assert kind.from_contents(*made, "the file").contents()[0] == made[0]


@pytest.mark.parametrize("seed", [-1, 2**64, 1.5, "7", None, True])
def test_a_bad_seed_is_refused(seed):
    with pytest.raises(LearnerError, match="seed must be a whole number from 0 to"):
        sl.Agent("exp3.g++", sl.graphs.complete(2), seed=seed)


def test_a_thing_that_is_no_graph_is_refused():
    with pytest.raises(GraphError, match=r"graph must be a FeedbackGraph, not list"):
        sl.Agent("exp3.g++", [[1, 0], [0, 1]])


def test_a_module_that_is_no_learner_is_refused():
    with pytest.raises(LearnerError, match="module math has no LEARNER"):
        sl.Agent(types.ModuleType("math"), sl.graphs.complete(2))


def test_estimates_tell_what_is_known(agent):
    fresh = agent.estimates()
    assert np.isnan(fresh.means).all()
    assert fresh.counts.tolist() == [0, 0, 0, 0]
    play(agent, 3000, loss=lambda _, arm: 0.2 if arm == 1 else 0.8)
    before = snapshot(agent)
    known = agent.estimates()
    assert snapshot(agent) == before
    assert known.means == pytest.approx([0.8, 0.2, 0.8, 0.8])
    assert known.gaps[1] == 0
    assert known.gaps[0] > 0.4  # with confidence; the true one is 0.6
    assert known.weights.argmax() == 1
    assert known.weights.tolist() == agent.ask().probabilities.tolist()


def test_it_finds_the_best_arm_and_follows_when_it_changes():
    """With seed 0; a run in which it does not would be a fault, not bad luck."""
    agent = sl.Agent("glance", sl.graphs.nested(8), seed=0)
    arms = play(agent, 4000, loss=lambda t, arm: 0.1 if arm == (5 if t <= 1000 else 2) else 0.9)
    assert np.mean(np.array(arms[500:1000]) == 5) > 0.7
    assert np.mean(np.array(arms[3800:]) == 2) > 0.5


def test_the_repr_says_what_it_is(agent):
    assert repr(agent).startswith("<Agent exp3.g++ on <FeedbackGraph nested(4)")
    play(agent, 3)
    agent.ask()
    assert "4 decisions, 1 pending" in repr(agent)


def test_agents_in_threads_of_their_own_do_not_meet():
    """Each thread has its agent; they share machine code and the graph."""
    graph, results = sl.graphs.cliques([3, 3]), {}

    def work(seed):
        results[seed] = play(sl.Agent("exp3.g++", graph, seed=seed), 300)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in (1, 2, 1 << 40)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for seed, arms in results.items():
        assert arms == play(sl.Agent("exp3.g++", graph, seed=seed), 300)


def test_what_help_says_of_a_demand_is_what_a_shop_sees():
    """Each order in turn meets the demand of the docstring, and the graph of each outcome is the one described."""
    demand, least = map(int, re.search(r"demand of (\d+), an order of (\d+) or more", sl.Agent.tell.__doc__).groups())
    shop = sl.outcomes.StockOrders(12, holding=1, shortage=4)
    for order in range(13):
        revealed = shop.outcome(order, sales=min(order, demand)).graph.out_neighbors(order)
        assert revealed.tolist() == list(range(13 if order >= least else order + 1))


@pytest.mark.parametrize("learner", ["exp3.g", "ucb-lp", "alphasample", "ito-2022", "q-tsallis"])
@pytest.mark.parametrize("name", ["rounds", "T", "n_rounds"])
def test_the_number_of_rounds_under_another_name_is_the_horizon(learner, name):
    with pytest.raises(LearnerError, match=f"has no option '{name}'. Did you mean 'horizon'"):
        sl.Agent(learner, sl.graphs.star(5), **{name: 1000})


@pytest.mark.parametrize("name", ["eta", "lr", "learning_rate"])
def test_another_name_of_the_learning_rate_is_known_where_there_is_one_to_scale(name):
    with pytest.raises(LearnerError, match=f"has no option '{name}'. Did you mean 'eta_scale'"):
        sl.Agent("exp3-set", sl.graphs.star(5), **{name: 0.1})
    with pytest.raises(LearnerError, match=f"has no option '{name}'. Its options are: prior"):
        sl.Agent("ts-n", sl.graphs.star(5), **{name: 0.1})


def labelled_agent():
    return sl.Agent("exp3.g++", sl.graphs.nested(3).labelled(["small", "medium", "large"]), seed=7)


def test_labels_name_arms_wherever_a_person_reads():
    agent = labelled_agent()
    assert agent.estimates().labels == ("small", "medium", "large")
    assert re.search(r"^'medium' +1\.0000 ", str(play_first(agent).estimates()), re.MULTILINE)
    decision = agent.ask()
    assert "play arm 1 ('medium')" in repr(decision)
    assert decision.label == "medium"
    with pytest.raises(LossError, match=r"loss of arm 1 \('medium'\) was revealed and is missing.* 0 \('small'\), 1 "):
        agent.tell(decision, {0: 0.5})
    with pytest.raises(LossError, match=r"loss of arm 0 \('small'\) must be a number in"):
        agent.tell(decision, {0: 1.5, 1: 0})
    lacking = sl.FeedbackGraph.from_edges([(0, 0), (0, 1)], 2).labelled(["mine", "yours"])
    with pytest.raises(ObservabilityError, match=r"arm 1 \('yours'\) of .* does not"):
        sl.Agent("exp3.g++", lacking)


def play_first(agent):
    agent.tell(agent.ask(), [0.5])
    return agent


def test_without_labels_arms_are_numbers_and_a_table_has_an_end():
    agent = sl.Agent("uniform", sl.graphs.self_loops(30))
    assert agent.ask().label is None
    assert agent.estimates().labels is None
    assert str(agent.estimates()).splitlines()[1].split()[:2] == ["0", "0.0333"]
    assert str(agent.estimates()).splitlines()[-1] == "..."
    assert len(str(agent.estimates()).splitlines()) == 22


@pytest.mark.parametrize(("learner", "options"), [("glance", {}), ("exp3.g++", {"refresh": "epoch"})])
def test_health_says_that_the_world_has_turned_also_after_a_save(tmp_path, learner, options):
    agent, rng = sl.Agent(learner, sl.graphs.complete(3), seed=1, **options), np.random.default_rng(2)
    for t in range(1300):
        means = [0.1, 0.5, 0.5] if t < 500 else [0.9, 0.5, 0.5]
        agent.tell(agent.ask(), (rng.random(3) < means).astype(float))
        if t == 490:
            assert str(agent.health()) == "Nothing says that the world has turned."
            agent.save(tmp_path / "a")
            agent = sl.Agent.load(tmp_path / "a")
    assert (agent.health().turned, agent.health().arm) == (True, 0)
    assert str(agent.health()).startswith("The world has turned: in some window of rounds arm 0 cost at least")


def test_health_is_not_known_without_probabilities():
    agent = sl.Agent("ts-n", sl.graphs.complete(3))
    agent.tell(agent.ask(), [0, 1, 0])
    assert str(agent.health()).startswith("Whether the world has turned is not known")


@pytest.mark.interpreted
def test_losses_and_costs_may_name_arms_by_their_labels():
    graph = sl.graphs.nested(3).labelled(["small", "medium", "large"])
    one, other = (sl.Agent("glance", graph, seed=1, ceiling=0.5) for _ in range(2))
    family, told = sl.Family("glance", graph, ceiling=0.5), {"small": 0.1, "medium": 0.2, "large": 0.3}
    decision, theirs = one.ask(), other.ask()
    assert decision.arm == 2  # which reveals all
    assert one.tell(decision, told, costs={"small": 0.1, 1: 0.2, "large": 0.3})
    assert not one.tell(decision, told, costs={0: 0.1, 1: 0.2, 2: 0.3})
    other.tell(theirs, {0: 0.1, 1: 0.2, 2: 0.3}, costs=[0.1, 0.2, 0.3])
    assert one.contents()[1]["state.o"].tobytes() == other.contents()[1]["state.o"].tobytes()
    family.ask(["a"])
    assert family["a"].tell(family["a"].pending[0], told, costs=told)
    with pytest.raises(LossError, match=r"Arm 'huge' was not revealed.*labels, such as 'small'"):
        one.tell(one.ask(), {"huge": 0.1}, costs={})
    with pytest.raises(LossError, match="two losses"):
        other.tell(other.ask(available=["small"]), {0: 0.1, "small": 0.1}, costs=[1])
