"""The workers of a Dask cluster. Results come back over the network: workers need no folder of ours."""

from __future__ import annotations

import contextlib
import logging
import signal
import threading
from typing import TYPE_CHECKING, Any

from sidelong._install import pip_install
from sidelong.errors import StudyError
from sidelong.studies import work
from sidelong.studies.folder import StoppedError
from sidelong.studies.provenance import source_hash

if TYPE_CHECKING:
    from collections.abc import Iterator
    from concurrent.futures import Future

    from sidelong.studies.cell import Cell
    from sidelong.studies.files import Files

_GONE = "the Dask scheduler is gone."


class Dask(work.Engine):
    """An engine on a Dask scheduler, or on a cluster of this machine, for a try.

    Dask itself starts workers and gives the work of dead ones to others.
    """

    def __init__(self, address: str, workers: int, files: Files) -> None:
        try:
            import distributed  # noqa: PLC0415  # heavy, and an extra
        except ImportError as error:
            raise StudyError(f"--on needs Dask. {pip_install('distributed')}") from error
        for part in ("client", "batched"):  # a message that was on its way would show a traceback
            logging.getLogger(f"distributed.{part}").setLevel(logging.CRITICAL)  # we say ourselves that it is gone
        self._cluster = None
        if address == "local-cluster":
            with _deaf_to_interrupts():
                self._cluster = distributed.LocalCluster(
                    n_workers=workers, threads_per_worker=1, dashboard_address=None, silence_logs=50
                )
        try:
            self._client = distributed.Client(self._cluster or address, timeout="10s", set_as_default=False)
        except (OSError, ValueError, TypeError) as error:
            raise StudyError(f"--on {address}: there is no Dask scheduler there: {error}") from error
        self._executor = self._client.get_executor(pure=False)
        names = tuple(files.contents)
        # The result of a task, not scattered data: Dask makes it again when the worker that has it dies.
        self._files = self._client.submit(_same, (names, tuple(files.contents[name] for name in names)), pure=False)

    @property
    def slots(self) -> int:  # type: ignore[override]  # it changes while a study runs
        """How many threads the workers have now."""
        with self._scheduler():
            return max(1, sum(map(int, self._client.nthreads().values())))

    def check(self) -> None:
        """Raise `StoppedError` if the scheduler does not answer."""
        with self._scheduler():
            self._client.nthreads()

    @contextlib.contextmanager
    def _scheduler(self) -> Iterator[None]:
        """Speak with the scheduler, which may be gone before we notice."""
        if self._client.status != "running":
            raise StoppedError(_GONE)
        try:
            yield
        except (OSError, RuntimeError, TimeoutError) as error:  # what Dask raises when nobody answers
            raise StoppedError(_GONE) from error

    def warm(self, cell: Cell) -> Future[None]:
        """Compile what a cell needs, on one of the workers."""
        done: Future[None] = self._submit(_warm_far, cell.spec)
        return done

    def play(self, cell: Cell) -> Future[work.TaskResult]:
        """Play a cell."""
        played: Future[work.TaskResult] = self._submit(_play_far, work.Task(cell.spec, 1, source_hash()))
        return played

    def _submit(self, function: Any, what: Any) -> Any:
        with self._scheduler():
            return self._executor.submit(function, what, self._files)

    def close(self) -> None:
        """Cancel what is not done, and leave."""
        # What is left of a cluster that broke may refuse to be closed.
        with contextlib.suppress(OSError, RuntimeError, TimeoutError):
            self._executor.shutdown(wait=False)
        with contextlib.suppress(OSError, RuntimeError, TimeoutError):
            self._client.close(timeout=5)
        if self._cluster is not None:
            self._cluster.close(timeout=5)


@contextlib.contextmanager
def _deaf_to_interrupts() -> Iterator[None]:
    """Start processes that do not hear Ctrl-C: the first of all processes speaks for all."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _same(files: Any) -> Any:
    return files


def _warm_far(spec: dict[str, Any], files: Any) -> None:
    work.warm(spec, work.unpacked(*files))


def _play_far(task: work.Task, files: Any) -> work.TaskResult:
    return work.play(task, work.unpacked(*files))
