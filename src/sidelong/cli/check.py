"""`sidelong check`: whether a learner of one's own keeps the contract."""

from __future__ import annotations

import sys
import tomllib
from pathlib import Path  # noqa: TC003  # typer reads the annotation
from typing import Annotated, Any

import typer

from sidelong.cli.completion import graph_names
from sidelong.cli.graph_argument import HELP, read_graph
from sidelong.cli.refusal import refuse
from sidelong.errors import SidelongError

EXAMPLES = ("sidelong check my_learner.py", "sidelong check my_learner.py --graph nested:24 --option share=0.05")


def check(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="The file of the learner.", show_default=False)],
    *,
    option: Annotated[
        list[str] | None,
        typer.Option(metavar="KEY=VALUE", help="An option of the learner. May be repeated."),
    ] = None,
    graph: Annotated[
        str | None,
        typer.Option(
            metavar="GRAPH",
            help=f"The graph to play on. {HELP}",
            show_default="a small one that meets its needs",
            autocompletion=graph_names,
        ),
    ] = None,
    rounds: Annotated[int, typer.Option(min=1, max=100_000, help="How many rounds to play.")] = 200,
) -> None:
    """Check the contract of a learner of your own, and report what it breaks, with round, arm and line.

    The file is Python code, and is run. It ends with a record LEARNER, as docs/own-learner.md describes. The exit code
    is 0 if the learner keeps the contract, and 1 if it breaks it.
    """
    from sidelong import learners  # noqa: PLC0415  # the compiler takes half a second to load
    from sidelong.user_code import import_file  # noqa: PLC0415

    if not file.is_file():
        refuse("check", f"{file}: there is no such file.")
    sys.path.insert(0, str(file.resolve().parent))  # as for a script: it may import what lies beside it
    try:
        options = dict(map(_read_option, option or ()))
        on = None if graph is None else read_graph(graph)
        report = learners.check(import_file(file.resolve(), file.stem), on, rounds=rounds, **options)
    except SidelongError as error:
        refuse("check", str(error))
    typer.echo(str(report))
    if not report.holds:
        raise typer.Exit(1)


def _read_option(text: str) -> tuple[str, Any]:
    """Return the name and the value of an option: a number, true, false or a list as in a study file, or text."""
    name, equals, value = text.partition("=")
    if not equals or not name.isidentifier():
        raise typer.BadParameter(f"an option is KEY=VALUE, such as share=0.05, not {text!r}.", param_hint="'--option'")
    try:
        return name, tomllib.loads(f"value = {value}")["value"]
    except tomllib.TOMLDecodeError:
        return name, value
