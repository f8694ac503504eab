"""How figures look, on a page, in a notebook and as files. The same results give the same bytes."""

from __future__ import annotations

import hashlib
import html
import io
import re
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.optimize import isotonic_regression

from sidelong._install import pip_install
from sidelong.errors import SidelongError

try:
    import matplotlib as mpl
except ImportError as missing:
    raise SidelongError(f"Figures need Matplotlib. {pip_install('matplotlib')}") from missing
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.backends.backend_pdf import FigureCanvasPdf
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullFormatter, NullLocator

from sidelong.display.pgf import pgf

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from matplotlib.axes import Axes

INK, MUTED, PAPER = "#1c2024", "#8a9099", "#fdfdfe"
#: Okabe and Ito's colours, which people who do not see all colours can tell apart, with a dark grey for black.
_COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#3c4148", "#999999")
_LINES = ("-", (0, (5, 1.6)), (0, (3, 1, 1, 1)), (0, (7, 1, 1, 1, 1, 1)))
#: On the page these become variables of its style, which has other values for dark screens.
_VARIABLES = {INK: "ink", MUTED: "muted", PAPER: "paper"} | {each: f"c{k}" for k, each in enumerate(_COLOURS)}
_STYLE = {
    "svg.hashsalt": "sidelong",
    "font.size": 9.5,
    "text.color": INK,
    "axes.labelcolor": INK,
    "axes.edgecolor": MUTED,
    "axes.linewidth": 0.8,
    "xtick.color": MUTED,
    "ytick.color": MUTED,
    "xtick.labelcolor": INK,
    "ytick.labelcolor": INK,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "axes.facecolor": "none",
    "figure.facecolor": "none",
    "grid.color": MUTED,
    "grid.alpha": 0.25,
    "grid.linewidth": 0.7,
    "lines.solid_capstyle": "round",
}

#: So many characters of a number fit beside the label of the axis, in the room that `new` leaves by default.
_FITS = 4

#: In a notebook there is no style of ours: text has the colour of the page, and lines have colours that suit both.
_IN_NOTEBOOK = "".join(
    f"--{variable}:{'currentColor' if value in {INK, _COLOURS[6]} else 'transparent' if value == PAPER else value};"
    for value, variable in _VARIABLES.items()
)


class Chart(Figure):
    """A figure of Matplotlib that a notebook shows by itself, in the colours of its page."""

    def _repr_html_(self) -> str:
        drawn = svg(self, "", "")
        name = f"chart-{hashlib.sha256(drawn.encode()).hexdigest()[:12]}"
        said = "; ".join(each for axes in self.axes for each in (axes.get_title(loc="left"), axes.get_ylabel()) if each)
        picture = svg(self, name, html.escape(said, quote=True))
        width = self.get_size_inches()[0] * 110
        return f'<div style="{_IN_NOTEBOOK}max-width:{width:.0f}px;background:transparent">{picture}</div>'


def new(x: str = "", y: str = "", *, size: tuple[float, float] = (5.2, 3.3), left: float = 0.62) -> tuple[Chart, Axes]:
    """Return an empty figure, and what to draw into. All is in inches; `left` is the room for what stands there."""
    with mpl.rc_context(_STYLE):
        figure = Chart(figsize=size, dpi=72)
        # Placed by hand: to measure every text, as layout engines do, takes longer than to draw the figure.
        axes = figure.add_axes((left / size[0], 0.5 / size[1], 1 - (left + 0.1) / size[0], 1 - 0.6 / size[1]))
    axes.set_xlabel(x)
    axes.set_ylabel(y)
    return figure, axes


def colour(number: int) -> str:
    """Return the colour of a learner."""
    return _COLOURS[number % len(_COLOURS)]


def line_style(number: int) -> dict[str, Any]:
    """Return how the line of a learner is drawn. Where colours repeat, dashes differ."""
    return {"color": colour(number), "linestyle": _LINES[number // len(_COLOURS) % len(_LINES)], "linewidth": 1.7}


def short(value: float, _position: int | None = None) -> str:
    """Return a number for an axis: 500, 20k, 3M."""
    for unit, letter in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(value) >= unit:
            return f"{value / unit:g}{letter}"
    return f"{value:g}"


def scale(axes: Axes, which: str, *, logarithmic: bool = False, whole: bool = False) -> None:
    """Give an axis its scale and numbers that a person can read."""
    if logarithmic:
        getattr(axes, f"set_{which}scale")("log")
    axis = getattr(axes, f"{which}axis")
    if logarithmic:
        low, high = getattr(axes, f"get_{which}lim")()
        axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0) if high < 90 * low else (1.0,), numticks=9))
        axis.set_minor_locator(NullLocator())
        axis.set_minor_formatter(NullFormatter())
    else:
        axis.set_major_locator(MaxNLocator(5, integer=whole, steps=[1, 2, 2.5, 5, 10]))
    axis.set_major_formatter(FuncFormatter(short))


def label_ends(figure: Figure, axes: Axes, ends: Sequence[tuple[float, str, str]]) -> None:
    """Write names at the right, at the height where their lines end, and let none lie upon another.

    Long numbers at the left get the room that they need.

    Args:
        figure: what the axes are in.
        axes: what the lines were drawn into; its limits are fixed.
        ends: for each line the value where it ends, its name and its colour.

    """
    if not ends:
        return
    box, width = axes.get_position(), figure.get_size_inches()[0]
    low, high = axes.get_ylim()
    longest = max((len(short(y)) for y in axes.get_yticks() if low <= y <= high), default=0)
    left = box.x0 + 0.075 * max(0, longest - _FITS) / width
    room = 0.3 + 0.073 * max(len(name) for _, name, _ in ends)
    axes.set_position((left, box.y0, 1 - left - min(room / width, 0.5), box.height))
    points = axes.transData.transform([(axes.get_xlim()[1], y) for y, *_ in ends])
    heights = axes.transAxes.inverted().transform(points)[:, 1]
    order = np.argsort(heights, kind="stable")
    gap = min(0.062, 1 / len(ends))
    step = gap * np.arange(len(ends))
    # As near as can be, in this order, a gap apart and beside the axes.
    placed = np.clip(isotonic_regression(heights[order] - step).x, 0.0, max(0.0, 1.0 - step[-1])) + step
    for k, height in zip(order, placed, strict=True):
        _, name, paint = ends[k]
        at: dict[str, Any] = {"transform": axes.transAxes, "clip_on": False}
        axes.plot([1.0, 1.02, 1.045], [heights[k], heights[k], height], color=paint, linewidth=0.8, **at)
        axes.text(1.055, height, name, va="center", fontsize=8.6, color=INK, parse_math=False, **at)


def svg(figure: Figure, name: str, says: str) -> str:
    """Return a figure as an element of a page: text is text, colours are those of the page, names are its own."""
    sink = io.StringIO()
    with mpl.rc_context({**_STYLE, "svg.fonttype": "none"}):
        FigureCanvasSVG(figure).print_svg(sink, metadata={"Date": None})
    element = sink.getvalue()[sink.getvalue().index("<svg") :]
    element = re.sub(r"<metadata>.*?</metadata>|<style.*?</style>|<!--.*?-->", "", element, flags=re.DOTALL)
    box = re.search(r'viewBox="[^"]*"', element)
    head = f'<svg {box[0] if box else ""} role="img" aria-label="{says}">'
    element = head + element[element.index(">") + 1 :]
    used = set(re.findall(r"#([\w-]+)[\")]", element))
    element = re.sub(r' id="([^"]*)"', lambda m: f' id="{name}-{m[1]}"' if m[1] in used else "", element)
    element = re.sub(r"((?:xlink:href=\"|url\()#)", rf"\g<1>{name}-", element).replace("xlink:href", "href")
    for value, variable in _VARIABLES.items():
        element = element.replace(value, f"var(--{variable})")
    return re.sub(r"\n\s*", "\n", element)


def save(figure: Figure, path: Path) -> list[Path]:
    """Write a figure for a paper: as SVG, PDF, PGF and PNG."""
    paths = [path.with_name(f"{path.name}.{kind}") for kind in ("svg", "pdf", "pgf", "png")]
    figure.set_facecolor("white")  # whatever they are laid upon
    with mpl.rc_context({**_STYLE, "svg.fonttype": "path", "pdf.fonttype": 42}):
        FigureCanvasSVG(figure).print_svg(paths[0], metadata={"Date": None})
        FigureCanvasPdf(figure).print_pdf(paths[1], metadata={"CreationDate": None})
        paths[2].write_text(pgf(figure), encoding="utf-8")
        figure.set_dpi(200)
        FigureCanvasAgg(figure).print_png(paths[3])
    return paths
