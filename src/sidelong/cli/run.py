"""`sidelong run`: a study, from its file to a folder of results."""

from __future__ import annotations

import contextlib
import importlib.util
import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn, Self

import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sidelong.studies.cell import Cell
    from sidelong.studies.engine import Engine
    from sidelong.studies.execute import Summary
    from sidelong.studies.folder import ResultFolder
    from sidelong.studies.spec import Study

__all__ = ["run"]

FAILED, WRONG, DAMAGED, STOPPED, INTERRUPTED, TERMINATED = 1, 2, 3, 4, 130, 143


def run(
    study: Annotated[Path, typer.Argument(help="The study file, in TOML.", show_default=False)],
    *,
    out: Annotated[
        Path | None, typer.Option(help="The folder for results.", show_default="results/NAME, for NAME.toml")
    ] = None,
    workers: Annotated[
        int | None, typer.Option(min=1, max=1024, help="How many cores to use.", show_default="all")
    ] = None,
    on: Annotated[
        str | None,
        typer.Option(help="A Dask scheduler, tcp://HOST:8786, or local-cluster.", show_default="this machine"),
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Print the cells, an estimate of the time, and what is done already.")
    ] = False,
) -> None:
    """Run a study, or go on with one that was stopped.

    Ends with 0 if all is done, 1 if cells failed, 2 if the study is wrong, 3 if damaged results were found and made
    again, 4 if results could not be written, 130 after Ctrl-C.
    """
    missing = [name for name in ("pydantic", "pyarrow") if importlib.util.find_spec(name) is None]
    if missing:
        _refuse(f"studies need {' and '.join(missing)}. Install with: pip install 'sidelong[study]'")
    from sidelong.errors import StudyError  # noqa: PLC0415
    from sidelong.studies.spec import load  # noqa: PLC0415  # the compiler takes half a second to load

    try:
        loaded = load(study)
        folder = out or Path("results") / study.stem
        if dry_run:
            _describe(loaded, folder, workers)
        else:
            _finish(*_run(loaded, folder, workers, on))
    except StudyError as error:
        _refuse(str(error))


def _run(study: Study, folder: Path, workers: int | None, on: str | None) -> tuple[Summary, Path]:
    from sidelong.studies import execute, local  # noqa: PLC0415

    count = workers or local.cores()

    def engine(results: ResultFolder, n_cells: int) -> Engine:
        if on is None:
            return local.Local(count, n_cells, results.path / "files")
        from sidelong.studies.cluster import Dask  # noqa: PLC0415  # an extra

        return Dask(on, count, study.files)

    console = Console(stderr=True)
    with _interrupted_by_sigterm(), _Display(console) as display:
        return execute.run(study, folder, engine, display), folder


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
            disable=not console.is_terminal,
        )
        self._task = self._progress.add_task("starting", total=1)

    def __enter__(self) -> Self:
        self._progress.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._progress.stop()

    def __call__(self, summary: Summary) -> None:
        rate = summary.rounds_played / max(summary.seconds, 1e-9)
        left = f"{_clock((summary.rounds - summary.rounds_played) / rate)} left" if rate else "compiling"
        slowest = f"  slowest {summary.slowest[0]:.1f} s: {summary.slowest[1]}" if summary.slowest else ""
        self._progress.update(
            self._task,
            total=max(summary.rounds, 1),
            completed=summary.rounds_played,
            description=f"{summary.done}/{summary.cells} cells  {rate:,.0f} rounds a second  {left}{slowest}",
        )


def _clock(seconds: float) -> str:
    minutes, seconds = divmod(round(max(seconds, 0)), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{seconds:02}" if hours else f"{minutes}:{seconds:02}"


def _finish(summary: Summary, folder: Path) -> None:
    """Print what became of a study, and end with the code that says it."""
    before = f", {summary.done_before:,} of them before" if summary.done_before else ""
    others = f", {summary.done_by_others:,} by another runner" if summary.done_by_others else ""
    rate = summary.rounds_played / max(summary.seconds, 1e-9)
    print(  # noqa: T201
        f"{summary.done:,} of {summary.cells:,} cells are done{before}{others}. "
        f"{summary.rounds_played:,} rounds in {summary.seconds:.1f} s, {rate:,.0f} a second.\nResults: {folder}"
    )
    notes = [f"failed: {cell}\n  {reason}" for cell, reason in summary.failed.items()]
    notes += [f"damaged, set aside and run again: {path}" for path in summary.set_aside]
    if summary.other_source:
        notes.append(f"note: {summary.other_source:,} cells were run by another version of sidelong, and kept.")
    if summary.stopped:
        notes.append(f"stopped: {summary.stopped.removesuffix('.')}. Run the same command to go on.")
    for note in notes:
        print(note, file=sys.stderr)  # noqa: T201
    raise typer.Exit(_code(summary))


def _code(summary: Summary) -> int:
    if summary.stopped:
        return {"interrupted": INTERRUPTED, "terminated": TERMINATED}.get(summary.stopped, STOPPED)
    return FAILED if summary.failed else DAMAGED if summary.set_aside else 0


def _describe(study: Study, folder: Path, workers: int | None) -> None:
    """Print what a run would do."""
    from sidelong.errors import ResultFileError  # noqa: PLC0415
    from sidelong.studies import local  # noqa: PLC0415
    from sidelong.studies.estimate import seconds_of  # noqa: PLC0415
    from sidelong.studies.folder import read_cell, refuse_another  # noqa: PLC0415

    refuse_another(folder, study)
    done: list[tuple[Cell, float]] = []
    pending: list[Cell] = []
    for cell in study.cells:
        state = "done"
        try:
            provenance: dict[str, Any] | None = read_cell(folder, cell)
        except ResultFileError:
            provenance, state = None, "damaged"
        if provenance is None:
            pending.append(cell)
        else:
            done.append((cell, provenance["seconds"]))
        print(f"{cell.name[:12]}  {state if provenance or state == 'damaged' else 'to do':7}  {cell}")  # noqa: T201
    for cell, reason in study.unplayable:
        print(f"{cell.name[:12]}  left out  {cell}\n  {reason}")  # noqa: T201
    count = workers or local.cores()
    print(  # noqa: T201
        f"\n{len(study.cells):,} cells, {len(done):,} done, {len(pending):,} to do: "
        f"{sum(cell.n_rounds for cell in pending):,} rounds, about "
        f"{_clock(seconds_of(pending, study.files, done) / count)} on {count} core{'s' * (count > 1)}, and compilation."
    )


def _refuse(message: str) -> NoReturn:
    print(f"sidelong run: {message}", file=sys.stderr)  # noqa: T201
    raise typer.Exit(WRONG)
