"""The command line: one file a command."""

from __future__ import annotations

from typing import Annotated

import typer

from sidelong._version import __version__
from sidelong.cli.bounds import bounds
from sidelong.cli.cite import cite
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

# \\b keeps the lines of a paragraph as they are.
_HELP = """\
Online decisions that learn from what they see on the side.

Each round one of K arms is played and its loss paid; a feedback graph says whose losses that also reveals. Learners \
find the best arm from all of it.

\b
[bold]sidelong demo[/]                         who wins, in both worlds, on four graphs
[bold]sidelong learners exp3.g++[/]            all about one learner, with its options
[bold]sidelong graph nested:24[/]              a graph in numbers, and what they mean
[bold]sidelong bounds nested:24 --gaps 0.2[/]  what each learner promises there
[bold]sidelong run study.toml --dry-run[/]     a study: its cells, and for how long
[bold]sidelong serve[/]                        decisions over HTTP, with a dashboard
"""

_EPILOG = """\
In Python: import sidelong as sl, and help(sl.Agent). Tab completes commands and names after \
[bold]sidelong --install-completion[/]. Exit codes: 0 done, 1 something failed, 2 what was asked is wrong; others \
are in the help of their command.
"""

_BEGIN, _LOOK, _STUDY, _SERVE = "Begin", "Graphs and theory", "Studies", "The decision service"

app = typer.Typer(
    name="sidelong",
    help=_HELP,
    epilog=_EPILOG,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
)
app.command(rich_help_panel=_BEGIN)(demo)
app.command(rich_help_panel=_BEGIN)(learners)
app.command(rich_help_panel=_BEGIN)(cite)
app.command(rich_help_panel=_LOOK)(graph)
app.command(rich_help_panel=_LOOK)(bounds)
app.command(rich_help_panel=_LOOK)(verify)
app.command(rich_help_panel=_STUDY)(run)
app.command(rich_help_panel=_STUDY)(report)
app.command(rich_help_panel=_STUDY)(reproduce)
app.command(rich_help_panel=_SERVE)(serve)
app.add_typer(token, name="token", rich_help_panel=_SERVE)
app.command(rich_help_panel=_SERVE)(evaluate)


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
