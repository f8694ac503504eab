"""`sidelong diff`: two folders of results, or packs, compared to the bit."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sidelong.cli.refusal import refuse, require

if TYPE_CHECKING:
    from sidelong.studies.result_diff import ResultDiff

EXAMPLES = ("sidelong diff results/study results/again", "sidelong diff study.sidelong.zip results/study")
_MOST = 20  # lines of each kind

_Results = Annotated[Path, typer.Argument(help="A folder of results, or a pack.", show_default=False)]


def diff(one: _Results, two: _Results) -> None:
    """Compare the results of two studies, cell by cell and bit for bit.

    Each argument is a folder of results, or an archive of sidelong pack. The exit code is 0 if both have the same cells
    with the same tables, and 1 if not.
    """
    require("diff", "pydantic", "pyarrow")
    from sidelong.errors import StudyError  # noqa: PLC0415
    from sidelong.studies.pack import is_pack, unpacked  # noqa: PLC0415
    from sidelong.studies.result_diff import compare  # noqa: PLC0415

    with contextlib.ExitStack() as stack:
        try:
            folders = [stack.enter_context(unpacked(each))[0] if is_pack(each) else each for each in (one, two)]
            found = compare(*folders)
        except StudyError as error:
            refuse("diff", str(error))
    show(found, str(one), str(two))
    if not found.equal:
        raise typer.Exit(1)


def show(found: ResultDiff, one: str, two: str) -> None:
    """Print what two folders of results have in common."""
    lines = [f"the studies differ: {line}" for line in found.studies]
    lines += [f"differs: {cell}\n  {where}" for cell, where in found.differing[:_MOST]]
    for where, cells in zip((one, two), found.only, strict=True):
        lines += [f"only in {where}: {cell}" for cell in cells[:_MOST]]
    for line in lines:
        typer.echo(line)
    if found.equal:
        typer.echo(f"The tables of all {found.same:,} cells are the same to the bit.")
    else:
        typer.echo(
            f"{found.same:,} cells are the same to the bit, {len(found.differing):,} differ, "
            f"{len(found.only[0]):,} are only in {one}, {len(found.only[1]):,} only in {two}."
        )
