"""The command line: one file a command."""

from __future__ import annotations

from typing import Annotated

import typer

from sidelong._version import __version__
from sidelong.cli.bounds import bounds
from sidelong.cli.demo import demo
from sidelong.cli.evaluate import evaluate
from sidelong.cli.graph import graph
from sidelong.cli.learners import learners
from sidelong.cli.report import report
from sidelong.cli.reproduce import reproduce
from sidelong.cli.run import run
from sidelong.cli.serve import serve
from sidelong.cli.token import app as token
from sidelong.cli.verify import verify

__all__ = ["app"]

app = typer.Typer(
    name="sidelong",
    help="Online decisions that learn from what they see on the side.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)
app.command()(demo)
app.command()(learners)
app.command()(graph)
app.command()(bounds)
app.command()(verify)
app.command()(run)
app.command()(report)
app.command()(reproduce)
app.command()(evaluate)
app.command()(serve)
app.add_typer(token, name="token")


def _print_version(wanted: bool) -> None:  # noqa: FBT001  # what typer calls
    if wanted:
        typer.echo(f"sidelong {__version__}")
        raise typer.Exit


@app.callback()
def main(
    *,
    version: Annotated[
        bool,
        typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and leave."),
    ] = False,
) -> None:
    """Online decisions that learn from what they see on the side."""
