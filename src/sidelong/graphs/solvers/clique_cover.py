"""The fewest cliques that cover all arms, whole or in fractions, and lower bounds.

The same reductions as for sets, then each connected part by itself. That a largest set without a conflict needs as many
cliques as it has arms is a lower bound. A better one is the smallest cover by fractions of cliques, a linear program
with a column for each maximal clique. Where there are too many of these, only those are listed that a search for the
heaviest clique finds to be worth it: A. Mehrotra and M. Trick, "A column generation approach for graph coloring",
INFORMS Journal on Computing 8 (1996).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from sidelong.graphs.solvers.clique_partition import divide_into_cliques
from sidelong.graphs.solvers.clique_search import CliqueSearch
from sidelong.graphs.solvers.coloring_search import ColoringSearch
from sidelong.graphs.solvers.edge_cliques import cliques_around_edges
from sidelong.graphs.solvers.groups import Groups, WeightedGroups, by_label, join, listed, round_up, select, spread
from sidelong.graphs.solvers.local_search import LocalSearch
from sidelong.graphs.solvers.maximal_cliques import list_maximal_cliques
from sidelong.graphs.solvers.packing import heaviest_set
from sidelong.graphs.solvers.parts import solve_each, split
from sidelong.graphs.solvers.programs import solve_integer_program, solve_linear_program
from sidelong.graphs.solvers.reductions import reduce_conflicts

if TYPE_CHECKING:
    import numpy.typing as npt

    from sidelong.graphs.solvers.budget import Budget
    from sidelong.graphs.solvers.conflicts import Conflicts

    Integers = npt.NDArray[np.int64]
    Reals = npt.NDArray[np.float64]

__all__ = ["Fractional", "Grouped", "fewest_cliques", "fewest_fractions"]

_MOST_BITS = 2048  # arms for which there are matrices
_MOST_CLIQUES = 20_000
_QUICK = 0.05  # seconds for a first attempt
_STEPS = 2_000_000  # conflicts looked at to divide arms quickly, at most
_SCALE = 2**30  # of weights in whole numbers


class Grouped(NamedTuple):
    """The arms in cliques, and what is needed at least."""

    group: Integers  #: the number of each arm's clique
    lower: int
    apart: Integers  #: arms without a conflict among them, ascending; each needs a clique of its own


class Fractional(NamedTuple):
    """Cliques that cover each arm with a weight of `unit` in all, and what is needed at least, in units."""

    cover: WeightedGroups
    lower: int


def fewest_cliques(conflicts: Conflicts, budget: Budget) -> Grouped:
    """Return the fewest cliques that cover all arms, or the best that was found in time."""
    reduction = reduce_conflicts(conflicts, np.ones(conflicts.n, np.int64))
    core, taken = reduction.core, reduction.taken
    group = np.full(conflicts.n, -1)
    group[taken] = np.arange(taken.size)
    lower, apart = taken.size, taken
    if core.size:
        found = _cliques_by_parts(conflicts.induced(core), budget)
        group[core] = taken.size + found.group
        lower += found.lower
        apart = np.sort(np.append(taken, core[found.apart]))
    return Grouped(group[reduction.stands_for], lower, apart)


def _cliques_by_parts(conflicts: Conflicts, budget: Budget) -> Grouped:
    """Look for a set and for cliques of the whole, and then at each part for which they do not meet."""
    inside = np.zeros(conflicts.n, np.bool_)
    inside[heaviest_set(conflicts, np.full(conflicts.n, _SCALE), budget.part(0.3)).arms] = True
    group = divide_into_cliques(conflicts, min(100, _STEPS // conflicts.m), int(inside.sum()))
    parts = split(conflicts)
    part = parts.of_arm
    start, arms = by_label(group)
    lower = np.bincount(part[inside], minlength=parts.ends.size - 1)
    upper = np.bincount(part[arms[start[:-1]]], minlength=parts.ends.size - 1)

    def solve(arms: Integers, piece: Conflicts, share: Budget) -> Grouped:
        alone = np.unique(group[arms], return_inverse=True)[1]
        return _Part(piece, np.flatnonzero(inside[arms]), alone).solve(share)

    for k, found in solve_each(parts, np.flatnonzero(lower < upper), solve, budget).items():
        arms, _ = parts.piece(k)
        group[arms] = conflicts.n * (1 + k) + found.group  # a number that no other has
        lower[k] = found.lower
    return Grouped(np.unique(group, return_inverse=True)[1], int(lower.sum()), np.flatnonzero(inside))


def fewest_fractions(conflicts: Conflicts, unit: int, budget: Budget) -> Fractional:
    """Return the smallest cover by fractions of cliques, or the best that was found in time."""
    reduction = reduce_conflicts(conflicts, np.ones(conflicts.n, np.int64))
    core, taken = reduction.core, reduction.taken
    covers = [WeightedGroups(np.arange(taken.size + 1), taken, np.full(taken.size, unit))]
    lower = taken.size * unit
    if core.size:
        found = _fractions_by_parts(conflicts.induced(core), unit, budget)
        covers.append(found.cover._replace(arms=core[found.cover.arms]))
        lower += found.lower
    return Fractional(spread(join(covers), reduction.stands_for), lower)


def _fractions_by_parts(conflicts: Conflicts, unit: int, budget: Budget) -> Fractional:
    """Do the same as for whole cliques."""
    inside = np.zeros(conflicts.n, np.bool_)
    inside[LocalSearch(conflicts).run(min(20 * conflicts.n, _STEPS * conflicts.n // conflicts.targets.size))] = True
    group = divide_into_cliques(conflicts, min(5, _STEPS // conflicts.m), int(inside.sum()))
    parts = split(conflicts)
    part = parts.of_arm
    start, arms = by_label(group)
    clique_part = part[arms[start[:-1]]]
    lower = np.bincount(part[inside], minlength=parts.ends.size - 1) * unit
    upper = np.bincount(clique_part, minlength=parts.ends.size - 1) * unit

    def solve(arms: Integers, piece: Conflicts, share: Budget) -> Fractional:
        whole = by_label(np.unique(group[arms], return_inverse=True)[1])
        return _Relaxation(piece, whole, int(inside[arms].sum())).solve(unit, share)

    solved = solve_each(parts, np.flatnonzero(lower < upper), solve, budget)
    rest = np.ones(parts.ends.size - 1, np.bool_)
    rest[list(solved)] = False
    covers = [select(WeightedGroups(start, arms, np.full(start.size - 1, unit)), rest[clique_part])]
    for k, found in solved.items():
        arms, _ = parts.piece(k)
        covers.append(found.cover._replace(arms=arms[found.cover.arms]))
    total = int(lower[rest].sum()) + sum(found.lower for found in solved.values())
    return Fractional(join(covers), total)


class _Part:
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

    def solve(self, budget: Budget) -> Grouped:
        conflicts = self._conflicts
        if not self._solved and conflicts.n <= _MOST_BITS:
            search = ColoringSearch(conflicts.compatible(), self._group, self._apart)
            self._search(search, budget, _QUICK)
            if not self._solved:
                relaxation = _Relaxation(conflicts, by_label(self._group), self._lower)
                fractional = relaxation.solve(_SCALE, budget.part(0.3))
                self._lower = max(self._lower, -(-fractional.lower // _SCALE))
                if not self._solved and not budget.ended:
                    self._optimise(relaxation, budget.part(0.5))
            self._search(search, budget, budget.left)
        return Grouped(self._group, self._lower, self._apart)

    def _search(self, search: ColoringSearch, budget: Budget, seconds: float) -> None:
        if self._solved or budget.ended:
            return
        ended = search.run(budget.part(min(1.0, seconds / budget.left) if budget.left else 0.0), self._lower)
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
            chosen = np.flatnonzero(answer.x > 0.5)
            group = np.full(n, -1)
            for k, g in enumerate(chosen.tolist()):
                group[rows.arms[rows.start[g] : rows.start[g + 1]]] = k
            if group.min() >= 0:
                _, group = np.unique(group, return_inverse=True)
                if group.max() < self._group.max():
                    self._group = group
        if relaxation.complete and np.isfinite(answer.bound):
            self._lower = min(self._count, max(self._lower, int(np.ceil(-answer.bound))))


class _Relaxation:
    """The linear program over cliques of a connected part: the most weight that arms can have, with 1 a clique."""

    def __init__(self, conflicts: Conflicts, whole: Groups, lower: int) -> None:
        """Begin with whole cliques, and with how many are needed at least."""
        self._conflicts = conflicts
        self._whole = whole
        self._lower = lower
        few = conflicts.n <= _MOST_BITS
        listed_ = list_maximal_cliques(conflicts, _MOST_CLIQUES) if few else None
        self.complete = listed_ is not None  #: whether all maximal cliques are listed
        if listed_ is not None:
            self.cliques = listed_
        elif conflicts.targets.size**2 / conflicts.n <= 10 * _STEPS:
            self.cliques = Groups(*cliques_around_edges(conflicts))
        else:
            self.cliques = self._whole

    def solve(self, unit: int, budget: Budget) -> Fractional:
        """Solve it, adding cliques as long as there are any that weigh more than 1."""
        n = self._conflicts.n
        start, arms = self._whole
        whole = Fractional(WeightedGroups(start, arms, np.full(start.size - 1, unit)), self._lower * unit)
        best: Fractional | None = None
        while best is None or not budget.ended:
            answer = solve_linear_program(np.ones(n), self.cliques.matrix(n), np.ones(self.cliques.number), budget)
            if answer.x is None or answer.dual is None:
                break
            weight = np.floor(_SCALE * answer.x).astype(np.int64)
            heaviest, more = self._price(weight, budget)
            lower = max((best or whole).lower, int(weight.sum()) * unit // heaviest if heaviest else 0)
            cover, _ = round_up(self.cliques, answer.dual * unit, np.full(n, unit))
            best = Fractional(cover, min(lower, cover.total))
            if not more:
                break
            self.cliques = listed([*np.split(self.cliques.arms, self.cliques.start[1:-1]), *more])
        return whole if best is None else best

    def _price(self, weight: Integers, budget: Budget) -> tuple[int, list[Integers]]:
        """Return the weight of a heaviest clique, or 0 if it is not known, and cliques that weigh more than 1."""
        conflicts = self._conflicts
        if self.complete:
            return max(1, int((self.cliques.matrix(conflicts.n).astype(np.int64) @ weight).max())), []
        if conflicts.n > _MOST_BITS:
            return 0, []
        joined = ~conflicts.compatible()
        np.fill_diagonal(joined, val=False)
        found = _greedy_cliques(joined, weight, int(_SCALE * (1 + 1e-6)))
        if found:
            return 0, found
        some = np.flatnonzero(weight)
        search = CliqueSearch(joined[np.ix_(some, some)], weight[some], np.empty(0, np.int64))
        ended = search.run(budget)
        best = some[search.best]
        heaviest = int(weight[best].sum())
        if heaviest <= _SCALE * (1 + 1e-6):
            return (heaviest if ended else 0), []
        return (heaviest if ended else 0), [_extended(joined, best)]


def _greedy_cliques(joined: npt.NDArray[np.bool_], weight: Integers, least: int) -> list[Integers]:
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


def _extended(joined: npt.NDArray[np.bool_], clique: Integers) -> Integers:
    """Return a maximal clique around one, ascending."""
    left = joined[clique].all(axis=0)
    arms = clique.tolist()
    while left.any():
        arms.append(int(left.argmax()))
        left &= joined[arms[-1]]
    return np.sort(np.array(arms))
