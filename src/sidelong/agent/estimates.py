"""What is known of each arm: of one key as `Estimates`, of many in a table."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

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
    n, W, W2, *_ = observers.weighed()
    means = np.where(n > 0, observers.means, np.nan)
    spreads, effective = np.full(means.size, np.nan), np.zeros(means.size)
    some, several = n > 0, n > 1
    effective[some] = W[some] * W[some] / W2[some]
    spreads[several] = np.sqrt(observers.squares[several] / (W - W2 / np.where(some, W, 1.0))[several])
    retired = tuple(np.flatnonzero(~present(graph)).tolist())
    return Estimates(means, n.copy(), spreads, gaps, weights, graph.labels, retired, effective)


def best_of(observers: Observers, graph: FeedbackGraph) -> np.ndarray:
    """Return for each key and arm whether it is the arm with the least mean among those that are there."""
    means = np.where(present(graph) & (observers.counts > 0), observers.means, np.inf)
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
            mean=np.where(observers.counts > 0, observers.means, np.nan).reshape(-1),
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
