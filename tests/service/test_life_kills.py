"""An experiment that is frozen, stopped, archived, renamed and deleted, under load, with kill -9 and two servers.

One operator changes it again and again, while clients decide and tell at both servers. Each server is killed at random
moments. At the end the journal must tell the whole story: every change that was acknowledged, by whom, and no decision
that was made by a state which had been left.
"""

import asyncio
import itertools
import json
import os
import random

import pytest

from service import history as histories
from sidelong.service.store import journal, snapshots
from sidelong.service.store.experiment import Clock
from sidelong.service.store.graphs import Shelf
from sidelong.service.store.journal import DRAWN_BY, Kind
from sidelong.service.store.kinds import open_database
from sidelong.service.store.replay import Replayed
from sidelong.service.store.tokens import Tokens

KILLS = int(os.environ.get("SIDELONG_KILLS", "6"))
CLIENTS = 4
CHANGES = (
    ({"state": "frozen", "play": 1}, {"frozen"}),
    ({"play": {"0": 0.5, "4": 0.5}}, {"frozen"}),
    ({"state": "running"}, {"learner", "holdout"}),
    ({"state": "stopped", "fallback": 3}, {"fallback"}),
    ({"state": "stopped", "fallback": None}, {"stopped"}),
    ({"name": None}, {"stopped"}),  # another name each time
    ({"state": "archived"}, {"archived"}),
    ({"state": "running"}, {"learner", "holdout"}),
)


class Operator:
    """Changes an experiment, and looks after each change at whichever server whether it holds."""

    def __init__(self, line, name):
        self.line, self.name, self.made = line, name, []

    async def turn(self, number, change, drawn_by):
        wanted = {**change, "name": f"life-{number}"} if "name" in change else change
        status, reply = await self.line.send(f"/v1/experiments/{self.name}", json.dumps(wanted), method="PATCH")
        if status == 404 and "name" in wanted:  # by an attempt whose reply was lost
            status, reply = await self.line.send(
                f"/v1/experiments/{wanted['name']}", json.dumps(wanted), method="PATCH"
            )
        assert status == 200, reply
        self.name = reply["name"]
        self.made.append(wanted)
        status, reply = await self.line.send(f"/v1/experiments/{self.name}/decisions", key=f"look-{number}")
        assert (reply["drawn_by"] if status < 300 else reply["code"]) in drawn_by, (change, reply)


async def client(line, operator, told, stop, seed):
    """Decide and tell whatever the experiment is called, and whether or not it decides."""
    draws = random.Random(seed)
    for number in itertools.count():
        if stop():
            return
        status, made = await line.send(f"/v1/experiments/{operator.name}/decisions", key=f"c{seed}-{number}")
        if status >= 300:
            assert made["code"] in {"stopped", "archived", "not_found"}, made
            await asyncio.sleep(0.01)
            continue
        losses = [draws.random() for _ in made["reveals"]]
        status, reply = await line.send(f"/v1/decisions/{made['id']}/feedback", json.dumps({"losses": losses}))
        if status == 200:
            told[made["id"]] = losses
        else:
            assert reply["code"] == "archived", reply


@pytest.mark.parametrize("seed", [1])
def test_no_decision_is_made_by_a_state_that_was_left_and_the_journal_tells_who_did_what(nursery, database, seed):
    opened = open_database(database)
    token = Tokens(opened).create("operator", ["admin"])
    settings = {"snapshot_every": 40, "decide_rate": 1e9, "feedback_rate": 1e9, "read_rate": 1e9}
    servers = [nursery.start(database, **settings) for _ in range(2)]
    body = {"name": "life", "graph": {"name": "cliques", "sizes": [3, 2]}, "seed": 5, "expire_after": None}
    body |= {"learner": "exp3-set", "holdout": {"arm": 2, "share": 0.3}}
    assert servers[0].post("/v1/experiments", body, Authorization=f"Bearer {token}")[0] == 201
    moments, turns, told, numbers = random.Random(seed), itertools.count(), {}, itertools.count(1)
    history = histories.History()

    def line(ports):
        return histories.Line(ports, history, hops=True, token=token)

    async def play():
        ends = False
        operator = Operator(line(lambda: servers[next(turns) % 2].port), "life")
        clients = [
            asyncio.create_task(
                client(line(lambda: servers[next(turns) % 2].port), operator, told, lambda: ends, number)
            )
            for number in range(CLIENTS)
        ]

        async def operate():
            while not ends:
                for change, drawn_by in CHANGES:
                    await operator.turn(next(numbers), change, drawn_by)

        operating = asyncio.create_task(operate())
        for kill in range(KILLS):
            before = len(operator.made)
            while len(operator.made) == before and not operating.done():  # noqa: ASYNC110
                await asyncio.sleep(0.005)
            await asyncio.sleep(moments.uniform(0.0, 0.2))
            servers[kill % 2].kill()
            servers[kill % 2] = await asyncio.to_thread(nursery.start, database, **settings)
        while len(operator.made) < 2 * len(CHANGES) and not operating.done():  # noqa: ASYNC110
            await asyncio.sleep(0.01)
        ends = True
        await asyncio.gather(operating, *clients)
        return operator

    operator = asyncio.run(play())
    states = [
        each.get(f"/v1/experiments/{operator.name}?digest=true", Authorization=f"Bearer {token}") for each in servers
    ]
    digest = check(opened, operator, told)
    assert [state["digest"] for _, state in states] == [digest] * 2
    clone_and_delete(servers, operator.name, {"Authorization": f"Bearer {token}"})
    with opened.reading() as reading:
        assert [(line.name, line.by) for line in reading.deletions()] == [(operator.name, "operator")]
    for each in servers:
        each.stop()
    opened.close()


def check(database, operator, told):
    """Compare the journal with what was acknowledged; return the digest of what it gives."""
    with database.reading() as reading:
        identity = reading.find(operator.name)
        events = list(journal.since(reading, identity.id, 0))
        rebuilt = Replayed(identity, Shelf(), Clock()).rebuilt(reading)
    changes = [json.loads(event.context) for event in events if event.kind is Kind.CHANGED]
    assert {change["by"] for change in changes} == {"operator"}
    assert json.loads(events[0].context)["by"] == "operator"
    story = [{k: v for k, v in change.items() if k not in {"by", "was"}} for change in changes]
    assert [change.get("state") for change in story if "state" in change] == [
        state for state, _ in itertools.groupby(made["state"] for made in operator.made if "state" in made)
    ]
    assert [change["name"] for change in story if "name" in change] == [
        made["name"] for made in operator.made if "name" in made
    ]
    life, counted = rebuilt.life.first(identity.spec), 0
    for event in events:
        if event.kind is Kind.CHANGED:
            life = life.after(json.loads(event.context))
        elif event.kind in DRAWN_BY:
            counted += 1
            allowed = {"running": {Kind.DECIDED, Kind.HELD}, "frozen": {Kind.PLAYED}, "stopped": {Kind.FALLBACK}}
            assert event.kind in allowed[life.state]
            assert event.arm in {Kind.HELD: {2}, Kind.FALLBACK: {life.fallback}}.get(event.kind, set(range(5)))
            assert event.kind is not Kind.PLAYED or str(event.arm) in life.play
    assert counted == rebuilt.round
    acknowledged = {f"{identity.key}-{event.round}": event for event in events if event.kind is Kind.TOLD}
    assert told.keys() <= acknowledged.keys()
    return snapshots.digest(rebuilt)


def clone_and_delete(servers, name, headers):
    one, other = servers
    status, clone, *_ = one.send("POST", f"/v1/experiments/{name}/clone", {"name": "twin"}, headers)
    assert (status, clone["origin"]["name"]) == (201, name)
    assert other.send("DELETE", f"/v1/experiments/{name}?name=wrong", None, headers)[0] == 422
    assert other.send("DELETE", f"/v1/experiments/{name}?name={name}", None, headers)[0] == 200
    for each in servers:
        assert each.send("POST", f"/v1/experiments/{name}/decisions", {}, headers)[0] == 404
        assert each.send("POST", "/v1/experiments/twin/decisions", {}, headers)[0] == 201
