"""Damaged snapshots, altered journals, full disks, databases that are old, new or something else."""

import contextlib
import resource
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from alembic import command
from alembic.config import Config
from sqlalchemy import event, text

import sidelong as sl
from service.stores import lose_snapshots, opened
from service.test_store import refused
from sidelong import evaluation
from sidelong.agent import state_file
from sidelong.errors import ServiceError
from sidelong.service.http import export, views
from sidelong.service.store.journal import Kind
from sidelong.service.store.kinds import open_database
from sidelong.service.store.snapshots import SNAPSHOT_VERSION, pack
from sidelong.service.store.sql import migrate as migrations
from sidelong.service.store.sql.database import SqlDatabase

FILES = Path(__file__).parent / "files"


def run(database, statement, **values):
    with database.writing() as writing:
        writing.connection.execute(text(statement), values)
        writing.commit()


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


def test_a_damaged_snapshot_is_rebuilt_from_the_journal(played, caplog):
    address, digest = played
    with opened(address) as bench:
        with bench.database.reading() as reading:
            data = reading.connection.execute(text("SELECT data FROM snapshots")).scalar_one()
        for broken in (b"", data[:-1], data[:200] + bytes([data[200] ^ 1]) + data[201:], b"\0" * len(data)):
            run(bench.database, "UPDATE snapshots SET data = :data", data=broken)
            with opened(address) as other:
                assert other.digest() == digest
                other.tell(other.decide())
                digest = other.digest()
    assert caplog.messages.count("snapshot not used") == 4


def test_a_snapshot_of_another_layout_is_passed_over_and_written_anew(played, caplog):
    address, digest = played
    with opened(address) as bench:
        assert bench.digest() == digest
        bench.store.save(least=1)
        with bench.database.reading() as reading:
            data = reading.snapshot(1).data
        for change in ({"tallies.counts": np.zeros(6, np.int64)}, {"tallies.sums": np.zeros((4, 4))}, {}):
            header, arrays = state_file.unpack(data, "it")
            header["service"]["version"] = 4
            run(bench.database, "UPDATE snapshots SET data = :data", data=state_file.pack(header, {**arrays, **change}))
            with opened(address) as other:
                assert other.digest() == digest
                assert caplog.messages.count("snapshot not used") == 2
                other.store.save(least=1)
            caplog.clear()
            with opened(address) as other:
                assert other.digest() == digest
            assert not caplog.messages


def test_the_layout_of_a_snapshot_does_not_change_without_its_version(played):
    address, _ = played
    with opened(address) as bench:
        header, arrays = state_file.unpack(bench.store.view("e", lambda each, _: pack(each)), "it")
    service = {name: type(value).__name__ for name, value in header["service"].items()}
    ours = {
        name: array for name, array in arrays.items() if name.startswith(("outstanding", "tallies.", "given.", "lift."))
    }
    layout = {name: (array.dtype.str, array.shape) for name, array in ours.items()}
    # Whoever changes this raises SNAPSHOT_VERSION too.
    assert (SNAPSHOT_VERSION, service, layout) == (
        7,
        {
            "chain": "str",
            "experiment": "str",
            "given": "list",
            "graphs": "list",
            "head": "int",
            "life": "dict",
            "minutes": "list",
            "version": "int",
        },
        {
            "given.arm": ("<i8", (0,)),
            "given.graph": ("<i8", (0,)),
            "given.kind": ("<i8", (0,)),
            "given.p": ("<f8", (0,)),
            "given.probability": ("<f8", (0,)),
            "given.size": ("<i8", (0,)),
            "given.sparing": ("|b1", (0,)),
            "lift.costs": ("<f8", (1, 5)),
            "lift.tossed": ("<f8", (0, 2)),
            "outstanding": ("<i8", (0, 4)),
            "tallies.aside": ("<i8", (12,)),
            "tallies.counts": ("<i8", (18,)),
            "tallies.expected": ("<f8", (4,)),
            "tallies.lift": ("<f8", (6,)),
            "tallies.paid": ("<f8", (1,)),
            "tallies.plays": ("<i8", (4,)),
            "tallies.sums": ("<f8", (8, 4)),
        },
    )


@pytest.mark.parametrize(
    "altered",
    [
        "UPDATE events SET losses = observe WHERE seq = 5",  # before the snapshot: its chain is not the journal's
        "UPDATE events SET arm = (arm + 1) % 4 WHERE seq = 34",  # after it
        "UPDATE events SET probability = probability + 1e-16 * (1 - 2 * (probability > 0.5)) WHERE seq = 34",
    ],
)
def test_a_snapshot_and_a_journal_that_differ_are_refused_by_name(played, altered):
    address, _ = played
    with opened(address) as bench:
        if "seq = 5" in altered:  # whoever alters an event without its hash is found when it is replayed
            run(bench.database, "DELETE FROM snapshots")
        run(bench.database, altered.replace("(probability > 0.5)", "CASE WHEN probability > 0.5 THEN 1 ELSE 0 END"))
        for _ in range(2):
            error = refused("refused", bench.decide)
            assert error.status == 503
            assert "'e'" in str(error)
        assert error.retry_after is None


def test_a_snapshot_of_another_journal_is_refused(played):
    address, _ = played
    with opened(address) as bench:
        run(bench.database, "UPDATE events SET chain = :chain WHERE seq = 27", chain=b"x" * 16)
        error = refused("refused", bench.decide)
        assert "snapshot" in str(error)


def test_a_journal_that_has_lost_its_end_is_refused_and_no_decision_made_again(played):
    address, _ = played
    with opened(address) as bench:
        run(bench.database, "DELETE FROM events WHERE seq > 38")
        for _ in range(2):
            error = refused("refused", bench.decide)
            assert (error.status, error.retry_after) == (503, None)
            assert "ends with event 38, and 41 were written" in str(error)


def test_a_damaged_graph_refuses_its_experiment_and_no_other(played):
    address, _ = played
    with opened(address) as bench:
        bench.create("fine", graph=sl.graphs.complete(3))
        run(bench.database, "DELETE FROM snapshots")
        run(
            bench.database,
            "UPDATE graphs SET data = :data WHERE id = :id",
            data=b"SIDELONG" + b"\0" * 60,
            id=bench.store.identity("e").spec["graph"],
        )
    with opened(address) as bench:
        assert refused("refused", bench.decide).status == 503
        bench.tell(bench.decide("fine"))
        assert [each.name for each in views.summaries(bench.store, 0, 9).items] == ["fine"]


def test_other_experiments_go_on_beside_one_that_is_refused(played):
    address, _ = played
    with opened(address) as bench:
        bench.create("fine")
        run(bench.database, "UPDATE events SET arm = (arm + 1) % 4 WHERE seq = 34 AND experiment = 1")
        refused("refused", bench.decide)
        bench.tell(bench.decide("fine"))
        assert [each.name for each in views.summaries(bench.store, 0, 9).items] == ["fine"]


def test_a_full_disk_refuses_writes_lets_reads_pass_and_recovers(tmp_path):
    with opened(f"sqlite:///{tmp_path}/full.db") as bench:
        bench.create()
        pages = []

        @event.listens_for(bench.database._writer, "begin")
        def limit(connection):
            for most in pages:  # SQLite's own limit acts as a full disk does
                connection.connection.driver_connection.execute(f"PRAGMA max_page_count={most}")

        pages[:] = [1]  # as many as there are now
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
        pages[:] = [1_000_000]
        assert bench.decide().event.round == len(made) + 1
        bench.tell(made[0])
        with opened(f"sqlite:///{tmp_path}/full.db") as other:
            assert other.digest() == bench.digest() != digest


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
    status, ready = server.get("/ready")
    assert (status, ready["status"]) == (200, "degraded")
    time.sleep(1.0)  # some sweeps, none of which can write
    assert server.get("/v1/experiments/e")[1]["counts"]["decided"] == 1
    assert server.get("/v1/experiments/e/log")[1]["code"] == "disk_full"  # which needs a temporary file
    assert server.post("/v1/graphs?format=edges", b"0 0\n")[1]["code"] == "disk_full"
    assert server.post("/v1/experiments/e/evaluation", {})[1]["code"] == "disk_full"
    resource.prlimit(server.pid, resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    losses = {"losses": [0.5] * len(made["reveals"])}
    assert server.post(f"/v1/decisions/{made['id']}/feedback", losses)[1]["learned"]
    assert server.post("/v1/experiments/e/decisions")[1]["round"] == 2
    assert server.get("/ready")[1]["status"] == "ok"
    end = time.monotonic() + 120
    while server.get("/v1/experiments/short")[1]["counts"]["expired"] < 1:
        assert time.monotonic() < end, "decisions do not expire any more"
        time.sleep(0.05)
    server.stop()


def test_a_writer_that_holds_the_lock_too_long_is_answered_with_busy(database):
    with opened(database, busy_timeout=0.1) as bench:
        bench.create()
        slow = open_database(database)
        with slow.writing() as other:
            other.lock(bench.store.identity("e").id)
            begun = time.monotonic()
            error = refused("busy", bench.decide)
            assert time.monotonic() - begun < 10
            assert (error.status, error.retry_after) == (503, 1.0)
        slow.close()
        bench.decide()


def test_too_many_readers_at_once_are_answered_with_busy(database):
    with opened(database) as bench, contextlib.ExitStack() as readers:
        bench.create()
        bench.database._reader.pool._timeout = 0.05
        for _ in range(12):
            readers.enter_context(bench.database.reading())
        error = refused("busy", bench.digest)
        assert (error.status, error.retry_after) == (503, 1.0)
        bench.decide()  # has connections of its own


def old(folder, file):
    """Return the path of a database that an older version wrote."""
    path = folder / "old.db"
    with sqlite3.connect(path) as connection:
        connection.executescript((FILES / file).read_text())
    connection.close()
    return path


def test_a_file_of_an_older_version_opens_and_goes_on(tmp_path):
    path = old(tmp_path, "schema-0001.sql")
    with opened(str(path)) as bench:
        assert bench.counts("old")[1:6] == [6, 4, 1, 0, 0]
        digest = bench.digest("old")
        assert bench.decide("old", key="k5").event.round == 6
        run(bench.database, "DELETE FROM snapshots")
        with opened(str(path)) as other:
            assert other.digest("old") == digest
            other.decide("old")


def test_graphs_of_an_older_version_count_as_kept_when_it_is_opened_first(tmp_path):
    path = old(tmp_path, "schema-0005.sql")
    with opened(str(path)) as bench:
        assert bench.store.collect() == 0
        bench.hands.move(2 * 86_400)
        assert bench.store.collect() == 1  # of four: one is the experiment's, two are of its rounds
        assert bench.store.collect() == 0
        assert bench.counts("old")[1:3] == [3, 2]
        digest = bench.digest("old")
        run(bench.database, "DELETE FROM snapshots")
    with opened(str(path)) as bench:
        assert bench.digest("old") == digest


def test_the_journals_of_every_kind_of_learner_are_replayed_to_the_bit_years_later(tmp_path, caplog):
    path = old(tmp_path, "schema-0002.sql")
    with opened(str(path)) as bench:
        _, names = bench.store.names(0, 9)
        assert len(names) == 7
        names = [name for name in names if name != "practical"]  # see below
        found = {name: bench.digest(name) for name in names}
        assert caplog.messages == ["snapshot not used"] * 2  # of an earlier version
        caplog.clear()
        run(bench.database, "DELETE FROM snapshots")
    with opened(str(path)) as bench:
        for name in names:  # from the journal: an event that comes out otherwise is refused
            assert bench.digest(name) == found[name]
            assert bench.counts(name)[1:6] == [15, 11, 1, 2, 1]
            assert bench.decide(name, key="k3", context='{"i":3}').duplicate
            bench.tell(bench.decide(name), 1.0)
    assert not caplog.messages


def test_an_experiment_with_the_preset_that_went_is_refused_and_its_log_exported(tmp_path):
    path = old(tmp_path, "schema-0002.sql")
    with opened(str(path)) as bench:
        for _ in range(2):
            with pytest.raises(ServiceError, match=r"preset is 'practical'.* the learner 'glance'") as refusal:
                bench.decide("practical")
            assert (refusal.value.status, refusal.value.code) == (503, "refused")
        for name in set(bench.store.names(0, 9)[1]) - {"practical"}:
            bench.store.load(name)
        listed = views.summaries(bench.store, 0, 9)
        assert [(each.name, "'glance'" in each.why) for each in listed.refused] == [("practical", True)]
        assert len(listed.items) == listed.total - 1 == 6
        export.write(bench.store, "practical", tmp_path / "log.parquet")
        bench.decide("ucb-n")  # the others go on
    assert evaluation.read_log(tmp_path / "log.parquet").n_rounds > 0


def test_a_snapshot_of_before_experiments_had_a_life_gives_way_to_the_journal(tmp_path, caplog):
    """It lacks what rounds cost in each minute, which the journal gives."""
    path = old(tmp_path, "schema-0006.sql")
    with opened(str(path)) as bench:
        before = bench.store.view("old", lambda each, _: (each.head, each.waiting, views.state(each).state))
        assert before == (24, 1, "running")
        [line] = [each for each in caplog.records if each.message == "snapshot not used"]
        assert "has version 6, and this program reads" in line.why
        costs = bench.store.view("old", lambda each, _: each.tallies.costs)
        assert {minute: (rows[2], rows[3]) for minute, rows in costs.items()} == {28333333: (9.0, 2.25)}
        assert bench.decide("old", key="k", graph=sl.graphs.nested(5)).duplicate
        assert bench.change("old", by="ops", state="stopped")
        digest = bench.digest("old")
        lose_snapshots(bench.database)
    with opened(str(path)) as bench:
        assert bench.digest("old") == digest


#: What `service.old_database` has written.
WITH_LIFE = sorted(path.name for path in FILES.glob("schema-*.sql") if path.name >= "schema-0008.sql")


@pytest.mark.parametrize("file", WITH_LIFE)
def test_an_experiment_with_a_life_is_replayed_to_the_bit_years_later(tmp_path, caplog, file):
    path = old(tmp_path, file)
    with opened(str(path)) as bench:
        listed = views.summaries(bench.store, 0, 9)
        assert [each.name for each in listed.archived] == ["silent"]
        assert [(each.name, each.by) for each in listed.deleted] == [("wrong", "robot")]
        names = ["life", "shop", "silent", "twin"]
        found = {name: bench.digest(name) for name in names}
        assert not caplog.messages  # the snapshots are used
        lose_snapshots(bench.database)
    with opened(str(path)) as bench:
        assert {name: bench.digest(name) for name in names} == found
        life, twin, silent = (
            bench.store.view(name, lambda each, _: views.state(each)) for name in ("life", "twin", "silent")
        )
        assert (life.counts.frozen, life.counts.fallback, life.counts.expired) == (3, 2, 4)
        assert life.counts.held > 0
        assert life.labels == ["a", "b", "c", "d", "e"]
        assert (twin.origin.name, twin.counts.told) == ("life", 1)
        assert (silent.state, silent.counts.defaulted) == ("archived", 1)
        story = views.changes(bench.store, "life").items
        assert [(each.by, each.change.get("state")) for each in story] == [
            (None, "created"),
            ("robot", "frozen"),
            ("robot", "stopped"),
            ("robot", "running"),
        ]
        bench.change("silent", state="running")
        for name in ("life", "twin", "silent"):
            bench.decide(name)
        with bench.database.reading() as reading:
            (parted,) = reading.connection.execute(text("SELECT id FROM graphs WHERE parts > 0")).scalars()
            assert bench.store.shelf.find(reading, parted) == sl.graphs.erdos_renyi(60, 0.3, seed=1)


def test_a_newer_database_and_one_of_something_else_are_refused(database):
    with opened(database) as bench:
        run(bench.database, "UPDATE alembic_version SET version_num = '9999'")
        with pytest.raises(ServiceError, match="Install the version of sidelong that wrote it"):
            bench.database.migrate()
        run(bench.database, "DROP TABLE alembic_version")
        with pytest.raises(ServiceError, match="tables of something else"):
            bench.database.migrate()


def test_a_database_of_another_program_that_uses_alembic_is_refused(tmp_path):
    with sqlite3.connect(tmp_path / "other.db") as connection:
        connection.execute("CREATE TABLE alembic_version (version_num TEXT)")
        connection.execute("INSERT INTO alembic_version VALUES ('v3.2.0.a')")
        connection.execute("CREATE TABLE studies (id INTEGER)")
    connection.close()
    with pytest.raises(ServiceError, match="tables of something else"):
        open_database(f"{tmp_path}/other.db")


def test_two_that_start_at_once_on_an_old_schema_migrate_it_once(database):
    old = SqlDatabase(database)
    with old.migrating() as connection:
        config = Config(attributes={"connection": connection})
        config.set_main_option("script_location", str(migrations._FOLDER))
        config.set_main_option("path_separator", "os")
        command.upgrade(config, "0001")
    old.close()
    program = (
        "import sys; from sidelong.service.store.sql.database import SqlDatabase\n"
        "print(SqlDatabase(sys.argv[1]).migrate())"
    )
    starts = [
        subprocess.Popen([sys.executable, "-c", program, database], stdout=subprocess.PIPE, text=True) for _ in range(3)
    ]
    said = [process.communicate()[0].strip() for process in starts]
    assert sorted(said) == ["False", "False", "True"]
    with opened(database) as bench:
        bench.create()
        bench.decide()
