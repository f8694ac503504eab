"""Experiments with keys over HTTP: batches, verdicts, what is shown, the log, and what is refused."""

import base64
import io
import itertools
import json

import httpx
import numpy as np
import pyarrow.parquet as pq
import pytest

import sidelong as sl
from service.servers import decisions_of, in_columns

_numbers = itertools.count(1)
KEYS = ["bread", "milk", "apples", "candles"]


@pytest.fixture
def name(server):
    """Return the name of an experiment with keys, of this test alone."""
    made = f"k{next(_numbers)}"
    graph = {"name": "cliques", "sizes": [3, 2]}
    body = {"name": made, "learner": "exp3.g++", "graph": graph, "seed": 4, "keyed": True}
    status, state = server.post("/v1/experiments", body)
    assert (status, state["keys"], state["guarantee"]) == (201, 0, None)
    assert server.post("/v1/experiments", body)[0] == 200
    status, problem = server.post("/v1/experiments", {**body, "keyed": False})
    assert (status, "already, which has keys." in problem["detail"]) == (409, True)
    return made


def ask(server, name, **body):
    status, reply = server.post(f"/v1/experiments/{name}/decisions", body)
    assert status == 201, reply
    return [{"key": key, **each} for key, each in zip(body.get("keys", [None]), decisions_of(reply), strict=True)]


def feedback(items, loss=0.5):
    return in_columns([{"id": each["id"], "losses": [loss] * len(each["reveals"])} for each in items])


def test_keys_are_answered_with_columns_that_are_those_of_single_agents(server, name):
    family = sl.Family("exp3.g++", sl.graphs.cliques([3, 2]), seed=4)
    agents = {key: sl.Agent("exp3.g++", family.graph, seed=family.seed_of(key)) for key in KEYS}
    rng = np.random.default_rng(1)
    waiting = []
    for _ in range(20):
        keys = rng.choice(KEYS, rng.integers(1, 6)).tolist()
        for key, item in zip(keys, ask(server, name, keys=keys), strict=True):
            decision = agents[key].ask()
            assert (item["key"], item["round"], item["arm"]) == (key, decision.round, decision.arm)
            assert item["probability"] == decision.probability
            assert item["reveals"] == decision.reveals.tolist()
            waiting.append((item, decision, rng.random(decision.reveals.size).tolist()))
        some = sorted(rng.permutation(len(waiting))[: rng.integers(1, 7)].tolist())
        chosen = [waiting[k] for k in some]
        waiting = [each for k, each in enumerate(waiting) if k not in some]
        items = [{"id": item["id"], "losses": losses} for item, _, losses in chosen]
        status, reply = server.post("/v1/feedback", in_columns(items))
        assert (status, reply["learned"]) == (200, len(items))
        for item, decision, losses in chosen:
            agents[item["key"]].tell(decision, losses)
    assert server.post("/v1/feedback", in_columns(items))[1]["learned"] == 0


def test_a_batch_is_shown_as_it_happens_without_an_arm_and_a_single_decision_with_it(server, name):
    made = ask(server, name, keys=KEYS[:3])
    server.post("/v1/feedback", feedback(made[:2]))
    server.post(f"/v1/decisions/{made[2]['id']}/cancel")
    address, after = f"{server.address}/v1/experiments/{name}/events", {"Last-Event-ID": "1"}
    with httpx.stream("GET", address, headers=after, timeout=120.0) as stream:
        lines = (line for line in stream.iter_lines() if line.startswith("data:"))
        shown = [json.loads(line[5:]) for line in itertools.islice(lines, 3)]
    assert [(each["kind"], each["arm"]) for each in shown] == [
        ("decided", None),
        ("told", None),
        ("cancelled", made[2]["arm"]),
    ]


def test_one_key_and_one_decision_by_its_id(server, name):
    (item,) = ask(server, name, key="bread")
    assert item["key"] == "bread"
    shown = server.get(f"/v1/decisions/{item['id']}")[1]
    assert (shown["key"], shown["status"], shown["round"], shown["losses"]) == ("bread", "outstanding", 1, None)
    assert len(shown["observe_probabilities"]) == len(item["reveals"])
    losses = {str(arm): 0.25 for arm in item["reveals"]}
    status, told = server.post(f"/v1/decisions/{item['id']}/feedback", {"losses": losses})
    assert (status, told["learned"], told["round"]) == (200, True, 1)
    after = server.get(f"/v1/decisions/{item['id']}")[1]
    assert (after["status"], after["losses"]) == ("told", [0.25] * len(item["reveals"]))
    assert after["observe_probabilities"] == shown["observe_probabilities"]
    (other,) = ask(server, name, key="bread")
    for duplicate in (False, True):
        cancelled = server.post(f"/v1/decisions/{other['id']}/cancel")[1]
        assert (cancelled["duplicate"], cancelled["round"]) == (duplicate, 2)  # of its key
    assert server.get(f"/v1/decisions/{other['id']}")[1]["status"] == "cancelled"


def test_what_is_shown_of_keys(server, name):
    items = ask(server, name, keys=KEYS)
    for loss, item in zip((0.1, 0.2, 0.3), items, strict=False):
        server.post("/v1/feedback", feedback([item], loss))
    state = server.get(f"/v1/experiments/{name}")[1]
    assert (state["keys"], state["round"], state["counts"]["outstanding"]) == (4, 4, 1)
    assert sum(each["plays"] for each in state["arms"]["items"]) == 3
    page = server.get(f"/v1/experiments/{name}/keys?sort=worst&limit=2")[1]
    assert [(each["key"], round(each["cost"], 9)) for each in page["items"]] == [("apples", 0.3), ("milk", 0.2)]
    assert page["total"] == 4
    assert sum(page["distribution"]["bins"]) == page["distribution"]["keys"] == 3
    best = server.get(f"/v1/experiments/{name}/keys?sort=best&search=a")[1]
    assert [each["key"] for each in best["items"]] == ["bread", "apples", "candles"]
    assert best["items"][0]["best"] in items[0]["reveals"]
    assert (best["items"][2]["cost"], best["items"][2]["best"]) == (None, None)
    listed = server.get(f"/v1/experiments/{name}/keys")[1]["items"]
    assert [each["key"] for each in listed] == sorted(KEYS)
    summary = next(each for each in server.get("/v1/experiments?limit=1000")[1]["items"] if each["name"] == name)
    assert (summary["keys"], summary["alarms"]) == (4, [])
    assert server.get(f"/v1/experiments/{name}/graph")[1]["total_arms"] == 5
    assert sum(server.get(f"/v1/experiments/{name}/rates")[1]["decided"]) == 4


def test_the_log_has_a_row_for_each_decision_and_its_key(server, name):
    items = ask(server, name, keys=KEYS)
    server.post("/v1/feedback", feedback(items[:2], 0.25))
    server.post(f"/v1/decisions/{items[2]['id']}/cancel")
    table = pq.read_table(io.BytesIO(server.get(f"/v1/experiments/{name}/log")[1])).to_pylist()
    rows = {row["key"]: row for row in table}
    assert {key: row["status"] for key, row in rows.items()} == dict(
        zip(KEYS, ("told", "told", "cancelled", "outstanding"), strict=True)
    )
    for item in items[:2]:
        row = rows[item["key"]]
        assert (row["decision"], row["reward"], row["observed"]) == (item["id"], 0.75, item["reveals"])
        assert len(row["observe_probabilities"]) == len(row["losses"]) == len(item["reveals"])


@pytest.mark.parametrize(
    ("body", "path"),
    [
        ({}, "body.key"),
        ({"count": 2}, "body.key"),
        ({"keys": []}, "body.keys"),
        ({"keys": ["a"] * 10_001}, "body.keys"),
        ({"keys": ["a", 1]}, "body.keys.1"),
        ({"keys": ["a", None]}, "body.keys.1"),
        ({"keys": [1.5]}, "body.keys.0"),
        ({"keys": [True]}, "body.keys.0"),
        ({"key": ""}, "body.key"),
        ({"key": "x" * 201}, "body.key"),
        ({"key": 2**63}, "body.key"),
        ({"key": "a", "keys": ["a"]}, "body.key"),
        ({"key": "a", "count": 2}, "body.count"),
        ({"keys": ["a"], "graph": {"name": "nested", "n": 3}}, "body.graph"),
    ],
)
def test_a_bad_request_for_keys_changes_nothing(server, name, body, path):
    before = server.get(f"/v1/experiments/{name}")[1]["sequence"]
    status, problem = server.post(f"/v1/experiments/{name}/decisions", body)
    assert (status, problem["path"]) == (422, path)
    assert server.get(f"/v1/experiments/{name}")[1]["sequence"] == before


def test_keys_are_refused_where_there_are_none(server, name):
    plain = {"name": f"p{name}", "learner": "exp3.g++", "graph": {"name": "nested", "n": 3}}
    assert server.post("/v1/experiments", plain)[0] == 201
    status, problem = server.post(f"/v1/experiments/{plain['name']}/decisions", {"key": "a"})
    assert (status, problem["path"]) == (422, "body.key")
    assert server.post(f"/v1/experiments/{plain['name']}/decisions", {"keys": ["a"]})[1]["path"] == "body.keys"
    ask(server, name, key="bread")
    assert server.post(f"/v1/experiments/{name}/decisions", {"key": 1})[1]["path"] == "body.key"
    assert server.post(f"/v1/experiments/{name}/decisions", {"keys": [1]})[1]["path"] == "body.keys.0"
    assert server.get(f"/v1/experiments/{plain['name']}/keys")[0] == 404


def test_the_round_of_feedback_is_that_of_its_key_whoever_decided(server, name):
    ask(server, name, keys=["bread", "milk", "bread"])
    server.send("PATCH", f"/v1/experiments/{name}", {"state": "frozen", "play": 2})
    ask(server, name, keys=["bread"])
    server.send("PATCH", f"/v1/experiments/{name}", {"state": "running"})
    items = ask(server, name, keys=["milk", "bread"])
    assert [each["round"] for each in items] == [2, 4]
    for duplicate in (False, True):
        for each, round_ in zip(items, (2, 4), strict=True):
            losses = {"losses": [0.5] * len(each["reveals"])}
            told = server.post(f"/v1/decisions/{each['id']}/feedback", losses)[1]
            assert (told["round"], told["duplicate"]) == (round_, duplicate)


def test_what_is_wrong_in_columns_is_named_by_its_column(server, name):
    items = ask(server, name, keys=KEYS)
    ids, sizes = [each["id"] for each in items], [len(each["reveals"]) for each in items]

    def send(told, **changed):
        data = base64.b64encode(np.array(told, "<f8").tobytes()).decode()
        return server.post("/v1/feedback", {"ids": ids, "sizes": sizes, "losses": data, **changed})

    right = [0.5] * sum(sizes)
    for changed, status, path in (
        ({"ids": ["what", *ids[1:]]}, 404, "body.ids.0"),
        ({"ids": [ids[0], "what", *ids[2:]]}, 404, "body.ids.1"),
        ({"ids": [f"{'0' * 16}-{k}" for k in range(1, 5)]}, 404, "body.ids.0"),
        ({"ids": [*ids[:3], ids[0][:17] + "99"]}, 404, "body.ids.3"),
        ({"arms": [items[0]["arm"], items[1]["arm"], (items[2]["arm"] + 1) % 5, items[3]["arm"]]}, 422, "body.arms.2"),
        ({"graphs": [{"name": "nested", "n": 3}], "graph_of": [0] * 4}, 422, "body.graph_of.0"),
        ({"graphs": [{"name": "nested", "n": 5}, {"name": "x"}], "graph_of": [1] * 4}, 422, "body.graphs.1"),
        ({"graphs": [{"id": "0" * 32}], "graph_of": [0] * 4}, 422, "body.graphs.0.id"),
        ({"sizes": sizes[1:]}, 422, "body.sizes"),
        ({"reveals": [0] * (len(right) - 1)}, 422, "body.reveals"),
        ({"reveals": [0] * len(right)}, 422, "body.reveals"),
        ({"losses": "AAAA"}, 422, "body.losses"),
    ):
        answer, problem = send(right, **changed)
        assert (answer, problem["path"]) == (status, path)
    last = f"body.losses.{len(right) - 1}"
    status, problem = send([*right[:-1], 1.5])
    assert (status, problem["path"], problem["value"]) == (422, last, 1.5)
    assert problem["detail"].startswith(f"Decision {ids[3]}: The loss")
    status, reply = send([*right[:-1], 1.5], partial=True)
    assert (status, reply["learned"]) == (200, 3)
    assert [(each["id"], each["path"]) for each in reply["problems"]] == [(ids[3], last)]
    assert reply["problems"][0]["detail"].startswith("The loss")  # as for it alone


def test_a_large_batch_is_told_whole_or_not_at_all(server, name):
    items = ask(server, name, keys=list(range(3000)))
    body = feedback(items)
    place = sum(body["sizes"][:1234])
    body["losses"][place] = 1.5
    status, problem = server.post("/v1/feedback", body)
    assert (status, problem["path"]) == (422, f"body.losses.{place}")
    status, reply = server.post("/v1/feedback", {**body, "partial": True})
    assert (status, reply["learned"]) == (200, 2999)
    assert [each["path"] for each in reply["problems"]] == [f"body.losses.{place}"]
