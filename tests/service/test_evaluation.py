"""Off-policy estimates over HTTP: those of the log, and what cannot be estimated is refused."""

import io

import httpx
import numpy as np
import pytest
from pyarrow import compute, parquet

import sidelong as sl
from sidelong import evaluation
from sidelong.evaluation import read_log
from sidelong.graphs.makers import makers


@pytest.fixture(scope="module")
def http(nursery, tmp_path_factory):
    served = nursery.start(f"sqlite:///{tmp_path_factory.mktemp('server')}/sidelong.db")
    with httpx.Client(base_url=served.address, timeout=60) as client:
        with sl.connect(served.address) as service:
            agent = service.create("orders", "exp3.g++", sl.graphs.nested(5), seed=4, labels=list("abcde"))
            for t in range(40):
                decision = agent.ask()
                if t % 10 == 9:
                    agent.cancel(decision)
                elif t % 10 != 5:
                    agent.tell(decision, {int(arm): ((t + int(arm)) % 4) / 4 for arm in decision.reveals})
        yield client
    served.stop()


def test_the_estimates_are_those_of_the_exported_log(http):
    log = read_log(io.BytesIO(http.get("/v1/experiments/orders/log").content))
    assert (log.n_arms, log.n_rounds, log.n_told) == (5, 36, 32)  # 4 cancelled, 4 without feedback
    content = {"distribution": {"0": 0.25, "4": 0.75}, "confidence": 0.9, "limit": 3}
    found = http.post("/v1/experiments/orders/evaluation", json=content).json()
    assert (found["rounds"], found["without_feedback"], found["confidence"]) == (36, 4, 0.9)
    assert found["played"] == pytest.approx(np.nanmean(log.cost))
    arms = evaluation.evaluate_arms(log, 0.9)
    assert [each["arm"] for each in found["arms"]] == np.argsort(arms.value)[:3].tolist()
    for each in found["arms"]:
        assert each["label"] == "abcde"[each["arm"]]
        for name, column in arms._asdict().items():
            assert each[name] == column[each["arm"]]
    mixes = [np.full(5, 0.2), [0.25, 0, 0, 0, 0.75]]
    for each, pi in zip(found["distributions"], mixes, strict=True):
        assert each["value"] == evaluation.evaluate_distribution(log, pi, 0.9).value[0]
    assert found["regret"]["upper"] == evaluation.regret(log, 0.9).upper
    assert found["regret"]["rejected"] is False
    usual = http.post("/v1/experiments/orders/evaluation", json={}).json()
    assert (usual["confidence"], len(usual["arms"])) == (0.95, 5)


def test_with_keys_the_estimates_are_over_all_of_them_or_of_one(http):
    with sl.connect(str(http.base_url)) as service:
        made = service.create("shops", "exp3.g++", sl.graphs.nested(5), seed=4, keyed=True)
        for t in range(12):
            plan = made.ask_many(["north", "south", "north"])
            made.tell_many(plan, [(t + int(arm) + 2 * (plan.keys[0] == "south")) % 4 / 4 for arm in plan.reveals])
    table = parquet.read_table(io.BytesIO(http.get("/v1/experiments/shops/log").content))
    north = table.filter(compute.equal(table["key"], "north"))
    for content, rows in (({}, table), ({"key": "north"}, north)):
        found = http.post("/v1/experiments/shops/evaluation", json=content).json()
        log = evaluation.decision_log.from_table(rows.drop_columns(["round"]), 5)
        assert found["rounds"] == log.n_rounds == rows.num_rows
        arms = evaluation.evaluate_arms(log, 0.95)
        assert {each["arm"]: each["value"] for each in found["arms"]} == dict(enumerate(arms.value))
        assert found["regret"]["upper"] == evaluation.regret(log, 0.95).upper
        assert found["certificate"]["bound"] == evaluation.certificate(log, 0.95).bound
    regret = http.get("/v1/experiments/shops").json()["regret"]
    assert regret["rounds"] == 36
    assert regret["own_loss"] == pytest.approx(np.nansum(1 - table["reward"].to_numpy()))
    reply = http.post("/v1/experiments/shops/evaluation", json={"key": "west"})
    assert (reply.status_code, reply.json()["path"]) == (404, "body.key")
    reply = http.post("/v1/experiments/orders/evaluation", json={"key": "north"})
    assert (reply.status_code, reply.json()["path"]) == (404, "body.key")


@pytest.mark.parametrize(
    ("content", "path"),
    [
        ({"distribution": {"0": 0.5}}, "body.distribution"),
        ({"distribution": {"9": 1.0}}, "body.distribution"),
        ({"distribution": {"x": 1.0}}, "body.distribution"),
        ({"distribution": {"0": 1.5}}, "body.distribution"),
        ({"confidence": 1.0}, "body.confidence"),
        ({"limit": 1001}, "body.limit"),
        ({"nothing": 1}, "body.nothing"),
    ],
)
def test_what_is_wrong_is_named(http, content, path):
    reply = http.post("/v1/experiments/orders/evaluation", json=content)
    assert (reply.status_code, reply.json()["code"]) == (422, "invalid")
    assert reply.json()["path"].startswith(path)


def test_a_share_that_is_said_twice_is_refused(http):
    twice = b'{"distribution": {"0": 0.5, "1": 0.5, "0": 0.5}}'
    headers = {"Content-Type": "application/json"}
    reply = http.post("/v1/experiments/orders/evaluation", content=twice, headers=headers)
    assert (reply.status_code, reply.json()["value"]) == (422, "0")


def test_no_such_experiment(http):
    assert http.post("/v1/experiments/nothing/evaluation", json={}).status_code == 404


def test_a_learner_that_draws_without_probabilities_cannot_be_evaluated(http):
    http.post("/v1/experiments", json={"name": "blind", "learner": "ts-n", "graph": {"name": "star", "n": 3}})
    made = http.post("/v1/experiments/blind/decisions").json()
    http.post(f"/v1/decisions/{made['id']}/feedback", json={"losses": [1] * len(made["reveals"])})
    reply = http.post("/v1/experiments/blind/evaluation", json={})
    assert reply.status_code == 422
    assert "as ts-n does" in reply.json()["detail"]


def test_a_log_that_is_too_large_is_left_to_the_command_line(http, tmp_path):
    (tmp_path / "log.parquet").write_bytes(http.get("/v1/experiments/orders/log").content)
    with pytest.raises(sl.SidelongError, match=r"at most 10 are read here\. Use: sidelong evaluate"):
        read_log(tmp_path / "log.parquet", most_losses=10)


def test_every_family_of_the_catalogue_can_be_made_as_it_says(http):
    found = http.get("/v1/catalogue").json()
    assert tuple(found["learners"]) == tuple(sl.learners.names())
    assert [family["name"] for family in found["families"]] == list(makers(over_time=False))
    examples = {"whole": 2, "number": 0.5, "list": [2, 1]}
    for family in found["families"]:
        given = {each["name"]: examples[each["kind"]] for each in family["arguments"] if each["default"] is None}
        size = {"n": 8 if family["name"] == "cocktail_party" else 7} if "n" in given else {}
        assert makers()[family["name"]].make(**given | size).n_arms >= 3
