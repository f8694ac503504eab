"""The first rounds of a learner that wants to have seen every arm: which arm shows most that is new."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sidelong._jit import rare_kernel

if TYPE_CHECKING:
    import numpy as np

    from sidelong.graphs.arrays import GraphArrays
    from sidelong.numerics import Whole


@rare_kernel
def most_new(graph: GraphArrays, seen: np.ndarray, counts: np.ndarray) -> tuple[Whole, Whole]:
    """Return the first arm that reveals most of those not `seen`, and how many these are; `counts` is scratch."""
    best, most = 0, 0
    if graph.contiguous:  # by the number of such arms up to each one
        count = 0
        for i in range(seen.size):
            count += 0 if seen[i] else 1
            counts[i] = count
    for j in range(seen.size):
        first, last = graph.start[j], graph.stop[j]
        new = 0
        if not graph.contiguous:
            for e in range(first, last):
                new += 0 if seen[graph.targets[e]] else 1
        elif last > first:
            new = counts[last - 1] - (counts[first - 1] if first > 0 else 0)
        if new > most:
            best, most = j, new
    return best, most
