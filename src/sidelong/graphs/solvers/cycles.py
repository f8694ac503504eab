"""Quick bounds on acyclic sets: a set without a cycle, and cycles that have no arm in common."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from sidelong._jit import kernel, rare_kernel
from sidelong.graphs.heap import pop, push, top, top_count
from sidelong.graphs.solvers.budget import call
from sidelong.graphs.solvers.groups import Groups

if TYPE_CHECKING:
    from scipy import sparse

    from sidelong.graphs.arrays import Integers
    from sidelong.numerics import Whole


_FAR = 300  # how many arms are looked at for a cycle
_FREE = 2**30  # more than any count of ways


class Arcs(NamedTuple):
    """Arcs in both directions: arm i leads to ``after[start[i]:start[i + 1]]``."""

    start: np.ndarray  #: int64, (n + 1,)
    after: np.ndarray  #: int64, (arcs,)
    in_start: np.ndarray  #: int64, (n + 1,)
    before: np.ndarray  #: int64, (arcs,)


def arcs_of(matrix: sparse.csr_array) -> Arcs:
    """Return the arcs of a matrix without a diagonal."""
    back = matrix.T.tocsr()
    return Arcs(*(each.astype(np.int64) for each in (matrix.indptr, matrix.indices, back.indptr, back.indices)))


def without_cycles(arcs: Arcs, arms: Integers) -> Integers:
    """Leave out arms, those with the most ways through them first, until there is no cycle; return the others."""
    n = arcs.start.size - 1
    inside = np.zeros(n, np.bool_)
    inside[arms] = True
    kept = inside.copy()
    call(leave_out, arcs, inside, kept, np.zeros((2, n), np.int64), np.empty(3 * n, np.int64))
    return np.flatnonzero(kept)


@rare_kernel
def leave_out(arcs: Arcs, inside: np.ndarray, kept: np.ndarray, degree: np.ndarray, heap: np.ndarray) -> None:
    """Take arms out of `inside`: those that nothing in it leads to, or that lead to nothing; else one not to keep."""
    height: Whole = np.int64(0)
    for k in range(inside.size):
        v = np.int64(k)
        if inside[v]:
            for e in range(arcs.start[v], arcs.start[v + 1]):
                degree[0, v] += inside[arcs.after[e]]
            for e in range(arcs.in_start[v], arcs.in_start[v + 1]):
                degree[1, v] += inside[arcs.before[e]]
            height = push(heap, height, _ways(degree, v), v)
    while height > 0:
        v, ways = np.int64(top(heap)), top_count(heap)
        height = pop(heap, height)
        if not inside[v]:
            continue
        if ways != _ways(degree, v):  # it was more when it was pushed
            height = push(heap, height, _ways(degree, v), v)
            continue
        inside[v] = False
        kept[v] = ways == _FREE
        for e in range(arcs.start[v], arcs.start[v + 1]):
            height = _lower(degree, np.int64(1), arcs.after[e], inside, heap, height)
        for e in range(arcs.in_start[v], arcs.in_start[v + 1]):
            height = _lower(degree, np.int64(0), arcs.before[e], inside, heap, height)


@kernel
def _ways(degree: np.ndarray, v: Whole) -> Whole:
    """Return how many ways there are through an arm; for one without, the most, so that it comes first."""
    ways = degree[0, v] * degree[1, v]
    return _FREE if ways == 0 else min(ways, _FREE - 1)


@kernel
def _lower(degree: np.ndarray, side: Whole, v: Whole, inside: np.ndarray, heap: np.ndarray, height: Whole) -> Whole:
    """Lower a degree of an arm; return the height of the heap, into which it goes again if that was the last."""
    degree[side, v] -= 1
    return push(heap, height, _ways(degree, v), v) if inside[v] and degree[side, v] == 0 else height


def disjoint_cycles(arcs: Arcs) -> Groups:
    """Return short cycles that have no arm in common."""
    n = arcs.start.size - 1
    start, arms = np.zeros(n + 1, np.int64), np.zeros(n, np.int64)
    room = np.empty((2, n), np.int64)
    count = call(pack_cycles, arcs, np.ones(n, np.bool_), np.full(n, -1), room, start, arms)
    return Groups(start[: count + 1].copy(), arms[: start[count]].copy())


@rare_kernel
def pack_cycles(
    arcs: Arcs, free: np.ndarray, seen: np.ndarray, room: np.ndarray, start: np.ndarray, arms: np.ndarray
) -> Whole:
    """Look for a shortest cycle through each arm, among those that are in none yet; return how many there are."""
    queue, parent = room[0], room[1]
    count = 0
    size: Whole = np.int64(0)
    for k in range(free.size):
        v = np.int64(k)
        if not free[v]:
            continue
        last = _last_of_cycle(arcs, v, free, seen, queue, parent)
        if last < 0:
            continue
        end = size
        while last != v:
            arms[end] = last
            end += 1
            last = parent[last]
        arms[end] = v
        size = _turn(arms, size, end + 1, free)
        count += 1
        start[count] = size
    return count


@kernel
def _turn(arms: np.ndarray, first: Whole, behind: Whole, free: np.ndarray) -> Whole:
    """Turn a cycle that was found backwards, and mark its arms; return where it ends."""
    for k in range(first, behind):
        free[arms[k]] = False
    for k in range((behind - first) // 2):
        arms[first + k], arms[behind - 1 - k] = arms[behind - 1 - k], arms[first + k]
    return behind


@kernel
def _last_of_cycle(
    arcs: Arcs, v: Whole, free: np.ndarray, seen: np.ndarray, queue: np.ndarray, parent: np.ndarray
) -> Whole:
    """Return the last arm of a short cycle that begins with v, or -1; `parent` leads back from it."""
    queue[0] = v
    waiting = 1
    k = 0
    while k < waiting and k < _FAR:
        u = queue[k]
        k += 1
        for e in range(arcs.start[u], arcs.start[u + 1]):
            w = arcs.after[e]
            if w == v:
                return u  # type: ignore[no-any-return]
            if free[w] and seen[w] != v:
                seen[w] = v
                parent[w] = u
                queue[waiting] = w
                waiting += 1
    return -1
