"""A drawing of a graph as SVG, written directly: no other package is needed, and the same graph gives the same file."""

from __future__ import annotations

from typing import TYPE_CHECKING
from xml.sax.saxutils import escape

import numpy as np

from sidelong.errors import GraphFileError

if TYPE_CHECKING:
    from pathlib import Path

    import numpy.typing as npt

    from sidelong.display.drawing import Line
    from sidelong.graphs import FeedbackGraph

    Floats = npt.NDArray[np.float64]

_LEFT = 48
_PALETTE = (
    "#0f766e",
    "#b45309",
    "#4338ca",
    "#be123c",
    "#4d7c0f",
    "#0369a1",
    "#a21caf",
    "#57534e",
    "#047857",
    "#c2410c",
)


_HEAD = """\
<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {side} {height}" width="{side}" height="{height}" role="img"
  font-family="system-ui, sans-serif">
<title>{name}</title>
<style>.edge {{ fill: none; stroke: #94a3b8; stroke-width: {width} }} circle {{ stroke-width: 1.6 }}
circle + text {{ text-anchor: middle }}</style>
<defs><marker id="tip" viewBox="0 0 10 10" refX="9" refY="5" markerWidth="7" markerHeight="7" orient="auto">
<path d="M0 1 L10 5 L0 9 z" fill="#64748b"/></marker></defs>
<rect width="{side}" height="{height}" fill="#ffffff"/>"""

_LABEL = (
    '<text class="label" x="{x:.1f}" y="{y:.1f}" font-size="11" fill="#0f172a" text-anchor="middle" '
    'stroke="#ffffff" stroke-width="3" paint-order="stroke">{label}</text>'
)


def draw(path: Path, graph: FeedbackGraph, marked: npt.NDArray[np.int64], mark: str) -> None:
    """Write the drawing of a graph to a file.

    Args:
        path: the file.
        graph: the graph, of up to `MOST_DRAWN` arms.
        marked: for each arm the number of its group, which has a colour, or -1 for none.
        mark: what the colours stand for.

    """
    try:
        path.write_text(_picture(graph, marked, mark), encoding="utf-8")
    except OSError as error:
        raise GraphFileError(f"{path}: cannot be written: {error.strerror or error}.") from error


def _picture(graph: FeedbackGraph, marked: npt.NDArray[np.int64], mark: str) -> str:
    from sidelong.display.drawing import SIDE, called, lay_out  # noqa: PLC0415  # the compiler takes half a second to load

    drawing = lay_out(graph)
    loops = np.ones(graph.n_arms, np.bool_)
    loops[graph.arms_without_self_loop] = False
    radius = drawing.radius
    grouped = marked.max(initial=0) > 0
    name = escape(graph.name or f"{graph.n_arms} arms")
    width = 1.4 if len(drawing.lines) <= 8 * graph.n_arms else 0.7
    parts = [_HEAD.format(side=SIDE, height=SIDE + 84, name=name, width=width)]
    for line in drawing.lines:
        inside = grouped and line.both and marked[line.first] == marked[line.second]
        parts.append(_path(line, _colour(marked[line.first]) if inside else None))
    labels: list[str] = []
    for arm, (x, y) in enumerate(drawing.place.tolist()):
        fill, ink = (_colour(marked[arm]), "#ffffff") if marked[arm] >= 0 else ("#f8fafc", "#0f172a")
        dash = "" if loops[arm] else ' stroke-dasharray="4 3"'
        outline = _colour(marked[arm]) if marked[arm] >= 0 and loops[arm] else "#334155"
        parts += [
            f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{radius:g}" fill="{fill}" stroke="{outline}"{dash}/>',
            f'<text x="{x:.1f}" y="{y:.1f}" dy="0.36em" font-size="{0.82 * radius:.1f}" fill="{ink}">{arm}</text>',
        ]
        if graph.labels is not None:
            labels.append(_LABEL.format(x=x, y=y + radius + 11, label=escape(called(graph, arm))))
    parts += labels
    parts += _legend(SIDE, graph, name, mark, grouped=grouped, one_way=not all(line.both for line in drawing.lines))
    return "\n".join([*parts, "</svg>"]) + "\n"


def _legend(top: int, graph: FeedbackGraph, name: str, mark: str, *, grouped: bool, one_way: bool) -> list[str]:
    marks = [f"{'colours' if grouped else 'filled'}: {mark.replace('-', ' ')}"]
    marks.append("dashed: does not reveal itself" if graph.arms_without_self_loop.size else "every arm reveals itself")
    edges = ["line: both reveal each other"] + ["arrow: from an arm to one that it reveals"] * one_way
    return [
        f'<text x="{_LEFT}" y="{top + 14}" font-size="16" font-weight="600" fill="#0f172a">{name}</text>',
        *(
            f'<text x="{_LEFT}" y="{top + 40 + 20 * row}" font-size="13" fill="#475569">{"; ".join(says)}</text>'
            for row, says in enumerate((marks, edges))
        ),
    ]


def _path(line: Line, colour: str | None) -> str:
    """Return an edge."""
    style = f' style="stroke: {colour}; stroke-width: 2.4"' if colour else ""
    tip = "" if line.both else ' marker-end="url(#tip)"'
    bend = "L" if line.bend is None else f"Q{_point(line.bend)} "
    return f'<path class="edge" d="M{_point(line.start)} {bend}{_point(line.end)}"{style}{tip}/>'


def _point(place: Floats) -> str:
    return f"{place[0]:.1f},{place[1]:.1f}"


def _colour(group: int) -> str:
    return _PALETTE[group % len(_PALETTE)]
