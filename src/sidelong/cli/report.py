"""`sidelong report`: one page about a study."""

from __future__ import annotations

from pathlib import Path  # noqa: TC003  # typer reads the annotation
from typing import Annotated

import typer

from sidelong.cli.refusal import refuse, require

EXAMPLES = ("sidelong report results/study",)


def report(
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", help="The folder of results.", show_default=False)],
    *,
    out: Annotated[
        Path | None, typer.Option(help="The page to write.", show_default="report.html in the folder")
    ] = None,
    figures: Annotated[
        bool, typer.Option("--figures/--no-figures", help="Also write figures (SVG, PDF, PNG, PGF) and tables (LaTeX).")
    ] = True,
) -> None:
    """Write a report on a study, as one page that needs no network, with its figures and tables beside it."""
    require("report", "pydantic", "pyarrow", "matplotlib")
    from sidelong.errors import StudyError  # noqa: PLC0415
    from sidelong.studies.report import write  # noqa: PLC0415  # heavy, and extras

    try:
        page, *drawn = write(folder, out or folder / "report.html", files=figures)
    except (StudyError, OSError) as error:
        refuse("report", str(error))
    typer.echo(page)
    if drawn:
        kinds = [path.suffix for path in drawn]
        counted = f"{kinds.count('.svg')} figures (SVG, PDF, PGF, PNG) and {kinds.count('.tex')} tables (LaTeX)"
        typer.echo(f"{drawn[0].parent}: {counted}")
