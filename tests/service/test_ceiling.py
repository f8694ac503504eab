"""A ceiling on costs over HTTP: the engine decides, and the journal, snapshots, clones and logs have what was paid."""

import random

import numpy as np
import pyarrow.parquet as pq
import pytest
from pyarrow import compute

import sidelong as sl
from nightly import share
from service.deployments import KEYS, until
from sidelong.errors import CostError, LearnerError, ServiceError

BOUNDS = [0.5, 1.5, 6.0]
GRAPH = {"name": "nested", "n": 3}
CEILING = {"ceiling": 1.0, "cost_bounds": BOUNDS, "overspend": 12.0}
KINDS_OVER = [("keyless", "key"), ("keyed", "key"), ("keyed", "all")]


class Twin:
    """The agent or the family that an experiment must be to the bit."""

    def __init__(self, kind, over, seed=7, **known):
        self.keyed = kind == "keyed"
        known |= {"seed": seed}
        graph = sl.graphs.nested(3)
        if self.keyed:
            self.player = sl.Family("glance", graph, ceiling_over=over, threads=1, **known)
        else:
            self.player = sl.Agent("glance", graph, **known)
        self.ids = {}  # of the player, by that of the service

    def ask(self, made, keys):
        """Ask for the same, and check that it is the same."""
        if self.keyed:
            batch = self.player.ask(keys)
            found = zip(batch.ids, batch.arms.tolist(), np.split(batch.reveals, batch.offsets[1:-1]), strict=True)
        else:
            asked = [self.player.ask_fitted(shown) for shown in [self.player.fitted(None, len(made))] for _ in made]
            found = ((each.id, each.arm, each.reveals) for each in asked)
        for each, (id_, arm, reveals) in zip(made, found, strict=True):
            assert (each["arm"], each["reveals"]) == (arm, reveals.tolist())
            self.ids[each["id"]] = id_

    def tell(self, each, losses, costs):
        name = self.ids.pop(each["id"])
        if self.keyed:
            self.player.tell([name], losses, costs=costs)
        else:
            self.player.tell(name, losses, costs=costs)

    def cancel(self, each, *, lost=False):
        name = self.ids.pop(each["id"])
        self.player.cancel([name] if self.keyed else name, lost=lost)

    def override(self, each, arm):
        name = self.ids[each["id"]]
        self.player.override(*(([name], [arm]) if self.keyed else (name, arm)))


def same_spending(each, twin):
    """Check that the service says the same of what was spent."""
    said, known = each.state()["spending"], twin.player.spending()
    assert (said["decisions"], said["spent"], said["line"]) == (
        known.decisions,
        pytest.approx(known.spent),
        pytest.approx(known.line),
    )
    assert said["reserved"] == pytest.approx(known.reserved)
    if said["price"] is not None:
        assert said["price"] == known.price
    return said


@pytest.mark.parametrize(("kind", "over"), KINDS_OVER)
@pytest.mark.parametrize("seed", share(range(2), 1))
def test_any_path_is_that_of_an_agent_or_a_family(deployment, kind, over, seed):
    rng = random.Random(f"{seed} {kind} {over}")
    each = deployment.create(kind, learner="glance", options={}, graph=GRAPH, expire_after=1000.0, **CEILING)
    if over == "all":
        each = deployment.create(
            kind, learner="glance", options={}, graph=GRAPH, expire_after=1000.0, ceiling_over=over, **CEILING
        )
    twin, waiting, told, total, overridden = Twin(kind, over, **CEILING), [], 0, 0.0, 0
    for step in range(50):
        n = rng.randrange(1, 5)
        made = each.decide(n)
        twin.ask(made, KEYS[:n])
        waiting += made
        rng.shuffle(waiting)
        for _ in range(rng.choice([0, 1, 3, 5])):
            if not waiting:
                break
            one, what = waiting.pop(), rng.random()
            if what < 0.1:
                each.cancel(one).ok()
                twin.cancel(one)
                continue
            if what < 0.4 and one["arm"] > 0:  # with a cheaper arm: a dearer one may break the limit
                one = {**each.override(one, 0).ok().body}
                twin.override(one, 0)
                overridden += 1
            arms = one["reveals"]
            costs = [BOUNDS[arm] * rng.choice([0.0, 0.5, 1.0, 1.0]) for arm in arms]
            losses = [rng.random() for _ in arms]
            each.tell(one, losses, costs=costs).ok()
            again = each.tell(one, losses, costs=dict(zip(map(str, arms), costs, strict=True))).ok().body
            assert again["duplicate"]
            twin.tell(one, losses, costs)
            told += 1
            total += costs[arms.index(one.get("carried_out", one["arm"]))]
        if step == 25:  # all that wait are lost
            deployment.hands.move(1001.0)
            until(lambda: each.counts("outstanding") == (0,))
            for one in waiting:
                twin.cancel(one, lost=True)
                told, total = told + 1, total + BOUNDS[one["arm"]]
            waiting = []
        if step in {10, 30}:
            before = each.digest()
            (deployment.restart if step == 10 else deployment.restart_without_snapshots)()
            assert each.digest() == before
        spent = same_spending(each, twin)
        lines = 1 if over == "all" or kind == "keyless" else 5
        assert (spent["decisions"], spent["spent"]) == (told, pytest.approx(total))
        assert spent["spent"] + spent["reserved"] <= spent["line"] + 12.0 * lines + 1e-9
    assert told > 30
    assert overridden


LEARNER = {"learner": "glance", "options": {}, "graph": GRAPH}


@pytest.mark.parametrize(
    ("given", "path", "message"),
    [
        ({"ceiling": 0}, "ceiling", "greater than 0"),
        ({"ceiling": -1.0}, "ceiling", "greater than 0"),
        ({"ceiling": True}, "ceiling", "a valid number"),
        ({"ceiling": "1"}, "ceiling", "a valid number"),
        ({**CEILING, "overspend": True}, "overspend", "a valid number"),
        ({**CEILING, "overspend": "12"}, "overspend", "a valid number"),
        ({**CEILING, "cost_bounds": [0.5, True, 6.0]}, "cost_bounds", "a valid number"),
        ({**CEILING, "cost_bounds": {"0": 0.5, "1": "1.5", "2": 6.0}}, "cost_bounds", '"1.5"'),
        ({"incumbent": "now", "allowance": True}, "allowance", "a valid number"),
        ({"incumbent": "now", "allowance": "5"}, "allowance", "a valid number"),
        ({"scale": {"best": False, "worst": "9"}}, "scale", "a valid number"),
        ({"default_loss": True}, "default_loss", "a valid number"),
        ({"expire_after": "60"}, "expire_after", "a valid number"),
        ({"cost_bounds": BOUNDS}, "cost_bounds", "go with a ceiling, and none is given"),
        ({"ceiling": 1.0, "cost_bounds": BOUNDS}, "cost_bounds", "overspend is not given"),
        ({"ceiling": 1.0, "cost_bounds": BOUNDS[:2], "overspend": 1.0}, "cost_bounds", "each of the 3 arms"),
        ({"ceiling": 1.0, "cost_bounds": {"0": 1.0, "4": 2.0}, "overspend": 1.0}, "cost_bounds.4", "arm"),
        ({"ceiling": 1.0, "cost_bounds": [0.5, 1.5, 0], "overspend": 1.0}, "cost_bounds", "greater than 0"),
        ({"ceiling": 1.0, "ceiling_over": "some"}, "ceiling_over", "key"),
        ({"ceiling": 1.0, "learner": "ts-n"}, "ceiling", "0 or 1"),
        ({"ceiling": 1.0, "holdout": {"arm": 0, "share": 0.1}}, "ceiling", "without one of the two"),
        ({"ceiling": 1.0, "default_loss": 1.0}, "default_loss", "needs cost_bounds"),
        ({"ceiling": 1.0, "features": ["a"]}, "ceiling", "no ceiling here"),
        ({"ceiling": 1.0, "incumbent": "now", "allowance": 5.0}, "learner", "do not go together"),
        ({"ceiling": 1.0, "graph": {"n_arms": 2, "edges": [[0, 1], [1, 0]]}}, "ceiling", "must reveal itself"),
    ],
)
def test_a_ceiling_that_is_none_is_refused(on_sqlite, kind, given, path, message):
    body = {"name": "e", **LEARNER, **given, "keyed": kind == "keyed"}
    reply = on_sqlite.post("/v1/experiments", body)
    assert reply.code == (422, "invalid")
    assert reply.body["path"].startswith(f"body.{path}")
    assert message in reply.body["detail"]
    assert reply.body["value"] == given.get(reply.body["path"].removeprefix("body."), reply.body["value"])
    assert on_sqlite.get("/v1/experiments").body["total"] == 0


def test_costs_that_are_none_are_refused_and_nothing_changes(on_sqlite, kind):
    limited = on_sqlite.create(kind, **LEARNER, labels=["small", "medium", "large"], **CEILING)
    made = limited.decide(3)
    one = max(made, key=lambda each: each["arm"])
    n, before = len(one["reveals"]), limited.digest()
    named = dict.fromkeys(map(str, one["reveals"]), 0.2)
    for costs, message in [
        (None, "With a ceiling, tell what the revealed arms cost"),
        ([0.1] * (n + 1), "one for each of the"),
        ([-0.1] * n, "a finite number from 0 on"),
        ([BOUNDS[one["reveals"][0]] + 0.1] * n, "at most its bound"),
        ({**named, "2": 0.1} if n < 3 else {"0": 0.1}, "was told for it" if n < 3 else "one cost is needed"),
    ]:
        sent = {} if costs is None else {"costs": costs}
        reply = limited.tell(one, **sent)
        assert reply.code == (422, "invalid")
        assert reply.body["path"] == "body.costs"
        assert message in reply.body["detail"]
        if isinstance(costs, list) and len(costs) == n:
            others = [each for each in made if each is not one]
            total = [cost for each in others for cost in [0.1] * len(each["reveals"])]
            sent = {"costs": [*total, *costs]}
            reply = limited.tell_many([*others, one], **sent)
            assert reply.code == (422, "invalid")
            assert reply.body["path"] == "body.costs"
            assert one["id"] in reply.body["detail"]
    assert limited.digest() == before
    plain = on_sqlite.create(kind, **LEARNER)
    reply = plain.tell(plain.decide(), costs=[0.1])
    assert (reply.code, reply.body["path"]) == ((422, "invalid"), "body.costs")
    assert "Costs are told where there is a ceiling" in reply.body["detail"]


def test_what_was_paid_is_known_of_a_decision_and_in_the_log(on_sqlite, kind):
    each = on_sqlite.create(kind, **LEARNER, labels=["small", "medium", "large"], ceiling=1.0)
    made = each.decide(4)
    costs = [[0.1 * (arm + 1) for arm in one["reveals"]] for one in made]
    named = [
        {["small", "medium", "large"][arm]: cost for arm, cost in zip(one["reveals"], some, strict=True)}
        for one, some in zip(made, costs, strict=True)
    ]
    each.tell(made[0], costs=named[0]).ok()
    each.tell_many(made[1:3], costs=[cost for some in costs[1:3] for cost in some]).ok()
    assert each.tell(made[0], costs=[cost * 2 for cost in costs[0]]).code == (409, "conflict")
    assert each.tell(made[1], costs=costs[1]).ok().body["duplicate"]
    assert each.look_up(made[1]).body["costs"] == costs[1]
    rows = each.rows()
    for one, some in zip(made[:3], costs, strict=False):
        row = rows[one["id"]]
        assert row["costs"] == some
        assert row["cost"] == some[one["reveals"].index(one["arm"])]
    assert rows[made[3]["id"]]["costs"] is None
    spent = each.state()["spending"]
    assert spent["decisions"] == 3
    assert spent["spent"] == pytest.approx(sum(rows[one["id"]]["cost"] for one in made[:3]))


def test_rounds_of_others_are_under_no_ceiling_and_counted_apart(on_sqlite, kind):
    each = on_sqlite.create(kind, **LEARNER, expire_after=100.0, **CEILING)
    mine = each.decide()
    each.change(state="frozen", play=2).ok()
    other = each.decide()
    assert (other["arm"], other["drawn_by"]) == (2, "frozen")
    each.tell(mine, costs=[0.25] * len(mine["reveals"])).ok()  # not learned, and paid
    each.tell(other, costs=[0.5, 1.0, 6.0]).ok()
    spent = each.state()["spending"]
    assert (spent["decisions"], spent["spent"]) == (1, 0.25)
    assert (spent["aside_decisions"], spent["aside_spent"]) == (1, 6.0)
    before = each.digest()
    on_sqlite.restart_without_snapshots()
    assert each.digest() == before


def test_sticky_decisions_cost_the_mean_of_their_reports(on_sqlite, kind):
    each = on_sqlite.create(kind, **LEARNER, sticky={"seconds": 60.0}, **CEILING)
    made = each.decide(subject="visitor")
    for number, cost in enumerate((0.1, 0.3)):
        sent = {"losses": [0.5] * len(made["reveals"]), "costs": [cost] * len(made["reveals"])}
        reply = on_sqlite.post(f"/v1/decisions/{made['id']}/feedback", sent, headers={"Idempotency-Key": str(number)})
        assert not reply.ok().body["learned"]
    on_sqlite.restart()
    on_sqlite.hands.move(61.0)
    until(lambda: each.counts("told") == (1,))
    assert each.state()["spending"]["spent"] == pytest.approx(0.2)
    before = each.digest()
    on_sqlite.restart_without_snapshots()
    assert each.digest() == before


def test_an_expired_decision_that_is_told_the_default_counts_as_its_bound(on_sqlite, kind):
    each = on_sqlite.create(kind, **LEARNER, expire_after=60.0, default_loss=1.0, **CEILING)
    made = each.decide()
    on_sqlite.hands.move(61.0)
    until(lambda: each.counts("defaulted") == (1,))
    assert each.look_up(made).body["costs"] == [BOUNDS[arm] for arm in made["reveals"]]
    assert each.state()["spending"]["spent"] == BOUNDS[made["arm"]]


def test_arms_come_and_go_with_their_bounds(on_sqlite, kind):
    each = on_sqlite.create(kind, **LEARNER, **CEILING)
    assert on_sqlite.post(f"{each.path}/arms", {}).body["path"] == "body.cost_bound"
    assert on_sqlite.post(f"{each.path}/arms", {"cost_bound": 100.0}).ok().body["arm"] == 3  # never fits
    for _ in range(20):
        one = each.decide()
        assert one["arm"] != 3
        each.tell(one, costs=[0.4] * len(one["reveals"])).ok()
    on_sqlite.request("DELETE", f"{each.path}/arms/1").ok()
    before = each.digest()
    on_sqlite.restart()
    assert each.digest() == before
    on_sqlite.restart_without_snapshots()
    assert each.digest() == before
    assert each.decide()["arm"] in {0, 2}


def test_an_arm_is_always_there_when_the_cheapest_one_is_retired(on_sqlite, kind):
    limits = {"ceiling": 1.0, "cost_bounds": [0.5, 2.0, 6.0], "overspend": 3.0}
    each = on_sqlite.create(kind, **LEARNER, **limits)
    on_sqlite.request("DELETE", f"{each.path}/arms/0").ok()
    for t in range(12):
        one = each.decide()
        assert one["arm"] == 1  # the other one could cost 5 more than the ceiling
        if t % 2:
            each.tell(one, costs=[2.0] * len(one["reveals"])).ok()
    assert each.state()["spending"]["spent"] == 12.0
    assert each.state()["spending"]["reserved"] == 0.0
    before = each.digest()
    on_sqlite.restart()
    assert each.digest() == before
    on_sqlite.restart_without_snapshots()
    assert each.digest() == before
    assert each.decide()["arm"] == 1


def test_a_clone_goes_on_from_what_was_spent(on_sqlite, kind):
    each = on_sqlite.create(kind, **LEARNER, **CEILING)
    for one in each.decide(4):
        each.tell(one, costs=[0.4] * len(one["reveals"])).ok()
    _, learned = each.clone()
    _, fresh = each.clone(learned=False)
    assert learned.state()["spending"]["spent"] == each.state()["spending"]["spent"]
    assert fresh.state()["spending"]["decisions"] == 0


def test_nothing_is_decided_where_nothing_fits(on_sqlite, kind):
    each = on_sqlite.create(kind, **LEARNER, **{**CEILING, "overspend": 0.1})
    before = each.digest()
    reply = each.ask(available=[2])
    assert reply.code == (409, "over_ceiling")
    assert "No arm that is there fits" in reply.body["detail"]
    assert each.digest() == before


@pytest.mark.parametrize("keyed", [False, True])
def test_the_client_tells_costs(service, keyed):
    graph = sl.graphs.nested(3).labelled(["small", "medium", "large"])
    bounds = dict(zip(graph.labels, BOUNDS, strict=True))
    made = service.create(
        f"limited-{keyed}", "glance", graph, seed=7, keyed=keyed, ceiling=1.0, cost_bounds=bounds, overspend=5.0
    )
    twin = Twin("keyed" if keyed else "keyless", "key", ceiling=1.0, cost_bounds=BOUNDS, overspend=5.0)
    for _ in range(12):
        batch = made.ask_many(KEYS[:3] if keyed else 3)
        each = np.split(batch.reveals, batch.offsets[1:-1])
        known = [
            {"id": i, "arm": a, "reveals": r.tolist()}
            for i, a, r in zip(batch.ids, batch.arms.tolist(), each, strict=True)
        ]
        twin.ask(known, KEYS[:3])
        costs = np.array([BOUNDS[arm] for arm in batch.reveals.tolist()])
        made.tell_many(batch, np.full(costs.size, 0.5), costs=costs)
        for one in known:
            twin.tell(one, [0.5] * len(one["reveals"]), [BOUNDS[arm] for arm in one["reveals"]])
    assert made.state()["spending"]["spent"] == pytest.approx(twin.player.spending().spent)
    with pytest.raises(CostError, match="at most its bound"):
        made.tell_many(
            batch := made.ask_many(KEYS[:1] if keyed else 1),
            [0.5] * batch.reveals.size,
            costs=[9.0] * batch.reveals.size,
        )
    if not keyed:
        one = made.ask()
        with pytest.raises(CostError, match="tell what the revealed arms cost"):
            made.tell(one, [0.5] * one.reveals.size)
        assert made.tell(one, [0.5] * one.reveals.size, costs=[0.1] * one.reveals.size)
        made.cancel(made.ask(available=["small"]))
        waiting = [made.ask(available=["large"])]
        with pytest.raises(CostError, match="No arm that is there fits"):
            waiting.extend(made.ask(available=["large"]) for _ in range(3))
    with pytest.raises(LearnerError, match="overspend is not given"):
        service.create("wrong", "glance", graph, ceiling=1.0, cost_bounds=bounds)


def test_a_log_is_learned_with_what_it_cost(on_sqlite, tmp_path, kind):
    keyed, graph, path = kind == "keyed", sl.graphs.nested(3), tmp_path / "log.parquet"
    known, keys = {"ceiling": 1.0, "seed": 7, "keyed": keyed}, KEYS[:2] if keyed else [None]
    with sl.connect(on_sqlite.url, on_sqlite.admin) as service:
        first = service.create("first", "glance", graph, **known)
        for _ in range(30):
            batch = first.ask_many(KEYS[:2] if keyed else 2)
            first.tell_many(batch, (batch.reveals == 1) * 0.5, costs=np.array(BOUNDS)[batch.reveals])
        path.write_bytes(on_sqlite.get("/v1/experiments/first/log").ok().body)
        service.create("warm", "glance", graph, log=path, **known)
        twin, rows = Twin(kind, "key", ceiling=1.0), pq.read_table(path)
        twin.player.learn({key: rows.filter(compute.equal(rows["key"], key)) for key in keys} if keyed else rows)
        for key in keys:
            state = on_sqlite.get("/v1/experiments/warm" + (f"?key={key}" if keyed else "")).ok().body
            p = (twin.player[key] if keyed else twin.player).outlook()
            assert [arm["probability"] for arm in state["arms"]["items"]] == p.tolist()
            assert p.argmax() != 2  # which loses as little as arm 0, and costs twelve times as much
        lacking = {"action": [0, 1, 2], "loss": [0.1, 0.2, 0.3], "pscore": [0.3, 0.3, 0.3]}
        lacking |= {"key": [KEYS[0]] * 3} if keyed else {}
        with pytest.raises(ServiceError, match="a log says what its arms cost"):
            service.create("cold", "glance", graph, log=lacking, **known)
        service.create("cold", "glance", graph, log=lacking | {"cost": BOUNDS}, **known)
