"""The cautious half of `glance`: lines 2, 7 to 9 and 13 of its pseudo-code.

Loops are short and over few arrays, of which the compiler can tell that they do not overlap.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from sidelong._jit import kernel, rare_kernel
from sidelong.graphs.arrays import observe
from sidelong.graphs.cover import Room, cover_largest_first
from sidelong.numerics import exp, log, smallest, total

if TYPE_CHECKING:
    from sidelong.graphs.arrays import GraphArrays
    from sidelong.learners.glance import State
    from sidelong.numerics import Whole

# In `rate`: x; y, and the least L that it was for; eps; Z and G.
X, Y, LEAST, EPS, Z, G = range(6)
# In `marks`: the key of the graph of U and u, how many arms are neither seen nor about to be, and how many arms of the
# cover have a cell of more than themselves.
GRAPH, UNSEEN, WIDE_ARMS = range(3)


@kernel
def weigh(state: State, n: int, eta: float, q: np.ndarray, g: np.ndarray) -> float:
    """Write q, g and w, by Newton's method on the power -1/n of the sum, nearly linear in y; return h."""
    least = smallest(state.L)
    slope = eta / (n - 1.0)
    y = max(1.0, state.rate[Y] + slope * (least - state.rate[LEAST]))
    sum_ = 0.0
    for _ in range(60):
        for i in range(q.size):
            g[i] = slope * (state.L[i] - least) + y
            r = 1.0 / g[i]
            q[i] = _power(r, n)
            state.w[i] = q[i] * r
        sum_ = total(q)
        if abs(sum_ - 1.0) <= 1e-10:
            break
        y = max(1.0, y + sum_ * (exp(log(sum_) / n) - 1.0) / total(state.w))
    state.rate[Y] = y
    state.rate[LEAST] = least
    inverse = 1.0 / sum_
    scale = n / (n - 1.0) * inverse
    for i in range(q.size):
        q[i] *= inverse  # 2
        state.a[i] = q[i] * g[i]
    for i in range(q.size):
        state.w[i] *= scale
    return n * (total(state.a) - 1.0)


@kernel
def _power(r: float, n: int) -> float:
    """Return r^n for n below 32, by squares and not in a loop, so that the loop around it can be vectorised."""
    r2 = r * r
    r4 = r2 * r2
    r8 = r4 * r4
    low = (r if n & 1 else 1.0) * (r2 if n & 2 else 1.0)
    return low * (r4 if n & 4 else 1.0) * (r8 if n & 8 else 1.0) * (r8 * r8 if n & 16 else 1.0)


@kernel
def make_cover(state: State, graph: GraphArrays) -> None:
    """Make U, u and the cells of the cover, unless the graph is the one they were made for."""
    if state.marks[GRAPH] == graph.key:
        return
    room = Room(state.free, state.heap)
    size = cover_largest_first(graph, state.order, state.zeros, state.chosen, room)
    for i in range(state.U.size):
        state.U[i] = 1.0 / size if state.chosen[i] else 0.0  # 7
    observe(graph, state.U, state.u)
    _make_cells(state, graph)
    state.marks[GRAPH] = graph.key


@rare_kernel
def _make_cells(state: State, graph: GraphArrays) -> None:
    """Give each arm to the first arm of the cover that reveals it, and each arm of the cover to itself."""
    K = state.cell.size
    state.cell[:] = K
    for c in range(K):
        if state.chosen[c]:
            for e in range(graph.start[c], graph.stop[c]):
                i = graph.targets[e]
                state.cell[i] = min(state.cell[i], c)
    state.wide[:] = 0.0
    for i in range(K):
        if state.chosen[i]:
            state.cell[i] = i
        else:
            state.wide[state.cell[i]] = 1.0
    state.marks[WIDE_ARMS] = np.int64(state.wide.sum())


@kernel
def explore(state: State, eta: float, cautious: float, P: np.ndarray) -> None:
    """Let eps move; `P` is that of the base."""
    eps = state.rate[EPS]
    scale = 2.0 * cautious * eta
    for i in range(P.size):
        gain = state.u[i] - P[i]
        inverse = 1.0 / (P[i] + eps * gain)
        state.a[i] = inverse * inverse * gain
        state.e[i] = inverse * gain
    for i in range(P.size):
        state.a[i] *= scale * state.v[i] * state.w[i]
        state.e[i] *= state.a[i]
    bend = 2.0 * total(state.e)
    if bend > 1e-300:
        eps += (total(state.a) - 1.0) / bend
    state.rate[EPS] = min(0.5, max(0.0, eps))  # 8


@kernel
def limited(state: State, eta: float, P: np.ndarray) -> float:
    """Return eps, or half of its limit where it is above that; `P` is that of the base."""
    eps = state.rate[EPS]
    if eps == 0.0:
        return 0.0
    for i in range(P.size):
        state.a[i] = state.w[i] / (P[i] + eps * (state.u[i] - P[i]))
    state.a[_leader(state.L)] = 0.0
    limit = 4.0 * eta * total(state.a)
    state.rate[EPS] = 0.5 * limit if eps > limit else eps  # 9
    return state.rate[EPS]  # type: ignore[no-any-return]


@kernel
def _leader(L: np.ndarray) -> Whole:
    """Return the arm of largest q."""
    least = smallest(L)
    for i in range(L.size):
        if L[i] == least:
            return i
    return 0


@kernel
def stability(state: State, n: int, eta: float, q: np.ndarray, g: np.ndarray) -> float:
    """Return S, with phi(s) as s^2 u (N + (N - 1) u + ... + u^(N - 1)), where N = n - 1 and u = 1 / (1 + s).

    With z = s g and g = 1 / r, that is q z^2 / (g + z) times the sum for each arm.
    """
    half = 0.5 / eta
    slope = eta / (n - 1.0)
    for i in range(q.size):
        state.w[i] = q[i] / g[i]
    for i in range(q.size):
        state.e[i] = state.w[i] * state.a[i]
    mean = total(state.e) / total(state.w)
    state.rate[Y] -= slope * mean  # about where the next y is
    for i in range(q.size):
        state.e[i] = state.a[i] + half * g[i]
    c = min(mean, smallest(state.e))
    for i in range(q.size):
        z = slope * (state.a[i] - c)
        inverse = 1.0 / (g[i] + z)
        state.w[i] = g[i] * inverse
        state.e[i] = (z * z) * inverse
    for i in range(q.size):
        state.e[i] *= q[i]
    if n > 2:
        state.v[:] = 1.0
        for k in range(2, n):
            for i in range(q.size):
                state.v[i] = state.v[i] * state.w[i] + k
        for i in range(q.size):
            state.e[i] *= state.v[i]  # 13
    return total(state.e) / eta
