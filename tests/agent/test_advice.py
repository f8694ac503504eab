"""Advice: how it is read, kept with decisions and in files, and what is known of those who give it."""

import copy
import math

import numpy as np
import pytest

import sidelong as sl
from sidelong.agent import state_file
from sidelong.errors import AdviceError, StateFileError
from sidelong.evaluation import advisers
from sidelong.evaluation.certificates import NOT_TOLD, TOLD, TOLD_WITH_GRAPH, look_at_round

pytestmark = pytest.mark.interpreted

NAMES = ("none", "some", "many", "most")
GRAPH = sl.graphs.nested(4).labelled(NAMES)


def costs(t):
    """Return the loss of each arm in round t."""
    return (np.arange(4) * (t % 5) + t) % 7 / 6


def tell(agent, decision):
    agent.tell(decision, costs(decision.round)[decision.reveals])


def test_an_arm_may_be_named_by_number_label_or_probabilities_and_without_a_name():
    agents = [sl.Agent("glance", GRAPH, seed=1) for _ in range(4)]
    forms = [
        lambda arm: arm,
        lambda arm: NAMES[arm],
        lambda arm: np.eye(4)[arm],
        lambda arm: {"advice": np.eye(4)[arm].tolist()},
    ]
    for t in range(12):
        made = [agent.ask(advice=form(t % 4)) for agent, form in zip(agents, forms, strict=True)]
        assert len({each.probabilities.tobytes() for each in made}) == 1
        assert all(list(each.advice) == ["advice"] for each in made)
        assert made[0].advice["advice"].tolist() == np.eye(4)[t % 4].tolist()
        for agent, decision in zip(agents, made, strict=True):
            tell(agent, decision)


def test_advice_changes_what_is_played():
    followed = sl.Agent("glance", GRAPH, seed=1)
    for t in range(60):
        decision = followed.ask(advice=int(np.argmin(costs(t + 1))))
        tell(followed, decision)
    assert decision.probabilities[int(np.argmin(costs(60)))] > 0.5


def test_none_and_a_name_that_is_missing_are_silence():
    agent, other = (sl.Agent("glance", GRAPH, seed=1) for _ in range(2))
    for each in (agent, other):
        tell(each, each.ask(advice={"a": 1, "b": [0.25] * 4}))
    for given, same in (({"a": 2, "b": None}, {"a": 2}), ({"a": None, "b": None}, None), (None, {}), ({}, {"b": None})):
        one, two = agent.ask(advice=given), other.ask(advice=same)
        assert one.probabilities.tobytes() == two.probabilities.tobytes()
        assert list(one.advice) == [name for name, value in (given or {}).items() if value is not None]
        tell(agent, one)
        tell(other, two)
    assert [row.rounds for row in agent.advisers()] == [2, 1]
    assert list(sl.Family("glance", GRAPH)["key"].ask(advice={"a": None, "b": 2}).advice) == ["b"]


BAD = {
    "unknown arm": (4, "from 0 to 3, not 4"),
    "negative arm": (-1, "from 0 to 3, not -1"),
    "unknown label": ("lots", "names the arm 'lots', and no arm is called so"),
    "too short": ([0.5, 0.5], "a probability for each of the 4 arms"),
    "words": (["a", "b", "c", "d"], "a probability for each of the 4 arms"),
    "a fraction": (1.5, "an arm, by number or label"),
    "sum": ([0.3] * 4, "sum to 1, and they sum to 1.2"),
    "negative": ([0.6, 0.6, -0.2, 0.0], "that of arm 2 is -0.2"),
    "nan": ([1.0, 0.0, math.nan, 0.0], "that of arm 2 is nan"),
    "name": ({3: 1}, "name of an adviser is text, not 3"),
    "empty name": ({"": 1}, "name of an adviser is text"),
    "too many": ({f"a{k}": 1 for k in range(33)}, "at most 32 names"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_advice_is_refused_before_anything_changes(case):
    given, message = BAD[case]
    agent, other = (sl.Agent("glance", GRAPH, seed=1) for _ in range(2))
    family = sl.Family("glance", GRAPH, seed=1)
    for each in (agent, other, family["key"]):
        tell(each, each.ask(advice={"first": 2}))
    before = state_file.checksum(*agent.contents()), state_file.checksum(*family.contents())
    with pytest.raises(AdviceError, match=message):
        agent.ask(advice={"first": 1, "bad": given} if not isinstance(given, dict) else given)
    with pytest.raises(AdviceError, match=message):
        family["key"].ask(advice=given)
    assert before == (state_file.checksum(*agent.contents()), state_file.checksum(*family.contents()))
    assert (
        agent.ask(advice={"first": 1}).probabilities.tobytes() == other.ask(advice={"first": 1}).probabilities.tobytes()
    )


BAD_COLUMNS = {
    "arm": ([0, 9], "'bad' for the key 'b' must .*from 0 to 3, not 9"),
    "array": (np.array([4, 0]), "for the key 'a' must be an arm from 0 to 3, or -1 for silence, not 4"),
    "label": ([None, "lots"], "for the key 'b' names the arm 'lots'"),
    "table": (np.array([[np.nan] * 4, [0.5, 0.6, 0.0, 0.0]]), "for the key 'b' gives .* they sum to 1.1"),
    "half of a row": (np.array([[np.nan, 1, 0, 0], [1, 0, 0, 0]]), "for the key 'a' gives .* that of arm 0 is nan"),
    "too few": ([1], "an arm for each of the 2 keys"),
    "one for all": (1, "an arm for each of the 2 keys"),
    "text": ("ab", "an arm for each of the 2 keys"),
}


@pytest.mark.parametrize("case", BAD_COLUMNS)
def test_bad_advice_in_columns_names_the_key(case):
    given, message = BAD_COLUMNS[case]
    family = sl.Family("glance", GRAPH, seed=1)
    with pytest.raises(AdviceError, match=message):
        family.ask(["a", "b"], advice={"bad": given})
    assert len(family) == 0
    assert family.ask(["a"]).rounds.tolist() == [1]


def test_a_learner_that_takes_no_advice_says_so():
    for learner in ("exp3-set", "exp3.g++"):
        with pytest.raises(AdviceError, match=f"{learner.replace('+', '.')} takes no advice. Use glance"):
            sl.Agent(learner, GRAPH).ask(advice=1)
        with pytest.raises(AdviceError, match="takes no advice"):
            sl.Family(learner, GRAPH).ask(["a"], advice=[1])
        assert sl.Agent(learner, GRAPH).ask(advice={}).advice == {}  # which is none


def test_keys_that_cannot_be_asked_for_let_no_adviser_join():
    family = sl.Family("glance", GRAPH, seed=1)
    family.ask(["a"])
    before = state_file.checksum(*family.contents())
    with pytest.raises(sl.errors.FamilyError, match="all text or all whole numbers"):
        family.ask([3], advice={"new": [1]})
    assert state_file.checksum(*family.contents()) == before


@pytest.mark.parametrize("certificate", [False, True])
def test_each_key_of_a_family_is_its_agent_to_the_bit(certificate):
    keys = ["a", "b", "c"]
    family = sl.Family("glance", GRAPH, seed=5, certificate=certificate)
    agents = {key: sl.Agent("glance", GRAPH, seed=family.seed_of(key), certificate=certificate) for key in keys}
    rng, waiting = np.random.default_rng(1), []
    for t in range(1, 25):
        arms = rng.integers(-1, 4, 3)
        table = rng.dirichlet(np.ones(4), 3)
        table[t % 3] = np.nan
        advice = {"arms": arms, "table": table, "labels": [NAMES[t % 4], None, "most"]}
        asked = [key for key in keys if t % 4 or key != "b"][:: 1 if t % 3 else -1]
        at = [keys.index(key) for key in asked]
        some = {"arms": arms[at], "table": table[at], "labels": [advice["labels"][k] for k in at]}
        plan = family.ask(asked, advice=some)
        for i, key in enumerate(asked):
            k = keys.index(key)
            own = {
                "arms": None if arms[k] < 0 else int(arms[k]),
                "table": None if k == t % 3 else table[k],
                "labels": advice["labels"][k],
            }
            decision = agents[key].ask(advice=own)
            twin = family[key].pending[-1]
            assert decision.arm == plan.arms[i]
            assert decision.probabilities.tobytes() == twin.probabilities.tobytes()
            assert {name: row.tobytes() for name, row in decision.advice.items()} == {
                name: row.tobytes() for name, row in twin.advice.items()
            }
            waiting.append((key, decision, twin.id))
        while len(waiting) > t % 5:
            key, decision, name = waiting.pop(int(rng.integers(len(waiting))))
            match t % 6:
                case 0:
                    agents[key].cancel(decision, lost=True)
                    family.cancel([name], lost=True)
                case 1:
                    agents[key].cancel(decision)
                    family.cancel([name])
                case 2:
                    now = agents[key].override(decision, "most")
                    family.override([name], ["most"])
                    losses = costs(decision.round)[now.reveals]
                    agents[key].tell(decision.id, losses)
                    family[key].tell(name, losses)
                case _:
                    losses = costs(decision.round)[decision.reveals]
                    agents[key].tell(decision, losses)
                    family[key].tell(name, losses)
        if t == 12:
            family = copy.deepcopy(family)
            agents = copy.deepcopy(agents)
            waiting = [
                (key, next(d for d in agents[key].pending if d.id == each.id), name) for key, each, name in waiting
            ]
    for key, agent in agents.items():
        assert repr(agent.advisers().rows) == repr(family[key].advisers().rows)
    table = family.advisers(["b"])
    assert table.keys == ["b"] * 3
    assert repr(table.rows) == repr(agents["b"].advisers().rows)
    assert list(table.columns) == ["key", "name", "rounds", "trust", "loss", "low", "high", "paid", "verdict"]
    assert len(family.advisers()) == 9


def test_families_and_keys_look_ahead_with_advice_as_their_agents_do():
    graph = sl.graphs.nested(4).labelled(list("abcd"))
    family = sl.Family("glance", graph, seed=5)
    agents = {key: sl.Agent("glance", graph, seed=family.seed_of(key)) for key in ("one", "two")}
    keys = list(agents)
    family.add(keys)
    for _ in range(30):
        plan = family.ask(keys, advice={"team": ["c", None]})
        family.tell(plan, np.array([0.9, 0.8, 0.1, 0.7])[plan.reveals])
        for agent, advice in zip(agents.values(), ("c", None), strict=True):
            decision = agent.ask(advice={"team": advice})
            agent.tell(decision, np.array([0.9, 0.8, 0.1, 0.7])[decision.reveals])
    rows = family.outlook(keys, advice={"team": [2, -1], "new": [None, "d"]})
    for key, row, advice in zip(keys, rows, ({"team": 2, "new": None}, {"team": None, "new": "d"}), strict=True):
        looks = row, agents[key].outlook(advice=advice), family[key].outlook(advice=advice)
        assert len({look.tobytes() for look in looks}) == 1
    assert (rows != family.outlook(keys)).any()
    assert family.adviser_names == ("team", "new")  # as for `ask`
    with pytest.raises(AdviceError, match="is an arm for each of the 2 keys"):
        family.outlook(keys, advice=[1])
    assert [agent.round for agent in agents.values()] == [family[key].round for key in keys] == [30, 30]


def test_an_adviser_may_come_while_decisions_wait_and_stays_in_files(tmp_path):
    agent = sl.Agent("glance", GRAPH, seed=2)
    family = sl.Family("glance", GRAPH, seed=9)
    family.add(["key"])
    silent, one = agent.ask(), agent.ask(advice={"a": 1})
    batch = family.ask(["key", "other"], advice={"a": [1, -1]})
    family.ask(["key"], advice={"b": ["most"], "a": [None]})
    two = agent.ask(advice={"b": "most"})
    assert [list(each.advice) for each in (silent, one, two)] == [[], ["a"], ["b"]]
    agent.save(tmp_path / "agent")
    family.save(tmp_path / "family")
    again, family_again = sl.Agent.load(tmp_path / "agent"), sl.Family.load(tmp_path / "family")
    assert [list(each.advice) for each in again.pending] == [[], ["a"], ["b"]]
    assert again.pending[2].advice["b"].tolist() == [0, 0, 0, 1]
    assert [list(each.advice) for each in family_again["key"].pending] == [["a"], ["b"]]
    for first, second in ((agent, again), (family["key"], family_again["key"])):
        for each in (first, second):
            for decision in each.pending:
                tell(each, decision)
        for given in ({"a": 2, "b": 0}, {"c": [0.25] * 4}):
            assert first.ask(advice=given).probabilities.tobytes() == second.ask(advice=given).probabilities.tobytes()
        assert repr(first.advisers().rows) == repr(second.advisers().rows)
    assert family.tell(batch[1:], costs(1)[batch[1:].reveals]) == 1


def test_a_file_with_advice_that_is_none_is_refused():
    agent = sl.Agent("glance", GRAPH, seed=2)
    agent.ask(advice={"a": 1})
    header, arrays = agent.contents()
    for names in (["a", "a"], [3], "a", [""], [f"n{k}" for k in range(33)]):
        with pytest.raises(StateFileError):
            sl.Agent.from_contents(header | {"advisers": names}, arrays, "a file")
    arrays["pending.trace"][0, -1] = 0.5
    with pytest.raises(StateFileError, match="advice that is none"):
        sl.Agent.from_contents(header, arrays, "a file")


def test_an_arm_may_come_while_advised_decisions_wait():
    graph = sl.graphs.self_loops(3).labelled(["x", "y", "z"])
    family = sl.Family("glance", graph, seed=4)
    agent = sl.Agent("glance", graph, seed=family.seed_of("k"))
    for each in (agent, family["k"]):
        each.ask(advice={"a": "y", "b": [0.5, 0.5, 0.0]})
    for each in (agent, family):
        assert each.add_arm(reveals=["x"], label="new") == 3
    for each in (agent, family["k"]):
        (waits,) = each.pending
        assert {name: row.tolist() for name, row in waits.advice.items()} == {"a": [0, 1, 0, 0], "b": [0.5, 0.5, 0, 0]}
        tell(each, waits)
    made = [each.ask(advice={"a": "new", "b": "z"}) for each in (agent, family["k"])]
    assert made[0].probabilities.tobytes() == made[1].probabilities.tobytes()
    assert made[0].advice["a"].tolist() == [0, 0, 0, 1]


def test_advice_for_an_arm_that_is_absent_is_silence():
    agent = sl.Agent("glance", sl.graphs.self_loops(3), seed=1)
    tell(agent, agent.ask(advice=2))
    tell(agent, agent.ask(available=[0, 1], advice=2))
    assert [row.rounds for row in agent.advisers()] == [1]


# What is known of advisers


def random_round(rng):
    K = int(rng.integers(2, 6))
    graph = sl.graphs.erdos_renyi(K, 0.4, seed=int(rng.integers(1 << 30)), directed=True)
    p = rng.dirichlet(np.full(K, 0.5))
    p = np.where(rng.random(K) < 0.2, 0.0, p) + 1e-12
    E = rng.dirichlet(np.full(K, 0.3)) if rng.random() < 0.5 else np.eye(K)[rng.integers(K)]
    return graph, p / p.sum(), E, rng.random(K), rng.random(K).round(int(rng.integers(3)))


def judge(counted, advice, graph, arm, p, mean, losses, how):
    """Count a round, as the kernel that learns does."""
    P = np.empty(p.size)
    own = look_at_round(graph.arrays, arm, p, losses, how, P)
    advisers.judge(counted, advice, graph.arrays, graph.row(arm), P, mean, losses, own, how)


@pytest.mark.parametrize("how", [TOLD, TOLD_WITH_GRAPH, NOT_TOLD])
def test_evidence_is_a_supermartingale_by_enumeration_whichever_draws_are_not_told(how):
    rng = np.random.default_rng(7)
    for _ in range(100):
        graph, p, E, mean, losses = random_round(rng)
        K = p.size
        untold = rng.random(K) < 0.4 if how == NOT_TOLD else np.zeros(K, bool)
        rates = np.ldexp(1.0, -np.arange(17))
        expected = np.zeros((2, 17))
        for arm in range(K):
            counted = np.zeros((1, advisers.SIZE))
            ended = NOT_TOLD if untold[arm] else TOLD if how == NOT_TOLD else how
            seen = losses[graph.row(arm)]
            told = np.zeros(seen.size) if ended == NOT_TOLD else seen
            judge(counted, E, graph, arm, p, mean, told, ended)
            dear, cheap = counted[0, 4:21], counted[0, 21:]
            lost = E @ losses
            expected += p[arm] * np.exp([dear - rates * lost, cheap - rates * (1 - lost)])
        assert (expected <= 1.0 + 1e-9).all()


def test_the_estimate_has_no_bias_by_enumeration():
    rng = np.random.default_rng(8)
    for _ in range(100):
        graph, p, E, mean, losses = random_round(rng)
        found = 0.0
        for arm in range(p.size):
            counted = np.zeros((1, advisers.SIZE))
            judge(counted, E, graph, arm, p, mean, losses[graph.row(arm)], TOLD)
            found += p[arm] * counted[0, advisers.LOSS]
        assert found == pytest.approx(E @ losses, abs=1e-9)


def test_intervals_hold_where_only_what_is_bad_for_an_adviser_is_told_late():
    wrong = 0
    for seed in range(20):
        agent = sl.Agent("glance", sl.graphs.self_loops(2), seed=seed)
        rng, lost = np.random.default_rng(seed), 0.0
        waiting = []
        for _ in range(60):
            losses = (rng.random(2) < [0.5, 0.4]).astype(float)
            decision = agent.ask(advice={"one": 1})
            lost += losses[1]
            waiting.append((decision, losses[decision.arm]))
            for pair in [pair for pair in waiting if pair[0].arm == 0 or pair[1] == 0.0]:
                waiting.remove(pair)
                agent.tell(pair[0], [float(pair[1])])
            row = agent.advisers(confidence=0.9)["one"]
            wrong += not row.low * row.rounds - 1e-9 <= lost <= row.high * row.rounds + 1e-9
    assert wrong == 0


def test_verdicts_scale_and_tables():
    scale = sl.outcomes.Scale(10, -10)
    agent = sl.Agent("glance", sl.graphs.complete(3), seed=1, scale=scale)
    for t in range(400):
        good = t % 3
        decision = agent.ask(advice={"good": good if t % 2 else None, "bad": (good + 1) % 3, "late": None})
        agent.tell(decision, [10.0 if arm == good else -10.0 for arm in range(3)])
    good, bad, late = table = agent.advisers()
    assert (good.name, good.rounds, good.loss) == ("good", 200, 10.0)
    assert good.low <= good.loss <= good.high <= 10.0
    assert (bad.rounds, bad.verdict) == (400, "worse than what was played")
    assert bad.loss == -10.0
    assert bad.high < bad.paid  # in scores, more is better
    assert (late.rounds, late.verdict) == (0, "not known yet")
    assert math.isnan(late.loss)
    assert table["bad"] == bad
    assert str(table).splitlines()[2].startswith("good")
    assert "<table" in table._repr_html_()
    pytest.importorskip("pandas")
    assert table.to_pandas().shape == (3, 8)


def test_who_is_better_than_what_was_played_is_said_to_be():
    agent = sl.Agent("glance", sl.graphs.self_loops(6), seed=1)
    for t in range(300):
        good = (t * t) % 6
        decision = agent.ask(advice={"good": good, "random": [1 / 6] * 6})
        agent.tell(decision, [0.0 if decision.arm == good else 1.0])
    row = agent.advisers()["good"]
    assert row.loss < row.paid
    assert row.high < 0.5


def test_advisers_are_drawn():
    pytest.importorskip("matplotlib")
    agent = sl.Agent("glance", GRAPH, seed=1)
    for _ in range(5):
        tell(agent, agent.ask(advice={"a": 1, "b": 2}))
    figure = agent.advisers().plot()
    assert [label.get_text() for label in figure.axes[0].get_yticklabels()] == ["a", "b"]
