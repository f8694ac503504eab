"""`sidelong run`: a study, from its file to a folder of results."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sidelong.cli.playing import FAILED, finish, play, stop_unless_done
from sidelong.cli.refusal import refuse, require

if TYPE_CHECKING:
    from sidelong.studies.cell import Cell
    from sidelong.studies.spec import Study

EXAMPLES = (
    "sidelong run study.toml --dry-run",
    "sidelong run study.toml --workers 4",
    "sidelong run study.sidelong.zip --trust",
)

#: The least that a study file says.
STUDY = """\
rounds = 10_000
learner = [{ name = ["exp3.g++", "ucb-n"] }]
graph = [{ name = ["nested", "star"], n = 10 }]
world = [{ name = "bernoulli", means = { gap = 0.2 } }]
"""
BELOW = (f"A small study.toml:\n{STUDY}",)


def run(
    study: Annotated[
        Path,
        typer.Argument(
            metavar="STUDY",
            help="The study file, in TOML; study.json of a folder of results; or an archive of sidelong pack.",
            show_default=False,
        ),
    ],
    *,
    out: Annotated[
        Path | None,
        typer.Option(help="The folder for results.", show_default="results/NAME, or results/NAME-again of a pack"),
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
    trust: Annotated[bool, typer.Option("--trust", help="Run the Python code that a pack contains.")] = False,
) -> None:
    """Run a study, or resume one that was stopped.

    A pack is played again in a folder of its own, and compared with the results in it.

    Exit codes: 0 if all is done, 1 if cells failed or a pack gave other results, 2 if the study is wrong, 3 if damaged
    results were found and made again, 4 if results could not be written, 130 after Ctrl-C, 143 after SIGTERM.
    """
    require("run", "pydantic", "pyarrow")
    from sidelong.errors import StudyError  # noqa: PLC0415
    from sidelong.studies.pack import is_pack  # noqa: PLC0415
    from sidelong.studies.spec import load  # noqa: PLC0415  # the compiler takes half a second to load

    try:
        if is_pack(study):
            _play_again(study, out, workers, on, dry_run=dry_run, trust=trust)
            return
        loaded = load(study, code=not dry_run, outside=allow_outside)
        folder = out or (study.parent if study.name == "study.json" else Path("results") / study.stem)
        if dry_run:
            _describe(loaded, folder, workers)
        else:
            finish(play(loaded, folder, workers, on), folder)
    except StudyError as error:
        refuse("run", str(error))


def _play_again(
    pack: Path, out: Path | None, workers: int | None, on: str | None, *, dry_run: bool, trust: bool
) -> None:
    """Play the study of a pack in a folder of its own, and compare the results with those in the pack."""
    from sidelong.cli.diff import show  # noqa: PLC0415
    from sidelong.studies.pack import unpacked  # noqa: PLC0415
    from sidelong.studies.provenance import source_hash  # noqa: PLC0415
    from sidelong.studies.result_diff import compare  # noqa: PLC0415
    from sidelong.studies.spec import load  # noqa: PLC0415

    folder = out or Path("results") / f"{pack.name.partition('.')[0]}-again"
    with unpacked(pack) as (packed, about):
        study = load(packed / "study.json", code=trust and not dry_run)
        if dry_run:
            _describe(study, folder, workers)
            return
        if study.unchecked:
            code = ", ".join(sorted(repr(name.rpartition("/")[2]) for name in about["entries"] if name.endswith(".py")))
            refuse("run", f"{pack} has Python code ({code}), which can do whatever you can. Add --trust to run it.")
        if about["made_by"].get("source") != [source_hash()]:
            made = ", ".join(f"{key} {' and '.join(values)}" for key, values in about["made_by"].items())
            typer.echo(f"note: other sources of sidelong made these results: {made}.", err=True)
        summary = play(study, folder, workers, on)
        stop_unless_done(summary)
        found = compare(folder, packed)
    before = f", {summary.done_before:,} of them before" if summary.done_before else ""
    typer.echo(f"{pack}, content hash {about['sha256']}: {summary.done:,} cells were played again{before}.")
    show(found, str(folder), str(pack))
    typer.echo(f"Results: {folder}")
    if not found.equal:
        raise typer.Exit(FAILED)


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
    rounds = f"{sum(cell.n_rounds for cell in pending):,} rounds"
    if timed or not pending:  # else nothing is known of the time
        which = "" if len(timed) == len(pending) else f" for {len(timed):,} of them"
        seconds = seconds_of(timed, study.files, done) / count
        rounds += f", about {duration(seconds)}{which} on {count} core{'s' * (count > 1)}, and compilation"
    print(f"\n{len(study.cells):,} cells, {len(done):,} done, {len(pending):,} to do: {rounds}.")  # noqa: T201
