"""The heaviest set of arms without a conflict, an upper bound, and a cover by cliques that proves one.

Reductions come first, then each connected part by itself: a local search for a good set, and a quick division into
cliques. Where these do not meet, there is branch and bound over the arms that are compatible, and linear and integer
programs over cliques, which HiGHS solves.

Weights are whole numbers, and so are the weights of the cliques in a cover, which sum to at least its weight for every
arm.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from sidelong.graphs.solvers.clique_partition import divide_into_cliques
from sidelong.graphs.solvers.clique_search import CliqueSearch
from sidelong.graphs.solvers.edge_cliques import cliques_around_edges
from sidelong.graphs.solvers.groups import Found, Groups, WeightedGroups, by_label, join, round_up, select, spread
from sidelong.graphs.solvers.local_search import LocalSearch
from sidelong.graphs.solvers.parts import solve_each, split
from sidelong.graphs.solvers.programs import solve_integer_program, solve_linear_program
from sidelong.graphs.solvers.reductions import reduce_conflicts

if TYPE_CHECKING:
    import numpy.typing as npt

    from sidelong.graphs.solvers.budget import Budget
    from sidelong.graphs.solvers.conflicts import Conflicts

    Integers = npt.NDArray[np.int64]

__all__ = ["heaviest_set"]

_MOST_BITS = 4096  # arms in a branch and bound: a matrix of 2 MB
_FEW_ARMS = 400
_TINY = 64  # arms for which a search is as quick as a guess
_FEW_PARTS = 50
_QUICK = 0.05  # seconds for a first attempt
_SMALL_PROGRAM = 3_000  # entries of a linear program that takes a few milliseconds
_LISTED = 20_000_000  # pairs looked at in a second, at least, when rows are listed
_STEPS = 2_000_000  # of a local search, at most, counted in conflicts looked at


def heaviest_set(conflicts: Conflicts, weight: Integers, budget: Budget) -> Found:
    """Return a heaviest set without a conflict, or the best that was found in time."""
    reduction = reduce_conflicts(conflicts, weight)
    core, taken = reduction.core, reduction.taken
    sets, upper = [taken], int(weight[taken].sum())
    covers = [WeightedGroups(np.arange(taken.size + 1), taken, weight[taken])]
    if core.size:
        found = _by_parts(conflicts.induced(core), weight[core], budget)
        sets.append(core[found.arms])
        upper += found.upper
        covers.append(found.cover._replace(arms=core[found.cover.arms]))
    return Found(np.sort(np.concatenate(sets)), upper, spread(join(covers), reduction.stands_for))


def _by_parts(conflicts: Conflicts, weight: Integers, budget: Budget) -> Found:
    """Look for a set and a cover of the whole, and then at each part for which they do not meet."""
    inside = np.zeros(conflicts.n, np.bool_)
    inside[_large_set(conflicts, weight)] = True
    clique = divide_into_cliques(conflicts, min(10, _STEPS // conflicts.targets.size), int(inside.sum()))
    start, members = by_label(clique)
    cover = WeightedGroups(start, members, np.maximum.reduceat(weight[members], start[:-1]))
    parts = split(conflicts)
    part = parts.of_arm
    clique_part = part[members[start[:-1]]]
    lower, upper = np.zeros((2, parts.ends.size - 1), np.int64)
    np.add.at(lower, part[inside], weight[inside])
    np.add.at(upper, clique_part, cover.weight)

    def solve(arms: Integers, piece: Conflicts, share: Budget) -> _Part:
        each = _Part(piece, weight[arms], np.flatnonzero(inside[arms]), clique[arms])
        each.solve(share, polish=parts.ends.size <= _FEW_PARTS)
        return each

    solved = solve_each(parts, np.flatnonzero(lower < upper), solve, budget, weight)
    rest = np.ones(parts.ends.size - 1, np.bool_)
    rest[list(solved)] = False
    sets = [np.flatnonzero(inside & rest[part])]
    covers = [select(cover, rest[clique_part])]
    for k, each in solved.items():
        arms, _ = parts.piece(k)
        sets.append(arms[each.arms])
        covers.append(each.cover._replace(arms=arms[each.cover.arms]))
    total = int(upper[rest].sum()) + sum(each.upper for each in solved.values())
    return Found(np.concatenate(sets), total, join(covers))


def _large_set(conflicts: Conflicts, weight: Integers) -> Integers:
    if conflicts.n > _TINY and (weight == weight[0]).all():
        degree = max(1, conflicts.targets.size // conflicts.n)
        return LocalSearch(conflicts).run(min(2_000 + 20 * conflicts.n, _STEPS // degree))
    # Take the arm that weighs most for each conflict it has, and so on.
    free = np.ones(conflicts.n, np.bool_)
    chosen = []
    for v in np.argsort(-weight / (1 + np.diff(conflicts.start)), kind="stable").tolist():
        if free[v]:
            chosen.append(v)
            free[conflicts.targets[conflicts.start[v] : conflicts.start[v + 1]]] = False
    return np.sort(np.array(chosen))


class _Part:
    """A connected part, and what is known about it."""

    def __init__(self, conflicts: Conflicts, weight: Integers, arms: Integers, clique: Integers) -> None:
        """Begin with a set, and with a number for each arm, the same for those of a clique."""
        self._conflicts = conflicts
        self._weight = weight
        self._equal = bool((weight == weight[0]).all())
        self._unit = int(weight[0]) if self._equal else 1  # every set weighs a multiple of it
        start, members = by_label(np.unique(clique, return_inverse=True)[1])
        self.arms = arms
        self.cover = WeightedGroups(start, members, np.maximum.reduceat(weight[members], start[:-1]))
        self.upper = self.cover.total

    @property
    def lower(self) -> int:
        """The weight of the set."""
        return int(self._weight[self.arms].sum())

    @property
    def solved(self) -> bool:
        """Whether no set weighs more."""
        return self.lower == self.upper

    def solve(self, budget: Budget, *, polish: bool) -> None:
        """Look for a better set and bound; if to polish, for a better cover of a small part even if both are known."""
        search, rows = None, None
        if not self.solved and self._suits_search():
            most = self.upper // self._unit if self._equal else None
            search = CliqueSearch(self._conflicts.compatible(), self._weight // self._unit, self.arms, most)
            self._search(search, budget, _QUICK)
        if self._suits_program(budget, polish=polish):
            rows = Groups(*cliques_around_edges(self._conflicts))
            self._relax(rows, budget.part(0.5))
        if search is None:
            self._look_longer(budget.part(0.1))
        else:
            self._search(search, budget, budget.left * (0.6 if rows else 1.0))
        if rows is not None:
            self._optimise(rows, budget)
        if search is not None:
            self._search(search, budget, budget.left)

    def _suits_program(self, budget: Budget, *, polish: bool) -> bool:
        """Tell whether a linear program may give a better cover, and there is time to list its rows."""
        if self.cover.total // self._unit * self._unit == self.lower:
            return False
        size = self._conflicts.targets.size
        if self.solved:
            return polish and size <= _SMALL_PROGRAM
        return size**2 / self._conflicts.n <= _LISTED * budget.left

    def _suits_search(self) -> bool:
        """Tell whether there are few arms or many conflicts, so that sets are small."""
        n = self._conflicts.n
        return n <= _FEW_ARMS or (n <= _MOST_BITS and self._conflicts.targets.size > 0.05 * n**2)

    def _offer_set(self, arms: Integers) -> None:
        chosen = np.zeros(self._conflicts.n, np.bool_)
        chosen[arms] = True
        rows = np.repeat(chosen, np.diff(self._conflicts.start))
        if self._weight[arms].sum() > self.lower and not (rows & chosen[self._conflicts.targets]).any():
            self.arms = arms

    def _offer_upper(self, upper: float) -> None:
        whole = int(upper) // self._unit * self._unit
        if whole >= self.lower:  # what is less cannot be right, and proves nothing
            self.upper = min(self.upper, whole)

    def _search(self, search: CliqueSearch, budget: Budget, seconds: float) -> None:
        if self.solved or budget.ended:
            return
        search.run(budget.part(min(1.0, seconds / max(budget.left, 1e-9))))
        self._offer_set(search.best)
        if search.upper is not None:
            self._offer_upper(search.upper * self._unit)

    def _look_longer(self, budget: Budget) -> None:
        """Spend time on a local search, where a set is found more easily than proved to be a largest one."""
        if self.solved or not self._equal:
            return
        search = LocalSearch(self._conflicts)
        while not budget.ended:
            self._offer_set(search.run(50_000))

    def _relax(self, rows: Groups, budget: Budget) -> None:
        """Solve the linear program over cliques. Its dual is a cover in parts."""
        n, largest = self._conflicts.n, float(self._weight.max())
        answer = solve_linear_program(self._weight / largest, rows.matrix(n), np.ones(rows.number), budget)
        if answer.x is None or answer.dual is None:
            return
        self._offer_set(np.flatnonzero(answer.x > 0.5))
        cover, _ = round_up(rows, answer.dual * largest, self._weight)
        if cover.total < self.cover.total:
            self.cover = cover
            self._offer_upper(cover.total)

    def _optimise(self, rows: Groups, budget: Budget) -> None:
        """Solve the integer program over cliques."""
        if self.solved or budget.ended:
            return
        n, largest = self._conflicts.n, float(self._weight.max())
        answer = solve_integer_program(self._weight / largest, rows.matrix(n), np.ones(rows.number), budget)
        if answer.x is not None:
            self._offer_set(np.flatnonzero(answer.x > 0.5))
        if answer.bound < n:
            self._offer_upper(answer.bound * largest)
