"""`sidelong pack`: a study and its results as one archive."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from sidelong.cli.refusal import refuse, require

EXAMPLES = ("sidelong pack results/study", "sidelong run study.sidelong.zip --trust")


def pack(
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", help="The folder of results.", show_default=False)],
    *,
    out: Annotated[Path | None, typer.Option(help="The archive to write.", show_default="NAME.sidelong.zip")] = None,
) -> None:
    """Write a study, the files it names, the versions that ran it and its results into one archive.

    sidelong run ARCHIVE plays it again in a fresh folder, and says whether the tables are the same bit for bit. The
    content hash that is printed names exactly these results: cite it.
    """
    require("pack", "pydantic", "pyarrow")
    from sidelong.errors import StudyError  # noqa: PLC0415
    from sidelong.studies.pack import write_pack  # noqa: PLC0415  # the compiler takes half a second to load

    archive = out or Path(f"{folder.resolve().name}.sidelong.zip")
    try:
        digest = write_pack(folder, archive)
    except (StudyError, OSError) as error:
        refuse("pack", str(error))
    typer.echo(f"{archive}: {archive.stat().st_size:,} bytes, content hash {digest}")
