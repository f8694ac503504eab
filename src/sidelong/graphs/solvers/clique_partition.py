"""The arms divided into few cliques, quickly and without a proof that fewer will not do.

J. Culberson and F. Luo, "Exploring the k-colorable landscape with iterated greedy", 1996: to divide them once more,
with the old cliques one after the other in any order, never takes more cliques, and often fewer.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from sidelong._jit import kernel, rare_kernel
from sidelong.graphs.solvers.budget import call

if TYPE_CHECKING:
    from sidelong.graphs.arrays import Integers
    from sidelong.graphs.solvers.conflicts import Conflicts
    from sidelong.numerics import Whole


def divide_into_cliques(conflicts: Conflicts, rounds: int, enough: int = 0) -> Integers:
    """Return the number of each arm's clique; stop as soon as there are no more than `enough`."""
    n = conflicts.n
    group = np.empty(n, np.int64)
    room = np.empty((2, n), np.int64)
    random = np.random.Philox(key=1)
    order = np.argsort(np.diff(conflicts.start), kind="stable")  # few conflicts first: they are hard to place
    for turn in range(rounds + 1):
        rank = np.empty(n, np.int64)
        rank[order] = np.arange(n)
        count = int(call(divide, conflicts, order, rank, group, room))
        if count <= enough or turn == rounds:
            break
        if turn % 3 == 0:
            key = -np.arange(count)
        elif turn % 3 == 1:
            key = -np.bincount(group)
        else:
            key = random.random_raw(count).astype(np.int64)
        order = np.lexsort((rank, group, key[group]))
    return group


@rare_kernel
def divide(conflicts: Conflicts, order: np.ndarray, rank: np.ndarray, group: np.ndarray, room: np.ndarray) -> Whole:
    """Let the first arm in order begin a clique, which takes in, in order, what is joined with all of it; and so on."""
    rows, targets = conflicts
    common, mark = room[0], room[1]
    for v in range(order.size):
        group[v] = -1
        mark[v] = -1
    count = 0
    for k in range(order.size):
        v = order[k]
        if group[v] >= 0:
            continue
        group[v] = count
        left: Whole = np.int64(0)
        for e in range(rows[v], rows[v + 1]):
            if group[targets[e]] < 0:
                common[left] = targets[e]
                left += 1
        while left > 0:
            u = _first(common, left, rank)
            group[u] = count
            for e in range(rows[u], rows[u + 1]):
                mark[targets[e]] = u
            left = _keep_marked(common, left, mark, u)
        count += 1
    return count


@kernel
def _first(arms: np.ndarray, size: Whole, rank: np.ndarray) -> Whole:
    first = arms[0]
    for k in range(1, size):
        if rank[arms[k]] < rank[first]:
            first = arms[k]
    return first  # type: ignore[no-any-return]


@kernel
def _keep_marked(arms: np.ndarray, size: Whole, mark: np.ndarray, u: Whole) -> Whole:
    """Keep the arms that are marked with u, in place; return how many."""
    kept = 0
    for k in range(size):
        if mark[arms[k]] == u:
            arms[kept] = arms[k]
            kept += 1
    return kept
