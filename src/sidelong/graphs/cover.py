"""Choosing arms that together reveal every arm.

Both kernels walk through the arms in a given order and choose each one that no chosen arm reveals: Algorithm 2
of Rouyer, van der Hoeven, Cesa-Bianchi and Seldin (2022). They differ in what they do between equal keys.

Which arms are still uncovered is kept in `free`: ``free[i] == i`` says that arm i is. On intervals a covered arm
points on to a later one, so that covering a range that is covered already costs next to nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from sidelong._jit import kernel, rare_kernel

if TYPE_CHECKING:
    import numpy.typing as npt

    from sidelong.graphs.arrays import GraphArrays
    from sidelong.graphs.graph import FeedbackGraph
    from sidelong.numerics import Whole

__all__ = ["cover_in_order", "cover_largest_first", "exploration_start", "greedy_cover"]

_INDEX = 0xFFFFFFFF


@rare_kernel
def cover_in_order(graph: GraphArrays, order: np.ndarray, chosen: np.ndarray, free: np.ndarray) -> Whole:
    """Write into `chosen` the cover that `order` leads to, in O(K + E); return its size."""
    _uncover(chosen, free)
    size = 0
    for k in range(order.size):
        i = np.int64(order[k])
        if free[i] == i:
            _choose(graph, i, chosen, free)
            size += 1
    return size


@rare_kernel
def cover_largest_first(
    graph: GraphArrays,
    order: np.ndarray,
    key: np.ndarray,
    chosen: np.ndarray,
    free: np.ndarray,
    heap: np.ndarray,
) -> Whole:
    """Do the same, and among arms of equal key take the one that reveals most uncovered arms.

    Between two that reveal equally many, the lower index goes first. `order` must be sorted by `key`.
    """
    _uncover(chosen, free)
    size = 0
    first = 0
    while first < order.size:
        last = first + 1
        while last < order.size and key[order[last]] == key[order[first]]:
            last += 1
        waiting: Whole = np.int64(0)
        for k in range(first, last):
            i = np.int64(order[k])
            if free[i] == i:
                waiting = _push(heap, waiting, (graph.stop[i] - graph.start[i]) << 32 | (_INDEX - i))
        while waiting > 0:
            count = heap[0] >> 32
            i = _INDEX - (heap[0] & _INDEX)
            waiting = _pop(heap, waiting)
            if free[i] != i:
                continue
            # A count can only have fallen since it was pushed: if it still holds, no other arm has a larger one.
            now = _count_uncovered(graph, i, free)
            if now < count:
                waiting = _push(heap, waiting, now << 32 | (_INDEX - i))
            else:
                _choose(graph, i, chosen, free)
                size += 1
        first = last
    return size


@kernel
def _uncover(chosen: np.ndarray, free: np.ndarray) -> None:
    for i in range(chosen.size):
        chosen[i] = False
        free[i] = i
    free[chosen.size] = chosen.size


@kernel
def _choose(graph: GraphArrays, i: Whole, chosen: np.ndarray, free: np.ndarray) -> None:
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
def _count_uncovered(graph: GraphArrays, i: Whole, free: np.ndarray) -> Whole:
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


@kernel
def _push(heap: np.ndarray, size: Whole, item: Whole) -> Whole:
    """Add an item to a heap with the largest on top; return the new size."""
    k = size
    while k > 0 and heap[(k - 1) // 2] < item:
        heap[k] = heap[(k - 1) // 2]
        k = (k - 1) // 2
    heap[k] = item
    return size + 1


@kernel
def _pop(heap: np.ndarray, size: Whole) -> Whole:
    """Take the largest item off; return the new size."""
    size -= 1
    item = heap[size]
    k = 0
    while 2 * k + 1 < size:
        child = 2 * k + 1
        if child + 1 < size and heap[child + 1] > heap[child]:
            child += 1
        if heap[child] <= item:
            break
        heap[k] = heap[child]
        k = child
    heap[k] = item
    return size


def exploration_start(graph: FeedbackGraph) -> npt.NDArray[np.int64]:
    """Return the exploration set of EXP3.G++ while all gaps are 0: arms by index, each that no other has revealed."""
    chosen, free = np.zeros(graph.n_arms, np.bool_), np.zeros(graph.n_arms + 1, np.uint32)
    cover_in_order(graph.arrays, np.arange(graph.n_arms, dtype=np.uint32), chosen, free)
    return np.flatnonzero(chosen)


def greedy_cover(graph: FeedbackGraph) -> npt.NDArray[np.int64]:
    """Return arms that reveal all arms: again and again one of those that reveal most of what is left."""
    K = graph.n_arms
    chosen, free, heap = np.zeros(K, np.bool_), np.zeros(K + 1, np.uint32), np.zeros(K, np.int64)
    cover_largest_first(graph.arrays, np.arange(K, dtype=np.uint32), np.zeros(K), chosen, free, heap)
    return np.flatnonzero(chosen)
