"""The fewest cliques that cover all arms, whole or in fractions, and lower bounds.

That a largest set without a conflict needs as many cliques as it has arms is a lower bound. Where a quick division into
cliques does not meet it, each connected part is looked at by itself. A better bound is the smallest cover by fractions
of cliques, a linear program with a column for each maximal clique. HiGHS solves it, and the same in whole numbers.
Where there are too many maximal cliques to list, cliques that contain every conflict still give covers, but no bound.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from sidelong.graphs.solvers.cliques import divide_into_cliques, edge_cliques, maximal_cliques
from sidelong.graphs.solvers.groups import Found, by_label, round_up
from sidelong.graphs.solvers.packing import heaviest_set
from sidelong.graphs.solvers.parts import by_parts
from sidelong.graphs.solvers.programs import solve_integer_program, solve_linear_program

if TYPE_CHECKING:
    from sidelong.graphs.solvers.budget import Budget
    from sidelong.graphs.solvers.conflicts import Conflicts
    from sidelong.graphs.solvers.groups import Groups, WeightedGroups
    from sidelong.graphs.solvers.parts import Piece


_MOST_ARMS = 2048  # of a part whose maximal cliques are listed
_MOST_CLIQUES = 20_000
_STEPS = 500_000  # conflicts looked at to divide arms into cliques, about, at most
_LISTED = 20_000_000  # pairs looked at in a second, at least, when rows are listed
_SCALE = 2**30  # of weights in whole numbers
_SHARE = 0.2  # of the time, for a set without a conflict


def fewest_cliques(conflicts: Conflicts, unit: int, budget: Budget, *, whole: bool) -> Found:
    """Return the fewest cliques that cover all arms, whole or in fractions, or the best that was found in time.

    Each arm is covered with a weight of `unit`, in which all is counted.
    """
    weight = np.full(conflicts.n, unit)
    found = heaviest_set(conflicts, weight, budget.part(_SHARE))
    cover = found.cover  # in fractions
    if whole:
        rounds = min(20, _STEPS // (1 + conflicts.targets.size))
        cliques = by_label(divide_into_cliques(conflicts, rounds, found.arms.size))
        cover = cliques.weighing(np.full(cliques.number, unit))

    def solve(part: Piece, share: Budget) -> Found:
        return _solve_part(part, unit, share, whole=whole)

    return by_parts(conflicts, weight, (found.arms, cover), solve, budget)


def _solve_part(part: Piece, unit: int, budget: Budget, *, whole: bool) -> Found:
    """Look for fewer cliques and a better bound."""
    conflicts, weight, apart, cover = part
    n, lower = conflicts.n, apart.size * unit
    cliques = maximal_cliques(conflicts, _MOST_CLIQUES, budget) if n <= _MOST_ARMS else None
    if cliques is not None:
        answer = solve_linear_program(np.ones(n), cliques.matrix(n), np.ones(cliques.number), budget)
        if answer.x is not None and answer.dual is not None:
            better = round_up(cliques, answer.dual * unit, weight)
            cover = cover if whole or better.total >= cover.total else better
            # No clique has a larger share of x than the heaviest of them.
            share = np.floor(_SCALE * answer.x).astype(np.int64)
            heaviest = max(1, int((cliques.matrix(n).astype(np.int64) @ share).max()))
            lower = max(lower, int(share.sum()) * unit // heaviest)
    if whole:
        lower = -(-lower // unit) * unit
        if lower < cover.total and cliques is not None:
            cover, bound = _choose_cliques(cliques, n, cover, budget)
            lower = max(lower, bound * unit)
        elif lower < cover.total and conflicts.targets.size**2 / n <= _LISTED * budget.left:
            cover, _ = _choose_cliques(edge_cliques(conflicts), n, cover, budget)
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
