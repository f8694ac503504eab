"""The two schedules of EXP3.G++ from 10 to a million arms: the time of a round, of a rare one and of the longest.

`python benchmarks/epoch_times.py` measures in about half an hour, prints the table, and puts the numbers, the table and
the figure into docs; `--draw` makes the table and the figure once more from the numbers that are there.
"""

from __future__ import annotations

import argparse
import csv
import random
import re
import resource
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import matplotlib as mpl
import numpy as np
from matplotlib import pyplot as plt
from measure import machine, means, seconds

import sidelong as sl
from sidelong._jit import compiled
from sidelong.graphs.sequences import fixed
from sidelong.learners import exp3gpp, exp3gpp_epoch
from sidelong.simulation.loop import loop_for, new_tally

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy.typing as npt
    from matplotlib.axes import Axes

DOCS = Path(__file__).parents[1] / "docs"
NUMBERS, FIGURE, PAGE = DOCS / "figures" / "epoch.csv", DOCS / "figures" / "epoch.svg", DOCS / "epoch.md"
ARMS = tuple(10**power for power in range(1, 7))
#: So many rounds are timed one by one.
SINGLE = 500_000
SCHEDULES = {"round": exp3gpp.LEARNER, "epoch": exp3gpp_epoch.LEARNER}


def power_law(n_arms: int, links: int = 2) -> sl.FeedbackGraph:
    """Return an undirected graph in which each new arm is joined with old ones in proportion to their degrees."""
    rng = random.Random(n_arms)  # noqa: S311  # no secret
    ends = [end for arm in range(links + 1) for other in range(arm) for end in (arm, other)]
    for arm in range(links + 1, n_arms):
        for _ in range(links):
            ends += (arm, rng.choice(ends))
    return sl.FeedbackGraph.from_edges(np.reshape(ends, (-1, 2)), n_arms, undirected=True, self_loops=True)


FAMILIES = {
    "ring of 5": lambda K: sl.graphs.circulant(K, 2),
    "power law": power_law,
    "intervals of 5": lambda K: sl.graphs.banded(K, 2),
    "cliques of 5": lambda K: sl.graphs.cliques([5] * (K // 5)),
}


class Row(NamedTuple):
    """What one schedule takes on one graph, in seconds."""

    graph: str
    arms: int
    schedule: str
    mean: float  #: over all rounds, refreshes included
    rare: float  #: the 99.9th percentile of single rounds
    longest: float
    refreshes: int


def main() -> None:
    """Measure, or read what was measured, and write it down."""
    parser = argparse.ArgumentParser(description="Measure the two schedules of EXP3.G++.")
    parser.add_argument("--draw", action="store_true", help="use the numbers that are in docs/figures")
    parser.add_argument("--arms", type=int, default=ARMS[-1], help="only up to so many arms, and keep nothing")
    arguments = parser.parse_args()
    if arguments.draw:
        with NUMBERS.open(encoding="utf-8") as file:
            rows = [Row(r[0], int(r[1]), r[2], *map(float, r[3:6]), int(r[6])) for r in list(csv.reader(file))[1:]]
        place = PAGE.read_text(encoding="utf-8").partition("<!-- measured -->\n")[2].partition("\n")[0]
    else:
        place = f"{machine()}."
        print(place)
        rows = list(measure(arguments.arms))
        print(f"memory: {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3:.0f} MB")
    if arguments.arms == ARMS[-1]:
        keep(rows, place)


def measure(most: int) -> Iterator[Row]:
    """Measure all, and print each row at once."""
    for name, family in FAMILIES.items():
        for K in filter(most.__ge__, ARMS):
            graph = family(K)
            for schedule in SCHEDULES:
                many = max(10**6, 10 * K) if schedule == "epoch" else max(20, 2 * 10**7 // K)
                times, refreshes = single_rounds(graph, schedule, min(many, SINGLE))
                row = Row(
                    name, K, schedule, a_round(graph, many, schedule), *np.quantile(times, [0.999, 1.0]), refreshes
                )
                print(row, flush=True)
                yield row


def a_round(graph: sl.FeedbackGraph, rounds: int, schedule: str) -> float:
    """Return the mean time of a round of the processor, refreshes included, without initial rounds."""
    world = sl.losses.bernoulli(means(graph.n_arms))
    settings: dict[str, Any] = {"checkpoints": 1, "threads": 1, "start": "none", "refresh": schedule}
    sl.simulate("exp3.g++", graph, world, 2, **settings)  # compiled beforehand
    return seconds(lambda: sl.simulate("exp3.g++", graph, world, rounds, **settings)) / rounds


def single_rounds(graph: sl.FeedbackGraph, schedule: str, rounds: int) -> tuple[npt.NDArray[np.float64], int]:
    """Return the times of the first rounds, of the processor, one call of the loop each, and how many refreshed.

    The call itself, some 3 microseconds, is a part of each.
    """
    learner, world = SCHEDULES[schedule], sl.losses.bernoulli(means(graph.n_arms))
    params = learner.configure(graph, start="none", refresh=schedule)
    state, tally = learner.init(params, graph), new_tally(learner, graph.n_arms)
    known = (params, state, fixed(graph).arrays, world.arrays, np.uint64(0), 0)
    play = compiled(loop_for(learner, world, anew=False), *known, 1, 0, tally)
    marks = np.zeros(rounds + 1)
    for k in range(rounds):
        marks[k] = time.thread_time()
        play(*known, 1 + k, 1 + k, tally)
    marks[rounds] = time.thread_time()
    refreshes = int(tally.traces[learner.traces.index("refreshed")]) if schedule == "epoch" else rounds
    return np.diff(marks), refreshes


def keep(rows: list[Row], place: str) -> None:
    """Write the numbers, the table and the figure."""
    with NUMBERS.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows(
            [Row._fields, *((*r[:3], *(f"{t:.4g}" for t in r[3:6]), r.refreshes) for r in rows)]
        )
    text = PAGE.read_text(encoding="utf-8")
    measured = f"{place}\n\n{table(rows)}"
    page = re.sub(r"(?<=<!-- measured -->\n).*?(?=<!-- /measured -->)", lambda _: measured, text, flags=re.DOTALL)
    PAGE.write_text(page, encoding="utf-8")
    draw(rows).savefig(FIGURE, metadata={"Date": None})


def table(rows: list[Row]) -> str:
    """Return the table in Markdown: a line for each graph and number of arms."""
    lines = [
        "| graph | K | every round: mean | 99.9 % | longest | epochs: mean | 99.9 % | longest | faster |",
        "|---|---:|---:|---:|---:|---:|---:|---:|---:|",
    ]
    for exact, epoch in zip(rows[::2], rows[1::2], strict=True):
        cells = [*map(span, exact[3:6]), *map(span, epoch[3:6]), f"{float(f'{exact.mean / epoch.mean:.3g}'):,g} x"]
        lines.append(f"| {exact.graph} | {exact.arms:,} | " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def span(seconds_: float) -> str:
    """Write a time with three digits."""
    unit, factor = next((u, f) for u, f in (("s", 1), ("ms", 1e3), ("µs", 1e6), ("ns", 1e9)) if seconds_ * f >= 1)
    return f"{seconds_ * factor:.3g} {unit}"


COLOURS = dict(zip(FAMILIES, ("#0b6e99", "#c2571a", "#3a7d34", "#7a4fa3"), strict=True))


def draw(rows: list[Row]) -> plt.Figure:
    """Draw the mean of both schedules, and the worst rounds of the epochs."""
    mpl.rcParams.update({"font.size": 10, "axes.spines.top": False, "axes.spines.right": False, "svg.hashsalt": "e"})
    figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4.8), sharey=True)
    figure.subplots_adjust(left=0.085, right=0.98, bottom=0.12, top=0.76, wspace=0.08)
    figure.text(0.012, 0.925, "A round that hardly grows with the number of arms", fontsize=15, fontweight="bold")
    about = (
        "EXP3.G++ with both schedules on four kinds of graphs, one core. A refresh looks at every arm, and is a pause."
    )
    figure.text(0.012, 0.865, about, color="#555555")
    left.set_title("Mean of all rounds, refreshes included", loc="left", fontsize=10.5)
    right.set_title("Single rounds in epochs: 99.9 % of them, and the longest", loc="left", fontsize=10.5)
    for name, colour in COLOURS.items():
        chosen = [row for row in rows if row.graph == name]
        plot(left, [row for row in chosen if row.schedule == "round"], "mean", color=colour, linestyle="--")
        epochs = [row for row in chosen if row.schedule == "epoch"]
        plot(left, epochs, "mean", color=colour, label=name)
        plot(right, epochs, "rare", color=colour)
        plot(right, epochs, "longest", color=colour, linestyle=":")
    left.legend(frameon=False, title="epochs", alignment="left")
    left.text(300, 3e-5, "every round", ha="right", color="#555555")
    right.text(3e4, 6e-3, "longest", ha="right", color="#555555")
    right.text(3e3, 4e-5, "99.9 %", color="#555555")
    left.set(xlabel="arms", ylabel="seconds a round")
    right.set(xlabel="arms")
    return figure


def plot(axes: Axes, rows: list[Row], what: str, **style: Any) -> None:
    """Draw one line."""
    axes.loglog([row.arms for row in rows], [getattr(row, what) for row in rows], linewidth=1.6, **style)


if __name__ == "__main__":
    main()
