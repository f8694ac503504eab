"""Numbers of a graph that are hard to compute, each as an interval with a certificate."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from scipy import optimize, sparse

from sidelong.errors import GraphError

if TYPE_CHECKING:
    import numpy.typing as npt

    from sidelong.graphs.graph import FeedbackGraph

__all__ = ["GraphNumber", "strong_independence"]

_MOST_EDGES = 5_000_000


@dataclass(frozen=True)
class GraphNumber:
    """A number of a graph, known to lie from `lower` to `upper`."""

    lower: int
    upper: int
    certificate: npt.NDArray[np.int64]  #: a set of arms that proves the lower value

    @property
    def value(self) -> int | None:
        """The number, where it is known exactly."""
        return self.lower if self.lower == self.upper else None


def strong_independence(graph: FeedbackGraph, budget: float = 10.0) -> GraphNumber:
    """Return the size of a largest set of arms no two of which reveal each other, within `budget` seconds."""
    if graph.representation == "intervals":
        low, high = graph.arrays.start, graph.arrays.stop
        if not graph.arms_without_self_loop.size and (np.diff(low) >= 0).all() and (np.diff(high) >= 0).all():
            return _on_sorted_intervals(low, high)
    if graph.n_edges > _MOST_EDGES:
        raise GraphError(
            f"The strong independence number is computed for at most {_MOST_EDGES:,} edges, and {graph!r} has more. "
            f"Give strong_independence yourself (any number from it up to {graph.n_arms} is valid), "
            f"or use the adaptive rate, which does not need it."
        )
    matrix = graph.to_scipy()
    mutual = sparse.triu(matrix.minimum(matrix.T), k=1).tocoo()
    return _by_integer_program(graph.n_arms, mutual.row, mutual.col, budget)


def _on_sorted_intervals(low: npt.NDArray[np.int64], high: npt.NDArray[np.int64]) -> GraphNumber:
    """Take the first arm, leave out all that it is joined with, and so on: those form a clique with it.

    With both ends ascending, the arms after i that it is joined with are the next few, and joined with each other.
    """
    seen_from = np.searchsorted(low, np.arange(low.size), side="right")  # arms before this one reveal i or lie before
    reach = np.minimum(high, seen_from)
    chosen = []
    i = 0
    while i < low.size:
        chosen.append(i)
        i = max(int(reach[i]), i + 1)
    return GraphNumber(len(chosen), len(chosen), np.array(chosen))


def _by_integer_program(
    n: int, rows: npt.NDArray[np.int32], columns: npt.NDArray[np.int32], budget: float
) -> GraphNumber:
    if not rows.size:
        return GraphNumber(n, n, np.arange(n))
    edges = np.arange(rows.size)
    incidence = sparse.csr_array(
        (np.ones(2 * rows.size), (np.concatenate([edges, edges]), np.concatenate([rows, columns]))),
        shape=(rows.size, n),
    )
    result = optimize.milp(
        -np.ones(n),
        integrality=np.ones(n),
        bounds=optimize.Bounds(0, 1),
        constraints=optimize.LinearConstraint(incidence, -np.inf, 1),
        options={"time_limit": budget},
    )
    chosen = np.flatnonzero(result.x > 0.5) if result.x is not None else np.array([0])
    bound = n if result.mip_dual_bound is None else min(n, int(np.floor(-result.mip_dual_bound + 1e-6)))
    return GraphNumber(int(chosen.size), max(bound, int(chosen.size)), chosen)
