"""What several learners lost in several worlds: a table, a figure, and columns for pandas."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from sidelong.display.curves import NamedCurve, band, chart
from sidelong.display.tables import data_frame, html_table, latex_table, text_table
from sidelong.errors import SimulationError
from sidelong.simulation.scoreboard import Scoreboard, mean_and_error

if TYPE_CHECKING:
    from sidelong.simulation.result import Result


@dataclass(frozen=True, repr=False, eq=False)
class Comparison:
    """The results of `compare`. ``print`` shows the table, and so does a notebook."""

    learners: tuple[str, ...]  #: what they are called, in the order in which they were given
    worlds: tuple[str, ...]
    n_arms: int
    results: dict[tuple[str, str], Result]  #: by learner and world, of those that could play
    unplayable: dict[tuple[str, str], str]  #: by learner and world, why a learner could not play there

    def __getitem__(self, place: tuple[str, str]) -> Result:
        """Return the result of a learner in a world: ``comparison["glance", "bernoulli"]``."""
        if place in self.unplayable:
            raise SimulationError(f"{place[0]} did not play in {place[1]}: {self.unplayable[place]}")
        if place not in self.results:
            raise SimulationError(
                f"There is no result of {place!r}: give a learner of {self.learners} and a world of {self.worlds}."
            )
        return self.results[place]

    @cached_property
    def scoreboard(self) -> Scoreboard:
        """The mean regret at the end, its standard error and its ratio to the best, by learner and world."""
        regret, error = np.full((2, len(self.learners), len(self.worlds)), np.nan)
        for (learner, world), result in self.results.items():
            place = self.learners.index(learner), self.worlds.index(world)
            regret[place], error[place] = mean_and_error(result.regret[:, -1])
        return Scoreboard(self.learners, self.worlds, regret, error, np.full(len(self.worlds), self.n_arms))

    def plot(self, world: str | None = None, axes: Any = None, *, logarithmic: bool = False) -> Any:
        """Draw the mean regret of each learner over rounds, with 95 % bootstrap intervals.

        Args:
            world: which world; the first if not given. ``comparison.worlds`` has their names.
            axes: the axes of Matplotlib to draw into; a new figure if not given.
            logarithmic: whether both axes are logarithmic.

        Returns:
            The figure of Matplotlib: a notebook shows it, and `figure.savefig("regret.pdf")` keeps it.

        """
        chosen = self.worlds[0] if world is None else world
        if chosen not in self.worlds:
            raise SimulationError(f"There is no world named {chosen!r}: the worlds are {', '.join(self.worlds)}.")
        drawn = [(learner, self.results.get((learner, chosen))) for learner in self.learners]
        curves = [NamedCurve(learner, result.rounds, result.regret) for learner, result in drawn if result is not None]
        if not curves:
            raise SimulationError(f"No learner could play in {chosen}.")
        return chart(curves, "regret", chosen, axes, logarithmic=logarithmic)

    def to_pandas(self) -> Any:  # pandas is optional
        """Return a pandas.DataFrame: learner, world, run, round, regret and loss, one row for each checkpoint."""
        parts = []
        for (learner, world), result in self.results.items():
            columns = {name: values for name, values in result.columns().items() if not name.startswith("trace_")}
            names = {"learner": learner, "world": world}
            parts.append({key: np.full(columns["run"].size, each) for key, each in names.items()} | columns)
        return data_frame({key: np.concatenate([part[key] for part in parts]) for key in parts[0]})

    def to_latex(self) -> str:
        """Return the table for a paper: a ``tabular`` with the rules of the package booktabs."""
        return latex_table(*self._table(), comment=self._title)

    def __repr__(self) -> str:
        return "\n".join([f"{self._title}.", "", text_table(*self._table()), *self._notes])

    def _repr_html_(self) -> str:
        return html_table(*self._table(), f"{self._title}.", self._notes)

    @property
    def _title(self) -> str:
        first = next(iter(self.results.values()))
        runs = "1 run" if first.runs.size == 1 else f"{first.runs.size:,} runs"
        half = ", ± half of its 95 % interval" if first.runs.size > 1 else ""
        return f"Regret after {first.rounds[-1]:,} rounds, mean over {runs}{half}"

    @property
    def _notes(self) -> list[str]:
        """Who could not play, and why; once for each reason."""
        reasons: dict[tuple[str, str], list[str]] = {}
        for (learner, world), reason in self.unplayable.items():
            reasons.setdefault((learner, reason), []).append(world)
        return [f"- {learner} in {', '.join(worlds)}: {reason}" for (learner, reason), worlds in reasons.items()]

    def _table(self) -> tuple[list[str], list[list[str]]]:
        """Return head and rows, the smallest worst ratio first."""
        board = self.scoreboard
        several = len(self.worlds) > 1
        rows = []
        for row in board.standing:
            learner = self.learners[row]
            everywhere = not np.isnan(board.regret[row]).any()
            worst = [f"{board.worst[row]:,.2f}" if everywhere else "-"]
            rows.append([learner, *worst, *(self._entry(learner, world) for world in self.worlds)])
        return ["learner", "worst ratio" if several else "ratio", *self.worlds], rows

    def _entry(self, learner: str, world: str) -> str:
        result = self.results.get((learner, world))
        if result is None:
            return "-"
        low, high = (end[-1] for end in band(result.regret[:, -1:]))
        half = f" ± {(high - low) / 2:,.1f}" if result.runs.size > 1 else ""
        return f"{result.regret[:, -1].mean():,.1f}{half}"
