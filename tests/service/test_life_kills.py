"""An experiment that is frozen, stopped, archived, renamed, cloned and deleted, under load, with kill -9, two servers.

One operator changes it again and again, while clients decide and tell at both servers. Each server is killed at random
moments. At the end the journal must tell the whole story: every change that was acknowledged, by whom, and no decision
that was made by a state which had been left.
"""

import asyncio
import itertools
import json
import os
import random
import time
from functools import partial

import pytest

from service import history as histories
from service.doubles import altered, hooked, of_kind
from service.stores import opened
from sidelong.service.store import creation, journal, snapshots
from sidelong.service.store.clock import Clock
from sidelong.service.store.database import BlobKind
from sidelong.service.store.graphs import GraphCache
from sidelong.service.store.journal import DRAWN_BY, Kind
from sidelong.service.store.kinds import open_database
from sidelong.service.store.replay import Replayed
from sidelong.service.store.tokens import Tokens

#: `make soak` asks for more on each database.
KILLS = int(os.environ.get("SIDELONG_LIFE_KILLS", "6"))
CLIENTS = 4
SETTINGS = {"snapshot_every": 40, "decide_rate": 1e9, "feedback_rate": 1e9, "read_rate": 1e9}
BODY = {"name": "life", "graph": {"name": "cliques", "sizes": [3, 2]}, "seed": 5, "expire_after": None}
BODY |= {"learner": "exp3-set", "holdout": {"arm": 2, "share": 0.3}}
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


async def client(line, operator, told, stop, *, seed):
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


class Stage:
    """Two servers of one database, which are killed in turn while an operator and clients are at work."""

    def __init__(self, nursery, database):
        self.opened = open_database(database)
        self.token = Tokens(self.opened).create("operator", ["admin"])
        self.servers = [nursery.start(database, **SETTINGS) for _ in range(2)]
        self._restarted = lambda: nursery.start(database, **SETTINGS)
        self._turns = itertools.count()
        assert self.servers[0].post("/v1/experiments", BODY, **self.headers)[0] == 201

    @property
    def headers(self):
        return {"Authorization": f"Bearer {self.token}"}

    def line(self):
        """Return a line that goes to either server in turn."""
        ports = lambda: self.servers[next(self._turns) % 2].port  # noqa: E731
        return histories.Line(ports, histories.History(), hops=True, token=self.token)

    async def play(self, operate, progress, clients, least, moments):
        """Operate and let clients play until all kills are done, and the operator has done so much at least.

        `operate` and each client get what tells them whether to stop; `progress` returns what the operator has done.
        """
        ends = False
        operating = asyncio.create_task(operate(lambda: ends))
        playing = [asyncio.create_task(each(lambda: ends)) for each in clients]
        for kill in range(KILLS):
            before = progress()
            while progress() == before and not operating.done():  # noqa: ASYNC110
                await asyncio.sleep(0.005)
            await asyncio.sleep(moments.uniform(0.0, 0.2))
            self.servers[kill % 2].kill()
            self.servers[kill % 2] = await asyncio.to_thread(self._restarted)
        while progress() < least and not operating.done():  # noqa: ASYNC110
            await asyncio.sleep(0.01)
        ends = True
        await asyncio.gather(operating, *playing)

    def digests(self, name):
        """Return what each server says the state is."""
        found = [each.get(f"/v1/experiments/{name}?digest=true", **self.headers) for each in self.servers]
        return [state["digest"] for _, state in found]

    def close(self):
        for each in self.servers:
            each.stop()
        self.opened.close()


@pytest.mark.postgresql
def test_no_decision_is_made_by_a_state_that_was_left_and_the_journal_tells_who_did_what(nursery, database):
    stage, told, numbers = Stage(nursery, database), {}, itertools.count(1)
    operator = Operator(stage.line(), "life")

    async def operate(stop):
        while not stop():
            for change, drawn_by in CHANGES:
                await operator.turn(next(numbers), change, drawn_by)

    clients = [partial(client, stage.line(), operator, told, seed=number) for number in range(CLIENTS)]
    asyncio.run(stage.play(operate, lambda: len(operator.made), clients, 2 * len(CHANGES), random.Random(1)))
    digest = check(stage.opened, operator, told)
    assert stage.digests(operator.name) == [digest] * 2
    stage.close()


def check(database, operator, told):
    """Compare the journal with what was acknowledged; return the digest of what it gives."""
    with database.reading() as reading:
        identity = reading.find(operator.name)
        events = list(journal.since(reading, identity.id, 0))
        rebuilt = Replayed(identity, GraphCache(), Clock()).rebuilt(reading)
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
            (arm,) = journal.read_draws(event).arms
            counted += 1
            allowed = {"running": {Kind.DECIDED, Kind.HELD}, "frozen": {Kind.PLAYED}, "stopped": {Kind.FALLBACK}}
            assert event.kind in allowed[life.state]
            assert arm in {Kind.HELD: {2}, Kind.FALLBACK: {life.fallback}}.get(event.kind, set(range(5)))
            assert event.kind is not Kind.PLAYED or str(arm) in life.play
    assert counted == rebuilt.round
    acknowledged = {f"{identity.key}-{event.round}": event for event in events if event.kind is Kind.TOLD}
    assert told.keys() <= acknowledged.keys()
    return snapshots.digest(rebuilt)


class Breeder:
    """Clones an experiment, with and without what it has learned, and deletes each clone when there is another.

    The names come again, so that a server which remembers what a name once meant is found out.
    """

    def __init__(self, line):
        self.line = line
        self.names = ["life"]  # where clients play
        self.clones = []  # of each: its key, its name, and what the journal says of its beginning
        self.gone = set()  # keys of those whose deletion was acknowledged

    async def turn(self, number):
        name, learned = f"twin-{number % 3}", number % 2 == 0
        body = json.dumps({"name": name, "learned": learned})
        status, reply = await self.line.send("/v1/experiments/life/clone", body)
        assert (status in {200, 201}, reply.get("origin", {}).get("learned")) == (True, learned), reply
        status, first = await self.line.send(f"/v1/experiments/{name}/decisions", key=f"look-{number}")
        assert status in {200, 201}, first
        key = first["id"].partition("-")[0]
        assert key not in {before for before, *_ in self.clones}
        status, story = await self.line.send(f"/v1/experiments/{name}/changes", method="GET")
        assert status == 200, story
        self.clones.append((key, name, story["items"][0]))
        self.names.append(name)
        if len(self.clones) > 1:
            await self.delete(*self.clones[-2][:2])

    async def delete(self, key, name):
        self.names.remove(name)
        status, reply = await self.line.send(f"/v1/experiments/{name}?name={name}", method="DELETE")
        assert status in {200, 404}, reply  # 404: by an attempt whose reply was lost
        self.gone.add(key)
        for path, body in (
            (f"/v1/experiments/{name}/decisions", ""),
            (f"/v1/decisions/{key}-1/feedback", '{"losses": [0.5, 0.5, 0.5]}'),
        ):
            status, reply = await self.line.send(path, body)
            assert (status, reply["code"]) == (404, "not_found"), reply


async def visitor(line, breeder, told, stop, *, seed):
    """Decide and tell at whichever experiment there is. None that is known to be deleted may answer."""
    draws = random.Random(seed)
    for number in itertools.count():
        if stop():
            return
        gone = set(breeder.gone)
        name = draws.choice(breeder.names)
        status, made = await line.send(f"/v1/experiments/{name}/decisions", key=f"v{seed}-{number}")
        if status >= 300:
            assert made["code"] == "not_found", made
            continue
        assert made["id"].partition("-")[0] not in gone, made
        losses = [draws.random() for _ in made["reveals"]]
        status, reply = await line.send(f"/v1/decisions/{made['id']}/feedback", json.dumps({"losses": losses}))
        if status == 200:
            told[made["id"]] = losses
        else:
            assert reply["code"] == "not_found", reply


@pytest.mark.postgresql
def test_clones_have_what_was_learned_then_and_nothing_decides_that_was_deleted(nursery, database, monkeypatch):
    stage, told, numbers = Stage(nursery, database), {}, itertools.count(1)
    breeder = Breeder(stage.line())

    async def operate(stop):
        while not stop():
            await breeder.turn(next(numbers))

    clients = [partial(visitor, stage.line(), breeder, told, seed=number) for number in range(CLIENTS)]
    asyncio.run(stage.play(operate, lambda: len(breeder.clones), clients, 8, random.Random(2)))
    *deleted, (last, survivor, _) = breeder.clones
    with stage.opened.reading() as reading:
        life = reading.find("life")
        assert {about["by"] for *_, about in breeder.clones} == {"operator"}
        origins = [about["change"]["origin"] for *_, about in breeder.clones]
        hooks = hooked(monkeypatch)
        learned = {each["sequence"]: learned_after(database, hooks, each["sequence"]) for each in origins}
        hooks.clear()
        for each in origins:
            assert (each["name"], each["key"]) == ("life", life.key)
            assert each["state"] == (learned[each["sequence"]] if each["learned"] else None)
        assert {each["learned"] for each in origins} == {True, False}
        lines = reading.experiments(deleted=True)
        assert [(line.name, line.changed_by) for line in lines] == [(name, "operator") for _, name, _ in deleted]
        for key, name in ((life.key, "life"), (last, survivor)):
            identity = reading.find(name)
            assert identity.key == key
            events = journal.since(reading, identity.id, 0)
            acknowledged = {f"{key}-{event.round}" for event in events if event.kind is Kind.TOLD}
            assert {id_ for id_ in told if id_.startswith(key)} <= acknowledged
            digest = snapshots.digest(Replayed(identity, GraphCache(), Clock()).rebuilt(reading))
            assert stage.digests(name) == [digest] * 2
    while is_anything_left(stage.opened):  # which the servers erase in portions
        time.sleep(0.05)
    with stage.opened.reading() as reading:
        assert not any(reading.events(line.id, 0, 1) for line in lines)
    stage.close()


def learned_after(address, hooks, sequence):
    """Return what a clone would say of the state that it begins with, if the journal ended with an event."""
    hooks["events"] = altered(lambda events: [each for each in events if each.seq <= sequence])
    hooks["experiments"] = altered(lambda every: [each._replace(head=min(each.head, sequence)) for each in every])
    hooks["blob"] = of_kind(BlobKind.SNAPSHOT, altered(lambda _: None))
    with opened(address) as bench:
        return creation.clone(bench.store, "life", "another", {}, learned=True).identity.spec.initial_state


def is_anything_left(database):
    with database.reading() as reading:
        return any(each.state == "deleted" for each in reading.experiments(deleted=True))
