"""What learners with late="guarded" share: a rate that counts the decisions whose feedback has not come."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sidelong._jit import kernel
from sidelong.graphs.arrays import observe
from sidelong.learners.weights import theta

if TYPE_CHECKING:
    import numpy as np

    from sidelong.graphs.arrays import GraphArrays


@kernel
def begin(state: Any, graph: GraphArrays, p: np.ndarray) -> float:
    """Count a round that is asked for, with its theta; return that."""
    observe(graph, p, state.P)
    counted = theta(p, state.P)
    state.Theta[0] += counted
    state.outstanding[0] += 1.0
    return counted


@kernel
def settle(state: Any, Theta: float, counted: float, found: float) -> None:
    """Take away a round that was told. Theta was counted before; of the graph that was told, only more is added."""
    state.Theta[0] = Theta + max(found - counted, 0.0)
    state.outstanding[0] -= 1.0
