"""The fewest cliques that cover all arms, whole or in fractions, and lower bounds.

The same reductions as for sets, then each connected part by itself. That a largest set without a conflict needs as many
cliques as it has arms is a lower bound. A better one is the smallest cover by fractions of cliques, a linear program
with a column for each maximal clique. Where there are too many of these, only those are listed that a search for the
heaviest clique finds to be worth it: A. Mehrotra and M. Trick, "A column generation approach for graph coloring",
INFORMS Journal on Computing 8 (1996).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from sidelong.graphs.solvers.clique_partition import divide_into_cliques
from sidelong.graphs.solvers.clique_search import CliqueSearch
from sidelong.graphs.solvers.cliques import edge_cliques, maximal_cliques
from sidelong.graphs.solvers.coloring_search import ColoringSearch
from sidelong.graphs.solvers.groups import Found, by_label, listed, round_up
from sidelong.graphs.solvers.local_search import LocalSearch
from sidelong.graphs.solvers.packing import heaviest_set
from sidelong.graphs.solvers.parts import by_parts, solve_core, split
from sidelong.graphs.solvers.programs import solve_integer_program, solve_linear_program

if TYPE_CHECKING:
    from sidelong.graphs.arrays import Flags, Integers
    from sidelong.graphs.solvers.budget import Budget
    from sidelong.graphs.solvers.conflicts import Conflicts


_MOST_BITS = 2048  # arms for which there are matrices
_MOST_CLIQUES = 20_000
_QUICK = 0.05  # seconds for a first attempt
_STEPS = 2_000_000  # conflicts looked at to divide arms quickly, at most
_SCALE = 2**30  # of weights in whole numbers


def fewest_cliques(conflicts: Conflicts, unit: int, budget: Budget, *, whole: bool) -> Found:
    """Return the fewest cliques that cover all arms, whole or in fractions, or the best that was found in time.

    Each arm is covered with a weight of `unit`, in which all is counted.
    """
    weight = np.full(conflicts.n, unit)
    return solve_core(conflicts, weight, lambda core, weights: _by_parts(core, weights, budget, whole=whole))


def _by_parts(conflicts: Conflicts, weight: Integers, budget: Budget, *, whole: bool) -> Found:
    """Look for a set and for cliques of the whole, and then at each part for which they do not meet."""
    unit = int(weight[0])
    if whole:
        apart = heaviest_set(conflicts, weight, budget.part(0.3).at_most(_QUICK)).arms
    else:
        apart = LocalSearch(conflicts).run(min(20 * conflicts.n, _STEPS * conflicts.n // conflicts.targets.size))
    inside = np.zeros(conflicts.n, np.bool_)
    inside[apart] = True
    group = divide_into_cliques(conflicts, min(100 if whole else 5, _STEPS // conflicts.m), apart.size)

    def solve(arms: Integers, piece: Conflicts, share: Budget) -> Found:
        known = np.flatnonzero(inside[arms]), np.unique(group[arms], return_inverse=True)[1]
        return _CoverPart(piece, *known).solve(unit, share) if whole else _Relaxation(piece, *known, share).solve(unit)

    cover = by_label(group)
    quick = apart, cover.weighing(np.full(cover.number, unit))
    return by_parts(split(conflicts), quick, weight, solve, budget)


class _CoverPart:
    """A connected part, in whole cliques."""

    def __init__(self, conflicts: Conflicts, apart: Integers, group: Integers) -> None:
        """Begin with a set without a conflict, and with the number of each arm's clique."""
        self._conflicts = conflicts
        self._apart = apart
        self._group = group
        self._lower = apart.size

    @property
    def _count(self) -> int:
        return int(self._group.max()) + 1

    @property
    def _solved(self) -> bool:
        return self._lower >= self._count

    def solve(self, unit: int, budget: Budget) -> Found:
        """Look for fewer cliques and a better bound."""
        conflicts = self._conflicts
        if not self._solved and conflicts.n <= _MOST_BITS:
            search = ColoringSearch(conflicts.compatible(), self._group, self._apart)
            self._search(search, budget.at_most(_QUICK))
            if not self._solved:
                relaxation = _Relaxation(conflicts, self._apart, self._group, budget.part(0.3))
                fractional = relaxation.solve(_SCALE)
                self._lower = max(self._lower, -(-fractional.lower // _SCALE))
                if not self._solved and not budget.ended:
                    self._optimise(relaxation, budget.part(0.5))
            self._search(search, budget)
        cover = by_label(self._group).weighing(np.full(self._count, unit))
        return Found(self._apart, self._lower * unit, self._count * unit, cover)

    def _search(self, search: ColoringSearch, budget: Budget) -> None:
        if self._solved or budget.ended:
            return
        search.enough = max(search.enough, self._lower)
        ended = search.run(budget)
        if search.best.max() < self._group.max():
            self._group = search.best
        if ended:
            self._lower = self._count

    def _optimise(self, relaxation: _Relaxation, budget: Budget) -> None:
        """Choose among the cliques of the linear program. If these are all maximal ones, the answer is exact."""
        n, rows = self._conflicts.n, relaxation.cliques
        matrix = -rows.matrix(n).T.tocsr()
        answer = solve_integer_program(np.full(rows.number, -1.0), matrix, np.full(n, -1.0), budget)
        if answer.x is not None:
            group = np.full(n, -1)
            for k in np.flatnonzero(answer.x > 0.5).tolist():
                group[rows.arms[rows.start[k] : rows.start[k + 1]]] = k
            _, numbered = np.unique(group, return_inverse=True)
            if group.min() >= 0 and numbered.max() < self._group.max():
                self._group = numbered
        if relaxation.complete and np.isfinite(answer.bound):
            self._lower = min(self._count, max(self._lower, int(np.ceil(-answer.bound))))


class _Relaxation:
    """The linear program over cliques of a connected part: the most weight that arms can have, with 1 a clique."""

    def __init__(self, conflicts: Conflicts, apart: Integers, group: Integers, budget: Budget) -> None:
        """Begin with a set without a conflict, and with the number of each arm's clique."""
        self._conflicts = conflicts
        self._apart = apart
        self._budget = budget
        self._whole = self.cliques = by_label(group)
        all_ = maximal_cliques(conflicts, _MOST_CLIQUES, budget) if conflicts.n <= _MOST_BITS else None
        self.complete = all_ is not None  #: whether all maximal cliques are listed
        if all_ is not None:
            self.cliques = all_
        elif conflicts.targets.size**2 / conflicts.n <= 10 * _STEPS:
            self.cliques = edge_cliques(conflicts)

    def solve(self, unit: int) -> Found:
        """Solve it, adding cliques as long as there are any that weigh more than 1."""
        n, budget = self._conflicts.n, self._budget
        cover = self._whole.weighing(np.full(self._whole.number, unit))
        lower, solved = self._apart.size * unit, False
        while not solved or not budget.ended:
            answer = solve_linear_program(np.ones(n), self.cliques.matrix(n), np.ones(self.cliques.number), budget)
            if answer.x is None or answer.dual is None:
                break
            solved = True
            weight = np.floor(_SCALE * answer.x).astype(np.int64)
            heaviest, more = self._price(weight)
            better = round_up(self.cliques, answer.dual * unit, np.full(n, unit))
            cover = better if better.total < cover.total else cover
            lower = max(lower, int(weight.sum()) * unit // heaviest if heaviest else 0)
            if not more:
                break
            self.cliques = listed([*np.split(self.cliques.arms, self.cliques.start[1:-1]), *more])
        return Found(self._apart, min(lower, cover.total), cover.total, cover)

    def _price(self, weight: Integers) -> tuple[int, list[Integers]]:
        """Return the weight of a heaviest clique, or 0 if it is not known, and cliques that weigh more than 1."""
        conflicts = self._conflicts
        if self.complete:
            return max(1, int((self.cliques.matrix(conflicts.n).astype(np.int64) @ weight).max())), []
        if conflicts.n > _MOST_BITS:
            return 0, []
        joined = conflicts.joined()
        most = int(_SCALE * (1 + 1e-6))
        found = _greedy_cliques(joined, weight, most)
        if found:
            return 0, found
        some = np.flatnonzero(weight)
        search = CliqueSearch(joined[np.ix_(some, some)], weight[some], np.empty(0, np.int64))
        ended = search.run(self._budget)
        best = some[search.best]
        heaviest = int(weight[best].sum())
        return (heaviest if ended else 0), ([_extended(joined, best)] if heaviest > most else [])


def _greedy_cliques(joined: Flags, weight: Integers, least: int) -> list[Integers]:
    """Return different cliques that weigh more than `least`, each around another arm."""
    found: dict[bytes, Integers] = {}
    for v in np.flatnonzero(weight).tolist():
        clique, left = [v], joined[v] * weight
        while left.any():
            u = int(left.argmax())
            clique.append(u)
            left *= joined[u]
        if weight[clique].sum() > least:
            arms = _extended(joined, np.array(clique))
            found[arms.tobytes()] = arms
    return list(found.values())


def _extended(joined: Flags, clique: Integers) -> Integers:
    """Return a maximal clique around one, ascending."""
    left = joined[clique].all(axis=0)
    arms = clique.tolist()
    while left.any():
        arms.append(int(left.argmax()))
        left &= joined[arms[-1]]
    return np.sort(np.array(arms))
