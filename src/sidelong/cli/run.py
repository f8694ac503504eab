"""`sidelong run`: a study, from its file to a folder of results."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sidelong.cli.playing import finish, play
from sidelong.cli.refusal import refuse, require

if TYPE_CHECKING:
    from sidelong.studies.cell import Cell
    from sidelong.studies.spec import Study

EXAMPLES = ("sidelong run study.toml --dry-run", "sidelong run study.toml --workers 4")

#: The least that a study file says.
STUDY = """\
rounds = 10_000
learner = [{ name = ["exp3.g++", "ucb-n"] }]
graph = [{ name = ["nested", "star"], n = 10 }]
world = [{ name = "bernoulli", means = { gap = 0.2 } }]
"""
BELOW = (f"A small study.toml:\n{STUDY}",)


def run(
    study: Annotated[Path, typer.Argument(metavar="STUDY", help="The study file, in TOML.", show_default=False)],
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
    allow_outside: Annotated[
        bool, typer.Option("--allow-outside", help="Let the study name files outside of its folder.")
    ] = False,
) -> None:
    """Run a study, or go on with one that was stopped.

    Exit codes: 0 if all is done, 1 if cells failed, 2 if the study is wrong, 3 if damaged results were found and made
    again, 4 if results could not be written, 130 after Ctrl-C, 143 after SIGTERM.
    """
    require("run", "pydantic", "pyarrow")
    from sidelong.errors import StudyError  # noqa: PLC0415
    from sidelong.studies.spec import load  # noqa: PLC0415  # the compiler takes half a second to load

    try:
        loaded = load(study, code=not dry_run, outside=allow_outside)
        folder = out or Path("results") / study.stem
        if dry_run:
            _describe(loaded, folder, workers)
        else:
            finish(play(loaded, folder, workers, on), folder)
    except StudyError as error:
        refuse("run", str(error))


def _describe(study: Study, folder: Path, workers: int | None) -> None:
    """Print what a run would do."""
    from sidelong.errors import ResultFileError  # noqa: PLC0415
    from sidelong.machine import cores  # noqa: PLC0415
    from sidelong.progress import duration  # noqa: PLC0415
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
    if study.unchecked:
        cells = f"{len(study.unchecked):,} cell{'s' * (len(study.unchecked) > 1)}"
        print(f"\n{cells} with code of your own, which a dry run does not load: neither checked nor timed.")  # noqa: T201
    count = workers or cores()
    timed = [cell for cell in pending if cell.name not in study.unchecked]
    print(  # noqa: T201
        f"\n{len(study.cells):,} cells, {len(done):,} done, {len(pending):,} to do: "
        f"{sum(cell.n_rounds for cell in pending):,} rounds, about "
        f"{duration(seconds_of(timed, study.files, done) / count)} on {count} core{'s' * (count > 1)}, and "
        f"compilation."
    )
