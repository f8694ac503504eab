"""Graph numbers as linear and integer programs, for HiGHS."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from scipy import optimize

if TYPE_CHECKING:
    from scipy import sparse

    from sidelong.graphs.arrays import Reals
    from sidelong.graphs.solvers.budget import Budget


_TOLERANCE = 1e-6  # of HiGHS
# HiGHS looks at the clock only now and then. A program with more entries for each second is not worth a try.
_LINEAR, _INTEGER = 50_000, 20_000
_SMALL = 3_000  # entries that always are


class Optimum(NamedTuple):
    """What HiGHS found in time."""

    x: Reals | None = None  #: None if it found no solution
    dual: Reals | None = None  #: of a linear program, for each row
    bound: float = math.inf  #: of the objective, with the tolerance of HiGHS; infinite if nothing is known


def solve_linear_program(objective: Reals, rows: sparse.csr_array, most: Reals, budget: Budget) -> Optimum:
    """Maximise the objective over x >= 0 with rows @ x <= most."""
    if not _is_worth_a_try(rows, budget, _LINEAR):
        return Optimum()
    options = {"time_limit": budget.left}
    found = optimize.linprog(-objective, A_ub=rows, b_ub=most, bounds=(0, None), method="highs", options=options)
    if found.status != 0:
        return Optimum()
    return Optimum(np.maximum(0.0, found.x), np.maximum(0.0, -found.ineqlin.marginals), -found.fun)


def solve_integer_program(objective: Reals, rows: sparse.csr_array, most: Reals, budget: Budget) -> Optimum:
    """Maximise the objective over x of 0 and 1 with rows @ x <= most."""
    if not _is_worth_a_try(rows, budget, _INTEGER):
        return Optimum()
    found = optimize.milp(
        -objective,
        integrality=np.ones(objective.size),
        bounds=optimize.Bounds(0, 1),
        constraints=optimize.LinearConstraint(rows, -np.inf, most),
        options={"time_limit": budget.left, "mip_rel_gap": 0.0},
    )
    bound = math.inf if found.mip_dual_bound is None else -found.mip_dual_bound
    scale = _TOLERANCE * max(1.0, float(np.abs(objective).max(initial=0.0)))
    return Optimum(found.x, bound=bound + scale)


def _is_worth_a_try(rows: sparse.csr_array, budget: Budget, rate: int) -> bool:
    return not budget.ended and rows.nnz <= max(_SMALL, rate * budget.left)
