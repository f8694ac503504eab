"""What the service promises its users, for experiments with and without keys, on both databases.

On PostgreSQL `make test` keeps only the promises that depend on the database, such as those about restarts, kills and
damage; `make nightly` keeps all of them.

Each function below is a promise of docs/service.md, docs/life.md or docs/operations.md. It sees only what users see:
requests and replies, settings, restarts, and the clock. A promise that is known to be broken says so where it stands,
for which kinds of experiments and on which databases, and fails as soon as it is kept.
"""

import contextlib
import functools
import io
import itertools
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import psycopg
import pyarrow.parquet as pq
import pytest

import sidelong as sl
from service.deployments import GRAPH, KEYS, KINDS, Deployment, ServerProcess, Stored, drawn, until
from service.servers import in_columns
from service.stores import new_database

DATABASES = ("sqlite", "postgresql")


class Broken(NamedTuple):
    """Why a promise is not kept, and where."""

    reason: str
    kinds: tuple[str, ...] = KINDS
    databases: tuple[str, ...] = DATABASES


class Promise(NamedTuple):
    """A line of the table."""

    keep: Callable[..., None]
    broken: Broken | None
    kinds: tuple[str, ...]
    databases: tuple[str, ...]
    stored: bool  #: whether it depends on the database
    server: str  #: "shared" with others, its "own", or a "process" of its own
    is_last: bool  #: whether the database is gone afterwards
    settings: dict[str, Any]  #: of its own server

    def rows(self):
        """Yield what pytest runs: the promise, a kind of experiment and a kind of database."""
        for kind, database in itertools.product(self.kinds, self.databases):
            marks = [pytest.mark.nightly] if database == "postgresql" and not self.stored else []
            if self.broken and kind in self.broken.kinds and database in self.broken.databases:
                marks.append(pytest.mark.xfail(strict=True, raises=AssertionError, reason=self.broken.reason))
            yield pytest.param(self, kind, database, marks=marks, id=f"{self.keep.__name__}-{kind}-{database}")


PROMISES: list[Promise] = []


def promise(broken=None, *, kinds=KINDS, databases=DATABASES, stored=False, server=None, is_last=False, **settings):
    """Add a function of a deployment and a kind of experiment to the table."""

    def add(keep):
        where = server or ("own" if settings else "shared")
        depends = stored or server is not None
        PROMISES.append(Promise(keep, broken, kinds, databases, depends, where, is_last, settings))
        return keep

    return add


@pytest.fixture(scope="module")
def deployed(request, tmp_path_factory):
    """Return what finds a deployment. A database takes longer to make than most promises take, so they share one."""
    new = functools.partial(new_database, request=request, folder=tmp_path_factory.mktemp("promises"))
    used_in_turn = functools.cache(new)
    with contextlib.ExitStack() as until_the_end:
        shared = functools.cache(lambda database: until_the_end.enter_context(Deployment(new(database)).running()))

        def find(kept, database):
            if kept.server == "shared":
                return contextlib.nullcontext(shared(database))
            address = new(database) if kept.is_last else used_in_turn(database)
            if kept.server == "own":
                return Deployment(address, **kept.settings).running()
            return ServerProcess(request.getfixturevalue("nursery"), address, **kept.settings).running()

        yield find


# Idempotency: the same request is answered as before.


@promise()
def the_same_idempotency_key_gives_the_same_decision(deployment, kind):
    each = deployment.create(kind)
    first, again = (each.ask(key="order-17", context={"store": 12}) for _ in range(2))
    assert (first.status, first.body["duplicate"]) == (201, False)
    assert (again.status, again.body["duplicate"]) == (200, True)
    assert again.decisions == [
        {**made, **({"duplicate": True} if "duplicate" in made else {})} for made in first.decisions
    ]
    assert each.counts("decided") == (1,)


@promise(stored=True)
def a_batch_is_repeated_whole(deployment, kind):
    each = deployment.create(kind)
    first, again = (each.ask(4, key="night") for _ in range(2))
    assert (first.status, again.status) == (201, 200)
    assert again.body == {**first.body, "duplicate": True}
    assert len({made["id"] for made in first.decisions}) == 4
    assert each.counts("decided", "outstanding") == (4, 4)
    (one,) = each.decide(1, key="one")
    assert each.decide(key="one")["id"] == one["id"]  # a batch of one is one


@promise()
def an_idempotency_key_of_another_request_is_refused(deployment, kind):
    each = deployment.create(kind)
    each.decide(2, key="k", context={"store": 1})
    before = each.sequence()
    for n, body in (
        (2, {"context": {"store": 2}}),
        (2, {}),
        (3, {"context": {"store": 1}}),
        (None, {"context": {"store": 1}}),
        (2, {"context": {"store": 1}, "graph": {"name": "self_loops", "n": 5}}),
    ):
        refused = each.ask(n, key="k", **body)
        assert refused.code == (409, "key_reused"), body
        assert (refused.body["path"], refused.body["value"]) == ("header.idempotency-key", "k")
    assert each.sequence() == before


@promise()
def an_idempotency_key_has_1_to_200_printable_characters(deployment, kind):
    each = deployment.create(kind)
    for key in ("!", "a/b:c", "~" * 199, "x" * 200):
        assert [each.ask(key=key).status for _ in range(2)] == [201, 200]
    before = each.sequence()
    for key in ("x" * 201, "", "a b"):
        refused = each.ask(key=key)
        assert refused.code == (422, "invalid")
        assert refused.body["path"] == "header.idempotency-key"
    assert each.sequence() == before


@promise(stored=True)
def an_idempotency_key_is_of_its_experiment_alone(deployment, kind):
    each, other = deployment.create(kind), deployment.create(kind)
    made = each.decide(key="k")
    assert other.ask(key="k").status == 201
    reply, clone = each.clone()
    assert (reply.status, clone.ask(key="k").status) == (201, 201)
    name = each.name
    each.rename(f"{name}-renamed")
    assert each.decide(key="k")["id"] == made["id"]
    each.delete()
    anew = deployment.create(kind, name=f"{name}-renamed")
    assert anew.ask(key="k").status == 201


@promise(stored=True)
def a_decision_is_repeated_after_a_restart(deployment, kind):
    each = deployment.create(kind)
    one, several = each.decide(key="one"), each.decide(3, key="several")
    deployment.restart()
    for n, key, before in ((None, "one", [one]), (3, "several", several)):
        reply = each.ask(n, key=key)
        assert (reply.status, drawn(reply.decisions)) == (200, drawn(before))
        assert [made["id"] for made in reply.decisions] == [made["id"] for made in before]


@promise()
def a_decision_is_repeated_whatever_became_of_it(deployment, kind):
    each = deployment.create(kind, expire_after=10)
    told, cancelled, expired = (each.decide(key=key) for key in ("told", "cancelled", "expired"))
    each.tell(told).ok()
    each.cancel(cancelled).ok()
    deployment.hands.move(11)
    until(lambda: each.counts("expired") == (1,))
    for key, made in (("told", told), ("cancelled", cancelled), ("expired", expired)):
        assert each.decide(key=key)["id"] == made["id"]
    assert each.counts("decided") == (3,)


@promise()
def a_decision_is_repeated_for_a_token_of_one_experiment_also_after_a_restart(deployment, kind):
    each = deployment.create(kind)
    token = deployment.token("decide", experiment=each.name)
    for n in (None, 3):
        first, again = (each.ask(n, key=f"k{n}", token=token) for _ in range(2))
        assert (first.status, again.status) == (201, 200)
        assert drawn(again.decisions) == drawn(first.decisions)
    deployment.restart()
    again = each.ask(3, key="k3", token=token)
    assert (again.status, [one["id"] for one in again.decisions]) == (200, [one["id"] for one in first.decisions])


@promise()
def a_decision_is_repeated_in_every_state_of_its_experiment(deployment, kind):
    each = deployment.create(kind)
    made = each.decide(2, key="k")
    for change in ({"state": "frozen", "play": 3}, {"state": "stopped"}, {"state": "archived"}):
        each.change(**change).ok()
        again = each.ask(2, key="k")
        assert (again.status, drawn(again.decisions)) == (200, drawn(made)), change


@promise()
def feedback_and_cancellations_are_repeated_while_the_experiment_is_archived(deployment, kind):
    each = deployment.create(kind)
    told, cancelled, pending = each.decide(2), each.decide(), each.decide()
    each.tell_many(told).ok()
    each.cancel(cancelled).ok()
    each.change(state="archived").ok()
    before = each.sequence()
    assert each.tell(told[0]).ok().body["duplicate"]
    assert each.tell_many(told).ok().body["duplicates"] == [one["id"] for one in told]
    assert each.cancel(cancelled).ok().body["duplicate"]
    assert each.tell(told[0], 0.75).code == (409, "conflict")
    assert each.tell(pending).code == each.cancel(pending).code == (409, "archived")
    assert each.tell_many([*told, pending]).code == (409, "archived")
    assert each.sequence() == before


@promise()
def a_decision_is_repeated_after_labels_have_changed(deployment, kind):
    each = deployment.create(kind, learner="exp3-set", options={"late": "plain"}, labels=list("abcde"))
    asked = {"key": "k", "available": ["a", "b"]}
    made = each.decide(**asked)
    each.change(labels=list("vwxyz")).ok()
    again = each.ask(**asked)
    assert again.status == 200, again.body
    assert again.decisions[0]["id"] == made["id"]


@promise()
def arms_are_called_by_their_labels(deployment, kind):
    labels = ["mini", "haiku", "2", "nova", "large"]
    each = deployment.create(kind, labels=labels)
    made = each.decide(3)
    assert [one["label"] for one in made] == [labels[one["arm"]] for one in made]
    assert [each.look_up(one).body["label"] for one in made] == [one["label"] for one in made]
    numbers = {"mini": 0.1, "haiku": 0.2, "2": 0.3, "nova": 0.4, "large": 0.5}  # digits are a number
    path = f"/v1/decisions/{made[0]['id']}/feedback"
    for body, where in (
        ({"losses": {**numbers, "other": 0.5}}, "body.losses.other"),
        ({"losses": {**numbers, "0": 0.5}}, "body.losses.0"),
        ({"losses": numbers, "arm": "other"}, "body.arm"),
        ({"losses": numbers, "arm": labels[(made[0]["arm"] + 1) % 5]}, "body.arm"),
    ):
        refused = deployment.post(path, body)
        assert (refused.code, refused.body["path"]) == ((422, "invalid"), where)
    told = deployment.post(path, {"losses": numbers, "arm": made[0]["label"]})
    assert (told.status, told.body["learned"]) == (200, True)
    assert deployment.post(path, {"losses": [0.1, 0.2, 0.3, 0.4, 0.5]}).body["duplicate"]
    items = [{"id": one["id"], "losses": numbers, "arm": one["label"]} for one in made[1:]]
    assert deployment.post("/v1/feedback", in_columns(items)).body["learned"] == 2
    rows = each.rows().values()
    assert [row["label"] for row in rows] == [labels[row["action"]] for row in rows]


@promise(kinds=("keyless",))
def concurrent_clients_and_cancellations_are_no_alarm(deployment, kind):
    each = deployment.create(kind, learner="ucb-n", options={})
    made = each.decide(40)
    for one in reversed(made[:30]):
        each.tell(one).ok()
    for one in made[30:]:
        each.cancel(one).ok()
    state = each.state()
    assert not state["guarantee"]["holds"]
    assert len(state["guarantee"]["reasons"]) >= 2
    assert state["alarms"] == []
    [listed] = [item for item in deployment.get("/v1/experiments").body["items"] if item["name"] == each.name]
    assert listed["alarms"] == []


@promise()
def the_client_repeats_a_batch_of_several_requests(deployment, kind):
    for length in (1, 190, 199, 200):
        _ask_through_the_client(deployment, kind, "x" * length)


def _ask_through_the_client(deployment, kind, key):
    """Ask for two decisions with different graphs, which are two requests, and again."""
    each = deployment.create(kind)
    graphs = [sl.graphs.complete(5), sl.graphs.self_loops(5)]
    with sl.connect(deployment.url, deployment.admin, patience=0.0) as service:
        found = []
        for _ in range(2):
            try:
                found.append(service[each.name].ask_many(KEYS[:2] if kind == "keyed" else 2, graphs, key=key).ids)
            except sl.SidelongError as error:
                found.append(str(error))
    assert each.counts("decided") == (2,), found
    assert found[0] == found[1]


# Limits: what would exceed one is refused before anything changes.


@promise(max_outstanding=5)
def decisions_that_wait_are_limited(deployment, kind):
    each = deployment.create(kind)
    made = each.decide(4, key="four")
    before = each.sequence()
    refused = each.ask(2)
    assert refused.code == (429, "too_many_outstanding")
    assert int(refused.headers["Retry-After"]) >= 1
    assert each.sequence() == before
    each.decide()
    assert each.ask().code == (429, "too_many_outstanding")
    assert each.ask(4, key="four").status == 200
    each.tell(made[0]).ok()
    assert each.ask().status == 201


@promise(max_outstanding_bytes=2_000)
def the_memory_of_decisions_that_wait_is_limited(deployment, kind):
    each = deployment.create(kind)
    made = [each.decide()]
    while (reply := each.ask()).status == 201:
        made += reply.decisions
        assert len(made) < 200
    assert reply.code == (429, "too_many_outstanding")
    assert int(reply.headers["Retry-After"]) >= 1
    assert each.counts("decided", "outstanding") == (len(made), len(made))
    each.tell_many(made).ok()
    assert each.ask().status == 201


@promise(max_key_bytes=20_000, kinds=("keyed",))
def keys_are_limited(deployment, kind):
    each = deployment.create(kind)
    before, refused = each.sequence(), each.ask(200)
    assert refused.code == (409, "full")
    assert refused.body["path"] == "body.keys"
    assert (each.sequence(), each.state()["keys"]) == (before, 0)
    assert each.ask(20).status == 201

    each = deployment.create(kind)  # names of keys are charged too
    names = [f"{number:02}" + "\N{BREAD}" * 198 for number in range(50)]  # 40,000 bytes
    refused = deployment.post(f"{each.path}/decisions", {"keys": names})
    assert (refused.status, refused.body.get("code")) == (409, "full")


@promise(max_graph_bytes=300)
def graphs_of_rounds_are_limited(deployment, kind):
    each = deployment.create(kind, graph={"name": "self_loops", "n": 40})
    before = each.sequence()
    edges = [(arm, (arm * arm + step) % 40) for arm in range(40) for step in range(1, 9)]
    graph = {"n_arms": 40, "edges": [edge for edge in edges if edge[0] != edge[1]], "self_loops": True}
    refused = each.ask(graph=graph)
    assert refused.code == (409, "full")
    assert refused.body["path"] == "body.graph"
    assert each.sequence() == before
    assert each.ask().status == 201


@promise(max_body=2_000, max_context=100, max_arms=50, max_edges=60)
def sizes_of_requests_are_limited(deployment, kind):
    each = deployment.create(kind)
    before = each.sequence()
    for reply, path in (
        (each.ask(context={"x": "y" * 2_000}), "body"),
        (each.tell({"id": "0" * 16 + "-1", "reveals": []}, [0.5] * 1_000), "body"),
        (each.ask(context={"x": "y" * 100}), "body.context"),
    ):
        assert reply.code == (413, "too_large")
        assert reply.body["path"] == path
    for graph in ({"name": "nested", "n": 51}, {"n_arms": 9, "edges": list(itertools.permutations(range(9), 2))}):
        body = {"name": "large", "graph": graph} | ({"keyed": True} if kind == "keyed" else {})
        assert deployment.post("/v1/experiments", body).code == (413, "too_large")
        assert each.ask(graph=graph).status in {413, 422}
    assert each.sequence() == before
    assert each.ask(context={"x": "y" * 80}).status == 201
    assert deployment.get("/v1/experiments/large").status == 404


@promise(stored=True)
def a_request_asks_for_so_many_decisions_and_no_more(deployment, kind):
    each = deployment.create(kind)
    before = each.sequence()
    for n in (0, each.most + 1):
        refused = each.ask(n)
        assert refused.code == (422, "invalid")
        assert refused.body["path"] in {"body.count", "body.keys"}
    assert each.sequence() == before
    assert len(each.ask(each.most).decisions) == each.most


@promise(max_experiments=2)
def experiments_are_limited_and_archived_ones_do_not_count(deployment, kind):
    one, _ = deployment.create(kind), deployment.create(kind)
    assert deployment.post("/v1/experiments", {**one.spec, "name": "third"}).code == (409, "full")
    assert one.clone()[0].code == (409, "full")
    one.change(state="archived").ok()
    deployment.create(kind)
    assert one.change(state="running").code == (409, "full")


@promise(decide_rate=0.01, burst=300.0)
def requests_per_second_are_limited_and_feedback_apart(deployment, kind):
    each = deployment.create(kind)
    made = [each.decide() for _ in range(3)]
    refused = each.ask()
    assert refused.code == (429, "too_fast")
    assert 1 <= int(refused.headers["Retry-After"]) <= 100
    assert [each.tell(one).body["learned"] for one in made] == [True] * 3
    assert each.counts("decided") == (3,)


# Lifecycle: running, frozen, stopped, archived, renamed, deleted.


@promise()
def an_experiment_is_made_once(deployment, kind):
    each = deployment.create(kind)
    before = each.sequence()
    assert deployment.post("/v1/experiments", each.spec).status == 200
    for other in (
        {"seed": 8},
        {"graph": {"name": "complete", "n": 4}},
        {"keyed": kind != "keyed"},
        {"learner": "exp3", "options": {}},
        {"options": {}},
    ):
        assert deployment.post("/v1/experiments", {**each.spec, **other}).code == (409, "exists"), other
    assert each.sequence() == before


@promise()
def a_stopped_experiment_takes_feedback_and_decides_no_more(deployment, kind):
    each, twin = deployment.create(kind).play(), deployment.create(kind).play()
    made = each.decide(2)
    each.change(state="stopped").ok()
    before = each.sequence()
    for n in (None, 2):
        assert each.ask(n).code == (409, "stopped")
    assert each.sequence() == before
    assert each.tell_many(made, 0.5).body["learned"] == 2
    each.change(state="running").ok()
    twin.tell_many(twin.decide(2), 0.5).ok()
    assert drawn(each.decide(4)) == drawn(twin.decide(4))


@promise()
def a_stopped_experiment_plays_its_fallback_arm_and_learns_nothing_from_it(deployment, kind):
    each, twin = deployment.create(kind).play(), deployment.create(kind).play()
    each.change(state="stopped", fallback=2).ok()
    made = each.decide(3)
    assert [(one["drawn_by"], one["arm"], one["probability"]) for one in made] == [("fallback", 2, 1.0)] * 3
    told = each.tell_many(made, 1.0).body
    assert (told["learned"], told["duplicates"]) == (0, [])
    each.cancel(each.decide()).ok()
    assert each.counts("fallback", "cancelled", "outstanding") == (4, 1, 0)
    assert each.observed() == twin.observed()
    each.change(fallback=None).ok()
    assert each.ask().code == (409, "stopped")
    each.change(state="running").ok()
    assert drawn(each.decide(4)) == drawn(twin.decide(4))


@promise()
def a_frozen_experiment_plays_what_it_is_told_and_learns_nothing(deployment, kind):
    graph = {"name": "nested", "n": 5}
    each, twin = deployment.create(kind, graph=graph).play(), deployment.create(kind, graph=graph).play()
    waiting, lost = each.decide(2), twin.decide(2)
    each.change(state="frozen", play={"1": 0.25, "3": 0.75}).ok()
    made = [one for _ in range(10) for one in each.decide(40)]
    assert {(one["drawn_by"], one["arm"], one["probability"]) for one in made} == {
        ("frozen", 1, 0.25),
        ("frozen", 3, 0.75),
    }
    # 100 are expected. Outside of these bounds with a probability below 1e-5; the seed is fixed.
    assert 60 < [one["arm"] for one in made].count(1) < 140
    told = each.tell_many([*waiting, *made], 1.0).body
    assert (told["learned"], told["duplicates"]) == (0, [])
    assert each.counts("frozen", "outstanding") == (400, 0)
    rows = each.rows()
    logged = {(rows[one["id"]]["action"], *rows[one["id"]]["observe_probabilities"]) for one in made}
    assert logged == {(1, 1.0, 1.0), (3, 1.0, 1.0, 0.75, 0.75)}
    each.change(state="running").ok()
    for one in lost:
        twin.cancel(one).ok()
    assert drawn(each.decide(4)) == drawn(twin.decide(4))


@promise()
def a_frozen_experiment_plays_only_arms_that_are_available(deployment, kind):
    each = deployment.create(kind, learner="exp3-set", options={"late": "plain"})
    each.change(state="frozen", play={"0": 0.5, "3": 0.5}).ok()
    made = each.decide(available=[3, 4])
    assert (made["arm"], made["probability"]) == (3, 1.0)
    before, refused = each.sequence(), each.ask(available=[1, 2])
    assert (refused.code, refused.body["path"]) == ((422, "invalid"), "body.available")
    assert each.sequence() == before


@promise(server="own")
def decisions_of_every_kind_that_wait_survive_a_restart(deployment, kind):
    each = deployment.create(kind, graph={"name": "cliques", "sizes": [3, 2]})
    other = {"graph": {"name": "complete", "n": 5}}
    waiting = [each.decide(), each.decide(**other)]
    each.change(state="frozen", play={"0": 0.5, "1": 0.5}).ok()
    waiting += [each.decide(), each.decide(**other)]
    each.change(state="stopped", fallback=1).ok()
    waiting.append(each.decide())
    digest = each.digest()
    deployment.restart()
    assert each.digest() == digest
    for made in reversed(waiting):
        each.tell(made, 0.5).ok()
    digest = each.digest()
    deployment.restart_without_snapshots()
    assert each.digest() == digest


@promise(stored=True)
def an_archived_experiment_rests_with_all_of_its_data(deployment, kind):
    each, running = deployment.create(kind, expire_after=10).play(), deployment.create(kind, expire_after=10)
    made, _ = each.decide(2), running.decide()
    rows = each.rows()
    each.change(state="archived").ok()
    before = each.sequence()
    for reply in (each.ask(), each.ask(2), each.tell(made[0]), each.tell_many(made), each.cancel(made[0])):
        assert reply.code == (409, "archived")
    listed = deployment.get("/v1/experiments?limit=1000").body
    assert each.name not in [item["name"] for item in listed["items"]]
    assert each.name in [item["name"] for item in listed["archived"]]
    deployment.restart()
    deployment.hands.move(11)
    until(lambda: running.counts("expired") == (1,))
    assert (each.state()["state"], each.sequence(), each.rows()) == ("archived", before, rows)
    each.change(state="running").ok()
    assert each.ask().status == 201
    assert [change["by"] for change in deployment.get(f"{each.path}/changes").body["items"]] == ["admin"] * 3


@promise(stored=True)
def a_renamed_experiment_leaves_its_name_and_keeps_its_decisions(deployment, kind):
    each = deployment.create(kind).play()
    made, old, after = each.decide(2), each.name, f"{each.name}-after"
    each.rename(after)
    assert deployment.get(f"/v1/experiments/{old}").status == 404
    assert deployment.create(kind, name=old).counts("decided") == (0,)
    assert each.tell_many(made).body["learned"] == 2
    assert each.look_up(made[0]).body["experiment"] == after
    refused = each.change(name=old)
    assert refused.code == (409, "exists")
    assert refused.body["path"] == "body.name"
    digest = each.digest()
    deployment.restart()
    assert (each.state()["name"], each.digest()) == (after, digest)


@promise(stored=True)
def a_deleted_experiment_is_gone_and_its_name_is_free(deployment, kind):
    each = deployment.create(kind).play()
    made = each.decide()
    refused = deployment.request("DELETE", each.path)
    assert refused.code == (422, "invalid")
    assert refused.body["path"] == "query.name"
    assert each.tell(made).status == 200
    waiting = each.decide()
    gone = each.delete()
    assert (gone.status, gone.body["name"], gone.body["by"]) == (200, each.name, "admin")
    for reply in (
        each.ask(),
        each.tell(waiting),
        each.cancel(waiting),
        each.look_up(made),
        each.log(),
        each.clone()[0],
    ):
        assert reply.code == (404, "not_found")
    listed = deployment.get("/v1/experiments?limit=1000").body
    assert [item["by"] for item in listed["deleted"] if item["name"] == each.name] == ["admin"]
    anew = deployment.create(kind, name=each.name)
    assert (anew.counts("decided"), anew.decide()["round"]) == ((0,), 1)
    assert each.look_up(made).status == 404


@promise()
def a_state_that_makes_no_sense_is_refused(deployment, kind):
    each = deployment.create(kind).play(1)
    digest, before = each.digest(), each.sequence()
    for path, wanted in (
        ("body.state", {"state": "asleep"}),
        ("body.state", {"state": None}),
        ("body.play", {"state": "frozen"}),
        ("body.play", {"play": 1}),
        ("body.play", {"state": "running", "play": 1}),
        ("body.play", {"state": "frozen", "play": 5}),
        ("body.play", {"state": "frozen", "play": "a"}),
        ("body.play", {"state": "frozen", "play": {"0": 0.5}}),
        ("body.play", {"state": "frozen", "play": {}}),
        ("body.play", {"state": "frozen", "play": [1.0]}),
        ("body.fallback", {"fallback": 1}),
        ("body.fallback", {"state": "stopped", "fallback": 5}),
        ("body.labels", {"labels": ["a"]}),
        ("body.labels.2", {"labels": list("abacd")}),
        ("body.expire_after", {"expire_after": 0}),
        ("body.name", {"name": "no/name"}),
        ("body.nothing", {"nothing": 1}),
    ):
        refused = each.change(**wanted)
        assert refused.code == (422, "invalid"), wanted
        assert refused.body["path"] == path, wanted
    assert each.change(state="running").status == 200  # as it is already: nothing is written
    assert (each.digest(), each.sequence()) == (digest, before)


@promise()
def a_state_survives_a_restart_and_the_journal_says_who_chose_it(deployment, kind):
    each = deployment.create(kind, labels=list("abcde")).play()
    each.change(state="frozen", play="c").ok()
    each.change(labels=list("vwxyz"), description="changed", expire_after=None).ok()
    state, digest = each.state(), each.digest()
    deployment.restart()
    assert (each.state(), each.digest()) == (state, digest)
    assert each.decide()["arm"] == 2
    changes = deployment.get(f"{each.path}/changes").body["items"]
    assert [change["by"] for change in changes] == ["admin"] * 3
    assert changes[1]["change"]["state"] == "frozen"


# Tokens of one experiment.


@promise()
def a_token_of_one_experiment_reaches_no_other(deployment, kind):
    each, other = deployment.create(kind), deployment.create(kind)
    token, theirs = deployment.token("admin", experiment=each.name), other.decide()
    assert each.ask(token=token).status == 201
    for path in (other.path, f"{other.path}/log", f"{other.path}/keys", f"/v1/decisions/{theirs['id']}"):
        assert deployment.get(path, token=token).code == (404, "not_found")
    feedback = {"id": theirs["id"], "losses": [0.5] * 5}
    for path, body in (
        (f"{other.path}/decisions", {}),
        (f"/v1/decisions/{theirs['id']}/feedback", {"losses": [0.5] * 5}),
        (f"/v1/decisions/{theirs['id']}/cancel", None),
        ("/v1/feedback", in_columns([feedback])),
    ):
        assert deployment.post(path, body, token=token).code == (404, "not_found"), path
    assert other.counts("outstanding") == (1,)
    each.rename(f"{each.name}-after")
    assert deployment.get("/v1/access", token=token).body["experiment"] == each.name
    assert each.ask(token=token).status == 201


@promise()
def a_token_of_a_deleted_experiment_does_not_seem_to_be_for_all(deployment, kind):
    each = deployment.create(kind)
    token = deployment.token("read", experiment=each.name)
    bound = deployment.get("/v1/access", token=token).body["experiment"]
    if bound != each.name:
        raise RuntimeError(bound)
    each.delete()
    access = deployment.get("/v1/access", token=token)
    assert access.status != 200 or access.body["experiment"] is not None, access.body


@promise()
def the_log_that_a_token_of_one_experiment_exports_has_its_name(deployment, kind):
    each = deployment.create(kind).play(1)
    log = each.log(token=deployment.token("read", experiment=each.name)).ok()
    about = pq.read_table(io.BytesIO(log.body)).schema.metadata[b"sidelong.experiment"]
    named = f'filename="{each.name}.parquet"' in log.headers["Content-Disposition"]
    assert (named, json.loads(about)["name"]) == (True, each.name)


@promise(
    kinds=("keyed",),
)
def a_name_that_changes_hands_shows_a_token_no_keys_of_others(deployment, kind):
    mine, theirs = deployment.create(kind), deployment.create(kind)
    mine.decide(1)
    deployment.post(f"{theirs.path}/decisions", {"key": "secret"}).ok()
    token, name = deployment.token("read", experiment=mine.name), mine.name
    seen = deployment.get(f"/v1/experiments/{name}/keys", token=token).ok().body["items"]
    if [item["key"] for item in seen] != KEYS[:1]:
        raise RuntimeError(seen)
    with deployment.beside() as other:
        for path, after in ((mine.path, f"{name}-mine"), (theirs.path, name)):
            other.request("PATCH", path, {"name": after}).ok()
    shown = deployment.get(f"/v1/experiments/{name}/keys", token=token)
    assert "secret" not in json.dumps(shown.body)


# Expiry: it is not an error, and nothing is learned from it.


@promise()
def a_decision_without_feedback_expires_and_has_not_failed(deployment, kind):
    each = deployment.create(kind, expire_after=10)
    made, before = each.decide(2), each.observed()
    deployment.hands.move(10.001)
    until(lambda: each.counts("expired") == (2,))
    assert each.counts("decided", "outstanding", "told", "cancelled", "late") == (2, 0, 0, 0, 0)
    shown = each.look_up(made[0]).body
    assert (shown["status"], shown["losses"]) == ("expired", None)
    assert {row["status"] for row in each.rows().values()} == {"expired"}
    assert each.observed() == before
    assert each.cancel(made[0]).code == (410, "expired")
    assert each.ask().status == 201


@promise()
def feedback_after_expiry_is_kept_as_late_and_not_learned(deployment, kind):
    each, twin = (deployment.create(kind, expire_after=10).play() for _ in range(2))
    made, before = each.decide(), each.observed()
    twin.cancel(twin.decide()).ok()
    deployment.hands.move(10.001)  # and the feedback comes before the service has looked for what has expired
    for _ in range(2):
        assert each.tell(made, 1.0).code == (410, "expired")
    assert each.counts("expired", "late", "outstanding") == (1, 1, 0)
    assert each.observed() == before
    shown = each.look_up(made).body
    assert (shown["status"], shown["losses"]) == ("late", [1.0] * 5)
    assert each.rows()[made["id"]]["status"] == "late"
    assert drawn(each.decide(4)) == drawn(twin.decide(4))


@promise()
def a_batch_with_late_feedback_is_told_in_part_if_it_says_so(deployment, kind):
    each = deployment.create(kind, expire_after=10)
    late = each.decide()
    deployment.hands.move(9)
    prompt = each.decide()
    deployment.hands.move(2)
    assert each.tell_many([prompt, late]).code == (410, "expired")
    assert each.counts("told", "outstanding") == (0, 1)
    told = each.tell_many([prompt, late], partial=True).ok().body
    assert told["learned"] == 1
    assert [(problem["id"], problem["code"]) for problem in told["problems"]] == [(late["id"], "expired")]
    assert each.counts("told", "expired", "late", "outstanding") == (1, 1, 1, 0)


@promise()
def a_decision_does_not_expire_before_its_time(deployment, kind):
    each, never = deployment.create(kind, expire_after=10), deployment.create(kind, expire_after=None)
    one, other, kept = each.decide(), each.decide(), never.decide()
    assert kept["expires_at"] is None
    deployment.hands.move(9.999)
    assert each.tell(one).status == 200
    deployment.hands.move(0.002)
    assert each.tell(other).code == (410, "expired")
    deployment.hands.move(10**8)
    assert never.tell(kept).status == 200


@promise()
def a_changed_expiry_counts_for_decisions_that_wait(deployment, kind):
    each = deployment.create(kind, expire_after=10)
    one, other = each.decide(), each.decide()
    each.change(expire_after=1000).ok()
    deployment.hands.move(20)
    assert each.tell(one).status == 200
    each.change(expire_after=5).ok()
    assert each.tell(other).code == (410, "expired")


@promise()
def no_jump_of_the_wall_clock_lets_decisions_expire(deployment, kind):
    each = deployment.create(kind, expire_after=10)
    made = [each.decide()]
    for hours in (1, -3, 2):
        deployment.hands.wall += 3600 * hours
        made.append(each.decide())
        assert each.tell(made[-2]).status == 200
    assert [one["round"] for one in made] == [1, 2, 3, 4]
    assert list(each.rows()) == [one["id"] for one in made]  # in this order, whatever the clock said
    assert each.counts("told", "expired", "outstanding") == (3, 0, 1)


@promise(stored=True)
def time_without_a_server_does_not_count_for_expiry(deployment, kind):
    each = deployment.create(kind, expire_after=10)
    one, other = each.decide(2)
    deployment.hands.move(6)
    deployment.restart(pause=3600)
    assert each.counts("expired", "outstanding") == (0, 2)
    assert each.tell(one).status == 200
    deployment.hands.move(5)
    assert each.tell(other).code == (410, "expired")


@promise(stored=True)
def a_default_loss_is_learned_when_a_decision_expires(deployment, kind):
    scale = {"best": 0.0, "worst": 4.0}
    each = deployment.create(kind, scale=scale, expire_after=10, default_loss=3.0)
    twin = deployment.create(kind, scale=scale)
    made = each.decide(2)
    deployment.hands.move(11)
    until(lambda: each.counts("defaulted") == (2,))
    twin.tell_many(twin.decide(2), 3.0).ok()
    assert each.counts("told", "expired", "outstanding") == (2, 0, 0)
    assert each.observed() == twin.observed()
    assert each.tell(made[0], 0.25).code == (410, "expired")
    shown = each.look_up(made[0]).body
    assert (shown["status"], shown["losses"]) == ("defaulted", [0.75] * 5)
    assert each.counts("late") == (1,)
    assert {(row["status"], *row["losses"]) for row in each.rows().values()} == {("defaulted", *[0.75] * 5)}
    assert drawn(each.decide(4)) == drawn(twin.decide(4))


@promise()
def while_frozen_a_default_loss_is_kept_and_not_learned(deployment, kind):
    each, twin = deployment.create(kind, expire_after=10, default_loss=0.5), deployment.create(kind)
    each.decide(2)
    for one in twin.decide(2):
        twin.cancel(one).ok()
    each.change(state="frozen", play=0).ok()
    deployment.hands.move(11)
    until(lambda: each.counts("defaulted") == (2,))
    each.change(state="running").ok()
    assert drawn(each.decide(4)) == drawn(twin.decide(4))


@promise()
def an_experiment_with_a_scale_shows_amounts_in_its_unit(deployment, kind):
    assert deployment.create(kind).play().state()["amounts"] is None
    for scale in ({"best": 10.0, "worst": 250.0}, {"best": 100.0, "worst": 0.0}):
        each = deployment.create(kind, scale=scale, holdout={"arm": 1, "share": 0.5})
        amounts = each.state()["amounts"]
        assert (amounts["rounds"], amounts["total"], amounts["per_round"], amounts["saved"]) == (0, 0.0, None, None)
        values = [10.0, 90.0, 50.0, 70.0, 80.0]
        made = [one for _ in range(10) for one in each.decide(4)]
        for one in made:
            each.tell(one, [values[arm] for arm in one["reveals"]]).ok()
        paid = [values[one["arm"]] for one in made if one["drawn_by"] == "learner"]
        state = each.state()
        amounts, lift, width = state["amounts"], state["lift"], abs(scale["worst"] - scale["best"])
        assert amounts["rounds"] == lift["learned"] == len(paid) < 40
        assert amounts["total"] == pytest.approx(sum(paid))
        assert amounts["per_round"] == pytest.approx(sum(paid) / len(paid))
        for name in ("estimate", "low", "high"):
            assert amounts["saved_per_round"][name] == pytest.approx(width * lift[name])
            assert amounts["saved"][name] == pytest.approx(width * lift[name] * len(paid))
        if state["regret"] is not None:
            assert amounts["regret"]["estimate"] == pytest.approx(width * state["regret"]["estimate"])


# Decisions that were carried out with another arm.


def overridden(deployment, kind, **spec):
    """Return an experiment, one of its decisions, and another arm than the one that it plays."""
    each = deployment.create(kind, graph={"name": "nested", "n": 5}, labels=list("abcde"), **spec).play()
    made = each.decide()
    return each, made, (made["arm"] + 2) % 5


@promise()
def a_decision_that_was_carried_out_with_another_arm_is_told_what_that_revealed(deployment, kind):
    each, made, other = overridden(deployment, kind)
    before = each.observed()
    reply = each.override(made, other).ok().body
    assert (reply["arm"], reply["carried_out"], reply["duplicate"]) == (made["arm"], other, False)
    assert reply["reveals"] == list(range(other + 1))
    assert each.tell(made, [0.5] * len(made["reveals"])).status == 422  # those of the arm that was drawn
    shown = each.look_up(made).ok().body
    assert (shown["arm"], shown["carried_out"], shown["reveals"]) == (made["arm"], other, reply["reveals"])
    assert (shown["status"], shown["observe_probabilities"]) == ("outstanding", None)
    told = each.tell(reply, 0.5, arm="abcde"[other]).ok().body
    assert (told["learned"], told["duplicate"]) == (True, False)  # by the means, as an agent's `tell` says
    assert each.counts("told", "outstanding", "overridden") == (13, 0, 1)
    assert [row[:2] for row in each.observed()] == [row[:2] for row in before]  # nobody drew this arm
    shown = each.look_up(made).ok().body
    assert (shown["carried_out"], shown["status"], shown["losses"]) == (other, "told", [0.5] * (other + 1))
    row = each.rows()[made["id"]]
    assert (row["action"], row["drawn_by"], row["pscore"], row["status"]) == (other, "override", None, "told")
    assert row["observed"] == reply["reveals"]


@promise()
def an_override_is_answered_as_before_or_refused(deployment, kind):
    each, made, other = overridden(deployment, kind)
    assert each.override(made, made["arm"]).ok().body["duplicate"]  # which it plays anyway
    assert each.counts("overridden") == (0,)
    for wrong in (5, -1, "f", "0", None, 1.5):
        assert each.override(made, wrong).code == (422, "invalid")
    each.override(made, "abcde"[other]).ok()
    sequence = each.sequence()
    assert each.override(made, other).ok().body["duplicate"]
    assert each.override(made, (other + 1) % 5).code == (409, "conflict")
    assert each.cancel(made).code == (409, "conflict")
    assert each.sequence() == sequence
    each.tell({**made, "reveals": list(range(other + 1))}, 0.5).ok()
    assert each.override(made, other).ok().body["duplicate"]
    assert each.override(made, (other + 1) % 5).code == (409, "told")
    assert each.tell({**made, "reveals": list(range(other + 1))}, 0.5).ok().body["duplicate"]
    assert each.tell({**made, "reveals": list(range(other + 1))}, 0.25).code == (409, "conflict")
    cancelled = each.decide()
    each.cancel(cancelled).ok()
    assert each.override(cancelled, (cancelled["arm"] + 1) % 5).code == (409, "cancelled")
    assert each.override({"id": made["id"].split("-")[0] + "-999"}, 1).code == (404, "not_found")


@promise(stored=True)
def an_override_is_replayed_and_changes_the_learner_as_that_of_an_agent(deployment, kind):
    each = deployment.create(kind, graph={"name": "nested", "n": 5}, learner="glance", options={}, seed=5)
    graph = sl.graphs.nested(5)
    seed = 5 if kind == "keyless" else sl.Family("glance", graph, seed=5).seed_of(KEYS[0])
    agent = sl.Agent("glance", graph, seed=seed)
    for number in range(30):
        made, own = each.decide(), agent.ask()
        assert (made["arm"], made["probability"]) == (own.arm, own.probability)
        if number % 3 == 0:
            other = (made["arm"] + 1 + number % 4) % 5
            made, own = each.override(made, other).ok().body, agent.override(own, other)
        if number == 15:
            deployment.restart()
        losses = {str(arm): (arm + number) % 5 / 4 for arm in made["reveals"]}
        each.tell(made, losses).ok()
        agent.tell(own, {int(arm): loss for arm, loss in losses.items()})
    digest = each.digest()
    deployment.restart()
    assert each.digest() == digest
    assert each.counts("overridden", "told") == (10, 30)


@promise()
def an_overridden_decision_expires_alone_and_is_told_late(deployment, kind):
    each, made, other = overridden(deployment, kind, expire_after=10)
    others = each.decide(3)
    each.override(made, other).ok()
    deployment.hands.move(11)
    until(lambda: each.counts("outstanding") == (0,))
    assert each.counts("expired", "overridden") == (4, 1)
    assert each.override(made, (other + 1) % 5).code == (410, "expired")
    told = {**made, "reveals": list(range(other + 1))}
    assert each.tell(told, 0.5).code == (410, "expired")
    assert each.tell(others[0], 0.5).code == (410, "expired")
    shown = each.look_up(made).ok().body
    assert (shown["status"], shown["carried_out"], shown["losses"]) == ("late", other, [0.5] * (other + 1))
    deployment.restart()
    assert each.look_up(made).ok().body == shown


@promise()
def overridden_rounds_count_for_no_holdout_and_no_arm(deployment, kind):
    each = deployment.create(kind, holdout={"arm": 1, "share": 0.5}, scale={"best": 0, "worst": 10})
    for made in [one for _ in range(5) for one in each.decide(4)]:
        each.override(made, (made["arm"] + 1) % 5).ok()
        each.tell(made, 5.0).ok()
    state = each.state()
    assert state["counts"]["overridden"] == state["counts"]["told"] == 20
    assert (state["lift"]["held"], state["lift"]["learned"], state["amounts"]["rounds"]) == (0, 0, 0)
    assert {arm["plays"] for arm in state["arms"]["items"]} == {0}


# Feedback: late, in any order, again; or wrong, and then nothing changes.


@promise()
def feedback_comes_in_any_order_with_the_probabilities_of_its_own_round(deployment, kind):
    each = deployment.create(kind).play()
    made = [each.decide() for _ in range(6)]
    seen = [each.look_up(one).body for one in made]
    for place in (4, 0, 5, 2, 1, 3):
        told = each.tell(made[place], place / 10).ok().body
        assert (told["learned"], told["duplicate"], told["round"]) == (True, False, made[place]["round"])
    rows = each.rows()
    for place, (one, before) in enumerate(zip(made, seen, strict=True)):
        row = rows[one["id"]]
        assert (row["pscore"], row["losses"]) == (one["probability"], [place / 10] * 5)
        assert row["observe_probabilities"] == before["observe_probabilities"]
        assert row["reward"] == pytest.approx(1 - place / 10)


@promise(stored=True)
def the_same_feedback_again_is_recognised_and_learned_once(deployment, kind):
    each = deployment.create(kind).play()
    made = each.decide(3)
    losses = {"0": 0.1, "1": 0.2, "2": 0.3, "3": 0.4, "4": 0.5}
    assert each.tell_many(made, [losses] * 3).body["learned"] == 3
    digest, before = each.digest(), each.sequence()
    for given in (losses, list(losses.values()), dict(reversed(losses.items()))):
        told = each.tell(made[0], given).ok().body
        assert (told["learned"], told["duplicate"]) == (False, True)
    again = each.tell_many(made, [losses] * 3).ok().body
    assert (again["learned"], again["duplicates"]) == (0, [one["id"] for one in made])
    deployment.restart()
    assert each.tell(made[1], losses).body["duplicate"]
    assert (each.digest(), each.sequence()) == (digest, before)


@promise()
def other_feedback_for_a_decision_is_refused_and_the_first_stays(deployment, kind):
    each = deployment.create(kind).play()
    made = each.decide(2)
    each.tell(made[0], 0.25).ok()
    digest, before = each.digest(), each.sequence()
    assert each.tell(made[0], 0.5).code == (409, "conflict")
    assert each.tell(made[0], {"0": 0.25}).code == (409, "conflict")
    assert each.tell(made[0], 0.25, graph=GRAPH).code == (409, "conflict")
    refused = each.tell_many([made[1], made[0]], 0.5)
    assert refused.code == (409, "conflict")
    assert refused.body["path"] == "body.ids.1"
    assert (each.digest(), each.sequence()) == (digest, before)
    assert each.look_up(made[0]).body["losses"] == [0.25] * 5
    deployment.restart()
    assert each.tell(made[0], 0.5).code == (409, "conflict")


@promise()
def feedback_for_too_few_or_other_arms_is_refused_and_changes_nothing(deployment, kind):
    each = deployment.create(kind, graph={"name": "cliques", "sizes": [3, 2]}).play()
    made = each.decide(2)
    one = made[0]
    right = dict.fromkeys(map(str, one["reveals"]), 0.5)
    missing, hidden = dict(list(right.items())[1:]), next(arm for arm in range(5) if arm not in one["reveals"])
    digest, before = each.digest(), each.sequence()
    first = one["reveals"][0]
    begin = len(made[1]["reveals"])  # where its losses begin in a batch
    for path, place, losses in (
        (f"losses.{first}", "", missing),
        (f"losses.{hidden}", f".{begin + len(right)}", {**right, str(hidden): 0.5}),
        (f"losses.{first}", "", {}),
        ("losses.5", f".{begin + len(right)}", {**right, "5": 0.5}),
        ("losses.x", f".{begin}", {"x": 0.5}),
        ("losses", "", [0.5] * (len(right) + 1)),
        ("losses", "", [0.5]),
    ):
        refused = each.tell(one, losses)
        assert refused.code == (422, "invalid"), losses
        assert refused.body["path"] == f"body.{path}", losses
        refused = each.tell_many([made[1], one], [0.5, losses])
        assert refused.code == (422, "invalid"), losses
        assert refused.body["path"] == f"body.losses{place}", losses
    assert each.tell(one, right, arm=(one["arm"] + 1) % 5).code == (422, "invalid")
    assert (each.digest(), each.sequence()) == (digest, before)
    assert each.counts("outstanding") == (2,)


@promise()
def a_loss_that_is_no_number_from_0_to_1_is_refused_with_its_path_and_value(deployment, kind):
    each = deployment.create(kind).play()
    made = each.decide(2)
    digest, before = each.digest(), each.sequence()
    for text, value in (
        ("-0.1", -0.1),
        ("1.0000001", 1.0000001),
        ("1e400", "Infinity"),
        ("NaN", "NaN"),
        ("Infinity", "Infinity"),
        ("-Infinity", "-Infinity"),
        ('"NaN"', "NaN"),
        ('"0.5"', "0.5"),
        ("true", True),
        ("null", None),
        ("[0.5]", [0.5]),
        ('{"a": [null, NaN]}', {"a": [None, "NaN"]}),
    ):
        by_arm = f'{{"0": 0.5, "1": 0.5, "2": 0.5, "3": {text}, "4": 0.5}}'
        several = f'{{"ids": ["{made[1]["id"]}", "{made[0]["id"]}"], "sizes": [5, 5], "losses": [0, 0, 0, 0, 0, 0.5, '
        for path, body, place in (
            (f"/v1/decisions/{made[0]['id']}/feedback", f'{{"losses": {by_arm}}}', "body.losses.3"),
            (f"/v1/decisions/{made[0]['id']}/feedback", f'{{"losses": [0.5, 0.5, 0.5, {text}, 0.5]}}', "body.losses.3"),
            ("/v1/feedback", f"{several}0.5, 0.5, {text}, 0.5]}}", "body.losses.8"),
        ):
            refused = deployment.post(path, body.encode())
            assert refused.code == (422, "invalid"), body
            assert refused.body["path"] == place, body
            assert refused.body["value"] == value, body
    assert (each.digest(), each.sequence()) == (digest, before)


@promise()
def a_batch_is_told_whole_or_not_at_all_unless_it_says_so(deployment, kind):
    each = deployment.create(kind)
    made = each.decide(4)
    each.cancel(made[3]).ok()
    before = each.sequence()
    assert each.tell_many([made[0], made[0]]).code == (422, "invalid")
    assert each.tell_many([made[0], {**made[1], "id": "0" * 16 + "-1"}]).status in {404, 422}
    assert each.tell_many([*made[:2], made[3]]).code == (409, "cancelled")
    assert each.sequence() == before
    told = each.tell_many(made, [0.25, 1.5, 0.25, 0.25], partial=True).ok().body
    problems = [(problem["id"], problem["status"], problem["code"]) for problem in told["problems"]]
    assert problems == [(made[1]["id"], 422, "invalid"), (made[3]["id"], 409, "cancelled")]
    assert told["learned"] == 2
    assert each.counts("told", "outstanding", "cancelled") == (2, 1, 1)


@promise()
def a_decision_is_cancelled_once_and_teaches_nothing(deployment, kind):
    each = deployment.create(kind).play()
    cancelled, told = each.decide(2)
    before = each.observed()
    assert [each.cancel(cancelled).ok().body["duplicate"] for _ in range(2)] == [False, True]
    assert each.observed() == before
    assert each.tell(cancelled).code == (409, "cancelled")
    each.tell(told).ok()
    assert each.cancel(told).code == (409, "told")
    assert each.look_up(cancelled).body["status"] == "cancelled"
    unknown = {**told, "id": told["id"].rpartition("-")[0] + "-999"}
    for reply in (each.tell(unknown), each.cancel(unknown), each.look_up(unknown)):
        assert reply.code == (404, "not_found")


# Advice.

ADVISED = {"learner": "glance", "options": {}, "labels": list("vwxyz")}


def _advised(each, t):
    """Decide once and for several, with advisers that come and fall silent; tell some, and return those that wait."""
    one = each.decide(advice={"forecast": t % 5, "team": "z" if t % 2 else None})
    assert each.look_up(one).body["advice"] == {"forecast": t % 5, "team": "z" if t % 2 else None}
    several = {"forecast": [0, "z", None], "other": [[0.2] * 5, None, -1]} if each.kind == "keyed" else {"other": "v"}
    first, *others = each.decide(3, advice=several)
    shown = {"forecast": 0, "other": [0.2] * 5} if each.kind == "keyed" else several
    assert each.look_up(first).body["advice"] == shown
    each.tell_many([one, *others], [{str(arm): arm * t % 4 / 4 for arm in range(5)}] * 3).ok()
    return first


@promise(server="own")
def advice_stays_with_decisions_and_in_the_journal(deployment, kind):
    each = deployment.create(kind, **ADVISED)
    waiting = [_advised(each, t) for t in range(3)]
    digest = each.digest()
    deployment.restart()
    assert each.digest() == digest
    each.tell_many(waiting, 0.5).ok()
    _advised(each, 4)
    digest = each.digest()
    deployment.restart_without_snapshots()
    assert each.digest() == digest
    of = f"{each.path}?key={KEYS[0]}" if kind == "keyed" else each.path
    found = deployment.get(of).ok().body["advisers"]
    assert [(row["name"], row["rounds"]) for row in found] == [
        ("forecast", 8 if kind == "keyed" else 4),
        ("team", 1),
        ("other", 4 if kind == "keyed" else 12),
    ]
    logged = {id_: json.loads(row["advice"]) for id_, row in each.rows().items()}
    assert logged == {id_: each.look_up({"id": id_}).body["advice"] for id_ in logged}
    assert deployment.get(f"{each.path}/agent").status == 200
    reply, clone = each.clone(learned=True)
    reply.ok()
    _advised(clone, 1)


@promise()
def an_experiment_decides_by_advice_as_an_agent_does(deployment, kind):
    each = deployment.create(kind, **ADVISED)
    family = sl.Family("glance", sl.graphs.complete(5), seed=7)
    agent = family[KEYS[0]] if kind == "keyed" else sl.Agent("glance", sl.graphs.complete(5), seed=7)
    for t in range(6):
        advice = {"forecast": t % 5, "team": None if t % 2 else 3}
        made, own = each.decide(advice=advice), agent.ask(advice=advice)
        assert (made["arm"], made["probability"]) == (own.arm, own.probability)
        losses = [arm * t % 4 / 4 for arm in range(5)]
        each.tell(made, dict(zip("01234", losses, strict=True))).ok()
        agent.tell(own, losses)


@promise(server="own")
def a_holdout_is_beside_advice(deployment, kind):
    each = deployment.create(kind, **ADVISED, holdout={"arm": 1, "share": 0.5})
    seed = sl.Family("glance", sl.graphs.complete(5), seed=7).seed_of(KEYS[0]) if kind == "keyed" else 7
    agent, by = sl.Agent("glance", sl.graphs.complete(5), seed=seed), set()
    for t in range(16):
        advice = {"forecast": t % 5, "team": None if t % 2 else 3}
        made = each.decide(advice=advice)
        by.add(made["drawn_by"])
        held = made["drawn_by"] == "holdout"
        own = None if held else agent.ask(advice=advice)
        p = agent.outlook(advice=advice)[1] if own is None else own.probability
        assert made["arm"] == (1 if own is None else own.arm)
        assert made["probability"] == pytest.approx(0.5 * p + 0.5 * (made["arm"] == 1))
        losses = [arm * t % 4 / 4 for arm in range(5)]
        each.tell(made, dict(zip("01234", losses, strict=True))).ok()
        if own is not None:
            agent.tell(own, losses)
    assert by == {"holdout", "learner"}
    digest = each.digest()
    deployment.restart_without_snapshots()
    assert each.digest() == digest


@promise()
def bad_advice_is_refused_and_changes_nothing(deployment, kind):
    each = deployment.create(kind, **ADVISED)
    each.decide(key="k", advice=2)
    digest = each.digest()
    for advice in (5, -2, "q", 1.5, [0.5, 0.5], [0.3] * 5, {"": 1}, {"a": True}, {f"n{k}": 1 for k in range(33)}):
        refused = each.ask(advice=advice)
        assert (refused.code, refused.body["path"]) == ((422, "invalid"), "body.advice"), advice
    if kind == "keyed":
        refused = each.ask(3, advice={"a": [1, 2]})
        assert (refused.code, refused.body["path"]) == ((422, "invalid"), "body.advice")
    assert each.ask(key="k", advice=3).code == (409, "key_reused")
    assert each.ask(key="k", advice=2).status == 200
    assert each.digest() == digest
    other = deployment.create(kind)
    assert "exp3.g++ takes no advice" in other.ask(advice=1).body["detail"]


@promise()
def an_incumbent_advises_in_every_decision_and_has_an_allowance(deployment, kind):
    scale = {"best": 0, "worst": 10}
    each = deployment.create(kind, **ADVISED, incumbent="today", allowance=20, scale=scale)
    refused = each.ask(advice={"team": 1})
    assert (refused.code, refused.body["path"]) == ((422, "invalid"), "body.advice")
    of = f"{each.path}?key={KEYS[0]}" if kind == "keyed" else each.path
    for _ in range(5):
        each.tell(each.decide(advice={"today": "v"}), {str(arm): 10 - arm for arm in range(5)}).ok()
    state = deployment.get(of).ok().body
    assert (state["incumbent"], state["allowance"]) == ("today", 20)
    assert state["allowance_left"] > 20  # the incumbent is the worst
    for wrong in ({"incumbent": "today"}, {"allowance": 3}, {"incumbent": "today", "allowance": 0}):
        body = {"name": "wrong", "learner": "glance", "graph": GRAPH, **wrong}
        assert deployment.post("/v1/experiments", body).status == 422


# Clones.


@promise(stored=True)
def a_clone_goes_on_from_what_was_learned_and_is_independent(deployment, kind):
    each = deployment.create(kind).play()
    waiting = each.decide(2)
    reply, clone = each.clone()
    assert (reply.status, reply.body["origin"]["name"], reply.body["counts"]["decided"]) == (201, each.name, 0)
    for one in waiting:
        each.cancel(one).ok()  # which the clone never had
    one, other = each.decide(4), clone.decide(4)
    assert drawn(one) == drawn(other)
    assert [made["round"] for made in other] == ([1] * 4 if kind == "keyed" else [1, 2, 3, 4])
    digest = each.digest()
    clone.tell_many(other, 1.0).ok()
    assert each.digest() == digest
    theirs = clone.digest()
    each.tell_many(one, 0.0).ok()
    each.delete()
    deployment.restart()
    assert clone.digest() == theirs
    assert clone.ask().status == 201


@promise()
def a_clone_without_what_was_learned_begins_anew(deployment, kind):
    each = deployment.create(kind, labels=list("abcde"), expire_after=77).play()
    reply, clone = each.clone(learned=False, seed=7)
    assert (reply.status, reply.body["labels"], reply.body["expire_after"]) == (201, list("abcde"), 77)
    anew = deployment.create(kind)
    assert clone.observed() == anew.observed()
    assert drawn(clone.decide(4)) == drawn(anew.decide(4))


@promise()
def a_clone_is_made_once(deployment, kind):
    each = deployment.create(kind).play()
    _, clone = each.clone()
    again = deployment.post(f"{each.path}/clone", {"name": clone.name})
    assert again.status == 200
    for other in ({"learned": False}, {"description": "another"}, {"holdout": {"arm": 1, "share": 0.1}}):
        assert deployment.post(f"{each.path}/clone", {"name": clone.name, **other}).code == (409, "exists")
    assert deployment.post(f"{each.path}/clone", {"name": each.name}).code == (409, "exists")
    refused = deployment.post(f"{each.path}/clone", {"name": "third", "seed": 1})  # what was learned has its own
    assert (refused.code, refused.body["path"]) == ((422, "invalid"), "body.seed")


# Restarts, kills and several servers.


@promise(stored=True)
def a_restart_changes_nothing(deployment, kind):
    each = deployment.create(
        kind, holdout={"arm": 1, "share": 0.3}, scale={"best": 0, "worst": 2}, labels=list("abcde")
    )
    twin = deployment.create(
        kind, holdout={"arm": 1, "share": 0.3}, scale={"best": 0, "worst": 2}, labels=list("abcde")
    )
    for one in (each, twin):
        one.play(4)
        one.tell(one.decide(2)[1], 2.0).ok()
    state, digest, rows = each.state(), each.digest(), each.rows()
    deployment.restart()
    assert (each.state(), each.digest(), each.rows()) == (state, digest, rows)
    assert drawn(each.play().decide(4)) == drawn(twin.play().decide(4))


@promise(server="process")
def a_kill_changes_nothing_that_was_acknowledged(deployment, kind):
    each, frozen = deployment.create(kind).play(), deployment.create(kind).play(1)
    made = each.decide(4, key="k")
    each.tell(made[0]).ok()
    each.cancel(made[1]).ok()
    frozen.change(state="frozen", play=2).ok()

    def seen():
        looked_up = [each.look_up(one).ok().body for one in made]
        return [(one.state(), one.digest()) for one in (each, frozen)], looked_up

    before = seen()
    deployment.kill()
    assert seen() == before
    again = each.ask(4, key="k")
    assert (again.status, drawn(again.decisions)) == (200, drawn(made))
    assert each.tell(made[0]).body["duplicate"]
    assert each.cancel(made[1]).body["duplicate"]
    assert each.tell(made[2]).body["learned"]
    assert frozen.decide()["arm"] == 2


@promise(stored=True)
def two_servers_on_one_database_keep_one_order(deployment, kind):
    each, twin = deployment.create(kind), deployment.create(kind)
    with deployment.beside() as other:
        there = other.known(kind, each.name)
        for number in range(4):
            one, two = (each, there) if number % 2 else (there, each)
            made = one.decide(2, key=f"k{number}")
            assert two.ask(2, key=f"k{number}").status == 200
            assert two.tell_many(made, number / 4).body["learned"] == 2
            assert one.tell(made[0], number / 4).body["duplicate"]
            twin.tell_many(twin.decide(2), number / 4).ok()
        assert there.digest() == each.digest()
    assert each.counts("decided", "told") == (8, 8)
    assert drawn(each.decide(4)) == drawn(twin.decide(4))


@promise()
def counters_of_two_servers_add_up_and_gauges_are_the_same(deployment, kind):
    each = deployment.create(kind)
    with deployment.beside() as other:
        there = other.known(kind, each.name)
        for one, count in ((each, 3), (there, 2)):
            assert one.tell_many(one.decide(count), 0.25).body["learned"] == count
        each.state()  # which catches up
        seen = [server.get("/metrics").ok().body.decode() for server in (deployment, other)]
    for name in ("decided", "told"):
        assert [_sum(text, "sidelong_events_total", each, f'kind="{name}"') for text in seen] == [3, 2]
    assert [_sum(text, "sidelong_plays_total", each) for text in seen] == [3, 2]
    assert [_sum(text, "sidelong_cost", each) for text in seen] == [0.25, 0.25]


def _sum(text, metric, each, label=""):
    wanted = [line for line in text.splitlines() if line.startswith(f"{metric}{{") and label in line]
    return sum(float(line.rpartition(" ")[2]) for line in wanted if f'experiment="{each.name}"' in line)


@promise(server="process", is_last=True)
def a_request_keeps_the_id_and_the_trace_of_its_client(deployment, kind):
    each = deployment.create(kind)
    trace = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
    sent = {"X-Request-Id": "gateway/17", "traceparent": trace}
    reply = deployment.request("GET", each.path, headers=sent)
    assert {name: reply.headers[name] for name in sent} == sent
    for wrong in ({"X-Request-Id": "x" * 129}, {"X-Request-Id": "a b"}, {"traceparent": "00-0-0-0"}, {}):
        reply = deployment.request("GET", each.path, headers=wrong)
        assert reply.headers["X-Request-Id"] not in {"", wrong.get("X-Request-Id")}
        assert "traceparent" not in reply.headers
    [line] = [line for line in deployment.logged(each.path) if line.get("trace")]
    assert (line["request"], line["trace"]) == ("gateway/17", trace[3:35])


@promise(sweep_every=1000.0)
def the_work_of_repeated_feedback_does_not_grow_with_the_journal(deployment, kind):
    told = {}
    for pairs in (20, 100):
        each = deployment.create(kind)
        made = each.decide(2 * pairs)
        for one, other in zip(made[:pairs], made[pairs:], strict=True):
            each.tell_many([one, other]).ok()
        told[each] = made[pairs : pairs + 10]
    work = []
    with deployment.counting_calls() as calls:
        for each, made in told.items():
            each.tell_many(made[:1]).ok()  # brings it into memory
            before = calls.number
            if each.tell_many(made).ok().body["learned"]:
                raise RuntimeError("this was no repetition")
            work.append(calls.number - before)
    assert work[1] < 2 * work[0], work


# Retention: the journal is cut if the operator says so, and what is left says the truth.


@promise(keep_days=1.0, snapshot_every=4, sweep_every=0.01)
def an_old_journal_is_cut_and_nothing_is_decided_or_told_twice(deployment, kind):
    each = deployment.create(kind)
    old = each.decide(4, key="old")
    each.tell_many(old).ok()
    deployment.hands.move(2 * 86_400)
    until(lambda: int(each.play(4).log().headers["First-Event"]) > 1)
    deployment.restart()
    digest, sequence, rows = each.digest(), each.sequence(), each.rows()
    requests = [each.tell, each.cancel, each.look_up, functools.partial(each.override, arm=1)]
    for reply in (each.ask(4, key="old"), *(request(old[0]) for request in requests)):
        assert reply.code == (410, "cut")
    assert (each.digest(), each.sequence()) == (digest, sequence)
    assert rows.keys().isdisjoint(made["id"] for made in old)
    assert each.counts("decided")[0] >= len(rows) + 4
    assert deployment.get(f"{each.path}/changes").body["items"][0]["change"] == {"state": "created"}
    if kind == "keyless":
        found = deployment.post(f"{each.path}/evaluation", {}).ok().body
        assert (found["rounds"], found["first_event"] > 1) == (len(rows), True)
    assert each.clone()[0].status == 201
    assert "sidelong_cut_decisions_total" in deployment.get("/metrics").body.decode()


# Damage: what is stored is used, rebuilt, or refused with a sentence that says where.


@promise(server="own")
def a_damaged_or_lost_snapshot_is_rebuilt_from_the_journal(deployment, kind):
    each, stored = deployment.create(kind).play(), Stored(deployment.address)
    for damage in (Stored.flip, Stored.delete):
        waiting = each.decide(2)
        digest, state = each.digest(), each.state()
        with stored.added() as snapshot:
            deployment.stop()
        if not snapshot:
            raise RuntimeError("There is no snapshot to damage.")
        damage(stored, snapshot)
        deployment.start()
        assert (each.digest(), each.state()) == (digest, state)
        assert each.tell_many(waiting).body["learned"] == 2


@promise(server="own")
def a_damaged_event_is_refused_with_its_place_until_it_is_restored(deployment, kind):
    each, fine = deployment.create(kind).play(), deployment.create(kind).play()
    made, stored = each.decide(3), Stored(deployment.address)
    with stored.added() as events:
        each.tell(made[0]).ok()
    place = each.sequence()
    each.tell_many(made[1:]).ok()
    digest = each.digest()
    with stored.added() as snapshots:
        deployment.stop()
    stored.delete(snapshots)
    with stored.damaged():
        assert stored.flip(events) == 1
        deployment.start()
        for reply in (each.ask(), each.tell(made[0]), deployment.get(each.path)):
            assert reply.code == (503, "refused")
            assert each.name in reply.body["detail"]
            assert f"vent {place} " in reply.body["detail"]
        assert fine.ask().status == 201
        assert [item["name"] for item in deployment.get("/v1/experiments").body["refused"]] == [each.name]
        ready = deployment.get("/ready")
        assert (ready.status, ready.body["status"], ready.body["experiments"]["refused"]) == (200, "degraded", 1)
    deployment.restart()
    assert each.digest() == digest


@promise(server="own")
def a_journal_that_has_lost_its_end_is_refused_and_no_decision_made_again(deployment, kind):
    each, stored = deployment.create(kind).play(), Stored(deployment.address)
    before = each.sequence()
    with stored.added() as events:
        each.decide(2)
    with stored.added() as snapshots:
        deployment.stop()
    stored.delete(snapshots)
    with stored.damaged():
        stored.delete(events)
        deployment.start()
        for reply in (each.ask(), deployment.get(each.path)):
            assert reply.code == (503, "refused")
            assert each.name in reply.body["detail"]
            assert f"event {before}" in reply.body["detail"]
    deployment.restart()
    assert each.counts("outstanding") == (2,)


@promise(server="own")
def an_altered_or_lost_event_behind_the_snapshot_is_not_exported(deployment, kind):
    each, stored = deployment.create(kind).play(), Stored(deployment.address)
    made = each.decide(3)
    with stored.added() as events:
        each.tell(made[0]).ok()
    place = each.sequence()
    each.tell_many(made[1:]).ok()
    for damage in (Stored.flip, Stored.delete):
        deployment.stop()
        with stored.damaged():
            damage(stored, events)
            deployment.start()
            log = each.log()
        assert log.status == 503, f"The log was answered with {log.status}."
        assert f"vent {place}" in log.body["detail"]


@promise(server="own")
def an_experiment_whose_spec_is_damaged_is_refused(deployment, kind):
    fine, stored = deployment.create(kind), Stored(deployment.address)
    with stored.added() as rows:
        each = deployment.create(kind)
    deployment.stop()
    values = stored.rows()
    longest = max(rows, key=lambda row: max(map(_length_of_json, values[row].values())))
    with stored.damaged():
        stored.alter([longest], str, lambda text: text[:-1])
        deployment.start()
        others, own = fine.ask(), [deployment.get(each.path), each.ask()]
    if others.status != 201:
        raise RuntimeError("Another experiment suffers.")
    assert [(reply.status, reply.body["code"]) for reply in own] == [(503, "refused")] * 2
    assert each.name in own[0].body["detail"]


def _length_of_json(value):
    return len(value) if isinstance(value, str) and value.startswith("{") else 0


def _lose(deployment):
    """Take the database away under a running server."""
    if deployment.address.startswith("sqlite"):
        path = Path(deployment.address.removeprefix("sqlite:///"))
        path.rename(path.with_suffix(".away"))
        return
    server, _, name = deployment.address.rpartition("/")
    with psycopg.connect(f"{server}/postgres", autocommit=True) as connection:
        connection.execute(f"DROP DATABASE {name} WITH (FORCE)")


@promise(is_last=True, busy_timeout=1.0)
def without_its_database_the_service_says_so(deployment, kind):
    each = deployment.create(kind)
    made = each.decide()
    _lose(deployment)
    for reply in (each.ask(), each.tell(made)):
        assert reply.code == (503, "unavailable")
        assert int(reply.headers["Retry-After"]) >= 1
    assert deployment.get("/health").status == 200


@promise(
    server="process",
    is_last=True,
    busy_timeout=1.0,
)
def without_its_database_the_service_logs_errors(deployment, kind):
    each = deployment.create(kind)
    _lose(deployment)
    if each.ask().status != 503:
        raise RuntimeError("the database is there")
    lines = [line for line in deployment.logged(f"{each.path}/decisions") if line["status"] == 503]
    assert {line["level"] for line in lines} == {"error"}


@promise(
    databases=("sqlite",),
    server="own",
    is_last=True,
)
def nothing_is_acknowledged_once_the_write_ahead_log_is_gone(deployment, kind):
    each = deployment.create(kind)
    each.decide()
    Path(deployment.address.removeprefix("sqlite:///") + "-wal").unlink()
    reply = each.ask()
    assert (reply.status, reply.body.get("code")) == (503, "unavailable")


# The table is run here.


@pytest.mark.parametrize(("kept", "kind", "database"), [row for each in PROMISES for row in each.rows()])
def test_the_service_keeps_its_promise(kept, kind, database, deployed):
    with deployed(kept, database) as deployment:
        try:
            kept.keep(deployment, kind)
        finally:
            if not kept.is_last:
                deployment.clear()
