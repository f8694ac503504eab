"""Results as curves: the regret of one learner on one instance, one row for each run, and what can be said of them."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from sidelong.display.curves import ENDS, resampled
from sidelong.studies.cell import canonical, describe
from sidelong.studies.results import read_tables

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    import numpy.typing as npt
    import pyarrow as pa

    Array = npt.NDArray[np.float64]

#: How regret may grow.
LAWS: dict[str, Callable[[Array], Array]] = {
    "log T": np.log,
    "log² T": lambda t: np.log(t) ** 2,
    "√T": np.sqrt,
    "T": lambda t: t,
}
FLAT, UNDECIDED = "flat", "undecided"
#: A curve that is steeper late in its run has not come to such a law yet, though none may fit better.
_STEEPEST = {"log T": 0.5, "log² T": 0.5, "√T": 0.7}


class Power(NamedTuple):
    """The exponent of what grows like a power, and the ends of its interval."""

    exponent: float
    low: float
    high: float


def power(x: Array, means: Array) -> Power:
    """Return the power of x like which means grow; the first row has the means, the others have resampled ones."""
    centred = np.log(x) - np.log(x).mean()
    exponents = (np.log(means) * centred).sum(axis=1) / (centred**2).sum()
    low, high = np.quantile(exponents[1:], ENDS)
    return Power(float(exponents[0]), float(low), float(high))


@dataclass(frozen=True)
class Curve:
    """The regret of a learner on an instance. Cells that differ in their seed alone are one curve."""

    spec: dict[str, Any]
    arms: int  #: of the graph
    rounds: npt.NDArray[np.int64]  #: (C,)
    regret: Array  #: (runs, C)
    traces: dict[str, Array]  #: by name, (runs, C)
    provenance: tuple[dict[str, Any], ...]  #: of each cell
    runs: tuple[tuple[int, int], ...]  #: the seed and the number of each row's run: all learners meet the same losses

    @property
    def learner(self) -> str:
        """The learner with its options, as a person would say it."""
        return describe(self.spec["learner"])

    @property
    def delay(self) -> int | str:
        """How many rounds later feedback came, or by which law."""
        return self.spec["delay"]  # type: ignore[no-any-return]

    @property
    def final(self) -> Array:
        """The regret of each run at the end."""
        return self.regret[:, -1]

    @cached_property
    def resampled(self) -> Array:
        """(resamples, C): means over runs that were drawn anew, with replacement. The same draws for every learner."""
        return resampled(self.regret)

    @cached_property
    def band(self) -> tuple[Array, Array]:
        """The ends of the bootstrap interval of the mean, at each checkpoint."""
        low, high = np.quantile(self.resampled, ENDS, axis=0)
        return low, high

    @cached_property
    def spread(self) -> tuple[Array, Array]:
        """The ends of what holds nine of ten runs, at each checkpoint: regrets of runs, 5 % below and 5 % above."""
        low, high = np.quantile(self.regret, [0.05, 0.95], axis=0, method="inverted_cdf")
        return low, high

    @cached_property
    def _late(self) -> npt.NDArray[np.bool_]:
        late: npt.NDArray[np.bool_] = self.rounds >= self.rounds[-1] / 30
        return late

    @property
    def _late_means(self) -> tuple[Array, Array]:
        """The last rounds, and the means of all runs and of resampled ones there."""
        means = np.vstack([self.regret.mean(axis=0), self.resampled])[:, self._late]
        return self.rounds[self._late].astype(np.float64), means

    @cached_property
    def slope(self) -> Power | None:
        """The slope of log regret over log rounds, late in the run."""
        t, means = self._late_means
        return None if t.size < 4 or (means <= 0).any() else power(t, means)

    @cached_property
    def law(self) -> tuple[str, float] | None:
        """Which law fits best, as a + b f(t) late in the run, and in which part of the resamples it does."""
        t, means = self._late_means
        if t.size < 6:
            return None
        misfit = []
        for f in LAWS.values():
            basis, _ = np.linalg.qr(np.column_stack([np.ones(t.size), f(t)]))
            misfit.append(((means - means @ basis @ basis.T) ** 2).sum(axis=1))
        best = np.argmin(misfit, axis=0)
        return list(LAWS)[best[0]], float((best[1:] == best[0]).mean())

    @cached_property
    def growth(self) -> str | None:
        """How regret looks to grow late in the run: `FLAT`, one of `LAWS`, or `UNDECIDED`; None if too little is known.

        Flat is a slope below 0.05: a regret of log T alone has a slope of 1 / log T, and is above until T = 5 * 10^8.
        A law is one that fits best in nine of ten resamples, and whose curves are as steep as this one late in a run.
        """
        slope, (law, share) = self.slope, self.law or (None, 0.0)
        is_flat = slope is not None and slope.high < 0.05
        if law is not None and not np.ptp(self.regret[:, self._late], axis=1).any():
            return FLAT
        if law is None and not is_flat:
            return None
        if len(self.regret) == 1:
            return UNDECIDED  # nothing is known of what other runs would do
        if is_flat:
            return FLAT
        too_steep = slope is not None and slope.low > _STEEPEST.get(str(law), np.inf)
        return law if share >= 0.9 and not too_steep else UNDECIDED


def read_curves(folder: Path) -> list[Curve]:
    """Read all results in a folder, in the order of the study."""
    parts: dict[str, list[tuple[pa.Table, dict[str, Any]]]] = {}
    for table, provenance in read_tables(folder):
        same = canonical({key: value for key, value in provenance["cell"].items() if key != "seed"})
        parts.setdefault(same, []).append((table, provenance))
    return [_curve(json.loads(same), cells) for same, cells in parts.items()]


def _curve(spec: dict[str, Any], cells: list[tuple[pa.Table, dict[str, Any]]]) -> Curve:
    def column(name: str) -> Array:
        return np.vstack([table[name].to_numpy().reshape(spec["runs"], -1) for table, _ in cells])

    names = [name for name in cells[0][0].column_names if name.startswith("trace_")]
    return Curve(
        spec,
        int(cells[0][0]["arms"][0].as_py()),
        column("round")[0].astype(np.int64),
        column("regret"),
        {name.removeprefix("trace_"): column(name) for name in names},
        tuple(provenance for _, provenance in cells),
        tuple((table["seed"][0].as_py(), run) for table, _ in cells for run in _runs(table, spec["runs"])),
    )


def _runs(table: pa.Table, count: int) -> list[int]:
    runs: list[int] = table["run"].to_numpy().reshape(count, -1)[:, 0].tolist()
    return runs
