"""Keys in blocks: they leave memory when they are idle, come back to the bit, and a start reads none of them."""

import contextlib

import numpy as np
import pytest
from sqlalchemy import text

import sidelong as sl
from service.stores import lose_snapshots, opened
from service.test_keyed import KEYS, KeyedTwins, ask, run, told
from sidelong.errors import ServiceError
from sidelong.service.store.batches import TellMany
from sidelong.service.store.keyed import blocks

FEW = 4000  # bytes of keys in memory: three blocks of three keys


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    monkeypatch.setattr(blocks, "_KEYS", 3)


def awake(bench, name="e"):
    """Return the numbers of the blocks in memory."""
    return bench.store.view(name, lambda each, _: sorted(each.blocks._awake))


def night(bench, keys=KEYS):
    made = ask(bench, keys)
    run(bench, TellMany(f"#{made.experiment}", [told(made, k) for k in range(len(keys))]))
    return made


def kept(bench):
    """Return number and event of the blocks in the database."""
    if bench.database.name == "memory":
        return sorted(key[1:] for key in bench.database.place.contents.blocks)
    with bench.database.reading() as reading:
        return sorted(map(tuple, reading.connection.execute(text("SELECT number, seq FROM blocks"))))


@pytest.mark.parametrize("options", [{"holdout": {"arm": 1, "share": 0.3}}, {"refresh": "epoch"}])
def test_keys_that_leave_memory_and_come_back_play_as_their_single_agents(database, options):
    rng = np.random.default_rng(5)
    slept = 0
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
            slept += turn > 10 and len(awake(twins.bench)) < 4
            if turn % 20 == 15:
                digest = twins.bench.digest()
                twins.bench = stack.enter_context(opened(database, max_key_bytes=FEW))
                assert twins.bench.digest() == digest
        assert slept > 20
        digest = twins.bench.digest()
        lose_snapshots(twins.bench.database)
        with opened(database) as again:  # from the journal alone, all of it in memory
            assert again.digest() == digest
            assert len(awake(again)) == 4


def test_a_start_reads_no_block_and_a_decision_reads_its_own(database):
    with opened(database) as bench:
        bench.create(keyed=True)
        night(bench)
        bench.store.save(least=1)
        digest = bench.digest()
    with opened(database) as bench:
        assert awake(bench) == []
        assert bench.digest() == digest
        ask(bench, [KEYS[4]])
        assert awake(bench) == [1]
        bench.store.save(least=1)
    with opened(database) as bench:
        ask(bench, [KEYS[11], "new"])
        assert awake(bench) == [3, 4]


def test_a_snapshot_writes_the_blocks_that_have_changed_and_old_ones_are_forgotten(database):
    with opened(database) as bench:
        bench.create(keyed=True)
        night(bench)
        bench.store.save(least=1)
        assert kept(bench) == [(0, 3), (1, 3), (2, 3), (3, 3)]
        night(bench, KEYS[:4])
        bench.store.save(least=1)
        assert kept(bench) == [(0, 3), (0, 5), (1, 3), (1, 5), (2, 3), (3, 3)]
        night(bench, KEYS[:1])
        bench.store.save(least=1)  # the first snapshot is forgotten, and what only it needed
        assert kept(bench) == [(0, 5), (0, 7), (1, 5), (2, 3), (3, 3)]


def test_what_has_changed_stays_in_memory_until_a_snapshot_is_written(database, monkeypatch):
    with opened(database, max_key_bytes=FEW) as bench:
        bench.create(keyed=True)
        night(bench)
        bench.store.doze()
        assert awake(bench) == [0, 1, 2, 3]
        replayed = bench.store.named("e")
        assert replayed.is_stale(10**9, FEW)  # though little has happened: it takes a snapshot to let go of keys
        assert not replayed.is_stale(10**9, 10**9)

        def fail(*_):
            raise ServiceError("full", status=507, code="disk_full")

        with monkeypatch.context() as patch:
            patch.setattr(type(replayed), "_write", fail)
            with pytest.raises(ServiceError):
                bench.store.save(least=1)
        bench.store.doze()
        assert awake(bench) == [0, 1, 2, 3]
        bench.store.save(least=1)
        bench.store.doze()
        assert len(awake(bench)) < 4
        night(bench)


def test_keys_that_fit_into_memory_wait_for_a_snapshot_until_it_is_worth_its_bytes(database, monkeypatch):
    monkeypatch.setattr("sidelong.service.store.pace._EVENT", 160)
    monkeypatch.setattr("sidelong.service.store.pace._DECISION", 10)
    with opened(database) as bench:
        bench.create(keyed=True)
        bench.store.save(least=1)
        replayed, batches = bench.store.named("e"), 0
        size, key_bytes = replayed._pace._size, replayed.live.blocks.key_bytes
        assert size > 0
        while not replayed.is_stale(1, 10**9):
            ask(bench, KEYS)
            batches += 1
        assert replayed.live.changed_bytes == 12 * key_bytes
        worth = [(160 + 11 * 10) * n for n in (batches - 1, batches)]
        assert worth[0] < size + 12 * key_bytes <= worth[1]
        bench.store.save(least=1)
        ask(bench, KEYS[:1])
        assert replayed.live.changed_bytes == 3 * key_bytes  # of the block that has changed


def test_a_snapshot_packs_each_block_that_has_changed_once(database, monkeypatch):
    packed, pack = [], blocks.Blocks._packed

    def note(self, number):
        packed.append(number)
        return pack(self, number)

    with opened(database) as bench:
        bench.create(keyed=True)
        night(bench)
        bench.store.save(least=1)
        night(bench, KEYS[:4])
        digest = bench.digest()
        with monkeypatch.context() as patch:
            patch.setattr(blocks.Blocks, "_packed", note)
            bench.store.save(least=1)
        assert packed == [0, 1]
        assert bench.digest() == digest


def test_a_block_that_changes_while_it_is_written_is_written_again(database, monkeypatch):
    with opened(database, max_key_bytes=FEW) as bench:
        bench.create(keyed=True)
        night(bench)
        replayed = bench.store.named("e")
        write = type(replayed)._write

        def slow(self, *given):
            night(bench, KEYS[:1])
            write(self, *given)

        with monkeypatch.context() as patch:
            patch.setattr(type(replayed), "_write", slow)
            bench.store.save(least=1)
        digest = bench.digest()
        bench.store.doze()
        assert 0 in awake(bench)
        with opened(database) as other:
            assert other.digest() == digest
        bench.store.save(least=1)
        assert (0, 5) in kept(bench)
        assert bench.digest() == digest


def test_a_server_whose_blocks_another_has_replaced_reads_the_newer_snapshot(database):
    with opened(database, max_key_bytes=FEW) as one, opened(database) as two:
        one.create(keyed=True)
        night(one)
        one.store.save(least=1)
        one.store.doze()
        for _ in range(3):
            night(two)
            two.store.save(least=1)
        made = night(one)
        assert made.draws.rounds.tolist() == [5] * 12
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


@pytest.mark.parametrize("how", ["damaged", "gone"])
def test_a_block_that_is_not_as_it_was_written_is_made_anew_from_the_journal(database, how):
    with opened(database) as bench:
        bench.create(keyed=True)
        night(bench)
        bench.store.save(least=1)
        digest = bench.digest()
        spoil(bench.database, how)
    with opened(database) as bench:
        assert bench.digest() == digest  # which does not look at the block
        made = ask(bench, KEYS)
        assert made.draws.rounds.tolist() == [2] * 12
        with opened(database) as other:
            assert other.digest() == bench.digest()


def spoil(database, how):
    if database.name == "memory":
        kept = database.place.contents.blocks
        key = min(kept)
        kept[key] = kept[key][:-40] + b"x" + kept[key][-39:]
        if how == "gone":
            del kept[key]
        return
    with database.writing() as writing:
        data = bytes(writing.connection.execute(text("SELECT data FROM blocks WHERE number = 0")).scalar())
        data = data[:-40] + b"x" + data[-39:]
        what = "DELETE FROM blocks" if how == "gone" else "UPDATE blocks SET data = :data"
        writing.connection.execute(text(f"{what} WHERE number = 0"), {"data": data} if how == "damaged" else {})
        writing.commit()
