"""What an agent was told of each arm, and which arm is the cheapest as far as that goes."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from sidelong._jit import kernel
from sidelong.checks import short
from sidelong.display.tables import html_table
from sidelong.graphs.presence import present

if TYPE_CHECKING:
    import numpy.typing as npt

    from sidelong.graphs.graph import FeedbackGraph

    Floats = npt.NDArray[np.float64]
    Counts = npt.NDArray[np.int64]

_POINTS = 64  # of the distribution of a mean, each with the same chance


class Estimates(NamedTuple):
    """What an agent knows about each arm."""

    means: Floats  #: the mean of the losses it was told; NaN for an arm of which it was told none
    counts: Counts  #: how many losses that are
    spreads: Floats  #: their standard deviation; NaN for fewer than two
    gaps: Floats  #: by how much it is worse than the best one, as its learner holds; 0 if unknown, NaN if none is kept
    weights: Floats  #: the probability that the next `ask` would play it
    labels: tuple[str, ...] | None = None  #: what the graph calls the arms
    retired: tuple[int, ...] = ()  #: the arms that are not played any more

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
        return chance_of_best(best, self.means[there], self.counts[there], self.spreads[there])

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


class Seen(NamedTuple):
    """Counts, means and squares of the losses that were told, by arm.

    Where the graph of a round was told with its losses, the outcome may have decided what was revealed: large orders
    are seen on days of low demand, say, and their plain mean would be of selected days. So of such a round only the
    loss of the played arm counts, which was drawn before the outcome.
    """

    counts: Counts
    means: Floats
    squares: Floats  #: sums of squared deviations from the mean

    @classmethod
    def nothing(cls, n_arms: int) -> Seen:
        """Return what is known before anything was told."""
        return cls(np.zeros(n_arms, np.int64), np.zeros(n_arms), np.zeros(n_arms))

    def estimates(self, gaps: Floats, weights: Floats, graph: FeedbackGraph) -> Estimates:
        """Return them with what a learner says."""
        means = np.where(self.counts > 0, self.means, np.nan)
        spreads = np.full(means.size, np.nan)
        some = self.counts > 1
        spreads[some] = np.sqrt(self.squares[some] / (self.counts[some] - 1))
        retired = tuple(np.flatnonzero(~present(graph)).tolist())
        return Estimates(means, self.counts.copy(), spreads, gaps, weights, graph.labels, retired)


@kernel
def note(i: int, loss: float, counts: np.ndarray, means: np.ndarray, squares: np.ndarray) -> None:
    """Add a loss of arm i to the running means (Welford 1962)."""
    counts[i] += 1
    away = loss - means[i]
    means[i] += away / counts[i]
    squares[i] += away * (loss - means[i])


def chance_of_best(best: int, means: Floats, counts: Counts, spreads: Floats) -> float:
    """Return the chance that no arm's mean is below that of `best`, over points of the distribution of its mean.

    A few losses say little about their own variance. So each arm's is mixed with that of all arms, which counts as
    much as two losses, and that one with the variance of [0, 1], which counts as much as one.
    """
    from scipy.special import log_ndtr, ndtr, ndtri  # noqa: PLC0415  # it takes a while to load

    squares = np.where(counts > 1, spreads * spreads * (counts - 1), 0.0)
    common = (squares.sum() + 1 / 12) / (np.maximum(counts - 1, 0).sum() + 1)
    known = np.flatnonzero(counts)
    errors = np.sqrt((squares[known] + 2 * common) / (counts[known] + 1) / counts[known])
    at = int(np.searchsorted(known, best))
    low, high = ndtr((np.array([0.0, 1.0]) - means[best]) / errors[at])
    points = means[best] + errors[at] * ndtri(low + (high - low) * (np.arange(_POINTS) + 0.5) / _POINTS)
    near = (means[known] - 9 * errors < points[-1]) & (known != best)  # of many arms, most are far away
    above = log_ndtr((means[known][near] - points[:, None]) / errors[near]).sum(axis=1)
    unknown = counts.size - known.size
    if unknown:
        above += unknown * np.log1p(-np.minimum(points, 1.0 - 1e-12))
    return float(np.exp(above).mean())
