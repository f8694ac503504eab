"""The command line: one file a command, which has the command's name, its help and what to type."""

from __future__ import annotations

import importlib
import inspect
import re
from typing import TYPE_CHECKING, Annotated

import typer
from rich.markup import escape

from sidelong._version import __version__

if TYPE_CHECKING:
    from types import ModuleType

__all__ = ["COMMANDS", "app"]

#: The commands as the help groups them. Each is a module beside this one, with a function of its name and `EXAMPLES`,
#: or with an `app` of several commands.
COMMANDS = {
    "Begin": ("demo", "learners", "cite", "warm_up"),
    "Graphs and theory": ("graph", "bounds", "verify"),
    "Studies": ("check", "run", "report", "pack", "diff", "reproduce"),
    "The decision service": ("serve", "evaluate", "token"),
}

# \\b keeps the lines of a paragraph as they are.
_HELP = """\
Online decisions that learn from what they see on the side.

In each round you play one of K arms and pay its loss. A feedback graph says which losses you also see. Learners \
find the best arm from all of them.

\b
[bold]sidelong demo[/]                         orders for a shop; who wins, in both worlds
[bold]sidelong learners exp3.g++[/]            one learner: paper, theorem and options
[bold]sidelong graph nested:24[/]              a graph in numbers, and what they mean
[bold]sidelong bounds nested:24 --gaps 0.2[/]  what each learner promises there
[bold]sidelong run study.toml --dry-run[/]     a study: its cells, and its time
[bold]sidelong serve[/]                        decisions over HTTP, with a dashboard
"""

_EPILOG = """\
In Python: import sidelong as sl, then help(sl.Agent). After [bold]sidelong --install-completion[/], Tab completes \
commands and names. Exit codes: 0 is done, 1 something failed, 2 the command or its input is wrong. The help of a \
command has others.
"""

app = typer.Typer(
    name="sidelong",
    help=_HELP,
    epilog=_EPILOG,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
)


def _add(panel: str, name: str, module: ModuleType) -> None:
    """Add a command with its docstring as help, in paragraphs as wide as the terminal, and what to type below."""
    if hasattr(module, "app"):
        app.add_typer(module.app, name=name, rich_help_panel=panel)
        return
    command = getattr(module, name)
    text = re.sub(r"(?<!\n)\n(?!\n)", " ", inspect.getdoc(command) or "")
    blocks = ["\n".join(f"[bold]{line}[/]" for line in module.EXAMPLES), *map(escape, getattr(module, "BELOW", ()))]
    app.command(help="\n\n\b\n".join([text, *blocks]), rich_help_panel=panel)(command)


for _panel, _names in COMMANDS.items():
    for _name in _names:
        _add(_panel, _name, importlib.import_module(f"sidelong.cli.{_name}"))


def _print_version(wanted: bool) -> None:  # noqa: FBT001  # what typer calls
    if wanted:
        typer.echo(f"sidelong {__version__}")
        raise typer.Exit


@app.callback()
def main(
    *,
    version: Annotated[
        bool,
        typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and exit."),
    ] = False,
) -> None:
    """Online decisions that learn from what they see on the side."""
