"""Sticky decisions: one for each subject until it ends, told several times, and learned as the mean."""

import io

import pyarrow.parquet as pq

import sidelong as sl
from service.deployments import KEYS, Deployment, until

SPEC = {"learner": "exp3-set", "options": {}, "graph": {"name": "complete", "n": 3}, "seed": 4}
STICKY = {**SPEC, "sticky": {"seconds": 1800}}


def report(each, decision, losses, key, **body):
    sent = {"losses": {str(arm): loss for arm, loss in enumerate(losses)}, **body}
    headers = {} if key is None else {"Idempotency-Key": key}
    return each.deployment.post(f"/v1/decisions/{decision['id']}/feedback", sent, headers=headers)


def ended(each, seconds=1800):
    """Let the time of all decisions be over."""
    each.deployment.hands.move(seconds)
    until(lambda: each.counts("outstanding") == (0,))


def replayed(each):
    """Return the digest of what a server has that finds no snapshot."""
    each.deployment.restart_without_snapshots()
    return each.digest()


def test_a_subject_gets_the_same_decision_until_it_ends_and_then_a_new_one(deployment, kind):
    each = deployment.create(kind, **STICKY)
    first = each.ask(subject="ann")
    other = each.ask(subject="bob")
    assert (first.status, other.status) == (201, 201)
    (first,), (other,) = first.decisions, other.decisions
    assert first["id"] != other["id"]
    for seconds in (0, 900, 899):
        deployment.hands.move(seconds)
        again = each.ask(subject="ann", context={"page": seconds})
        assert (again.status, again.body["duplicate"]) == (200, True)
        assert again.decisions == [{**first, **({"duplicate": True} if "duplicate" in first else {})}]
    deployment.restart()
    assert each.decide(subject="ann")["id"] == first["id"]
    with deployment.beside() as server:
        assert server.known(kind, each.name).decide(subject="bob")["id"] == other["id"]
        server._made.clear()  # it is the same experiment
    deployment.hands.move(1)
    new = each.ask(subject="ann")
    assert (new.status, new.body["duplicate"]) == (201, False)
    assert new.decisions[0]["id"] not in {first["id"], other["id"]}
    until(lambda: each.counts("expired") == (2,))
    assert each.counts("decided", "outstanding") == (3, 1)
    assert replayed(each) == each.digest()


def test_a_repeated_ask_is_remembered_by_its_own_key_after_the_decision_has_ended(deployment, kind):
    each = deployment.create(kind, **STICKY)
    first = each.ask(subject="ann", key="a").decisions[0]
    other = each.ask(subject="bob", key="b").decisions[0]
    for _ in range(2):
        again = each.ask(subject="ann", key="c", context={"page": 2})
        assert (again.status, again.body["duplicate"], again.decisions[0]["id"]) == (200, True, first["id"])
    assert each.ask(subject="bob", key="c").code == (409, "key_reused")
    assert each.ask(subject="bob", key="a").code == (409, "key_reused")
    assert report(each, other, [0.5] * 3, "c").code == (409, "key_reused")
    ended(each)
    assert each.decide(subject="ann")["id"] not in {first["id"], other["id"]}
    deployment.restart()
    for _ in range(2):
        assert each.ask(subject="ann", key="c").decisions[0]["id"] == first["id"]
        assert each.ask(subject="bob", key="c").code == (409, "key_reused")
        before = each.digest()
        assert replayed(each) == before
    assert each.counts("decided") == (3,)


def test_its_reports_are_learned_as_their_mean_when_it_ends(deployment, kind):
    each, plain = deployment.create(kind, **STICKY), deployment.create(kind, **SPEC)
    for turn in range(6):
        sticky, single = each.decide(subject="ann"), plain.decide()
        assert (sticky["arm"], sticky["probability"]) == (single["arm"], single["probability"])
        told = [[0.25, 0.5, 1.0], [0.75, 0.5, 0.0], [0.25, 0.5, 0.0], [0.75, turn / 5, 0.0]]
        for number, losses in enumerate(told):
            reply = report(each, sticky, losses, f"request {turn} {number}".replace(" ", "-")).ok().body
            assert (reply["learned"], reply["duplicate"], reply["round"]) == (False, False, sticky["round"])
            if number == 1:
                deployment.restart()
        assert deployment.get(f"/v1/decisions/{sticky['id']}").ok().body["reports"] == 4
        ended(each)
        mean = {str(arm): sum(losses[arm] for losses in told) / 4 for arm in range(3)}
        plain.tell(single, mean).ok()
        seen = deployment.get(f"/v1/decisions/{sticky['id']}").ok().body
        assert (seen["status"], seen["losses"]) == ("told", list(mean.values()))
        assert (seen["subject"], seen["reports"]) == ("ann", None)
    assert each.counts("told", "expired") == (6, 0)
    assert each.observed() == plain.observed()
    rows = pq.read_table(io.BytesIO(each.log().ok().body)).to_pylist()
    assert [row["subject"] for row in rows] == ["ann"] * 6
    assert rows[-1]["losses"] == list(mean.values())
    before = each.digest()
    assert replayed(each) == before


def test_a_report_counts_once_under_its_idempotency_key(deployment, kind):
    each = deployment.create(kind, **STICKY)
    decision, other = each.decide(subject="ann"), each.decide(subject="bob")
    report(each, decision, [0.0, 0.0, 0.0], "one").ok()
    report(each, decision, [1.0, 1.0, 1.0], "two").ok()
    before = each.sequence()
    for _ in range(2):
        again = report(each, decision, [0.0, 0.0, 0.0], "one").ok().body
        assert (again["duplicate"], again["learned"]) == (True, False)
        deployment.restart()
    for sent in ((decision, [0.0, 0.0, 1.0]), (other, [0.0, 0.0, 0.0])):
        assert report(each, *sent, "one").code == (409, "key_reused")
    assert each.ask(subject="carl", key="one").code == (409, "key_reused")
    made = each.decide(subject="dora", key="of-dora")
    assert report(each, made, [0.0, 0.0, 0.0], "of-dora").code == (409, "key_reused")
    assert each.decide(subject="dora", key="of-dora")["id"] == made["id"]
    assert each.ask(subject="ann", key="of-dora").code == (409, "key_reused")
    assert each.sequence() == before + 1
    ended(each)
    assert report(each, decision, [0.0, 0.0, 0.0], "one").ok().body["duplicate"] is True
    assert each.decide(subject="dora", key="of-dora")["id"] == made["id"]
    assert deployment.get(f"/v1/decisions/{decision['id']}").body["losses"] == [0.5, 0.5, 0.5]


def test_what_comes_after_the_end_is_not_learned(deployment, kind):
    each = deployment.create(kind, **STICKY)
    told, silent, given_up = (each.decide(subject=name) for name in ("ann", "bob", "carl"))
    report(each, told, [0.0, 0.5, 1.0], "one").ok()
    each.cancel(given_up).ok()
    assert each.decide(subject="carl")["id"] != given_up["id"]  # a new one
    deployment.hands.move(1800)
    for decision in (told, silent):  # at once, before anybody has looked for what is over
        assert report(each, decision, [0.0, 0.0, 0.0], f"late-{decision['id']}").code == (410, "expired")
    assert report(each, given_up, [0.0, 0.0, 0.0], "given-up").code == (409, "cancelled")
    until(lambda: each.counts("outstanding") == (0,))
    assert each.counts("told", "expired", "late", "cancelled") == (1, 2, 1, 1)
    before = each.digest()
    assert replayed(each) == before


def test_a_decision_with_reports_is_neither_cancelled_nor_overridden(deployment, kind):
    each = deployment.create(kind, default_loss=1.0, **STICKY)
    reported, carried, silent = (each.decide(subject=name) for name in ("ann", "bob", "carl"))
    other = (carried["arm"] + 1) % 3
    deployment.post(f"/v1/decisions/{carried['id']}/override", {"arm": other}).ok()
    report(each, carried, [0.5, 0.5, 0.5], "carried").ok()
    report(each, reported, [0.5, 0.5, 0.5], "one").ok()
    assert each.cancel(reported).code == (409, "told")
    reply = deployment.post(f"/v1/decisions/{reported['id']}/override", {"arm": (reported["arm"] + 1) % 3})
    assert reply.code == (409, "told")
    ended(each)
    states = [deployment.get(f"/v1/decisions/{made['id']}").body for made in (reported, carried, silent)]
    assert [state["status"] for state in states] == ["told", "told", "defaulted"]
    assert states[1]["carried_out"] == other
    before = each.digest()
    assert replayed(each) == before


def test_subjects_of_different_keys_have_different_decisions(deployment):
    each = deployment.create("keyed", **STICKY)
    path = f"{each.path}/decisions"
    made = [deployment.post(path, {"key": key, "subject": "ann"}).decisions[0] for key in KEYS[:2]]
    again = [deployment.post(path, {"key": key, "subject": "ann"}).decisions[0] for key in KEYS[:2]]
    assert [each["id"] for each in made] == [each["id"] for each in again]
    assert made[0]["id"] != made[1]["id"]


def test_arms_may_change_while_decisions_are_sticky(on_sqlite, kind):
    each = on_sqlite.create(kind, **STICKY)
    decision = each.decide(subject="ann")
    report(each, decision, [0.0, 0.5, 1.0], "one").ok()
    on_sqlite.post(f"{each.path}/arms", {}).ok()
    assert each.decide(subject="ann")["id"] == decision["id"]
    report(each, decision, [1.0, 0.5, 0.0], "two").ok()
    ended(each)
    assert on_sqlite.get(f"/v1/decisions/{decision['id']}").body["losses"] == [0.5, 0.5, 0.5]
    before = each.digest()
    assert replayed(each) == before


def test_how_long_decisions_last_may_change_and_a_clone_keeps_it(on_sqlite, kind):
    each = on_sqlite.create(kind, **STICKY)
    decision = each.decide(subject="ann")
    refused = each.change(expire_after=None)
    assert (refused.code, refused.body["path"]) == ((422, "invalid"), "body.expire_after")
    each.change(expire_after=60).ok()
    assert each.state()["expire_after"] == 60
    _, clone = each.clone()
    assert clone.state()["sticky"] == {"seconds": 60}
    assert clone.decide(subject="ann")["id"] != decision["id"]
    on_sqlite.hands.move(60)
    assert each.decide(subject="ann")["id"] != decision["id"]


def test_subjects_are_charged_to_a_limit_in_bytes(tmp_path, kind):
    with Deployment(f"sqlite:///{tmp_path}/full.db", max_outstanding_bytes=40_000).running() as deployment:
        each = deployment.create(kind, **STICKY)
        long, count = "x" * 190, 0
        while (reply := each.ask(subject=f"{long}{count}")).status == 201:
            count += 1
        assert reply.code == (429, "too_many_outstanding")
        assert 20 < count < 40_000 / 190
        assert each.ask(subject=f"{long}{count - 1}").status == 200  # who has one keeps it
        ended(each)
        assert each.ask(subject="another").status == 201


def test_what_is_refused_changes_nothing(on_sqlite, kind):
    each, plain = on_sqlite.create(kind, **STICKY), on_sqlite.create(kind, **SPEC)
    decision = each.decide(subject="ann")
    before = each.sequence(), plain.sequence()
    for reply, path in (
        (each.ask(), "body.subject"),
        (each.ask(2, subject="ann"), "body.subject"),
        (each.ask(subject=""), "body.subject"),
        (each.ask(subject="x" * 201), "body.subject"),
        (plain.ask(subject="ann"), "body.subject"),
        (report(each, decision, [0.0, 0.0, 0.0], None), "header.idempotency-key"),
        (report(each, decision, [0.0, 0.0], "one"), "body.losses.2"),
        (report(each, decision, [0.0, 0.0, 2.0], "one"), "body.losses.2"),
        (report(each, decision, [0.0] * 3, "one", graph={"name": "complete", "n": 3}), "body.graph"),
        (each.tell_many([decision]), "body"),
    ):
        assert (reply.status, reply.body["path"]) == (422, path), reply.body
    assert (each.sequence(), plain.sequence()) == before
    body = {"name": "binary", **STICKY, "learner": "ts-n", "keyed": kind == "keyed"}
    refused = on_sqlite.post("/v1/experiments", body)
    assert (refused.status, refused.body["path"]) == (422, "body.sticky")
    for seconds in (0, -1, None, "long"):
        refused = on_sqlite.post("/v1/experiments", {"name": "wrong", **SPEC, "sticky": {"seconds": seconds}})
        assert (refused.status, refused.body["path"]) == (422, "body.sticky.seconds")


def test_the_client_asks_for_subjects_and_reports(on_sqlite):
    with sl.connect(on_sqlite.url, on_sqlite.admin) as service:
        experiment = service.create("routes", "exp3-set", sl.graphs.complete(3), seed=4, sticky=1800)
        decision = experiment.ask(subject="ann")
        assert experiment.ask(subject="ann").id == decision.id
        assert experiment.tell(decision, [0.0, 0.5, 1.0], key="one") is False
        assert experiment.tell(decision, [0.0, 0.5, 1.0], key="one") is False
        experiment.tell(decision, [1.0, 0.5, 0.0])
        assert experiment.look_up(decision)["reports"] == 2
