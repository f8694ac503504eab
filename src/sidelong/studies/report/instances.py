"""Each instance: regret over time beside what theorems promise, how it grows, and what learners trace."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sidelong.studies.report import charts, headlines
from sidelong.studies.report.charts import Series
from sidelong.studies.report.markup import Illustration, Section, Table, section

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy as np

    from sidelong.studies.curves import Curve
    from sidelong.studies.report.promised import Bound, Promised
    from sidelong.studies.report.reading import Instance, StudyReading

_TRACES = {
    "theta": ("θ", "θ, the sum of p over P,"),
    "exploration_set": ("arms in the exploration set", "The size of the exploration set"),
}
_MOST_BOUNDS = 2
_FAR = 10.0  # times the smallest regret: what is further away would press all others flat on a linear axis


def instances(reading: StudyReading, promised: Promised) -> Iterator[tuple[Section, list[Illustration]]]:
    """Yield a section for each instance, and its figures."""
    for number, instance in enumerate(reading.instances, 1):
        found = {name: promised.of(curve) for name, curve in instance.curves.items()}
        bounds = {name: bound for name, bound in found.items() if bound is not None}
        series = [Series(name, reading.styles[name], curve) for name, curve in instance.curves.items()]
        drawn = [*_regret(number, instance, series, bounds), *_traces(number, series)]
        head = ["learner", "regret (95 %)", "slope on log-log (95 %)", "grows like", "promised", "used"]
        rows = [[name, *_row(instance.curves[name], bounds.get(name))] for name in instance.ranked]
        yield section(instance.title, drawn, Table(f"{number:02d}-regret", head, rows), about=instance.about), drawn


def _regret(number: int, instance: Instance, series: list[Series], bounds: dict[str, Bound]) -> Iterator[Illustration]:
    order = sorted(bounds, key=lambda name: (not bounds[name].numbered, float(bounds[name].values[-1])))
    shown = {name: bounds[name] for name in order[:_MOST_BOUNDS]}
    styles = {each.label: each.number for each in series}
    named = {_called(name, shown): (bound, styles[name]) for name, bound in shown.items()}
    band = headlines.interval(min(len(each.curve.runs) for each in series))
    promised = f" Dotted: what is promised. {headlines.bounds(bounds, instance.curves)}" if shown else ""
    name = f"{number:02d}-regret"
    near, far = _near(series)
    linear = charts.regret(near, {}, logarithmic=False)
    left_out = f" Too far above to be drawn here: {headlines.listed(far)}." if far else ""
    yield Illustration(f"{name}-linear", linear, headlines.leader(instance), band + left_out)
    growth = headlines.growth(instance.curves)
    yield Illustration(f"{name}-log", charts.regret(series, named, logarithmic=True), growth, band + promised)


def _near(series: list[Series]) -> tuple[list[Series], list[str]]:
    """Return the learners that one linear axis can show, and the names of the others."""
    most = _FAR * max(min(float(each.curve.final.mean()) for each in series), 1.0)
    near = [each for each in series if float(each.curve.final.mean()) <= most]
    return near, [each.label for each in series if float(each.curve.final.mean()) > most]


def _called(name: str, shown: dict[str, Bound]) -> str:
    """Return what a bound is called in a figure: a theorem by its number, with its learner if several have it."""
    bound = shown[name]
    if not bound.numbered:
        return f"bound of {name}"
    return bound.name if sum(each.name == bound.name for each in shown.values()) == 1 else f"{bound.name}, {name}"


def _traces(number: int, series: list[Series]) -> Iterator[Illustration]:
    for name, (axis, what) in _TRACES.items():
        having = [each for each in series if name in each.curve.traces]
        ends = {each.label: _ends(each.curve.traces[name].mean(axis=0)) for each in having}
        if any(headlines.moves(*each) for each in ends.values()):  # a flat panel says nothing
            note = "Mean since the checkpoint before, over runs; the band holds the middle half of them."
            figure = charts.trace(name, axis, having, whole=name == "exploration_set")
            yield Illustration(f"{number:02d}-{name.replace('_', '-')}", figure, headlines.trace(what, ends), note)


def _ends(values: np.ndarray) -> tuple[float, float]:
    """Return the largest value in the first half of the checkpoints, and the last one."""
    return float(values[: max(1, values.size // 2)].max()), float(values[-1])


def _row(curve: Curve, bound: Bound | None) -> list[str]:
    low, high = (end[-1] for end in curve.band)
    slope, (law, share) = curve.slope, curve.law or (None, 0.0)
    several = len(curve.runs) > 1
    sure = f", in {share:.0%} of resamples" if law is not None and curve.growth == law else ""
    return [
        f"{curve.final.mean():,.1f}{f' ({low:,.1f} to {high:,.1f})' * several}",
        "-" if slope is None else f"{slope.exponent:.2f}{f' ({slope.low:.2f} to {slope.high:.2f})' * several}",
        "-" if curve.growth is None else f"{curve.growth}{sure}",
        "-" if bound is None else f"{bound.values[-1]:,.0f} ({bound.name})",
        "-" if bound is None else headlines.percent(curve.final.mean() / bound.values[-1]),
    ]
