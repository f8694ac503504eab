"""The figures of a report. Each can be read on a telephone, and is the same bytes for the same results."""

from __future__ import annotations

import io
import re
from typing import TYPE_CHECKING, Any

import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from matplotlib.axes import Axes

    from sidelong.studies.curves import Curve

__all__ = ["against", "regret", "save", "svg", "trace"]

#: Okabe and Ito's colours, which people who do not see all colours can tell apart.
_COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#888888")
_LINES = ("-", "--", ":", "-.")
_STYLE = {
    "svg.hashsalt": "sidelong",
    "svg.fonttype": "path",
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.alpha": 0.25,
    "legend.frameon": False,
    "legend.fontsize": 8,
}


def regret(curves: Sequence[Curve], styles: Mapping[str, int], *, logarithmic: bool) -> Figure:
    """Draw the mean regret over rounds, with bootstrap bands, on linear or logarithmic axes."""
    figure, axes = _new("rounds", "regret")
    for curve in curves:
        mean, (low, high) = curve.regret.mean(axis=0), curve.band()
        shown = mean > 0 if logarithmic else np.ones(mean.size, np.bool_)
        style = _style(styles[curve.learner])
        axes.plot(curve.rounds[shown], mean[shown], label=curve.learner, **style)
        axes.fill_between(
            curve.rounds[shown], np.maximum(low[shown], 1e-9 if logarithmic else -np.inf), high[shown],
            color=style["color"], alpha=0.18, linewidth=0,
        )  # fmt: skip
    if logarithmic:
        axes.set_xscale("log")
        axes.set_yscale("log")
    else:
        axes.set_ylim(bottom=min(0.0, axes.get_ylim()[0]))
    return _finished(figure, axes)


def against(name: str, points: Mapping[str, Sequence[tuple[float, Curve]]], styles: Mapping[str, int]) -> Figure:
    """Draw the regret at the end against a parameter, with intervals, for each learner."""
    figure, axes = _new(name, "regret at the end")
    for learner, drawn in points.items():
        x = np.array([value for value, _ in drawn])
        mean = np.array([curve.final.mean() for _, curve in drawn])
        ends = np.array([[band[-1] for band in curve.band()] for _, curve in drawn]).T
        axes.errorbar(
            x, mean, np.abs(ends - mean), label=learner, marker="o", markersize=3, capsize=2, **_style(styles[learner])
        )
        if (x > 0).all() and x.max() >= 8 * x.min():
            axes.set_xscale("log")
            axes.set_yscale("log" if axes.get_yscale() == "log" or (mean > 0).all() else "linear")
    return _finished(figure, axes)


def trace(name: str, curves: Sequence[Curve], styles: Mapping[str, int]) -> Figure:
    """Draw something that learners trace over rounds: the mean over runs, and the range of the middle half."""
    figure, axes = _new("rounds", name.replace("_", " "))
    for curve in curves:
        style = _style(styles[curve.learner])
        low, high = np.quantile(curve.traces[name], [0.25, 0.75], axis=0)
        axes.plot(curve.rounds, curve.traces[name].mean(axis=0), label=curve.learner, **style)
        axes.fill_between(curve.rounds, low, high, color=style["color"], alpha=0.18, linewidth=0)
    axes.set_xscale("log")
    return _finished(figure, axes)


def svg(figure: Figure) -> str:
    """Return a figure as an element for a page, as wide as the page lets it be."""
    sink = io.StringIO()
    with mpl.rc_context(_STYLE):
        figure.savefig(sink, format="svg", metadata={"Date": None, "Creator": None})
    element = sink.getvalue()[sink.getvalue().index("<svg") :]
    return re.sub(r'^<svg([^>]*?) width="[^"]*"', r"<svg\1", re.sub(r'^(<svg[^>]*?) height="[^"]*"', r"\1", element))


def save(figure: Figure, path: Path) -> None:
    """Write a figure for a paper: as SVG, PDF and PNG."""
    with mpl.rc_context(_STYLE):
        figure.savefig(path.with_suffix(".svg"), metadata={"Date": None})
        figure.savefig(path.with_suffix(".pdf"), metadata={"CreationDate": None})
        figure.savefig(path.with_suffix(".png"), dpi=200)


def _new(x: str, y: str) -> tuple[Figure, Axes]:
    with mpl.rc_context(_STYLE):
        figure = Figure(figsize=(4.6, 3.2), layout="constrained")
        axes = figure.add_subplot()
    axes.set_xlabel(x)
    axes.set_ylabel(y)
    return figure, axes


def _finished(figure: Figure, axes: Axes) -> Figure:
    with mpl.rc_context(_STYLE):
        axes.legend(loc="best")
    return figure


def _style(number: int) -> dict[str, Any]:
    return {
        "color": _COLOURS[number % len(_COLOURS)],
        "linestyle": _LINES[number // len(_COLOURS) % len(_LINES)],
    }
