r"""An incumbent in the place of the cautious half of `glance`, and an allowance for what trying `glance` may cost.

Somebody decides already. The first adviser says in each round what he would do, and the expected loss exceeds his own
by at most an allowance W, whatever the losses are. Lines 2, 4 and 6 to 11 of `glance` become these; all else stays::

    Z = 0
    2   q = the advice of the incumbent
    4   J^(beta) = sum_i r_i d_i + max_j sum_{i in A(j)} (max(r_i, 0) (1 - d_i) + max(-r_i, 0) d_i) / P_i, where
            r = p - q and p = (1 - beta) q + beta D, and j is any arm with p_j > 0
        beta = 1 - rho if Z + J^(1 - rho) <= W, otherwise what twenty bisections of [0, 1 - rho] find to be allowed
        Z += J^(beta);  p = (1 - beta) q + beta D;  draw
    --- told ---
    10  J = sum_i r_i d_i + sum_{i in A(I)} r_i (l_i - d_i) / P_i;  Z += J - J^(beta)

J is at most J^(beta) whichever arm I is drawn and whatever the losses are, so that Z never exceeds W. J has the mean
<p - q, l>, by which the round loses more than the incumbent. A round that is told late, or never, counts as the most
that it can cost, J^(beta), until it is told. So the mean of Z is at least what was lost beyond the incumbent, whatever
is told, and when. A, P and d are those of the ask: if the outcome shows another graph, its further losses are left out,
and a round in which something is missing that the graph of the ask promised stays at J^(beta).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from sidelong._jit import kernel
from sidelong.graphs.arrays import observe
from sidelong.learners.glance_cautious import least_share
from sidelong.numerics import total

if TYPE_CHECKING:
    from sidelong.graphs.arrays import GraphArrays
    from sidelong.learners.glance import State
    from sidelong.learners.interface import Told

ALLOWANCE, SPENT = 0, 1  # in `budget`: W, which is 0 without an incumbent, and Z
HALVINGS = 20  # beta is found to a millionth; whatever it is, the promise holds


@kernel
def allowed_boldness(
    state: State, graph: GraphArrays, q: np.ndarray, D: np.ndarray, d: np.ndarray, p: np.ndarray, P: np.ndarray
) -> float:
    """Return the share of the bold half that the allowance permits, and take from it what that can cost."""
    left = state.budget[ALLOWANCE] - state.budget[SPENT]
    most = 1.0 - least_share(state)
    beta = most
    cost = _cost_with(state, graph, q, D, d, beta, p, P)
    if cost > left:
        low, high, beta, cost = 0.0, most, 0.0, 0.0
        for _ in range(HALVINGS):
            middle = 0.5 * (low + high)
            found = _cost_with(state, graph, q, D, d, middle, p, P)
            if found <= left:
                low, beta, cost = middle, middle, found
            else:
                high = middle
    state.budget[SPENT] += cost  # 4
    return beta


@kernel
def _cost_with(
    state: State,
    graph: GraphArrays,
    q: np.ndarray,
    D: np.ndarray,
    d: np.ndarray,
    beta: float,
    p: np.ndarray,
    P: np.ndarray,
) -> float:
    """Write p and P of a share of the bold half, and return the most that it can cost."""
    for i in range(p.size):
        p[i] = (1.0 - beta) * q[i] + beta * D[i]
    observe(graph, p, P)
    for i in range(p.size):
        state.e[i] = (p[i] - q[i]) * d[i]
    return total(state.e) + _most_noise(graph, p, q, d, P, state.e)


@kernel
def _most_noise(
    graph: GraphArrays, p: np.ndarray, q: np.ndarray, d: np.ndarray, P: np.ndarray, scratch: np.ndarray
) -> float:
    """Return the largest sum of r_i (l_i - d_i) / P_i over what one play reveals, whatever the losses are."""
    for i in range(p.size):
        r = p[i] - q[i]
        scratch[i] = 0.0
        if r != 0.0:
            scratch[i] = (r * (1.0 - d[i]) if r > 0.0 else -r * d[i]) / max(P[i], p[i])
    if graph.contiguous:  # what an interval sums to is the difference of two sums from the first arm on
        for i in range(1, p.size):
            scratch[i] += scratch[i - 1]
    most = 0.0
    for j in range(p.size):
        first, last = graph.start[j], graph.stop[j]
        if p[j] > 0.0 and first < last:
            sum_ = 0.0
            if graph.contiguous:
                sum_ = scratch[last - 1] - (scratch[first - 1] if first > 0 else 0.0)
            else:
                for e in range(first, last):
                    sum_ += scratch[np.uint64(graph.targets[e])]
            most = max(most, sum_)
    return most


@kernel
def settle(state: State, graph: GraphArrays, told: Told, q: np.ndarray, d: np.ndarray, P: np.ndarray) -> None:
    """Learn what a round has cost beyond the incumbent; `P` is that of the graph that was asked with."""
    if told.asked.start.size > 0:
        _settle(state, graph, told.asked, told, q, d, P)
    else:
        _settle(state, graph, graph, told, q, d, P)


@kernel
def _settle(
    state: State,
    graph: GraphArrays,
    asked: GraphArrays,
    told: Told,
    q: np.ndarray,
    d: np.ndarray,
    P: np.ndarray,
) -> None:
    noise, k, last = 0.0, graph.start[told.arm], graph.stop[told.arm]
    for e in range(asked.start[told.arm], asked.stop[told.arm]):
        i = asked.targets[e]
        while k < last and graph.targets[k] < i:
            k += 1
        if k == last or graph.targets[k] != i:
            return  # it counts as the most that it can cost
        seen = max(P[i], told.p[i])
        noise += (told.p[i] - q[i]) * (told.losses[k - graph.start[told.arm]] - d[i]) / seen
    reserved = _most_noise(asked, told.p, q, d, P, state.e)
    state.budget[SPENT] += min(0.0, noise - reserved)  # 10; above 0 by rounding alone
