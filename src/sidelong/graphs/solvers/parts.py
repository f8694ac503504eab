"""Connected parts, each of which is solved by itself: the skeleton of every solver."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, TypeVar

import numpy as np
from scipy.sparse import csgraph

from sidelong.graphs.solvers.conflicts import Conflicts, from_scipy
from sidelong.graphs.solvers.groups import Found, join, select

if TYPE_CHECKING:
    from collections.abc import Callable

    from sidelong.graphs.arrays import Integers
    from sidelong.graphs.solvers.budget import Budget
    from sidelong.graphs.solvers.groups import WeightedGroups


T = TypeVar("T")

_SMALL = 64  # arms of a part that may well come up again
_SHARE = 0.1  # of the time, for a part, at least


class Parts(NamedTuple):
    """The arms one part after the other, the smallest part first: part k has ``arms[ends[k]:ends[k + 1]]``."""

    arms: Integers
    ends: Integers
    conflicts: Conflicts  #: among the arms as numbered in this order

    @property
    def of_arm(self) -> Integers:
        """The part of each arm."""
        part = np.empty(self.arms.size, np.int64)
        part[self.arms] = np.repeat(np.arange(self.ends.size - 1), np.diff(self.ends))
        return part

    def piece(self, k: int) -> tuple[Integers, Conflicts]:
        """Return the arms of a part, ascending, and the conflicts among them."""
        a, b = int(self.ends[k]), int(self.ends[k + 1])
        start, targets = self.conflicts
        return self.arms[a:b], Conflicts(start[a : b + 1] - start[a], targets[start[a] : start[b]] - np.int32(a))


def split(conflicts: Conflicts) -> Parts:
    """Divide the arms into connected parts. The rows may also be arcs, of which one direction is there."""
    matrix = conflicts.to_scipy()
    count, label = csgraph.connected_components(matrix, directed=False)
    sizes = np.bincount(label, minlength=count)
    rank = np.empty(count, np.int64)
    rank[np.argsort(sizes, kind="stable")] = np.arange(count)
    arms = np.argsort(rank[label], kind="stable")
    sorted_ = conflicts if count == 1 else from_scipy(matrix[arms][:, arms])
    return Parts(arms, np.append(0, np.cumsum(np.sort(sizes))), sorted_)


def solve_each(
    parts: Parts,
    which: Integers,
    solve: Callable[[Integers, Conflicts, Budget], T],
    budget: Budget,
    weight: Integers,
) -> dict[int, T]:
    """Solve some of the parts, the smallest first, as long as there is time; small ones that are equal once."""
    solved: dict[int, T] = {}
    known: dict[bytes, T] = {}
    sizes = np.diff(parts.ends)[which].astype(np.float64) ** 2
    left = np.append(np.cumsum(sizes[::-1])[::-1], 0.0)
    for turn, k in enumerate(which.tolist()):
        if budget.ended:
            break
        arms, piece = parts.piece(k)
        key = b"".join(array.tobytes() for array in (*piece, weight[arms])) if piece.n <= _SMALL else b""
        if key not in known:
            known[key] = solve(arms, piece, budget.part(max(_SHARE, sizes[turn] / left[turn])))
        solved[k] = known[key] if key else known.pop(key)
    return solved


class Piece(NamedTuple):
    """A part, its arms numbered anew, with a set and a cover of it that were found quickly."""

    conflicts: Conflicts
    weight: Integers
    arms: Integers  #: the set
    cover: WeightedGroups


def by_parts(
    conflicts: Conflicts,
    weight: Integers,
    quick: tuple[Integers, WeightedGroups],
    solve: Callable[[Piece, Budget], Found],
    budget: Budget,
) -> Found:
    """Solve the parts for which a set and a cover that were found quickly do not meet, and join all."""
    arms, cover = quick
    parts = split(conflicts)
    part = parts.of_arm
    group_part = part[cover.arms[cover.start[:-1]]]
    lower, upper = np.zeros((2, parts.ends.size - 1), np.int64)
    np.add.at(lower, part[arms], weight[arms])
    np.add.at(upper, group_part, cover.weight * cover.most)

    def solve_part(among: Integers, piece: Conflicts, share: Budget) -> Found:
        k = part[among[0]]
        groups = select(cover, group_part == k)
        groups = groups._replace(arms=np.searchsorted(among, groups.arms))
        return solve(Piece(piece, weight[among], np.searchsorted(among, arms[part[arms] == k]), groups), share)

    solved = solve_each(parts, np.flatnonzero(lower < upper), solve_part, budget, weight)
    rest = np.ones(parts.ends.size - 1, np.bool_)
    rest[list(solved)] = False
    bounds = int(lower[rest].sum()), int(upper[rest].sum())
    known = Found(arms[rest[part[arms]]], *bounds, select(cover, rest[group_part]))
    return join([known, *(found.among(parts.piece(k)[0]) for k, found in solved.items())])
