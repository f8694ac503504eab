"""A batch of many keys is computed outside of the transaction that writes it: nobody waits, and nothing comes twice."""

import asyncio
import contextlib
import threading

import pytest

import sidelong as sl
from service.doubles import PATIENCE, Pause
from service.in_process import running
from service.stores import opened
from service.test_isolation import create, decide
from sidelong.errors import ServiceError
from sidelong.service.store import creation
from sidelong.service.store.lifecycle_commands import Change
from sidelong.service.store.rules import Decide

MANY = [f"sku-{k}" for k in range(100)]


@pytest.fixture
def slow(hooks):
    """Let the batch with the Idempotency-Key "night" wait where this key is looked up, until it is told to go on."""
    pause = Pause()
    hooks["keyed"] = pause.hook(lambda _, keys: "night" in keys)
    return pause


async def shop(client, name="shop", **more):
    body = {"name": name, "graph": {"name": "cliques", "sizes": [3, 2]}, "learner": "exp3.g++", "seed": 1, **more}
    assert (await client.post("/v1/experiments", json={**body, "keyed": True})).status_code == 201


def batch(client, keys=None, name="shop", key="night", **more):
    body = {"keys": MANY if keys is None else keys, **more}
    address = f"/v1/experiments/{name}/decisions"
    return client.post(address, json=body, headers={"Idempotency-Key": key})


def first(reply):
    """Return the number of the first decision of a batch."""
    return int(reply.json()["ids"][0].partition("-")[2])


def test_while_a_batch_of_keys_is_computed_others_decide_and_its_own_experiment_waits(tmp_path, slow):
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
            assert first(await night) == 1
            assert first(await behind) == 101
            again = await batch(client)
            assert (again.status_code, first(again)) == (200, 1)

    asyncio.run(play())


def test_while_a_night_expires_others_decide_and_its_own_experiment_waits(tmp_path, hooks):
    pause, armed = Pause(), threading.Event()

    async def play():
        async with running(f"sqlite:///{tmp_path}/ahead.db", sweep_every=0.01) as (server, client):
            await create(client, "small")
            await shop(client, expire_after=0.01)
            of = server.store.identity("shop").id
            # Whoever expires its decisions reads first what other servers have done to the experiment.
            hooks["events"] = pause.hook(lambda experiment, *_: armed.is_set() and experiment == of)
            night = (await batch(client)).json()
            armed.set()
            await asyncio.to_thread(pause.begun.wait, PATIENCE)
            for number in range(1, 21):
                assert (await decide(client, "small"))["round"] == number
            behind = asyncio.create_task(batch(client, MANY[:2], key="behind"))
            await decide(client, "small")
            assert not behind.done()
            pause.further.set()
            assert first(await behind) == 101
            last = (await client.get(f"/v1/decisions/{night['ids'][99]}")).json()
            assert last["status"] == "expired"

    asyncio.run(play())


def test_a_server_that_stops_writes_the_batch_that_it_computes(tmp_path, slow):
    async def play():
        async with running(f"sqlite:///{tmp_path}/ahead.db") as (_, client):
            await shop(client)
            night = asyncio.create_task(batch(client))
            await asyncio.to_thread(slow.begun.wait, PATIENCE)
            asyncio.get_running_loop().call_soon(slow.further.set)
        assert (await night).status_code == 201

    asyncio.run(play())


async def go_on_when_it_stops(server, client, pause, stopped):
    """Let somebody go on once the server stops; tell whether it comes to an end then, and bring it there if not."""
    while (await client.get("/v1/experiments/nothing")).status_code != 503:
        pass
    pause.further.set()
    try:
        await asyncio.wait_for(stopped.wait(), PATIENCE)
    except TimeoutError:
        server.commits.submit(lambda: None)
        return False
    return True


def test_a_server_stops_though_a_computation_fails_meanwhile(tmp_path, hooks):
    address, pause = f"sqlite:///{tmp_path}/ahead.db", Pause()

    def fail(keyed, experiment, keys):
        if "night" in keys and not pause.begun.is_set():
            pause.hook()(keyed, experiment, keys)
            raise RuntimeError
        return keyed(experiment, keys)

    async def play():
        hooks["keyed"], stopped = fail, asyncio.Event()
        async with running(address) as (server, client):
            await shop(client)
            night = asyncio.create_task(batch(client))
            await asyncio.to_thread(pause.begun.wait, PATIENCE)
            ended = asyncio.create_task(go_on_when_it_stops(server, client, pause, stopped))
        stopped.set()
        assert await ended
        return (await night).status_code

    assert asyncio.run(play()) == 503
    with opened(address) as bench:
        assert bench.store.position("shop")[1] == 1  # nothing was decided


def test_a_server_stops_though_another_deletes_the_experiment_of_a_batch(tmp_path, hooks, slow):
    address, waiting = f"sqlite:///{tmp_path}/ahead.db", Pause()

    async def play():
        stopped = asyncio.Event()
        async with running(address) as (server, client):
            await shop(client)
            night = asyncio.create_task(batch(client))
            await asyncio.to_thread(slow.begun.wait, PATIENCE)
            with opened(address) as other:
                other.delete("shop")
            hooks["lock"] = waiting.hook(lambda _, wait=True: wait)
            slow.further.set()
            await asyncio.to_thread(waiting.begun.wait, PATIENCE)
            ended = asyncio.create_task(go_on_when_it_stops(server, client, waiting, stopped))
        stopped.set()
        assert await ended
        assert (await night).status_code == 503

    asyncio.run(play())


def test_a_batch_that_was_overtaken_is_done_again_whoever_else_writes(tmp_path, hooks, slow):
    address = f"sqlite:///{tmp_path}/ahead.db"
    computed, paused, further, threads = threading.Event(), threading.Event(), threading.Event(), []
    wait = hooks["keyed"]

    def note(keyed, experiment, keys):
        threads.append(threading.get_ident())
        return wait(keyed, experiment, keys)

    @contextlib.contextmanager
    def reading(begin):
        with begin() as begun:
            yield begun
        if slow.begun.is_set() and threading.get_ident() == threads[0]:
            computed.set()

    def pause():
        paused.set()
        assert further.wait(PATIENCE)

    async def play():
        hooks["keyed"], hooks["reading"] = note, reading
        async with running(address) as (server, client):
            await create(client, "small")
            await shop(client)
            await decide(client, "small")
            night = asyncio.create_task(batch(client))
            await asyncio.to_thread(slow.begun.wait, PATIENCE)
            pausing = server.commits.submit(pause)
            await asyncio.to_thread(paused.wait, PATIENCE)
            with opened(address) as other:
                other.store.run([Decide("shop", keys=MANY[:1])])
            beside = server.commits.submit(Decide("small"))
            slow.further.set()
            await asyncio.to_thread(computed.wait, PATIENCE)
            further.set()  # both are written together
            await asyncio.gather(pausing, beside)
            assert first(await night) == 2
            assert list((await beside).draws.numbers) == [2]

    asyncio.run(play())


@pytest.mark.parametrize("far", [False, True])
def test_a_batch_that_another_server_has_overtaken_is_done_again(tmp_path, slow, far):
    address = f"sqlite:///{tmp_path}/ahead.db"

    async def play():
        async with running(address) as (_, client):
            await shop(client)
            night = asyncio.create_task(batch(client))
            await asyncio.to_thread(slow.begun.wait, PATIENCE)
            with opened(address) as other:
                for k in range(300 if far else 1):  # more than a transaction catches up with itself
                    other.store.run([Decide("shop", keys=[MANY[k % 100]])])
                slow.further.set()
                reply = await night
                made = reply.json()
                assert first(reply) == (301 if far else 2)
                assert made["rounds"][:2] == ([4, 4] if far else [2, 1])
                digest = (await client.get("/v1/experiments/shop?digest=true")).json()["digest"]
                assert other.digest("shop") == digest
            assert (await batch(client, key="next")).status_code == 201

    asyncio.run(play())


def test_a_batch_that_cannot_be_written_never_was(tmp_path, hooks):
    broken = threading.Event()

    def fail(append, new):
        if broken.is_set():
            raise ServiceError("full", status=507, code="disk_full")
        append(new)

    async def play():
        hooks["append"] = fail
        async with running(f"sqlite:///{tmp_path}/ahead.db") as (_, client):
            await shop(client)
            await batch(client, key="first")
            broken.set()
            assert (await batch(client)).status_code == 507
            broken.clear()
            again = await batch(client)
            assert (again.status_code, first(again)) == (201, 101)
            assert again.json()["rounds"] == [2] * 100

    asyncio.run(play())


def test_a_batch_whose_graph_is_forgotten_before_it_is_written_is_refused(database, hooks):
    pause, computing = Pause(), threading.Event()

    def note(keyed, *given):
        computing.set()
        return keyed(*given)

    async def play():
        hooks["keyed"] = note
        hooks["writing"] = pause.hook(lambda aside=False: computing.is_set() and not aside)
        async with running(database) as (server, client):
            await shop(client)
            known, _ = creation.keep_graph(server.store, sl.graphs.star(5, hub=1))
            night = asyncio.create_task(batch(client, graph={"id": known.id}))
            await asyncio.to_thread(pause.begun.wait, PATIENCE)
            with opened(database) as other:
                other.hands.move(2 * 86_400)
                assert other.store.collect() == 1
            pause.further.set()
            refused = await night
            assert (refused.status_code, refused.json()["code"]) == (422, "invalid")
            assert "There is no graph" in refused.json()["detail"]
            assert first(await batch(client, key="next")) == 1

    asyncio.run(play())


def test_a_name_that_is_taken_before_a_batch_is_written_refuses_nothing_but_the_change(database, hooks, slow):
    wait, second = hooks["keyed"], Pause()
    wait_again = second.hook(lambda _, keys: "second" in keys)

    async def play():
        hooks["keyed"] = lambda keyed, *given: wait(lambda *same: wait_again(keyed, *same), *given)
        async with running(database) as (server, client):
            await create(client, "small")
            await shop(client)
            night = asyncio.create_task(batch(client))
            await asyncio.to_thread(slow.begun.wait, PATIENCE)
            made = server.commits.submit(Decide("shop", keys=MANY, key="second"))
            rename = server.commits.submit(Change("shop", {"name": "taken"}))
            await decide(client, "small")  # so that both wait for the first batch, and come together
            slow.further.set()
            await asyncio.to_thread(second.begun.wait, PATIENCE)
            with opened(database) as other:
                other.create("taken")
            second.further.set()
            assert first(await night) == 1
            assert (await made).draws.rounds == [2] * 100
            with pytest.raises(ServiceError) as refused:
                await rename
            assert refused.value.code == "exists"

    asyncio.run(play())
