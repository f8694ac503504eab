"""A report on a study: one page that needs no network, and its figures as files for a paper.

Every figure has a sentence above it that says what it shows, and the numbers decide what that is.
"""

from __future__ import annotations

import html
import json
from importlib import resources
from itertools import groupby
from typing import TYPE_CHECKING, Any

import numpy as np

from sidelong._version import __version__
from sidelong.errors import StudyError
from sidelong.studies import figures
from sidelong.studies.cell import canonical, describe
from sidelong.studies.curves import chance_of_no_difference, read_curves
from sidelong.studies.folder import read_study

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from matplotlib.figure import Figure

    from sidelong.studies.curves import Curve

__all__ = ["write"]


def write(folder: Path, page: Path) -> list[Path]:
    """Write the report on the results in a folder, and its figures into a folder beside it; return what was written."""
    curves = read_curves(folder)
    if not curves:
        raise StudyError(f"{folder}: there are no results here; `sidelong run` writes them.")
    study = read_study(folder) or {"name": folder.name}
    writer = _Writer(curves)
    parts = [writer.scoreboard(), *writer.instances(), *writer.parameters(), writer.origin(folder)]
    style = resources.files("sidelong.studies").joinpath("report.css").read_text()
    title = html.escape(f"{study['name']}: a study with sidelong")
    page.parent.mkdir(parents=True, exist_ok=True)
    page.write_text(
        f'<!doctype html>\n<html lang="en">\n<meta charset="utf-8">\n'
        f'<meta name="viewport" content="width=device-width, initial-scale=1">\n<title>{title}</title>\n'
        f"<style>\n{style}</style>\n<main>\n<h1>{html.escape(study['name'])}</h1>\n"
        f"<p class=lead>{html.escape(writer.lead())}</p>\n" + "\n".join(parts) + "\n</main>\n</html>\n"
    )
    beside = page.with_name(f"{page.stem}-figures")
    beside.mkdir(exist_ok=True)
    for name, figure in writer.drawn.items():
        figures.save(figure, beside / name)
    return [page, *sorted(beside.iterdir())]


class _Writer:
    def __init__(self, curves: Sequence[Curve]) -> None:
        self.drawn: dict[str, Figure] = {}
        self._all = curves
        self._styles = {name: number for number, name in enumerate(dict.fromkeys(curve.learner for curve in curves))}
        # On each instance, the curves of the longest horizon say most.
        by_instance: dict[str, list[Curve]] = {}
        for curve in curves:
            by_instance.setdefault(curve.instance, []).append(curve)
        self._instances = {
            name: [each for each in group if each.rounds[-1] == max(other.rounds[-1] for other in group)]
            for name, group in by_instance.items()
        }

    def lead(self) -> str:
        """Say who won."""
        worst = self._worst_ratios()
        if len(worst) < 2:
            return f"{len(self._all)} curves of {next(iter(worst), 'one learner')}."
        first, second = sorted(worst, key=lambda name: worst[name])[:2]
        most = "the best on every instance" if worst[first] == 1.0 else f"at worst {worst[first]:.2g} times the best"
        return (
            f"{len(self._styles)} learners on {len(self._instances)} instances. {first} is {most}; next is {second}, "
            f"which is at worst {worst[second]:.2g} times the best."
        )

    def _ratios(self) -> dict[str, dict[str, float]]:
        """Return (regret + K) / (smallest regret + K) by instance and learner; K pays for one play of each arm."""
        ratios = {}
        for instance, curves in self._instances.items():
            means = {curve.learner: float(curve.final.mean()) for curve in curves}
            arms = curves[0].arms
            ratios[instance] = {name: (mean + arms) / (min(means.values()) + arms) for name, mean in means.items()}
        return ratios

    def _worst_ratios(self) -> dict[str, float]:
        """Return the worst ratio of each learner that plays all instances."""
        ratios = self._ratios().values()
        return {
            name: max(each[name] for each in ratios) for name in self._styles if all(name in each for each in ratios)
        }

    def scoreboard(self) -> str:
        ratios, worst = self._ratios(), self._worst_ratios()
        rows = [["learner", "worst ratio", *self._instances]]
        for name in sorted(self._styles, key=lambda each: worst.get(each, np.inf)):
            row = [name, f"{worst[name]:.2f}" if name in worst else "-"]
            for instance, curves in self._instances.items():
                mine = [curve for curve in curves if curve.learner == name]
                row.append(_score(mine[0], curves, ratios[instance][name]) if mine else "-")
            rows.append(row)
        note = (
            "Regret at the end: mean over runs ± half of its 95 % bootstrap interval, and the ratio to the smallest of "
            "the instance, with the number of arms added to both. = marks what cannot be told from the best by "
            "Wilcoxon's signed rank test on the same losses (p ≥ 0.01)."
        )
        return f"<h2>Scoreboard</h2>\n{_table(rows)}\n<p class=note>{html.escape(note)}</p>"

    def instances(self) -> Iterator[str]:
        for number, (name, curves) in enumerate(self._instances.items(), 1):
            pair = [
                self._figure(
                    f"regret-{number}-{scale}", figures.regret(curves, self._styles, logarithmic=scale == "log")
                )
                for scale in ("linear", "log")
            ]
            traced = [
                self._figure(f"trace-{number}-{trace}", figures.trace(trace, having, self._styles))
                for trace in ("theta", "exploration_set")
                if (having := [curve for curve in curves if trace in curve.traces])
            ]
            rows = [["learner", "regret", "slope on log-log", "grows like"], *(_growth(curve) for curve in curves)]
            yield (
                f"<section>\n<h2>{html.escape(name)}</h2>\n<p>{html.escape(_headline(curves))}</p>\n"
                f"<div class=figures>{''.join(pair + traced)}</div>\n{_table(rows)}\n</section>"
            )

    def parameters(self) -> Iterator[str]:
        """Draw regret against each number of the study that has three values or more, all else being equal."""
        number = 0
        for place in dict.fromkeys(place for curve in self._all for place in _numbers(curve.spec)):
            having = [(value, curve) for curve in self._all if (value := _numbers(curve.spec).get(place)) is not None]
            rest = {id(curve): _without(curve.spec, place) for _, curve in having}
            having.sort(key=lambda each: (rest[id(each[1])], each[0]))
            for others, group in groupby(having, key=lambda each: rest[id(each[1])]):
                members = list(group)
                points: dict[str, list[tuple[float, Curve]]] = {}
                for value, curve in members:
                    points.setdefault(curve.learner, []).append((value, curve))
                if max(map(len, points.values())) < 3:
                    continue
                number += 1
                figure = self._figure(f"against-{number}", figures.against(place[-1], points, self._styles))
                yield (
                    f"<section>\n<h2>Regret against {html.escape(place[-1])}</h2>\n"
                    f"<p>{html.escape(f'{_trend(place[-1], points)} Here: {others}')}</p>\n"
                    f"<div class=figures>{figure}</div>\n</section>"
                )

    def origin(self, folder: Path) -> str:
        told = [each for curve in self._all for each in curve.provenance]
        facts = [
            ["cells", f"{len(told):,}"],
            ["rounds", f"{sum(each['cell']['rounds'] * each['cell']['runs'] for each in told):,}"],
            ["time", f"{sum(each['seconds'] for each in told):,.1f} s, summed over cells"],
            ["finished", max(each["finished"] for each in told)],
            *(
                [key, ", ".join(sorted({str(each[key]) for each in told}))]
                for key in ("seed", "version", "source", "platform", "python", "numpy", "numba")
            ),
            ["again", f"sidelong run STUDY.toml --out {folder.name} && sidelong report {folder.name}"],
        ]
        return (
            f"<h2>What was run</h2>\n{_table([['', ''], *facts])}\n<p class=note>Written by sidelong {__version__}.</p>"
        )

    def _figure(self, name: str, figure: Figure) -> str:
        self.drawn[name] = figure
        return f"<figure id={name}>{figures.svg(figure)}</figure>"


def _score(mine: Curve, curves: Sequence[Curve], ratio: float) -> str:
    low, high = (end[-1] for end in mine.band())
    best = min(curves, key=lambda curve: curve.final.mean())
    chance = None if mine is best else chance_of_no_difference(mine, best)
    same = " =" if chance is not None and chance >= 0.01 else ""
    return f"{mine.final.mean():,.1f} ± {(high - low) / 2:,.1f} ({ratio:.2f}{same})"


def _headline(curves: Sequence[Curve]) -> str:
    ranked = sorted(curves, key=lambda curve: curve.final.mean())
    best, rounds = ranked[0], int(ranked[0].rounds[-1])
    said = f"After {rounds:,} rounds {best.learner} has the smallest regret, {best.final.mean():,.1f}"
    if len(ranked) == 1:
        return f"{said}."
    chance = chance_of_no_difference(best, ranked[1])
    ratio = ranked[1].final.mean() / best.final.mean() if best.final.mean() > 0 else np.inf
    sure = "" if chance is None else f" (p = {chance:.2g})" if chance < 0.01 else ", which may be chance"
    return f"{said}; {ranked[1].learner} follows with {ratio:.2f} times as much{sure}."


def _growth(curve: Curve) -> list[str]:
    low, high = (end[-1] for end in curve.band())
    slope = curve.slope()
    return [
        curve.learner,
        f"{curve.final.mean():,.1f} ({low:,.1f} to {high:,.1f})",
        "-" if slope is None else f"{slope[0]:.2f} ({slope[1]:.2f} to {slope[2]:.2f})",
        _law(curve),
    ]


def _law(curve: Curve) -> str:
    slope, law = curve.slope(), curve.law()
    if slope is not None and slope[2] < 0.05:  # log T itself has a slope of 1 / log T: above 0.05 until T = 5 * 10^8
        return "nothing: it has stopped"
    if law is None:
        return "-"
    return f"{law[0]}, in {law[1]:.0%} of resamples" if law[1] >= 0.9 else "undecided"


def _trend(name: str, points: dict[str, list[tuple[float, Curve]]]) -> str:
    """Say for whom regret changes most along a parameter."""
    changes = {
        learner: drawn[-1][1].final.mean() / drawn[0][1].final.mean()
        for learner, drawn in points.items()
        if len(drawn) > 1 and drawn[0][1].final.mean() > 0
    }
    if not changes:
        return ""
    first, last = (f"{drawn[0]:g}" for drawn in (points[next(iter(changes))][0], points[next(iter(changes))][-1]))
    most, least = max(changes, key=lambda each: changes[each]), min(changes, key=lambda each: changes[each])
    said = f"From {name} = {first} to {last} the regret of {most} becomes {changes[most]:.2g} times"
    return f"{said}, that of {least} {changes[least]:.2g} times." if most != least else f"{said} as large."


def _numbers(spec: dict[str, Any], place: tuple[str, ...] = ()) -> dict[tuple[str, ...], float]:
    """Return all numbers in a spec, by their place."""
    found: dict[tuple[str, ...], float] = {}
    for key, value in spec.items():
        if isinstance(value, dict):
            found |= _numbers(value, (*place, key))
        elif isinstance(value, int | float) and not isinstance(value, bool) and key != "runs":
            found[*place, key] = float(value)
    return found


def _without(spec: dict[str, Any], place: tuple[str, ...]) -> str:
    """Return what a spec says beside the learner and the number at a place."""
    copy = json.loads(canonical(spec))
    inner = copy
    for key in place[:-1]:
        inner = inner[key]
    inner[place[-1]] = "…"
    said = f"{describe(copy['graph'])}, {describe(copy['world'])}, {copy['rounds']} rounds."
    return said if place[0] != "learner" else f"{describe(copy['learner'])}; {said}"


def _table(rows: list[list[str]]) -> str:
    head, *body = [[html.escape(each) for each in row] for row in rows]
    top = f"<thead><tr>{''.join(f'<th>{each}</th>' for each in head)}</tr></thead>" if any(head) else ""
    lines = "\n".join(f"<tr>{''.join(f'<td>{each}</td>' for each in row)}</tr>" for row in body)
    return f"<div class=wide><table>{top}<tbody>\n{lines}\n</tbody></table></div>"
