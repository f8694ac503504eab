"""The graphs of a study, drawn, with what their numbers mean."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sidelong.graphs.cover import exploration_start
from sidelong.graphs.drawing import MOST_DRAWN
from sidelong.graphs.graph import FeedbackGraph
from sidelong.studies.report import charts
from sidelong.studies.report.markup import Drawn, paragraph, section

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sidelong.studies.report.promised import Promised
    from sidelong.studies.report.reading import Reading

__all__ = ["headline", "pictures"]

_BUDGET = 1.0  # seconds for each number
_MOST, _CLEAR = 8, 24  # pictures; and arms, up to which they are clear
_NOTE = (
    "An arrow goes from an arm to one that it reveals, a line joins two that reveal each other, and a dashed arm does "
    "not reveal itself. Filled: where EXP3.G++ begins to explore."
)


def pictures(reading: Reading, promised: Promised) -> Iterator[tuple[str, list[Drawn]]]:
    """Yield the section, and its figures."""
    graphs: dict[str, FeedbackGraph] = {}
    for curve in reading.curves:
        label, graph = reading.label("graph", curve), promised.graph(curve)
        if isinstance(graph, FeedbackGraph):
            graphs.setdefault(label, graph)
        elif graph.bank:
            for number, each in enumerate(dict.fromkeys(graph.bank), 1):
                graphs.setdefault(f"{label}, graph {number}", each)
        else:
            graphs.setdefault(f"{label}, in round 1", graph.graph_of_round(1))
    small = sorted(((label, graph) for label, graph in graphs.items() if graph.n_arms <= MOST_DRAWN), key=_arms)
    small = [each for each in small if _arms(each) <= _CLEAR] or small[:1]
    drawn = []
    for number, (label, graph) in enumerate(small[:_MOST], 1):
        figure = charts.graph(graph, exploration_start(graph))
        drawn.append(Drawn(f"graph-{number:02d}", figure, headline(label, graph)))
    left = len(graphs) - len(drawn)
    more = paragraph(f"{left} more {'graphs are' if left > 1 else 'graph is'} not drawn.", "note") if left else ""
    if graphs:
        yield section("The graphs", drawn, paragraph(_NOTE, "note") if drawn else "", more), drawn


def _arms(named: tuple[str, FeedbackGraph]) -> int:
    return named[1].n_arms


def headline(label: str, graph: FeedbackGraph) -> str:
    """Say what a graph gives away: how many arms show all, and how many tell nothing of each other."""
    K = graph.n_arms
    others = graph.n_edges - (K - graph.arms_without_self_loop.size)
    if others == 0:
        return f"{label}: no arm tells of another. This is a bandit."
    if graph.n_edges == K * K:
        return f"{label}: every arm tells of all. This is full information."
    numbers = graph.numbers(_BUDGET)
    alone = numbers.independence
    apart = f"{alone.lower}" if alone.exact else f"{alone.lower} to {alone.upper}"
    tell = f"at most {apart} of {K} arms tell nothing of each other"
    if graph.observability.kind == "none":
        return f"{label}: {tell}, and some arm is never seen."
    cover = numbers.domination.upper
    return f"{label}: {cover} arm{'s' * (cover > 1)} show{'s' * (cover == 1)} all, and {tell}."
