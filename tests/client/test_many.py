"""The client with many keys: tables in, tables out, with and without `await`, and as a family plays."""

import asyncio
import itertools
import math

import numpy as np
import pytest

import sidelong as sl
from sidelong.errors import AdviceError, ConflictError, DecisionError, LossError, ServiceError, UnknownDecisionError
from sidelong.service.client import connect_async, many
from sidelong.service.client.decisions import RemoteBatch

_numbers = itertools.count(1)
KEYS = [f"sku-{k}" for k in range(30)]
GRAPHS = [sl.graphs.nested(4), sl.graphs.complete(4), sl.graphs.self_loops(4)]


def keyed(service, **how):
    """Return an experiment with keys."""
    return service.create(f"m{next(_numbers)}", "exp3.g++", GRAPHS[0], seed=9, keyed=True, **how)


def twins(service):
    """Return an experiment with keys, and a family that must play alike."""
    return keyed(service), sl.Family("exp3.g++", GRAPHS[0], seed=9)


def table(batch, losses):
    """Return a table of what a batch reveals, as a dict of columns."""
    return {"decision": np.repeat(batch.ids, np.diff(batch.offsets)), "arm": batch.reveals, "loss": losses}


def same(batch, plan):
    assert batch.keys == plan.keys
    for name in ("rounds", "arms", "reveals", "offsets"):
        assert getattr(batch, name).tolist() == getattr(plan, name).tolist()
    assert batch.probabilities.tobytes() == plan.probabilities.tobytes()


@pytest.mark.library
def test_advice_in_columns_is_split_like_the_keys_and_followed_like_in_a_family(service, monkeypatch):
    monkeypatch.setattr(many, "MOST_KEYS", 3)
    experiment = service.create(f"m{next(_numbers)}", "glance", GRAPHS[0], seed=9, keyed=True)
    family, keys = sl.Family("glance", GRAPHS[0], seed=9), KEYS[:8]
    rng = np.random.default_rng(3)
    for turn in range(4):
        table_ = rng.dirichlet(np.ones(4), 8)
        table_[turn] = np.nan
        advice = {"arms": rng.integers(-1, 4, 8), "table": table_, "silent": None}
        graph = (GRAPHS, np.arange(8) % 2) if turn == 2 else None
        batch, plan = experiment.ask_many(keys, graph, advice=advice), family.ask(keys, graph, advice=advice)
        same(batch, plan)
        losses = rng.random(batch.reveals.size)
        experiment.tell_many(batch, losses)
        family.tell(plan, losses)
    with pytest.raises(AdviceError, match="for each of the 8 keys"):
        experiment.ask_many(keys, advice={"arms": [1, 2]})
    single = service.create(f"m{next(_numbers)}", "glance", GRAPHS[0], incumbent="today", allowance=5)
    assert single.ask(advice={"today": np.int64(2), "team": np.eye(4)[1]}).round == 1
    assert len(single.ask_many(3, advice={"today": 2})) == 3
    with pytest.raises(AdviceError, match="'today' must advise in every round"):
        single.ask(advice=3)


@pytest.mark.library
def test_an_experiment_is_asked_and_told_like_a_family(service, monkeypatch):
    monkeypatch.setattr(many, "MOST_KEYS", 7)  # several requests for one batch
    monkeypatch.setattr(many, "MOST_LOSSES", 20)
    experiment, family = twins(service)
    rng = np.random.default_rng(2)
    for turn in range(12):
        keys = rng.choice(KEYS, 20).tolist()
        graph = (GRAPHS, rng.integers(3, size=20)) if turn % 3 == 1 else GRAPHS[1] if turn % 3 == 2 else None
        if graph is not None and turn % 3 == 1:
            keys = rng.permutation(KEYS)[:20].tolist()  # each once: graphs are asked for one after the other
        batch, plan = experiment.ask_many(keys, graph), family.ask(keys, graph)
        same(batch, plan)
        losses = rng.random(batch.reveals.size)
        mask = rng.random(20) < 0.6
        some = np.repeat(mask, np.diff(batch.offsets))
        assert experiment.tell_many(batch[mask], losses[some]) == int(mask.sum())
        family.tell(plan[mask], losses[some])
        after = (GRAPHS, rng.integers(3, size=int((~mask).sum())))
        sizes = [after[0][g].row(arm).size for g, arm in zip(after[1], batch.arms[~mask].tolist(), strict=True)]
        told = rng.random(sum(sizes))
        if sizes:
            assert experiment.tell_many(batch[~mask], told, after) == len(sizes)
            family.tell(plan[~mask], told, after)
    assert experiment.tell_many(batch[mask], losses[some]) == 0  # again


@pytest.mark.library
def test_feedback_in_another_order_than_the_decisions_is_learned_by_the_right_keys(service):
    experiment, family = twins(service)
    keys, order = KEYS[:6], [4, 1, 5, 0, 3, 2]
    rng = np.random.default_rng(3)
    for _ in range(8):
        batch, plan = experiment.ask_many(keys, GRAPHS[1]), family.ask(keys, GRAPHS[1])  # each reveals four arms
        same(batch, plan)
        losses = rng.random(24)
        assert experiment.tell_many(batch[order], losses) == 6
        family.tell(plan[order], losses)
        assert [experiment.look_up(batch.ids[k])["losses"] for k in order] == losses.reshape(6, 4).tolist()


@pytest.mark.library
def test_tables_and_outcomes(service):
    experiment, family = twins(service)
    pd = pytest.importorskip("pandas")
    products = pd.DataFrame({"sku": ["bread", "milk", "apples"]})
    batch, plan = experiment.ask_many(products.sku), family.ask(products.sku)
    shown = batch.to_arrow(reveals=True).to_pandas()
    assert shown.columns.tolist() == ["key", "decision", "arm"]
    shown["loss"] = 0.25
    assert experiment.tell_many(shown.sample(frac=1, random_state=1)) == 3  # in any order
    family.tell(plan, [0.25] * plan.reveals.size)
    assert batch.to_arrow().column_names == ["key", "decision", "arm", "probability"]
    batch, plan = experiment.ask_many(["milk", "bread"]), family.ask(["milk", "bread"])
    by_key = {
        "key": np.repeat(batch.keys, np.diff(batch.offsets)),
        "arm": batch.reveals,
        "loss": 0.5 + 0 * batch.reveals,
    }
    assert experiment.tell_many(batch, by_key) == 2
    family.tell(plan, [0.5] * plan.reveals.size)
    orders = sl.outcomes.StockOrders(3, holding=1, shortage=4)
    shop = service.create(f"m{next(_numbers)}", "exp3.g++", orders.graph, seed=3, keyed=True)
    own = sl.Family("exp3.g++", orders.graph, seed=3)
    for _ in range(4):
        week, twin = shop.ask_many(products.sku), own.ask(products.sku)
        same(week, twin)
        seen = orders.outcomes(week.arms, np.minimum(week.arms, [1, 2, 3]))
        assert shop.tell_many(week.ids, seen) == 3
        own.tell(twin, seen)
    same(experiment.ask_many(KEYS[:3]), family.ask(KEYS[:3]))


def test_with_await_and_a_key_of_ones_own(server, service):
    experiment = keyed(service)

    async def play():
        async with connect_async(server.address, patience=0.0, timeout=60.0) as connected:
            remote = connected[experiment.name]
            batch = await remote.ask_many(KEYS[:5], key="monday")
            again = await remote.ask_many(KEYS[:5], key="monday")
            assert batch.ids == again.ids
            return await remote.tell_many(batch, np.full(batch.reveals.size, 0.5)), batch

    learned, batch = asyncio.run(play())
    assert learned == 5
    assert experiment.look_up(batch.ids[0])["status"] == "told"


def test_a_key_of_any_length_names_all_requests_of_a_batch(service, monkeypatch):
    monkeypatch.setattr(many, "MOST_KEYS", 2)
    monkeypatch.setattr(many, "MOST_ROWS", 2)
    without_keys = service.create(f"m{next(_numbers)}", "exp3.g++", GRAPHS[0], seed=9)
    for experiment, asked, fewer in ((keyed(service), KEYS[:7], KEYS[:2]), (without_keys, 7, 2)):
        for key in ("k" * 200, "k" * 199, "monday"):
            batch = experiment.ask_many(asked, key=key)
            assert len(set(batch.ids)) == 7
            assert experiment.ask_many(asked, key=key).ids == batch.ids
        assert not {*experiment.ask_many(fewer, key="monday.1").ids} & {*batch.ids}  # the key of something else
        made = experiment.state()["counts"]["decided"]
        for wrong in ("k" * 201, "", "two words", "a\nb"):
            with pytest.raises(ServiceError, match="1 to 200 characters"):
                experiment.ask_many(asked, key=wrong)
        assert experiment.state()["counts"]["decided"] == made


def test_a_scale_and_what_is_wrong(service):
    experiment = keyed(service, scale=sl.outcomes.Scale(best=0, worst=10))
    batch = experiment.ask_many(["a", "b"])
    other = keyed(service)
    with pytest.raises(UnknownDecisionError):
        other.tell_many(batch, np.zeros(batch.reveals.size))
    with pytest.raises(LossError, match="one for each"):
        experiment.tell_many(batch, np.zeros(batch.reveals.size + 1))
    assert experiment.tell_many(batch, np.full(batch.reveals.size, 5.0)) == 2
    assert experiment.look_up(batch.ids[0])["losses"][0] == 0.5
    with pytest.raises(ConflictError, match=f"Decision {batch.ids[0]}:"):
        experiment.tell_many(batch, np.full(batch.reveals.size, 6.0))
    batch = other.ask_many(["a", "b"])
    with pytest.raises(sl.SidelongError):
        other.tell_many(batch, np.full(batch.reveals.size, 1.5))
    with pytest.raises(sl.SidelongError, match="Arm 3 was not revealed, and a loss was told for it"):
        other.tell_many({"decision": batch.ids, "arm": [3, 3], "loss": [0.5, 0.5]})
    with pytest.raises(LossError, match="column decision"):
        other.tell_many({"key": ["a"], "arm": [0], "loss": [0.5]})
    assert other.state()["counts"]["told"] == 0


def test_nothing_of_a_batch_is_an_empty_batch():
    reply = {"arms": [1, 0, 1], "ids": ["abc-7", "abc-8", "abc-9"], "rounds": [1, 1, 2], "probabilities": None}
    reply |= {"labels": None, "absent": None, "drawn_by": ["learner", "holdout", "learner"]}
    batch = RemoteBatch.read({**reply, "reveals": {"0": [0], "1": [0, 1]}}, "shop", ["a", "b", "a"])
    assert [len(batch[[]]), batch[[]].ids, batch[[]].reveals.tolist()] == [0, [], []]
    assert batch[[2, 0]].ids == ["abc-9", "abc-7"]
    assert batch[1:].drawn_by == ["holdout", "learner"]
    assert batch[np.array([False, True, False])].reveals.tolist() == [0]
    joined = RemoteBatch.join([batch[1:], batch[:1]], np.array([2, 0, 1]))
    assert (joined.ids, joined.arms.tolist(), joined.drawn_by) == (batch.ids, batch.arms.tolist(), batch.drawn_by)
    assert repr(joined) == "<RemoteBatch of 3 decisions, for 'a', 'b', 'a'>"


@pytest.mark.library
def test_no_keys_are_asked_for_like_those_of_a_family(service):
    experiment, family = twins(service)
    for graph in (None, GRAPHS[1], (GRAPHS, np.empty(0, np.int64))):
        same(experiment.ask_many([], graph), family.ask([], graph))
    assert experiment.tell_many(experiment.ask_many([]), []) == 0


@pytest.mark.library
def test_what_is_wrong_in_a_batch_is_the_error_of_a_family(service):
    experiment, family = twins(service)
    batch, plan = experiment.ask_many(KEYS[:3]), family.ask(KEYS[:3])
    wrong = np.append(np.full(batch.reveals.size - 1, 0.5), 1.5)
    for tell, told in ((experiment.tell_many, batch), (family.tell, plan)):
        with pytest.raises(LossError, match=r"not 1\.5"):
            tell(told, wrong)


def test_what_is_wrong_in_a_table_is_named(service):
    experiment = keyed(service)
    batch = experiment.ask_many(KEYS[:3])
    told = table(batch, np.append(np.full(batch.reveals.size - 1, 0.5), 1.5))
    with pytest.raises(LossError, match=r"not 1\.5") as caught:
        experiment.tell_many(told)
    assert caught.value.__cause__.path == f"body.losses.{batch.reveals.size - 1}"
    with pytest.raises(UnknownDecisionError, match="no decision"):
        experiment.tell_many({**told, "decision": [f"no-{name}" for name in told["decision"]]})


def test_a_part_of_a_batch_is_learned_and_what_is_wrong_with_the_rest_is_said(server, service, monkeypatch):
    monkeypatch.setattr(many, "MOST_KEYS", 2)
    monkeypatch.setattr(many, "MOST_ROWS", 2)
    for form in ("columns", "table"):
        experiment = keyed(service)
        batch = experiment.ask_many(KEYS[:5])
        experiment.cancel(batch.ids[3])
        losses = np.full(batch.reveals.size, 0.5)
        losses[batch.offsets[1]] = 1.5
        learned = experiment.tell_many(
            *((batch, losses) if form == "columns" else (table(batch, losses),)), partial=True
        )
        assert learned == 3
        assert {id_: type(error) for id_, error in learned.problems.items()} == {
            batch.ids[1]: LossError,
            batch.ids[3]: DecisionError,
        }
        assert "not 1.5" in str(learned.problems[batch.ids[1]])
        assert experiment.tell_many(batch[[0, 2, 4]], np.full(batch[[0, 2, 4]].reveals.size, 0.5)).problems == {}

    async def again():
        async with connect_async(server.address, patience=0.0, timeout=60.0) as connected:
            return await connected[experiment.name].tell_many(batch, losses, partial=True)

    assert asyncio.run(again()).problems.keys() == learned.problems.keys()


@pytest.mark.library
def test_several_decisions_of_an_experiment_without_keys_are_those_of_an_agent(service, monkeypatch):
    monkeypatch.setattr(many, "MOST_ROWS", 3)  # several requests for one batch
    experiment = service.create(f"m{next(_numbers)}", "exp3.g++", GRAPHS[0], seed=9)
    agent = sl.Agent("exp3.g++", GRAPHS[0], seed=9)
    for graph in (None, GRAPHS[1]):
        batch = experiment.ask_many(np.int64(7), graph)
        own = [agent.ask(graph) for _ in range(7)]
        assert batch.arms.tolist() == [each.arm for each in own]
        assert batch.rounds.tolist() == [each.round for each in own]
        assert batch.probabilities.tolist() == [each.probability for each in own]
        assert batch.reveals.tolist() == np.concatenate([each.reveals for each in own]).tolist()
        assert experiment.tell_many(batch, batch.reveals / 4) == 7
        for each in own:
            agent.tell(each, each.reveals / 4)
        assert experiment.tell_many(batch, batch.reveals / 4) == 0


def test_an_experiment_without_keys_is_asked_for_several_decisions(server, service, monkeypatch):
    monkeypatch.setattr(many, "MOST_ROWS", 3)  # several requests for one batch
    name = f"m{next(_numbers)}"
    experiment = service.create(name, "exp3.g++", GRAPHS[0], seed=9)
    batch = experiment.ask_many(7)
    assert (batch.keys, repr(batch)) == ([None] * 7, "<RemoteBatch of 7 decisions>")
    assert experiment.tell_many(batch, batch.reveals / 4) == 7
    assert len(experiment.ask_many(0)) == 0
    batch = experiment.ask_many(4)
    assert experiment.tell_many(table(batch, np.full(batch.reveals.size, 0.5))) == 4
    batch = experiment.ask_many(5)
    wrong = np.append(np.full(batch.reveals.size - 1, 0.5), 2.0)
    for told in ((batch, wrong), (table(batch, wrong),)):
        with pytest.raises(LossError, match=f"^Decision {batch.ids[4]}: ") as caught:  # the second of its request
            experiment.tell_many(*told)
        assert caught.value.__cause__.path == f"body.losses.{batch.offsets[5] - batch.offsets[3] - 1}"
        assert str(experiment.tell_many(*told, partial=True).problems[batch.ids[4]]).startswith("The loss")
    for wrong in (-1, True):
        with pytest.raises(ServiceError, match="how many decisions"):
            experiment.ask_many(wrong)
    with pytest.raises(ServiceError, match="has keys"):
        keyed(service).ask_many(3)

    async def play():
        async with connect_async(server.address, patience=0.0, timeout=60.0) as connected:
            remote = connected[name]
            batch = await remote.ask_many(4)
            return await remote.tell_many(batch, np.full(batch.reveals.size, 0.5))

    assert asyncio.run(play()) == 4


@pytest.mark.library
def test_outcomes_of_an_experiment_without_keys_are_told_together(service):
    orders = sl.outcomes.StockOrders(3, holding=1, shortage=4)
    experiment = service.create(f"m{next(_numbers)}", "exp3.g++", orders.graph, seed=3)
    agent = sl.Agent("exp3.g++", orders.graph, seed=3)
    for _ in range(3):
        batch, own = experiment.ask_many(3), [agent.ask() for _ in range(3)]
        sold = np.minimum(batch.arms, [1, 2, 3])
        assert experiment.tell_many(batch.ids, orders.outcomes(batch.arms, sold)) == 3
        for decision, seen in zip(own, sold.tolist(), strict=True):
            agent.tell(decision, orders.outcome(decision.arm, seen))
        assert batch.arms.tolist() == [each.arm for each in own]


def test_what_is_told_while_frozen_is_not_counted_as_learned(service):
    experiment = keyed(service)
    experiment.change(state="frozen", play=3)
    batch = experiment.ask_many(KEYS[:2])
    assert experiment.tell_many(batch, np.full(batch.reveals.size, 0.5)) == 0


def test_a_holdout_is_given_as_a_pair_or_by_name(service):
    experiment = keyed(service, holdout=(1, 0.25))
    name = f"m{next(_numbers)}"
    service.create(name, "exp3.g++", GRAPHS[0], keyed=True, holdout={"arm": 1, "share": 0.25})
    experiment.clone(f"{name}-twin", learned=False, holdout=(1, 0.25))
    for each in (experiment, service[name], service[f"{name}-twin"]):
        lift = each.state()["lift"]
        assert (lift["arm"], lift["share"]) == (1, 0.25)


def test_a_table_with_something_wrong_is_refused_by_a_sentence(service):
    experiment = keyed(service)
    batch = experiment.ask_many(["a", "b", "c"])
    size = int(batch.offsets[1])
    arms, lost = batch.reveals[:size].tolist(), [0.5] * size
    for error, match, given in (
        (UnknownDecisionError, "for the key 'zz'", {"key": ["zz"], "arm": [0], "loss": [0.5]}),
        (LossError, "equally long", {"key": ["a"], "arm": [0, 1], "loss": [0.5]}),
        (LossError, f"Decision {batch.ids[0]}: .* not 'x'", {"key": ["a"], "arm": [0], "loss": ["x"]}),
        (LossError, f"Decision {batch.ids[0]}: .* not None", {"key": ["a"], "arm": [0], "loss": [None]}),
        (LossError, f"Decision {batch.ids[0]}: .* not nan", {"key": ["a"], "arm": [0], "loss": [math.nan]}),
        (LossError, "two losses for one arm", {"key": ["a"] * 2, "arm": [0] * 2, "loss": [0.5] * 2}),
    ):
        with pytest.raises(error, match=match):
            experiment.tell_many(batch, given)
    assert experiment.state()["counts"]["told"] == 0
    told = {"key": ["a"] * size + ["b"], "arm": [*arms, 0], "loss": [*lost, math.inf]}
    learned = experiment.tell_many(batch, told, partial=True)  # one that is no number hinders no other
    assert learned == 1
    assert [(id_, type(error)) for id_, error in learned.problems.items()] == [(batch.ids[1], LossError)]


def test_decisions_say_what_their_arms_are_called(service):
    called = ["none", "one", "two", "three"]
    experiment = keyed(service, labels=called)
    batch = experiment.ask_many(KEYS[:6])
    assert batch.labels == [called[arm] for arm in batch.arms]
    assert batch[1:3].labels == batch.labels[1:3]
    assert RemoteBatch.join([batch, experiment.ask_many(KEYS[:2])]).labels[:6] == batch.labels
    decisions = np.repeat(batch.ids, np.diff(batch.offsets)).tolist()
    rows = {"decision": decisions, "arm": [called[arm] for arm in batch.reveals], "loss": [0.5] * len(decisions)}
    assert experiment.tell_many(rows) == 6
    single = service.create(f"m{next(_numbers)}", "exp3.g++", GRAPHS[0].labelled(called), seed=9)
    decision = single.ask()
    assert decision.label == called[decision.arm]
    assert f"play arm {decision.arm} ({decision.label})" in repr(decision)
    several = single.ask_many(3)
    assert several.labels == [called[arm] for arm in several.arms]
    for unnamed in (
        keyed(service).ask_many(["a"]),
        service.create(f"m{next(_numbers)}", "exp3", GRAPHS[2]).ask_many(2),
    ):
        assert unnamed.labels is unnamed[:1].labels is None
