"""The graphs of a study, drawn, with what their numbers mean."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from matplotlib.patches import Circle, FancyArrowPatch
from matplotlib.path import Path as Outline

from sidelong.display.drawing import MOST_DRAWN, SIDE, lay_out
from sidelong.display.figures import INK, MUTED, PAPER, colour, new
from sidelong.graphs.cover import exploration_start
from sidelong.graphs.graph import FeedbackGraph
from sidelong.studies.report.markup import Illustration, Section, paragraph, section

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy.typing as npt
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from sidelong.display.drawing import Line
    from sidelong.studies.report.promised import Promised
    from sidelong.studies.report.reading import StudyReading

_BUDGET = 1.0  # seconds for each number
_MOST, _CLEAR = 8, 24  # pictures; and arms, up to which they are clear
_NOTE = (
    "An arrow goes from an arm to one that it reveals, a line joins two that reveal each other, and a dashed arm does "
    "not reveal itself. Filled: where EXP3.G++ begins to explore."
)


def pictures(reading: StudyReading, promised: Promised) -> Iterator[tuple[Section, list[Illustration]]]:
    """Yield the section, and its figures."""
    graphs: dict[str, FeedbackGraph] = {}
    for curve in reading.curves:
        label, graph = reading.label("graph", curve), promised.graph(curve)
        if graph is None:  # code of a user makes it
            continue
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
        figure = draw(graph, exploration_start(graph))
        drawn.append(Illustration(f"graph-{number:02d}", figure, headline(label, graph)))
    left = len(graphs) - len(drawn)
    more = paragraph(f"{left} more {'graphs are' if left > 1 else 'graph is'} not drawn.", "note") if left else ""
    if graphs:
        yield section("The graphs", drawn, paragraph(_NOTE, "note") if drawn else "", more), drawn


def _arms(named: tuple[str, FeedbackGraph]) -> int:
    return named[1].n_arms


def headline(label: str, graph: FeedbackGraph) -> str:
    """Say how many arms it takes to see all, and how many arms there are at most of which none reveals another."""
    K = graph.n_arms
    others = graph.n_edges - (K - graph.arms_without_self_loop.size)
    if others == 0:
        return f"{label}: no arm reveals another. This is a bandit."
    if graph.n_edges == K * K:
        return f"{label}: every arm reveals all. This is full information."
    numbers = graph.numbers(_BUDGET)
    alone = numbers.independence
    apart = f"{alone.lower}" if alone.exact else f"{alone.lower} to {alone.upper}"
    tell = f"the largest set in which no arm reveals another has {apart} of {K} arms"
    if graph.observability.kind == "none":
        return f"{label}: {tell}, and some arm is never seen."
    cover = numbers.domination.upper
    return f"{label}: {cover} arm{'s' * (cover > 1)} show{'s' * (cover == 1)} all, and {tell}."


def draw(drawn: FeedbackGraph, marked: npt.NDArray[np.int64]) -> Figure:
    """Draw a graph, with some of its arms filled."""
    drawing = lay_out(drawn)
    figure, axes = new(size=(3.4, 3.4))
    axes.set_position((0, 0, 1, 1))
    axes.set_axis_off()
    axes.set_xlim(0, SIDE)
    axes.set_ylim(SIDE, 0)
    axes.set_aspect("equal")
    for line in drawing.lines:
        _edge(axes, line, fine=len(drawing.lines) > 6 * drawn.n_arms)
    loops = np.ones(drawn.n_arms, np.bool_)
    loops[drawn.arms_without_self_loop] = False
    for arm, (x, y) in enumerate(drawing.place.tolist()):
        filled = arm in marked
        face, rim = (colour(0), colour(0)) if filled else (PAPER, INK)
        dashes = "-" if loops[arm] else "--"
        axes.add_patch(Circle((x, y), drawing.radius, facecolor=face, edgecolor=rim, linestyle=dashes, zorder=3))
        size = 0.45 * drawing.radius * (0.8 if arm > 99 else 1.0)
        axes.text(x, y, str(arm), color=PAPER if filled else INK, fontsize=size, ha="center", va="center", zorder=4)
    return figure


def _edge(axes: Axes, line: Line, *, fine: bool) -> None:
    corners = [line.start, line.end] if line.bend is None else [line.start, line.bend, line.end]
    codes = [Outline.MOVETO, Outline.LINETO] if line.bend is None else [Outline.MOVETO, Outline.CURVE3, Outline.CURVE3]
    axes.add_patch(
        FancyArrowPatch(
            path=Outline(corners, codes),
            arrowstyle="-" if line.both else "-|>,head_length=4,head_width=2",
            mutation_scale=0.7 if fine else 1.2,
            color=MUTED,
            linewidth=0.5 if fine else 1.0,
            shrinkA=0,
            shrinkB=0,
        )
    )
