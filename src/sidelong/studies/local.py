"""Processes of this machine. Threads over the runs of a cell, where there are more cores than cells."""

from __future__ import annotations

import concurrent.futures
import contextlib
import multiprocessing
import os
import signal
import threading
import time
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sidelong.studies import work
from sidelong.studies.files import Files
from sidelong.studies.provenance import source_hash

if TYPE_CHECKING:
    from collections.abc import Iterator
    from concurrent.futures import Future
    from multiprocessing.connection import Connection

    from sidelong.studies.cell import Cell

_PAUSE = 0.05  # seconds between two reports of one worker


class Local(work.Engine):
    """An engine of processes. They are started anew, not forked, and leave when the process that started them dies."""

    died = (BrokenProcessPool,)

    def __init__(self, workers: int, n_cells: int, files: Path) -> None:
        self._files = str(files)
        self.slots = max(1, min(workers, n_cells))
        self._threads = max(1, workers // self.slots)
        self._spawn = multiprocessing.get_context("spawn")
        self._played = 0
        self._start()

    def _start(self) -> None:
        # Workers hold the other end, and leave when this one is closed, by us or by our death.
        reader, self._alive = self._spawn.Pipe(duplex=False)
        self._reader = reader
        # A worker may be killed at any moment, so that nothing they share may have a lock: one message is one write,
        # which the system does as a whole or not at all.
        self._progress, self._told = self._spawn.Pipe(duplex=False)
        self._pool = concurrent.futures.ProcessPoolExecutor(
            self.slots, self._spawn, _begin, (reader, self._told, self._files)
        )

    def warm(self, cell: Cell) -> Future[None]:
        """Compile what a cell needs."""
        with _interrupts_held():
            return self._pool.submit(_warm, cell.spec)

    def play(self, cell: Cell) -> Future[work.TaskResult]:
        """Play a cell."""
        with _interrupts_held():
            return self._pool.submit(_play, work.Task(cell.spec, self._threads, source_hash()))

    def rounds(self) -> int:
        """Return how many rounds were played."""
        while self._progress.poll():
            self._played += int.from_bytes(self._progress.recv_bytes())
        return self._played

    def restart(self) -> None:
        """Start new workers."""
        self.close()
        self._start()

    def close(self) -> None:
        """Stop all workers at once."""
        self._alive.close()
        self._reader.close()
        self._pool.shutdown(wait=True, cancel_futures=True)
        self._progress.close()
        self._told.close()


@contextlib.contextmanager
def _interrupts_held() -> Iterator[None]:
    """Start processes, if the body does, that do not hear Ctrl-C: the first of all processes speaks for all.

    It reaches this process when the body is over.
    """
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _begin(alive: Connection, told: Connection, files: str) -> None:
    """Begin as a worker of this machine."""
    threading.Thread(target=_leave_with, args=(alive,), daemon=True).start()
    _worker.update(told=told, files=Files(folder=Path(files)))


def _leave_with(alive: Connection) -> None:
    with contextlib.suppress(EOFError, OSError):
        alive.recv()
    os._exit(1)


_worker: dict[str, Any] = {}


def _warm(spec: dict[str, Any]) -> None:
    work.warm(spec, _worker["files"])


def _play(task: work.Task) -> work.TaskResult:
    before, at = 0, time.monotonic()

    def progress(done: int, total: int) -> None:
        nonlocal before, at
        if done == total or time.monotonic() > at + _PAUSE:
            _worker["told"].send_bytes((done - before).to_bytes(8))
            before, at = done, time.monotonic()

    return work.play(task, _worker["files"], progress)
