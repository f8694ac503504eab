"""What takes long is done ahead of the transaction that writes it: nobody waits for it, and nothing comes twice."""

import asyncio
import collections
import threading

import pytest

import sidelong as sl
from service.stores import opened
from service.test_isolation import PATIENCE, create, decide, running
from service.test_keyed import KEYS, ask, events
from sidelong.errors import ServiceError
from sidelong.service.store.ahead import Overtaken
from sidelong.service.store.changes import Change
from sidelong.service.store.commands import Decide, DecideKeys
from sidelong.service.store.journal import Kind
from sidelong.service.store.keyed import rules
from sidelong.service.store.sql.database import _Writing
from sidelong.service.store.store import Store

MANY = [f"sku-{k}" for k in range(100)]


async def shop(client, name="shop", **more):
    body = {"name": name, "graph": {"name": "cliques", "sizes": [3, 2]}, "learner": "exp3.g++", "seed": 1, **more}
    assert (await client.post("/v1/experiments", json={**body, "keyed": True})).status_code == 201


def batch(client, keys=None, name="shop", key="night"):
    body = {"keys": MANY if keys is None else keys}
    address = f"/v1/experiments/{name}/decisions/columns"
    return client.post(address, json=body, headers={"Idempotency-Key": key})


class Slow:
    """Lets a batch of many keys wait in its turn, until it is told to go on."""

    def __init__(self, monkeypatch):
        self.begun, self.further, self.threads = threading.Event(), threading.Event(), []
        draw = rules.decide

        def slow(turn, keys, *given):
            if len(keys) == len(MANY):
                self.threads.append(threading.current_thread().name.split("_")[0])
                self.begun.set()
                assert self.further.wait(PATIENCE)
            return draw(turn, keys, *given)

        monkeypatch.setattr(rules, "decide", slow)


def test_while_a_batch_of_keys_is_drawn_others_decide_and_its_own_experiment_waits(tmp_path, monkeypatch):
    slow = Slow(monkeypatch)

    async def play():
        async with running(f"sqlite:///{tmp_path}/ahead.db") as (_, client):
            await create(client, "small")
            await shop(client)
            night = asyncio.create_task(batch(client))
            await asyncio.to_thread(slow.begun.wait, PATIENCE)
            for number in range(1, 21):
                assert (await decide(client, "small"))["round"] == number
            behind = asyncio.create_task(batch(client, MANY[:2], key="behind"))
            await decide(client, "small")
            assert not night.done()
            assert not behind.done()
            slow.further.set()
            assert (await night).json()["first"] == 1
            assert (await behind).json()["first"] == 101
            again = await batch(client)
            assert (again.status_code, again.json()["first"]) == (200, 1)
        assert slow.threads == ["commits-ahead"] * 2  # the second time, too, it is looked up there

    asyncio.run(play())


def test_while_a_night_expires_others_decide_and_its_own_experiment_waits(tmp_path, monkeypatch):
    begun, further, threads, expire = threading.Event(), threading.Event(), [], rules.expire

    def slow(*given):
        threads.append(threading.current_thread().name.split("_")[0])
        begun.set()
        assert further.wait(PATIENCE)
        return expire(*given)

    monkeypatch.setattr(rules, "expire", slow)

    async def play():
        async with running(f"sqlite:///{tmp_path}/ahead.db", sweep_every=0.01) as (_, client):
            await create(client, "small")
            await shop(client, expire_after=0.01)
            night = (await batch(client)).json()
            await asyncio.to_thread(begun.wait, PATIENCE)
            for number in range(1, 21):
                assert (await decide(client, "small"))["round"] == number
            behind = asyncio.create_task(batch(client, MANY[:2], key="behind"))
            await decide(client, "small")
            assert not behind.done()
            further.set()
            assert (await behind).json()["first"] == 101
            last = (await client.get(f"/v1/decisions/{night['ids']}100")).json()
            assert last["status"] == "expired"
        assert set(threads) == {"commits-ahead"}

    asyncio.run(play())


def test_a_server_that_stops_writes_what_is_done_ahead(tmp_path, monkeypatch):
    slow = Slow(monkeypatch)

    async def play():
        async with running(f"sqlite:///{tmp_path}/ahead.db") as (_, client):
            await shop(client)
            night = asyncio.create_task(batch(client))
            await asyncio.to_thread(slow.begun.wait, PATIENCE)
            asyncio.get_running_loop().call_soon(slow.further.set)
        assert (await night).status_code == 201

    asyncio.run(play())


class Rescued(threading.Event):
    """Wakes the thread that writes; notes when that waits to stop, and rescues it from waiting for ever."""

    def __init__(self, commits):
        super().__init__()
        self.stops, self.rescued, self._commits = threading.Event(), False, commits
        commits._wake, was = self, commits._wake
        was.set()

    def wait(self, timeout=None):
        if not self._commits._stopping:
            return super().wait(timeout)
        if not self.is_set():
            self.stops.set()
        self.rescued |= not super().wait(PATIENCE)
        return True


def test_a_server_stops_though_a_turn_ahead_fails_meanwhile(tmp_path, monkeypatch):
    begun = threading.Event()

    async def play():
        async with running(f"sqlite:///{tmp_path}/ahead.db") as (server, client):
            await shop(client)
            wake = Rescued(server.commits)

            def fail(*_):
                begun.set()
                assert wake.stops.wait(PATIENCE)
                raise RuntimeError

            monkeypatch.setattr(rules, "decide", fail)
            night = asyncio.create_task(batch(client))
            await asyncio.to_thread(begun.wait, PATIENCE)
        assert (await night).status_code == 503
        assert not wake.rescued

    asyncio.run(play())


def test_a_server_stops_though_another_deletes_an_experiment_at_its_turn_ahead(tmp_path, monkeypatch):
    address = f"sqlite:///{tmp_path}/ahead.db"
    slow, run_held = Slow(monkeypatch), Store.run_held

    async def play():
        async with running(address) as (server, client):
            await shop(client)
            wake = Rescued(server.commits)

            def wait_aside(self, commands, held, *, wait):
                if wait:
                    assert wake.stops.wait(PATIENCE)
                return run_held(self, commands, held, wait=wait)

            night = asyncio.create_task(batch(client))
            await asyncio.to_thread(slow.begun.wait, PATIENCE)
            with opened(address) as other:
                other.delete("shop")
            monkeypatch.setattr(Store, "run_held", wait_aside)
            slow.further.set()
        assert (await night).status_code == 503
        assert not wake.rescued

    asyncio.run(play())


class Noticed(collections.deque):
    """What was done ahead; notes when there is something."""

    def __init__(self):
        super().__init__()
        self.some = threading.Event()

    def append(self, made):
        super().append(made)
        self.some.set()


def test_a_turn_that_was_overtaken_is_taken_in_the_transaction_whoever_else_writes(tmp_path, monkeypatch):
    address = f"sqlite:///{tmp_path}/ahead.db"
    slow, paused, further = Slow(monkeypatch), threading.Event(), threading.Event()

    def pause():
        paused.set()
        assert further.wait(PATIENCE)

    async def play():
        async with running(address) as (server, client):
            await create(client, "small")
            await shop(client)
            await decide(client, "small")
            made = server.commits._made = Noticed()
            night = asyncio.create_task(batch(client))
            await asyncio.to_thread(slow.begun.wait, PATIENCE)
            pausing = server.commits.submit(pause)
            await asyncio.to_thread(paused.wait, PATIENCE)
            with opened(address) as other:
                other.store.run([DecideKeys("shop", MANY[:1])])
            beside = server.commits.submit(Decide("small"))
            slow.further.set()
            await asyncio.to_thread(made.some.wait, PATIENCE)
            further.set()  # both are written together
            await asyncio.gather(pausing, beside)
            assert (await night).json()["first"] == 2
        assert slow.threads == ["commits-ahead", "commits"]

    asyncio.run(play())


@pytest.mark.parametrize("far", [False, True])
def test_a_turn_that_another_server_has_overtaken_is_taken_again(tmp_path, monkeypatch, far):
    address = f"sqlite:///{tmp_path}/ahead.db"
    slow = Slow(monkeypatch)

    async def play():
        async with running(address) as (_, client):
            await shop(client)
            night = asyncio.create_task(batch(client))
            await asyncio.to_thread(slow.begun.wait, PATIENCE)
            with opened(address) as other:
                for k in range(300 if far else 1):  # more than a transaction catches up with itself
                    other.store.run([DecideKeys("shop", [MANY[k % 100]])])
                slow.further.set()
                made = (await night).json()
                assert made["first"] == (301 if far else 2)
                assert made["rounds"][:2] == ([4, 4] if far else [2, 1])
                digest = (await client.get("/v1/experiments/shop?digest=true")).json()["digest"]
                assert other.digest("shop") == digest
            assert (await batch(client, key="next")).status_code == 201
        assert slow.threads == ["commits-ahead", "commits", "commits-ahead"]

    asyncio.run(play())


def test_what_was_done_ahead_and_cannot_be_written_never_was(tmp_path, monkeypatch):
    append, broken = _Writing.append, threading.Event()

    def fail(self, new):
        if broken.is_set():
            raise ServiceError("full", status=507, code="disk_full")
        append(self, new)

    monkeypatch.setattr(_Writing, "append", fail)

    async def play():
        async with running(f"sqlite:///{tmp_path}/ahead.db") as (_, client):
            await shop(client)
            await batch(client, key="first")
            broken.set()
            assert (await batch(client)).status_code == 507
            broken.clear()
            again = await batch(client)
            assert (again.status_code, again.json()["first"]) == (201, 101)
            assert again.json()["rounds"] == [2] * 100

    asyncio.run(play())


def test_a_graph_that_is_forgotten_before_a_turn_is_written_is_refused_as_it_would_be(database):
    graph = sl.graphs.star(4, hub=1)
    with opened(database) as bench:
        bench.create(keyed=True)
        (made,) = bench.store.run([DecideKeys("e", KEYS[:1], graph=graph)])
        id_ = next(event.graph for event in events(bench) if event.kind is Kind.DECIDED)
        replayed = bench.store.load("e")
        with replayed.lock:
            ahead = bench.store.run_ahead([DecideKeys("e", KEYS, graph=id_)], replayed)
            assert ahead.turn.held == {id_}
            (written,) = bench.store.run_held([ahead], {ahead.of: replayed}, wait=True)
            assert written is ahead.outcomes
        assert ask(bench, KEYS).draws.rounds.tolist()[:2] == [3, 2]
        assert made.draws.rounds.tolist() == [1]


def test_a_name_that_is_taken_before_a_turn_is_written_refuses_nothing_but_the_change(database):
    with opened(database) as bench, opened(database) as other:
        bench.create(keyed=True)
        night, rename = DecideKeys("e", KEYS), Change("e", {"name": "f"})
        replayed = bench.store.load("e")
        with replayed.lock:
            ahead = bench.store.run_ahead([night, rename], replayed)
            other.create("f")
            (written,) = bench.store.run_held([ahead], {ahead.of: replayed}, wait=True)
        assert isinstance(written, Overtaken)  # so that each is done again by itself
        made, refused = bench.store.run([night, rename])
        assert made.draws.rounds.tolist() == [1] * len(KEYS)
        assert refused.code == "exists"
