"""A server meets an experiment of another version of its learner, and what a server leaves when it stops."""

import json
from dataclasses import replace

import numpy as np
import pyarrow.parquet as pq
import pytest

import sidelong as sl
from service.deployments import Stored
from service.servers import decisions_of
from service.stores import last_snapshot, opened
from sidelong.errors import ServiceError
from sidelong.learners import exp3gpp

GRAPH = sl.graphs.path(4)
MESSAGE = {"name": "path", "n": 4}
COSTS = np.array([0.9, 0.2, 0.6, 0.7])
KEYS = ["bread", "milk", "rolls"]
RAISED = {"exp3-set": 2}

NIGHTLY = pytest.param(False, marks=pytest.mark.nightly, id="plain")
keyed = pytest.mark.parametrize("keyed", [NIGHTLY, pytest.param(True, id="keyed")])


def create(server, name, *, keyed, **more):
    body = {"name": name, "learner": "exp3-set", "graph": MESSAGE, "seed": 7, "keyed": keyed, **more}
    status, made = server.post("/v1/experiments", body)
    assert status == 201, made
    return made


def decide(server, name, *, keyed):
    """Return new decisions: one, or one for each key."""
    status, made = server.post(f"/v1/experiments/{name}/decisions", {"keys": KEYS} if keyed else {})
    assert status == 201, made
    return decisions_of(made)


def tell(server, made):
    for each in made:
        losses = {str(arm): float(COSTS[arm]) for arm in each["reveals"]}
        status, reply = server.post(f"/v1/decisions/{each['id']}/feedback", {"losses": losses})
        assert status == 200, reply


def play(server, name, rounds, *, keyed):
    for _ in range(rounds):
        tell(server, decide(server, name, keyed=keyed))


def export(server, name, folder):
    status, content = server.get(f"/v1/experiments/{name}/log")
    assert status == 200
    path = folder / f"{name}.parquet"
    path.write_bytes(content)
    return path


def unwaited(address):
    """Return the number of events behind the last snapshot of each experiment."""
    with opened(address) as bench, bench.database.reading() as reading:
        found = {}
        for each in reading.experiments():
            snapshot = last_snapshot(reading, reading.find(each.name).key)
            found[each.name] = each.head - (0 if snapshot is None else snapshot.seq)
        return found


@keyed
def test_an_experiment_of_another_version_is_refused_exported_and_continued_by_a_new_one(
    nursery, database, tmp_path, keyed
):
    server = nursery.start(database)
    assert create(server, "orders", keyed=keyed)["learner_version"] == 1
    server.post("/v1/experiments", {"name": "other", "learner": "uniform", "graph": MESSAGE})
    play(server, "orders", 40, keyed=keyed)
    pending = decide(server, "orders", keyed=keyed)
    _, before = server.get("/v1/experiments/orders?digest=true")
    server.stop()

    newer = nursery.start(database, RAISED)
    for path, body in (("decisions", {"keys": KEYS} if keyed else {}), ("decisions", {})):
        status, problem = newer.post(f"/v1/experiments/orders/{path}", body)
        assert (status, problem["code"]) == (503, "refused")
        assert "created with version 1 of exp3-set, and this server has version 2" in problem["detail"]
    status, problem = newer.post(f"/v1/decisions/{pending[0]['id']}/feedback", {"losses": {}})
    assert (status, problem["code"]) == (503, "refused")
    assert newer.get("/v1/experiments/orders")[1]["code"] == "refused"
    assert [each["name"] for each in newer.get("/v1/experiments")[1]["refused"]] == ["orders"]
    assert newer.get("/ready")[1]["status"] == "degraded"
    play(newer, "other", 3, keyed=False)  # the others go on

    path = export(newer, "orders", tmp_path)
    about = json.loads(pq.read_schema(path).metadata[b"sidelong.experiment"])
    assert (about["learner"], about["learner_version"]) == ("exp3-set", 1)
    with sl.connect(newer.address) as service:
        service.create("orders-2", "exp3-set", GRAPH, seed=8, keyed=keyed, log=path)
    state = newer.get("/v1/experiments/orders-2")[1]
    rounds = 40 * (len(KEYS) if keyed else 1)
    assert (state["learner_version"], state["logged"], state["round"]) == (2, rounds, 0)
    assert_continues(newer, path, keyed=keyed)
    play(newer, "orders-2", 5, keyed=keyed)
    newer.stop()

    again = nursery.start(database)  # the version that made the first one
    assert again.get("/v1/experiments/orders?digest=true")[1]["digest"] == before["digest"]
    tell(again, pending)
    play(again, "orders", 3, keyed=keyed)
    status, problem = again.post("/v1/experiments/orders-2/decisions", {"keys": KEYS} if keyed else {})
    assert (status, problem["code"]) == (503, "refused")
    assert "created with version 2 of exp3-set, and this server has version 1" in problem["detail"]
    again.stop()


def assert_continues(server, path, *, keyed):
    """Check that the new experiment decides as agents do that have learned the log."""
    table = pq.read_table(path)
    table = table.filter([each is not None for each in table["losses"].to_pylist()])
    family = sl.Family("exp3-set", GRAPH, seed=8)
    made = decide(server, "orders-2", keyed=keyed)
    for place, each in enumerate(made):
        agent = sl.Agent("exp3-set", GRAPH, seed=family.seed_of(KEYS[place]) if keyed else 8)
        own = [key == KEYS[place] for key in table["key"].to_pylist()] if keyed else [True] * len(table)
        agent.learn(table.filter(own))
        expected = agent.ask()
        assert (each["arm"], each["probability"]) == (expected.arm, expected.probability)
        assert agent.estimates().weights.argmax() == COSTS.argmin()  # and that it had learned something
    tell(server, made)


@pytest.mark.postgresql
@keyed
def test_a_rolling_upgrade_serves_experiments_with_both_versions_side_by_side(nursery, database, tmp_path, keyed):
    old = nursery.start(database)
    create(old, "orders", keyed=keyed)
    create(old, "same", keyed=keyed, learner="exp3.g++")
    play(old, "orders", 5, keyed=keyed)
    newer = nursery.start(database, RAISED)

    # The version of this learner is the same: both decide, and each takes feedback for what the other one has decided.
    for one, other in ((old, newer), (newer, old)) * 3:
        tell(other, decide(one, "same", keyed=keyed))
    states = [server.get("/v1/experiments/same?digest=true")[1] for server in (old, newer)]
    assert states[0]["digest"] == states[1]["digest"]
    assert states[0]["counts"]["told"] == states[0]["counts"]["decided"] == 6 * (len(KEYS) if keyed else 1)

    # Of this learner they have different versions: the old server goes on, and the new one changes nothing.
    for rounds in (5, 6, 7):
        status, problem = newer.post("/v1/experiments/orders/decisions", {"keys": KEYS} if keyed else {})
        assert (status, problem["code"]) == (503, "refused")
        assert "created with version 1 of exp3-set, and this server has version 2" in problem["detail"]
        assert len(pq.read_table(export(newer, "orders", tmp_path))) == rounds * (len(KEYS) if keyed else 1)
        made = decide(old, "orders", keyed=keyed)
        status, problem = newer.post(f"/v1/decisions/{made[0]['id']}/feedback", {"losses": {}})
        assert (status, problem["code"]) == (503, "refused")
        tell(old, made)
    assert newer.get("/ready")[1]["experiments"]["refused"] == 1
    assert old.get("/ready")[1]["status"] == "ok"

    # An experiment of the new version is refused by the old server, and served by a second new one.
    create(newer, "orders-2", keyed=keyed)
    second = nursery.start(database, RAISED)
    for server in (newer, second):
        play(server, "orders-2", 2, keyed=keyed)
    status, problem = old.post("/v1/experiments/orders-2/decisions", {"keys": KEYS} if keyed else {})
    assert (status, problem["code"]) == (503, "refused")
    digest = old.get("/v1/experiments/orders?digest=true")[1]["digest"]
    old.stop()
    play(newer, "same", 1, keyed=keyed)
    newer.stop()
    second.stop()

    back = nursery.start(database)  # a rollback finds all as it was
    assert back.get("/v1/experiments/orders?digest=true")[1]["digest"] == digest
    play(back, "orders", 1, keyed=keyed)
    play(back, "same", 1, keyed=keyed)
    back.stop()


@keyed
def test_a_stopped_server_leaves_no_events_to_replay(nursery, database, keyed):
    server = nursery.start(database)
    for name in ("orders", "frozen", "new"):
        create(server, name, keyed=keyed)
    for name in ("orders", "frozen"):
        play(server, name, 5, keyed=keyed)
    decide(server, "orders", keyed=keyed)
    server.send("PATCH", "/v1/experiments/frozen", {"state": "frozen", "play": 1})
    server.stop()
    assert unwaited(database) == {"frozen": 0, "new": 0, "orders": 0}
    killed = nursery.start(database)
    play(killed, "orders", 1, keyed=keyed)
    killed.kill()
    assert unwaited(database) == {"frozen": 0, "new": 0, "orders": 2 if not keyed else 1 + len(KEYS)}


@keyed
def test_an_experiment_whose_learner_is_gone_is_refused_and_its_log_is_exported(nursery, database, tmp_path, keyed):
    server = nursery.start(database)
    create(server, "orders", keyed=keyed)
    play(server, "orders", 3, keyed=keyed)
    server.stop()
    stored = Stored(database)
    stored.alter(stored.rows(), str, lambda text: text.replace('"exp3-set"', '"forgotten"'))
    server = nursery.start(database)
    status, problem = server.post("/v1/experiments/orders/decisions", {})
    assert (status, problem["code"]) == (503, "refused")
    assert "'forgotten'" in problem["detail"]
    assert len(pq.read_table(export(server, "orders", tmp_path))) == 3 * (len(KEYS) if keyed else 1)
    server.stop()


def test_versions_are_compared_when_an_experiment_comes_into_memory(database, monkeypatch):
    with opened(database) as bench:
        bench.create()
        bench.decide()
        monkeypatch.setattr(exp3gpp, "LEARNER", replace(exp3gpp.LEARNER, version=2))
        with opened(database) as other:
            for _ in range(2):
                with pytest.raises(ServiceError, match="this server has version 2") as caught:
                    other.decide()
                assert (caught.value.status, caught.value.code, caught.value.retry_after) == (503, "refused", None)
            assert other.store.states() == {"live": 0, "loading": 0, "refused": 1}
        monkeypatch.undo()
        bench.decide()
