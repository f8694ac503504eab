"""The linear program that ELP and UCB-LP begin with: the cheapest shares of arms that together reveal every arm."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from sidelong.errors import LearnerError

if TYPE_CHECKING:
    import numpy.typing as npt

    from sidelong.graphs.graph import FeedbackGraph

_MOST_EDGES = 1_000_000


def cheapest_shares(
    graph: FeedbackGraph, who: str, cost: npt.NDArray[np.float64] | None = None, most: float | None = None
) -> npt.NDArray[np.float64]:
    """Return the cheapest shares of arms such that, for each arm, those that reveal it sum to 1 or more.

    Where several are cheapest, the solver chooses one.

    Args:
        graph: the graph.
        who: the learner that asks, for an error's message.
        cost: of each arm; 1 if not given, which makes the sum of the shares the fractional domination number.
        most: what the shares may sum to at most.
    """
    if graph.n_edges > _MOST_EDGES:
        raise LearnerError(
            f"{who} solves its linear program for at most {_MOST_EDGES:,} edges, and {graph!r} has more. "
            f"Use a learner that needs none, such as exp3.g++ or ucb-n."
        )
    from scipy import optimize, sparse  # noqa: PLC0415  # it takes a while to load

    ones = np.ones(graph.n_arms)
    rows = -graph.to_scipy().astype(np.float64).T
    limits = -ones
    if most is not None:
        rows, limits = sparse.vstack([rows, sparse.csr_array(ones[None])]), np.append(limits, most)
    found = optimize.linprog(
        ones if cost is None else cost, A_ub=rows, b_ub=limits, bounds=(0, None), method="highs-ds"
    )
    if not found.success:
        raise LearnerError(f"The linear program of {who} was not solved: {found.message}")
    return np.asarray(np.maximum(found.x, 0.0), np.float64)
