"""Cliques of conflicts: the rows of linear and integer programs.

Of a clique at most one arm is chosen, which says more than each of its conflicts alone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from sidelong.graphs.solvers.groups import listed

if TYPE_CHECKING:
    from sidelong.graphs.solvers.budget import Budget
    from sidelong.graphs.solvers.conflicts import Conflicts
    from sidelong.graphs.solvers.groups import Groups


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
