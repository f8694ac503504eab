"""The command line: one file a command."""

from __future__ import annotations

import inspect
import re
from typing import TYPE_CHECKING, Annotated

import typer
from rich.markup import escape

from sidelong._version import __version__
from sidelong.cli.bounds import bounds
from sidelong.cli.cite import cite
from sidelong.cli.demo import demo
from sidelong.cli.evaluate import evaluate
from sidelong.cli.examples import EXAMPLES, STUDY
from sidelong.cli.graph import graph
from sidelong.cli.learners import learners
from sidelong.cli.report import report
from sidelong.cli.reproduce import reproduce
from sidelong.cli.run import run
from sidelong.cli.serve import serve
from sidelong.cli.token import app as token
from sidelong.cli.verify import verify

if TYPE_CHECKING:
    from collections.abc import Callable

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


def _add(panel: str, *commands: Callable[..., None]) -> None:
    """Add commands with their docstrings as help, in paragraphs as wide as the terminal, and what to type below."""
    for command in commands:
        text = re.sub(r"(?<!\n)\n(?!\n)", " ", inspect.getdoc(command) or "")
        blocks = [[f"[bold]{line}[/]" for line in EXAMPLES[command.__name__]]]
        if command is run:
            blocks.append(["The least that study.toml says:", *map(escape, STUDY)])
        text = "\n\n\b\n".join([text, *map("\n".join, blocks)])
        app.command(help=text, rich_help_panel=panel)(command)


_add(_BEGIN, demo, learners, cite)
_add(_LOOK, graph, bounds, verify)
_add(_STUDY, run, report, reproduce)
_add(_SERVE, serve, evaluate)
app.add_typer(token, name="token", rich_help_panel=_SERVE)


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
