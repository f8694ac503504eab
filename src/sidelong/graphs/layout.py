"""How a graph lies in memory: building `GraphArrays`, and what can be read off them without listing edges.

Everything here trusts its arguments; `convert` checks what comes from outside.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

import numpy as np

from sidelong.graphs.arrays import ALONE, DOWN, NONE, UP, GraphArrays

if TYPE_CHECKING:
    import numpy.typing as npt

    Integers = npt.NDArray[np.integer]

MAX_ARCS = 2**31 - 1


def intervals(low: Integers, high: Integers) -> GraphArrays:
    """Lay out the graph in which arm i reveals low[i], ..., high[i] - 1."""
    n = low.size
    # An empty range lies behind the last arm, where a sweep over the arms neither enters nor leaves it.
    start = np.where(low < high, low, n).astype(np.int64)
    stop = np.where(low < high, high, n).astype(np.int64)
    in_start = np.cumsum(np.bincount(stop, minlength=n)[:n])
    in_stop = np.cumsum(np.bincount(start, minlength=n)[:n])
    direction, fresh = _sweep(start, stop, in_start, in_stop)
    return _frozen(
        GraphArrays(
            key=0,
            contiguous=True,
            direction=direction,
            start=start,
            stop=stop,
            targets=np.arange(n, dtype=np.int32),
            in_start=in_start,
            in_stop=in_stop,
            sources=np.argsort(start, kind="stable").astype(np.int32),
            leaving=np.argsort(stop, kind="stable").astype(np.int32),
            fresh=fresh,
        )
    )


def _sweep(start: Integers, stop: Integers, in_start: Integers, in_stop: Integers) -> tuple[int, npt.NDArray[np.bool_]]:
    """Tell in which direction arms enter one by one and leave only all together, and where the sum begins anew."""
    arm = np.arange(start.size)
    fresh = np.zeros(start.size, np.bool_)
    if not ((start <= arm) & (arm < stop)).all():
        return NONE, fresh
    if (stop - start == 1).all():
        return ALONE, fresh
    if ((in_start[1:] == in_start[:-1]) | (in_start[1:] == in_stop[:-1])).all():
        fresh[in_start] = True
        return UP, fresh
    if ((in_stop[:-1] == in_stop[1:]) | (in_stop[:-1] == in_start[1:])).all():
        fresh[in_stop - 1] = True
        return DOWN, fresh
    return NONE, fresh


def arcs(degree: Integers, targets: Integers) -> GraphArrays:
    """Lay out the graph in which arm i reveals the next degree[i] arms of `targets`, ascending."""
    n = degree.size
    stop = np.cumsum(degree, dtype=np.int64)
    in_stop = np.cumsum(np.bincount(targets, minlength=n), dtype=np.int64)
    sources = np.repeat(np.arange(n, dtype=np.int32), degree)
    return _frozen(
        GraphArrays(
            key=0,
            contiguous=False,
            direction=NONE,
            start=stop - degree,
            stop=stop,
            targets=targets.astype(np.int32),
            in_start=np.append(0, in_stop[:-1]),
            in_stop=in_stop,
            sources=sources[_stable_order(targets)],
            leaving=np.empty(0, np.int32),
            fresh=np.empty(0, np.bool_),
        )
    )


def _stable_order(arms: Integers) -> Integers:
    """Return the order that sorts arms, in O(E): NumPy compares numbers, except those of 16 bits."""
    order = np.argsort(arms.astype(np.uint16), kind="stable")
    high = (arms >> 16).astype(np.uint16)  # of 32 bits in all
    return order[np.argsort(high[order], kind="stable")] if high.any() else order


def from_pairs(rows: npt.NDArray[np.int64], columns: npt.NDArray[np.int64], n: int) -> GraphArrays:
    """Lay out edges in any order: as intervals if every arm reveals one contiguous range, else as arcs."""
    order = rows * n + columns  # fits: n < 2**31
    order.sort()
    order = order[np.append(True, np.diff(order) > 0)] if order.size else order
    targets = order % n
    degree = np.bincount(order // n, minlength=n)
    stop = np.cumsum(degree)
    some = degree > 0
    low, high = np.zeros((2, n), np.int64)
    low[some] = targets[(stop - degree)[some]]
    high[some] = targets[stop[some] - 1] + 1
    return intervals(low, high) if np.array_equal(high - low, degree) else arcs(degree, targets)


def _frozen(graph: GraphArrays) -> GraphArrays:
    for part in graph:
        if isinstance(part, np.ndarray):
            part.setflags(write=False)
    return graph


def expand(graph: GraphArrays) -> GraphArrays:
    """Write out every edge of intervals."""
    degree = graph.stop - graph.start
    some = np.flatnonzero(degree)
    # Within a row the target grows by 1, and from row to row it jumps: one running sum makes all of them.
    step = np.ones(degree.sum(), np.int32)
    jump = graph.start[some]
    jump[1:] -= graph.stop[some][:-1] - 1
    step[(np.cumsum(degree) - degree)[some]] = jump
    return arcs(degree, np.cumsum(step, dtype=np.int32, out=step))


def pairs(graph: GraphArrays) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int32]]:
    """Return the two ends of every edge of arcs, ordered by the first, then the second."""
    return np.repeat(np.arange(graph.start.size), graph.stop - graph.start), graph.targets


def reveals_itself(graph: GraphArrays) -> npt.NDArray[np.bool_]:
    """Tell for each arm whether playing it reveals it."""
    arm = np.arange(graph.start.size)
    if graph.contiguous:
        return (graph.start <= arm) & (arm < graph.stop)
    rows, columns = pairs(graph)
    loop = np.zeros(arm.size, np.bool_)
    loop[columns[rows == columns]] = True
    return loop


def is_symmetric(graph: GraphArrays) -> bool:
    """Tell whether i reveals j wherever j reveals i."""
    if not graph.contiguous:
        return np.array_equal(graph.start, graph.in_start) and np.array_equal(graph.targets, graph.sources)
    # Every arm that i reveals must reveal i: the largest start among them is at most i, and the smallest
    # stop above it. Two windows whose width is a power of two cover a range, so that O(K log K) steps answer
    # for all.
    degree = graph.stop - graph.start
    largest_start, smallest_stop = graph.start, graph.stop
    width = 1
    while width <= degree.max():
        arm = np.flatnonzero((width <= degree) & (degree < 2 * width))
        for window in (graph.start[arm], graph.stop[arm] - width):
            if (largest_start[window] > arm).any() or (smallest_stop[window] <= arm).any():
                return False
        largest_start = np.maximum(largest_start[:-width], largest_start[width:])
        smallest_stop = np.minimum(smallest_stop[:-width], smallest_stop[width:])
        width *= 2
    return True


def content_hash(graph: GraphArrays) -> str:
    """Return a SHA-256 of what reveals what: the same for both representations, on any machine.

    Hashed are the number of arms, how many maximal runs of consecutive arms each arm reveals, and where each
    run begins and ends.
    """
    n = graph.start.size
    if graph.contiguous:
        runs = graph.start < graph.stop
        first, behind = graph.start[runs], graph.stop[runs]
    else:
        begins = np.ones(graph.targets.size + 1, np.bool_)
        begins[1:-1] = np.diff(graph.targets) != 1
        begins[graph.start] = True
        first, behind = graph.targets[begins[:-1]], graph.targets[begins[1:]] + 1
        count = np.append(0, np.cumsum(begins[:-1]))
        runs = count[graph.stop] - count[graph.start]
    digest = hashlib.sha256(b"sidelong graph 1\0" + n.to_bytes(8, "little"))
    for part in (runs, first, behind):
        digest.update(part.astype("<i4").tobytes())
    return digest.hexdigest()
