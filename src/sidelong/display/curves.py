"""Curves over rounds: the mean over runs, with the interval in which it lies with 95 % confidence."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    Array = npt.NDArray[np.float64]

RESAMPLES = 1_000
ENDS = (0.025, 0.975)  # of an interval of 95 %


class NamedCurve(NamedTuple):
    """A line of a figure."""

    label: str
    rounds: npt.NDArray[np.int64]  #: (C,)
    values: Array  #: (runs, C)


def resampled(values: Array) -> Array:
    """Return (resamples, C): means over runs that were drawn anew, with replacement; the same draws for all curves."""
    runs = len(values)
    drawn = np.random.Generator(np.random.Philox(key=runs)).multinomial(runs, [1 / runs] * runs, RESAMPLES)
    return drawn @ values / runs


def band(values: Array) -> tuple[Array, Array]:
    """Return the ends of the bootstrap interval of the mean, at each checkpoint."""
    low, high = np.quantile(resampled(values), ENDS, axis=0)
    return low, high


def plot_curve(
    axes: Any,
    rounds: npt.NDArray[np.int64],
    mean: Array,
    ends: tuple[Array, Array],
    style: Any,
    spread: tuple[Array, Array] | None = None,
) -> None:
    """Draw the mean, its interval, and, paler, the spread of runs; on a logarithmic axis where the mean is positive."""
    logarithmic = axes.get_yscale() == "log"
    some = mean > 0 if logarithmic else np.ones(mean.size, np.bool_)
    axes.plot(rounds[some], mean[some], **style)
    for band, alpha in ((ends, 0.2), (spread, 0.09)):
        if band is not None:
            low = np.maximum(band[0][some], 1e-12 if logarithmic else -np.inf)
            axes.fill_between(rounds[some], low, band[1][some], color=style["color"], alpha=alpha, linewidth=0)


def chart(
    curves: Sequence[NamedCurve], what: str, title: str = "", axes: Any = None, *, logarithmic: bool = False
) -> Any:
    """Draw curves, and return the figure.

    Args:
        curves: the lines, each named at its right end, or in a legend if there are many.
        what: what they show.
        title: what stands above them.
        axes: the axes of Matplotlib to draw into; a new figure if not given.
        logarithmic: whether both axes are logarithmic.

    """
    from sidelong.display.figures import colour, label_ends, line_style, new, scale  # noqa: PLC0415  # matplotlib

    figure, own = (None, axes) if axes is not None else new("rounds", what)
    if figure is None:
        own.set_xlabel("rounds")
        own.set_ylabel(what)
    last = max(int(curve.rounds[-1]) for curve in curves)
    if logarithmic:
        own.set_yscale("log")
    ends = []
    for number, curve in enumerate(curves):
        mean = curve.values.mean(axis=0)
        plot_curve(own, curve.rounds, mean, band(curve.values), line_style(number) | {"label": curve.label})
        ends.append((float(mean[-1]), curve.label, colour(number)))
    own.set_xlim(max(1, last / 1_000) if logarithmic else 0, max(last, 2))
    if not logarithmic:
        own.set_ylim(bottom=min(0.0, own.get_ylim()[0]))
    own.set_ylim(own.get_ylim())
    scale(own, "x", logarithmic=logarithmic)
    scale(own, "y", logarithmic=logarithmic)
    if title:
        own.set_title(title, loc="left", fontsize=9.5)
        if figure is not None:  # room above the axes
            box = own.get_position()
            own.set_position((box.x0, box.y0, box.width, box.height - 0.25 / figure.get_size_inches()[1]))
    if figure is None:
        if len(curves) > 1:
            own.legend(frameon=False)
        return own.get_figure()
    label_ends(figure, own, [end for end in ends if end[0] > 0 or not logarithmic])
    return figure
