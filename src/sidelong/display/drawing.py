"""Where the arms of a graph are drawn, and how its edges run between them: what every picture of a graph is made from.

The same graph gives the same drawing, on any machine.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt

    Floats = npt.NDArray[np.float64]

MOST_DRAWN = 100  #: arms; more of them are no picture
SIDE = 640  #: of the square that everything lies in
_MARGIN = 48
_BENDS = (0.12, 0.25, 0.4, 0.6)  # how far from its middle a line may bend, in parts of its length


class ShownGraph(Protocol):
    """What is shown of a graph. `sidelong.FeedbackGraph` has it, which this package may not import."""

    @property
    def n_arms(self) -> int: ...  # noqa: D102
    @property
    def n_edges(self) -> int: ...  # noqa: D102
    @property
    def name(self) -> str | None: ...  # noqa: D102
    @property
    def labels(self) -> tuple[str, ...] | None: ...  # noqa: D102
    @property
    def content_hash(self) -> str: ...  # noqa: D102
    @property
    def arms_without_self_loop(self) -> npt.NDArray[np.int64]: ...  # noqa: D102
    @property
    def observability(self) -> Any: ...  # noqa: D102
    def matrix(self) -> npt.NDArray[np.bool_]: ...  # noqa: D102


class Line(NamedTuple):
    """An edge, from the rim of one arm to the rim of another: straight if `bend` is None, else a quadratic curve."""

    first: int
    second: int
    both: bool  #: whether they reveal each other; else the first reveals the second
    start: Floats
    bend: Floats | None  #: the control point of the curve
    end: Floats


class Drawing(NamedTuple):
    """A graph in the plane, with y downwards. What an arm reveals of itself is not drawn."""

    place: Floats  #: (K, 2) the middle of each arm
    radius: float  #: of each arm
    lines: list[Line]


def lay_out(graph: ShownGraph) -> Drawing:
    """Return the drawing of a graph of up to `MOST_DRAWN` arms."""
    A = graph.matrix()
    np.fill_diagonal(A, val=False)
    place = _places(A)
    radius = 17.0 if graph.n_arms <= 40 else 12.0
    lines = [
        _line(place, radius, i, j, both=bool(A[j, i])) for i, j in np.argwhere(A).tolist() if not (A[j, i] and j < i)
    ]
    return Drawing(place, radius, lines)


def called(graph: ShownGraph, arm: int, most: int = 16) -> str:
    """Return what an arm is called where it is shown: its label, in so many printable characters, or its number."""
    if graph.labels is None:
        return str(arm)
    label = "".join(each if each.isprintable() else " " for each in graph.labels[arm])
    return label if len(label) <= most else f"{label[: most - 3]}..."


def _line(place: Floats, radius: float, i: int, j: int, *, both: bool) -> Line:
    """Run an edge past the arms that are in its way, where a bend is enough for that."""
    others = np.delete(place, [i, j], axis=0)
    step = place[j] - place[i]
    across = np.array([-step[1], step[0]])
    middle = (place[i] + place[j]) / 2
    bends = [0.0, *(side * size for size in _BENDS for side in (1, -1))]
    clear = [_clearance(place[i], middle + bend * across, place[j], others) for bend in bends]
    enough = [k for k, distance in enumerate(clear) if distance >= radius + 3]
    bend = bends[enough[0]] if enough else 0.0
    control = middle + bend * across
    start, end = _toward(place[i], control, radius), _toward(place[j], control, radius + (0.0 if both else 1.5))
    return Line(i, j, both, start, control if bend else None, end)


def _clearance(start: Floats, control: Floats, end: Floats, others: Floats) -> float:
    """Return how near a curve comes to the middle of any other arm."""
    t = np.linspace(0, 1, 33)[:, None]
    points = (1 - t) ** 2 * start + 2 * t * (1 - t) * control + t**2 * end
    between = points[:, None] - others[None]
    return float(np.hypot(between[..., 0], between[..., 1]).min(initial=np.inf))


def _toward(start: Floats, aim: Floats, length: float) -> Floats:
    step = aim - start
    moved: Floats = start + step * (length / max(float(np.hypot(*step)), 1e-9))
    return moved


def _places(A: npt.NDArray[np.bool_]) -> Floats:
    """Return a place for each arm: by springs where there are few edges, around a circle where there are many."""
    n = len(A)
    if n == 1:
        return np.full((1, 2), SIDE / 2)
    angle = 2 * np.pi * np.arange(n) / n - np.pi / 2
    place = np.column_stack([np.cos(angle), np.sin(angle)])
    joined = A | A.T
    if joined.any() and joined.sum() <= 5 * n:  # two and a half edges an arm
        place = _springs(place, joined)
    place -= place.min(axis=0)
    extent = np.maximum(place.max(axis=0), 1e-9)
    room = SIDE - 2 * _MARGIN
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
        place = np.clip(place + (between * push[..., None]).sum(axis=1), _MARGIN / 2, SIDE - _MARGIN / 2)
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
