"""The heaviest set of arms without a conflict, an upper bound, and a cover by cliques that proves one.

A set that is chosen greedily and a quick division into cliques come first. In each connected part where these do not
meet, there is branch and bound over the arms that are compatible, and linear and integer programs over cliques, which
HiGHS solves.

Weights are whole numbers, and so are the weights of the cliques in a cover, which sum to at least its weight for every
arm.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from sidelong.graphs.solvers.clique_search import CliqueSearch
from sidelong.graphs.solvers.cliques import divide_into_cliques, edge_cliques
from sidelong.graphs.solvers.groups import Found, by_label, round_up
from sidelong.graphs.solvers.parts import by_parts
from sidelong.graphs.solvers.programs import solve_integer_program, solve_linear_program

if TYPE_CHECKING:
    from sidelong.graphs.arrays import Integers
    from sidelong.graphs.solvers.budget import Budget
    from sidelong.graphs.solvers.conflicts import Conflicts
    from sidelong.graphs.solvers.groups import Groups
    from sidelong.graphs.solvers.parts import Piece


_MOST_BITS = 4096  # arms in a branch and bound: a matrix of 2 MB
_FEW_ARMS = 400
_QUICK = 0.05  # seconds for a first attempt
_SMALL_PROGRAM = 3_000  # entries of a linear program that takes a few milliseconds
_LISTED = 20_000_000  # pairs looked at in a second, at least, when rows are listed
_STEPS = 50_000  # conflicts looked at to divide arms into cliques once more, about, at most
_AT_ONCE = 100  # of so many arms one is chosen before they are sorted anew


def heaviest_set(conflicts: Conflicts, weight: Integers, budget: Budget) -> Found:
    """Return a heaviest set without a conflict, or the best that was found in time.

    A set and a cover of the whole are found quickly, and then each part is looked at for which they do not meet.
    """
    arms = _large_set(conflicts, weight)
    cliques = by_label(divide_into_cliques(conflicts, min(10, _STEPS // (1 + conflicts.targets.size)), arms.size))
    cover = cliques.weighing(np.maximum.reduceat(weight[cliques.arms], cliques.start[:-1]))
    return by_parts(conflicts, weight, (arms, cover), lambda part, share: _ConflictPart(part).solve(share), budget)


def _large_set(conflicts: Conflicts, weight: Integers) -> Integers:
    """Take the arm that weighs most for each conflict that it still has, and so on."""
    start, targets = conflicts
    free = np.ones(conflicts.n, np.bool_)
    degree = np.diff(start)
    chosen: list[int] = []
    queue: list[int] = []
    while free.any():
        if not queue:  # sorted anew only now and then, since that takes as long as there are arms
            left = np.flatnonzero(free)
            order = np.argsort(weight[left] / (1 + degree[left]), kind="stable")
            queue = left[order[-1 - left.size // _AT_ONCE :]].tolist()
        v = queue.pop()
        if free[v]:
            chosen.append(v)
            near = targets[start[v] : start[v + 1]]
            gone = near[free[near]]
            free[v] = free[gone] = False
            for u in gone.tolist():
                degree[targets[start[u] : start[u + 1]]] -= 1
    return np.sort(np.array(chosen))


class _ConflictPart:
    """A connected part, and what is known about it."""

    def __init__(self, part: Piece) -> None:
        self._conflicts, self._weight, self._arms, self._cover = part
        self._equal = bool((self._weight == self._weight[0]).all())
        self._unit = int(self._weight[0]) if self._equal else 1  # every set weighs a multiple of it
        self._upper = self._cover.total

    @property
    def _lower(self) -> int:
        return int(self._weight[self._arms].sum())

    @property
    def _solved(self) -> bool:
        return self._lower == self._upper

    def solve(self, budget: Budget) -> Found:
        """Look for a better set and bound, and for a better cover of a small part even if both are known."""
        search, rows = None, None
        if not self._solved and self._suits_search():
            most = self._upper // self._unit if self._equal else None
            search = CliqueSearch(self._conflicts.compatible(), self._weight // self._unit, self._arms, most)
            self._search(search, budget, _QUICK)
        if self._suits_program(budget):
            rows = edge_cliques(self._conflicts)
            self._relax(rows, budget.part(0.5))
        if search is not None:
            self._search(search, budget, budget.left * (0.6 if rows else 1.0))
        if rows is not None:
            self._optimise(rows, budget)
        if search is not None:
            self._search(search, budget, budget.left)
        return Found(self._arms, self._lower, self._upper, self._cover)

    def _suits_program(self, budget: Budget) -> bool:
        """Tell whether a linear program may give a better cover, and there is time to list its rows."""
        if self._cover.total // self._unit * self._unit == self._lower:
            return False
        size = self._conflicts.targets.size
        if self._solved:
            return size <= _SMALL_PROGRAM
        return size**2 / self._conflicts.n <= _LISTED * budget.left

    def _suits_search(self) -> bool:
        """Tell whether there are few arms or many conflicts, so that sets are small."""
        n = self._conflicts.n
        return n <= _FEW_ARMS or (n <= _MOST_BITS and self._conflicts.targets.size > 0.05 * n**2)

    def _offer_set(self, arms: Integers) -> None:
        chosen = np.zeros(self._conflicts.n, np.bool_)
        chosen[arms] = True
        rows = np.repeat(chosen, np.diff(self._conflicts.start))
        if self._weight[arms].sum() > self._lower and not (rows & chosen[self._conflicts.targets]).any():
            self._arms = arms

    def _offer_upper(self, upper: float) -> None:
        whole = int(upper) // self._unit * self._unit
        if whole >= self._lower:  # what is less cannot be right, and proves nothing
            self._upper = min(self._upper, whole)

    def _search(self, search: CliqueSearch, budget: Budget, seconds: float) -> None:
        if self._solved or budget.ended:
            return
        search.run(budget.at_most(seconds))
        self._offer_set(search.best)
        if search.upper is not None:
            self._offer_upper(search.upper * self._unit)

    def _relax(self, rows: Groups, budget: Budget) -> None:
        """Solve the linear program over cliques. Its dual is a cover in parts."""
        n, largest = self._conflicts.n, float(self._weight.max())
        answer = solve_linear_program(self._weight / largest, rows.matrix(n), np.ones(rows.number), budget)
        if answer.x is None or answer.dual is None:
            return
        self._offer_set(np.flatnonzero(answer.x > 0.5))
        cover = round_up(rows, answer.dual * largest, self._weight)
        if cover.total < self._cover.total:
            self._cover = cover
            self._offer_upper(cover.total)

    def _optimise(self, rows: Groups, budget: Budget) -> None:
        """Solve the integer program over cliques."""
        if self._solved or budget.ended:
            return
        n, largest = self._conflicts.n, float(self._weight.max())
        answer = solve_integer_program(self._weight / largest, rows.matrix(n), np.ones(rows.number), budget)
        if answer.x is not None:
            self._offer_set(np.flatnonzero(answer.x > 0.5))
        if answer.bound < n:
            self._offer_upper(answer.bound * largest)
