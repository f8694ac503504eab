"""What every learner's module has: the two kernels that the agent and the simulation loop call.

They are only names here. `sidelong._jit.specialise` puts a learner's own in their place.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np

    from sidelong.graphs.arrays import GraphArrays

__all__ = ["distribution", "update"]


def distribution(params: Any, state: Any, graph: GraphArrays, t: int, p: np.ndarray, trace: np.ndarray) -> None:
    """Write into `p` the probabilities of round t, and into `trace` what the learner's TRACES name."""


def update(
    params: Any,
    state: Any,
    graph: GraphArrays,
    t: int,
    arm: int,
    p: np.ndarray,
    losses: np.ndarray,
    trace: np.ndarray,
) -> None:
    """Learn that playing `arm` in round t, when the probabilities were `p`, revealed `losses`.

    ``losses[k]`` is that of arm ``graph.targets[graph.start[arm] + k]``. Rounds may be told late and in any order;
    `p` and `trace` are what `distribution` wrote for this one.
    """
