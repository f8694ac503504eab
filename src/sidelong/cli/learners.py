"""`sidelong learners`: the catalogue as a table, or all about one learner."""

from __future__ import annotations

import inspect
import re
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich import box
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from sidelong.cli.completion import learner_names

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from sidelong.learners.interface import Learner

EXAMPLES = ("sidelong learners", "sidelong learners exp3.g++")

#: From this width on, every fact has a column of its own.
_WIDE = 110


def learners(
    name: Annotated[
        str | None,
        typer.Argument(
            metavar="LEARNER",
            help="A learner, to see its paper, its theorem and its options.",
            autocompletion=learner_names,
        ),
    ] = None,
) -> None:
    """List the learners: paper, worlds with a proof, what each needs, its cost per round and its bound."""
    from sidelong.errors import LearnerError  # noqa: PLC0415  # the compiler takes half a second to load
    from sidelong.learners import catalogue  # noqa: PLC0415

    console = Console(highlight=False)
    if name is None:
        console.print(_table(wide=console.width >= _WIDE))
        console.print(_LEGEND)
        return
    try:
        catalogue.find(name)
    except LearnerError as error:
        raise typer.BadParameter(str(error), param_hint="LEARNER") from None
    for title, module, options in _versions(name):
        _describe(console, title, module, options)


def _versions(name: str) -> Iterator[tuple[str, Learner, Mapping[str, Any]]]:
    """Yield a learner as it comes, and with the options that lead to another module: title, module, options."""
    from sidelong.learners import catalogue  # noqa: PLC0415

    for options in ({}, *catalogue.find(name).variants):
        said = [f"{option} {value}" if value == "unknown" else value for option, value in options.items()]
        yield " ".join([name, *said]), catalogue.choose(name, options), options


def _needs(module: Learner, options: Mapping[str, Any]) -> list[str]:
    from sidelong.learners import catalogue  # noqa: PLC0415

    return sorted(need.value for need in catalogue.needs(module, options)) or ["-"]


def _table(*, wide: bool) -> Table:
    from sidelong.learners import catalogue  # noqa: PLC0415

    table = Table(box=box.SIMPLE_HEAD, show_lines=True, pad_edge=False, padding=(0, 1, 0, 0))
    if wide:
        table.add_column("learner", no_wrap=True, style="bold")
        table.add_column("paper", max_width=24)
    else:
        table.add_column("learner, paper", width=22)
    table.add_column("proved", no_wrap=True)
    if wide:
        table.add_column("needs", width=24)
        table.add_column("per round", width=12)
    else:
        table.add_column("needs; a round", width=16)
    table.add_column("bound on the regret")
    for name in catalogue.names():
        for title, module, options in _versions(name):
            about = module.about
            needs = _needs(module, options)
            first = [title, about.paper] if wide else [f"[bold]{title}[/]\n{about.paper}"]
            second = ["\n".join(needs), about.cost] if wide else [f"{', '.join(needs)}\n{about.cost}"]
            proved = "\n".join(catalogue.proved(module, options)) or "-"
            table.add_row(*first, proved, *second, "\n".join(about.bound.split("; ")))
    return table


def _describe(console: Console, title: str, module: Learner, options: Mapping[str, Any]) -> None:
    from sidelong.learners import catalogue  # noqa: PLC0415

    headline, second = (" ".join(part.split()) for part in module.doc.split("\n\n")[:2])
    about = module.about
    departs = " and says where it departs from the paper" if about.published else ""
    console.print(f"\n[bold]{title}[/]\n{escape(headline)}\n")
    facts = Table(box=None, show_header=False, pad_edge=False, padding=(0, 2, 0, 0))
    facts.add_column(no_wrap=True)
    facts.add_column(overflow="fold")
    for key, value in (
        ("reference" if about.published else "idea", second),
        ("proved", ", ".join(catalogue.proved(module, options)) or "nothing"),
        ("bound", about.bound),
        ("theorem", about.theorem or "see the reference"),
        ("needs", ", ".join(_needs(module, options))),
        ("per round", about.cost),
        ("source", f'help("{module.module}") has the pseudo-code{departs}'),
    ):
        facts.add_row(key, escape(value))
    console.print(facts)
    found = list(_options(module))
    if not found:
        console.print("\nIt has no options.")
        return
    given = "".join(f", {key}={value!r}" for key, value in options.items())
    console.print(f'\nOptions, as in sl.Agent("{module.name}", graph{given}, {found[-1][0]}=...):\n', soft_wrap=True)
    table = Table(box=None, show_header=False, pad_edge=False, padding=(0, 2, 1, 0))
    table.add_column(no_wrap=True)
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    for row in found:
        table.add_row(*map(escape, row))
    console.print(table)


def _options(module: Learner) -> Iterator[tuple[str, str, str]]:
    """Yield the name, the default and the meaning of each option with a choice, as `configure` documents them."""
    text = inspect.getdoc(module.configure) or ""
    meanings = dict(re.findall(r"^    (\w+): (.*(?:\n {8,}.*)*)", text, re.MULTILINE))
    for name, parameter in inspect.signature(module.configure).parameters.items():
        if parameter.kind is inspect.Parameter.KEYWORD_ONLY and name not in module.settled:
            default = "" if parameter.default is inspect.Parameter.empty else repr(parameter.default)
            yield name, default, " ".join(meanings.get(name, "").split())


_LEGEND = """\
K arms, E edges, T rounds, gap: by how much an arm is worse than the best. Of the graph: alpha is the independence \
number, alpha~ the strong one, mas the largest acyclic set, chi the clique cover number, delta the weak domination \
number. With _t, of the graph of round t. theta is at most mas. The first bound holds against any adversary, the \
second in a stochastic world, where both are proved.

Erez and Koren (2021), the first learner for both worlds on graphs, is not here: no public source that we could read \
gives its regulariser exactly.

All about one, with its options: sidelong learners exp3.g++"""
