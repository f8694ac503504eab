"""Cliques of conflicts: the rows of linear and integer programs, and quick covers.

Of a clique at most one arm is chosen, which says more than each of its conflicts alone.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import numpy as np

from sidelong.graphs.solvers.groups import listed

if TYPE_CHECKING:
    from sidelong.graphs.arrays import Integers
    from sidelong.graphs.solvers.budget import Budget
    from sidelong.graphs.solvers.conflicts import Conflicts
    from sidelong.graphs.solvers.groups import Groups


def divide_into_cliques(conflicts: Conflicts, rounds: int, enough: int = 0) -> Integers:
    """Return the number of each arm's clique: few cliques, found quickly and without a proof that fewer will not do.

    Each arm in turn joins the first clique with all of which it is in conflict, those with few conflicts first, as they
    are hard to place. J. Culberson and F. Luo, "Exploring the k-colorable landscape with iterated greedy", 1996: to do
    so once more, with the old cliques one after the other in any order, never takes more cliques, and often fewer. It
    stops as soon as there are no more than `enough`.
    """
    neighbors = [row.tolist() for row in np.split(conflicts.targets, conflicts.start[1:-1])]
    order = np.argsort(np.diff(conflicts.start), kind="stable")
    random = np.random.Philox(key=1)
    for turn in range(rounds + 1):
        clique, sizes = _join_in_order(neighbors, order.tolist())
        group = np.array(clique, np.int64)
        if len(sizes) <= enough or turn == rounds:
            break
        rank = np.empty_like(order)
        rank[order] = np.arange(order.size)
        if turn % 3 == 0:
            key = -np.arange(len(sizes))
        elif turn % 3 == 1:
            key = -np.array(sizes)
        else:
            key = random.random_raw(len(sizes)).astype(np.int64)
        order = np.lexsort((rank, group, key[group]))
    return group


def _join_in_order(neighbors: list[list[int]], order: list[int]) -> tuple[list[int], list[int]]:
    """Return the number of each arm's clique, and how many arms each clique has."""
    clique, sizes = [-1] * len(order), list[int]()
    for v in order:
        met = Counter(clique[u] for u in neighbors[v])
        k = min((k for k, count in met.items() if k >= 0 and count == sizes[k]), default=len(sizes))
        if k == len(sizes):
            sizes.append(0)
        sizes[k] += 1
        clique[v] = k
    return clique, sizes


def edge_cliques(conflicts: Conflicts) -> Groups:
    """Return cliques that together contain every conflict. An arm without a conflict is a clique of its own.

    Each begins with a conflict that is in none yet, and takes in the lowest arm that is joined with all of it.
    """
    neighbors = [set(row.tolist()) for row in np.split(conflicts.targets, conflicts.start[1:-1])]
    missing = [{u for u in row if u > v} for v, row in enumerate(neighbors)]
    cliques = []
    for v, row in enumerate(neighbors):
        if not row:
            cliques.append([v])
        while missing[v]:
            u = min(missing[v])
            clique, common = [v, u], row & neighbors[u]
            while common:
                clique.append(min(common))
                common &= neighbors[clique[-1]]
            cliques.append(clique)
            for w in clique:
                missing[w].difference_update(clique)
    return listed([np.array(clique, np.int64) for clique in cliques])


def maximal_cliques(conflicts: Conflicts, most: int, budget: Budget) -> Groups | None:
    """Return all cliques that cannot be extended, or None if there are more than `most` or there is no time.

    E. Tomita, A. Tanaka, H. Takahashi, "The worst-case time complexity for generating all maximal cliques and
    computational experiments", Theoretical Computer Science 363 (2006). Sets of arms are the bits of a number.
    """
    neighbors = [sum(1 << u for u in row.tolist()) for row in np.split(conflicts.targets, conflicts.start[1:-1])]
    found: list[list[int]] = []
    nodes: list[tuple[list[int], int, int]] = [([], (1 << conflicts.n) - 1, 0)]
    while nodes:
        clique, fresh, tried = nodes.pop()
        if not fresh and not tried:
            found.append(clique)
        if len(found) > most or (len(nodes) % 64 == 0 and budget.ended):
            return None
        if not fresh:
            continue
        pivot = max(_bits(fresh | tried), key=lambda v, fresh=fresh: (fresh & neighbors[v]).bit_count())  # type: ignore[misc]
        for v in _bits(fresh & ~neighbors[pivot]):
            nodes.append(([*clique, v], fresh & neighbors[v], tried & neighbors[v]))
            fresh ^= 1 << v
            tried |= 1 << v
    return listed([np.sort(np.array(clique, np.int64)) for clique in found])


def _bits(number: int) -> list[int]:
    found = []
    while number:
        lowest = number & -number
        found.append(lowest.bit_length() - 1)
        number ^= lowest
    return found
