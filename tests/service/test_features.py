"""Experiments whose learner sees features of a context: as an agent's, written down, replayed, shown and refused."""

import asyncio
import io

import numpy as np
import pytest

import sidelong as sl
from service.in_process import playing
from service.stores import lose_snapshots, opened, small_blocks
from sidelong import evaluation
from sidelong.errors import FeatureError, LearnerError, ServiceError
from sidelong.service.client import connect_async

LABELS = ["none", "small", "medium", "large"]
NAMES = ["weekday", "size", "rain"]
MAKE = {
    "name": "trays",
    "learner": "squarecb.g",
    "features": NAMES,
    "options": {"hashed": 16, "penalty": 0.5},
    "graph": {"name": "nested", "n": 4},
    "labels": LABELS,
    "seed": 5,
    "expire_after": None,
}
DECIDE = "/v1/experiments/trays/decisions"
OPTIONS = {"seed": 5, "hashed": 16, "penalty": 0.5}

#: What an experiment is made with, what a decision of it is asked with, and who decides alike.
KINDS = {
    "keyless": ({}, {}, lambda: sl.ContextualAgent("squarecb.g", sl.graphs.nested(4), **OPTIONS)),
    "keyed": (
        {"keyed": True},
        {"key": "north"},
        lambda: sl.Family("squarecb.g", sl.graphs.nested(4), **OPTIONS)["north"],
    ),
}
both_kinds = pytest.mark.parametrize("kind", KINDS)


def features(t):
    """Return what is known in round t; not everything always is."""
    known = {"weekday": "MTWTF"[t % 5], "size": t % 7 / 4, "rain": t % 3 == 0}
    return {name: value for place, (name, value) in enumerate(known.items()) if (t + place) % 4}


def loss(t, arm):
    return (t * (arm + 2) + t % 5) % 6 / 5


async def digest(client):
    return (await client.get("/v1/experiments/trays?digest=true")).json()["digest"]


@both_kinds
def test_it_decides_as_an_agent_late_and_out_of_order_and_a_replay_gives_the_same_state(tmp_path, kind):
    made_with, asked_with, agent = KINDS[kind]
    agent = agent()

    async def play(client):
        assert (await client.post("/v1/experiments", json=MAKE | made_with)).status_code == 201
        waiting = []
        for t in range(60):
            sent = {
                "context": {**features(t), "order": f"unseen {t}"},
                **({"available": [0, 1, 3]} if t % 9 == 4 else {}),
                **asked_with,
            }
            made = (await client.post(DECIDE, json=sent)).json()
            decision = agent.ask(x=features(t), available=sent.get("available"))
            assert (made["arm"], made["probability"]) == (decision.arm, decision.probability)
            assert made["reveals"] == decision.reveals.tolist()
            waiting.append((t, made, decision))
            if t % 7 == 6:  # the last one first, and two are left
                for told, answer, own in reversed(waiting[2:]):
                    losses = {str(arm): loss(told, arm) for arm in answer["reveals"]}
                    reply = await client.post(f"/v1/decisions/{answer['id']}/feedback", json={"losses": losses})
                    assert reply.json()["learned"]
                    agent.tell(own, {int(arm): value for arm, value in losses.items()})
                del waiting[2:]
        kept = (await client.get(f"/v1/decisions/{made['id']}")).json()["context"]
        assert kept == {**features(59), "order": "unseen 59"}
        state = (await client.get("/v1/experiments/trays", params=asked_with)).json()
        assert state["features"] == NAMES
        assert [arm["probability"] for arm in state["arms"]["items"]] == [None] * 4  # they depend on the context
        assert [arm["observed_count"] for arm in state["arms"]["items"]] == agent.estimates().counts.tolist()
        assert state["guarantee"]["holds"]
        assert state["guarantee"]["proved"] == ["stochastic"]
        assert state["guarantee"]["delay"]["late"] > 0
        return await digest(client)

    before = playing(tmp_path, play)
    assert playing(tmp_path, digest) == before  # from the snapshot that the server left
    with opened(f"sqlite:///{tmp_path}/played.db") as bench:
        lose_snapshots(bench.database)
        assert bench.digest("trays") == before  # from the journal alone
    assert playing(tmp_path, digest, snapshot_every=3) == before


@pytest.mark.parametrize("keys", [None, ["north"]])
def test_a_snapshot_keeps_what_was_known_for_decisions_that_wait(tmp_path, keys):
    address = f"sqlite:///{tmp_path}/service.db"
    with opened(address) as bench:
        bench.create(learner="squarecb.g", features=["a"], certificate=True, keyed=keys is not None)
        first = [bench.decide(context=f'{{"a": {t}}}', keys=keys) for t in range(5)]
        bench.tell(first[1])
        bench.store.save(least=1)
        bench.tell(first[3], 0.75)
        after = bench.digest()
    with opened(address) as bench:
        assert bench.digest() == after
        bench.tell(first[0], 1.0)
        again = bench.digest()
        lose_snapshots(bench.database)
    with opened(address) as bench:
        assert bench.digest() == again


@both_kinds
def test_predictions_are_those_of_the_agent_and_to_look_changes_nothing(tmp_path, kind):
    made_with, asked_with, agent = KINDS[kind]
    agent = agent()

    async def look(client, context, **more):
        sent = {"context": context, **asked_with, **more}
        reply = await client.post("/v1/experiments/trays/predictions", json=sent)
        return reply.status_code, reply.json()

    async def play(client):
        await client.post("/v1/experiments", json=MAKE | made_with)
        if kind == "keyed":
            status, problem = await look(client, {"weekday": "M"})
            assert (status, problem["path"]) == (404, "body.key")  # it comes with its first decision
            status, problem = await look(client, {"weekday": "M"}, key=None)
            assert (status, problem["path"]) == (422, "body.key")
        else:
            before = await digest(client)
            status, found = await look(client, {"weekday": "M"})
            assert (status, [item["loss"] for item in found["items"]]) == (200, [0.0] * 4)
            assert await digest(client) == before
        for t in range(30):
            made = (await client.post(DECIDE, json={"context": features(t), **asked_with})).json()
            losses = [loss(t, arm) for arm in made["reveals"]]
            await client.post(f"/v1/decisions/{made['id']}/feedback", json={"losses": losses})
            agent.tell(agent.ask(x=features(t)), losses)
        before = await digest(client)
        found = (await look(client, {"weekday": "T", "size": 0.5, "unseen": 1}))[1]
        expected = agent.predict({"weekday": "T", "size": 0.5})
        assert {item["arm"]: item["loss"] for item in found["items"]} == dict(enumerate(expected.tolist()))
        assert [item["loss"] for item in found["items"]] == sorted(expected.tolist())
        assert found["items"][0]["label"] == LABELS[found["items"][0]["arm"]]
        assert len((await look(client, {"weekday": "T"}, limit=2))[1]["items"]) == 2
        assert await digest(client) == before
        status, problem = await look(client, {"other": 1})
        assert (status, problem["path"]) == (422, "body.context")
        await client.post("/v1/experiments", json={"name": "plain", "graph": {"name": "nested", "n": 3}})
        reply = await client.post("/v1/experiments/plain/predictions", json={"context": {"a": 1}})
        assert (reply.status_code, reply.json()["code"]) == (409, "no_features")

    playing(tmp_path, play)


@pytest.mark.parametrize(
    ("changed", "path", "says"),
    [
        ({"features": None}, "body.learner", "say which names of a context it sees"),
        ({"learner": "exp3-set"}, "body.learner", "exp3-set does not see contexts"),
        ({"options": {"gama_scale": 3}}, "body.learner", "Did you mean 'gamma_scale'"),
        ({"options": {"regressor": "ridge"}}, "body.learner", "no option 'regressor'"),
        ({"options": {"hashed": 0}}, "body.learner", "hashed must be a whole number"),
        ({"options": {"hashed": 4096}}, "body.options", "Give a smaller option hashed"),
        ({"features": []}, "body.features", "at least 1 item"),
        ({"features": [3]}, "body.features.0", "string"),
    ],
)
def test_what_cannot_be_made_is_refused(tmp_path, changed, path, says):
    async def make(client):
        body = {name: value for name, value in (MAKE | changed).items() if value is not None}
        reply = await client.post("/v1/experiments", json=body)
        assert reply.status_code == 422
        assert reply.json()["path"] == path
        assert says in reply.json()["detail"]
        assert (await client.get("/v1/experiments")).json()["total"] == 0

    playing(tmp_path, make)


@pytest.mark.parametrize(
    ("context", "says"),
    [
        (None, "send a context with at least one of weekday, size, rain"),
        ({"order": 7}, "send a context with at least one of weekday, size, rain"),
        ({"size": None}, "Leave out what is missing"),
        ({"size": [1, 2]}, "a number or a word"),
        ({"size": {"a": 1}}, "a number or a word"),
        ({"size": 1e9}, "Divide it by its usual size"),
        ({"size": 10**400}, "finite number"),
    ],
)
@both_kinds
def test_a_context_that_cannot_be_read_is_refused_and_nothing_happens(tmp_path, context, says, kind):
    made_with, asked_with, _ = KINDS[kind]

    async def play(client):
        await client.post("/v1/experiments", json=MAKE | made_with)
        for _ in range(2):  # before the first decision, and after it
            before = await digest(client)
            reply = await client.post(DECIDE, json=asked_with | ({} if context is None else {"context": context}))
            assert (reply.status_code, reply.json()["path"]) == (422, "body.context")
            assert says in reply.json()["detail"]
            assert await digest(client) == before
            await client.post(DECIDE, json={"context": {"size": 1}, **asked_with})

    playing(tmp_path, play)


def test_a_batch_has_a_context_for_each_key_or_one_for_all(tmp_path, monkeypatch):
    small_blocks(monkeypatch, 3)  # ten keys are in four of them
    family = sl.Family("squarecb.g", sl.graphs.nested(4), **OPTIONS)
    keys = [f"shop {k}" for k in range(10)]

    async def play(client):
        await client.post("/v1/experiments", json=MAKE | {"keyed": True})
        for t in range(6):
            each = [features(11 * t + k + 1) or {"size": 1} for k in range(10)]
            given = each if t % 2 else each[0]
            made = (await client.post(DECIDE, json={"keys": keys, "context": given})).json()
            plan = family.ask(keys, x=each if t % 2 else [each[0]] * 10)
            assert (made["arms"], made["probabilities"]) == (plan.arms.tolist(), plan.probabilities.tolist())
            losses = [loss(t, arm) for arm in plan.reveals.tolist()]
            sizes = np.diff(plan.offsets).tolist()
            await client.post("/v1/feedback", json={"ids": made["ids"], "sizes": sizes, "losses": losses})
            family.tell(plan, losses)
            found = (await client.get(f"/v1/decisions/{made['ids'][7]}")).json()["context"]
            assert found == (each[7] if t % 2 else each[0])
        before = await digest(client)
        wrong = [*each[:9], {"size": "x" * 10, "rain": [1]}]
        for sent, says in (
            ({"keys": keys, "context": wrong}, "The features of the key 'shop 9'"),
            ({"keys": ["new", *keys[1:]], "context": wrong}, "The features of the key 'shop 9'"),
            ({"keys": keys, "context": each[:9]}, "10 keys and 9 contexts"),
            ({"key": "shop 1", "context": each[:1]}, "no keys and 1 contexts"),
        ):
            reply = await client.post(DECIDE, json=sent)
            assert (reply.status_code, reply.json()["path"]) == (422, "body.context")
            assert says in reply.json()["detail"]
        assert await digest(client) == before
        log = evaluation.read_log(
            io.BytesIO((await client.get("/v1/experiments/trays/log")).content), where={"size": 1.0}
        )
        assert 0 < log.n_rounds < 60
        return before

    before = playing(tmp_path, play)
    with opened(f"sqlite:///{tmp_path}/played.db") as bench:
        lose_snapshots(bench.database)
        assert bench.digest("trays") == before  # from the journal alone


def test_without_features_the_learner_sees_nothing_of_a_context(tmp_path):
    with opened(f"sqlite:///{tmp_path}/service.db") as bench:
        bench.create("with", learner="glance")
        bench.create("without", learner="glance")
        for t in range(20):
            one = bench.decide("with", context=f'{{"weekday": {t}}}')
            two = bench.decide("without")
            assert (one.arm, one.probability) == (two.arm, two.probability)
            bench.tell(one, t % 3 / 2)
            bench.tell(two, t % 3 / 2)


def test_estimates_are_given_a_context_only_where_that_is_asked(tmp_path):
    async def play(client):
        await client.post("/v1/experiments", json=MAKE)
        for t in range(40):
            made = (await client.post(DECIDE, json={"context": {"weekday": "MT"[t % 2], "size": t % 4}})).json()
            losses = [0.2 + 0.6 * (t % 2)] * len(made["reveals"])  # Mondays are cheap
            await client.post(f"/v1/decisions/{made['id']}/feedback", json={"losses": losses})
        log = (await client.get("/v1/experiments/trays/log")).content
        evaluated = "/v1/experiments/trays/evaluation"
        every, monday, both, nobody = [
            await client.post(evaluated, json=body)
            for body in (
                {},
                {"where": {"weekday": "M"}},
                {"where": {"weekday": "T", "size": 3.0}},
                {"where": {"weekday": 1}},
            )
        ]
        assert (every.json()["rounds"], monday.json()["rounds"], both.json()["rounds"]) == (40, 20, 10)
        assert every.json()["played"] == pytest.approx(0.5)
        assert monday.json()["played"] == pytest.approx(0.2)
        assert [arm["value"] for arm in monday.json()["arms"]] == pytest.approx([0.2] * 4, abs=0.05)
        assert nobody.status_code == 422
        assert "No decision of the log had" in nobody.json()["detail"]
        chosen = evaluation.read_log(io.BytesIO(log), where={"weekday": "M"})
        assert chosen.n_rounds == 20
        assert np.unique(chosen.loss).tolist() == [0.2]

    playing(tmp_path, play)


def test_the_client_makes_it_asks_and_predicts(nursery, tmp_path):
    running = nursery.start(f"sqlite:///{tmp_path}/service.db")
    agent = sl.ContextualAgent("squarecb.g", sl.graphs.nested(4), seed=2, forgetting=0.9)
    with sl.connect(running.address) as service:
        made = service.create("e", "squarecb.g", sl.graphs.nested(4), seed=2, features=NAMES, forgetting=0.9)
        for t in range(12):
            decision, own = made.ask(context=features(t)), agent.ask(features(t))
            assert decision.arm == own.arm
            assert made.tell(decision, [loss(t, arm) for arm in decision.reveals])
            agent.tell(own, [loss(t, arm) for arm in own.reveals])
        assert made.predict({"size": 0.5}).tolist() == agent.predict({"size": 0.5}).tolist()
        with pytest.raises(FeatureError, match="send a context"):
            made.ask()
        many = service.create("many", "squarecb.g", sl.graphs.nested(4), seed=2, features=NAMES, keyed=True)
        family = sl.Family("squarecb.g", sl.graphs.nested(4), seed=2)
        for t in range(3):
            plan, own = (
                many.ask_many(["a", "b"], context=[{"size": t}, {"rain": True}]),
                family.ask(["a", "b"], x=[{"size": t}, {"rain": True}]),
            )
            assert plan.arms.tolist() == own.arms.tolist()
            assert many.tell_many(plan, [0.5] * len(plan.reveals)) == family.tell(own, [0.5] * len(own.reveals))
        assert many.predict({"size": 0.5}, "b").tolist() == family.predict(["b"], [{"size": 0.5}])[0].tolist()
        with pytest.raises(FeatureError, match="one for each of the 2 keys"):
            many.ask_many(["a", "b"], context=[{"size": 1}])
        with pytest.raises(LearnerError, match="does not see contexts"):
            service.create("f", "exp3-set", sl.graphs.nested(4), features=["a"])
        with pytest.raises(ServiceError, match="predicts nothing"):
            service.create("g", "glance", sl.graphs.nested(4)).predict({"a": 1})

    async def beside():
        async with connect_async(running.address) as service:
            return (await service["e"].predict({"size": 0.5})).tolist()

    assert asyncio.run(beside()) == agent.predict({"size": 0.5}).tolist()
    running.stop()


@pytest.mark.parametrize("keyed", [False, True])
def test_features_advise_glance_as_they_advise_an_agent_and_a_replay_gives_the_same_state(tmp_path, keyed):
    make = {**MAKE, "learner": "glance", "keyed": keyed}
    options = {"hashed": 16, "penalty": 0.5}
    agent = sl.ContextualAgent("glance", sl.graphs.nested(4), seed=5, **options)
    family = sl.Family("glance", sl.graphs.nested(4), seed=5, regressor="ridge", **options)

    async def play(client):
        assert (await client.post("/v1/experiments", json=make)).status_code == 201
        for t in range(40):
            advice = {"team": t % 4} if t % 3 else None
            sent = {"context": features(t)} | ({"key": "k"} if keyed else {}) | ({"advice": advice} if advice else {})
            made = (await client.post(DECIDE, json=sent)).json()
            own = family["k"].ask(advice=advice, x=features(t)) if keyed else agent.ask(features(t), advice=advice)
            assert (made["arm"], made["probability"]) == (own.arm, own.probability)
            losses = {str(arm): loss(t, arm) for arm in made["reveals"]}
            await client.post(f"/v1/decisions/{made['id']}/feedback", json={"losses": losses})
            (family["k"] if keyed else agent).tell(own, [loss(t, arm) for arm in made["reveals"]])
        refused = await client.post(DECIDE, json=sent | {"advice": {"features": 1}})
        assert (refused.status_code, refused.json()["path"]) == (422, "body.advice")
        state = (await client.get("/v1/experiments/trays" + ("?key=k" if keyed else ""))).json()
        assert [row["name"] for row in state["advisers"]] == ["features", "team"]
        return await digest(client)

    before = playing(tmp_path, play)
    assert playing(tmp_path, digest) == before
    with opened(f"sqlite:///{tmp_path}/played.db") as bench:
        lose_snapshots(bench.database)
        assert bench.digest("trays") == before
