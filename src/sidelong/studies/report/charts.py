"""The figures of a report, each a function of what it shows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from sidelong.display.curves import plot_curve
from sidelong.display.figures import INK, MUTED, colour, label_ends, line_style, new, scale

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from matplotlib.figure import Figure

    from sidelong.simulation.scoreboard import Scoreboard
    from sidelong.studies.curves import Curve
    from sidelong.studies.report.promised import Bound


#: How many times the highest mean a linear axis is high at most, so that means can be told apart.
_ABOVE = 1.5


class Series(NamedTuple):
    """A learner in a figure."""

    label: str
    number: int  #: which colour it has
    curve: Curve


def regret(
    series: Sequence[Series], bounds: Mapping[str, tuple[Bound, int]], *, logarithmic: bool, rounds: str = "rounds"
) -> Figure:
    """Draw the mean regret over rounds with its interval and the spread of runs, and bounds in the colour of theirs."""
    figure, axes = new(rounds, "regret")
    last = int(max(each.curve.rounds[-1] for each in series))
    highest = max(float(max(each.curve.band[1].max(), each.curve.spread[1].max())) for each in series)
    if not logarithmic:  # single runs that lose far more would press all means flat on the axis
        highest = min(highest, _ABOVE * max(float(each.curve.band[1].max()) for each in series))
    shown = {
        name: each for name, each in bounds.items() if logarithmic or each[0].values[-1] <= 1.25 * max(highest, 1e-9)
    }
    if logarithmic:
        axes.set_yscale("log")
    ends = []
    for label, number, curve in series:
        mean, style = curve.regret.mean(axis=0), line_style(number)
        plot_curve(axes, curve.rounds, mean, curve.band, style, curve.spread)
        ends.append((float(mean[-1]), label, style["color"]))
    for name, (bound, number) in shown.items():
        axes.plot(bound.rounds, bound.values, color=colour(number), linestyle=":", linewidth=1.5)
        if bound.rounds.size == 1:
            axes.plot(bound.rounds, bound.values, color=colour(number), marker="v", markersize=5, clip_on=False)
        ends.append((float(bound.values[-1]), name, colour(number)))
    top = max([highest, *(float(bound.values[-1]) for bound, _ in shown.values())])
    first = max(1, last / 1_000) if logarithmic else 0
    axes.set_xlim(first, max(last, first + 1))
    if logarithmic:
        positive = [float(each.curve.regret.mean(axis=0)[each.curve.rounds >= last / 1_000].min()) for each in series]
        axes.set_ylim(max(min(positive, default=1.0), highest / 1e5, 1e-6), 1.6 * max(top, 1e-5))
    else:
        lowest = min(float(min(each.curve.band[0].min(), each.curve.spread[0].min())) for each in series)
        axes.set_ylim(1.05 * min(0.0, lowest), 1.05 * top if top > 0 else 1.0)
    scale(axes, "x", logarithmic=logarithmic)
    scale(axes, "y", logarithmic=logarithmic)
    inside = [end for end in ends if end[0] > 0 or not logarithmic]
    label_ends(figure, axes, [(max(y, axes.get_ylim()[0]), name, paint) for y, name, paint in inside])
    return figure


def against(
    name: str, points: Mapping[str, Sequence[tuple[float, Curve]]], styles: Mapping[str, int], *, whole: bool = False
) -> Figure:
    """Draw the regret at the end against a parameter, with intervals, for each learner."""
    figure, axes = new(name, "regret at the end")
    x = np.array([value for drawn in points.values() for value, _ in drawn])
    means = np.array([curve.final.mean() for drawn in points.values() for _, curve in drawn])
    wide = bool((x > 0).all() and x.max() >= 8 * x.min())
    tall = bool((means > 0).all() and means.max() >= 8 * means.min())
    for learner, drawn in points.items():
        mean = np.array([curve.final.mean() for _, curve in drawn])
        ends = np.array([[band[-1] for band in curve.band] for _, curve in drawn]).T
        style = line_style(styles[learner])
        axes.errorbar(
            [value for value, _ in drawn], mean, np.abs(ends - mean),
            marker="o", markersize=3.5, capsize=2, elinewidth=1, **style,
        )  # fmt: skip
    # The last marker, which is as wide as the first, must not be cut.
    axes.set_xlim(
        *((x.min() / 1.1, 1.05 * x.max()) if wide else (x.min() - 0.04 * np.ptp(x), x.max() + 0.03 * np.ptp(x)))
    )
    if not tall:
        axes.set_ylim(bottom=min(0.0, axes.get_ylim()[0]))
    scale(axes, "x", logarithmic=wide, whole=whole)
    if np.unique(x).size <= 8:
        axes.set_xticks(np.unique(x))
    scale(axes, "y", logarithmic=tall)
    axes.set_ylim(axes.get_ylim())
    axes.set_xlim(axes.get_xlim())
    last = {learner: drawn[-1][1].final.mean() for learner, drawn in points.items()}
    label_ends(figure, axes, [(float(y), learner, colour(styles[learner])) for learner, y in last.items()])
    return figure


def trace(name: str, what: str, series: Sequence[Series], *, whole: bool = False) -> Figure:
    """Draw something that learners trace over rounds: the mean over runs, and the range of the middle half."""
    figure, axes = new("rounds", what)
    last = max(each.curve.rounds[-1] for each in series)
    ends, highest = [], 0.0
    for label, number, curve in series:
        style = line_style(number)
        low, high = np.quantile(curve.traces[name], [0.25, 0.75], axis=0)
        mean = curve.traces[name].mean(axis=0)
        axes.plot(curve.rounds, mean, **style)
        axes.fill_between(curve.rounds, low, high, color=style["color"], alpha=0.2, linewidth=0)
        ends.append((float(mean[-1]), label, style["color"]))
        highest = max(highest, float(high.max()), float(mean.max()))
    axes.set_xlim(1, max(last, 2))
    axes.set_ylim(0, 1.08 * highest if highest > 0 else 1.0)
    scale(axes, "x", logarithmic=True)
    scale(axes, "y", whole=whole)
    label_ends(figure, axes, ends)
    return figure


def ratios(board: Scoreboard, styles: Mapping[str, int]) -> Figure:
    """Draw the ratio of each learner to the best on each instance, and its worst."""
    rows = [row for row in board.standing if not np.isnan(board.worst[row])]
    longest = max(len(board.contestants[row]) for row in rows)
    size, left = (5.2, 0.75 + 0.27 * len(rows)), 0.15 + 0.08 * longest
    figure, axes = new("regret, as a multiple of the best on the instance", size=size, left=left)
    for height, row in enumerate(reversed(rows)):
        paint = colour(styles[board.contestants[row]])
        ratio = board.ratio[row][~np.isnan(board.ratio[row])]
        axes.plot([1, ratio.max()], [height, height], color=MUTED, linewidth=0.8, alpha=0.6, zorder=1)
        axes.plot(ratio, [height] * ratio.size, "o", color=paint, markersize=4, alpha=0.55, markeredgewidth=0)
        axes.plot(ratio.max(), height, "o", color=paint, markersize=7.5)
        beside: dict[str, Any] = {"textcoords": "offset points", "va": "center", "fontsize": 8.6, "color": INK}
        axes.annotate(f"{ratio.max():,.3g}", (ratio.max(), height), (7, 0), **beside)
    axes.set_yticks(range(len(rows)), [board.contestants[row] for row in reversed(rows)], parse_math=False)
    axes.grid(visible=False, axis="y")
    axes.tick_params(axis="y", length=0)
    most = max(float(board.worst[row]) for row in rows)
    axes.set_xlim(0.93, max(2.0, most) * 1.35)
    scale(axes, "x", logarithmic=True)
    axes.set_ylim(-0.6, len(rows) - 0.4)
    return figure
