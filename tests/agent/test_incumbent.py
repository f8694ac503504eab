"""An incumbent and an allowance, in agents and families."""

import pytest

import sidelong as sl
from sidelong.agent import state_file
from sidelong.errors import AdviceError, LearnerError, StateFileError

pytestmark = pytest.mark.interpreted

NAMES = ("none", "some", "many")
GRAPH = sl.graphs.nested(3).labelled(NAMES)


def new(allowance=2.0, **more):
    return sl.Agent("glance", GRAPH, incumbent="today", allowance=allowance, **more)


def tell(agent, decision, **more):
    agent.tell(decision, [0.2 * arm + decision.round % 3 * 0.2 for arm in decision.reveals.tolist()], **more)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"incumbent": "today"}, "go together, and allowance is not given"),
        ({"allowance": 3}, "go together, and incumbent is not given"),
        ({"incumbent": "today", "allowance": 0}, "allowance must be a finite number above 0, not 0"),
        ({"incumbent": "today", "allowance": float("nan")}, "allowance must be a finite number above 0, not nan"),
        ({"incumbent": "today", "allowance": "50"}, "allowance must be a finite number above 0, not '50'"),
        ({"incumbent": 3, "allowance": 1}, "name of the adviser who decides today, as text, not 3"),
    ],
)
def test_both_are_given_and_the_allowance_is_a_positive_number(options, message):
    for kind in (sl.Agent, sl.Family):
        with pytest.raises(LearnerError, match=message):
            kind("glance", GRAPH, **options)


def test_a_learner_without_a_rule_for_an_incumbent_is_refused():
    with pytest.raises(LearnerError, match=r"exp3-set has no rule for an incumbent\. Use glance"):
        sl.Agent("exp3-set", GRAPH, incumbent="today", allowance=1)


ABSENT = {"available": ["none", "some"]}


@pytest.mark.parametrize(
    ("advice", "more", "message"),
    [
        (None, {}, r"'today' must advise in every round\. Give advice={'today': ...}"),
        ({"other": 1}, {}, "'today' must advise in every round"),
        ({"today": None}, {}, "must advise in every round, and is silent"),
        ({"today": "many"}, ABSENT, "advises arm 2 .'many'., which is absent"),
        ({"today": [0.5, 0, 0.5]}, ABSENT, "advises arm 2 .'many'., which is absent"),
    ],
)
def test_a_round_without_the_advice_of_the_incumbent_is_refused_before_anything_changes(advice, more, message):
    agent, family = new(), sl.Family("glance", GRAPH, incumbent="today", allowance=2)
    before = state_file.checksum(*agent.contents()), state_file.checksum(*family.contents())
    with pytest.raises(AdviceError, match=message):
        agent.ask(advice=advice, **more)
    with pytest.raises(AdviceError, match=message if advice is None or "today" not in advice else "for the key 'b'"):
        family["b"].ask(advice=advice, **more)
    assert before == (state_file.checksum(*agent.contents()), state_file.checksum(*family.contents()))
    assert agent.ask(advice={"today": "some"}, **more).round == 1


def test_decisions_that_wait_or_are_given_up_keep_what_they_can_cost():
    agent = new(allowance=500.0)
    for _ in range(4):  # something is known, so that playing otherwise may cost something
        tell(agent, agent.ask(advice={"today": "many"}))
    left = agent.allowance_left
    made = [agent.ask(advice={"today": "many"}) for _ in range(3)]
    spent = agent.allowance_left
    assert 0.0 <= spent < left
    agent.cancel(made[0])
    agent.cancel(made[1], lost=True)
    assert agent.allowance_left == spent
    tell(agent, made[2])
    assert agent.allowance_left > spent
    waits = agent.ask(advice={"today": "many"})
    spent = agent.allowance_left
    agent.override(waits, "none")
    agent.tell(waits.id, [0.9])
    assert agent.allowance_left == spent


def test_the_allowance_is_in_numbers_of_the_scale_and_of_each_key():
    scales = [sl.outcomes.Scale(0, 10), sl.outcomes.Scale(100, 0)]
    family = sl.Family("glance", GRAPH, seed=3, incumbent="today", allowance=20, scale=sl.outcomes.Scale(0, 40))
    family.add(["a", "b"], scale=scales)
    agents = {
        key: sl.Agent("glance", GRAPH, seed=family.seed_of(key), incumbent="today", allowance=20, scale=scale)
        for key, scale in zip("abc", [*scales, sl.outcomes.Scale(0, 40)], strict=True)
    }
    for t in range(30):
        plan = family.ask(list("abc"), advice={"today": ["many", "some", t % 3], "team": [-1, t % 3, 1]})
        waiting = []
        for key, agent in agents.items():
            given = {"today": {"a": "many", "b": "some", "c": t % 3}[key]}
            given |= {"team": {"a": None, "b": t % 3, "c": 1}[key]}
            decision = agent.ask(advice=given)
            assert decision.probabilities.tobytes() == family[key].pending[-1].probabilities.tobytes()
            assert family[key].allowance_left == agent.allowance_left >= 0.0
            best, worst = agent.scale.best, agent.scale.worst
            told = [best + (worst - best) * 0.1 * arm for arm in decision.reveals.tolist()]
            waiting += told
            agent.tell(decision, told)
        family.tell(plan, waiting)
    assert len({agent.allowance_left for agent in agents.values()}) == 3
    with pytest.raises(LearnerError, match="no allowance without an incumbent"):
        _ = sl.Agent("glance", GRAPH).allowance_left


def test_a_key_with_a_prior_may_come_after_an_adviser():
    family = sl.Family("glance", GRAPH, seed=3, incumbent="today", allowance=2)
    family.ask(["a"], advice={"today": [1], "team": [2]})
    family.add(["b"], prior={"some": (0.1, 5)})
    agent = sl.Agent(
        "glance", GRAPH, seed=family.seed_of("b"), incumbent="today", allowance=2, prior={"some": (0.1, 5)}
    )
    one = agent.ask(advice={"today": 1, "team": 0})
    two = family["b"].ask(advice={"today": 1, "team": 0})
    assert one.probabilities.tobytes() == two.probabilities.tobytes()


def test_it_stays_in_files_and_a_file_that_contradicts_itself_is_refused():
    agent = new(seed=4)
    for _ in range(6):
        tell(agent, agent.ask(advice={"today": "many"}))
    agent.ask(advice={"today": "none"})
    again = sl.Agent.from_contents(*agent.contents(), "a file")
    for each in (agent, again):
        tell(each, each.pending[0])
    assert again.allowance_left == agent.allowance_left
    ask = {"advice": {"today": 1}}
    assert again.ask(**ask).probabilities.tobytes() == agent.ask(**ask).probabilities.tobytes()
    with pytest.raises(AdviceError, match="must advise"):
        again.ask()
    header, arrays = agent.contents()
    for wrong in ({"incumbent": "other"}, {"incumbent": 3}, {"allowance": -1}, {"allowance": "much"}):
        with pytest.raises(StateFileError):
            sl.Agent.from_contents(header | wrong, arrays, "a file")


def test_an_arm_may_come_and_the_outcome_may_show_more_than_was_promised():
    agent = new(seed=4)
    tell(agent, agent.ask(advice={"today": "many"}))
    agent.ask(advice={"today": "many"})
    waits = agent.ask(advice={"today": "many"})
    agent.add_arm(reveals=["none"], label="most")
    spent = agent.allowance_left
    tell(agent, agent.pending[0])
    assert agent.allowance_left >= spent
    everything = sl.graphs.complete(4).labelled([*NAMES, "most"])
    agent.tell(waits.id, [0.5] * 3, graph=agent.graph_of_round(everything, available=NAMES))
    assert agent.allowance_left >= 0.0
    assert agent.ask(advice={"today": "most"}).advice["today"].tolist() == [0, 0, 0, 1]
    assert agent.outlook().sum() == pytest.approx(1.0)
