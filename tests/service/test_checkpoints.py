"""What SQLite writes ahead is moved into its file aside of the commits, and the log begins anew."""

import threading
import time

from service.stores import opened
from sidelong.service.store.sql import checkpoints


def waited(done):
    """Wait until something is so."""
    end = time.monotonic() + 60
    while not done():
        assert time.monotonic() < end
        time.sleep(0.001)


def test_what_is_written_ahead_is_moved_aside_and_the_log_does_not_grow(tmp_path):
    path = tmp_path / "ahead.db"
    with opened(f"sqlite:///{path}") as bench:
        bench.create()
        moving = bench.database._checkpoints
        assert moving._thread is None
        for number in range(40):  # ten megabytes, where the log may have four
            with bench.database.writing(aside=True) as writing:
                writing.keep_graph_part("a" * 32, number, bytes(2**18), 0)
                writing.commit()
            bench.tell(bench.decide())
            waited(lambda: moving.pages < checkpoints.MOST)
        log = (tmp_path / "ahead.db-wal").stat().st_size
        assert log < 3 * checkpoints.MOST * 4096
        assert path.stat().st_size > 2**23
        digest = bench.digest()
    with opened(f"sqlite:///{path}") as bench:
        assert bench.digest() == digest


def test_who_reads_keeps_the_log_and_nobody_waits_for_it(tmp_path):
    with opened(f"sqlite:///{tmp_path}/read.db") as bench:
        bench.create()
        moving = bench.database._checkpoints
        with bench.database.reading() as reading:
            assert len(reading.experiments()) == 1  # it sees this state until its end
            for number in range(20):
                with bench.database.writing() as writing:
                    writing.keep_graph_part("a" * 32, number, bytes(2**18), 0)
                    writing.commit()
                bench.decide()
            assert reading.graph("a" * 32) is None
        moving._move()
        assert moving.pages == 0


def test_the_thread_goes_on_after_an_error_and_ends_with_the_database(tmp_path, monkeypatch):
    tried = threading.Event()
    with opened(f"sqlite:///{tmp_path}/error.db") as bench:
        bench.create()
        moving = bench.database._checkpoints
        moved = checkpoints.Checkpoints._moved

        def fail(self):
            monkeypatch.setattr(checkpoints.Checkpoints, "_moved", moved)
            tried.set()
            with self._engine.connect() as connection:
                connection.exec_driver_sql("nonsense")

        monkeypatch.setattr(checkpoints.Checkpoints, "_moved", fail)
        moving.pages = 2000
        moving.begin()
        assert tried.wait(60)
        moving.pages = 2000
        moving.begin()
        waited(lambda: moving.pages == 0)
        thread = moving._thread
    assert not thread.is_alive()
