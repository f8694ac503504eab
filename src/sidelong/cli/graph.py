"""`sidelong graph`: the numbers of a graph with their certificates, what they mean, and a picture."""

from __future__ import annotations

import json
from dataclasses import dataclass
from enum import Enum
from pathlib import Path  # noqa: TC003  # typer reads the annotation
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer
from rich.console import Console

from sidelong.cli.bounds import read_gaps_option
from sidelong.cli.completion import graph_names
from sidelong.cli.graph_argument import HELP, read_graph
from sidelong.cli.graph_page import show
from sidelong.cli.graph_svg import draw
from sidelong.errors import GraphError, ObservabilityError

if TYPE_CHECKING:
    import numpy.typing as npt

    from sidelong.graphs import FeedbackGraph
    from sidelong.graphs.numbers import GraphNumber, RealGraphNumber

EXAMPLES = ("sidelong graph star:10,hub=3 --svg star.svg", "sidelong graph edges.txt --self-loops")


class Mark(Enum):
    """What to mark in the pictures."""

    EXPLORATION = "exploration"
    INDEPENDENCE = "independence"
    STRONG_INDEPENDENCE = "strong-independence"
    ACYCLIC = "acyclic"
    DOMINATION = "domination"
    CLIQUE_COVER = "clique-cover"


def graph(
    graph: Annotated[str, typer.Argument(metavar="GRAPH", help=HELP, autocompletion=graph_names)],
    *,
    mark: Annotated[Mark, typer.Option(help="What to mark in the pictures.")] = Mark.EXPLORATION,
    svg: Annotated[Path | None, typer.Option(help="Draw the graph into this file.")] = None,
    gaps: Annotated[
        str | None,
        typer.Option(help="Gaps for the weighted number (weights 1 / gap): one for all but arm 0, or a list."),
    ] = None,
    self_loops: Annotated[bool, typer.Option("--self-loops", help="Let every arm also reveal itself.")] = False,
    budget: Annotated[float, typer.Option(min=0, help="Seconds per number.")] = 10.0,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Print the numbers of a graph on which regret depends, with certificates, and draw it."""
    from sidelong.display.drawing import MOST_DRAWN  # noqa: PLC0415  # the compiler takes half a second to load

    named = read_graph(graph, self_loops=self_loops)
    if svg is not None and named.n_arms > MOST_DRAWN:
        raise GraphError(f"A graph is drawn with up to {MOST_DRAWN} arms, and {named!r} has more.")
    console = Console()
    with console.status("computing"):
        report = _report(named, _weights(gaps, named.n_arms), budget, mark)
    if svg is not None:
        draw(svg, named, report.marked, mark.value)
    if as_json:
        typer.echo(json.dumps(_document(report), indent=2))
    else:
        show(console, report)
        if svg is not None:
            console.print(f"\nDrawn into {svg}.", highlight=False)


@dataclass(frozen=True)
class Report:
    """All that the command has found."""

    graph: FeedbackGraph
    numbers: dict[str, GraphNumber | RealGraphNumber]
    refused: dict[str, str]  #: the numbers that cannot be computed, and why
    exploration: npt.NDArray[np.int64]  #: where EXP3.G++ begins to explore
    mark: Mark
    marked: npt.NDArray[np.int64]  #: for each arm the number of its group, or 0 if it is marked; -1 if not
    able: list[str]
    unable: dict[str, str]


_NAMES = (
    "independence",
    "acyclic",
    "strong_independence",
    "domination",
    "weak_domination",
    "clique_cover",
    "fractional_domination",
    "fractional_clique_cover",
)


def _report(named: FeedbackGraph, weights: npt.NDArray[np.float64], budget: float, mark: Mark) -> Report:
    from sidelong.graphs.cover import exploration_start  # noqa: PLC0415  # the compiler takes half a second to load
    from sidelong.learners import catalogue  # noqa: PLC0415

    found, numbers, refused = named.numbers(budget), {}, {}
    for name in (*_NAMES, "weighted_strong_independence"):
        try:
            wanted = getattr(found, name)
            numbers[name] = wanted(weights) if callable(wanted) else wanted
        except GraphError as error:
            refused[name] = str(error)
    able, unable = [], {}
    for name in catalogue.names():
        try:
            catalogue.check_graph(catalogue.find(name), named)
            able.append(name)
        except ObservabilityError as error:
            unable[name] = str(error)
    exploration = exploration_start(named)
    marked = np.full(named.n_arms, -1)
    key = mark.value.replace("-", "_")
    if mark is Mark.EXPLORATION:
        marked[exploration] = 0
    elif key not in numbers:
        raise GraphError(f"--mark {mark.value} is not possible: {refused[key]}")
    elif mark is Mark.CLIQUE_COVER:
        marked = np.asarray(numbers[key].certificate)
    else:
        marked[numbers[key].certificate] = 0
    return Report(named, numbers, refused, exploration, mark, marked, able, unable)


def _weights(gaps: str | None, n_arms: int) -> npt.NDArray[np.float64]:
    from sidelong.theory.checks import read_gaps  # noqa: PLC0415

    listed = read_gaps_option(gaps, 0, n_arms)
    if listed is None:
        return np.ones(n_arms)
    read = read_gaps(listed).all
    inverse: npt.NDArray[np.float64] = np.divide(1.0, read, out=np.zeros_like(read), where=read > 0)
    return inverse


def _document(report: Report) -> dict[str, Any]:
    graph = report.graph
    return {
        "graph": graph.name,
        "n_arms": graph.n_arms,
        "labels": graph.labels,
        "n_edges": graph.n_edges,
        "undirected": graph.is_undirected,
        "observability": graph.observability.kind,
        "numbers": {
            name: {
                "lower": number.lower,
                "upper": number.upper,
                "exact": number.exact,
                "certificate": number.certificate.tolist() if isinstance(number.certificate, np.ndarray) else None,
                "checked": number.holds_for(graph),
                "seconds": number.seconds,
            }
            for name, number in report.numbers.items()
        },
        "refused": report.refused,
        "exploration_set": report.exploration.tolist(),
        "can_play": report.able,
        "cannot_play": report.unable,
    }
