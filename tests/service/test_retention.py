"""The journal is cut behind a snapshot: what is left says the truth, and nothing is decided twice."""

import functools
import itertools

import pyarrow.parquet as pq
import pytest
import sqlalchemy as sa

from service.doubles import altered, flipped
from service.stores import alter_snapshots, opened
from service.test_store import refused
from sidelong.errors import ServiceError
from sidelong.service.http import export
from sidelong.service.settings import Settings
from sidelong.service.store import retention
from sidelong.service.store.database import BlobKind
from sidelong.service.store.journal import Kind, since
from sidelong.service.store.retention import Retention
from sidelong.service.store.sql import schema

DAY = 86_400.0
KEEP = {"keep_days": 2.0, "keep_keys_days": 3.0}


def play(bench, rounds, *, keyed=False, begin=0):
    """Decide and tell, an hour after the other, with snapshots in between; return the decisions."""
    made = []
    for number in range(begin, begin + rounds):
        made.append(decide(bench, f"k{number}", keyed=keyed))
        bench.tell(made[-1], number % 7 / 7)
        bench.hands.move(3600.0)
        if number % 6 == 5:
            bench.store.save(least=1)
    return made


def decide(bench, key, *, keyed=False):
    return bench.decide(key=key, context=f'{{"n": "{key}"}}', **({"keys": ["a"]} if keyed else {}))


def look(bench, cut=None):
    """Let the journals be cut, as a server does now and then."""
    found = Retention(bench.store, export.write, lambda *counted: cut is None or cut.append(counted))
    found.look()
    return found


def events(bench, name="e"):
    with bench.database.reading() as reading:
        return list(since(reading, reading.find(name).id, 0))


def log(bench, folder, name="e"):
    export.write(bench.store, name, folder / "log.parquet")
    table = pq.read_table(folder / "log.parquet")
    return table.to_pylist(), table.schema.metadata[b"sidelong.experiment"].decode()


def execute(bench, statement):
    """Change the database behind the back of all servers."""
    with bench.database.writing() as writing:
        writing.connection.execute(statement)
        writing.commit()


@pytest.mark.postgresql
@pytest.mark.parametrize("keyed", [False, True])
def test_what_is_left_of_a_cut_journal_goes_on_and_is_verified(database, tmp_path, keyed):
    folder = tmp_path / "cut"
    folder.mkdir()
    with opened(database, **KEEP, export_before_cut=folder) as bench:
        bench.create(keyed=keyed)
        play(bench, 40, keyed=keyed)
        bench.change(state="stopped")
        bench.change(state="running", description="again")
        made = play(bench, 60, keyed=keyed, begin=40)
        before, digest, all_events = log(bench, tmp_path)[0], bench.digest(), events(bench)
        cut = []
        look(bench, cut)
        left, about = log(bench, tmp_path)
        first = next(event for event in events(bench)[1:] if event.kind is not Kind.CHANGED)
        assert f'"first_event": {first.seq}' in about
        assert first.kind is Kind.DECIDED
        assert [event for event in all_events if event.seq >= first.seq] == events(bench)[3:]
        assert [event.kind for event in events(bench)[:3]] == [Kind.CREATED, Kind.CHANGED, Kind.CHANGED]
        assert cut == [("e", 100 - len(left))]
        (file,) = folder.iterdir()
        assert pq.read_table(file).to_pylist() + left == before
        assert 40 < len(left) < 60  # two days, and up to the snapshot before
        assert bench.digest() == digest
    with opened(database, bench.hands) as other:  # from a snapshot, which is all there is
        assert other.digest() == digest
        for again in (
            functools.partial(decide, other, "k3", keyed=keyed),
            functools.partial(decide, other, "k50", keyed=keyed),
            functools.partial(other.tell, made[0], 40 % 7 / 7),
            functools.partial(other.cancel, made[0]),
        ):
            assert refused("cut", again).status == 410
        assert decide(other, "k99", keyed=keyed).duplicate
        assert other.tell(made[-1], 99 % 7 / 7).duplicate
        assert other.digest() == digest
        other.clone("e", "copy")
        assert not decide(other, "new", keyed=keyed).duplicate
        other.delete("copy")


@pytest.mark.parametrize("keyed", [False, True])
def test_the_oldest_pending_decision_and_its_graph_stay(database, keyed):
    with opened(database, **KEEP) as bench:
        bench.create(keyed=keyed)
        play(bench, 20, keyed=keyed)
        waiting = decide(bench, "waiting", keyed=keyed)
        play(bench, 100, keyed=keyed, begin=20)
        look(bench)
        (first,) = [event for event in events(bench) if event.key == "waiting"]
        assert events(bench)[1] == first
        assert decide(bench, "waiting", keyed=keyed)._replace(duplicate=False) == waiting
        bench.tell(waiting)
        play(bench, 12, keyed=keyed, begin=120)
        look(bench)
        assert events(bench)[1].round > waiting.number
        digest = bench.digest()
    with opened(database, bench.hands) as other:
        assert other.digest() == digest


def test_a_journal_is_cut_to_a_size_and_erased_in_portions(database, hooks, monkeypatch):
    monkeypatch.setattr(retention, "FORGOTTEN", 2**16)
    with opened(database, keep_megabytes=1) as bench:
        bench.create()
        for number in range(320):
            made = bench.decide(context='"%s"' % ("x" * 4000))
            bench.tell(made)
            if number % 20 == 19:
                bench.store.save(least=1)
        portions, cut = [], []
        hooks["erase_cut"] = altered(lambda rows: portions.append(rows) or rows)
        look(bench, cut)
        with bench.database.reading() as reading:
            assert 0.85e6 < reading.journal_bytes(1) <= 1e6
            sizes = [len(event.context or "") + len(event.data or b"") + 300 for event in events(bench)]
            assert reading.journal_bytes(1) == sum(sizes)
        assert len(portions) > 4
        look(bench, cut)  # which finds nothing to do
        assert len(cut) == 1


def test_keys_of_cut_requests_are_forgotten_after_their_time(database):
    with opened(database, **KEEP) as bench:
        bench.create()
        play(bench, 60)
        look(bench)
        assert refused("cut", lambda: decide(bench, "k2")).status == 410
        bench.hands.move(2 * DAY)
        play(bench, 80, begin=60)
        look(bench)
        assert refused("cut", lambda: decide(bench, "k70")).status == 410
        with opened(database, bench.hands) as other:  # which does not remember it
            assert not decide(other, "k2").duplicate  # five days later, it may be used again


@pytest.mark.parametrize("damage", ["snapshot", "block", "single"])
def test_nothing_is_cut_without_a_good_snapshot(database, caplog, damage):
    with opened(database, **KEEP) as bench:
        bench.create()
        play(bench, 5 if damage == "single" else 60)
        if damage == "single":
            bench.store.save(least=1)
            bench.hands.move(10 * DAY)
        elif damage == "snapshot":
            alter_snapshots(bench.database, "e", lambda data: flipped(data, len(data) // 2))
        else:
            execute(bench, sa.delete(schema.blobs).where(schema.blobs.c.kind == int(BlobKind.BLOCK)))
        before = events(bench)
        found = look(bench)
        found.look()
        assert events(bench) == before
        assert caplog.messages == ([] if damage == "single" else ["nothing cut"])  # said once


def test_damage_behind_a_cut_is_found_and_refused(database, tmp_path):
    with opened(database, **KEEP) as bench:
        bench.create()
        bench.change(description="other")
        play(bench, 60)
        look(bench)
        digest, [creation, change, first, *_] = bench.digest(), events(bench)
        for event in (creation, change, first):
            its_own = sa.update(schema.events).where(schema.events.c.seq == event.seq)
            execute(bench, its_own.values(at=event.at + 1))
            assert refused("refused", lambda: log(bench, tmp_path)).status == 503
            execute(bench, its_own.values(at=event.at))
        assert log(bench, tmp_path)[0]
        alter_snapshots(bench.database, "e", lambda _: b"")
        with opened(database, bench.hands) as other:
            error = refused("refused", lambda: decide(other, "next"))
            assert "was cut behind event" in str(error)
            assert log(other, tmp_path)[0]  # what is left
        assert bench.digest() == digest  # a server that has it in memory goes on, and writes snapshots anew
        play(bench, 12, begin=60)
        with opened(database, bench.hands) as other:
            assert other.digest() == bench.digest()


def commit(left, method):
    """Commit so many transactions, and none after them."""
    left[0] -= 1
    if left[0] < 0:
        raise ServiceError("killed", status=503, code="unavailable")
    method()


@pytest.mark.postgresql
def test_a_cut_that_is_broken_off_anywhere_is_completed_by_another_server(database, hooks, monkeypatch, tmp_path):
    monkeypatch.setattr(retention, "FORGOTTEN", 2**12)
    folder = tmp_path / "cut"
    folder.mkdir()
    with opened(database, **KEEP, export_before_cut=folder) as bench:
        bench.create()
        play(bench, 90)
        before, digest = log(bench, tmp_path)[0], bench.digest()
        for several in itertools.count():  # so many transactions are committed before the server ends
            left = [several]
            hooks["commit"] = functools.partial(commit, left)
            look(bench)
            hooks.clear()
            rows = [row for file in folder.iterdir() for row in pq.read_table(file).to_pylist()]
            with opened(database, bench.hands) as other:
                assert other.digest() == digest
                if several:  # else the file is there, and nothing was cut
                    assert rows + log(other, tmp_path)[0] == before
                    assert refused("cut", lambda: decide(other, "k0")).status == 410
                else:
                    assert log(other, tmp_path)[0] == before
            if left[0] >= 0:
                break
        assert several > 3
        assert len(list(folder.iterdir())) == 1


def test_a_server_that_was_behind_the_cut_goes_on_from_a_newer_snapshot(database):
    with (
        opened(database, **KEEP) as bench,
        opened(database, bench.hands) as other,
        opened(database, bench.hands) as third,
    ):
        bench.create()
        bench.change(description="other")
        made = play(bench, 2)
        assert other.digest() == bench.digest()
        third.store.named("e").step(third.database)
        bench.change(description="another")  # which stays
        play(bench, 90, begin=2)
        look(bench)
        digest = bench.digest()
        assert refused("cut", lambda: other.tell(made[0])).status == 410  # the first that it hears of the others
        assert other.digest() == third.digest() == digest
        assert decide(third, "next").number == 93


@pytest.mark.postgresql
def test_of_two_servers_one_cuts(database, tmp_path):
    folder = tmp_path / "cut"
    folder.mkdir()
    with opened(database, **KEEP, export_before_cut=folder) as bench, opened(database, bench.hands, **KEEP) as other:
        bench.create()
        play(bench, 90)

        def overtaken(*given):
            look(other)
            export.write(*given)

        Retention(bench.store, overtaken, lambda *_: None).look()
        assert list(folder.iterdir()) == []  # what the other one has cut without a file
        with bench.database.writing() as writing:
            if bench.database.name == "postgresql":
                writing.lock(1)
                bench.hands.move(10 * DAY)
                before = events(bench)
                look(other)
                assert events(bench) == before
        assert refused("cut", lambda: decide(bench, "k3")).status == 410  # though this server remembers it


def test_settings_are_checked(tmp_path):
    for given, said in (
        ({"keep_days": 0}, "greater than 0"),
        ({"keep_megabytes": 0}, "greater than or equal to 1"),
        ({"export_before_cut": tmp_path}, "SIDELONG_KEEP_DAYS"),
        ({"keep_days": 1, "export_before_cut": tmp_path / "none"}, "Make it first"),
    ):
        with pytest.raises(ValueError, match=said):
            Settings(**given)
    assert Settings(keep_days=1, export_before_cut=tmp_path).export_before_cut == tmp_path
