"""Choosing arms that together reveal every arm.

Both kernels walk through the arms in a given order and choose each one that no chosen arm reveals: Algorithm 2
of Rouyer, van der Hoeven, Cesa-Bianchi and Seldin (2022). They differ in what they do between equal keys.

Which arms are still uncovered is kept in `free`: ``free[i] == i`` says that arm i is. On intervals a covered arm
points on to a later one, so that covering a range that is covered already costs next to nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from sidelong._jit import kernel, rare_kernel
from sidelong.graphs.heap import pop, push, top, top_count

if TYPE_CHECKING:
    from sidelong.graphs.arrays import GraphArrays, Integers
    from sidelong.graphs.graph import FeedbackGraph
    from sidelong.numerics import Whole


class CoverScratch(NamedTuple):
    """What a cover needs beside the arms that it chooses."""

    free: np.ndarray  #: uint32, (K + 1,); which arms are uncovered: see above
    heap: np.ndarray  #: int64, (K,)


def cover_scratch(K: int) -> CoverScratch:
    """Return scratch for K arms."""
    return CoverScratch(free=np.zeros(K + 1, np.uint32), heap=np.zeros(K, np.int64))


@rare_kernel
def cover_in_order(graph: GraphArrays, order: np.ndarray, chosen: np.ndarray, scratch: CoverScratch) -> Whole:
    """Write into `chosen` the cover that `order` leads to, in O(K + E); return its size."""
    free = scratch.free
    uncover(chosen, free)
    size = 0
    for k in range(order.size):
        i = np.int64(order[k])
        if free[i] == i:
            choose(graph, i, chosen, free)
            size += 1
    return size


@rare_kernel
def cover_largest_first(
    graph: GraphArrays,
    order: np.ndarray,
    key: np.ndarray,
    chosen: np.ndarray,
    scratch: CoverScratch,
) -> Whole:
    """Do the same, and among arms of equal key take the one that reveals most uncovered arms.

    Between two that reveal equally many, the lower index goes first. `order` must be sorted by `key`.
    """
    free, heap = scratch.free, scratch.heap
    uncover(chosen, free)
    size = 0
    first = 0
    while first < order.size:
        last = first + 1
        while last < order.size and key[order[last]] == key[order[first]]:
            last += 1
        heaped: Whole = np.int64(0)
        for k in range(first, last):
            i = np.int64(order[k])
            if free[i] == i:
                heaped = push(heap, heaped, graph.stop[i] - graph.start[i], i)
        while heaped > 0:
            i = np.int64(top(heap))
            count = top_count(heap)
            heaped = pop(heap, heaped)
            if free[i] != i:
                continue
            # A count can only have fallen since it was pushed: if it still holds, no other arm has a larger one.
            now = count_uncovered(graph, i, free)
            if now < count:
                heaped = push(heap, heaped, now, i)
            else:
                choose(graph, i, chosen, free)
                size += 1
        first = last
    return size


@kernel
def uncover(chosen: np.ndarray, free: np.ndarray) -> None:
    """Begin with nothing chosen and nothing covered."""
    for i in range(chosen.size):
        chosen[i] = False
        free[i] = i
    free[chosen.size] = chosen.size


@kernel
def choose(graph: GraphArrays, i: Whole, chosen: np.ndarray, free: np.ndarray) -> None:
    """Choose an arm: what it reveals is covered."""
    chosen[i] = True
    if graph.contiguous:
        j = _next_free(free, graph.start[i])
        while j < graph.stop[i]:
            free[j] = j + 1
            j = _next_free(free, j + 1)
    else:
        for e in range(graph.start[i], graph.stop[i]):
            free[graph.targets[e]] = graph.targets[e] + 1


@kernel
def _next_free(free: np.ndarray, j: Whole) -> Whole:
    """Return the first uncovered arm at or after j; shorten the way for the next who asks."""
    while free[j] != j:
        free[j] = free[free[j]]
        j = free[j]
    return j


@kernel
def count_uncovered(graph: GraphArrays, i: Whole, free: np.ndarray) -> Whole:
    """Return how many uncovered arms an arm reveals."""
    count = 0
    if graph.contiguous:
        j = _next_free(free, graph.start[i])
        while j < graph.stop[i]:
            count += 1
            j = _next_free(free, j + 1)
    else:
        for e in range(graph.start[i], graph.stop[i]):
            if free[graph.targets[e]] == graph.targets[e]:
                count += 1
    return count


def exploration_start(graph: FeedbackGraph) -> Integers:
    """Return the exploration set of EXP3.G++ while all gaps are 0: arms by index, each that no other has revealed."""
    chosen = np.zeros(graph.n_arms, np.bool_)
    cover_in_order(graph.arrays, np.arange(graph.n_arms, dtype=np.uint32), chosen, cover_scratch(graph.n_arms))
    return np.flatnonzero(chosen)


def greedy_cover(graph: FeedbackGraph) -> Integers:
    """Return arms that reveal all arms: again and again one of those that reveal most of what is left."""
    K = graph.n_arms
    chosen = np.zeros(K, np.bool_)
    cover_largest_first(graph.arrays, np.arange(K, dtype=np.uint32), np.zeros(K), chosen, cover_scratch(K))
    return np.flatnonzero(chosen)
