"""Run the cells of a study, each once, whatever dies on the way.

One process, the *runner*, claims cells, has an engine play them and writes what comes back. Workers write nothing. So a
worker can die at any moment; a runner can, since a result file appears whole or not at all; and two runners can share
a folder, since a claim is a lock that dies with its holder.
"""

from __future__ import annotations

import concurrent.futures
import time
from typing import TYPE_CHECKING, Any

from sidelong.studies.folder import ResultFolder, StoppedError
from sidelong.studies.provenance import learner_version, source_hash
from sidelong.studies.queue import Queue
from sidelong.studies.summary import Summary
from sidelong.studies.work import TaskResult, WorkerDiedError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from concurrent.futures import Future
    from pathlib import Path

    from sidelong.studies.cell import Cell
    from sidelong.studies.spec import Study
    from sidelong.studies.work import Engine

_DEATHS = 20
_POLL = 0.1
_BRIEF = 0.05  # seconds
_WRITERS = 4  # threads: a disk takes ten milliseconds to say that a file is safe


def run(
    study: Study,
    folder: Path,
    engine: Callable[[ResultFolder, int], Engine],
    watch: Callable[[Summary], None] = lambda _: None,
) -> Summary:
    """Run the cells of a study that are not done.

    Args:
        study: what to run.
        folder: where the results are or will be.
        engine: makes the engine, from the folder and the number of cells to play.
        watch: is called some ten times a second with what was done so far.

    Raises:
        StudyError: the folder holds another study, or there is no engine. What becomes of single cells is in the
            summary.

    """
    try:
        with ResultFolder(folder, study) as results:
            runner = _Runner(study, results, watch)
            try:
                runner.survey()
                runner.run(engine)
            except KeyboardInterrupt as error:
                runner.summary.stopped = str(error) or "interrupted"
            except StoppedError as error:
                runner.summary.stopped = str(error)
            finally:
                runner.tell()
            return runner.summary
    except StoppedError as error:
        return Summary(len(study.cells), 0, stopped=str(error))


class _Runner:
    def __init__(self, study: Study, results: ResultFolder, watch: Callable[[Summary], None]) -> None:
        self.summary = Summary(len(study.cells), 0, set_aside=results.set_aside)
        self._study = study
        self._results = results
        self._watch = watch
        self._begun = time.monotonic()
        self._queue = Queue()
        self._elsewhere: list[Cell] = []  # claimed by another runner
        self._running: dict[Future[Any], Cell | str] = {}  # a cell, or a kind that is being compiled
        self._writing: dict[Future[None], tuple[Cell, float]] = {}
        self._writers = concurrent.futures.ThreadPoolExecutor(_WRITERS)
        self._rounds_finished = 0
        self._deaths = 0
        self._polled = 0.0
        self._are_brief = False

    def survey(self) -> None:
        """Find out what is done."""
        for cell in self._study.cells:
            if not self._results.claim(cell):
                self._elsewhere.append(cell)
                continue
            provenance = self._results.read(cell)
            self._results.release(cell)
            if provenance is None:
                self._queue.wait(cell)
                self.summary.rounds += cell.n_rounds
            else:
                self.summary.done_before += 1
                self.summary.other_source += provenance["source"] != source_hash()
                self.summary.other_learner += provenance["learner_version"] != learner_version(cell)

    def run(self, make_engine: Callable[[ResultFolder, int], Engine]) -> None:
        """Play what is not done."""
        count = sum(map(len, self._queue.waiting.values()))
        if not count and not self._elsewhere:
            return
        engine = make_engine(self._results, max(count, 1))
        try:
            for kind, cells in self._queue.waiting.items():
                self._running[engine.warm(cells[0])] = kind
            while self._queue or self._running or self._writing or self._elsewhere:
                self._step(engine)
        finally:
            engine.close()
            self._writers.shutdown()
            self._count_written(self._writing)

    def _step(self, engine: Engine) -> None:
        self._fill(engine)
        for future in self._wait() & self._running.keys():
            self._take(future, engine)
        self._count_written([future for future in self._writing if future.done()])
        self._look_elsewhere()
        # Of the rounds in unfinished cells only some engines know.
        self.summary.rounds_played = max(self._rounds_finished, engine.rounds())
        self.tell()

    def _fill(self, engine: Engine) -> None:
        # One more than are played, so that no worker waits for us, and more if they are brief; alone, after a death.
        slots = 1 if self._queue.one_by_one else engine.slots * (2 if self._are_brief else 1) + 1
        while len(self._running) < slots and (cell := self._queue.take()) is not None:
            if not self._results.claim(cell):
                self._elsewhere.append(cell)
            elif self._results.read(cell) is not None:
                self._results.release(cell)
                self._done_by_another(cell)
            else:
                self._running[engine.play(cell)] = cell

    def _wait(self) -> set[Future[Any]]:
        if not self._running and not self._writing:
            time.sleep(_POLL if self._elsewhere else 0.0)
        return concurrent.futures.wait([*self._running, *self._writing], _POLL, concurrent.futures.FIRST_COMPLETED).done

    def _take(self, future: Future[Any], engine: Engine) -> None:
        what = self._running.pop(future)
        try:
            played = _played(future, engine)
        except WorkerDiedError:
            self._after_death(what)
            return
        if isinstance(what, str):
            self._queue.is_compiled(what)
        elif played.content:
            self._are_brief = played.seconds < _BRIEF
            write = self._writers.submit(self._results.write, what, played.content)
            self._writing[write] = (what, played.seconds)
        else:
            self.summary.failed[what] = played.error
            self.summary.rounds_wasted += played.wasted
            self._results.release(what)

    def _count_written(self, finished: Iterable[Future[None]]) -> None:
        """Count cells whose results are safe on the disk."""
        for future in [*finished]:
            cell, seconds = self._writing.pop(future)
            future.result()
            self._results.release(cell)
            self.summary.played += 1
            self._rounds_finished += cell.n_rounds
            if self.summary.slowest is None or seconds > self.summary.slowest[0]:
                self.summary.slowest = (seconds, cell)

    def _after_death(self, what: Cell | str) -> None:
        """Go on after the process that played a cell, or compiled for a kind of cells, has died."""
        self._deaths += 1
        if isinstance(what, str):
            self._queue.is_compiled(what)
        else:
            self._results.release(what)
            if self._queue.was_killed(what, alone=not self._running):
                self.summary.failed[what] = "The process that played it died: killed, or out of memory."
        if self._deaths > _DEATHS:
            raise StoppedError("workers die again and again. Is there enough memory? Try fewer with --workers.")

    def _look_elsewhere(self) -> None:
        """See what became of cells that another runner claimed; it may have died."""
        now = time.monotonic()
        if not self._elsewhere or now < self._polled + 0.5:
            return
        self._polled = now
        claimed, self._elsewhere = self._elsewhere, []
        for cell in claimed:
            if not self._results.claim(cell):
                self._elsewhere.append(cell)
                continue
            done = self._results.read(cell) is not None
            self._results.release(cell)
            if done:
                self._done_by_another(cell)
            else:
                self._queue.put(cell)

    def _done_by_another(self, cell: Cell) -> None:
        self.summary.done_by_others += 1
        self.summary.rounds -= min(cell.n_rounds, self.summary.rounds)

    def tell(self) -> None:
        """Show what was done so far."""
        self.summary.seconds = time.monotonic() - self._begun
        self._watch(self.summary)


def _played(future: Future[Any], engine: Engine) -> TaskResult:
    """Return what became of a cell, also where an engine gave it up."""
    try:
        return future.result() or TaskResult(b"", "", 0.0)
    except WorkerDiedError:
        raise
    except Exception as error:  # noqa: BLE001  # such as Dask's KilledWorker
        engine.check()
        return TaskResult(b"", f"{type(error).__name__}: {error}", 0.0)
