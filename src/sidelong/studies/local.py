"""Processes of this machine. Threads over the runs of a cell, where there are more cores than cells."""

from __future__ import annotations

import concurrent.futures
import contextlib
import multiprocessing
import os
import signal
import threading
import time
from multiprocessing import resource_tracker
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sidelong.studies import work
from sidelong.studies.files import Files
from sidelong.studies.provenance import source_hash

if TYPE_CHECKING:
    from collections.abc import Callable
    from concurrent.futures import Future
    from multiprocessing.connection import Connection

    from sidelong.studies.cell import Cell

_PAUSE = 0.05  # seconds between two reports of one worker


class Local(work.Engine):
    """An engine of processes, each led by a thread over a pipe of its own.

    A process may be killed at any moment. Processes share no queue and no lock, so that a dead one keeps nothing from
    the others, and it is clear which cell it played. They are started anew, not forked, and leave when the process
    that started them dies.
    """

    def __init__(self, workers: int, n_cells: int, files: Path) -> None:
        self._files = str(files)
        self.slots = max(1, min(workers, n_cells))
        self._threads = max(1, workers // self.slots)
        self._spawn = multiprocessing.get_context("spawn")
        # Workers hold the other end, and leave when this one is closed, by us or by our death.
        self._reader, self._alive = self._spawn.Pipe(duplex=False)
        # Worker processes inherit that they do not hear Ctrl-C: the first of all processes speaks for all. The thread
        # that starts Python's tracker of resources hears it again, so that is not to be a leader.
        resource_tracker.ensure_running()
        self._leaders = concurrent.futures.ThreadPoolExecutor(
            self.slots, initializer=lambda: signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        )
        self._own = threading.local()  # each leader's worker
        self._lock = threading.Lock()
        self._played = 0

    def warm(self, cell: Cell) -> Future[None]:
        """Compile what a cell needs."""
        return self._leaders.submit(self._lead, _warm, cell.spec)

    def play(self, cell: Cell) -> Future[work.TaskResult]:
        """Play a cell."""
        return self._leaders.submit(self._lead, _play, work.Task(cell.spec, self._threads, source_hash()))

    def rounds(self) -> int:
        """Return how many rounds were played."""
        return self._played

    def close(self) -> None:
        """Stop all workers at once."""
        self._alive.close()
        self._leaders.shutdown(wait=True, cancel_futures=True)
        self._reader.close()

    def _lead(self, function: Callable[..., Any], what: Any) -> Any:
        """Have this thread's worker do something; start one if there is none."""
        try:
            if not hasattr(self._own, "pipe"):
                self._start()
            self._own.pipe.send((function, what))
            while isinstance(answer := self._own.pipe.recv(), int):
                with self._lock:
                    self._played += answer
        except (EOFError, OSError) as error:
            self._own.__dict__.clear()
            raise work.WorkerDiedError from error
        return answer

    def _start(self) -> None:
        pipe, theirs = self._spawn.Pipe()
        process = self._spawn.Process(target=_work, args=(theirs, self._reader, self._files), daemon=True)
        with self._lock:
            process.start()
        theirs.close()  # so that ours ends with the process
        self._own.process, self._own.pipe = process, pipe


def _work(pipe: Connection, alive: Connection, files: str) -> None:
    """Do what comes through the pipe until nobody is left at the other end."""
    threading.Thread(target=_leave_with, args=(alive,), daemon=True).start()
    known = Files(folder=Path(files))
    with contextlib.suppress(EOFError, OSError):
        while True:
            function, what = pipe.recv()
            pipe.send(function(what, known, pipe))


def _leave_with(alive: Connection) -> None:
    with contextlib.suppress(EOFError, OSError):
        alive.recv()
    os._exit(1)


def _warm(spec: dict[str, Any], files: Files, _: Connection) -> None:
    work.warm(spec, files)


def _play(task: work.Task, files: Files, pipe: Connection) -> work.TaskResult:
    before, at = 0, time.monotonic()

    def progress(done: int, total: int) -> None:
        nonlocal before, at
        if done == total or time.monotonic() > at + _PAUSE:
            pipe.send(done - before)
            before, at = done, time.monotonic()

    played = work.play(task, files, progress)
    return played if played.content else played._replace(wasted=before)
