"""`sidelong reproduce`: the reference studies of this project, and whether they give what they are expected to."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich import box
from rich.console import Console
from rich.table import Table

from sidelong.cli.completion import study_names
from sidelong.cli.playing import play, stop_unless_done
from sidelong.cli.refusal import refuse, require

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sidelong.studies.reproduce.statements import Expected, Judged

EXAMPLES = ("sidelong reproduce nested --quick",)

_QUICK = 4  # the share of the runs, one in so many


def reproduce(
    names: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="NAME", help="Which studies.", show_default="all but long ones", autocompletion=study_names
        ),
    ] = None,
    *,
    quick: Annotated[bool, typer.Option("--quick", help="A quarter of the runs, and twice the tolerance.")] = False,
    seed: Annotated[
        int, typer.Option(min=0, max=2**64 - 1, help="Another seed must give the same within the tolerance.")
    ] = 0,
    workers: Annotated[
        int | None, typer.Option(min=1, max=1024, help="How many cores to use.", show_default="all")
    ] = None,
    out: Annotated[Path, typer.Option(help="The folder for results, with a folder per study.")] = Path(
        "results/reproduce"
    ),
) -> None:
    """Play the reference studies, and compare the results with the expected numbers.

    The exit code is 0 if all is reproduced, and 1 if something is not. A study that is done already is not played
    again. `sidelong report results/reproduce/NAME` makes a page about one.
    """
    require("reproduce", "pydantic", "pyarrow")
    from sidelong.errors import StudyError  # noqa: PLC0415
    from sidelong.studies import reference  # noqa: PLC0415  # the compiler takes long to load
    from sidelong.studies.reproduce import cells, statements  # noqa: PLC0415

    console = Console(highlight=False)
    judged: dict[str, list[Judged]] = {}
    try:
        for name, expected in _chosen(names).items():
            study, share = _load(reference.find(name), seed, quick=quick)
            folder = out / "-".join([name, *["quick"] * quick, *[f"seed{seed}"] * bool(seed)])
            stop_unless_done(play(study, folder, workers))
            played = cells.read_cells(folder)
            judged[name] = [statements.judge(each, played, share) for each in expected.statement]
            console.print(f"{name}: {expected.about}  ({folder})", soft_wrap=True)
    except (StudyError, OSError) as error:
        refuse("reproduce", str(error))
    console.print(_table(judged))
    failed = sum(not verdict.holds for verdicts in judged.values() for verdict in verdicts)
    count = sum(map(len, judged.values()))
    console.print(f"{count - failed} of {count} statements are reproduced.")
    raise typer.Exit(1 if failed else 0)


def _chosen(names: Sequence[str] | None) -> dict[str, Expected]:
    """Return what is expected of the studies that were asked for."""
    from sidelong.checks import nearest  # noqa: PLC0415
    from sidelong.studies import reference  # noqa: PLC0415
    from sidelong.studies.reproduce.statements import read_expected  # noqa: PLC0415

    known = reference.names()
    for name in names or ():
        if name not in known:
            refuse(
                "reproduce", f"there is no study {name!r}.{nearest(name, known)} The studies are: {', '.join(known)}."
            )
    expected = {name: read_expected(reference.find(name)) for name in names or known}
    return {name: each for name, each in expected.items() if names or not each.long}


def _load(path: Path, seed: int, *, quick: bool) -> tuple[Any, float]:
    """Return a study, with a part of its runs if that is asked for, and which part it is."""
    from sidelong.studies.spec import load  # noqa: PLC0415

    study = load(path, seed=seed)
    runs = study.content["runs"]
    fewer = max(1, runs // _QUICK) if quick else runs
    return (load(path, seed=seed, runs=fewer) if fewer < runs else study), fewer / runs


def _table(judged: dict[str, list[Judged]]) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for column in ("study", "statement"):
        table.add_column(column, overflow="fold")
    for column in ("expected", "measured"):
        table.add_column(column, justify="right", no_wrap=True)
    table.add_column("verdict")
    for name, verdicts in judged.items():
        for number, verdict in enumerate(verdicts):
            colour = "green" if verdict.holds else "red"
            *texts, word = verdict.texts
            table.add_row("" if number else name, *texts, f"[{colour}]{word}[/]")
    return table
