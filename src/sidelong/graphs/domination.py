"""A small set of arms that together reveal every arm.

The greedy choice for set cover (V. Chvatal, "A Greedy Heuristic for the Set-Covering Problem", Mathematics of
Operations Research 4, 1979): the set has at most 1 + ln K times as many arms as the smallest one. It differs from the
covers of `sidelong.graphs.cover`, whose arms are never covered by another that was chosen before.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from sidelong._jit import kernel, rare_kernel
from sidelong.graphs.arrays import mark_loops, mark_strong
from sidelong.graphs.cover import CoverScratch, choose, count_uncovered, cover_scratch, uncover
from sidelong.graphs.heap import pop, push, top, top_count

if TYPE_CHECKING:
    from sidelong.graphs.arrays import GraphArrays, Integers
    from sidelong.graphs.graph import FeedbackGraph
    from sidelong.numerics import Whole


@rare_kernel
def dominate(graph: GraphArrays, chosen: np.ndarray, scratch: CoverScratch) -> Whole:
    """Write into `chosen` a dominating set; return its size. Every arm must be revealed by some arm."""
    uncover(chosen, scratch.free)
    return take_greedily(graph, chosen, scratch, np.int64(chosen.size))


@rare_kernel
def dominate_others(graph: GraphArrays, spared: np.ndarray, chosen: np.ndarray, scratch: CoverScratch) -> Whole:
    """Write into `chosen` arms that together reveal every arm that is not `spared`; return how many."""
    uncover(chosen, scratch.free)
    left = np.int64(0)
    for i in range(spared.size):
        if spared[i]:
            scratch.free[i] = i + 1
        else:
            left += 1
    return take_greedily(graph, chosen, scratch, left)


@kernel
def take_greedily(graph: GraphArrays, chosen: np.ndarray, scratch: CoverScratch, left: Whole) -> Whole:
    """Choose arms until the `left` uncovered ones are covered; return how many.

    Again and again the arm that reveals most uncovered arms is chosen; of several, the one of lowest index.
    """
    free, heap = scratch.free, scratch.heap
    heaped: Whole = np.int64(0)
    for k in range(chosen.size):
        i = np.int64(k)
        heaped = push(heap, heaped, graph.stop[i] - graph.start[i], i)
    size = 0
    while left > 0 and heaped > 0:
        i = np.int64(top(heap))
        count = top_count(heap)
        heaped = pop(heap, heaped)
        # A count can only have fallen since it was pushed: if it still holds, no other arm has a larger one.
        now = count_uncovered(graph, i, free)
        if now == count:
            choose(graph, i, chosen, free)
            left -= now
            size += 1
        elif now > 0:
            heaped = push(heap, heaped, now, i)
    return size


def greedy_dominating_set(graph: FeedbackGraph) -> Integers:
    """Return the arms of a dominating set."""
    chosen = np.zeros(graph.n_arms, np.bool_)
    dominate(graph.arrays, chosen, cover_scratch(graph.n_arms))
    return np.flatnonzero(chosen)


def loopless_cover(graph: FeedbackGraph) -> Integers:
    """Return arms that together reveal every arm without a self-loop."""
    loops = np.zeros(graph.n_arms, np.bool_)
    mark_loops(graph.arrays, loops)
    return _cover_of_others(graph, loops)


def weak_cover(graph: FeedbackGraph) -> Integers:
    """Return arms that together reveal every weakly observable arm; none if there is no such arm."""
    strong = np.zeros(graph.n_arms, np.bool_)
    mark_strong(graph.arrays, strong)
    return _cover_of_others(graph, strong)


def _cover_of_others(graph: FeedbackGraph, spared: np.ndarray) -> Integers:
    chosen = np.zeros(graph.n_arms, np.bool_)
    dominate_others(graph.arrays, spared, chosen, cover_scratch(graph.n_arms))
    return np.flatnonzero(chosen)
