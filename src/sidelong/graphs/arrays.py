"""A graph as kernels see it, and the probability of observing each arm.

Both representations of a graph share one layout, so that a kernel is compiled once for both.

*Arcs* are compressed rows in both directions. *Intervals* hold no edge: `targets` is 0, 1, ..., K - 1 for all
rows, and an arm reveals the range of it from `start` to `stop`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from sidelong._jit import kernel

if TYPE_CHECKING:
    import numpy.typing as npt

    Flags = npt.NDArray[np.bool_]
    Integers = npt.NDArray[np.int64]
    Reals = npt.NDArray[np.float64]

NONE, UP, DOWN, ALONE = 0, 1, -1, 2  # directions


class GraphArrays(NamedTuple):
    """Playing i reveals ``targets[start[i]:stop[i]]``, in ascending order."""

    key: int  #: from the content hash: two graphs with the same key are the same graph
    contiguous: bool  #: intervals, not arcs
    #: Of a sweep over intervals that arms leave only all together: `UP` or `DOWN`; `NONE` if there is none, or if some
    #: arm does not reveal itself; `ALONE` if no sweep is needed, since each arm reveals itself and no other.
    direction: int
    start: np.ndarray  #: int64, (K,)
    stop: np.ndarray  #: int64, (K,)
    targets: np.ndarray  #: int32, (E,) for arcs, (K,) for intervals
    #: Arcs: ``sources[in_start[i]:in_stop[i]]`` reveal i. Intervals: in_stop[i] arms have start <= i, in_start[i] of
    #: them have stop <= i; `sources` lists the arms by start, `leaving` by stop.
    in_start: np.ndarray  #: int64, (K,)
    in_stop: np.ndarray  #: int64, (K,)
    sources: np.ndarray  #: int32, (E,) or (K,)
    leaving: np.ndarray  #: int32, (0,) or (K,)
    fresh: np.ndarray  #: bool, (0,) or (K,); whether the sum of such a sweep begins anew at the k-th arm that enters


@kernel
def mark_loops(graph: GraphArrays, loops: np.ndarray) -> None:
    """Write into `loops` whether each arm reveals itself."""
    for i in range(loops.size):
        loops[i] = graph.contiguous and graph.start[i] <= i < graph.stop[i]
        if not graph.contiguous:
            for e in range(graph.start[i], graph.stop[i]):
                loops[i] |= graph.targets[e] == i


@kernel
def mark_strong(graph: GraphArrays, strong: np.ndarray) -> None:
    """Write into `strong` whether each arm is strongly observable: it reveals itself, or all others reveal it."""
    mark_loops(graph, strong)
    for i in range(strong.size):
        strong[i] |= graph.in_stop[i] - graph.in_start[i] == strong.size - 1


@kernel
def observe(graph: GraphArrays, p: np.ndarray, P: np.ndarray) -> None:
    """Write into `P` the probability that each arm is observed when an arm is drawn from `p`."""
    if not graph.contiguous:
        _observe_arcs(graph, p, P)
    elif graph.direction == ALONE:
        for i in range(p.size):
            P[i] = p[i]
    elif graph.direction == UP:
        _observe_upwards(graph, p, P)
    elif graph.direction == DOWN:
        _observe_downwards(graph, p, P)
    else:
        _observe_intervals(graph, p, P)


# Indices are unsigned here: a signed one might count from the end, and would be checked for that.
_1 = np.uint64(1)
_2 = np.uint64(2)


@kernel
def _observe_arcs(graph: GraphArrays, p: np.ndarray, P: np.ndarray) -> None:
    for i in range(p.size):
        e, last = np.uint64(graph.in_start[i]), np.uint64(graph.in_stop[i])
        s = 0.0
        while e + _1 < last:  # two at a time, since most arms are revealed by few, and a loop that ends takes long
            s += p[np.uint64(graph.sources[e])]
            s += p[np.uint64(graph.sources[e + _1])]
            e += _2
        if e < last:
            s += p[np.uint64(graph.sources[e])]
        P[i] = s


@kernel
def _observe_upwards(graph: GraphArrays, p: np.ndarray, P: np.ndarray) -> None:
    """Sweep over the arms as they enter, and give each arm the sum when the last that reveals it has entered.

    In place: as every arm reveals itself, that is at no earlier position than its own. Each sum has a loop of its own,
    so that the processor need not wait for one sum before it begins the next.
    """
    k, last = np.uint64(0), np.uint64(p.size)
    while k < last:
        s = p[np.uint64(graph.sources[k])]
        P[k] = s
        k += _1
        while k < last and not graph.fresh[k]:
            s += p[np.uint64(graph.sources[k])]
            P[k] = s
            k += _1
    for i in range(p.size):
        P[i] = P[np.uint64(graph.in_stop[i] - 1)]


@kernel
def _observe_downwards(graph: GraphArrays, p: np.ndarray, P: np.ndarray) -> None:
    """Do the same from the last arm to the first, where each other arm enters at its stop."""
    k, first = np.uint64(p.size), np.uint64(0)
    while k > first:
        k -= _1
        s = p[np.uint64(graph.leaving[k])]
        P[k] = s
        while k > first and not graph.fresh[k - _1]:
            k -= _1
            s += p[np.uint64(graph.leaving[k])]
            P[k] = s
    for i in range(p.size - 1, -1, -1):
        P[i] = P[np.uint64(graph.in_start[i])]


@kernel
def _observe_intervals(graph: GraphArrays, p: np.ndarray, P: np.ndarray) -> None:
    """Sweep over the arms; each other arm enters the sum at its start and leaves it at its stop.

    Adding and taking away would leave rounding errors of the size of what was taken away, so that a rare arm behind a
    frequent one would be lost. The sum is therefore kept with its error, and started anew when empty.
    """
    entered = 0
    left = 0
    s = 0.0
    error = 0.0
    for i in range(p.size):
        if graph.in_start[i] == entered:
            left = entered
            s = 0.0
            error = 0.0
        while left < graph.in_start[i]:
            x = -p[graph.leaving[left]]
            sum_ = s + x
            part = sum_ - s
            error += (s - (sum_ - part)) + (x - part)
            s = sum_
            left += 1
        while entered < graph.in_stop[i]:
            x = p[graph.sources[entered]]
            sum_ = s + x
            part = sum_ - s
            error += (s - (sum_ - part)) + (x - part)
            s = sum_
            entered += 1
        P[i] = s + error
        if P[i] < p[i] and graph.start[i] <= i < graph.stop[i]:
            P[i] = p[i]  # an arm that reveals itself is observed at least as often as played
