"""Arms that are added and retired over HTTP: as an agent's, written down, replayed, repeated and refused."""

import io
import json

import numpy as np
import pyarrow.parquet as pq
import pytest

import sidelong as sl
from service.deployments import KEYS, until
from service.stores import opened, small_blocks
from service.test_keyed import KEYS as SKUS
from service.test_keyed import ask, rebuilt, run
from sidelong.service.store.feedback import ToldItems
from sidelong.service.store.lifecycle_commands import AddArm, RetireArm
from sidelong.service.store.rules import Tell

LABELS = ["mini", "haiku", "large"]
EDGES = {"n_arms": 3, "edges": [[0, 1], [2, 1], [2, 0]], "self_loops": True}
SPEC = {"learner": "exp3-set", "options": {}, "graph": EDGES, "seed": 11, "expire_after": 1000}


def add(each, key=None, **body):
    headers = {} if key is None else {"Idempotency-Key": key}
    return each.deployment.post(f"{each.path}/arms", body, headers=headers)


def retire(each, arm):
    return each.deployment.request("DELETE", f"{each.path}/arms/{arm}")


def loss(t, arm):
    return t * (arm + 2) % 7 / 6


def losses(decision, t):
    return {str(arm): loss(t, arm) for arm in decision["reveals"]}


class Twin:
    """What an agent, or a family, does that is asked and told the same."""

    def __init__(self, kind):
        graph = sl.FeedbackGraph.from_edges(EDGES["edges"], 3, self_loops=True)
        make = sl.Family if kind == "keyed" else sl.Agent
        self.player = make("exp3-set", graph, seed=11)
        self.asked = []

    @property
    def one(self):
        return self.player[KEYS[0]] if isinstance(self.player, sl.Family) else self.player

    def ask(self, decision, **how):
        made = self.one.ask(**how)
        assert decision["arm"] == made.arm
        assert decision["probability"] == made.probability
        assert decision["reveals"] == made.reveals.tolist()
        return made.id

    def tell(self, name, told, graph=None):
        made = next(each for each in self.one.pending if each.id == name)
        self.one.tell(made, {int(arm): value for arm, value in told.items()}, graph)


def play(each, twin, first, last, **how):
    for t in range(first, last):
        decision = each.decide(**how)
        name = twin.ask(decision, **how)
        told = losses(decision, t)
        each.tell(decision, told).ok()
        twin.tell(name, told)


def test_it_plays_as_an_agent_does_and_decisions_pending_across_changes_are_told_as_they_were_asked(deployment, kind):
    each, twin = deployment.create(kind, labels=LABELS, **SPEC), Twin(kind)
    play(each, twin, 1, 9)
    early = each.decide()
    name = twin.ask(early)
    added = add(each, label="nova", reveals=["mini", 1], revealed_by=[2])
    assert added.status == 201, added.body
    assert added.body["arm"] == 3
    assert {"label": "nova", "retired": False, "n_arms": 4, "duplicate": False}.items() <= added.body.items()
    assert twin.player.add_arm(reveals=[0, 1], revealed_by=[2]) == 3
    play(each, twin, 9, 30)
    between = each.decide()
    second = twin.ask(between)
    assert retire(each, "haiku").body["retired"] is True
    twin.player.retire(1)
    for made, which, t in ((between, second, 50), (early, name, 51)):
        told = losses(made, t)
        assert each.tell(made, told).ok().body["learned"] is True
        twin.tell(which, told)
        assert each.tell(made, told).ok().body["duplicate"] is True
    play(each, twin, 60, 80)
    before = each.digest()
    deployment.restart()
    assert each.digest() == before
    play(each, twin, 80, 90)
    play(each, twin, 90, 95, available=[0, 3])
    with deployment.beside() as other:
        beside = other.known(kind, each.name)
        assert beside.digest() == each.digest()
        add(beside, label="fifth").ok()
        twin.player.add_arm()
        play(beside, twin, 100, 110)
        other.clear()


def off_policy(rows, arm):
    """Return what an arm would have cost per round, from the log of rounds that were told at once."""
    estimates, seen = [], [0.5]
    for row in rows:
        baseline = sum(seen) / len(seen)
        estimate = baseline
        if arm in row["observed"]:
            place = row["observed"].index(arm)
            seen.append(row["losses"][place])
            estimate += (row["losses"][place] - baseline) / row["observe_probabilities"][place]
        estimates.append(estimate)
    return sum(estimates) / len(estimates)


def test_the_journal_alone_gives_the_same_state(deployment, kind):
    each = deployment.create(kind, labels=LABELS, holdout={"arm": 1, "share": 0.3}, **SPEC)
    for t in range(12):
        decisions = each.decide(1 + t % 3)
        each.tell_many(decisions[:1], 0.25).ok()
        if t == 4:
            add(each, label="nova", revealed_by=[0]).ok()
        if t == 8:
            retire(each, 0).ok()
        if t == 9:
            deployment.restart()
    before, state, keys = each.digest(), each.state(), each.deployment.get(f"{each.path}/keys").body
    assert each.digest() == before  # looking at keys, and at the state, has changed nothing
    deployment.restart_without_snapshots()
    assert each.digest() == before
    assert each.state() == state
    assert each.deployment.get(f"{each.path}/keys").body == keys


def test_what_is_shown_of_the_arms(deployment, kind):
    each = deployment.create(kind, labels=LABELS, **SPEC)
    for _ in range(20):
        first = each.decide()
        each.tell(first, 1.0).ok()
    add(each, label="nova").ok()
    retire(each, "mini").ok()
    decisions = []
    for _ in range(40):
        decisions.append(each.decide())
        each.tell(decisions[-1], 0.0 if decisions[-1]["arm"] == 3 else 1.0).ok()
    assert {made["arm"] for made in decisions} == {1, 2, 3}
    assert {made["label"] for made in decisions} == {"haiku", "large", "nova"}
    state = each.state()
    assert [arm["retired"] for arm in state["arms"]["items"]] == [True, False, False, False]
    assert [arm["label"] for arm in state["arms"]["items"]] == [*LABELS, "nova"] == state["labels"]
    assert state["graph"]["n_arms"] == 4
    changes = each.deployment.get(f"{each.path}/changes").ok().body["items"][1:]
    assert [each["change"].get("added", each["change"].get("retired")) for each in changes] == [3, 0]
    assert each.deployment.get(f"{each.path}/graph").ok().body["labels"] == [*LABELS, "nova"]
    rows = each.rows()
    assert [rows[made["id"]]["label"] for made in decisions] == [made["label"] for made in decisions]
    mean = off_policy([rows[made["id"]] for made in decisions], 3)  # over the rounds since it came
    assert state["arms"]["items"][3]["mean"] == pytest.approx(min(max(mean, 0.0), 1.0))
    for made in (first, *decisions):
        assert rows[made["id"]]["observed"] == made["reveals"]
        seen = deployment.get(f"/v1/decisions/{made['id']}").ok().body
        assert (seen["reveals"], seen["label"]) == (made["reveals"], made["label"])
    about = pq.read_schema(io.BytesIO(each.log().body)).metadata[b"sidelong.experiment"]
    assert json.loads(about)["n_arms"] == 4
    if kind == "keyless":
        evaluated = deployment.post(f"{each.path}/evaluation", {}).ok().body
        assert [arm["label"] for arm in evaluated["arms"] if arm["arm"] == 3] == ["nova"]


def test_a_change_is_repeated_under_its_idempotency_key(deployment, kind):
    each = deployment.create(kind, labels=LABELS, **SPEC)
    asked = {"label": "nova", "reveals": ["mini"], "revealed_by": [1]}
    decided = each.decide(key="decision")
    first = add(each, key="nova", **asked)
    each.change(labels=["a", "b", "c", "d"]).ok()
    retire(each, 0).ok()
    for _ in range(2):
        again = add(each, key="nova", **asked)
        assert (again.status, again.body) == (200, {**first.body, "duplicate": True})
        deployment.restart()
    before = each.sequence()
    for body in ({**asked, "label": "a"}, {**asked, "reveals": []}, {**asked, "revealed_by": ["no such arm"]}):
        refused = add(each, key="nova", **body)
        assert refused.code == (409, "key_reused"), body
    assert add(each, key="decision", label="z").code == (409, "key_reused")
    assert each.ask(key="nova").code == (409, "key_reused")
    assert each.decide(key="decision")["id"] == decided["id"]
    assert retire(each, "0").body["duplicate"] is True
    assert each.sequence() == before


def test_decisions_are_repeated_after_the_arms_have_changed(deployment, kind):
    each = deployment.create(kind, labels=LABELS, **SPEC)
    asked = [{}, {"available": ["mini", "large"]}, {"graph": {"name": "complete", "n": 3}}]
    made = [each.decide(key=f"k{place}", **body) for place, body in enumerate(asked)]
    add(each, label="nova").ok()
    asked += [{}, {"available": ["nova", "large"]}, {"available": ["mini", "haiku", "large"]}]
    made += [each.decide(key=f"k{place}", **body) for place, body in enumerate(asked) if place > 2]
    retire(each, "haiku").ok()
    deployment.restart()
    for place, (body, decision) in enumerate(zip(asked, made, strict=True)):
        again = each.ask(key=f"k{place}", **body)
        assert again.status == 200, (body, again.body)
        assert again.decisions[0]["id"] == decision["id"]
        assert again.decisions[0]["reveals"] == decision["reveals"]
    assert each.ask(key="k0", available=["mini"]).code == (409, "key_reused")


def test_an_outcome_may_come_with_the_graph_of_then_or_of_now(deployment, kind):
    each, twin = deployment.create(kind, **SPEC), Twin(kind)
    asked = [each.decide() for _ in range(2)]
    names = [twin.ask(made) for made in asked]
    add(each, reveals=[0]).ok()
    twin.player.add_arm(reveals=[0])
    told = {str(arm): loss(1, arm) for arm in range(3)}
    for made, name, n in zip(asked, names, (3, 4), strict=True):
        graph = {"name": "complete", "n": n}
        sent = told if n == 3 else {**told, "3": 0.5}
        assert each.tell(made, sent, graph=graph).ok().body["learned"] is True
        twin.tell(name, told, sl.graphs.complete(3))
        add(each).ok()
        twin.player.add_arm()
        assert each.tell(made, sent, graph=graph).ok().body["duplicate"] is True
        assert each.tell(made, {**sent, "0": 1.0}, graph=graph).code == (409, "conflict")
    play(each, twin, 1, 10)
    assert each.tell(each.decide(), told, graph={"name": "complete", "n": 3}).code == (422, "invalid")


def test_pending_decisions_are_overridden_cancelled_and_expire_as_they_were_asked(deployment, kind):
    each = deployment.create(kind, labels=LABELS, default_loss=1.0, **SPEC)
    first, second, third = (each.decide() for _ in range(3))
    add(each, label="nova").ok()
    other = deployment.post(f"/v1/decisions/{first['id']}/override", {"arm": "nova"})
    assert other.code == (422, "invalid")
    carried = "large" if first["arm"] != 2 else "mini"
    done = deployment.post(f"/v1/decisions/{first['id']}/override", {"arm": carried}).ok().body
    each.tell(done, 0.5).ok()
    each.cancel(second).ok()
    deployment.hands.move(1001)
    until(lambda: each.counts("defaulted") == (1,))
    assert each.tell(third, 0.5).code == (410, "expired")
    before = each.digest()
    deployment.restart_without_snapshots()
    assert each.digest() == before


def test_a_clone_goes_on_with_the_arms_that_there_are(deployment, kind):
    each = deployment.create(kind, labels=LABELS, **SPEC)
    for t in range(20):
        each.tell(each.decide(), 0.1 * (t % 5)).ok()
    add(each, label="nova").ok()
    retire(each, "haiku").ok()
    for learned in (True, False):
        reply, clone = each.clone(learned=learned)
        assert reply.status == 201, reply.body
        state = clone.state()
        assert state["labels"] == [*LABELS, "nova"]
        assert [arm["retired"] for arm in state["arms"]["items"]] == [False, True, False, False]
        if learned:
            assert [made["probability"] for made in clone.decide(1)] == [made["probability"] for made in each.decide(1)]
        add(clone, label="fifth").ok()
        assert {made["arm"] for made in (clone.decide() for _ in range(60))} == {0, 2, 3, 4}
        before = clone.digest()
        deployment.restart_without_snapshots()
        assert clone.digest() == before
    assert each.state()["graph"]["n_arms"] == 4


def test_the_agent_file_has_the_arms(on_sqlite, kind, tmp_path):
    each = on_sqlite.create(kind, labels=LABELS, **SPEC)
    each.tell(each.decide(), 0.5).ok()
    add(each, label="nova").ok()
    path = tmp_path / "agent.sidelong"
    path.write_bytes(on_sqlite.get(f"{each.path}/agent").ok().body)
    player = (sl.Family if kind == "keyed" else sl.Agent).load(path)
    assert list(player.graph.labels) == [*LABELS, "nova"]


def test_a_learner_that_cannot_says_so_and_which_can(on_sqlite, kind):
    each = on_sqlite.create(kind)
    for reply in (add(each), retire(each, 0)):
        assert reply.code == (409, "fixed_arms")
        assert "exp3.g++" in reply.body["detail"]
        able = [name for name in sl.learners.names() if sl.learners.catalogue.choose(name, {}).sleeps]
        assert " or ".join(able) in reply.body["detail"]


def test_a_learner_with_features_retires_arms_and_takes_none_in(on_sqlite):
    each = on_sqlite.create("keyless", learner="squarecb.g", options={}, features=["x"])
    pending = each.decide(context={"x": 1})
    retire(each, 0).ok()
    each.tell(pending, 0.5).ok()
    assert 0 not in {each.decide(context={"x": 1})["arm"] for _ in range(30)}
    assert add(each).code == (409, "fixed_arms")
    before = each.digest()
    on_sqlite.restart_without_snapshots()
    assert each.digest() == before


def test_what_is_refused_changes_nothing(on_sqlite, kind):
    spec = {**SPEC, "holdout": {"arm": 2, "share": 0.1}}
    each = on_sqlite.create(kind, labels=LABELS, **spec)
    before = each.sequence()
    for body, path in (
        ({}, "body.label"),
        ({"label": "mini"}, "body.label"),
        ({"label": "x", "reveals": [3]}, "body.reveals"),
        ({"label": "x", "reveals": [0, 0]}, "body.reveals"),
        ({"label": "x", "revealed_by": ["nova"]}, "body.revealed_by"),
        ({"label": "x", "reveals": [-1]}, "body.reveals.0"),
        ({"label": "x" * 201}, "body.label"),
        ({"label": "x", "weight": 1}, "body.weight"),
    ):
        refused = add(each, **body)
        assert (refused.status, refused.body["path"]) == (422, path), (body, refused.body)
    for arm, code in ((3, 422), ("nova", 422), ("-1", 422), (2, 409)):
        refused = retire(each, arm)
        assert (refused.status, refused.body["path"]) == (code, "path.arm"), (arm, refused.body)
    assert "holdout" in retire(each, 2).body["detail"]
    assert each.sequence() == before
    for arm in (0, 1):
        retire(each, arm).ok()
    refused = add(each, label="x", reveals=["mini"])
    assert (refused.status, refused.body["path"]) == (422, "body.reveals")
    assert "retired" in refused.body["detail"]
    for body, path in (
        ({"state": "stopped", "fallback": "mini"}, "body.fallback"),
        ({"state": "frozen", "play": 1}, "body.play"),
        ({"state": "frozen", "play": [0.5, 0.0, 0.5]}, "body.play"),
    ):
        refused = each.change(**body)
        assert (refused.status, refused.body["path"]) == (422, path), refused.body
        assert "retired" in refused.body["detail"]
    refused, _ = each.clone(holdout={"arm": "mini", "share": 0.1})
    assert (refused.status, refused.body["path"]) == (422, "body.holdout.arm")
    each.change(state="frozen", play=[0.0, 0.0, 1.0]).ok()
    assert each.decide()["arm"] == 2
    plain = on_sqlite.create(kind, **SPEC)
    assert add(plain, label="x").body["path"] == "body.label"
    for arm in (0, 1):
        retire(plain, arm).ok()
    assert "last one" in retire(plain, 2).body["detail"]
    plain.change(state="archived").ok()
    assert add(plain).code == (409, "archived")


def test_only_an_admin_changes_arms(on_sqlite, kind):
    each = on_sqlite.create(kind, **SPEC)
    token = on_sqlite.token("decide", "feedback", "read")
    assert on_sqlite.post(f"{each.path}/arms", {}, token=token).status == 403
    assert on_sqlite.request("DELETE", f"{each.path}/arms/0", token=token).status == 403
    bound = on_sqlite.token("admin", experiment=each.name)
    assert on_sqlite.post(f"{each.path}/arms", {}, token=bound).status == 201


def test_keys_that_are_not_in_memory_follow_when_they_are_used(database, monkeypatch):
    """Blocks of keys that are only in the database play as a family does that has followed every change at once."""
    small_blocks(monkeypatch, 3)
    graph = sl.graphs.star(4, hub=1)
    family = sl.Family("exp3-set", graph, seed=3)
    changes = [
        (AddArm("e", reveals=[0], revealed_by=[2]), lambda: family.add_arm(reveals=[0], revealed_by=[2])),
        (RetireArm("e", "3"), lambda: family.retire(3)),
        (AddArm("e"), family.add_arm),
    ]
    with opened(database, max_key_bytes=4000) as bench:
        bench.create(keyed=True, graph=graph, learner="exp3-set")
        pending = []
        for night, (command, change) in enumerate([(None, None), *changes]):
            if command is not None:
                run(bench, command)
                change()
            for keys in (SKUS[night :: 2 + night], SKUS[:4], [f"new {night}"]):
                made, batch = ask(bench, keys), family.ask(keys)
                assert made.draws.arms == batch.arms.tolist()
                assert made.draws.probabilities == batch.probabilities.tolist()
                pending.append((made, batch))
            bench.store.save(least=1)
            if night != 1:  # those of one night are told after two further changes
                tell_all(bench, family, pending)
        tell_all(bench, family, pending)
        assert bench.digest() == rebuilt(bench)
        with opened(database, bench.hands) as other:
            assert other.digest() == bench.digest()
            player = other.store.view("e", together)
            np.testing.assert_array_equal(player.estimates().means, family.estimates(player.keys).means)


def together(experiment, reading):
    experiment.load_all(reading)
    return sl.Family.from_contents(*experiment.blocks.together(), "the keys")


def tell_all(bench, family, pending):
    for made, batch in pending:
        losses = [
            loss(number, arm) for number, arm in zip(range(len(batch.reveals)), batch.reveals.tolist(), strict=True)
        ]
        sizes = np.diff(batch.offsets).tolist()
        run(bench, Tell(f"#{made.experiment}", ToldItems(list(made.draws.numbers), sizes, np.array(losses))))
        family.tell(batch, losses)
    pending.clear()
