"""Cliques of conflicts that together have every conflict in them, for linear programs.

Of a clique at most one arm is chosen. That says more than each of its conflicts alone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from sidelong._jit import kernel, rare_kernel

if TYPE_CHECKING:
    from sidelong.graphs.solvers.conflicts import Arms, Conflicts
    from sidelong.numerics import Whole

__all__ = ["cliques_around_edges"]


def cliques_around_edges(conflicts: Conflicts) -> tuple[Arms, Arms]:
    """Return cliques in which every pair is, as compressed rows: where each begins, and the arms."""
    n, size = conflicts.n, conflicts.targets.size
    start = np.zeros(size // 2 + n + 1, np.int64)
    arms = np.empty(6 * size + n, np.int64)
    room = Room(np.zeros(size, np.bool_), np.full(n, -1), np.zeros(n, np.int64))
    count = grow(conflicts.start, conflicts.targets, room, start, arms)
    return start[: count + 1].copy(), arms[: start[count]].copy()


class Room(NamedTuple):
    """What is known while cliques grow."""

    covered: np.ndarray  #: bool, (2m,); whether a pair is in a clique
    mark: np.ndarray  #: int64, (n,)
    common: np.ndarray  #: int64, (n,); what is joined with all of a clique


@rare_kernel
def grow(rows: np.ndarray, targets: np.ndarray, room: Room, start: np.ndarray, arms: np.ndarray) -> Whole:
    """Write the cliques; return how many. An arm without a conflict is one of its own.

    Each begins with a pair that is in none yet and takes in, one by one, the lowest arm that is joined with all of
    it. Where room runs out, pairs stay pairs.
    """
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
                size = _extend(rows, targets, room, arms, size)
            _cover(rows, targets, room, arms, first, size)
            count += 1
            start[count] = size
    return count


@kernel
def _extend(rows: np.ndarray, targets: np.ndarray, room: Room, arms: np.ndarray, size: Whole) -> Whole:
    """Take into the pair at the end of `arms` what is joined with all; return where it ends then."""
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
def _cover(rows: np.ndarray, targets: np.ndarray, room: Room, arms: np.ndarray, first: Whole, size: Whole) -> None:
    """Note that all pairs of a clique are in one."""
    for k in range(first, size):
        room.mark[arms[k]] = first
    for k in range(first, size):
        for e in range(rows[arms[k]], rows[arms[k] + 1]):
            if room.mark[targets[e]] == first:
                room.covered[e] = True
    for k in range(first, size):
        room.mark[arms[k]] = -1
