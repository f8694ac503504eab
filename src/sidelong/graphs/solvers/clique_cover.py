"""The fewest cliques that cover all arms, whole or in fractions, and lower bounds.

The same reductions as for sets, then each connected part by itself. That a largest set without a conflict needs as many
cliques as it has arms is a lower bound. A better one is the smallest cover by fractions of cliques, a linear program
with a column for each maximal clique. HiGHS solves it, and the same in whole numbers. Where there are too many maximal
cliques to list, cliques that contain every conflict still give covers, but no bound.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from sidelong.graphs.solvers.clique_partition import divide_into_cliques
from sidelong.graphs.solvers.cliques import edge_cliques, maximal_cliques
from sidelong.graphs.solvers.groups import Found, by_label, round_up
from sidelong.graphs.solvers.local_search import LocalSearch
from sidelong.graphs.solvers.parts import by_parts, solve_core, split
from sidelong.graphs.solvers.programs import solve_integer_program, solve_linear_program

if TYPE_CHECKING:
    from sidelong.graphs.arrays import Integers
    from sidelong.graphs.solvers.budget import Budget
    from sidelong.graphs.solvers.conflicts import Conflicts
    from sidelong.graphs.solvers.groups import Groups, WeightedGroups


_MOST_ARMS = 2048  # of a part whose maximal cliques are listed
_MOST_CLIQUES = 20_000
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
    apart = LocalSearch(conflicts).run(min(2_000 + 20 * conflicts.n, _STEPS * conflicts.n // conflicts.targets.size))
    inside = np.isin(np.arange(conflicts.n), apart)
    group = divide_into_cliques(conflicts, min(100 if whole else 5, _STEPS // conflicts.m), apart.size)

    def solve(arms: Integers, piece: Conflicts, share: Budget) -> Found:
        known = np.flatnonzero(inside[arms]), np.unique(group[arms], return_inverse=True)[1]
        return _solve_part(piece, *known, unit, share, whole=whole)

    cover = by_label(group)
    quick = apart, cover.weighing(np.full(cover.number, unit))
    return by_parts(split(conflicts), quick, weight, solve, budget)


def _solve_part(
    conflicts: Conflicts, apart: Integers, group: Integers, unit: int, budget: Budget, *, whole: bool
) -> Found:
    """Look for fewer cliques and a better bound than a set without a conflict and the number of each arm's clique."""
    n, known = conflicts.n, by_label(group)
    cover = known.weighing(np.full(known.number, unit))
    lower = apart.size * unit
    cliques = maximal_cliques(conflicts, _MOST_CLIQUES, budget) if n <= _MOST_ARMS else None
    complete = cliques is not None
    if cliques is None:
        if conflicts.targets.size**2 / n > 10 * _STEPS:
            return Found(apart, lower, cover.total, cover)
        cliques = edge_cliques(conflicts)
    answer = solve_linear_program(np.ones(n), cliques.matrix(n), np.ones(cliques.number), budget)
    if answer.x is not None and answer.dual is not None:
        if not whole:
            better = round_up(cliques, answer.dual * unit, np.full(n, unit))
            cover = better if better.total < cover.total else cover
        if complete:  # then no clique has a larger share of x than the heaviest of them
            share = np.floor(_SCALE * answer.x).astype(np.int64)
            heaviest = max(1, int((cliques.matrix(n).astype(np.int64) @ share).max()))
            lower = max(lower, int(share.sum()) * unit // heaviest)
    if whole:
        lower = -(-lower // unit) * unit
        if lower < cover.total:
            cover, bound = _choose_cliques(cliques, n, cover, budget)
            lower = max(lower, bound * unit if complete else 0)
    return Found(apart, min(lower, cover.total), cover.total, cover)


def _choose_cliques(cliques: Groups, n: int, cover: WeightedGroups, budget: Budget) -> tuple[WeightedGroups, int]:
    """Choose the fewest cliques that cover all arms; return the better cover, and how many of these it takes."""
    answer = solve_integer_program(
        np.full(cliques.number, -1.0), -cliques.matrix(n).T.tocsr(), np.full(n, -1.0), budget
    )
    if answer.x is not None:
        group = np.full(n, -1)
        for k in np.flatnonzero(answer.x > 0.5).tolist():
            group[cliques.arms[cliques.start[k] : cliques.start[k + 1]]] = k
        better = by_label(group)
        if group.min() >= 0 and better.number < cover.weight.size:
            cover = better.weighing(np.full(better.number, cover.weight[0]))
    return cover, math.ceil(-answer.bound) if math.isfinite(answer.bound) else 0
