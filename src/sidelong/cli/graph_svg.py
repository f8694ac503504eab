"""A drawing of a graph as SVG, written directly: no other package is needed, and the same graph gives the same file."""

from __future__ import annotations

from typing import TYPE_CHECKING
from xml.sax.saxutils import escape

import numpy as np

from sidelong.errors import GraphFileError

if TYPE_CHECKING:
    from pathlib import Path

    import numpy.typing as npt

    from sidelong.graphs import FeedbackGraph

    Floats = npt.NDArray[np.float64]

__all__ = ["MOST_DRAWN", "draw"]

MOST_DRAWN = 100
_SIDE, _MARGIN = 640, 48
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
<style>line {{ stroke: #94a3b8; stroke-width: {width} }} circle {{ stroke-width: 1.6 }}
circle + text {{ text-anchor: middle }}</style>
<defs><marker id="tip" viewBox="0 0 10 10" refX="9" refY="5" markerWidth="7" markerHeight="7" orient="auto">
<path d="M0 1 L10 5 L0 9 z" fill="#64748b"/></marker></defs>
<rect width="{side}" height="{height}" fill="#ffffff"/>"""


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
    A = graph.matrix()
    loops = A.diagonal().copy()
    np.fill_diagonal(A, val=False)
    place = _layout(A)
    radius = 17.0 if graph.n_arms <= 40 else 12.0
    grouped = marked.max(initial=0) > 0
    name = escape(graph.name or f"{graph.n_arms} arms")
    width = 1.4 if A.sum() <= 8 * graph.n_arms else 0.7
    parts = [_HEAD.format(side=_SIDE, height=_SIDE + 84, name=name, width=width)]
    for i, j in np.argwhere(A).tolist():
        if A[j, i] and j < i:
            continue  # drawn with (j, i)
        inside = grouped and marked[i] == marked[j] and A[j, i]
        parts.append(
            _line(place[i], place[j], radius, colour=_colour(marked[i]) if inside else None, arrow=not A[j, i])
        )
    for arm, (x, y) in enumerate(place.tolist()):
        fill, ink = (_colour(marked[arm]), "#ffffff") if marked[arm] >= 0 else ("#f8fafc", "#0f172a")
        dash = "" if loops[arm] else ' stroke-dasharray="4 3"'
        outline = _colour(marked[arm]) if marked[arm] >= 0 and loops[arm] else "#334155"
        parts += [
            f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{radius:g}" fill="{fill}" stroke="{outline}"{dash}/>',
            f'<text x="{x:.1f}" y="{y:.1f}" dy="0.36em" font-size="{0.82 * radius:.1f}" fill="{ink}">{arm}</text>',
        ]
    parts += _legend(graph, name, mark, grouped=grouped, one_way=bool((A & ~A.T).any()))
    return "\n".join([*parts, "</svg>"]) + "\n"


def _legend(graph: FeedbackGraph, name: str, mark: str, *, grouped: bool, one_way: bool) -> list[str]:
    marks = [f"{'colours' if grouped else 'filled'}: {mark.replace('-', ' ')}"]
    marks.append("dashed: does not reveal itself" if graph.arms_without_self_loop.size else "every arm reveals itself")
    edges = ["line: both reveal each other"] + ["arrow: from an arm to one that it reveals"] * one_way
    return [
        f'<text x="{_MARGIN}" y="{_SIDE + 14}" font-size="16" font-weight="600" fill="#0f172a">{name}</text>',
        *(
            f'<text x="{_MARGIN}" y="{_SIDE + 40 + 20 * row}" font-size="13" fill="#475569">{"; ".join(says)}</text>'
            for row, says in enumerate((marks, edges))
        ),
    ]


def _line(start: Floats, end: Floats, radius: float, *, colour: str | None, arrow: bool) -> str:
    """Return a line between the edges of two circles."""
    step = end - start
    length = max(float(np.hypot(*step)), 1e-9)
    first, last = start + step * (radius / length), end - step * ((radius + 1.5 * arrow) / length)
    style = f' style="stroke: {colour}; stroke-width: 2.4"' if colour else ""
    tip = ' marker-end="url(#tip)"' if arrow else ""
    return f'<line x1="{first[0]:.1f}" y1="{first[1]:.1f}" x2="{last[0]:.1f}" y2="{last[1]:.1f}"{style}{tip}/>'


def _colour(group: int) -> str:
    return _PALETTE[group % len(_PALETTE)]


def _layout(A: npt.NDArray[np.bool_]) -> Floats:
    """Return a place for each arm: by springs where there are few edges, around a circle where there are many."""
    n = len(A)
    if n == 1:
        return np.full((1, 2), _SIDE / 2)
    angle = 2 * np.pi * np.arange(n) / n - np.pi / 2
    place = np.column_stack([np.cos(angle), np.sin(angle)])
    joined = A | A.T
    if joined.sum() <= 5 * n:  # two and a half edges an arm
        place = _springs(place, joined)
    place -= place.min(axis=0)
    extent = np.maximum(place.max(axis=0), 1e-9)
    room = _SIDE - 2 * _MARGIN
    scale = room / extent.max()
    return _apart(place * scale + _MARGIN + (room - extent * scale) / 2)


def _apart(place: Floats) -> Floats:
    """Push arms that overlap from each other, and keep all within the picture."""
    for _ in range(100):
        between = place[:, None] - place[None]
        distance = np.maximum(np.hypot(between[..., 0], between[..., 1]), 1e-3)
        push = np.maximum(44.0 - distance, 0.0) / distance / 4
        np.fill_diagonal(push, 0.0)
        if not push.any():
            break
        place = np.clip(place + (between * push[..., None]).sum(axis=1), _MARGIN / 2, _SIDE - _MARGIN / 2)
    return place


def _springs(place: Floats, joined: npt.NDArray[np.bool_]) -> Floats:
    """Let all arms repel each other and edges pull, in steps that become smaller (Fruchterman, Reingold 1991)."""
    n = len(place)
    rest = 2 / np.sqrt(n)
    for step in np.linspace(0.2, 0.002, 400):
        between = place[:, None] - place[None]
        distance = np.maximum(np.hypot(between[..., 0], between[..., 1]), 1e-3)
        force = (rest / distance) ** 2 * (distance < 3 * rest) - joined * distance / rest
        np.fill_diagonal(force, 0.0)
        move = (between * force[..., None]).sum(axis=1) - 0.3 * place  # and a pull to the middle keeps parts together
        size = np.maximum(np.hypot(move[:, 0], move[:, 1]), 1e-9)
        place = place + move / size[:, None] * np.minimum(size * 0.1, step)[:, None]
    return place
