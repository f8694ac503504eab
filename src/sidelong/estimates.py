"""What is known about each arm, and which arm is the cheapest as far as that goes.

An agent and the client of a service both return it, so it needs NumPy only.
"""

from __future__ import annotations

from statistics import NormalDist
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from sidelong.checks import short
from sidelong.display.tables import html_table

if TYPE_CHECKING:
    import numpy.typing as npt

    Floats = npt.NDArray[np.float64]
    Counts = npt.NDArray[np.int64]

_POINTS = 64  # of the distribution of a mean, each with the same chance
#: Polynomials whose ratio, times exp(-z^2 / 2), is the chance that a standard normal variable is above z >= 0.
_NUMERATOR = (
    *(0.0352624965998911, 0.700383064443688, 6.37396220353165, 33.912866078383),
    *(112.079291497871, 221.213596169931, 220.206867912376),
)
_DENOMINATOR = (
    *(0.0883883476483184, 1.75566716318264, 16.064177579207, 86.7807322029461),
    *(296.564248779674, 637.333633378831, 793.826512519948, 440.413735824752),
)


class Estimates(NamedTuple):
    """What an agent knows about each arm."""

    #: The mean of the losses it was told; NaN for an arm of which it was told none. Where outcomes decide which losses
    #: are revealed, only those count that could not have been hidden, and arms are compared by the same rounds.
    means: Floats
    counts: Counts  #: how many losses that are
    spreads: Floats  #: their standard deviation; NaN for fewer than two
    gaps: Floats  #: by how much it is worse than the best one, as its learner holds; 0 if unknown, NaN if none is kept
    weights: Floats  #: the probability that the next `ask` would play it
    labels: tuple[str, ...] | None = None  #: what the graph calls the arms
    retired: tuple[int, ...] = ()  #: the arms that are not played any more
    effective: Counts | None = None  #: how many losses are in the means; counts if None

    @property
    def best(self) -> int | None:
        """The arm that is the cheapest as far as the agent knows; None before it was told anything.

        It is the arm with the least mean. What would be played next is in `weights`: a learner also plays arms that it
        wants to know more about.
        """
        means = self.means
        if self.retired:
            means = means.copy()
            means[list(self.retired)] = np.nan
        return None if np.isnan(means).all() else int(np.nanargmin(means))

    @property
    def sure(self) -> float:
        """The chance that `best` is the cheapest arm of all, if losses go on as they were; 0 before anything was told.

        Each mean is taken as normal around what was told, and that of an arm never told of as anything in [0, 1].
        """
        if self.best is None:
            return 0.0
        there = np.delete(np.arange(self.means.size), self.retired)
        best = int(np.searchsorted(there, self.best))
        counts = self.counts if self.effective is None else self.effective
        return chance_of_best(best, self.means[there], counts[there], self.spreads[there])

    def __str__(self) -> str:
        """Return a table for people: the arms that would be played most, by their labels."""
        head, rows = self._table()
        width = max(len(row[0]) for row in [head, *rows])
        lines = [f"{head[0]:<{width}}  weight   mean    gap  count"]
        lines += [f"{name:<{width}}  {' '.join(f'{each:>6}' for each in numbers)}" for name, *numbers in rows]
        return "\n".join([*lines, *self._below(len(rows))])

    def _repr_html_(self) -> str:
        head, rows = self._table()
        return html_table(head, rows, "What the agent knows of each arm", self._below(len(rows)))

    def _table(self) -> tuple[list[str], list[list[str]]]:
        rows = []
        for arm in np.argsort(-self.weights, kind="stable")[:20].tolist():
            numbers = f"{self.weights[arm]:6.4f}", f"{self.means[arm]:6.4f}", f"{self.gaps[arm]:6.4f}"
            rows.append([self._name(arm), *numbers, f"{self.counts[arm]:,}"])
        return ["arm", "weight", "mean", "gap", "count"], rows

    def _below(self, shown: int) -> list[str]:
        """Return what stands below the table: whether arms are left out, and which one is the cheapest so far."""
        more = ["..."] * (shown < self.weights.size)
        if self.best is None:
            return more
        return [*more, f"cheapest so far: {self._name(self.best)}, {100 * self.sure:.0f} % sure"]

    def _name(self, arm: int) -> str:
        return short(self.labels[arm]) if self.labels else str(arm)


def chance_of_best(best: int, means: Floats, counts: Floats | Counts, spreads: Floats) -> float:
    """Return the chance that no arm's mean is below that of `best`, over points of the distribution of its mean.

    A few losses say little about their own variance. So each arm's is mixed with that of all arms, which counts as
    much as two losses, and that one with the variance of [0, 1], which counts as much as one.
    """
    squares = np.where(counts > 1, spreads * spreads * (counts - 1), 0.0)
    common = (squares.sum() + 1 / 12) / (np.maximum(counts - 1, 0).sum() + 1)
    known = np.flatnonzero(counts)
    errors = np.sqrt((squares[known] + 2 * common) / (counts[known] + 1) / counts[known])
    at = int(np.searchsorted(known, best))
    low, high = _normal((np.array([0.0, 1.0]) - means[best]) / errors[at])
    shares = low + (high - low) * (np.arange(_POINTS) + 0.5) / _POINTS
    points = means[best] + errors[at] * np.array([NormalDist().inv_cdf(share) for share in shares.tolist()])
    near = (means[known] - 9 * errors < points[-1]) & (known != best)  # of many arms, most are far away
    above = _normal((means[known][near] - points[:, None]) / errors[near]).prod(axis=1)
    unknown = counts.size - known.size
    return float((above * (1.0 - np.minimum(points, 1.0)) ** unknown).mean())


def _normal(x: Floats) -> Floats:
    """Return the standard normal distribution function, to 2e-16 (Hart et al. 1968, no. 5666)."""
    z = np.abs(x)
    tails = np.exp(-0.5 * z * z) * (np.polyval(_NUMERATOR, z) / np.polyval(_DENOMINATOR, z))
    return np.where(x < 0.0, tails, 1.0 - tails)
