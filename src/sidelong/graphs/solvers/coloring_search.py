"""The fewest groups of arms, where some pairs must be apart, by branch and bound, in slices that can be interrupted.

D. Brelaz, "New methods to color the vertices of a graph", Communications of the ACM 22 (1979): next comes the arm that
fits into the fewest groups. It is tried in each, and in a new one as long as that can lead to fewer than the best.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from sidelong._jit import kernel, rare_kernel
from sidelong.graphs.solvers.budget import Search, call

if TYPE_CHECKING:
    from sidelong.graphs.arrays import Flags, Integers
    from sidelong.numerics import Whole


class ColoringPath(NamedTuple):
    """The arms that were placed, in order, and what follows for the others."""

    apart: np.ndarray  #: bool, (n, n)
    degree: np.ndarray  #: int64, (n,)
    group: np.ndarray  #: int64, (n,); -1 for an arm that is not placed
    order: np.ndarray  #: int64, (n,); the arms in the order in which they were placed
    used: np.ndarray  #: int64, (n + 1,); how many groups there were before each
    closed: np.ndarray  #: int32, (n, groups); how many arms in a group must be apart from this one
    saturation: np.ndarray  #: int64, (n,); how many groups are closed to an arm
    best: np.ndarray  #: int64, (n,)
    state: np.ndarray  #: int64, (5,); arms placed, groups of the best, nodes, arms that stay, new (1) or next (0)


@rare_kernel
def search(path: ColoringPath, enough: int, most: int) -> None:
    """Visit at most `most` nodes. The search has ended when fewer arms are placed than stay in place."""
    state = path.state
    n = path.group.size
    placed = state[0]
    nodes = 0
    fresh = state[4] == 1
    while placed >= state[3] and nodes < most:
        if fresh:
            nodes += 1
            if placed == n:
                state[1] = path.used[n]
                for v in range(n):
                    path.best[v] = path.group[v]
                if state[1] <= enough:
                    placed = state[3] - 1
                    break
                fresh = False
                placed -= 1
                continue
            path.order[placed] = _choose(path)
            at = np.int64(-1)
        else:
            at = path.group[path.order[placed]]
            _move(path, path.order[placed], at, np.int64(-1))
        v = path.order[placed]
        # A new group is one more than there are; it must leave fewer than the best has.
        last = min(path.used[placed], state[1] - 2)
        at += 1
        while at <= last and path.closed[v, at] > 0:
            at += 1
        if at > last:
            fresh = False
            placed -= 1
            continue
        _move(path, v, at, np.int64(1))
        path.used[placed + 1] = max(path.used[placed], at + 1)
        placed += 1
        fresh = True
    state[0] = placed
    state[2] += nodes
    state[4] = 1 if fresh else 0


@kernel
def _choose(path: ColoringPath) -> Whole:
    best = np.int64(-1)
    for v in range(path.group.size):
        if path.group[v] < 0 and (
            best < 0
            or path.saturation[v] > path.saturation[best]
            or (path.saturation[v] == path.saturation[best] and path.degree[v] > path.degree[best])
        ):
            best = np.int64(v)
    return best


@kernel
def _move(path: ColoringPath, v: Whole, at: Whole, by: Whole) -> None:
    """Put an arm into a group (by 1), or take it out (by -1)."""
    path.group[v] = at if by > 0 else -1
    for u in range(path.group.size):
        if path.apart[v, u]:
            before = path.closed[u, at]
            path.closed[u, at] += by
            if before == 0 or path.closed[u, at] == 0:
                path.saturation[u] += by


class ColoringSearch(Search):
    """Looks for the fewest groups."""

    enough: int  #: no fewer groups will do, as is known

    def __init__(self, apart: Flags, known: Integers, clique: Integers) -> None:
        """Begin with which pairs must be apart, groups that do, and arms of which any two must be apart."""
        n = apart.shape[0]
        count = int(known.max()) + 1
        self.enough = clique.size
        self._path = ColoringPath(
            apart=np.ascontiguousarray(apart),
            degree=apart.sum(axis=1),
            group=np.full(n, -1),
            order=np.zeros(n, np.int64),
            used=np.zeros(n + 1, np.int64),
            closed=np.zeros((n, count + 1), np.int32),
            saturation=np.zeros(n, np.int64),
            best=known.copy(),
            state=np.array([clique.size, count, 0, clique.size, 1]),
        )
        path, at = self._path, np.arange(clique.size)  # the clique stays in groups of its own
        path.group[clique] = at
        path.order[at], path.used[at + 1] = clique, at + 1
        path.closed[:, at] = apart[:, clique]
        path.saturation[:] = path.closed.sum(axis=1)
        self.nodes = 1 + 100_000 // n

    def visit(self, nodes: int) -> None:
        """Visit at most so many nodes."""
        call(search, self._path, self.enough, nodes)

    @property
    def ended(self) -> bool:
        """Whether there cannot be fewer groups."""
        state = self._path.state
        return bool(state[0] < state[3])

    @property
    def best(self) -> Integers:
        """The group of each arm in the best division so far."""
        return self._path.best.copy()
