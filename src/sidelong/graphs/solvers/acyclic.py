"""The largest set of arms without a directed cycle, an upper bound, and cliques and cycles that prove one.

An arc on no cycle, or only on cycles in which two arms reveal each other, says nothing new and is dropped. Disjoint
cliques and short cycles give a quick bound. In each connected part, a largest set of arms no two of which reveal each
other is tried first: it may have no cycle. If it has, there are programs, which HiGHS solves, and to which cycles are
added until their solution has none.
"""

from __future__ import annotations

import functools
import itertools
import math
from typing import TYPE_CHECKING

import numpy as np
from scipy import sparse
from scipy.sparse import csgraph

from sidelong.graphs.solvers.cliques import divide_into_cliques, edge_cliques
from sidelong.graphs.solvers.conflicts import from_scipy
from sidelong.graphs.solvers.groups import Found, Groups, by_label, listed, round_up
from sidelong.graphs.solvers.packing import heaviest_set
from sidelong.graphs.solvers.parts import by_parts
from sidelong.graphs.solvers.programs import solve_integer_program, solve_linear_program

if TYPE_CHECKING:
    from sidelong.graphs.arrays import Integers, Reals
    from sidelong.graphs.solvers.budget import Budget
    from sidelong.graphs.solvers.groups import WeightedGroups
    from sidelong.graphs.solvers.parts import Piece


_ROUNDS = 30  # of adding cycles to a linear program
_TIMES = 3  # that an arm is in a cycle which is added to a program at once
_MOST_TRIANGLES = 10_000  # rows of a program from the beginning
_STEPS = 3_000_000  # arcs looked at for disjoint cycles, about, at most
_AT_ONCE = 500  # arms, for one of which that is left out they are sorted anew
_LISTED = 20_000_000  # pairs looked at in a second, at least, when rows are listed


def largest_acyclic(reveals: sparse.csr_array, unit: int, budget: Budget) -> Found:
    """Return a largest set without a cycle, each arm of which counts `unit`, or the best that was found in time.

    A set and a cover of the whole are found quickly, and then each part is looked at for which they do not meet.
    """
    both_ways, one_way = _arcs_that_matter(reveals)
    arcs = sparse.csr_array(both_ways + one_way)
    n = arcs.shape[0]
    weight = np.full(n, unit)
    best = _without_cycles(arcs, arcs.T.tocsr(), np.arange(n))
    cliques = by_label(divide_into_cliques(from_scipy(both_ways), 0))
    size = np.diff(cliques.start)
    several = [group for group in np.split(cliques.arms, cliques.start[1:-1]) if group.size > 1]
    cycles = _disjoint_cycles(arcs, cliques.arms[np.repeat(size == 1, size)])
    most = np.array([1] * len(several) + [cycle.size - 1 for cycle in cycles], np.int64)
    cover = round_up(listed([*several, *cycles]), np.full(most.size, unit), weight, most)
    return by_parts(from_scipy(arcs), weight, (best, cover), lambda part, share: _CyclicPart(part).solve(share), budget)


def _disjoint_cycles(matrix: sparse.csr_array, arms: Integers) -> list[Integers]:
    """Return cycles that have no arm in common: of each arm in turn a shortest one through it, as long as that pays."""
    after = [set(row.tolist()) for row in np.split(matrix.indices, matrix.indptr[1:-1])]
    free, cycles, steps = set(arms.tolist()), [], 0
    for v in arms.tolist():
        if v not in free or steps > _STEPS:
            continue
        layers, seen = [{v}], {v}
        while layers[-1] and not any(v in after[u] for u in layers[-1]):
            steps += sum(len(after[u]) for u in layers[-1])
            layers.append((set().union(*(after[u] for u in layers[-1])) & free) - seen)
            seen |= layers[-1]
        cycle = [v]  # from its end to its beginning
        for layer in reversed(layers if layers[-1] else []):
            cycle.append(min(u for u in layer if cycle[-1] in after[u]))
        if cycle[1:]:
            cycles.append(np.array(cycle[:0:-1]))
        free.difference_update(cycle)
    return cycles


def _triangles(matrix: sparse.csr_array) -> list[Integers]:
    """Return the cycles of three arms no two of which lead to each other; one more than are of use, if there are."""
    one_way = sparse.csr_array(matrix - matrix.multiply(matrix.T))
    one_way.eliminate_zeros()
    after, before = (
        [set(row.tolist()) for row in np.split(rows.indices, rows.indptr[1:-1])]
        for rows in (one_way, one_way.T.tocsr())
    )
    found = (
        np.array([i, j, k])
        for i, row in enumerate(after)
        for j in sorted(row)
        for k in sorted(after[j] & before[i])
        if i < min(j, k)
    )
    return list(itertools.islice(found, _MOST_TRIANGLES + 1))


def _without_cycles(arcs: sparse.csr_array, back: sparse.csr_array, arms: Integers) -> Integers:
    """Leave out arms, those with the most ways through them first, until there is no cycle; return the others."""
    inside = np.zeros(arcs.shape[0], np.bool_)
    inside[arms] = True
    kept = inside.copy()
    degree = np.stack([arcs @ inside.astype(np.int64), back @ inside.astype(np.int64)])
    loose: list[int] = np.flatnonzero(inside & (degree == 0).any(axis=0)).tolist()  # on no cycle
    queue: list[int] = []

    def remove(v: int) -> None:
        inside[v] = False
        for rows, ahead in ((arcs, degree[1]), (back, degree[0])):
            near = rows.indices[rows.indptr[v] : rows.indptr[v + 1]]
            ahead[near] -= 1
            loose.extend(near[inside[near] & (ahead[near] == 0)].tolist())

    while True:
        while loose:
            v = loose.pop()
            if inside[v]:
                remove(v)
        if not queue:  # sorted anew only now and then, since that takes as long as there are arms
            left = np.flatnonzero(inside)
            order = np.argsort(degree[0, left] * degree[1, left], kind="stable")
            queue = left[order[-1 - left.size // _AT_ONCE :]].tolist()
        if not queue:
            return np.flatnonzero(kept)
        v = queue.pop()
        if inside[v]:
            kept[v] = False
            remove(v)


def every_cycle_has_a_pair(reveals: sparse.csr_array) -> bool:
    """Tell whether two arms of every directed cycle reveal each other."""
    return not _arcs_that_matter(reveals)[1].nnz


def _arcs_that_matter(reveals: sparse.csr_array) -> tuple[sparse.csr_array, sparse.csr_array]:
    """Return the arcs, as 1, that go both ways, and those of the others that are on a cycle of their kind."""
    entries = sparse.coo_array(reveals)
    loops = entries.row == entries.col
    ends = entries.row[~loops], entries.col[~loops]
    arcs = sparse.csr_array((np.ones(ends[0].size, np.int8), ends), shape=reveals.shape)
    both_ways = sparse.csr_array(arcs.multiply(arcs.T))
    one_way = (arcs - both_ways).tocoo()
    _, label = csgraph.connected_components(sparse.csr_array(one_way), connection="strong")
    keep = (label[one_way.row] == label[one_way.col]) & (one_way.data != 0)
    return both_ways, sparse.csr_array((one_way.data[keep], (one_way.row[keep], one_way.col[keep])), shape=arcs.shape)


class _CyclicPart:
    """A connected part in which some arcs go one way."""

    def __init__(self, part: Piece) -> None:
        conflicts, weight, self._best, self._cover = part
        self._matrix = conflicts.to_scipy().astype(np.int8)
        self._back = self._matrix.T.tocsr()
        self._n = conflicts.n
        self._unit = int(weight[0])
        self._conflicts = from_scipy(self._matrix.multiply(self._back))
        groups = np.split(self._cover.arms, self._cover.start[1:-1])
        self._cycles = [group for group, most in zip(groups, self._cover.most.tolist(), strict=True) if most > 1]
        triangles = _triangles(self._matrix)
        if len(triangles) <= _MOST_TRIANGLES:
            self._cycles = [*(cycle for cycle in self._cycles if cycle.size > 3), *triangles]
        self._upper = self._cover.total

    def solve(self, budget: Budget) -> Found:
        """Look for a better set and bound."""
        self._try_what_follows_an_arm()
        self._try_sets_without_conflict(budget.part(0.3))
        self._relax(budget.part(0.5))
        self._optimise(budget)
        return Found(self._best, self._lower, max(self._lower, self._upper), self._cover)

    @property
    def _lower(self) -> int:
        return self._best.size * self._unit

    def _offer_set(self, arms: Integers) -> None:
        """Leave out of a set what is in the way, and keep it if it is larger than the best."""
        arms = _without_cycles(self._matrix, self._back, arms)
        if arms.size > self._best.size:
            self._best = arms

    def _offer_cover(self, cover: WeightedGroups) -> None:
        if cover.total < self._cover.total:
            self._cover = cover
            self._upper = min(self._upper, cover.total // self._unit * self._unit)

    def _try_what_follows_an_arm(self) -> None:
        """Take all but the arms that lead to the one to which the fewest do, or that it leads to.

        Of every acyclic set some arm is the first, and some arm the last. So none is larger than that.
        """
        for rows in (self._matrix, self._back):
            least = int(np.diff(rows.indptr).argmin())
            others = np.delete(np.arange(self._n), rows.indices[rows.indptr[least] : rows.indptr[least + 1]])
            self._offer_set(others)
            self._upper = min(self._upper, others.size * self._unit)

    def _try_sets_without_conflict(self, budget: Budget) -> None:
        """Take a largest set of arms no two of which lead to each other: no acyclic one is larger."""
        found = heaviest_set(self._conflicts, np.full(self._n, self._unit), budget)
        self._offer_set(found.arms)
        self._offer_cover(found.cover)
        self._upper = min(self._upper, found.upper)

    @functools.cached_property
    def _cliques(self) -> Groups:
        return edge_cliques(self._conflicts)

    # Linear and integer programs. A row says how many of its arms a set has at most: one of a clique, and of a cycle
    # all but one.

    def _rows(self) -> tuple[Groups, Integers]:
        start, arms = self._cliques
        sizes = np.array([cycle.size for cycle in self._cycles], np.int64)
        rows = Groups(np.append(start, start[-1] + np.cumsum(sizes)), np.concatenate([arms, *self._cycles]))
        return rows, np.append(np.ones(start.size - 1, np.int64), sizes - 1)

    def _relax(self, budget: Budget) -> None:
        """Solve the linear program over cliques and the cycles that it violates. Its dual is a cover."""
        for _ in range(_ROUNDS):
            if self._lower >= self._upper:
                break
            rows, most = self._rows()
            answer = solve_linear_program(np.ones(self._n), rows.matrix(self._n), most.astype(np.float64), budget)
            if answer.x is None or answer.dual is None:
                break
            self._offer_cover(round_up(rows, answer.dual * self._unit, np.full(self._n, self._unit), most))
            if not self._add_cycles(answer.x, budget) or budget.ended:
                break

    def _optimise(self, budget: Budget) -> None:
        """Solve integer programs, each with the cycles of the last solution added, until one has none."""
        if self._conflicts.targets.size**2 / self._n > _LISTED * budget.left:
            return
        while self._lower < self._upper and not budget.ended:
            rows, most = self._rows()
            answer = solve_integer_program(np.ones(self._n), rows.matrix(self._n), most.astype(np.float64), budget)
            if answer.bound < self._n:
                self._upper = min(self._upper, math.floor(answer.bound) * self._unit)
            if answer.x is None:
                break
            self._offer_set(np.flatnonzero(answer.x > 0.5))
            if not self._add_cycles(np.rint(answer.x), budget):
                break

    def _add_cycles(self, x: Reals, budget: Budget) -> bool:
        """Add cycles of which x takes more than all but one arm; tell whether there are any."""
        cost = np.maximum(0.0, 1.0 - x) + 1e-9
        arcs = self._matrix.tocoo()
        graph = sparse.csr_array((0.5 * (cost[arcs.row] + cost[arcs.col]), (arcs.row, arcs.col)), shape=arcs.shape)
        open_ = np.flatnonzero(cost < 0.999)
        if not open_.size:
            return False
        times = np.zeros(self._n, np.int64)
        new: dict[frozenset[int], Integers] = {}
        for v in open_[np.argsort(cost[open_], kind="stable")].tolist():
            if times[v] >= _TIMES:
                continue
            if budget.ended:
                break
            far, last = csgraph.dijkstra(graph, indices=v, return_predecessors=True, limit=1.0)
            into = arcs.row[arcs.col == v]
            into = into[far[into] + 0.5 * (cost[into] + cost[v]) < 1.0 - 1e-6]
            if not into.size:
                continue
            u = int(into[np.argmin(far[into] + 0.5 * cost[into])])
            cycle = [u]
            while cycle[-1] != v:
                cycle.append(int(last[cycle[-1]]))
            if new.setdefault(frozenset(cycle), found := np.array(cycle[::-1])) is found:
                times[cycle] += 1
        self._cycles.extend(new.values())
        return bool(new)
