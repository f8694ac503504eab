"""Keys in blocks: they leave memory when they are idle, come back to the bit, and a start reads none of them."""

import asyncio
import contextlib

import numpy as np
import pytest

import sidelong as sl
from service.doubles import Meter, altered, flipped, of_kind
from service.in_process import running
from service.stores import lose_snapshots, opened, small_blocks
from service.test_keyed import KEYS, KeyedTwins, ask, run, told
from sidelong.errors import ServiceError
from sidelong.service.store.database import BlobKind
from sidelong.service.store.rules import Decide, Tell

FEW = 4000  # bytes of keys in memory: three blocks of three keys


class Blocks:
    """Which blocks of keys are read from the database, and which are written to it."""

    def __init__(self, hooks):
        self.read, self.written = [], []
        hooks["blob"], hooks["keep_chunk"] = of_kind(BlobKind.BLOCK, self._read), of_kind(BlobKind.BLOCK, self._keep)

    def _read(self, blob, name):
        self.read.append(name.number)
        return blob(name)

    def _keep(self, keep_chunk, name, *given, **more):
        self.written.append(name.number)
        keep_chunk(name, *given, **more)

    def clear(self):
        self.read, self.written = [], []


@pytest.fixture(autouse=True)
def several_blocks(monkeypatch):
    small_blocks(monkeypatch, 3)


@pytest.fixture
def blocks(hooks):
    return Blocks(hooks)


def night(bench, keys=KEYS):
    made = ask(bench, keys)
    run(bench, Tell(f"#{made.experiment}", [told(made, k) for k in range(len(keys))]))
    return made


@pytest.mark.parametrize("options", [{"holdout": {"arm": 1, "share": 0.3}}, {"refresh": "epoch"}])
def test_keys_that_leave_memory_and_come_back_play_as_their_single_agents(database, options, blocks):
    rng = np.random.default_rng(5)
    with contextlib.ExitStack() as stack:
        twins = KeyedTwins(stack.enter_context(opened(database, max_key_bytes=FEW)), **options)
        for turn in range(60):
            first = int(rng.integers(0, 9))
            twins.ask(rng.choice(KEYS[first : first + 4], rng.integers(1, 5)).tolist())
            some = rng.permutation(list(twins.waiting))[: rng.integers(1, 6)].tolist()
            twins.tell(some, rng)
            if turn % 13 in {5, 8}:
                twins.freeze(turn % 13 == 5)
            if turn % 3 == 2:
                twins.bench.store.save(least=1)
            if turn % 20 == 15:
                digest = twins.bench.digest()
                twins.bench = stack.enter_context(opened(database, max_key_bytes=FEW))
                assert twins.bench.digest() == digest
        assert len(blocks.read) > 20  # so many have left memory, and come back
        digest = twins.bench.digest()
        lose_snapshots(twins.bench.database)
        blocks.clear()
        with opened(database) as again:  # from the journal alone, all of it in memory
            assert again.digest() == digest
        assert not blocks.read


def test_a_start_reads_no_block_and_a_decision_reads_its_own(database, blocks):
    with opened(database) as bench:
        bench.create(keyed=True)
        night(bench)
        bench.store.save(least=1)
        digest = bench.digest()
    assert not blocks.read
    with opened(database) as bench:
        assert bench.digest() == digest
        assert not blocks.read
        ask(bench, [KEYS[4]])
        assert blocks.read == [1]
        bench.store.save(least=1)
    blocks.clear()
    with opened(database) as bench:
        ask(bench, [KEYS[11], "new"])
        assert blocks.read == [3]


def test_a_snapshot_writes_the_blocks_that_have_changed(database, blocks):
    with opened(database) as bench:
        bench.create(keyed=True)
        for keys, changed in ((KEYS, [0, 1, 2, 3]), (KEYS[:4], [0, 1]), (KEYS[:1], [0])):
            night(bench, keys)
            digest = bench.digest()
            bench.store.save(least=1)
            assert blocks.written == changed
            assert bench.digest() == digest
            blocks.clear()
            with opened(database) as other:
                assert other.digest() == digest


def test_what_has_changed_stays_in_memory_until_a_snapshot_is_written(database, hooks, blocks):
    def fail(*_, **__):
        raise ServiceError("full", status=507, code="disk_full")

    with opened(database, max_key_bytes=FEW) as bench:
        bench.create(keyed=True)
        night(bench)
        bench.store.drop_idle()
        keep = hooks["keep_chunk"]
        hooks["keep_chunk"] = of_kind(BlobKind.SNAPSHOT, fail)
        with pytest.raises(ServiceError):
            bench.store.save(least=1)
        bench.store.drop_idle()
        night(bench)
        assert not blocks.read
        hooks["keep_chunk"] = keep
        bench.store.save(least=1)
        bench.store.drop_idle()
        night(bench)
        assert blocks.read
        digest = bench.digest()
    with opened(database) as bench:
        assert bench.digest() == digest


def test_new_keys_are_refused_while_changed_ones_fill_the_memory_until_a_snapshot_is_written(database):
    """Whoever may only decide would otherwise let the server keep as many keys as it likes."""
    with opened(database, max_key_bytes=2**24) as bench:
        bench.create(graph=sl.graphs.nested(20_000), keyed=True)
        ask(bench, list("abcdefghij"))
        head = bench.store.position("e")
        with pytest.raises(ServiceError, match="Keys of this experiment that have changed take") as refused:
            ask(bench, ["new"])
        assert (refused.value.status, refused.value.code) == (503, "busy")
        assert bench.store.position("e") == head
        ask(bench, ["a"])  # one that is there already
        bench.store.save(least=1)
        assert ask(bench, ["new"]).draws.numbers[0] == 12


def test_a_server_writes_a_snapshot_to_let_go_of_keys_though_little_has_happened(tmp_path, blocks):
    async def play():
        address = f"sqlite:///{tmp_path}/keys.db"
        async with running(address, max_key_bytes=FEW, snapshot_every=10**9) as (server, client):
            body = {"name": "e", "graph": {"name": "nested", "n": 4}, "learner": "exp3.g++", "keyed": True}
            assert (await client.post("/v1/experiments", json=body)).status_code == 201
            while not blocks.written:
                await server.commits.submit(Decide("e", keys=KEYS))

    asyncio.run(play())


def test_a_snapshot_is_needed_once_changed_keys_fill_three_quarters_of_their_memory(database):
    with opened(database) as bench:
        bench.create(keyed=True)
        night(bench)
        for share, needed in ((0.74, False), (0.76, True)):
            assert bench.store.view("e", lambda live, _, s=share: live.needs_saving(int(live.key_bytes / s))) is needed
        bench.store.save(least=1)
        assert not bench.store.view("e", lambda live, _: live.needs_saving(live.key_bytes))


def test_a_block_that_changes_while_it_is_written_is_written_again(database, hooks, blocks):
    with opened(database, max_key_bytes=FEW) as bench:
        bench.create(keyed=True)
        night(bench)

        @contextlib.contextmanager
        def writing(begin, *, aside):
            if aside:  # the first part of the snapshot
                del hooks["writing"]
                night(bench, KEYS[:1])
            with begin(aside=aside) as begun:
                yield begun

        hooks["writing"] = writing
        bench.store.save(least=1)
        assert "writing" not in hooks
        digest = bench.digest()
        bench.store.drop_idle()
        with opened(database) as other:
            assert other.digest() == digest
        blocks.clear()
        bench.store.save(least=1)
        assert blocks.written == [0]
        assert bench.digest() == digest


def test_a_server_whose_blocks_another_has_replaced_reads_the_newer_snapshot(database):
    with opened(database, max_key_bytes=FEW) as one, opened(database) as two:
        one.create(keyed=True)
        night(one)
        one.store.save(least=1)
        one.store.drop_idle()
        for _ in range(3):
            night(two)
            two.store.save(least=1)
        made = night(one)
        assert made.draws.rounds == [5] * 12
        assert one.digest() == two.digest()


def test_equal_blocks_are_equal_bytes_in_whatever_order_their_graphs_came(database):
    graphs = sorted([sl.graphs.star(4, hub=1), sl.graphs.cliques([2, 2])], key=lambda graph: graph.content_hash)
    with opened(database) as one:
        one.create(keyed=True)
        for graph in reversed(graphs):
            ask(one, KEYS[:1], graph=graph)
        with opened(database) as two:
            assert one.digest() == two.digest()
            two.store.save(least=1)
        with opened(database) as two:  # which has the graphs from the block, in order
            ask(two, KEYS[:1])
            assert one.digest() == two.digest()


@pytest.mark.parametrize("keys", [None, KEYS[:1]], ids=["without keys", "keyed"])
def test_decisions_that_wait_at_a_snapshot_keep_their_own_graphs(database, keys):
    """Graphs that came in another order than they wait in: the agent numbers them by the former."""
    graphs = [sl.graphs.star(4, hub=1), sl.graphs.cliques([2, 2]), sl.graphs.complete(4)]
    with opened(database) as one:
        one.create(keyed=keys is not None)
        for graph in graphs:
            one.tell(one.decide(keys=keys, graph=graph))
        made = [one.decide(keys=keys, graph=graph) for graph in graphs[::-1]]
        one.store.save(least=1)
    with opened(database) as two:
        for each in made:
            two.tell(each)
        with opened(database) as three:
            lose_snapshots(three.database)
            assert three.digest() == two.digest()


@pytest.mark.parametrize("how", ["damaged", "gone"])
def test_a_block_that_is_not_as_it_was_written_is_made_anew_from_the_journal(database, hooks, how):
    with opened(database) as bench:
        bench.create(keyed=True)
        night(bench)
        bench.store.save(least=1)
        digest = bench.digest()
    spoil(hooks, how)
    with opened(database) as bench:
        assert bench.digest() == digest  # which does not look at the block
        made = ask(bench, KEYS)
        assert made.draws.rounds == [2] * 12
        with opened(database) as other:
            assert other.digest() == bench.digest()


def spoil(hooks, how):
    """Let the database return damaged blocks, or none."""

    def spoiled(found):
        return None if how == "gone" else found._replace(data=flipped(found.data, -40))

    hooks["blob"] = of_kind(BlobKind.BLOCK, altered(spoiled))


def test_a_large_clone_is_written_in_chunks_before_it_is_created(database, hooks):
    meter = Meter(hooks)
    with opened(database) as bench:
        bench.create(keyed=True, graph=sl.graphs.nested(200))
        made = run(bench, Decide("e", keys=list(range(400))))
        run(bench, Tell(f"#{made.experiment}", [told(made, place) for place in range(400)]))
        meter.written.clear()
        bench.clone("e", "copy")
        assert sum(each.bytes for each in meter.written) > 2**19
        assert max(each.bytes for each in meter.written) <= 2**18
        assert sum(each.bytes for each in meter.written if not each.aside) < 2**12
        digest = bench.digest("copy")
    with opened(database) as bench:
        assert bench.digest("copy") == digest
