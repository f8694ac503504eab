"""What `Family.tell` takes and refuses: all of a batch or nothing, and every error names key, arm and value."""

import pickle

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import sidelong as sl
from sidelong.errors import (
    ConflictError,
    DecisionError,
    EvaluationError,
    FamilyError,
    GraphError,
    LearnerError,
    LossError,
    OutcomeError,
    UnknownDecisionError,
)

pytestmark = [pytest.mark.interpreted, pytest.mark.compiled]


@pytest.fixture
def family():
    return sl.Family("glance", sl.graphs.nested(3), seed=1)


@pytest.fixture
def plan(family):
    return family.ask(["a", "b", "c"])  # in the first round the arm that reveals all


def losses(plan):
    return np.arange(plan.reveals.size) % 11 / 10


def snapshot(family):
    """Return all that a family knows, to see whether anything changed."""
    header, arrays = family.contents()
    return header, {name: array.tobytes() for name, array in arrays.items()}


def table(plan):
    return pa.table(plan.to_arrow(reveals=True)).append_column("loss", [losses(plan)])


def shuffled(plan):
    return table(plan).take([5, 1, 7, 0, 2, 8, 6, 4, 3])


FORMS = {
    "an array": lambda plan: (plan, losses(plan)),
    "a list": lambda plan: (plan, losses(plan).tolist()),
    "ids": lambda plan: (plan.ids, losses(plan)),
    "a column of ids": lambda plan: (plan.to_arrow()["decision"], losses(plan)),
    "a table of Arrow": lambda plan: (shuffled(plan),),
    "pandas": lambda plan: (shuffled(plan).to_pandas(),),
    "Polars": lambda plan: (pl.from_arrow(shuffled(plan)),),
    "columns": lambda plan: (shuffled(plan).to_pydict(),),
    "a table of keys": lambda plan: (shuffled(plan).drop_columns("decision"),),
    "a batch and a table of keys": lambda plan: (plan, shuffled(plan).drop_columns("decision").to_pandas()),
    "some of a batch": lambda plan: (plan[[2, 0, 1]], losses(plan)[[6, 7, 8, 0, 1, 2, 3, 4, 5]]),
}


@pytest.mark.parametrize("form", FORMS)
def test_losses_come_in_many_forms(form, family, plan):
    assert family.tell(*FORMS[form](plan)) == 3
    assert family.pending == []
    assert family.estimates().means.tolist() == losses(plan).tolist()


def test_feedback_comes_in_parts(family, plan):
    again = family.ask(["a", "c"])
    assert family.tell(plan[plan.arms == 5], []) == family.tell(plan[[]], []) == 0
    assert family.tell(plan[1:2], [0.5, 0.5, 0.5]) == 1
    assert family.pending == [plan.ids[0], again.ids[0], plan.ids[2], again.ids[1]]
    assert family.tell(table(plan).slice(6, 3)) == 1
    assert family.tell(plan[0], [0.1, 0.2, 0.3]) == 1
    assert family.pending == again.ids


def test_decisions_of_one_key_are_learned_in_the_order_of_the_table():
    family = sl.Family("glance", sl.graphs.self_loops(3), seed=1)
    agent = sl.Agent("glance", sl.graphs.self_loops(3), seed=family.seed_of(7))
    plan, made = family.ask(pa.chunked_array([[7] * 12])), [agent.ask() for _ in range(12)]
    order = [10, 1, 11, 0, 3, 2]
    family.tell(table(plan).take(order).set_column(3, "loss", [np.arange(6) / 10]))
    for place, at in enumerate(order):
        agent.tell(made[at], [place / 10])
    assert family[7].estimates().weights.tobytes() == agent.estimates().weights.tobytes()


def test_telling_the_same_again_is_no_news_and_something_else_an_error(family, plan):
    assert family.tell(plan, losses(plan)) == 3
    before = snapshot(family)
    for form in FORMS.values():
        try:
            assert family.tell(*form(plan)) == 0
        except DecisionError as error:
            assert "waits" in str(error)  # noqa: PT017  # without ids nobody knows which decision is meant
    with pytest.raises(ConflictError, match=f"Decision {plan.ids[1]} was told before, with other losses"):
        family.tell(plan[[1]], [0.3, 0.4, 0.6])
    with pytest.raises(ConflictError, match="with other losses"):
        family.tell(plan, losses(plan), sl.graphs.complete(3))
    later = family.ask(["c"])
    both = [*plan.ids[:1], *later.ids]
    assert family.tell(both, [0.0, 0.1, 0.2, *[0.5] * later.reveals.size]) == 1
    assert snapshot(family) != before
    for _ in range(family.remembers):
        more = family.ask(["a"])
        family.tell(more, np.full(more.reveals.size, 0.5))
    with pytest.raises(DecisionError, match="told so long ago"):
        family.tell(plan, losses(plan))


def test_each_of_the_last_decisions_of_a_key_may_be_told_again(family):
    plans = [family.ask(["a"]) for _ in range(family.remembers)]
    told = [np.full(plan.reveals.size, 0.1 * k) for k, plan in enumerate(plans)]
    assert [family.tell(*each) for each in zip(plans, told, strict=True)] == [1] * len(plans)
    assert [family.tell(*each) for each in zip(plans, told, strict=True)] == [0] * len(plans)
    with pytest.raises(ConflictError, match="with other losses"):
        family.tell(plans[0], told[0] + 0.5)


REFUSED = {
    "too large": (LossError, r"loss of arm 1 of the key 'b', decision 1-\w{8}-b, must be .* in \[0, 1\], not 1.5"),
    "not a number": (LossError, "of arm 1 of the key 'b'.*not nan"),
    "text": (LossError, "of arm 1 of the key 'b'.*not 'dear'"),
    "too few": (LossError, "one for each of the 9 revealed arms of these 3 decisions.*8 were given"),
    "an arm is missing": (LossError, "loss of arm 1 of the key 'b'.*is missing"),
    "an arm too many": (LossError, "Arm 7 of the key 'b'.*was not revealed"),
    "an arm twice": (LossError, "An arm of the key 'b'.*has two losses"),
    "an unknown key": (UnknownDecisionError, "no key 'x': it has never been asked for that key"),
    "an unknown id": (UnknownDecisionError, "no decision 1 for the key 'x'.*never been asked for that key"),
    "a later round": (UnknownDecisionError, "no decision 2 for the key 'b': it has made 1 for that key"),
    "another family": (UnknownDecisionError, "names its decisions like"),
    "one of another family": (UnknownDecisionError, r"for the key 'c': it names its decisions like 1-\w{8}-c"),
    "no id at all": (UnknownDecisionError, r"no decision 'hello': it names its decisions like 1-\w{8}-key"),
    "twice": (DecisionError, "is named twice"),
    "no columns": (LossError, "has the columns decision or key, arm and loss"),
    "two dimensions": (LossError, "2 dimensions"),
    "a number": (LossError, "must be an array"),
}


def attempt(what, plan):
    values, rows = losses(plan), table(plan).drop_columns("decision").to_pandas()
    other = sl.Family("glance", sl.graphs.nested(3), seed=2).ask(["c"])
    return {
        "too large": lambda: (plan, np.where(np.arange(9) == 4, 1.5, values)),
        "not a number": lambda: (plan, np.where(np.arange(9) == 4, np.nan, values)),
        "text": lambda: (plan, [*values[:4], "dear", *values[5:]]),
        "too few": lambda: (plan, values[:-1]),
        "an arm is missing": lambda: (rows.drop(4),),
        "an arm too many": lambda: (pd.concat([rows, pd.DataFrame({"key": ["b"], "arm": [7], "loss": [0.5]})]),),
        "an arm twice": lambda: (pd.concat([rows, rows[4:5]]),),
        "an unknown key": lambda: (rows.assign(key=rows.key.replace("b", "x")),),
        "an unknown id": lambda: ([plan.ids[0], plan.ids[1][:-1] + "x"], [0.5] * 6),
        "a later round": lambda: ([plan.ids[1].replace("1-", "2-", 1)], [0.5] * 3),
        "another family": lambda: (other, [0.5] * 3),
        "one of another family": lambda: ([*plan.ids[:2], *other.ids], values),
        "no id at all": lambda: (["hello"], [0.5] * 3),
        "twice": lambda: ([plan.ids[0]] * 2, [0.5] * 6),
        "no columns": lambda: (rows.drop(columns="loss"),),
        "two dimensions": lambda: (plan, np.zeros((3, 3))),
        "a number": lambda: (plan, 0.5),
    }[what]()


@pytest.mark.parametrize("what", REFUSED)
def test_one_bad_loss_refuses_the_batch_and_changes_nothing(what, family, plan):
    error, message = REFUSED[what]
    before = snapshot(family)
    with pytest.raises(error, match=message):
        family.tell(*attempt(what, plan))
    assert snapshot(family) == before
    assert family.tell(plan, losses(plan)) == 3


@pytest.mark.parametrize(
    ("given", "error", "message"),
    [
        ({"keys": "abc"}, FamilyError, "a list, an array or a column of keys"),
        ({"keys": ["a", None]}, FamilyError, "at place 1 there is None"),
        ({"keys": [1.0]}, FamilyError, "at place 0 there is 1.0"),
        ({"keys": [True]}, FamilyError, "there is True"),
        ({"keys": ["a", 1]}, FamilyError, "all text or all whole numbers, and 1 is not"),
        ({"keys": [1]}, FamilyError, "all text or all whole numbers, and 1 is not"),
        ({"keys": ["new"], "graph": sl.graphs.nested(4)}, GraphError, "must have the family's 3 arms"),
        ({"keys": ["new"], "graph": [sl.graphs.nested(3)] * 2}, GraphError, "one for each of the 1 keys"),
        ({"keys": ["new"], "graph": ([sl.graphs.nested(3)], [1])}, GraphError, "from 0 to 0"),
        ({"keys": ["new"], "graph": ([sl.graphs.nested(3)], [0, 0])}, GraphError, "each of the 1 keys"),
        ({"keys": ["new"], "available": [3]}, GraphError, "available"),
    ],
)
def test_what_cannot_be_asked_changes_nothing(given, error, message, family, plan):
    before = snapshot(family)
    with pytest.raises(error, match=message):
        family.ask(**given)
    assert snapshot(family) == before
    assert len(family) == len(plan) == 3


def test_absent_arms_need_a_learner_with_a_rule_for_them():
    family = sl.Family("exp3.g++", sl.graphs.nested(3))
    with pytest.raises(LearnerError, match=r"available=\.\.\. needs a learner"):
        family.ask(["new"], available=[0])
    assert len(family) == 0


def test_decisions_are_cancelled_and_expire_by_age(family, plan):
    for _ in range(2):
        family.ask(["a"])
    with pytest.raises(UnknownDecisionError, match="key 'x'"):
        family.cancel([plan.ids[1][:-1] + "x"])
    assert family.cancel(plan[[1]]) == 1
    assert family.cancel(plan[[1, 2]]) == 1  # one of them again
    with pytest.raises(DecisionError, match=f"{plan.ids[1]} was told or cancelled before"):
        family.cancel(plan[[1]], lost=True)
    with pytest.raises(DecisionError, match="cancelled"):
        family.tell(plan, losses(plan))
    assert family.expire(2) == [plan.ids[0]]
    assert len(family.pending) == 2
    assert len(family.expire(0)) == 2
    assert family.pending == []


def test_what_is_known_is_a_table(family, plan):
    family.tell(plan[:2], [0.5, 0.2, 0.9, 0.1, 0.3, 0.2])
    known = family.estimates()
    assert known.keys == ["a", "a", "a", "b", "b", "b", "c", "c", "c"]
    frame = pd.DataFrame(known.columns)
    assert frame[frame.best][["key", "arm"]].to_numpy().tolist() == [["a", 1], ["b", 0]]
    assert frame.groupby("key").probability.sum().tolist() == pytest.approx([1, 1, 1])
    assert known.to_arrow().column_names == ["key", "arm", "mean", "count", "probability", "best"]
    assert family.estimates(["b"]).means.tolist() == [0.1, 0.3, 0.2]
    assert "9 rows" in repr(known)
    with pytest.raises(FamilyError, match="no key 'x'"):
        family.estimates(["x"])
    with pytest.raises(FamilyError, match="no key 'x'"):
        family["x"].estimates()


def test_a_batch_is_a_table_for_everybody(plan):
    assert plan.to_arrow().column_names == ["key", "decision", "arm", "probability"]
    assert plan.to_arrow().to_pandas()["key"].tolist() == ["a", "b", "c"]
    assert pl.from_arrow(plan.to_arrow())["decision"].to_list() == plan.ids
    assert plan.to_arrow(reveals=True)["arm"].to_pylist() == plan.reveals.tolist()
    assert plan[::2].keys == ["a", "c"]
    assert repr(plan) == "<Batch of 3 decisions, for 'a', 'b', 'c'>"
    with pytest.raises(ValueError, match="read-only"):
        plan.arms[0] = 1


def test_sales_of_all_products_are_told_in_one_call():
    orders = sl.outcomes.StockOrders(4, holding=1, shortage=4)
    family = sl.Family("glance", orders.graph, seed=5)
    agents = {key: sl.Agent("glance", orders.graph, seed=family.seed_of(key)) for key in "abc"}
    guess, guesses = None, {}
    for t in range(6):
        plan = family.ask(list(agents), guess)
        sales = np.minimum(plan.arms, [t % 3, 1, 4])
        for key, arm, sold in zip(plan.keys, plan.arms.tolist(), sales.tolist(), strict=True):
            made = agents[key].ask(guesses.get(key))
            assert made.arm == arm
            seen = orders.outcome(arm, sold)
            agents[key].tell(made, seen)
            guesses[key] = seen.graph
        seen = orders.outcomes(plan.arms, sales)
        with pytest.raises(LossError, match="for the key 'a', and decision"):
            family.tell(plan, orders.outcomes((plan.arms + 1) % 5, 0))
        with pytest.raises(LossError, match="of 3 decisions"):
            family.tell(plan, orders.outcomes(plan.arms[:1], 0))
        assert family.tell(plan, seen) == 3
        guess = seen.graph
    for key, agent in agents.items():
        assert family[key].estimates().weights.tobytes() == agent.estimates().weights.tobytes()


def test_what_was_revealed_may_be_told_again_though_arms_were_absent():
    orders = sl.outcomes.StockOrders(4, holding=1, shortage=4)
    family = sl.Family("exp3-set", orders.graph, seed=5)
    plan = family.ask(["a", "b", "c"], available=[[1, 3], [0, 2, 4], [4]])
    seen = orders.outcomes(plan.arms, 0 * plan.arms)  # nothing is sold: each reveals all that were there
    assert family.tell(plan[[0, 2]], orders.outcomes(plan.arms[[0, 2]], [0, 0])) == 2
    known = pickle.dumps(family)
    assert family.tell(plan[[0, 2]], orders.outcomes(plan.arms[[0, 2]], [0, 0])) == 0
    for other in ([1, 1], plan.arms[[0, 2]]):  # another loss, and fewer of them
        with pytest.raises(ConflictError, match="was told before, with other losses or another graph"):
            family.tell(plan[[0, 2]], orders.outcomes(plan.arms[[0, 2]], other))
    assert pickle.dumps(family) == known
    assert family.tell(plan, seen) == 1  # that of b, which waited
    assert family.tell(plan, seen) == 0
    assert family.tell(plan.ids, seen) == 0


def test_verdicts_of_many_keys_are_learned_as_by_single_agents():
    cascade = sl.outcomes.Cascade([0.0, 0.25, 0.5, 1.0], price=0.25, mistake=2.0)
    family = sl.Family("exp3.g", cascade.graph(), rate="adaptive", seed=5)
    agents = {
        key: sl.Agent("exp3.g", cascade.graph(), rate="adaptive", seed=family.seed_of(key)) for key in ("a", "b", "c")
    }
    rng = np.random.default_rng(1)
    for _ in range(20):
        sure, errs = rng.random(3), rng.random(3) < 0.5
        plan, wrong = family.ask(list(agents), cascade.graphs(sure)), []
        for i, agent in enumerate(agents.values()):
            made = agent.ask(cascade.graph(sure[i]))
            assert made.arm == plan.arms[i]
            wrong.append(bool(errs[i]) if cascade.asks(made.arm, sure[i]) else None)
            agent.tell(made, cascade.outcome(made.arm, confidence=sure[i], wrong=wrong[i]))
        seen = cascade.outcomes(plan.arms, confidence=sure, wrong=wrong)
        assert family.tell(plan, seen) == 3
        assert family.tell(plan, seen) == 0
    for key, agent in agents.items():
        assert family[key].estimates().weights.tobytes() == agent.estimates().weights.tobytes()


def test_a_verdict_of_another_confidence_than_the_one_that_was_asked_with_is_refused():
    cascade = sl.outcomes.Cascade([0.0, 0.5], price=0.2)
    family = sl.Family("exp3.g", cascade.graph(), rate="adaptive", seed=5)
    plan = family.ask(["a", "b"], cascade.graphs([0.2, 0.2]))
    wrong = [True if cascade.asks(int(arm), sure) else None for arm, sure in zip(plan.arms, [0.2, 0.7], strict=True)]
    with pytest.raises(LossError, match="of the key 'b' is of a round with another graph"):
        family.tell(plan, cascade.outcomes(plan.arms, confidence=[0.2, 0.7], wrong=wrong))
    assert len(family.pending) == 2


def test_a_week_without_a_report_is_told_and_asked_as_any_other(family):
    orders = sl.outcomes.StockOrders(2, holding=1, shortage=4)
    for none in ([], pd.Series([], dtype=float)):
        seen = orders.outcomes(none, none)
        assert family.tell(none, seen) == 0
        assert len(family.ask(none, seen.graph)) == 0


def test_graphs_by_key_are_in_the_order_of_the_batch_and_not_of_the_table():
    own, matrix = sl.graphs.self_loops(3), np.eye(3)
    matrix[2] = 1
    graphs = [own, sl.FeedbackGraph.from_matrix(matrix)]
    one, other = (sl.Family("exp3-set", own, seed=3) for _ in range(2))
    plan = one.ask(["a", "b"])
    other.ask(["a", "b"])
    table = plan.to_arrow(reveals=True).to_pandas().assign(loss=0.7)
    one.tell(plan, table, graphs)
    other.tell(plan, table.iloc[::-1], graphs)
    one, other = (each.estimates().to_arrow().column("probability").to_pylist() for each in (one, other))
    assert one == other


@pytest.mark.parametrize("table", [pd.DataFrame, pl.DataFrame])
def test_flags_of_available_arms_may_be_a_table(table):
    family = sl.Family("exp3-set", sl.graphs.self_loops(3), seed=1)
    flags = np.array([[True, False, False]] * 50)
    assert set(family.ask(range(50), available=table(flags)).arms.tolist()) == {0}
    assert set(family.ask(range(50), available=[None] * 49 + [[1]]).arms.tolist()) == {0, 1, 2}


def test_a_graph_that_is_told_in_another_form_is_the_one_that_was_asked_with():
    nested = sl.graphs.nested(9)
    family = sl.Family("exp3-set", nested, seed=1)
    agent = sl.Agent("exp3-set", nested, seed=family.seed_of("k"))
    for _ in range(20):
        plan, decision = family.ask(["k"]), agent.ask()
        assert plan.probabilities[0] == decision.probability
        family.tell(plan, losses(plan), nested.as_arcs())
        agent.tell(decision, losses(plan), nested.as_arcs())


def test_an_outcome_is_refused_by_a_key_that_has_a_scale_of_its_own():
    orders = sl.outcomes.StockOrders(4, holding=1, shortage=4)
    family = sl.Family("glance", orders.graph, seed=1)
    family.add(["k"], scale=sl.outcomes.Scale(0, 250))
    decision = family["k"].ask()
    with pytest.raises(LossError, match="no scale"):
        family["k"].tell(decision, orders.outcome(decision.arm, 2))


def test_parts_of_other_scales_and_other_keys_are_not_joined():
    graph, scale = sl.graphs.nested(3), sl.outcomes.Scale
    scaled = [sl.Family("glance", graph, seed=1, scale=scale(0, worst)) for worst in (1, 100)]
    with pytest.raises(FamilyError, match="is not a part of"):
        sl.Family.join(scaled)
    parts = sl.Family("glance", graph, seed=1).split(2)
    parts[0].ask([1])
    parts[1].ask(["a"])
    with pytest.raises(FamilyError, match="these parts have both"):
        sl.Family.join(parts)


@pytest.mark.parametrize("table", [pd.DataFrame, pl.DataFrame, pa.table, dict])
def test_a_table_in_place_of_its_column_of_keys_is_refused(table, family):
    with pytest.raises(FamilyError, match=r"one column, and this is a table with \['sku', 'price'\]. Give table"):
        family.ask(table({"sku": ["a", "b"], "price": [1, 2]}))
    assert len(family) == 0


def test_whether_a_key_is_there_can_be_asked_of_anything(family):
    numbers = sl.Family("glance", sl.graphs.nested(3))
    numbers.ask([1])
    family.ask(["a"])
    assert (np.int64(1) in numbers, 1 in numbers, "a" in family, np.str_("a") in family) == (True,) * 4
    assert not any(each in numbers for each in (True, np.True_, 2, 1.0, "1", None, [1]))


def test_keys_of_64_bits_go_to_arrow_and_larger_ones_are_refused_by_a_sentence():
    family = sl.Family("glance", sl.graphs.nested(3))
    plan = family.ask([1, 2**63, 2**64 - 1])
    assert family.tell(table(plan)) == 3
    assert family.estimates().to_arrow()["key"].unique().to_pylist() == plan.keys
    with pytest.raises(FamilyError, match=r"from -1 to 9223372036854775808 do not fit. Use text"):
        family.ask([-1, 2**63]).to_arrow()


def test_one_key_takes_no_decision_of_another(family):
    plan = family.ask(["a", "b", "a-b"])
    for refused in (plan.ids[1], plan.ids[2], family["b"].pending[0]):
        with pytest.raises(UnknownDecisionError, match="is not of the key 'a'"):
            family["a"].tell(refused, [0.5] * 3)
        with pytest.raises(UnknownDecisionError, match="is not of the key 'a'"):
            family["a"].cancel(refused)
    with pytest.raises(UnknownDecisionError, match="made no decision"):
        family["a"].tell("nothing", [0.5] * 3)
    assert family["a-b"].tell(plan.ids[2], [0.5] * 3)


def test_outcomes_of_a_batch_are_told_in_its_order_only(family):
    orders = sl.outcomes.StockOrders(2, holding=1, shortage=4)
    plan = family.ask(["a", "b", "c"])
    seen = orders.outcomes(plan, np.minimum(plan.arms, [0, 1, 2]))
    with pytest.raises(LossError, match=r"at place 0 is that of decision 1 of the key 'a', and .* of the key 'c'"):
        family.tell(plan.ids[::-1], seen)
    assert family.tell(plan.ids, seen) == 3
    assert family.tell(plan, seen) == 0


@pytest.mark.parametrize("arms", [[[0], [0, 1], 2], [0, 1.5, 2], [0, None, 2], ["0", "1", "2"], [0, 10**30, 2]])
def test_a_column_of_arms_that_are_none_names_the_row_and_its_key(family, arms):
    family.ask(["a"])
    with pytest.raises(LossError, match=r"one arm in each row, and row [01], of the key 'a', has .*Give a row"):
        family.tell({"key": ["a"] * 3, "arm": arms, "loss": [0.5] * 3})
    for name in ("key", "arm", "loss"):
        columns = {"key": ["a"] * 3, "arm": [0, 1, 2], "loss": [0.5] * 3}
        with pytest.raises(LossError, match=f"The column {name} of a table of losses has one value in each row, not 3"):
            family.tell(columns | {name: 3})
    with pytest.raises(LossError, match=r"loss of arm 1 of the key 'a'.* not \[0.1, 0.2\]"):
        family.tell({"key": ["a"] * 3, "arm": [0, 1, 2], "loss": [0.5, [0.1, 0.2], [0.5]]})
    with pytest.raises(GraphError, match=r"one whole number for each of the 1 keys, not \[\[0\], \[0, 1\]\]"):
        family.ask(["a"], ([family.graph], [[0], [0, 1]]))


def test_a_loss_that_is_too_large_for_a_float_is_refused(family):
    plan = family.ask(["a"])
    with pytest.raises(LossError, match=r"loss of arm 0 of the key 'a'.*must be a number in \[0, 1\], not 1000"):
        family.tell(plan, [10**400] * plan.reveals.size)


def test_override_and_learn_need_one_entry_for_each_key(family):
    plan = family.ask(["a", "b"])
    for arms in (3, np.array(1), "ab", {0, 1}):
        with pytest.raises(DecisionError, match=r"arms must be a list of one arm for each of the 2 decisions, not "):
            family.override(plan, arms)
    with pytest.raises(GraphError, match=rf"Decision {plan.ids[1]} cannot .*arm must name arms from 0 to 2, not \[1\]"):
        family.override(plan, [0, [1]])
    for logs in (3, None, [3]):
        with pytest.raises(EvaluationError, match="a log for each key, as a dict by key, not"):
            family.learn(logs)
    with pytest.raises(EvaluationError, match="The log of the key 'b': A log is the path"):
        sl.Family("exp3-set", family.graph).learn({"b": 3})


def test_what_is_wrong_with_an_outcome_names_its_key(family):
    orders = sl.outcomes.StockOrders(2, holding=1, shortage=4)
    plan = family.ask(["a", "b"])
    with pytest.raises(
        OutcomeError, match=rf"outcome of the key 'b', decision {plan.ids[1]}: The sales of an order of 2 must be"
    ):
        orders.outcomes(plan, [0, 7])
    with pytest.raises(
        OutcomeError, match=r"outcome of the key 'a'.*must be a number from 0 to 2, not \[2\]"
    ) as caught:
        orders.outcomes(plan, [[2], [3, 1]])
    assert type(caught.value) is OutcomeError
    assert caught.value.place == 0


@pytest.mark.parametrize("short", ["arm", "loss", "decision"])
def test_columns_of_different_lengths_are_refused_by_a_sentence(short, family, plan):
    columns = {"decision": list(plan.ids), "arm": [0, 0, 0], "loss": [0.5, 0.5, 0.5]}
    columns[short] = columns[short][:-1]
    with pytest.raises(LossError, match="columns of a table are equally long"):
        family.tell(columns)


def test_losses_in_no_order_or_hidden_by_a_mask_are_refused(family, plan):
    for given in ({0.1, 0.2, 0.3}, np.ma.array([0.1, 0.2, 0.3], mask=[False, True, False])):
        with pytest.raises(LossError, match=r"in the order of the revealed arms|not None"):
            family.tell(plan[:1], given)
    assert len(family.pending) == 3


@pytest.mark.parametrize(
    "call",
    [
        lambda family, one: family.ask(one),
        lambda family, one: family.ask(["a"], one),
        lambda family, one: family.ask(["a"], available=one),
        lambda family, one: family.ask(["a"], advice=one),
        lambda family, one: family.add(one),
        lambda family, one: family.add(["d"], scale=one),
        lambda family, one: family.tell(one, [0.5]),
        lambda family, one: family.tell(family.pending[:1], [0.1, 0.2, 0.3], one),
        lambda family, one: family.cancel(one),
        lambda family, one: family.estimates(one),
        lambda family, one: type(family).join(one),
    ],
)
def test_one_number_in_place_of_several_is_refused_by_a_sentence(family, plan, call):  # noqa: ARG001  # it was asked
    before = snapshot(family)
    with pytest.raises(sl.errors.SidelongError):
        call(family, np.array(0.5))
    assert snapshot(family) == before
