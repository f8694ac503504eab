"""Numbers of small graphs by exhaustive search: slow, obvious oracles over a matrix of bool."""

from __future__ import annotations

from itertools import combinations

import numpy as np
from scipy.optimize import linprog


def numbers(matrix):
    """Return independence, acyclic, strong independence, domination and clique cover."""
    return (
        independence(matrix),
        acyclic(matrix),
        strong_independence(matrix),
        domination(matrix),
        clique_cover(matrix),
    )


def _largest(matrix, holds):
    n = len(matrix)
    return next(size for size in range(n, 0, -1) if any(holds(arms) for arms in combinations(range(n), size)))


def independence(matrix):
    return _largest(matrix, lambda arms: not any(matrix[i][j] or matrix[j][i] for i, j in combinations(arms, 2)))


def strong_independence(matrix):
    return _largest(matrix, lambda arms: not any(matrix[i][j] and matrix[j][i] for i, j in combinations(arms, 2)))


def acyclic(matrix):
    return _largest(matrix, lambda arms: _has_no_cycle(matrix, arms))


def _has_no_cycle(matrix, arms):
    left = set(arms)
    while left:
        free = {j for j in left if not any(matrix[i][j] for i in left if i != j)}
        if not free:
            return False
        left -= free
    return True


def domination(matrix):
    n = len(matrix)
    return next(
        size
        for size in range(1, n + 1)
        if any(all(any(matrix[i][j] for i in arms) for j in range(n)) for arms in combinations(range(n), size))
    )


def clique_cover(matrix):
    return _cover_with_cliques(matrix, frozenset(range(len(matrix))), {})


def _cover_with_cliques(matrix, left, known):
    if not left:
        return 0
    if left not in known:
        first = min(left)
        joined = [j for j in left if j != first and matrix[first][j] and matrix[j][first]]
        known[left] = 1 + min(
            _cover_with_cliques(matrix, left - {first, *rest}, known)
            for size in range(len(joined) + 1)
            for rest in combinations(joined, size)
            if all(matrix[i][j] and matrix[j][i] for i, j in combinations(rest, 2))
        )
    return known[left]


def fractional_clique_cover(matrix):
    """Return the least sum of shares of all cliques, listed one by one, such that each arm is in 1 or more."""
    n = len(matrix)
    cliques = [
        arms
        for size in range(1, n + 1)
        for arms in combinations(range(n), size)
        if all(matrix[i][j] and matrix[j][i] for i, j in combinations(arms, 2))
    ]
    return _least_shares(np.array([[arm in clique for clique in cliques] for arm in range(n)], float))


def fractional_domination(matrix):
    """Return the least sum of shares of arms such that those that reveal it have 1 or more, for each arm."""
    return _least_shares(np.array(matrix, float).T)


def _least_shares(covers):
    found = linprog(np.ones(covers.shape[1]), A_ub=-covers, b_ub=-np.ones(covers.shape[0]), bounds=(0, None))
    assert found.status == 0
    return found.fun
