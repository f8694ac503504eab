"""What the examples share: three contestants on the same streams, a table of what each lost, and a figure.

Every stream has two halves, and between them the world turns. What a contestant lost is counted against the arm that
was best in each half: against somebody who knew both halves beforehand.
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure

import sidelong as sl

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType

    import numpy.typing as npt

    Floats = npt.NDArray[np.float64]

FIGURES = Path(__file__).parents[1] / "docs" / "figures"


class Contestant(NamedTuple):
    """A learner, and whether it may look to the side."""

    label: str
    learner: str
    looks: bool  #: whether it is told all that its play revealed, or its own loss alone


OURS = Contestant("glance, looking sidelong", "glance", looks=True)
BLIND = Contestant("glance, its own loss alone", "glance", looks=False)
RIVAL = Contestant("UCB-N, looking sidelong", "ucb-n", looks=True)


def marks(rounds: int) -> npt.NDArray[np.int64]:
    """Return the rounds after which losses are measured: some 240, with the last one of each half."""
    return np.unique(np.append(np.linspace(1, rounds, 240).astype(np.int64), rounds // 2))


@dataclass
class Comparison:
    """What each contestant lost beyond the best arm of each half."""

    rounds: npt.NDArray[np.int64]  #: after which it was measured
    regret: dict[str, Floats]  #: by label, one row a stream

    def lost(self, who: Contestant | str) -> tuple[float, float]:
        """Return what was lost before and after the turn, on average over the streams."""
        mean = self.regret[who if isinstance(who, str) else who.label].mean(axis=0)
        before = float(mean[self.rounds == self.rounds[-1] // 2][0])
        return before, float(mean[-1]) - before

    @property
    def saved(self) -> float:
        """The share of what is lost that looking to the side saves."""
        return 1.0 - sum(self.lost(OURS)) / sum(self.lost(BLIND))

    @property
    def factor(self) -> float:
        """How many times as much as glance the rival lost after the turn."""
        return self.lost(RIVAL)[1] / self.lost(OURS)[1]

    def __str__(self) -> str:
        rows = [f"{'lost beyond the best arm of each half':38}{'before':>9}{'after':>9}{'in all':>9}"]
        for who in (OURS, BLIND, RIVAL):
            before, after = self.lost(who)
            rows.append(f"{who.label:38}{before:9.1f}{after:9.1f}{before + after:9.1f}")
        rows.append(f"Looking to the side saved {self.saved:.0%}.")
        rows.append(f"After the turn UCB-N lost {self.factor:.1f} times as much as glance.")
        return "\n".join(rows)


def compare(
    world: Callable[[int], Floats], play: Callable[[Contestant, int], Floats], streams: int, unit: float = 1.0
) -> Comparison:
    """Let the three play the same streams.

    Args:
        world: from the number of a stream to the losses of all arms, one row a round.
        play: from a contestant and the number of a stream to what it has suffered in all, at the `marks`.
        streams: how many there are.
        unit: what a loss of 1 is worth.
    """
    regret: dict[str, list[Floats]] = {who.label: [] for who in (OURS, BLIND, RIVAL)}
    for stream in range(streams):
        losses = world(stream)
        halves = np.split(losses, [len(losses) // 2])
        best = np.concatenate([half[:, half.sum(axis=0).argmin()] for half in halves]).cumsum()
        measured = marks(len(losses))
        for who in (OURS, BLIND, RIVAL):
            regret[who.label].append(unit * (play(who, stream) - best[measured - 1]))
    return Comparison(measured, {label: np.array(rows) for label, rows in regret.items()})


def simulate(who: Contestant, graph: sl.FeedbackGraph | sl.GraphSequence, losses: Floats, seed: int) -> Floats:
    """Play where the graph is known before the draw; return what was suffered in all, at the `marks`."""
    seen = graph if who.looks else sl.graphs.self_loops(graph.n_arms)
    world, rounds = sl.losses.table(losses), len(losses)
    result = sl.simulate(who.learner, seen, world, rounds, seed=seed, checkpoints=marks(rounds))
    return result.loss[0]


def compare_on(
    graph: sl.FeedbackGraph | sl.GraphSequence, world: Callable[[int, int], Floats], rounds: int, streams: int
) -> Comparison:
    """Let the three play the streams of a world, made by rounds and stream; the graph is known before the draw."""
    return compare(
        lambda stream: world(rounds, stream),
        lambda who, stream: simulate(who, graph, world(rounds, stream), stream),
        streams,
    )


def in_all(suffered: list[float]) -> Floats:
    """Return what was suffered in all, at the `marks`."""
    return np.cumsum(suffered)[marks(len(suffered)) - 1]


STYLE = {  # as in the figures of a report
    "svg.hashsalt": "sidelong",
    "svg.fonttype": "path",
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.alpha": 0.25,
}
LINES = (("#0072B2", "-"), ("#E69F00", "--"), ("#D55E00", "-."), ("#009E73", ":"))  # ours comes first


def draw(comparison: Comparison, title: str, x: str, y: str, turn: str) -> Figure:
    """Draw what each contestant lost over the rounds: the mean over the streams, and two standard errors around it."""
    figure = Figure(figsize=(7.2, 3.8), layout="constrained", facecolor="white")
    axes = figure.add_subplot()
    rounds = comparison.rounds
    for (label, rows), (colour, line) in zip(comparison.regret.items(), LINES, strict=False):
        mean, error = rows.mean(axis=0), 2.0 * rows.std(axis=0) / np.sqrt(max(len(rows) - 1, 1))
        axes.plot(rounds, mean, line, color=colour, linewidth=1.8, label=label)
        axes.fill_between(rounds, mean - error, mean + error, color=colour, alpha=0.15, linewidth=0)
    axes.set_xlim(0, rounds[-1])
    axes.set_ylim(bottom=min(0.0, axes.get_ylim()[0]))
    axes.axvline(rounds[-1] // 2, color="#555555", linewidth=0.8)
    place = {"xycoords": ("data", "axes fraction"), "textcoords": "offset points", "va": "top"}
    axes.annotate(turn, (rounds[-1] // 2, 0.98), (5, 0), color="#555555", fontsize=8, **place)
    axes.set_xlabel(x)
    axes.set_ylabel(y)
    axes.set_title(title, loc="left", fontweight="bold")
    axes.legend(loc="upper left", frameon=False)
    return figure


def main(example: ModuleType) -> None:
    """Run an example from the command line: print its table, and write its figure."""
    name = Path(str(example.__file__)).stem.replace("_", "-")
    parser = argparse.ArgumentParser(description=str(example.__doc__).splitlines()[0])
    parser.add_argument("--rounds", type=int, default=example.ROUNDS, help="rounds of a stream (%(default)s)")
    parser.add_argument("--streams", type=int, default=example.STREAMS, help="how many streams (%(default)s)")
    parser.add_argument("--figure", type=Path, default=FIGURES / f"example-{name}.svg", help="where the figure goes")
    parser.add_argument("--write", action="store_true", help="also put what is printed into the page")
    given = parser.parse_args()
    if given.rounds < 2 or given.streams < 1:
        parser.error("there must be two rounds and one stream, or more.")
    comparison = example.compare(given.rounds, given.streams)
    print(comparison)
    if given.write:
        sys.path.append(str(FIGURES.parent / "_ext"))
        import numbers_of_pages as numbers  # noqa: PLC0415  # of the documentation

        numbers.write_table(f"examples/{name}.md", "printed", f"```\n{comparison}\n```")
        numbers.record(**{f"{name} saved": f"{100 * comparison.saved:.0f} %"})
        numbers.record(**{f"{name} factor": f"{comparison.factor:.1f} \N{MULTIPLICATION SIGN}"})
    with mpl.rc_context(STYLE):
        figure = draw(comparison, **example.FIGURE)
        given.figure.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(given.figure, metadata={"Date": None} if given.figure.suffix == ".svg" else None, dpi=150)
    print(f"The figure is in {given.figure}.")
