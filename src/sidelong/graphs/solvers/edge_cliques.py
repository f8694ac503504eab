"""Cliques of conflicts that together have every conflict in them, for linear programs.

Of a clique at most one arm is chosen. That says more than each of its conflicts alone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from sidelong._jit import kernel, rare_kernel
from sidelong.graphs.solvers.budget import call
from sidelong.graphs.solvers.groups import Groups

if TYPE_CHECKING:
    from sidelong.graphs.solvers.conflicts import Conflicts
    from sidelong.numerics import Whole


def cliques_around_edges(conflicts: Conflicts) -> Groups:
    """Return cliques in which every pair is."""
    n, size = conflicts.n, conflicts.targets.size
    start = np.zeros(size // 2 + n + 1, np.int64)
    arms = np.empty(6 * size + n, np.int64)
    room = CliqueRoom(np.zeros(size, np.bool_), np.full(n, -1), np.zeros(n, np.int64))
    count = call(grow, conflicts, room, start, arms)
    return Groups(start[: count + 1].copy(), arms[: start[count]].copy())


class CliqueRoom(NamedTuple):
    """What is known while cliques grow."""

    covered: np.ndarray  #: bool, (2m,); whether a pair is in a clique
    mark: np.ndarray  #: int64, (n,)
    common: np.ndarray  #: int64, (n,); what is joined with all of a clique


@rare_kernel
def grow(conflicts: Conflicts, room: CliqueRoom, start: np.ndarray, arms: np.ndarray) -> Whole:
    """Write the cliques; return how many. An arm without a conflict is one of its own.

    Each begins with a pair that is in none yet and takes in, one by one, the lowest arm that is joined with all of
    it. Where room runs out, pairs stay pairs.
    """
    rows, targets = conflicts
    count = 0
    size: Whole = np.int64(0)
    for v in range(rows.size - 1):
        if rows[v] == rows[v + 1]:
            arms[size] = v
            size += 1
            count += 1
            start[count] = size
        for e in range(rows[v], rows[v + 1]):
            if targets[e] < v or room.covered[e]:
                continue
            first = size
            arms[size] = v
            arms[size + 1] = targets[e]
            size += 2
            if arms.size - size > 3 * targets.size + rows.size:
                size = _extend(conflicts, room, arms, size)
            _cover(conflicts, room, arms, first, size)
            count += 1
            start[count] = size
    return count


@kernel
def _extend(conflicts: Conflicts, room: CliqueRoom, arms: np.ndarray, size: Whole) -> Whole:
    """Take into the pair at the end of `arms` what is joined with all; return where it ends then."""
    rows, targets = conflicts
    v, u = arms[size - 2], arms[size - 1]
    for e in range(rows[v], rows[v + 1]):
        room.mark[targets[e]] = v
    left = 0
    for e in range(rows[u], rows[u + 1]):
        if room.mark[targets[e]] == v:
            room.common[left] = targets[e]
            left += 1
    for e in range(rows[v], rows[v + 1]):
        room.mark[targets[e]] = -1
    while left > 0:
        w = room.common[0]
        arms[size] = w
        size += 1
        kept = 0
        e = rows[w]
        for k in range(1, left):
            while e < rows[w + 1] and targets[e] < room.common[k]:
                e += 1
            if e < rows[w + 1] and targets[e] == room.common[k]:
                room.common[kept] = room.common[k]
                kept += 1
        left = kept
    return size


@kernel
def _cover(conflicts: Conflicts, room: CliqueRoom, arms: np.ndarray, first: Whole, size: Whole) -> None:
    """Note that all pairs of a clique are in one."""
    rows, targets = conflicts
    for k in range(first, size):
        room.mark[arms[k]] = first
    for k in range(first, size):
        for e in range(rows[arms[k]], rows[arms[k] + 1]):
            if room.mark[targets[e]] == first:
                room.covered[e] = True
    for k in range(first, size):
        room.mark[arms[k]] = -1
