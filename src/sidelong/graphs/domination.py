"""A small set of arms that together reveal every arm.

The greedy choice for set cover (V. Chvatal, "A Greedy Heuristic for the Set-Covering Problem", Mathematics of
Operations Research 4, 1979): the set has at most 1 + ln K times as many arms as the smallest one. It differs from the
covers of `sidelong.graphs.cover`, whose arms are never covered by another that was chosen before.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from sidelong._jit import rare_kernel
from sidelong.graphs.cover import _INDEX, _choose, _count_uncovered, _pop, _push, _uncover

if TYPE_CHECKING:
    from sidelong.graphs.arrays import GraphArrays
    from sidelong.numerics import Whole

__all__ = ["dominate"]


@rare_kernel
def dominate(graph: GraphArrays, chosen: np.ndarray, free: np.ndarray, heap: np.ndarray) -> Whole:
    """Write into `chosen` a dominating set; return its size.

    Again and again the arm that reveals most uncovered arms is chosen; of several, the one of lowest index. Every arm
    must be revealed by some arm. `free` has room for K + 1 arms and `heap` for K.
    """
    _uncover(chosen, free)
    waiting: Whole = np.int64(0)
    for k in range(chosen.size):
        i = np.int64(k)
        waiting = _push(heap, waiting, (graph.stop[i] - graph.start[i]) << 32 | (_INDEX - i))
    size = 0
    left: Whole = np.int64(chosen.size)
    while left > 0 and waiting > 0:
        count = heap[0] >> 32
        i = _INDEX - (heap[0] & _INDEX)
        waiting = _pop(heap, waiting)
        # A count can only have fallen since it was pushed: if it still holds, no other arm has a larger one.
        now = _count_uncovered(graph, i, free)
        if now == count:
            _choose(graph, i, chosen, free)
            left -= now
            size += 1
        elif now > 0:
            waiting = _push(heap, waiting, now << 32 | (_INDEX - i))
    return size
