"""Graph numbers on intervals: exact, in O(K log K), without listing an edge.

All but `smallest_cover` take intervals that contain their own arm.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from sidelong._jit import rare_kernel
from sidelong.graphs.solvers.budget import call
from sidelong.graphs.solvers.groups import Found, Groups

if TYPE_CHECKING:
    from sidelong.graphs.arrays import GraphArrays, Integers


_MOST_LISTED = 10_000_000  # arms in the groups of a cover


def largest_independent(graph: GraphArrays, unit: int) -> Found:
    """Return the longest chain i, j, ... in which each arm lies before what the next reveals, and reveals none of it.

    That a lower arm and a higher one do not reveal each other is an order: if it holds for i, j and j, k then for i, k.
    So a longest chain is a largest set, and the arms that end a longest chain of equal length form a clique.
    """
    n = graph.start.size
    length, before = np.zeros(n, np.int64), np.zeros(n, np.int64)
    call(find_chains, graph.start, graph.leaving, graph.in_start, length, before, np.full(n + 1, -1))
    most = int(length.max())
    chain = [int(length.argmax())]
    while before[chain[-1]] >= 0:
        chain.append(int(before[chain[-1]]))
    order = np.argsort(length, kind="stable")
    start = np.append(0, np.cumsum(np.bincount(length - 1, minlength=most)))
    cover = Groups(start, order).weighing(np.full(most, unit))
    return Found(np.array(chain[::-1]), most * unit, most * unit, cover)


@rare_kernel
def find_chains(
    start: np.ndarray,
    by_stop: np.ndarray,
    stopped: np.ndarray,
    length: np.ndarray,
    before: np.ndarray,
    tree: np.ndarray,
) -> None:
    """Write the length of the longest chain that ends with each arm, and the arm before it, or -1.

    The arm before j is below start[j] and its stop is at most j. `tree` has the best such arm of each range of a binary
    indexed tree; an arm enters when its stop is reached.
    """
    entered = 0
    for j in range(start.size):
        while entered < stopped[j]:
            i = np.int64(by_stop[entered])
            entered += 1
            k = i + 1
            while k < tree.size:
                if tree[k] < 0 or length[tree[k]] < length[i]:
                    tree[k] = i
                k += k & -k
        best = np.int64(-1)
        k = start[j]
        while k > 0:
            if tree[k] >= 0 and (best < 0 or length[tree[k]] > length[best]):
                best = tree[k]
            k -= k & -k
        before[j] = best
        length[j] = 1 if best < 0 else length[best] + 1


def ascend(graph: GraphArrays) -> bool:
    """Tell whether both ends of the intervals ascend with the arm."""
    return bool((np.diff(graph.start) >= 0).all() and (np.diff(graph.stop) >= 0).all())


def heaviest_on_ascending(graph: GraphArrays, weight: Integers) -> Found:
    """Return a heaviest set of arms no two of which reveal each other, where both ends ascend.

    Then the arms after i that it is joined with are the next few, and joined with each other. So each arm in turn, if
    its weight is not used up, is given what is left of it as the weight of the clique that begins with it. Going back,
    such an arm is taken if it is not joined with the last one taken: each clique has one arm of the set then.
    """
    n = weight.size
    # Arm i is joined with those after it that it reveals and whose interval begins no later than i.
    reach = np.maximum(np.minimum(graph.stop, graph.in_stop), np.arange(1, n + 1)).tolist()
    ending = [0] * (n + 1)
    using, heads, shares = 0, [], []
    for i, w in enumerate(weight.tolist()):
        using -= ending[i]
        if w > using:
            heads.append(i)
            shares.append(w - using)
            ending[reach[i]] += w - using
            using = w
    taken, last = [], n
    for i in reversed(heads):
        if reach[i] <= last:
            taken.append(i)
            last = i
    first = np.array(heads, np.int64)
    size = np.array(reach, np.int64)[first] - first
    share = np.array(shares, np.int64)
    if size.sum() > _MOST_LISTED:
        first, size, share = np.arange(n), np.ones(n, np.int64), weight
    start = np.append(0, np.cumsum(size))
    arms = np.arange(start[-1]) + np.repeat(first - start[:-1], size)
    cover = Groups(start, arms).weighing(share)
    return Found(np.array(taken[::-1], np.int64), sum(shares), sum(shares), cover)


def smallest_cover(graph: GraphArrays, targets: Integers) -> tuple[Integers, Integers]:
    """Return the fewest arms that reveal all `targets`, ascending, and as many targets no two of which one arm reveals.

    The first target that is not revealed yet needs an arm; take one that reveals most beyond it.
    """
    n = graph.start.size
    order = np.lexsort((graph.stop, graph.start))
    arms, needing = [], []
    k, best, end = 0, -1, 0
    starts, stops = graph.start[order].tolist(), graph.stop[order].tolist()
    for target in targets.tolist():
        if target < end:
            continue
        while k < n and starts[k] <= target:
            if best < 0 or stops[k] > stops[best]:
                best = k
            k += 1
        end = stops[best]
        arms.append(int(order[best]))
        needing.append(target)
    return np.sort(np.array(arms, np.int64)), np.array(needing, np.int64)
