"""The cautious half of `glance` and its budget: lines 2, 4 and 6 to 11 of its pseudo-code.

`w` holds exp(-(L_e - least) / y) of every expert, where y is x as it was when all weights were last renewed. A round
multiplies those of the arms that it revealed. All are renewed once x exceeds y by 3 %, or by 1 / (2 c) if that is less,
and once max(h, 1000 c / t) is twice what it was in a round since then. So y stands for x in lines 2, 7 and 8, and what
the theorems need of x holds of it: it never falls, is known when a round is asked for, and moves with the entropy.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from sidelong._jit import kernel
from sidelong.numerics import exp, log, total

if TYPE_CHECKING:
    from sidelong.graphs.arrays import GraphArrays
    from sidelong.learners.glance import State
    from sidelong.learners.interface import Told

PLAIN = 1_000.0  # c / t times this is the least entropy of the rate; while that is above ln N, ln N stands for it
LEAST_SHARE = 0.002  # of the cautious half where every play reveals every arm: a uniform share costs money there
SHARE = 0.018  # more of it where plays reveal nothing on the side: Z jumps by up to 1 / rho
SMALL = 300.0  # W from which on such jumps matter less, so that rho falls: in long games it cost most of all
LAZY = 0.03  # by which x may exceed y: it costs the theorems 3 %, and saves nearly all exponentials

# In `rate`: x; y; the L that a weight of 1 stands for; the sum of the weights; Z; G; V; how much plays reveal; ln N;
# the least entropy that x grew by since y = x; and 1 once an expert was absent or came later, so that Z is not the same
# for all.
X, Y, LEAST, SUM, Z, G, NOISE, REVEALED, LOG_N, LOW, UNEVEN = range(11)
PREDICTED = 3  # where a trace has the part of J that is known before the draw


@kernel
def mark_experts(state: State, present: np.ndarray, advice: np.ndarray) -> None:
    """Write into `there` which experts are: the arms that can be played, and who advises to play some of those."""
    K = present.size
    for i in range(K):
        state.there[i] = present[i]
    for m in range(state.L.size - K):
        mass, lost = 0.0, 0.0
        if m < advice.size // K:
            for i in range(K):
                mass += advice[m * K + i]
                lost += 0.0 if present[i] else advice[m * K + i]
        state.there[K + m] = mass > 0.0 and lost == 0.0


@kernel
def write_weights(L: np.ndarray, there: np.ndarray, y: float, w: np.ndarray) -> float:
    """Write the exponential weights of those in `there`; return the L of a weight 1."""
    least = math.inf
    for e in range(L.size):
        if there[e]:
            least = min(least, L[e])
    for e in range(L.size):
        # Not below e^-700, where numbers lose digits and sums slow down.
        w[e] = exp(max(-700.0, -(L[e] - least) / y)) if there[e] else 0.0
    return least


@kernel
def weigh(state: State, some: bool, advice: np.ndarray, q: np.ndarray) -> None:
    """Write q, which all experts, or those in `there` if there are but `some`, share by their weights."""
    K = q.size
    w, sum_ = state.w, state.rate[SUM]
    if some:
        w = state.v
        write_weights(state.L, state.there, state.rate[Y], w)
        sum_ = total(w)
    scale = 1.0 / sum_
    for i in range(K):
        q[i] = w[i] * scale  # 2
    for m in range(advice.size // K):
        if state.there[K + m]:
            for i in range(K):
                q[i] += w[K + m] * scale * advice[m * K + i]


@kernel
def boldness(state: State, some: bool) -> float:
    """Return the share of the bold half: less of it when half of its budget is spent."""
    most = 0.0
    if state.rate[UNEVEN] > 0.0:
        most = -math.inf
        for e in range(state.z.size):
            if state.there[e] or not some:
                most = max(most, state.z[e])
    spent = (state.rate[Z] + most) / _budget(state)
    return (1.0 - least_share(state)) * min(1.0, max(0.0, 2.0 * (1.0 - spent)))  # type: ignore[no-any-return]  # 4


@kernel
def least_share(state: State) -> float:
    """Return rho, the share that the bold half leaves to the cautious one at least."""
    K = float(state.o.size)
    more = SHARE * min(1.0, SMALL / _budget(state))
    return LEAST_SHARE + more * (1.0 - state.rate[REVEALED]) * (K / (K - 1.0))  # type: ignore[no-any-return]


@kernel
def _budget(state: State) -> float:
    return 4.0 + 2.0 * state.rate[G] + 2.0 * math.sqrt(state.rate[NOISE])  # type: ignore[no-any-return]


@kernel
def learn(
    state: State, graph: GraphArrays, told: Told, q: np.ndarray, P: np.ndarray, d: np.ndarray, advice: np.ndarray
) -> float:
    """Learn the losses of a round, in which those in `there` were, and write there that all are; return C."""
    K, first, y = q.size, graph.start[told.arm], state.rate[Y]
    some = told.absent > 0 or state.L.size > K
    c = 1.0 + state.rate[LOG_N] + log(float(told.t))
    f = _divisor(state, c, told.t)  # of the weights before line 9
    w, before, least = state.w, state.rate[SUM], state.rate[LEAST]
    if some:
        w = state.v
        least = write_weights(state.L, state.there, y, w)
        before = total(w)
    mean, noise = 0.0, 0.0
    for k in range(graph.stop[told.arm] - first):
        i = np.uint64(graph.targets[first + k])
        seen = max(P[i], told.p[told.arm])  # rounding may lose the arm that was played in P
        a = told.losses[k] / seen  # 6
        state.e[k] = a
        mean += q[i] * a
        noise += (told.p[i] - q[i]) * ((told.losses[k] - d[i]) / seen)
        state.L[i] += a  # 9
        w[i] *= exp(-a / y)
    for m in range(advice.size // K):
        if state.there[K + m]:
            a = _advised(state, graph, told, advice[m * K :])
            state.L[K + m] += a
            w[K + m] *= exp(-a / y)
    after = total(w)
    if after > 1e-280:
        mix = y * log(before / after)  # 7
    else:  # those of least L have the weight, within y ln N
        mix = write_weights(state.L, state.there, y, state.v) - least + y * log(before)
    C = max(0.0, mean - mix)  # 8
    J = told.trace[PREDICTED] + noise
    state.rate[Z] += J  # 10
    state.rate[NOISE] += noise * noise
    if some:
        _charge_absent(state, mix, J)
    renewed = _slow_down(state, C, f, c)
    state.rate[SUM] = after
    if renewed or some or after < 1e-100:
        state.rate[LEAST] = write_weights(state.L, state.there, state.rate[Y], state.w)
        state.rate[SUM] = total(state.w)
    return C  # type: ignore[no-any-return]


@kernel
def _advised(state: State, graph: GraphArrays, told: Told, E: np.ndarray) -> float:
    """Return what the estimates in `e` make of an adviser."""
    a, first = 0.0, graph.start[told.arm]
    for k in range(graph.stop[told.arm] - first):
        a += E[np.uint64(graph.targets[first + k])] * state.e[k]
    return a


@kernel
def _charge_absent(state: State, mix: float, J: float) -> None:
    for e in range(state.L.size):
        if not state.there[e]:
            state.L[e] += mix  # 9
            state.z[e] -= J
            state.rate[UNEVEN] = 1.0
    state.there[:] = True


@kernel
def _divisor(state: State, c: float, t: int) -> float:
    """Return what C is divided by: ln N at first, and later the entropy of the weights of all experts."""
    least = PLAIN * c / t
    if least >= state.rate[LOG_N]:
        return state.rate[LOG_N]  # type: ignore[no-any-return]
    for e in range(state.L.size):
        state.v[e] = state.w[e] * (state.L[e] - state.rate[LEAST])
    sum_ = state.rate[SUM]
    return max(least, log(sum_) + total(state.v) / (state.rate[Y] * sum_))  # type: ignore[no-any-return]


@kernel
def _slow_down(state: State, C: float, f: float, c: float) -> bool:
    """Let x grow, and y if it is time; return whether y did."""
    state.rate[G] += C
    x, y = state.rate[X], state.rate[Y]
    x += C / f if f == state.rate[LOG_N] else min(C / f, x / (2.0 * c))  # 11
    state.rate[X] = x
    state.rate[LOW] = min(state.rate[LOW], f)
    if x > y and (x - y > min(LAZY, 0.5 / c) * y or f > 2.0 * state.rate[LOW]):
        state.rate[Y], state.rate[LOW] = x, state.rate[LOG_N]
        return True
    return False
