"""Running means of the losses that an agent was told, by arm."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from sidelong._jit import kernel
from sidelong.estimates import Estimates
from sidelong.graphs.presence import present

if TYPE_CHECKING:
    import numpy.typing as npt

    from sidelong.graphs.graph import FeedbackGraph

    Floats = npt.NDArray[np.float64]
    Counts = npt.NDArray[np.int64]


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
