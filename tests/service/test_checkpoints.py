"""The write-ahead log of SQLite is moved into the database file while others write, and does not grow without limit."""

import time

import pytest

import sidelong as sl
from service.stores import opened
from sidelong.service.store import creation
from sidelong.service.store.graphs import blob_of

MEGABYTE = 2**20


def waited(done):
    """Wait until something is so."""
    end = time.monotonic() + 60
    while not done():
        assert time.monotonic() < end
        time.sleep(0.001)


@pytest.fixture(scope="module")
def graphs():
    """Return graphs that take about a megabyte each in a database."""
    return [sl.graphs.erdos_renyi(500, 0.9, seed=seed) for seed in range(24)]


def test_the_log_is_moved_while_others_write_and_does_not_grow(tmp_path, graphs):
    path, log = tmp_path / "ahead.db", tmp_path / "ahead.db-wal"
    with opened(f"sqlite:///{path}") as bench:
        bench.create()
        for number, graph in enumerate(graphs):  # more than 20 megabytes in all
            creation.keep_graph(bench.store, graph)
            bench.tell(bench.decide())
            waited(lambda least=number - 8: path.stat().st_size > least * MEGABYTE)
        assert log.stat().st_size < 16 * MEGABYTE
        digest = bench.digest()
    assert not log.exists()  # nobody has it open any more
    assert path.stat().st_size > 20 * MEGABYTE
    with opened(f"sqlite:///{path}") as bench:
        assert bench.digest() == digest


def test_who_reads_keeps_the_log_and_nobody_waits_for_it(tmp_path, graphs):
    path = tmp_path / "read.db"
    with opened(f"sqlite:///{path}") as bench:
        bench.create()
        with bench.database.reading() as reading:
            assert len(reading.experiments()) == 1  # it sees this state until its end
            for graph in graphs[:12]:
                known, _ = creation.keep_graph(bench.store, graph)
                bench.decide()
            assert reading.blob(blob_of(known.id)) is None
            assert path.stat().st_size < 8 * MEGABYTE
        for graph in graphs[12:]:
            creation.keep_graph(bench.store, graph)
        waited(lambda: path.stat().st_size > 12 * MEGABYTE)
