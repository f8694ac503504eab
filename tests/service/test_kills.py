"""kill -9 at random moments under every kind of load: nothing acknowledged is lost, nothing is counted twice.

Two servers have one database. Clients decide and tell at both, one by one and in batches, with keys, features,
advice, graphs of their rounds, and costs under a ceiling. Meanwhile an operator freezes, stops, renames and archives
an experiment, another one clones experiments and deletes the clones, and others follow events and download logs. The
servers cut the journals behind seconds. They are killed, one or both. At the end the journals, with what was cut,
must hold all that was acknowledged, once, replaying them gives the state of both servers, and the exported logs hold
each decision once.
"""

import asyncio
import collections
import itertools
import json
import os
import random
import time

import numpy as np
import pyarrow.parquet as pq
import pytest

import sidelong as sl
from service import history as histories
from sidelong.errors import DecisionError, ServiceError
from sidelong.service.client import connect_async
from sidelong.service.http import export
from sidelong.service.settings import Settings
from sidelong.service.store import journal
from sidelong.service.store.clock import Clock
from sidelong.service.store.journal import DRAWN_BY, Kind
from sidelong.service.store.kinds import open_database
from sidelong.service.store.lifecycle import Life
from sidelong.service.store.store import Store
from sidelong.service.store.tokens import Tokens

#: Each kill is one more draw of the moment: `make soak` and `make nightly` ask for more of them.
KILLS, SEED = int(os.environ.get("SIDELONG_KILLS", "6")), int(os.environ.get("SIDELONG_SEED", "1"))
CLIENTS = 6
PATIENCE = 300.0  # seconds within which each of those who work gets something done
SETTINGS = {"snapshot_every": 50, "decide_rate": 1e9, "feedback_rate": 1e9, "read_rate": 1e9}  # killed in snapshots too
SETTINGS |= {"keep_days": 3.0 / 86_400, "sweep_every": 0.03}  # and in cuts

KEYS = [f"sku-{k}" for k in range(300)]
GRAPH = sl.graphs.cliques([3, 2])
BODY = {"graph": {"name": "cliques", "sizes": [3, 2]}, "seed": 5, "expire_after": None}
BOUNDS = [0.5, 1.0, 2.0, 3.0, 6.0]
LIMITED = {**BODY, "ceiling": 1.0, "cost_bounds": BOUNDS, "overspend": 12.0}
HELD = {**BODY, "learner": "exp3-set", "holdout": {"arm": 2, "share": 0.3}}
EXPERIMENTS = {
    "plain": {**BODY, "certificate": True},
    "features": {**BODY, "certificate": True, "learner": "squarecb.g", "features": ["weekday", "size"]},
    "keyed": {**BODY, "keyed": True},
    "limited": LIMITED,
    "limited-keyed": {**LIMITED, "keyed": True, "ceiling_over": "all", "pooled": True},
    "changed": HELD,
    "cloned": HELD,
}
#: What the operator does, and what a decision is drawn by after that, or why it is refused.
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


def forecast(n):
    """Return the advice for a batch."""
    return {"forecast": [number % 6 - 1 for number in range(n)], "team": None}


def drawn(kind, draws):
    """Draw what is sent with a decision: in one of five a graph of its own, of which there are twenty; and advice."""
    sent = {}
    if kind in {"plain", "keyed", "limited-keyed"} and draws.random() < 0.5:
        sent["advice"] = {"forecast": draws.randrange(5), "team": draws.choice([None, [0.2] * 5])}
    if kind in {"plain", "features"} and draws.random() < 0.2:
        sent["graph"] = {"name": "erdos_renyi", "n": 5, "r": 0.5, "seed": draws.randrange(20)}
    if kind == "features":
        sent["context"] = {"weekday": draws.choice("MTWTF"), "size": draws.random(), "order": "unseen"}
    return {**sent, "key": f"one-{draws.randrange(50)}"} if "keyed" in kind else sent


class Load:
    """Two servers of one database, who sends them requests, and what was acknowledged."""

    def __init__(self, nursery, database, folder):
        # PostgreSQL ends a transaction that is idle for twice as long, and a replay on a busy machine takes its time.
        self.opened, self.folder = open_database(database, busy_timeout=PATIENCE), folder
        histories.keep_erased(self.opened)
        self.token = Tokens(self.opened).create("operator", ["admin"])
        self.start = lambda: nursery.start(database, **SETTINGS, export_before_cut=str(folder))
        self.servers = [self.start() for _ in range(2)]
        self.history, self.ends, self._turns = histories.History(), False, itertools.count()
        self.kinds = {name: name for name in EXPERIMENTS}  # of the experiments that are there: as which it was made
        self.renamed = "changed"  # what the operator calls that experiment by now
        self.changes = []
        self.clones = []  # of each: its key, its name, and what the journal says of its beginning
        self.deleted = set()  # keys of those whose deletion was acknowledged
        self.nights = []  # of each batch with keys: the decisions and their losses
        self.seen, self.exports, self.known_no_more = [], collections.Counter(), 0
        self.journals = {}
        self.paid = {}  # by id, where there is a ceiling: what the arm of a told decision cost
        for name, body in EXPERIMENTS.items():
            assert self.servers[0].post("/v1/experiments", {"name": name, **body}, **self.headers)[0] == 201

    @property
    def headers(self):
        return {"Authorization": f"Bearer {self.token}"}

    def port(self):
        """Return the port of either server in turn."""
        return self.servers[next(self._turns) % 2].port

    def line(self, *, hops=True):
        return histories.Line(self.port, self.history, self.token, hops=hops)

    async def play(self, number):
        """Decide and tell at any experiment there is; cancel one in ten, repeat one in ten."""
        draws, line = random.Random(f"{SEED} {number}"), self.line(hops=number % 2)
        for count in itertools.count():
            if self.ends:
                line.close()
                return
            name, deleted = draws.choice([*self.kinds]), set(self.deleted)
            refusals = {"not_found"} if "twin" in name else {"stopped", "archived"} if name == "changed" else set()
            status, made = await self.decide(line, name, f"c{number}-{count}", drawn(self.kinds[name], draws))
            if status >= 300:
                assert made["code"] in refusals, (name, made)
                continue
            assert made["id"].partition("-")[0] not in deleted, made
            if draws.random() < 0.1:
                status, reply = await line.send(f"/v1/decisions/{made['id']}/cancel")
                done = status == 200 or self.is_cut(reply)
                assert done or reply["code"] in refusals, (name, reply)
                self.history.cancelled |= {made["id"]} if done else set()
                continue
            losses = {str(arm): draws.random() for arm in made["reveals"]}
            sent = {"losses": losses}
            if "limited" in name:
                sent["costs"] = [BOUNDS[arm] * draws.random() for arm in made["reveals"]]
                self.paid[made["id"]] = sent["costs"][made["reveals"].index(made["arm"])]
            for _ in range(2 if draws.random() < 0.1 else 1):
                status, reply = await line.send(f"/v1/decisions/{made['id']}/feedback", json.dumps(sent))
                if status != 200:
                    is_cut = self.is_cut(reply)
                    self.history.told |= {made["id"]: list(losses.values())} if is_cut else {}
                    assert is_cut or reply["code"] in refusals, (name, reply)
                    break
                is_new = made["drawn_by"] == "learner" and not reply["duplicate"]
                assert reply["learned"] is is_new or (name == "changed" and not reply["learned"]), (made, reply)
                self.history.learned[made["id"]] += reply["learned"]
                self.history.told[made["id"]] = list(losses.values())

    def is_cut(self, reply):
        """Tell whether a reply says that the decision was settled, and cut, by an attempt whose reply was lost."""
        self.known_no_more += reply["code"] == "cut"
        return reply["code"] == "cut"

    async def decide(self, line, name, key, sent=None):
        """Decide, whatever the experiment is called by now, and keep what the reply says."""
        while True:
            path = f"/v1/experiments/{self.called(name)}/decisions"
            status, made = await line.send(path, json.dumps(sent) if sent else "", key)
            if status != 404 or name != "changed":
                break
        if status < 300:
            self.history.decided[made["id"]] = key, made["arm"], made["probability"]
        return status, made

    async def operate(self):
        """Change an experiment again and again, and look after each change at whichever server whether it holds."""
        line = self.line()
        for number, (change, drawn_by) in enumerate(itertools.cycle(CHANGES)):
            if self.ends:
                return
            wanted = {**change, "name": f"changed-{number}"} if "name" in change else change
            for name in (self.renamed, wanted.get("name")):  # the second if the reply to an earlier attempt was lost
                status, reply = await line.send(f"/v1/experiments/{name}", json.dumps(wanted), method="PATCH")
                if status != 404:
                    break
            assert status == 200, reply
            self.renamed = reply["name"]
            self.changes.append(wanted)
            status, reply = await self.decide(line, "changed", f"look-{number}")
            assert (reply["drawn_by"] if status < 300 else reply["code"]) in drawn_by, (change, reply)

    async def clone(self):
        """Clone experiments, with and without what they have learned, and delete each clone when there is another.

        The names come again, so that a server which remembers what a name once meant is found out.
        """
        line, draws = self.line(), random.Random(f"{SEED} clones")
        for number in itertools.count():
            if self.ends:
                return
            kind, learned = ("cloned", "keyed")[number // 2 % 2], (number + number // 4) % 2 == 0
            name = f"{kind}-twin-{number % 2}"
            body = json.dumps({"name": name, "learned": learned})
            status, reply = await line.send(f"/v1/experiments/{kind}/clone", body)
            assert (status in {200, 201}, reply.get("origin", {}).get("learned")) == (True, learned), reply
            status, first = await self.decide(line, name, f"look-{number}", drawn(kind, draws))
            assert status in {200, 201}, first
            key = first["id"].partition("-")[0]
            assert key not in {before for before, *_ in self.clones}
            status, story = await line.send(f"/v1/experiments/{name}/changes", method="GET")
            assert status == 200, story
            self.clones.append((key, name, story["items"][0]))
            self.kinds[name] = kind
            if len(self.clones) > 1:
                await self.delete(line, *self.clones[-2][:2])

    async def delete(self, line, key, name):
        del self.kinds[name]
        status, reply = await line.send(f"/v1/experiments/{name}?name={name}", method="DELETE")
        assert status in {200, 404}, reply  # 404: by an attempt whose reply was lost
        self.deleted.add(key)
        for path, body in (
            (f"/v1/experiments/{name}/decisions", ""),
            (f"/v1/decisions/{key}-1/feedback", '{"losses": [0.5, 0.5, 0.5]}'),
        ):
            status, reply = await line.send(path, body)
            assert (status, reply["code"]) == (404, "not_found"), reply

    async def decide_in_batches(self):
        """Ask for many decisions at once, with and without keys, and tell their losses at once."""
        rng = np.random.default_rng(SEED)
        for number in itertools.count():
            if self.ends:
                return
            name = "plain" if number % 2 else "keyed"
            asked = int(rng.integers(2, 50)) if number % 2 else rng.permutation(KEYS)[: rng.integers(50, 300)].tolist()
            key = f"night-{number}"
            more = {"key": key} if number % 2 else {"key": key, "advice": forecast(len(asked))}
            batch = await self.insist(name, lambda it, asked=asked, more=more: it.ask_many(asked, **more))
            columns = zip(batch.ids, batch.arms.tolist(), batch.probabilities.tolist(), strict=True)
            self.history.decided |= {id_: (key, arm, probability) for id_, arm, probability in columns}
            losses = rng.random(batch.reveals.size)
            try:
                await self.insist(name, lambda it, batch=batch, losses=losses: it.tell_many(batch, losses))
            except DecisionError as error:
                if not self.is_cut({"code": error.__cause__.code}):
                    raise
            each = (some.tolist() for some in np.split(losses, batch.offsets[1:-1]))
            self.history.told |= dict(zip(batch.ids, each, strict=True))
            self.nights.append((name, batch, losses))

    async def insist(self, name, what):
        """Do something with the client until a server has acknowledged it."""
        while True:
            url = f"http://127.0.0.1:{self.port()}"
            try:
                async with connect_async(url, self.token, patience=0.0, timeout=20.0) as service:
                    return await what(service[name])
            except ServiceError as error:
                if not histories.is_passing(error.status, error.code):
                    raise
                self.history.sent_again += 1
                await asyncio.sleep(0.02)

    async def run(self, kills):
        """Let all of them work until all kills are done, and each has done something; return how many there were."""
        moments, done, path = random.Random(SEED), 0, "/v1/experiments/plain"
        async with asyncio.TaskGroup() as group:
            for each in (self.operate(), self.clone(), self.decide_in_batches(), *map(self.play, range(CLIENTS))):
                group.create_task(each)
            group.create_task(histories.follow(path, self.port, self.token, self.seen, lambda: self.ends))
            group.create_task(histories.export(path, self.port, self.token, self.exports, lambda: self.ends))
            try:
                for turn in itertools.count():
                    if done >= kills:
                        break
                    done += await self.kill(moments, range(2) if turn % 5 == 0 else [moments.randrange(2)])
                    if done % 50 < 2:
                        print(f"{done} of {kills} kills", flush=True)  # noqa: T201  # for `make soak`
                async with asyncio.timeout(PATIENCE):
                    while len(self.changes) < 2 * len(CHANGES) or len(self.clones) < 8 or not self.exports["whole"]:  # noqa: ASYNC110
                        await asyncio.sleep(0.01)
                    while not all(self.cuts()):  # noqa: ASYNC110
                        await asyncio.sleep(0.1)
            finally:
                self.ends = True
        return done

    async def kill(self, moments, which):
        """Kill servers at a moment after somebody has got on, and start them again; return how many these were."""
        done = moments.choice((self.history.told, self.changes, self.clones, self.nights))
        before = len(done)
        async with asyncio.timeout(PATIENCE):
            while len(done) == before:  # noqa: ASYNC110
                await asyncio.sleep(0.005)
        await asyncio.sleep(moments.uniform(0.0, 0.25))
        for each in which:
            self.servers[each].kill()
        if len(which) == len(self.servers):  # nobody writes: what is there is what was acknowledged, and a little more
            self.check()
        for each in which:
            self.servers[each] = await asyncio.to_thread(self.start)
        return len(which)

    def check(self, *, complete=False):
        """Compare the journals with what was acknowledged; return those of the experiments that are there, by name."""
        found = {}
        with self.opened.reading() as reading:
            for name in self.kinds:
                identity = reading.find(self.called(name))
                if identity is not None:  # it may be renamed already, and the operator does not know
                    found[name] = self.journals.setdefault(identity.key, histories.Journal(identity))
                    found[name].read(reading).check(self.history, complete=complete)
        return found

    def cuts(self):
        """Return how many decisions were cut from journals of which nothing waits for ever."""
        with self.opened.reading() as reading:
            return [reading.cut(reading.find(name).id).round for name in ("plain", "keyed", "features")]

    def called(self, name):
        return self.renamed if name == "changed" else name

    def states(self, name):
        """Return what each server says the state is."""
        path = f"/v1/experiments/{self.called(name)}?digest=true"
        return [each.get(path, **self.headers)[1] for each in self.servers]

    def summary(self, database, kills, events):
        """Return what was done and checked, as one line."""
        of, kind = self.history, database.partition(":")[0]
        done = {"decisions": of.decided, "tells": of.told, "cancellations": of.cancelled, "batches": self.nights}
        done |= {"changes": self.changes, "clones": self.clones, "deletions": self.deleted}
        listed = ", ".join(f"{len(each):,} {name}" for name, each in done.items())
        return (
            f"seed {SEED} on {kind}: {kills} kills, {of.sent_again:,} requests sent again, {of.slowest:.0f} s to the "
            f"slowest reply. Acknowledged, and once in the journals: {listed}. Replaying {events:,} events gives the "
            f"state of both servers to the bit, and what "
            f"{len(self.clones):,} clones began with. {sum(self.cuts()):,} decisions were cut, and are in the exported "
            f"logs once; {self.known_no_more} repetitions heard of it."
        )

    def close(self):
        for each in self.servers:
            each.stop()


@pytest.mark.postgresql
def test_nothing_acknowledged_is_lost_and_nothing_counted_twice(nursery, database, hooks, tmp_path):
    load = Load(nursery, database, tmp_path)
    kills = asyncio.run(load.run(KILLS))
    journals = load.check(complete=True)
    origins = [about["change"]["origin"] for *_, about in load.clones]
    digests = {}
    for name, found in journals.items():
        mine = [each for each in origins if each["key"] == found.identity.key]
        digests[name], states = found.replayed(load.opened, hooks, [each["sequence"] for each in mine])
        for each in mine:
            assert (each["name"], each["state"]) == (name, states[each["sequence"]] if each["learned"] else None)
    check_states(load, journals, digests)
    check_changes(load, journals["changed"])
    check_clones(load, journals, origins)
    check_batches(load)
    check_spending(load, journals)
    assert load.history.sent_again > 0
    assert load.seen == sorted(set(load.seen))  # each event once, in order, over all breaks
    with load.opened.reading() as reading:
        left = {each.seq for each in journal.since(reading, journals["plain"].identity.id, 0)}
    assert not left & set(range(1, load.seen[-1])) - set(load.seen)  # but for some that were cut meanwhile
    assert len(load.seen) > kills
    assert {event.graph for event in journals["plain"].events if event.kind is Kind.DECIDED} > {None}
    load.close()
    check_exports(load, journals)
    load.servers = [load.start() for _ in range(2)]
    check_states(load, journals, digests)
    print(load.summary(database, kills, sum(len(each.events) for each in journals.values())))  # noqa: T201
    load.close()
    load.opened.close()


def check_states(load, journals, digests):
    """Check that both servers have what replaying the journals gives, and count what the journals hold."""
    for name, found in journals.items():
        kinds = collections.Counter(kind for kind, _ in found.settled.values())
        told, cancelled = kinds[Kind.TOLD], kinds[Kind.CANCELLED]
        counts = {"decided": len(found.decided), "told": told, "cancelled": cancelled}
        counts["outstanding"] = len(found.decided) - told - cancelled
        for state in load.states(name):
            assert state["digest"] == digests[name]
            assert {which: state["counts"][which] for which in counts} == counts


def check_changes(load, found):
    """Check that no decision was made by a state that was left, and that the journal tells who did what."""
    changes = [json.loads(event.context) for event in found.events if event.kind is Kind.CHANGED]
    assert {change["by"] for change in changes} == {"operator"}
    assert json.loads(found.events[0].context)["by"] == "operator"
    assert [change["state"] for change in changes if "state" in change] == [
        state for state, _ in itertools.groupby(made["state"] for made in load.changes if "state" in made)
    ]
    assert [change["name"] for change in changes if "name" in change] == [
        made["name"] for made in load.changes if "name" in made
    ]
    life = Life.first(found.identity.spec)
    allowed = {"running": {Kind.DECIDED, Kind.HELD}, "frozen": {Kind.PLAYED}, "stopped": {Kind.FALLBACK}}
    for event in found.events:
        if event.kind is Kind.CHANGED:
            life = life.after(json.loads(event.context))
        elif event.kind in DRAWN_BY:
            (arm,) = journal.read_draws(event).arms
            assert event.kind in allowed[life.state]
            assert arm in {Kind.HELD: {2}, Kind.FALLBACK: {life.fallback}}.get(event.kind, set(range(5)))
            assert event.kind is not Kind.PLAYED or str(arm) in life.play


def check_clones(load, journals, origins):
    """Check who made the clones and who deleted them, and that nothing is left of those."""
    assert {about["by"] for *_, about in load.clones} == {"operator"}
    assert {each["learned"] for each in origins} == {True, False}
    *deleted, (last, survivor, _) = load.clones
    assert journals[survivor].identity.key == last
    with load.opened.reading() as reading:
        lines = reading.experiments(deleted=True)
    assert [(line.name, line.changed_by) for line in lines] == [(name, "operator") for _, name, _ in deleted]
    while any(line.state == "deleted" for line in lines):  # which the servers erase in portions
        time.sleep(0.05)
        with load.opened.reading() as reading:
            lines = reading.experiments(deleted=True)
    with load.opened.reading() as reading:
        assert not any(reading.events(line.id, 0, 1) for line in lines)


def check_exports(load, journals):
    """Check that what was exported before it was cut, and the log of what is left, hold each decision once."""
    store = Store(load.opened, Settings(), Clock())
    for name in ("plain", "keyed", "features"):
        found, left = journals[name], load.folder / "left.parquet"
        export.write(store, name, left)
        files = [*sorted(load.folder.glob(f"{name}-{found.identity.key}-*.parquet")), left]
        rows = [id_ for file in files for id_ in pq.read_table(file, columns=["decision"])["decision"].to_pylist()]
        assert rows == list(found.decided)


def check_spending(load, journals):
    """Check that what was spent is what was told, and never above the line by more than it may be."""
    for name in ("limited", "limited-keyed"):
        told = [id_ for id_, (kind, _) in journals[name].settled.items() if kind is Kind.TOLD]
        for state in load.states(name):
            spent = state["spending"]
            assert spent["decisions"] == len(told) > 0
            assert spent["spent"] == pytest.approx(sum(load.paid[id_] for id_ in told))
            assert spent["spent"] <= spent["line"] + 12.0 + 1e-9


def check_batches(load):
    """Check that batches with keys are what a family decides, to the bit."""
    family = sl.Family("glance", GRAPH, seed=5)
    for name, batch, losses in load.nights:
        if name == "keyed":
            plan = family.ask(batch.keys, advice=forecast(len(batch)))
            assert plan.arms.tolist() == batch.arms.tolist()
            assert plan.probabilities.tobytes() == batch.probabilities.tobytes()
            family.tell(plan, losses)
