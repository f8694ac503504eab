"""Damaged snapshots, altered journals, full disks, databases that are old, new or something else."""

import contextlib
import functools
import resource
import sqlite3
import subprocess
import sys
import threading
import time
from dataclasses import replace

import psycopg
import pytest
from sqlalchemy import Engine, event, text

import sidelong as sl
from service.doubles import flipped
from service.stores import alter_snapshots, lose_snapshots, opened
from service.test_store import refused
from sidelong.errors import ServiceError
from sidelong.service.http import views
from sidelong.service.store.journal import Kind
from sidelong.service.store.kinds import open_database
from sidelong.service.store.rules import Decide
from sidelong.service.store.sql.database import SqlDatabase


@pytest.fixture
def played(database):
    """Return the address of a database with a snapshot in mid-journal, and the digest of its state."""
    with opened(database) as bench:
        bench.create()
        for number in range(20):
            bench.tell(bench.decide(), number / 20)
            if number == 12:
                bench.store.save(least=1)
        return database, bench.digest()


@pytest.mark.postgresql
def test_a_damaged_snapshot_is_rebuilt_from_the_journal_and_written_anew(played, caplog):
    address, digest = played
    with opened(address) as bench:
        for number, damage in enumerate(
            [
                lambda _: b"",
                lambda data: data[:-1],
                lambda data: flipped(data, 0),
                lambda data: flipped(data, len(data) // 2),
                lambda data: flipped(data, -1),
                lambda data: bytes(len(data)),
            ]
        ):
            alter_snapshots(bench.database, "e", damage)
            with opened(address) as other:
                assert other.digest() == digest
                assert caplog.messages == ["snapshot not used"] * (1 if number == 0 else 2)  # two are kept
                other.tell(other.decide())
                digest = other.digest()
                other.store.save(least=1)
            caplog.clear()
            with opened(address) as other:
                assert other.digest() == digest
            assert not caplog.messages


def in_event(seq, **changes):
    """Return a hook that changes columns of an event where the first experiment's journal is read."""

    def read(events, experiment, *given, **more):
        found = events(experiment, *given, **more)
        if experiment != 1:
            return found
        return [
            each._replace(**{name: change(getattr(each, name)) for name, change in changes.items()})
            if each.seq == seq
            else each
            for each in found
        ]

    return read


@pytest.mark.parametrize(
    ("seq", "changes"),
    [
        (5, {"data": lambda data: flipped(data, -1)}),  # before the snapshot
        (5, {"at": lambda at: at + 1}),
        (34, {"last": lambda last: last + 1}),  # behind it
        (34, {"data": lambda data: flipped(data, 12)}),  # in the arm
        (34, {"data": lambda data: flipped(data, -1)}),  # in the probability
        (35, {"data": lambda data: flipped(data, 0)}),  # in the name of a column
        (35, {"data": lambda data: flipped(data, 20)}),
        (35, {"data": lambda data: flipped(data, -1)}),  # in a probability of observing
    ],
)
def test_a_journal_of_which_one_bit_was_altered_is_refused_by_name(played, hooks, seq, changes):
    address, _ = played
    with opened(address) as bench:
        if seq < 27:  # an event that is not replayed is not noticed
            lose_snapshots(bench.database)
        hooks["events"] = in_event(seq, **changes)
        for _ in range(2):
            error = refused("refused", bench.decide)
            assert error.status == 503
            assert "'e'" in str(error)
        assert error.retry_after is None


def test_a_snapshot_of_another_journal_is_refused(played, hooks):
    address, _ = played
    with opened(address) as bench:
        hooks["events"] = in_event(27, chain=lambda _: b"x" * 16)
        error = refused("refused", bench.decide)
        assert "snapshot" in str(error)


def test_a_damaged_graph_refuses_its_experiment_and_no_other(played, hooks):
    address, _ = played
    with opened(address) as bench:
        bench.create("fine", graph=sl.graphs.complete(3))
        lose_snapshots(bench.database)
        damaged = bench.store.identity("e").spec.graph

    def read(blob, name):
        found = blob(name)
        return found._replace(data=flipped(found.data, 60)) if name.owner == damaged else found

    hooks["blob"] = read
    with opened(address) as bench:
        assert refused("refused", bench.decide).status == 503
        bench.tell(bench.decide("fine"))
        assert [each.name for each in views.summaries(bench.store, 0, 9).items] == ["fine"]


@pytest.mark.parametrize(
    "damage",
    [
        lambda text: text[:-1],  # no JSON
        lambda text: text.replace('"learner"', '"leaner"'),  # a name that nobody knows
        lambda text: text.replace('"seed":3', '"seed":-3'),
        lambda _: "[]",
    ],
)
def test_a_damaged_specification_refuses_its_experiment_and_no_other(played, hooks, damage):
    address, _ = played
    with opened(address) as bench:
        bench.create("fine")

    def read(find, of):
        found = find(of)
        return replace(found, document=damage(found.document)) if found is not None and found.name == "e" else found

    hooks["find"] = read
    with opened(address) as bench:
        error = refused("refused", bench.decide)
        assert (error.status, "specification of 'e'" in str(error)) == (503, True)
        assert refused("refused", bench.create).status == 503  # nobody knows whether it is the same
        bench.tell(bench.decide("fine"))
        shown = views.summaries(bench.store, 0, 9)
        assert ([each.name for each in shown.items], [each.name for each in shown.refused]) == (["fine"], ["e"])
        assert bench.store.states() == {"live": 1, "loading": 0, "refused": 1}


@pytest.fixture
def disk():
    """Return the pages of which SQLite takes no more than the last: its own limit acts as a full disk does."""
    pages = []

    def limit(connection):
        if pages:
            connection.exec_driver_sql(f"PRAGMA max_page_count={pages[-1]}")

    event.listen(Engine, "begin", limit)
    yield pages
    event.remove(Engine, "begin", limit)


def test_a_full_disk_refuses_writes_lets_reads_pass_and_recovers(tmp_path, disk):
    with opened(f"sqlite:///{tmp_path}/full.db") as bench:
        bench.create()
        disk.append(1)  # as many as there are now
        errors, made = [], []
        for _ in range(200):
            try:
                made.append(bench.decide())
            except ServiceError as error:
                errors.append(error)
                if len(errors) > 3:
                    break
        assert {(error.status, error.code) for error in errors} == {(507, "disk_full")}
        assert bench.counts()[Kind.DECIDED] == len(made)
        digest = bench.digest()
        disk.append(1_000_000)
        assert bench.decide().number == len(made) + 1
        bench.tell(made[0])
        with opened(f"sqlite:///{tmp_path}/full.db") as other:
            assert other.digest() == bench.digest() != digest


@pytest.mark.parametrize("keyed", [False, True])
def test_a_snapshot_holds_nothing_of_a_write_that_has_not_succeeded(database, hooks, keyed):
    """A decision is in memory before it is on the disk, and a snapshot may fall due between the two."""
    with opened(database) as bench:
        bench.create(**({"keyed": True} if keyed else {}))
        digest, wants_to_write = bench.digest(), threading.Event()
        saving = threading.Thread(target=bench.store.save, kwargs={"least": 0})

        def begin(writing, *, aside):
            if threading.current_thread() is saving:
                wants_to_write.set()
            return writing(aside=aside)

        def fail(_, __):
            saving.start()
            wants_to_write.wait(0.5)  # in vain: it waits for this decision
            raise ServiceError("The disk is full.", status=507, code="disk_full")

        hooks |= {"writing": begin, "append": fail}
        (outcome,) = bench.store.run([Decide("e", keys=["k"]) if keyed else Decide("e")])
        assert outcome.code == "disk_full"
        saving.join()
        hooks.clear()
        assert bench.digest() == digest
    with opened(database) as bench:
        assert bench.digest() == digest


@pytest.mark.parametrize("how", ["deleted", "replaced"])
def test_a_file_that_is_deleted_or_replaced_under_a_server_takes_no_more_writes(tmp_path, how):
    path, aside = tmp_path / "service.db", tmp_path / "aside.db"
    with opened(str(path)) as bench:
        bench.create()
        made = bench.decide()
        path.rename(aside)
        if how == "replaced":
            path.write_bytes(aside.read_bytes())
        for _ in range(3):
            with pytest.raises(ServiceError, match=f"was {how} while the service runs") as refusal:
                bench.tell(made)
            assert (refusal.value.status, refusal.value.code) == (503, "unavailable")
        assert bench.counts()[Kind.TOLD] == 0  # reads go on
        path.unlink(missing_ok=True)
        aside.rename(path)
        bench.tell(made)
        digest = bench.digest()
    with opened(str(path)) as bench:
        assert bench.digest() == digest


def test_a_server_that_cannot_write_goes_on_reading_and_recovers_by_itself(nursery, tmp_path):
    server = nursery.start(f"sqlite:///{tmp_path}/limited.db", sweep_every=0.1)
    server.post("/v1/experiments", {"name": "e", "graph": {"name": "cliques", "sizes": [3, 2]}})
    server.post(
        "/v1/experiments", {"name": "short", "graph": {"name": "cliques", "sizes": [3, 2]}, "expire_after": 0.5}
    )
    server.post("/v1/experiments/short/decisions")
    made = server.post("/v1/experiments/e/decisions")[1]
    nothing = (0, resource.RLIM_INFINITY)
    resource.prlimit(server.pid, resource.RLIMIT_FSIZE, nothing)  # every write to a file fails from now on, the log too
    for _ in range(3):
        status, problem, headers = server.send("POST", "/v1/experiments/e/decisions")
        assert status in {503, 507}, problem
        assert int(headers["Retry-After"]) >= 1
    assert server.get("/health")[0] == 200
    end = time.monotonic() + 120
    while (found := server.get("/ready"))[0] != 200:  # what could not be written is read anew
        assert time.monotonic() < end, found
    assert found[1]["status"] == "degraded"
    time.sleep(1.0)  # some sweeps, none of which can write
    assert server.get("/v1/experiments/e")[1]["counts"]["decided"] == 1
    assert server.get("/v1/experiments/e/log")[1]["code"] == "disk_full"  # which needs a temporary file
    assert server.post("/v1/graphs?format=edges", b"0 0\n")[1]["code"] == "disk_full"
    assert server.post("/v1/experiments/e/evaluation", {})[1]["code"] == "disk_full"
    resource.prlimit(server.pid, resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    losses = {"losses": [0.5] * len(made["reveals"])}
    assert server.post(f"/v1/decisions/{made['id']}/feedback", losses)[1]["learned"]
    assert server.post("/v1/experiments/e/decisions")[1]["round"] == 2
    end = time.monotonic() + 120
    while server.get("/ready")[1]["status"] != "ok":  # a sweep that began before may still fail
        assert time.monotonic() < end, server.get("/ready")
        time.sleep(0.05)
    while server.get("/v1/experiments/short")[1]["counts"]["expired"] < 1:
        assert time.monotonic() < end, "decisions do not expire any more"
        time.sleep(0.05)
    server.stop()


@pytest.mark.postgresql
def test_a_writer_that_holds_the_lock_too_long_is_answered_with_busy(database):
    with opened(database, busy_timeout=0.1) as bench:
        bench.create()
        slow = open_database(database)
        with slow.writing() as other:
            other.lock(bench.store.identity("e").id)
            error = refused("busy", bench.decide)
            assert (error.status, error.retry_after) == (503, 1.0)
        slow.close()
        bench.decide()


@pytest.mark.postgresql
def test_too_many_readers_at_once_are_answered_with_busy(database):
    open_database(database).close()
    crowded = SqlDatabase(database, pool_timeout=0.05)
    with contextlib.closing(crowded), contextlib.ExitStack() as readers:

        def read_more():
            for _ in range(100):
                readers.enter_context(crowded.reading())

        error = refused("busy", read_more)
        assert (error.status, error.retry_after) == (503, 1.0)
        with crowded.writing() as writing:  # has connections of its own
            writing.keep_clock(1)
            writing.commit()


def run(address, statement):
    """Change a database as other programs do."""
    if address.startswith("sqlite"):
        with contextlib.closing(sqlite3.connect(address.removeprefix("sqlite:///"))) as connection, connection:
            connection.execute(statement)
    else:
        with psycopg.connect(address) as connection:
            connection.execute(statement)


@pytest.mark.postgresql
def test_a_newer_database_and_one_of_something_else_are_refused(database):
    open_database(database).close()
    run(database, "UPDATE schema_version SET version = 9999")
    with pytest.raises(ServiceError, match="Install the version of sidelong that wrote it"):
        open_database(database)
    run(database, "DROP TABLE schema_version")
    with pytest.raises(ServiceError, match="tables of something else"):
        open_database(database)


@pytest.mark.postgresql
def test_an_older_database_is_migrated_once_and_refused_by_the_older_program(database, monkeypatch):
    with opened(database) as bench:
        bench.create()
        bench.tell(bench.decide())
        before = bench.digest()
    steps = [lambda connection: connection.execute(text("ALTER TABLE tokens ADD COLUMN colour TEXT"))]
    with monkeypatch.context() as newer:
        newer.setattr("sidelong.service.store.sql.migrate.STEPS", steps)
        for _ in range(2):
            with opened(database) as bench:
                assert bench.digest() == before
        run(database, "UPDATE tokens SET colour = 'red'")
    with pytest.raises(ServiceError, match="has version 2 of the schema, and this program knows up to 1"):
        open_database(database)


@pytest.mark.postgresql
def test_of_servers_that_start_at_once_on_an_empty_database_one_makes_the_tables(database):
    program = (
        "import sys; from sidelong.service.store.kinds import KINDS\n"
        "make = KINDS[sys.argv[1].partition(':')[0]]\n"
        "print('ready', flush=True); input()\n"
        "print(make(sys.argv[1], 60.0).migrate())"
    )
    start = functools.partial(subprocess.Popen, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    starts = [start([sys.executable, "-c", program, database]) for _ in range(2)]
    for process in starts:
        assert process.stdout.readline() == "ready\n"
    for process in starts:
        process.stdin.write("\n")
        process.stdin.flush()
    said = [process.communicate()[0].strip() for process in starts]
    assert sorted(said) == ["False", "True"]
    with opened(database) as bench:
        bench.create()
        bench.decide()
