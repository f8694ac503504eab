"""Regret against a number of the study, such as the arms, a gap, a density or a budget, all else being equal."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from sidelong.studies.cell import canonical, describe, flat, late, name_of
from sidelong.studies.curves import power
from sidelong.studies.report import charts
from sidelong.studies.report.markup import Illustration, Section, section

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from sidelong.studies.curves import Curve, Power
    from sidelong.studies.report.reading import StudyReading

    Place = tuple[str, ...]

_NAMES = {
    ("graph", "n"): "K",
    ("graph", "r"): "density",
    ("world", "budget"): "corruption",
    ("world", "gaps"): "gap",
    ("rounds",): "T",
}
_NOT_ONE = {"runs", "seed", "checkpoints"}  # numbers that are no parameters


class Sweep(NamedTuple):
    """The curves of some learners along a number."""

    name: str
    others: str  #: what else was the same for all
    points: dict[str, list[tuple[float, Curve]]]  #: by learner, three or more for one of them


def parameters(reading: StudyReading) -> Iterator[tuple[Section, list[Illustration]]]:
    """Yield a section for each number that has three values or more, and its figures."""
    found: dict[str, list[Sweep]] = {}
    for sweep in sweeps(reading):
        found.setdefault(sweep.name, []).append(sweep)
    for name, group in found.items():
        drawn = []
        for number, sweep in enumerate(group, 1):
            whole = all(value.is_integer() for points in sweep.points.values() for value, _ in points)
            styles = {learner: reading.styles.get(learner, k) for k, learner in enumerate(sweep.points)}
            figure = charts.against(name, sweep.points, styles, whole=whole)
            said = trend(name, exponents(sweep), _changes(sweep))
            drawn.append(Illustration(f"against-{name}-{number:02d}", figure, said, sweep.others))
        yield section(f"Regret against {name}", drawn, about="At the end of the rounds, with 95 % intervals."), drawn


def sweeps(reading: StudyReading) -> Iterator[Sweep]:
    """Yield the sweeps of a study. Numbers that go in step in the study are one."""
    together = _in_step(reading.study or {})
    for place in dict.fromkeys(place for curve in reading.curves for place in _numbers(curve.spec)):
        if place in together and place != together[0]:
            continue
        groups: dict[str, list[tuple[float, Curve]]] = {}
        for curve in reading.curves:
            if (value := _numbers(curve.spec).get(place)) is not None:
                rest = _without(curve.spec, together if place in together else [place])
                groups.setdefault(rest, []).append((value, curve))
        for rest, members in groups.items():
            points: dict[str, list[tuple[float, Curve]]] = {}
            for value, curve in sorted(members, key=lambda each: each[0]):
                points.setdefault(_learner(reading, curve, place), []).append((value, curve))
            if max(map(len, points.values())) >= 3:
                yield Sweep(_NAMES.get(place, place[-1]), _said(rest), points)


def trend(name: str, exponents: Mapping[str, Power], changes: Mapping[str, float]) -> str:
    """Say how regret changes along a parameter: by its power where there is one, else by a factor.

    Args:
        name: of the parameter.
        exponents: of each learner, the power of the parameter like which its regret grows.
        changes: of each learner, the regret at the last value in parts of that at the first.

    """
    if exponents:
        ranked = sorted(exponents, key=lambda learner: exponents[learner].exponent)
        told = [_power(name, learner, exponents[learner]) for learner in dict.fromkeys([ranked[-1], ranked[0]])]
        return f"The regret of {'; that of '.join(told)}."
    if not changes:
        return f"Regret against {name}."
    most, least = max(changes, key=lambda each: changes[each]), min(changes, key=lambda each: changes[each])
    said = (
        f"From the first value of {name} to the last, the regret of {most} becomes {changes[most]:.2g} times as large"
    )
    return f"{said}, that of {least} {changes[least]:.2g} times." if most != least else f"{said}."


def _power(name: str, learner: str, found: Power) -> str:
    value, low, high = found
    if low <= 0.0 <= high or abs(value) < 0.05:
        return f"{learner} does not depend on {name}"
    return f"{learner} {'grows' if value > 0 else 'falls'} like {name}^{value:.2f} ({low:.2f} to {high:.2f})"


def exponents(sweep: Sweep) -> dict[str, Power]:
    """Return the power of the parameter like which the regret of each learner grows, where both are positive."""
    found = {}
    for learner, drawn in sweep.points.items():
        x = np.array([value for value, _ in drawn])
        means = np.vstack(
            [[curve.final.mean() for _, curve in drawn], np.array([c.resampled[:, -1] for _, c in drawn]).T]
        )
        if x.size < 3 or (x <= 0).any() or (means <= 0).any() or x.max() < 2 * x.min():
            continue
        found[learner] = power(x, means)
    return found


def _changes(sweep: Sweep) -> dict[str, float]:
    ends = {learner: (drawn[0][1].final.mean(), drawn[-1][1].final.mean()) for learner, drawn in sweep.points.items()}
    return {learner: float(last / first) for learner, (first, last) in ends.items() if first > 0}


def _learner(reading: StudyReading, curve: Curve, place: Place) -> str:
    """Return who a curve is of; along an option of learners, that option is no part of it."""
    return reading.label("learner", curve) if place[0] != "learner" else name_of(curve.spec["learner"])


def _numbers(spec: dict[str, Any]) -> dict[Place, float]:
    return {
        place: float(value)
        for place, value in flat(spec).items()
        if isinstance(value, int | float) and not isinstance(value, bool) and place[-1] not in _NOT_ONE
    }


def _in_step(content: Any, place: Place = ()) -> list[Place]:
    """Return the places of all `zip` in a study."""
    if isinstance(content, dict):
        if "zip" in content:
            return [place]
        return [found for key, value in content.items() for found in _in_step(value, (*place, key))]
    if isinstance(content, list):
        return [found for value in content for found in _in_step(value, place)]
    return []


def _without(spec: dict[str, Any], places: list[Place]) -> str:
    """Return what a spec says beside the learner and the numbers at these places."""
    copy = json.loads(canonical(spec))
    if not any(place[0] == "learner" for place in places):
        copy["learner"] = None
    for place in places:
        inner = copy
        for key in place[:-1]:
            inner = inner.get(key) or {}
        if place[-1] in inner:
            inner[place[-1]] = "…"
    return canonical(copy)


def _said(rest: str) -> str:
    spec = json.loads(rest)
    rounds = spec["rounds"] if isinstance(spec["rounds"], str) else f"{spec['rounds']:,}"
    learner = f"{describe(spec['learner'])} on " if spec["learner"] else ""
    delay = late(0 if spec["delay"] == "…" else spec["delay"])  # what changes is not said
    return f"{learner}{describe(spec['graph'])} in {describe(spec['world'])}, {rounds} rounds{delay}"
