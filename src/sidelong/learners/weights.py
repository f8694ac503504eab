"""What learners with exponential weights and a graph's importance weights share."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from sidelong._jit import kernel
from sidelong.graphs.arrays import observe
from sidelong.numerics import exp, smallest, total

if TYPE_CHECKING:
    from sidelong.graphs.arrays import GraphArrays


@kernel
def exponential(L: np.ndarray, eta: float, w: np.ndarray) -> float:
    """Write the weights exp(-eta (L_i - min L)) into `w`, none of which overflows; return their sum."""
    weigh(L, smallest(L), eta, w)
    return total(w)


@kernel
def weigh(L: np.ndarray, least: float, eta: float, w: np.ndarray) -> None:
    """Write exp(-eta (L_i - least)) into `w`.

    Eight arms fill a vector, and take as long as one. So if there is a rest, the last eight are done first, and some of
    them again. In this order each vector that is read next has been written as a whole, and nobody waits for its parts.
    """
    K = w.size
    rest = K % 8
    first, last = max(K - 8, 0) if rest > 0 else 0, K
    while first < last:
        some_L, some_w = L[first:last], w[first:last]
        for i in range(some_w.size):
            some_w[i] = exp(-eta * (some_L[i] - least))
        first, last = 0 if last == K and rest > 0 else K, K - rest


@kernel
def learn(graph: GraphArrays, p: np.ndarray, arm: int, losses: np.ndarray, P: np.ndarray, L: np.ndarray) -> None:
    """Write into `P` how likely each arm was observed, and add l_i / P_i to L_i for each i that `arm` revealed."""
    observe(graph, p, P)
    first = graph.start[arm]
    for e in range(first, graph.stop[arm]):
        i = np.uint64(graph.targets[e])
        # p[arm] is a part of P_i. Where rounding has lost it beside larger parts, it is still above 0.
        L[i] += losses[e - first] / max(P[i], p[arm])


@kernel
def theta(p: np.ndarray, P: np.ndarray) -> float:
    """Return the sum of p_i / P_i, where 0 / 0 is 0. The terms are written into `P`."""
    for i in range(p.size):
        P[i] = p[i] / P[i] if P[i] > 0.0 else 0.0
    return total(P)
