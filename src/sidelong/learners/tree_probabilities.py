"""Probabilities that are read off two sum trees: p_i = scale * w_i + e_i, and P_i, the sum of p over what reveals i.

One tree is over the weights w, which change from round to round, the other over the exploration e, which stays for an
epoch. A single p takes two looks, and a P of an interval two range sums, whatever the number of arms.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from sidelong._jit import kernel
from sidelong.learners.sum_tree import range_sum

if TYPE_CHECKING:
    from sidelong.graphs.arrays import GraphArrays
    from sidelong.numerics import Whole


@kernel
def fill(p: np.ndarray, w: np.ndarray, e: np.ndarray, scale: float, base: Whole) -> None:
    """Write the probabilities of all arms into `p`; `base` is the first leaf of both trees."""
    for i in range(p.size):
        p[i] = scale * w[base + i] + e[base + i]


@kernel
def sum_over_sources(graph: GraphArrays, w: np.ndarray, e: np.ndarray, scale: float, base: Whole, i: Whole) -> float:
    """Return P of arm i, on arcs or where `sources_are_ranges`. It is at least p of each arm that reveals i."""
    low, high = graph.in_start[i], graph.in_stop[i]
    if graph.contiguous:
        return scale * range_sum(w, base + low, base + high) + range_sum(e, base + low, base + high)
    s = 0.0
    for k in range(np.uint64(low), np.uint64(high)):
        leaf = np.uint64(base) + np.uint64(graph.sources[k])
        s += scale * w[leaf] + e[leaf]
    return s


@kernel
def sources_are_ranges(graph: GraphArrays) -> bool:
    """Tell of intervals whether the arms from in_start[i] to in_stop[i] - 1 are those that reveal arm i.

    They are if neither end of the intervals ever moves back from one arm to the next.
    """
    for k in range(1, graph.start.size):
        if graph.start[k] < graph.start[k - 1] or graph.stop[k] < graph.stop[k - 1]:
            return False
    return True


@kernel
def have_the_same_sources(graph: GraphArrays, i: Whole, j: Whole) -> bool:
    """Tell of two arms in such intervals whether the same arms reveal them, as in a clique."""
    return graph.in_start[i] == graph.in_start[j] and graph.in_stop[i] == graph.in_stop[j]  # type: ignore[no-any-return]
