"""What is known of each arm: of one key as `Estimates`, of many in a table."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from sidelong.agent.observers import SELECTED
from sidelong.estimates import Estimates
from sidelong.graphs.presence import present
from sidelong.tables import arrow_table

if TYPE_CHECKING:
    import numpy.typing as npt

    from sidelong.agent.observers import Observers
    from sidelong.graphs.graph import FeedbackGraph

    Floats = npt.NDArray[np.float64]


def estimates_of(observers: Observers, gaps: Floats, weights: Floats, graph: FeedbackGraph) -> Estimates:
    """Return what one key knows: what was counted, and what its learner says."""
    sure, means = sure_counts(observers), arm_means(observers)
    spreads, several = np.full(means.size, np.nan), sure > 1
    spreads[several] = np.sqrt(observers.squares[several] / (sure[several] - 1))
    retired = tuple(np.flatnonzero(~present(graph)).tolist())
    return Estimates(means, observers.counts.copy(), spreads, gaps, weights, graph.labels, retired, sure)


def sure_counts(observers: Observers) -> npt.NDArray[np.int64]:
    """Return how many losses of each arm are in its mean: of one key, or with a row for each."""
    if not observers.sure.shape[-1]:
        return observers.counts.copy()
    return np.where(observers.delays[..., SELECTED, None] > 0, observers.sure, observers.counts)


def arm_means(observers: Observers) -> Floats:
    """Return the mean of each arm, NaN where no loss is in it: of one key, or with a row for each.

    Where outcomes decide what is revealed, a smaller order could be seen in more rounds than a larger one. So the means
    of neighbours would be of other rounds, and differ by chance. Where most rounds that could show one of two showed
    both, they differ by their mean difference in these. Arms that hang together so have the level of the one that was
    surest to be seen.
    """
    n = sure_counts(observers)
    means = np.where(n > 0, observers.means, np.nan)
    if not observers.sure.shape[-1]:
        return means
    pairs, of = observers.pairs, observers.delays[..., SELECTED] > 0
    linked = np.zeros(n.shape, np.bool_)
    linked[..., 1:] = (pairs[..., 1:] > 0) & (2 * pairs[..., 1:] >= np.minimum(n[..., 1:], n[..., :-1])) & of[..., None]
    height, most = np.zeros(means.shape), n.copy()  # above the first of those that hang together; the surest so far
    level = means.copy()
    K = means.shape[-1]
    for i in range(1, K):
        on = linked[..., i]
        height[..., i] = np.where(on, height[..., i - 1] + observers.differences[..., i], 0.0)
        keeps = on & (most[..., i - 1] >= n[..., i])
        level[..., i] = np.where(keeps, level[..., i - 1], means[..., i] - height[..., i])
        most[..., i] = np.where(keeps, most[..., i - 1], n[..., i])
    for i in range(K - 2, -1, -1):
        level[..., i] = np.where(linked[..., i + 1], level[..., i + 1], level[..., i])
    return np.asarray(level + height)


def best_of(observers: Observers, graph: FeedbackGraph) -> np.ndarray:
    """Return for each key and arm whether it is the arm with the least mean among those that are there."""
    known = arm_means(observers)
    means = np.where(present(graph) & ~np.isnan(known), known, np.inf)
    return np.asarray((np.arange(graph.n_arms) == means.argmin(axis=-1)[..., None]) & np.isfinite(means))


class EstimatesTable:
    """What a family knows: a row for each key and arm, in columns."""

    def __init__(self, **columns: Any) -> None:
        self.keys: list[Any] = columns["key"]  #: the key of each row
        self.arms: np.ndarray = columns["arm"]
        self.means: np.ndarray = columns["mean"]  #: the mean of the losses that were told; NaN if there was none
        self.counts: np.ndarray = columns["count"]  #: how many losses that are
        self.probabilities: np.ndarray = columns["probability"]  #: that the next `ask` would play the arm
        self.best: np.ndarray = columns["best"]  #: whether it is the arm with the least mean of its key
        self.columns: dict[str, Any] = columns  #: all of them by name, as `pandas.DataFrame` takes them

    @classmethod
    def of_keys(cls, keys: list[Any], observers: Observers, p: Floats, graph: FeedbackGraph) -> EstimatesTable:
        """Return what some keys know, which play next with probabilities `p`."""
        K = graph.n_arms
        return cls(
            key=[key for key in keys for _ in range(K)],
            arm=np.tile(np.arange(K), len(keys)),
            mean=arm_means(observers).reshape(-1),
            count=observers.counts.reshape(-1),
            probability=p.reshape(-1),
            best=best_of(observers, graph).reshape(-1),
        )

    def to_arrow(self) -> Any:
        """Return a table for pandas, Polars or Arrow."""
        return arrow_table(self.columns)

    def __len__(self) -> int:
        return len(self.keys)

    def __repr__(self) -> str:
        return f"<EstimatesTable of {len(self):,} rows: {', '.join(self.columns)}>"
