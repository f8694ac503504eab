"""The streams of what happens."""

import asyncio
import itertools

import pytest

from service.doubles import hooked
from service.stores import opened
from sidelong.service.store.rules import Decide
from sidelong.service.store.tokens import Tokens
from sidelong.service.tail import Tail


async def read(events, wanted):
    """Return the numbers of the events of a stream, once it has so many."""
    text = b""
    async for part in events:
        text += part
        if text.count(b"\nevent: decided\n") >= wanted:
            break
    await events.aclose()
    return [int(line[4:]) for line in text.splitlines() if line.startswith(b"id: ")]


def test_who_falls_behind_catches_up_without_a_pause(tmp_path):
    """More events than fit into one reading come at once, not one reading every quarter of a second."""

    async def follow(bench, experiment):
        tails = Tail(bench.database, Tokens(bench.database), every=3600.0)
        return await asyncio.wait_for(read(tails.stream(experiment, 0, 1201, None), 1200), 60)

    with opened(f"sqlite:///{tmp_path}/service.db") as bench:
        bench.create()
        bench.store.run([Decide("e") for _ in range(1200)])
        found = asyncio.run(follow(bench, bench.store.identity("e").id))
    assert found == list(range(1, 1202))


def test_a_thousand_streams_ask_the_database_as_often_as_one(tmp_path, monkeypatch):
    transactions, hooks = [], hooked(monkeypatch)

    def counted(reading):
        transactions.append(None)
        return reading()

    async def follow(bench, experiment, streams):
        tails = Tail(bench.database, Tokens(bench.database), every=0.01)
        reads = [asyncio.create_task(read(tails.stream(experiment, 1, 1, None), 40)) for _ in range(streams)]
        before = len(transactions)
        for _ in range(40):
            await asyncio.to_thread(bench.store.run, [Decide("e")])
        found = await asyncio.wait_for(asyncio.gather(*reads), 60)
        return found, len(transactions) - before

    with opened(f"sqlite:///{tmp_path}/service.db") as bench:
        bench.create()
        experiment = bench.store.identity("e").id
        hooks["reading"] = counted
        found, asked = asyncio.run(follow(bench, experiment, 1000))
    assert found == [list(range(2, 42))] * 1000
    assert asked < 1000  # each of them asked for itself before, and several times


def test_many_streams_are_served_a_few_at_a_time(tmp_path):
    """Between two of them the loop answers requests, which else would wait for all of them."""

    async def follow(bench, experiment):
        tails = Tail(bench.database, Tokens(bench.database), every=0.05)
        streams = [tails.stream(experiment, 1, 1, None) for _ in range(100)]
        for stream in streams:
            await anext(stream)  # which says that it has begun
        reads = [asyncio.create_task(anext(stream)) for stream in streams]
        await asyncio.sleep(0.05)  # until all of them wait
        await asyncio.to_thread(bench.store.run, [Decide("e")])
        served = [0]
        while served[-1] < len(reads):
            await asyncio.sleep(0)
            served.append(sum(each.done() for each in reads))
        texts = {each.result() for each in reads}
        for stream in streams:
            await stream.aclose()
        return texts, max(now - before for before, now in itertools.pairwise(served))

    with opened(f"sqlite:///{tmp_path}/service.db") as bench:
        bench.create()
        texts, most = asyncio.run(asyncio.wait_for(follow(bench, bench.store.identity("e").id), 60))
    assert len(texts) == 1
    assert most <= 10


@pytest.mark.parametrize("seen", [0, 4])
def test_the_stream_of_a_deleted_experiment_ends_with_an_event_that_says_so(tmp_path, seen):
    """However far one has read; and the streams of others go on."""

    async def follow(bench):
        tails = Tail(bench.database, Tokens(bench.database), every=0.01)
        of, other = (bench.store.identity(name).id for name in ("e", "other"))
        stream = tails.stream(of, seen, 4, None)
        parts = [await anext(stream)]
        await asyncio.to_thread(bench.delete)
        on = asyncio.create_task(read(tails.stream(other, 1, 1, None), 1))
        parts += [part async for part in stream]
        await asyncio.to_thread(bench.decide, "other")
        return parts, await on

    with opened(f"sqlite:///{tmp_path}/service.db") as bench:
        bench.create()
        bench.create("other")
        bench.store.run([Decide("e") for _ in range(3)])
        parts, on = asyncio.run(asyncio.wait_for(follow(bench), 60))
    assert parts[-1].startswith(
        b'event: deleted\ndata: {"sequence":null,"kind":"deleted","round":null,"arm":null,"at":"'
    )
    assert on == [2]


def test_two_who_come_at_different_places_get_the_same_and_a_revoked_token_ends_a_stream(tmp_path, monkeypatch):
    monkeypatch.setattr(Tokens, "fresh_for", 0.0)

    async def follow(bench, experiment):
        tokens = Tokens(bench.database)
        token = tokens.create("reader", ["read"]).split("_")[1]
        tokens.refresh()
        tails = Tail(bench.database, tokens, every=0.01)
        early = asyncio.create_task(read(tails.stream(experiment, 11, 11, token), 10))
        await asyncio.sleep(0.05)
        late = asyncio.create_task(read(tails.stream(experiment, 3, 11, token), 18))
        await asyncio.to_thread(bench.store.run, [Decide("e") for _ in range(10)])
        found = await asyncio.wait_for(asyncio.gather(early, late), 60)
        endless = asyncio.create_task(read(tails.stream(experiment, 21, 21, token), 10**9))
        await asyncio.sleep(0.05)
        tokens.revoke(token)
        assert await asyncio.wait_for(endless, 60) == []
        return found

    with opened(f"sqlite:///{tmp_path}/service.db") as bench:
        bench.create()
        bench.store.run([Decide("e") for _ in range(10)])
        found = asyncio.run(follow(bench, bench.store.identity("e").id))
    assert found == [list(range(12, 22)), list(range(4, 22))]
