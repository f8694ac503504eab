"""A graph in a notebook: a drawing in the colours of the page, and what the graph is."""

from __future__ import annotations

import html
from typing import TYPE_CHECKING

from sidelong.display.drawing import SIDE, called, lay_out
from sidelong.display.tables import html_table

if TYPE_CHECKING:
    from sidelong.display.drawing import Line, ShownGraph

_CLEAR = 40  # arms, up to which a small drawing is clear

_HEAD = (
    '<svg viewBox="0 0 {side} {side}" style="max-width:320px;width:100%;display:block" role="img" aria-label="{name}" '
    'font-family="sans-serif"><defs><marker id="{tip}" viewBox="0 0 10 10" refX="9" refY="5" markerWidth="8" '
    'markerHeight="8" orient="auto"><path d="M0 1 L10 5 L0 9 z" fill="currentColor" fill-opacity="0.6"/>'
    "</marker></defs>"
)


def notebook(graph: ShownGraph) -> str:
    """Return what a notebook shows of a graph."""
    rows = [["arms", f"{graph.n_arms:,}"], ["edges", f"{graph.n_edges:,}"]]
    rows.append(["arms that do not reveal themselves", f"{graph.arms_without_self_loop.size:,}"])
    if graph.n_arms <= _CLEAR:
        rows.append(["observability", graph.observability.kind])
    table = html_table([], rows, graph.name or "A feedback graph")
    return f"{table}{_drawing(graph)}" if graph.n_arms <= _CLEAR else table


def _drawing(graph: ShownGraph) -> str:
    drawing = lay_out(graph)
    tip = f"tip-{graph.content_hash[:12]}"
    lacking = set(graph.arms_without_self_loop.tolist())
    name = html.escape(graph.name or "a feedback graph", quote=True)
    parts = [_HEAD.format(side=SIDE, name=name, tip=tip), *(_edge(line, tip) for line in drawing.lines)]
    for arm, (x, y) in enumerate(drawing.place.tolist()):
        dashes = ' stroke-dasharray="4 3"' if arm in lacking else ""
        parts.append(
            f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{drawing.radius:g}" fill="none" stroke="currentColor" '
            f'stroke-width="1.6"{dashes}/><text x="{x:.1f}" y="{y:.1f}" dy="0.36em" text-anchor="middle" '
            f'font-size="{0.9 * drawing.radius:.1f}" fill="currentColor">{arm}</text>'
        )
        if graph.labels is not None:
            below = f'x="{x:.1f}" y="{y + drawing.radius + 18:.1f}" text-anchor="middle" font-size="17"'
            parts.append(f'<text {below} fill="currentColor">{html.escape(called(graph, arm))}</text>')
    return "".join([*parts, "</svg>"])


def _edge(line: Line, tip: str) -> str:
    x, y = line.start
    bend = "L" if line.bend is None else f"Q{line.bend[0]:.1f},{line.bend[1]:.1f} "
    head = "" if line.both else f' marker-end="url(#{tip})"'
    return (
        f'<path d="M{x:.1f},{y:.1f} {bend}{line.end[0]:.1f},{line.end[1]:.1f}" fill="none" stroke="currentColor" '
        f'stroke-opacity="0.45" stroke-width="1.4"{head}/>'
    )
