"""Draw the figures of docs/reproduce.md and write its tables, from what `sidelong reproduce` has played.

``sidelong reproduce && python docs/pictures/studies.py results/reproduce``
"""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import matplotlib as mpl
import numpy as np
from matplotlib import ticker
from matplotlib.figure import Figure as Canvas

from sidelong.studies import reference
from sidelong.studies.cell import describe
from sidelong.studies.reproduce.cells import read_cells
from sidelong.studies.reproduce.statements import judge, read_expected

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.axes import Axes

    from sidelong.studies.reproduce.cells import PlayedCell
    from sidelong.studies.reproduce.statements import Figure

DOCS = Path(__file__).parent.parent
sys.path.append(str(DOCS / "_ext"))
import numbers_of_pages as numbers

_COLOURS = ("#0b6e99", "#c2571a", "#4c8c4a", "#7a5195", "#555555", "#b8860b")
_MARKERS = "osD^vP"
_WORDS = {
    "bernoulli": "stochastic",
    "constrained": "adversarial",
    "self_loops": "self-loops",
    "graph.n": "number of arms",
    "delay": "rounds until feedback comes",
    "world.budget": "corrupted rounds",
    "misses.3": "rounds in which the best arm is not played",
    "trace_exploration_mass": "chance that a round explores",
}


def main(results: Path) -> None:
    """Renew what is there of each study."""
    page = DOCS / "reproduce.md"
    text = page.read_text("utf-8")
    for name in reference.names():
        if (results / name).exists():
            expected, cells = read_expected(reference.find(name)), read_cells(results / name)
            save(expected.figure, cells, DOCS / "figures" / f"study-{name}.svg")
            judged = [judge(each, cells).texts for each in expected.statement]
            rows = [f"| {' | '.join(texts)} |" for texts in judged]
            lines = ["", "| statement | expected | measured | verdict |", "|---|---:|---:|---|", *rows, ""]
            place = rf"(?<=<!-- {re.escape(name)} -->\n).*?(?=<!-- / -->)"
            text = re.sub(place, lambda _, lines=lines: "\n".join(lines), text, count=1, flags=re.DOTALL)
            if name == "changing-graphs":  # in the order of the statements: a stochastic and an adversarial one of each
                shares = [f"{float(measured):.2f}" for _, _, measured, _ in judged]
                found = {"exp3.g++": shares[:2], "glance": shares[2:4]}
                numbers.record(**{f"changing graphs {learner}": ", ".join(pair) for learner, pair in found.items()})
    page.write_text(text, "utf-8")


def save(figure: Figure, cells: Sequence[PlayedCell], path: Path) -> None:
    """Draw the figure of a study, and write it in the format that the path names."""
    chosen = [cell for cell in cells if cell.fits(figure.of)]
    panels = list(dict.fromkeys(cell.facts[figure.across] for cell in chosen)) if figure.across else [""]
    learners = list(dict.fromkeys(cell.facts["learner"] for cell in chosen))
    named = figure.scale == "names"
    names = list(dict.fromkeys(cell.facts[figure.x] for cell in chosen)) if named else []
    height = 1.6 + 0.24 * len(names) if named else 4.0
    style = {"font.size": 10, "axes.spines.top": False, "axes.spines.right": False, "svg.hashsalt": "sidelong"}
    with mpl.rc_context(style):
        canvas = Canvas(figsize=(9.9, height), layout="constrained")
        canvas.suptitle(figure.title, x=0.01, ha="left", fontsize=13, fontweight="bold")
        axes = canvas.subplots(1, len(panels), sharex=True, sharey=True, squeeze=False)[0]
        for panel, axis in zip(panels, axes, strict=True):
            shown = [cell for cell in chosen if not panel or cell.facts[figure.across] == panel]
            for number, learner in enumerate(learners):
                mine = [cell for cell in shown if cell.facts["learner"] == learner]
                if mine:
                    _draw(axis, figure, mine, names, number)
            axis.set_title(_WORDS.get(panel, panel), loc="left", fontsize=10.5)
            _scale(axis, figure, names)
        axes[0].set_ylabel("" if named else _WORDS.get(figure.y, figure.y))
        _name_learners(chosen, axes[-1])
        axes[-1].legend(frameon=False, fontsize=9, loc="center left", bbox_to_anchor=(1.0, 0.5))
        canvas.savefig(path, metadata={"Date": None} if path.suffix == ".svg" else None, dpi=150)


def _draw(axis: Axes, figure: Figure, cells: Sequence[PlayedCell], names: Sequence[str], number: int) -> None:
    """Draw one learner."""
    colour, marker = _COLOURS[number % len(_COLOURS)], _MARKERS[number % len(_MARKERS)]
    label = cells[0].facts["learner"]
    if figure.x == "round":
        for cell in cells:
            values = cell.means(figure.y)
            axis.plot(cell.rounds[values > 0], values[values > 0], color=colour, linewidth=1.5, label=label)
        return
    last = {cell.facts[figure.x]: float(cell.means(figure.y)[-1]) for cell in cells}
    if names:
        axis.plot(
            [*last.values()], [names.index(each) for each in last], marker, color=colour, markersize=5, label=label
        )
        return
    x = sorted(last)
    axis.plot(x, [last[each] for each in x], f"-{marker}", color=colour, linewidth=1.5, markersize=5, label=label)


def _name_learners(cells: Sequence[PlayedCell], axis: Axes) -> None:
    """Leave out the options that all learners have."""
    tables = {cell.facts["learner"]: cell.spec["learner"] for cell in cells}
    first = next(iter(tables.values()))
    common = {key for key, value in first.items() if all(each.get(key) == value for each in tables.values())} - {"name"}
    for line in axis.lines:
        table = tables[str(line.get_label())]
        line.set_label(describe({key: value for key, value in table.items() if key not in common}))


def _scale(axis: Axes, figure: Figure, names: Sequence[str]) -> None:
    if figure.scale == "names":
        axis.set_xscale("log")
        low, high = axis.get_xlim()
        axis.xaxis.set_major_locator(ticker.LogLocator(subs=(1, 2, 5) if high < 90 * low else (1,)))  # room for numbers
        axis.xaxis.set_major_formatter(lambda value, _: f"{value:,.10g}")
        axis.xaxis.set_minor_formatter(ticker.NullFormatter())
        axis.set_yticks(range(len(names)), names)
        axis.set_ylim(len(names) - 0.5, -0.5)
        axis.grid(axis="y", color="#dddddd", linewidth=0.6)
        axis.set_xlabel(_WORDS.get(figure.y, figure.y))
        return
    axis.set_xlabel(_WORDS.get(figure.x, figure.x))
    if figure.scale == "log":
        values = np.concatenate([line.get_xdata() for line in axis.lines])
        least = min((value for value in values if value > 0), default=1.0)
        # A logarithmic axis that has room for 0.
        axis.set_xscale("symlog", linthresh=least) if (values == 0).any() else axis.set_xscale("log")
        axis.set_yscale("log")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
