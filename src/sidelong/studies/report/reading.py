"""The results of a study as a report sees them: curves by instance and learner, with names that are short but clear."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from sidelong.simulation.scoreboard import Scoreboard, mean_and_error
from sidelong.studies.cell import canonical, describe, flat, late, name_of, options_of
from sidelong.studies.curves import read_curves
from sidelong.studies.files import Files
from sidelong.studies.folder import read_study
from sidelong.studies.report.pairs import duels

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from sidelong.studies.curves import Curve
    from sidelong.studies.report.pairs import Duel

Table = dict[str, Any]


@dataclass(frozen=True)
class Instance:
    """A graph and a world, and the curves of those who played there, by learner."""

    title: str  #: short
    about: str  #: in full
    curves: dict[str, Curve]

    @property
    def ranked(self) -> list[str]:
        """The learners, the smallest regret first."""
        return sorted(self.curves, key=lambda name: float(self.curves[name].final.mean()))

    @cached_property
    def duels(self) -> dict[tuple[str, str], Duel]:
        """All pairs of learners."""
        return duels(self.curves)


class StudyReading:
    """All curves of a study."""

    def __init__(self, name: str, study: Table | None, curves: Sequence[Curve], files: Files, missing: int = 0) -> None:
        self.name = name
        self.missing = missing  #: how many cells of the study have no results
        self.study = study  #: what the study file said, if it is known
        self.files = files
        self.curves = curves
        self._labels = {kind: _labels(curve.spec[kind] for curve in curves) for kind in ("learner", "graph", "world")}
        self.styles = {label: number for number, label in enumerate(self._labels["learner"].values())}

    def label(self, kind: str, curve: Curve) -> str:
        """Return a short name for the learner, the graph or the world of a curve."""
        return self._labels[kind][canonical(curve.spec[kind])]

    @cached_property
    def instances(self) -> list[Instance]:
        """What was played. Of several horizons, the longest says most."""
        groups: dict[str, list[Curve]] = {}
        for curve in self.curves:
            groups.setdefault(canonical([curve.spec["graph"], curve.spec["world"], curve.delay]), []).append(curve)
        found = []
        for group in groups.values():
            longest = max(int(curve.rounds[-1]) for curve in group)
            measured: dict[str, dict[str, Curve]] = {}
            for curve in group:
                if curve.rounds[-1] == longest:
                    how = canonical([curve.spec["runs"], curve.spec["checkpoints"]])
                    measured.setdefault(how, {})[self.label("learner", curve)] = curve
            found += [
                self._instance(curves, longest, f" · #{number}" if len(measured) > 1 else "")
                for number, curves in enumerate(measured.values(), 1)
            ]
        return found

    def _instance(self, curves: dict[str, Curve], longest: int, number: str) -> Instance:
        first = next(iter(curves.values()))
        said = f", feedback {first.delay:,} rounds late" if isinstance(first.delay, int) else late(first.delay)
        about = f"{describe(first.spec['graph'])} in {describe(first.spec['world'])}{said if first.delay else ''}"
        title = f"{self.label('graph', first)} · {self.label('world', first)}"
        title += late(first.delay).replace(",", " ·", 1)
        return Instance(f"{title}{number}", f"{about}, {longest:,} rounds, {_runs(len(first.runs))}", curves)

    @cached_property
    def board(self) -> Scoreboard:
        """The mean regret of each learner on each instance."""
        regret, error = np.full((2, len(self.styles), len(self.instances)), np.nan)
        for column, instance in enumerate(self.instances):
            for label, curve in instance.curves.items():
                place = self.styles[label], column
                regret[place], error[place] = mean_and_error(curve.final)
        arms = np.array([next(iter(instance.curves.values())).arms for instance in self.instances])
        return Scoreboard(tuple(self.styles), tuple(each.title for each in self.instances), regret, error, arms)


def read(folder: Path) -> StudyReading:
    """Read the results in a folder."""
    curves = read_curves(folder)
    study = read_study(folder) or {}
    missing = len(study.get("cells", ())) - sum(len(curve.provenance) for curve in curves)
    files = Files(folder=folder / "files")
    return StudyReading(study.get("name", folder.name), study.get("study"), curves, files, max(missing, 0))


def _labels(tables: Iterable[Table]) -> dict[str, str]:
    """Return a short name for each table: its name, and what sets it apart from others of that name."""
    distinct = {canonical(table): table for table in tables}
    labels = {}
    for key, table in distinct.items():
        others = [flat(options_of(each)) for each in distinct.values() if name_of(each) == name_of(table)]
        own = [
            str(value) if isinstance(value, str) else f"{place[-1]}={_value(value)}"
            for place, value in flat(options_of(table)).items()
            if any(other.get(place) != value for other in others)
        ]
        labels[key] = " ".join([name_of(table), *own])
    if len(set(labels.values())) < len(labels):  # two files of one name, or options cut short
        labels = {key: f"{label} #{number}" for number, (key, label) in enumerate(labels.items(), 1)}
    return labels


def _runs(count: int) -> str:
    return f"{count:,} run{'s' * (count > 1)}"


def _value(value: Any) -> str:
    text = f"{value:g}" if isinstance(value, float) else json.dumps(value)
    return text if len(text) <= 24 else f"{text[:21]}..."
