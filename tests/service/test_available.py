"""Arms that are absent for a round, over HTTP: the same as an agent's, written down, replayed and refused."""

import pytest

import sidelong as sl
from service.in_process import playing
from service.servers import in_columns
from sidelong.errors import GraphError, LossError

LABELS = ["none", "small", "medium", "large"]
MAKE = {
    "name": "trays",
    "learner": "exp3-set",
    "graph": {"name": "nested", "n": 4},
    "labels": LABELS,
    "seed": 5,
    "expire_after": None,
}


def choices(t):
    some = [arm for arm in range(4) if (arm + t) % 3]
    return [None, some, [LABELS[arm] for arm in some], [arm in some for arm in range(4)]][t % 4]


def loss(t, arm):
    return t * (arm + 2) % 5 / 4


async def digest(client):
    return (await client.get("/v1/experiments/trays?digest=true")).json()["digest"]


def test_it_decides_as_an_agent_and_a_replay_of_the_journal_gives_the_same_state(tmp_path):
    agent = sl.Agent("exp3-set", sl.graphs.nested(4).labelled(LABELS), seed=5)

    async def play(client):
        assert (await client.post("/v1/experiments", json=MAKE)).status_code == 201
        for t in range(1, 41):
            body = {} if choices(t) is None else {"available": choices(t)}
            made = (await client.post("/v1/experiments/trays/decisions", json=body)).json()
            decision = agent.ask(available=choices(t))
            assert made["arm"] == decision.arm
            assert made["probability"] == decision.probability
            assert made["reveals"] == decision.reveals.tolist()
            after = {"graph": {"name": "complete", "n": 4}} if t % 5 == 0 else {}
            shown = agent.graph_of_round(sl.graphs.complete(4), choices(t)) if after else decision.graph
            losses = {int(arm): loss(t, int(arm)) for arm in shown.out_neighbors(decision.arm)}
            agent.tell(decision, losses, shown if after else None)
            told = {"losses": {str(arm): value for arm, value in losses.items()}, **after}
            for duplicate in (False, True):
                reply = await client.post(f"/v1/decisions/{made['id']}/feedback", json=told)
                assert reply.status_code == 200, reply.text
                assert reply.json()["duplicate"] is duplicate
            seen = (await client.get(f"/v1/decisions/{made['id']}")).json()
            assert seen["reveals"] == sorted(losses)
            assert seen["losses"] == [losses[arm] for arm in sorted(losses)]
        waiting = (await client.post("/v1/experiments/trays/decisions", json={"available": [1, 3]})).json()
        assert set(waiting["reveals"]) <= {1, 3}
        agent.ask(available=[1, 3])
        return await digest(client)

    before = playing(tmp_path, play)
    assert playing(tmp_path, digest) == before


def test_what_is_no_choice_of_arms_is_refused_and_nothing_is_decided(tmp_path):
    async def play(client):
        await client.post("/v1/experiments", json=MAKE)
        for available, why in (
            ([], "names no arm"),
            ([4], "arms from 0 to 3"),
            (["huge"], "names the arm 'huge'"),
            ([True], "one flag for each of the 4 arms"),
        ):
            reply = await client.post("/v1/experiments/trays/decisions", json={"available": available})
            assert (reply.status_code, reply.json()["code"]) == (422, "invalid")
            assert reply.json()["path"] == "body.available"
            assert why in reply.text
        for available in ("none", 3):
            reply = await client.post("/v1/experiments/trays/decisions", json={"available": available})
            assert reply.status_code == 422
        for wrong in (-1, 0.5, None):
            reply = await client.post("/v1/experiments/trays/decisions", json={"available": [0, wrong]})
            assert (reply.status_code, reply.json()["path"]) == (422, "body.available.1")
            assert "boolean" not in reply.text  # nobody meant a flag
        await client.post("/v1/experiments", json={**MAKE, "name": "other", "learner": "ucb-n"})
        reply = await client.post("/v1/experiments/other/decisions", json={"available": [0, 1]})
        assert reply.status_code == 422
        assert "Use glance or exp3-set" in reply.text
        return (await client.get("/v1/experiments/trays")).json()["round"]

    assert playing(tmp_path, play) == 0


def test_a_key_stands_for_a_choice_of_arms_too(tmp_path):
    async def play(client):
        await client.post("/v1/experiments", json=MAKE)
        replies = []
        for available in ([0, 1], [1, 0], ["none", "small"], [0, 2], None):
            body = {} if available is None else {"available": available}
            replies.append(
                await client.post("/v1/experiments/trays/decisions", json=body, headers={"Idempotency-Key": "one"})
            )
        return [reply.status_code for reply in replies]

    assert playing(tmp_path, play) == [201, 200, 200, 409, 409]


def test_clients_send_it_and_kill_minus_9_loses_nothing_of_it(nursery, tmp_path):
    """Without a snapshot, so that the journal alone brings it back."""
    agent = sl.Agent("exp3-set", sl.graphs.nested(4).labelled(LABELS), seed=5)
    server = nursery.start(f"sqlite:///{tmp_path}/killed.db")
    with sl.connect(server.address) as service:
        service.create("trays", "exp3-set", agent.graph, seed=5)
    for t in range(1, 25):
        with sl.connect(server.address) as service:
            ours, theirs = service["trays"].ask(available=choices(t)), agent.ask(available=choices(t))
            assert (ours.arm, ours.probability) == (theirs.arm, theirs.probability)
            losses = {int(arm): loss(t, int(arm)) for arm in theirs.reveals}
            service["trays"].tell(ours, losses)
            agent.tell(theirs, losses)
        if t % 8 == 0:
            server.kill()
            server = nursery.start(f"sqlite:///{tmp_path}/killed.db")
    server.stop()


def test_what_cannot_be_arms_is_refused_by_the_client(nursery, tmp_path):
    server = nursery.start(f"sqlite:///{tmp_path}/arms.db")
    with sl.connect(server.address) as service:
        trays = service.create("trays", "exp3-set", sl.graphs.nested(4), seed=5)
        with pytest.raises(GraphError, match="available must be arms"):
            trays.ask(available="none")
    server.stop()


def test_what_an_outcome_revealed_is_told_whole_where_arms_were_absent(nursery, tmp_path):
    orders = sl.outcomes.StockOrders(4, holding=1.0, shortage=3.0)
    agent = sl.Agent("exp3-set", orders.graph, seed=5)
    server = nursery.start(f"sqlite:///{tmp_path}/orders.db")
    with sl.connect(server.address) as service:
        remote = service.create("orders", "exp3-set", agent.graph, seed=5)
        for t in range(1, 21):
            some = [arm for arm in range(agent.graph.n_arms) if (arm + t) % 3]
            ours, theirs = remote.ask(available=some), agent.ask(available=some)
            assert (ours.arm, ours.probability) == (theirs.arm, theirs.probability)
            # It may sell out, or show all of the demand.
            outcome = orders.outcome(ours.arm, min(orders.orders[ours.arm], t % 5))
            # By its id alone nobody but the service knows which arms were there.
            assert remote.tell(ours.id if t % 2 else ours, outcome)
            assert agent.tell(theirs, outcome)
            assert not remote.tell(ours, outcome)  # the same again
            revealed = dict(enumerate(outcome.losses.tolist()))  # each arm reveals those below it
            told = remote.look_up(ours)
            assert set(told["reveals"]) <= set(some)
            assert dict(zip(told["reveals"], told["losses"], strict=True)).items() <= revealed.items()
    server.stop()


def test_the_outcome_of_another_arm_is_refused_whatever_became_of_the_decision(tmp_path):
    wrong = "plays arm {}, and this is what arm {} revealed"

    async def play(client):
        await client.post("/v1/experiments", json=MAKE)
        made = (await client.post("/v1/experiments/trays/decisions")).json()
        arm, losses = made["arm"], [0.5] * len(made["reveals"])
        address, other = f"/v1/decisions/{made['id']}/feedback", (made["arm"] + 1) % 4
        item = {"id": made["id"], "losses": losses}
        for _ in range(2):  # while it is outstanding, and when it was told
            reply = await client.post(address, json={"losses": losses, "arm": other})
            assert (reply.status_code, reply.json()["code"], reply.json()["path"]) == (422, "invalid", "body.arm")
            assert wrong.format(arm, other) in reply.json()["detail"]
            batch = await client.post("/v1/feedback", json=in_columns([{**item, "arm": other}]))
            assert (batch.status_code, batch.json()["path"]) == (422, "body.arms.0")
            assert (await client.post(address, json={"losses": losses, "arm": arm})).status_code == 200
        assert (await client.post("/v1/feedback", json=in_columns([{**item, "arm": arm}]))).status_code == 200
        return (await client.get("/v1/experiments/trays")).json()["counts"]["told"]

    assert playing(tmp_path, play) == 1


def test_a_client_that_has_only_an_id_hears_that_another_arm_was_played(nursery, tmp_path):
    orders = sl.outcomes.StockOrders(4, holding=1.0, shortage=3.0)
    server = nursery.start(f"sqlite:///{tmp_path}/other.db")
    with sl.connect(server.address) as service:
        remote = service.create("orders", "exp3-set", orders.graph, seed=5)
        made = remote.ask()
        with pytest.raises(LossError, match=f"plays arm {made.arm}"):
            remote.tell(made.id, orders.outcome((made.arm + 1) % orders.graph.n_arms, 0))
    server.stop()
