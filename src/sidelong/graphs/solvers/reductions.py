"""What can be decided about conflicts without search, for sets without a conflict and for covers by cliques alike.

Two rules, again and again:

- *Domination.* If u and v are in conflict, and all that is in conflict with u is so with v too, then v is never needed
  (where it weighs no more than u): a set with v stays one with u in its place, and a clique that has u has room for v.
- *Crowns.* Integers without a conflict among them, whose conflicts are all with fewer other arms, each of which can be
  given one of them as a partner, are taken. They are found by the theorem of G. Nemhauser and L. Trotter, "Vertex
  packings: structural properties and algorithms", Mathematical Programming 8 (1975), with one bipartite matching.

What is left is the *core*. A set of the core becomes one of the whole graph with what was taken; a cover of the core
by cliques becomes one of the whole with the cliques around what was taken, and each dominated arm joins the
cliques of the one that dominates it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from scipy import sparse
from scipy.sparse import csgraph

from sidelong._jit import kernel, rare_kernel
from sidelong.graphs.solvers.budget import call

if TYPE_CHECKING:
    from sidelong.graphs.arrays import Flags, Integers
    from sidelong.graphs.solvers.conflicts import Conflicts
    from sidelong.numerics import Whole

_WORK = 30  # how many steps for each pair and arm, at most


class Reduction(NamedTuple):
    """What was decided, and what is left."""

    core: Integers  #: what is left, ascending
    taken: Integers  #: arms that some best set has, ascending
    stands_for: Integers  #: for each arm, the arm in `core` or `taken` whose cliques it joins


def reduce_conflicts(conflicts: Conflicts, weight: Integers) -> Reduction:
    """Apply both rules until neither does anything more, or it takes too long."""
    n = conflicts.n
    alive = np.ones(n, np.bool_)
    degree = np.diff(conflicts.start)
    parent = np.arange(n)
    taken = np.zeros(n, np.bool_)
    queue = np.empty((2, n), np.int64)
    most = _WORK * (n + conflicts.targets.size)
    equal = bool((weight == weight[0]).all())  # the theorem is about numbers of arms
    while True:
        most -= call(dominate, conflicts, weight, alive, degree, parent, queue, max(most, 0))
        lonely = alive & (degree == 0)
        taken |= lonely
        alive &= ~lonely
        if not equal or most <= 0 or not alive.any():
            break
        crown, head, partner = _crown(conflicts, np.flatnonzero(alive))
        if not crown.size:
            break
        taken[crown] = True
        parent[head] = partner
        alive[crown] = alive[head] = False
        degree = _degrees(conflicts, alive)
    while (parent[parent] != parent).any():
        parent = parent[parent]
    return Reduction(np.flatnonzero(alive), np.flatnonzero(taken), parent)


@rare_kernel
def dominate(
    conflicts: Conflicts,
    weight: np.ndarray,
    alive: np.ndarray,
    degree: np.ndarray,
    parent: np.ndarray,
    room: np.ndarray,
    most: int,
) -> Whole:
    """Take dominated arms out of `alive`, and note in `parent` by which one; return the number of steps."""
    start, targets = conflicts
    queue, queued = room[0], room[1]
    n = alive.size
    head = 0
    waiting = 0
    for k in range(n):
        queued[k] = alive[k]
        if alive[k]:
            queue[waiting] = k
            waiting += 1
    steps: Whole = np.int64(0)
    while waiting > 0 and steps <= most:
        u = queue[head]
        head = (head + 1) % n
        waiting -= 1
        queued[u] = 0
        if not alive[u]:
            continue
        for e in range(start[u], start[u + 1]):
            v = np.int64(targets[e])
            if not alive[v] or degree[v] < degree[u] or weight[v] > weight[u]:
                continue
            looked_at = _look(conflicts, alive, u, v)
            steps += max(looked_at, -looked_at)
            if looked_at < 0:
                continue
            alive[v] = False
            parent[v] = u
            for f in range(start[v], start[v + 1]):
                x = np.int64(targets[f])
                degree[x] -= 1
                if alive[x] and queued[x] == 0:
                    queued[x] = 1
                    queue[(head + waiting) % n] = x
                    waiting += 1
    return steps


@kernel
def _look(conflicts: Conflicts, alive: np.ndarray, u: Whole, v: Whole) -> Whole:
    """Look whether v is joined with all that u is; return at how many arms, negative if it is not."""
    start, targets = conflicts
    steps = 1
    for e in range(start[u], start[u + 1]):
        x = targets[e]
        if alive[x] and x != v:
            steps += 1
            low, high = start[v], start[v + 1]
            while low < high:
                middle = (low + high) // 2
                if targets[middle] < x:
                    low = middle + 1
                else:
                    high = middle
            if low == start[v + 1] or targets[low] != x:
                return -steps
    return steps


def _degrees(conflicts: Conflicts, alive: Flags) -> Integers:
    counted = np.append(0, np.cumsum(alive[conflicts.targets]))
    degree = counted[conflicts.start[1:]] - counted[conflicts.start[:-1]]
    degree[~alive] = 0
    return degree  # type: ignore[no-any-return]


def _crown(conflicts: Conflicts, arms: Integers) -> tuple[Integers, Integers, Integers]:
    """Return arms to take, the arms in conflict with them, and a different partner among the former for each of these.

    Of two copies of the arms, with an edge from i to j' for each conflict, take a largest matching, and all that is
    reached on alternating paths from the unmatched ones. An arm reached in the first copy only is taken.
    """
    matrix = conflicts.to_scipy()[arms][:, arms]
    mate = csgraph.maximum_bipartite_matching(matrix, perm_type="column")
    n = arms.size
    matched = np.flatnonzero(mate >= 0)
    back = sparse.csr_array((np.ones(matched.size, np.bool_), (mate[matched], matched)), shape=(n, n))
    unmatched = np.flatnonzero(mate < 0)
    root = sparse.csr_array((np.ones(unmatched.size, np.bool_), (np.zeros_like(unmatched), unmatched)), shape=(1, n))
    paths = sparse.block_array([[None, matrix, None], [back, None, None], [root, None, sparse.csr_array((1, 1))]])
    reached = csgraph.breadth_first_order(paths.tocsr(), 2 * n, return_predecessors=False)
    first, second = np.zeros((2, n), np.bool_)
    first[reached[reached < n]] = True
    second[reached[(reached >= n) & (reached < 2 * n)] - n] = True
    crown, head = np.flatnonzero(first & ~second), np.flatnonzero(second & ~first)
    partner = csgraph.maximum_bipartite_matching(matrix[head][:, crown], perm_type="column")
    if (partner < 0).any():  # it never is, by the theorem
        crown, head, partner = crown[:0], head[:0], partner[:0]
    return arms[crown], arms[head], arms[crown[partner]]
