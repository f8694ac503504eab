"""The largest set of arms without a directed cycle, an upper bound, and cliques and cycles that prove one.

An arc on no cycle, and one only on cycles in which two arms reveal each other, says nothing new and is dropped. Parts
in which all arcs go both ways are left to `packing`. In the others a largest set of arms no two of which reveal each
other is tried first: it may have no cycle. If it has, there is branch and bound, and integer programs to which cycles
are added until their solution has none.
"""

from __future__ import annotations

import functools
import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from scipy import sparse
from scipy.sparse import csgraph

from sidelong.graphs.solvers.acyclic_search import MOST_ARMS, AcyclicSearch
from sidelong.graphs.solvers.conflicts import from_scipy
from sidelong.graphs.solvers.cycles import arcs_of, disjoint_cycles, without_cycles
from sidelong.graphs.solvers.edge_cliques import cliques_around_edges
from sidelong.graphs.solvers.groups import Found, Groups, WeightedGroups, join, round_up, select
from sidelong.graphs.solvers.packing import heaviest_set
from sidelong.graphs.solvers.parts import solve_each, split
from sidelong.graphs.solvers.programs import solve_integer_program, solve_linear_program

if TYPE_CHECKING:
    import numpy.typing as npt

    from sidelong.graphs.solvers.budget import Budget
    from sidelong.graphs.solvers.conflicts import Conflicts

    Integers = npt.NDArray[np.int64]
    Reals = npt.NDArray[np.float64]

__all__ = ["AcyclicFound", "largest_acyclic"]

_ROUNDS = 30  # of adding cycles to a linear program
_FEW_ROUNDS = 5  # if it is for a better cover only
_LARGE_PROGRAM = 1_000  # arms
_LISTED = 20_000_000  # pairs looked at in a second, at least, when rows are listed


class AcyclicFound(NamedTuple):
    """An acyclic set, and what none exceeds, in units."""

    arms: Integers  #: ascending
    upper: int
    cover: WeightedGroups
    is_cycle: npt.NDArray[np.bool_]  #: for each group of the cover


def largest_acyclic(reveals: sparse.csr_array, unit: int, budget: Budget) -> AcyclicFound:
    """Return a largest set without a cycle, each arm of which counts `unit`, or the best that was found in time."""
    arcs = _drop_arcs(reveals)
    _, label = csgraph.connected_components(arcs, directed=False)
    one_way = arcs - arcs.multiply(arcs.T)
    one_way.eliminate_zeros()
    mixed = np.isin(label, label[one_way.tocoo().row])  # whether an arc of its part goes one way
    found = []
    if not mixed.all():
        arms = np.flatnonzero(~mixed)
        share = budget.part(0.5 if mixed.any() else 1.0)
        found.append((arms, _as_found(heaviest_set(from_scipy(arcs[arms][:, arms]), np.full(arms.size, unit), share))))
    if mixed.any():
        arms = np.flatnonzero(mixed)
        found.append((arms, _by_parts(arcs[arms][:, arms], unit, budget)))
    return AcyclicFound(
        np.sort(np.concatenate([arms[each.arms] for arms, each in found])),
        sum(each.upper for _, each in found),
        join([each.cover._replace(arms=arms[each.cover.arms]) for arms, each in found]),
        np.concatenate([each.is_cycle for _, each in found]),
    )


def _by_parts(matrix: sparse.csr_array, unit: int, budget: Budget) -> AcyclicFound:
    """Look for a set and for cycles of the whole, and then at each part for which they do not meet."""
    quick = _look_quickly(matrix, unit)
    parts = split(from_scipy(matrix))
    part = parts.of_arm
    count = parts.ends.size - 1
    group_part = part[quick.cover.arms[quick.cover.start[:-1]]]
    most = np.where(quick.is_cycle, np.diff(quick.cover.start) - 1, 1)
    lower = np.bincount(part[quick.arms], minlength=count)
    upper = np.zeros(count, np.int64)
    np.add.at(upper, group_part, most)
    inside = np.isin(np.arange(part.size), quick.arms)

    def solve(arms: Integers, piece: Conflicts, share: Budget) -> AcyclicFound:
        return _Part(piece.to_scipy().astype(np.int8), np.flatnonzero(inside[arms]), unit).solve(share)

    solved = solve_each(parts, np.flatnonzero(lower < upper), solve, budget)
    rest = np.ones(count, np.bool_)
    rest[list(solved)] = False
    sets = [quick.arms[rest[part[quick.arms]]]]
    covers = [select(quick.cover, rest[group_part])]
    for k, each in solved.items():
        arms, _ = parts.piece(k)
        sets.append(arms[each.arms])
        covers.append(each.cover._replace(arms=arms[each.cover.arms]))
    return AcyclicFound(
        np.concatenate(sets),
        int(upper[rest].sum()) * unit + sum(each.upper for each in solved.values()),
        join(covers),
        np.concatenate([quick.is_cycle[rest[group_part]], *(each.is_cycle for each in solved.values())]),
    )


def _look_quickly(matrix: sparse.csr_array, unit: int) -> AcyclicFound:
    """Leave out arms until there is no cycle, and bound that by cycles that have no arm in common."""
    n, arcs = matrix.shape[0], arcs_of(matrix)
    start, arms = disjoint_cycles(arcs)
    alone = np.setdiff1d(np.arange(n), arms)
    cycles = start.size - 1
    cover = WeightedGroups(
        np.append(start, start[-1] + np.arange(1, alone.size + 1)),
        np.append(arms, alone),
        np.full(cycles + alone.size, unit),
    )
    best = without_cycles(arcs, np.arange(n))
    return AcyclicFound(best, (n - cycles) * unit, cover, np.arange(cycles + alone.size) < cycles)


def _drop_arcs(reveals: sparse.csr_array) -> sparse.csr_array:
    """Return the arcs, as 1, that go both ways or are on a cycle of arcs that do not."""
    entries = sparse.coo_array(reveals)
    loops = entries.row == entries.col
    ends = entries.row[~loops], entries.col[~loops]
    arcs = sparse.csr_array((np.ones(ends[0].size, np.int8), ends), shape=reveals.shape)
    both_ways = arcs.multiply(arcs.T)
    one_way = (arcs - both_ways).tocoo()
    _, label = csgraph.connected_components(sparse.csr_array(one_way), connection="strong")
    keep = (label[one_way.row] == label[one_way.col]) & (one_way.data != 0)
    kept = sparse.csr_array((one_way.data[keep], (one_way.row[keep], one_way.col[keep])), shape=arcs.shape)
    return sparse.csr_array(kept + both_ways)


def _as_found(found: Found) -> AcyclicFound:
    return AcyclicFound(found.arms, found.upper, found.cover, np.zeros(found.cover.weight.size, np.bool_))


class _Part:
    """A connected part in which some arcs go one way."""

    def __init__(self, matrix: sparse.csr_array, best: Integers, unit: int) -> None:
        """Begin with a set that has no cycle."""
        self._matrix = matrix
        self._arcs = arcs_of(matrix)
        self._n = matrix.shape[0]
        self._unit = unit
        self._conflicts = from_scipy(matrix.multiply(matrix.T))
        self._best = best
        self._cycles: list[list[int]] = []

    def solve(self, budget: Budget) -> AcyclicFound:
        """Look for a better set and bound."""
        found = self._try_sets_without_conflict(_look_quickly(self._matrix, self._unit), budget.part(0.3))
        if self._best.size * self._unit == found.upper:
            return found._replace(arms=self._best)
        search = None
        if self._n <= MOST_ARMS:
            search = AcyclicSearch(self._matrix.toarray() != 0, self._best)
            search.run(budget.part(0.02))
            self._best = search.best
        if self._n <= _LARGE_PROGRAM:
            found = self._relax(found, budget.part(0.2), _FEW_ROUNDS if search and search.ended else _ROUNDS)
        upper = found.upper
        if search is not None:
            search.run(budget)
            self._best = search.best
            upper = self._best.size * self._unit if search.ended else upper
        elif self._best.size * self._unit < upper:
            upper = min(upper, self._optimise(budget))
        return found._replace(arms=self._best, upper=max(upper, self._best.size * self._unit))

    def _try_sets_without_conflict(self, found: AcyclicFound, budget: Budget) -> AcyclicFound:
        """Take a largest set of arms no two of which lead to each other: no acyclic one is larger."""
        other = _as_found(heaviest_set(self._conflicts, np.full(self._n, self._unit), budget))
        arms = without_cycles(self._arcs, other.arms)
        if arms.size > self._best.size:
            self._best = arms
        if other.cover.total >= _total(found.cover, found.is_cycle):
            other = found._replace(upper=min(found.upper, other.upper))
        return other._replace(upper=min(found.upper, other.upper))

    @functools.cached_property
    def _cliques(self) -> tuple[Integers, Integers]:
        return cliques_around_edges(self._conflicts)

    # Linear and integer programs. A row says how many of its arms a set has at most: one of a clique, and of a cycle
    # all but one.

    def _rows(self) -> tuple[Groups, Reals, npt.NDArray[np.bool_]]:
        start, arms = self._cliques
        sizes = np.array([len(cycle) for cycle in self._cycles], np.int64)
        rows = Groups(
            np.append(start, start[-1] + np.cumsum(sizes)),
            np.concatenate([arms, *(np.array(cycle, np.int64) for cycle in self._cycles)]),
        )
        is_cycle = np.append(np.zeros(start.size - 1, np.bool_), np.ones(sizes.size, np.bool_))
        return rows, np.append(np.ones(start.size - 1), sizes - 1.0), is_cycle

    def _relax(self, found: AcyclicFound, budget: Budget, rounds: int) -> AcyclicFound:
        """Solve the linear program over cliques and the cycles that it violates. Its dual is a cover."""
        answer = None
        for _ in range(rounds):
            rows, most, is_cycle = self._rows()
            again = solve_linear_program(np.ones(self._n), rows.matrix(self._n), most, budget)
            if again.x is None:
                break
            answer, used = again, (rows, is_cycle)
            if not self._add_cycles(again.x, budget) or budget.ended:
                break
        if answer is None or answer.dual is None:
            return found
        rows, is_cycle = used
        cover, kept = round_up(rows, answer.dual * self._unit, np.full(self._n, self._unit))
        is_cycle = np.append(is_cycle[kept], np.zeros(cover.weight.size - kept.sum(), np.bool_))
        total = _total(cover, is_cycle)
        if total >= _total(found.cover, found.is_cycle):
            return found
        return found._replace(cover=cover, is_cycle=is_cycle, upper=min(found.upper, total // self._unit * self._unit))

    def _optimise(self, budget: Budget) -> int:
        """Solve integer programs, each with the cycles of the last solution added, until one has none."""
        upper: int = self._n
        size = self._conflicts.targets.size
        if size**2 / self._n > _LISTED * budget.left:
            return upper * self._unit
        while not budget.ended:
            rows, most, _ = self._rows()
            answer = solve_integer_program(np.ones(self._n), rows.matrix(self._n), most, budget)
            if answer.bound < upper:
                upper = math.floor(answer.bound)
            if answer.x is None:
                break
            arms = without_cycles(self._arcs, np.flatnonzero(answer.x > 0.5))
            if arms.size > self._best.size:
                self._best = arms
            if self._best.size >= upper or not self._add_cycles(np.rint(answer.x), budget):
                break
        return upper * self._unit

    def _add_cycles(self, x: Reals, budget: Budget) -> bool:
        """Add cycles of which x takes more than all but one arm; tell whether there are any."""
        cost = np.maximum(0.0, 1.0 - x) + 1e-9
        arcs = self._matrix.tocoo()
        graph = sparse.csr_array((0.5 * (cost[arcs.row] + cost[arcs.col]), (arcs.row, arcs.col)), shape=arcs.shape)
        open_ = np.flatnonzero(cost < 0.999)
        if not open_.size:
            return False
        free = np.ones(self._n, np.bool_)
        added = False
        for v in open_[np.argsort(cost[open_], kind="stable")].tolist():
            if not free[v]:
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
            self._cycles.append(cycle[::-1])
            free[cycle] = False
            added = True
        return added


def _total(cover: WeightedGroups, is_cycle: npt.NDArray[np.bool_]) -> int:
    most = np.where(is_cycle, np.diff(cover.start) - 1, 1)
    return int((cover.weight * most).sum())
