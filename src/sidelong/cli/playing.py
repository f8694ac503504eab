"""How commands play a study: with a line that says how far it is, and an exit code that says what became of it."""

from __future__ import annotations

import contextlib
import datetime as dt
import signal
import sys
import time
from typing import TYPE_CHECKING, NoReturn, Self

import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from sidelong.studies.folder import ResultFolder
    from sidelong.studies.spec import Study
    from sidelong.studies.summary import Summary
    from sidelong.studies.work import Engine

FAILED, DAMAGED, STOPPED, INTERRUPTED, TERMINATED = 1, 3, 4, 130, 143
_EVERY = 60.0  # seconds between two lines of a log


def play(study: Study, folder: Path, workers: int | None = None, on: str | None = None) -> Summary:
    """Play the cells of a study that are not done, and show how far it is."""
    from sidelong.machine import cores  # noqa: PLC0415
    from sidelong.studies import execute, local  # noqa: PLC0415

    count = workers or cores()

    def engine(results: ResultFolder, n_cells: int) -> Engine:
        if on is None:
            return local.Local(count, n_cells, results.path / "files")
        from sidelong.studies.cluster import Dask  # noqa: PLC0415  # an extra

        return Dask(on, count, study.files)

    console = Console(stderr=True)
    with _interrupted_by_sigterm():
        if not console.is_terminal:
            return execute.run(study, folder, engine, LogLines())
        with _Display(console) as display:
            return execute.run(study, folder, engine, display)


@contextlib.contextmanager
def _interrupted_by_sigterm() -> Iterator[None]:
    """Stop on SIGTERM, which is how Slurm and Kubernetes say that time is up, as on Ctrl-C."""

    def stop(*_: object) -> NoReturn:
        raise KeyboardInterrupt("terminated")

    before = signal.signal(signal.SIGTERM, stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


class _Display:
    """A line that says how far a study is."""

    def __init__(self, console: Console) -> None:
        self._progress = Progress(
            BarColumn(24),
            TextColumn("{task.description}"),
            console=console,
            transient=True,
        )
        self._task = self._progress.add_task("starting", total=1)

    def __enter__(self) -> Self:
        self._progress.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._progress.stop()

    def __call__(self, summary: Summary) -> None:
        slowest = f"  slowest {summary.slowest[0]:.1f} s: {summary.slowest[1]}" if summary.slowest else ""
        self._progress.update(
            self._task,
            total=max(summary.rounds, 1),
            completed=summary.rounds_played,
            description="  ".join([f"{summary.done}/{summary.cells} cells", *_pace(summary)]) + slowest,
        )


class LogLines:
    """A line per minute that says how far a study is, for a log; a study that takes less than a minute says nothing.

    The first line says where the study went on, and each says what failed or was damaged since the one before.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._next = clock() + _EVERY
        self._told: set[object] = set()
        self._first = True

    def __call__(self, summary: Summary) -> None:
        """Print what there is to say, if a minute is over."""
        if self._clock() < self._next:
            return
        self._next = self._clock() + _EVERY
        now = dt.datetime.now().astimezone()
        going_on = f", {summary.done_before:,} of them before this run" * (self._first and summary.done_before > 0)
        line = [f"{summary.done:,} of {summary.cells:,} cells{going_on}", *_pace(summary)]
        print(f"{now:%H:%M:%S}  {', '.join(line)}", file=sys.stderr, flush=True)  # noqa: T201
        self._first = False
        for what, said in _troubles(summary):
            if what not in self._told:
                self._told.add(what)
                print(f"{now:%H:%M:%S}  {said}", file=sys.stderr, flush=True)  # noqa: T201


def _pace(summary: Summary) -> tuple[str, str]:
    """Return how fast a study is, and how long it will take."""
    from sidelong.progress import duration  # noqa: PLC0415

    rate = summary.rounds_played / max(summary.seconds, 1e-9)
    of_use = summary.rounds_played - summary.rounds_wasted
    rounds = summary.rounds - of_use - sum(cell.n_rounds for cell in summary.failed)
    left = f"{duration(rounds / rate)} left" if rate else "compiling"
    return f"{rate:,.0f} rounds per second", left


def _troubles(summary: Summary) -> Iterator[tuple[object, str]]:
    """Yield what failed so far, and how to say it."""
    for cell, reason in [*summary.failed.items()]:
        yield cell, f"failed: {cell}\n  {reason}"
    for path in [*summary.set_aside]:
        yield path, f"damaged, set aside and run again: {path}"


def finish(summary: Summary, folder: Path) -> None:
    """Print what became of a study, and end with the code that says it."""
    before = f", {summary.done_before:,} of them before" if summary.done_before else ""
    others = f", {summary.done_by_others:,} by another runner" if summary.done_by_others else ""
    rate = summary.rounds_played / max(summary.seconds, 1e-9)
    print(  # noqa: T201
        f"{summary.done:,} of {summary.cells:,} cells are done{before}{others}. "
        f"{summary.rounds_played:,} rounds in {summary.seconds:.1f} s, {rate:,.0f} per second.\nResults: {folder}"
    )
    _complain(summary)
    raise typer.Exit(_code(summary))


def stop_unless_done(summary: Summary) -> None:
    """Print what went wrong, if anything, and end if cells are missing."""
    _complain(summary)
    if summary.done < summary.cells:
        raise typer.Exit(_code(summary))


def _complain(summary: Summary) -> None:
    """Print what went wrong."""
    notes = [said for _, said in _troubles(summary)]
    if summary.other_source:
        notes.append(f"note: {summary.other_source:,} cells were run by another version of sidelong, and kept.")
    if summary.other_learner:
        notes.append(
            f"note: {summary.other_learner:,} cells were run by a version of their learner that decides otherwise, and "
            f"kept. To have all from the learner as it is now, run the study into another folder with --out."
        )
    if summary.stopped:
        notes.append(f"stopped: {summary.stopped.removesuffix('.')}. Run the same command to go on.")
    for note in notes:
        print(note, file=sys.stderr)  # noqa: T201


def _code(summary: Summary) -> int:
    if summary.stopped:
        return {"interrupted": INTERRUPTED, "terminated": TERMINATED}.get(summary.stopped, STOPPED)
    return FAILED if summary.failed else DAMAGED if summary.set_aside else 0
