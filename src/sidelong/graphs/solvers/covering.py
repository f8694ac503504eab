"""The fewest arms that reveal all targets, a lower bound, and a packing that proves one.

A packing gives each target a share such that no arm reveals more than 1 in all. Then to reveal all takes at least
as many arms as the sum of the shares: it is the dual of the linear program whose solution in whole numbers is wanted.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
from scipy import sparse

from sidelong.graphs.checkers import Shares
from sidelong.graphs.cover import cover_scratch
from sidelong.graphs.domination import take_greedily
from sidelong.graphs.solvers.budget import call
from sidelong.graphs.solvers.on_intervals import smallest_cover
from sidelong.graphs.solvers.programs import solve_integer_program, solve_linear_program

if TYPE_CHECKING:
    from sidelong.graphs.arrays import GraphArrays, Integers
    from sidelong.graphs.solvers.budget import Budget


_UNIT = 2**32


def fewest_arms(graph: GraphArrays, targets: Integers, budget: Budget) -> tuple[Integers, int, Shares]:
    """Return the fewest arms that reveal all targets, or the best found in time; how many it takes; and a packing.

    Some arm must reveal each target.
    """
    if graph.contiguous:
        arms, apart = smallest_cover(graph, targets)
        return arms, arms.size, _shares(graph, apart)
    arms = _greedy(graph, targets)
    _, packing = relax(graph, targets, budget.part(0.5))
    lower = math.ceil(packing.total)
    if lower < arms.size:
        columns = -_matrix(graph, targets).T.tocsr()
        minus = np.full(targets.size, -1.0)
        answer = solve_integer_program(np.full(columns.shape[1], -1.0), columns, minus, budget)
        if math.isfinite(answer.bound):
            lower = max(lower, math.ceil(-answer.bound))
        found = arms if answer.x is None else np.flatnonzero(answer.x > 0.5)
        if found.size < arms.size and (columns[:, found].sum(axis=1) <= -1).all():
            arms = found
    return arms, min(lower, arms.size), packing


def relax(graph: GraphArrays, targets: Integers, budget: Budget) -> tuple[Shares, Shares]:
    """Solve the linear program and its dual: return shares of arms that reveal all targets, and a packing."""
    if graph.contiguous:  # its matrix is totally unimodular: nothing is gained by fractions
        arms, apart = smallest_cover(graph, targets)
        return _shares(graph, arms), _shares(graph, apart)
    degree = int(graph.stop[0] - graph.start[0])
    if targets.size == graph.start.size and _is_regular(graph, degree):  # then equal shares are both
        equal = Shares(np.ones(targets.size, np.int64), degree)
        return equal, equal
    reveals = _matrix(graph, targets)
    answer = solve_linear_program(np.ones(targets.size), reveals, np.ones(graph.start.size), budget)
    if answer.x is None or answer.dual is None:  # there was not time enough
        return _shares(graph, _greedy(graph, targets)), _quick_packing(graph, targets)
    exact = reveals.astype(np.int64)
    packed = np.floor(_UNIT * answer.x).astype(np.int64)
    worst = int((exact @ packed).max())
    if worst > _UNIT:
        packed = np.array([share * _UNIT // worst for share in packed.tolist()])
    shares = np.ceil(_UNIT * answer.dual).astype(np.int64)
    least = int((exact.T @ shares).min())
    if least < _UNIT:
        shares = np.array([-(-share * _UNIT // max(least, 1)) for share in shares.tolist()])
    packing = np.zeros(graph.start.size, np.int64)
    packing[targets] = packed
    return Shares(shares, _UNIT), Shares(packing, _UNIT)


def _is_regular(graph: GraphArrays, degree: int) -> bool:
    """Tell whether each arm reveals so many arms, and so many reveal it."""
    return bool((graph.stop - graph.start == degree).all() and (graph.in_stop - graph.in_start == degree).all())


def _shares(graph: GraphArrays, arms: Integers) -> Shares:
    whole = np.zeros(graph.start.size, np.int64)
    whole[arms] = 1
    return Shares(whole, 1)


def _quick_packing(graph: GraphArrays, targets: Integers) -> Shares:
    """Return the better of two: targets no two of which one arm reveals, and equal shares of what an arm reveals."""
    used, wanted = np.zeros((2, graph.start.size), np.bool_)
    apart = []
    in_degree = graph.in_stop - graph.in_start
    for j in targets[np.argsort(in_degree[targets], kind="stable")].tolist():
        revealing = graph.sources[graph.in_start[j] : graph.in_stop[j]]
        if not used[revealing].any():
            used[revealing] = True
            apart.append(j)
    whole = _shares(graph, np.array(apart, np.int64))
    wanted[targets] = True
    sums = np.append(0, np.cumsum(wanted[graph.targets]))
    revealed = sums[graph.stop] - sums[graph.start]
    most = np.ones(graph.start.size, np.int64)
    np.maximum.at(most, graph.targets, np.repeat(revealed, graph.stop - graph.start))
    equal = Shares(np.where(wanted, _UNIT // most, 0), _UNIT)
    return whole if whole.total >= equal.total else equal


def _matrix(graph: GraphArrays, targets: Integers) -> sparse.csr_array:
    """Return the matrix with a row for each arm and a column for each target."""
    n = graph.start.size
    entries = (np.ones(graph.targets.size), graph.targets, np.append(graph.start, graph.targets.size))
    return sparse.csr_array(entries, shape=(n, n))[:, targets]


def _greedy(graph: GraphArrays, targets: Integers) -> Integers:
    """Take an arm that reveals most of what is left, and so on; then leave out what is not needed."""
    n = graph.start.size
    scratch = cover_scratch(n)
    scratch.free[:] = np.arange(1, n + 2)  # an arm that is no target is covered
    scratch.free[targets] = targets
    chosen = np.zeros(n, np.bool_)
    call(take_greedily, graph, chosen, scratch, targets.size)
    times = np.full(n, 2)  # and is not missed
    times[targets] = 0
    rows = {i: graph.targets[graph.start[i] : graph.stop[i]] for i in np.flatnonzero(chosen).tolist()}
    for row in rows.values():
        times[row] += 1
    for i, row in rows.items():
        if times[row].min() > 1:
            times[row] -= 1
            chosen[i] = False
    return np.flatnonzero(chosen)
