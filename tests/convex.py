"""The convex program of SquareCB.G, solved by SciPy, with a lower bound that needs no trust in the solver."""

import numpy as np
from scipy.optimize import linprog, minimize


def optimum(f, A, gamma, start):
    """Return the value of a nearly optimal p, and a number that no p can be below.

    In units of 1 / gamma, the program is to minimise g(p) + z with z >= h_a(p) for each arm a, all convex.
    """
    K, gap, A = len(f), f - f.min(), np.asarray(A, float)

    def g(p):
        return gamma * p @ gap + (p * p / (p @ A)).sum()

    def g_slope(p):
        P = p @ A
        return gamma * gap + 2 * p / P - A @ (p * p / P**2)

    def h(p):
        return (1 - 2 * p) / (p @ A) - gamma * gap

    def h_slope(p):
        P = p @ A
        return -((1 - 2 * p) / P**2)[:, None] * A.T - np.diag(2 / P)

    best = None
    for p in start:
        p = np.maximum(p, 1e-9) / np.maximum(p, 1e-9).sum()  # noqa: PLW2901
        limits = [
            {
                "type": "ineq",
                "fun": lambda v: v[K] - h(v[:K]),
                "jac": lambda v: np.column_stack([-h_slope(v[:K]), np.ones(K)]),
            },
            {"type": "eq", "fun": lambda v: v[:K].sum() - 1, "jac": lambda _: np.append(np.ones(K), 0.0)},
        ]
        found = minimize(
            lambda v: g(v[:K]) + v[K],
            np.append(p, h(p).max()),
            jac=lambda v: np.append(g_slope(v[:K]), 1.0),
            constraints=limits,
            bounds=[(1e-12, 1)] * K + [(None, None)],
            method="SLSQP",
            options={"maxiter": 500, "ftol": 1e-13},
        )
        p = np.maximum(found.x[:K], 1e-12)  # noqa: PLW2901
        p /= p.sum()  # noqa: PLW2901
        value = g(p) + h(p).max()
        best = (value, p) if best is None or value < best[0] else best
    value, p = best
    # For any weights q over arms, the tangents at p of g + sum_a q_a h_a are below it; a line is least in a corner.
    # The best q is a linear program: maximise s with s <= g(p) + <g', e_i - p> + sum_a q_a (h_a + <h_a', e_i - p>).
    steps = np.eye(K) - p
    line = -(h(p)[None, :] + steps @ h_slope(p).T)
    solved = linprog(
        np.append(np.zeros(K), -1.0),
        A_ub=np.column_stack([line, np.ones(K)]),
        b_ub=g(p) + steps @ g_slope(p),
        A_eq=[[1.0] * K + [0.0]],
        b_eq=[1.0],
        bounds=[(0, None)] * K + [(None, None)],
    )
    return value / gamma, -solved.fun / gamma
