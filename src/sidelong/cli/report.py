"""`sidelong report`: one page about a study."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path  # noqa: TC003  # typer reads the annotation
from typing import Annotated, NoReturn

import typer

__all__ = ["report"]


def report(
    folder: Annotated[Path, typer.Argument(help="The folder of results.", show_default=False)],
    *,
    out: Annotated[
        Path | None, typer.Option(help="The page to write.", show_default="report.html in the folder")
    ] = None,
    figures: Annotated[
        bool, typer.Option("--figures/--no-figures", help="Write the figures as SVG, PDF and PNG too, beside the page.")
    ] = True,
) -> None:
    """Write a page about a study that needs no network, and its figures as SVG, PDF and PNG beside it."""
    missing = [name for name in ("pyarrow", "matplotlib") if importlib.util.find_spec(name) is None]
    if missing:
        _refuse(f"reports need {' and '.join(missing)}. Install with: pip install 'sidelong[study,plot]'")
    from sidelong.errors import StudyError  # noqa: PLC0415
    from sidelong.studies.report import write  # noqa: PLC0415  # heavy, and extras

    try:
        page, *drawn = write(folder, out or folder / "report.html", files=figures)
    except (StudyError, OSError) as error:
        _refuse(str(error))
    typer.echo(page)
    if drawn:
        typer.echo(f"{drawn[0].parent}: {len(drawn) // 3} figures, each as SVG, PDF and PNG")


def _refuse(message: str) -> NoReturn:
    print(f"sidelong report: {message}", file=sys.stderr)  # noqa: T201
    raise typer.Exit(2)
