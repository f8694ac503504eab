"""The cautious half of `glance` and its budget: lines 2, 4 and 6 to 11 of its pseudo-code.

`w` holds exp(-(L_e - least) / y) of every expert, where y is x as it was when all weights were last renewed. A round
multiplies those of the arms that it revealed, and once x exceeds y by 3 % all are renewed. So y stands for x in lines
2, 7 and 8, and what the theorems need of x holds of it: it never falls, and is known when a round is asked for.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from sidelong._jit import kernel
from sidelong.numerics import exp, log, smallest, total

if TYPE_CHECKING:
    from glance_next import State

    from sidelong.graphs.arrays import GraphArrays
    from sidelong.learners.interface import Told

PLAIN = 1_000.0  # c / t times this is the least entropy of the rate; while that is above ln N, ln N stands for it
LEAST_SHARE = 0.002  # of the cautious half, where every play reveals every arm
SHARE = 0.018  # more of it, where plays reveal nothing on the side
LAZY = 1.03

# In `rate`: x; y; the L that a weight of 1 stands for; the sum of the weights; Z; G; V; how much plays reveal; ln N;
# and 1 once an expert was absent or came later, so that Z is not the same for all.
X, Y, LEAST, SUM, Z, G, NOISE, REVEALED, LOG_N, UNEVEN = range(10)
N_RATE = 10
PREDICTED = 3  # where a trace has the part of J that is known before the draw


@kernel
def mark_experts(state: State, present: np.ndarray, advice: np.ndarray) -> None:
    """Write into `there` which experts are: the arms that can be played, and who advises to play some of those.

    `advice` has K numbers for each adviser in turn, all 0 for a silent one.
    """
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
def weigh(state: State, q: np.ndarray) -> None:
    """Write q, where all experts are arms, and all are there."""
    scale = 1.0 / state.rate[SUM]
    for i in range(q.size):
        q[i] = state.w[i] * scale  # 2


@kernel
def weigh_some(state: State, advice: np.ndarray, q: np.ndarray) -> None:
    """Write q, which the experts in `there` share by their weights."""
    K = q.size
    _write_weights(state, 0.0)
    scale = 1.0 / total(state.v)
    for i in range(K):
        q[i] = state.v[i] * scale  # 2
    for m in range(advice.size // K):
        if state.there[K + m]:
            for i in range(K):
                q[i] += state.v[K + m] * scale * advice[m * K + i]


@kernel
def _write_weights(state: State, more: float) -> float:
    """Write into `v` the weights of those in `there`, with `more` times `a` added to L; return the L of a weight 1."""
    least = math.inf
    for e in range(state.L.size):
        if state.there[e]:
            least = min(least, state.L[e] + more * state.a[e])
    for e in range(state.L.size):
        away = state.L[e] + more * state.a[e] - least
        state.v[e] = exp(max(-700.0, -away / state.rate[Y])) if state.there[e] else 0.0
    return least


@kernel
def boldness(state: State, some: bool) -> float:
    """Return the share of the bold half: less of it when half of its budget is spent."""
    most = 0.0
    if state.rate[UNEVEN] > 0.0:
        most = -math.inf
        for e in range(state.z.size):
            if state.there[e] or not some:
                most = max(most, state.z[e])
    K = float(state.o.size)
    rho = LEAST_SHARE + SHARE * (1.0 - state.rate[REVEALED]) * (K / (K - 1.0))
    W = 4.0 + 2.0 * state.rate[G] + 2.0 * math.sqrt(state.rate[NOISE])
    return (1.0 - rho) * min(1.0, max(0.0, 2.0 * (1.0 - (state.rate[Z] + most) / W)))  # type: ignore[no-any-return]  # 4


@kernel
def learn(
    state: State, graph: GraphArrays, told: Told, q: np.ndarray, P: np.ndarray, d: np.ndarray, advice: np.ndarray
) -> float:
    """Learn the losses of a round; return C."""
    arm, p, first = told.arm, told.p, graph.start[told.arm]
    some = told.absent > 0 or state.L.size > p.size
    h = _entropy(state)
    if some:
        state.a[:] = 0.0
    mean, noise = 0.0, 0.0
    for k in range(graph.stop[arm] - first):
        i = np.uint64(graph.targets[first + k])
        seen = max(P[i], p[arm])  # rounding may lose p[arm] in P
        a = told.losses[k] / seen  # 6
        mean += q[i] * a
        noise += (p[i] - q[i]) * ((told.losses[k] - d[i]) / seen)
        if some:
            state.a[i] = a
        else:
            state.L[i] += a  # 9
            state.w[i] *= exp(-a / state.rate[Y])
    mix = _charge(state, told.present, advice) if some else _mix(state)
    C = max(0.0, mean - mix)  # 8
    _spend(state, told.trace[PREDICTED] + noise, noise, some)
    _slow_down(state, C, h, told.t)
    if state.rate[X] > LAZY * state.rate[Y]:
        state.rate[Y] = state.rate[X]
        _renew(state)
    elif some or state.rate[SUM] < 1e-100:
        _renew(state)
    return C


@kernel
def _entropy(state: State) -> float:
    """Return the entropy of the weights of all experts."""
    for e in range(state.L.size):
        state.v[e] = state.w[e] * (state.L[e] - state.rate[LEAST])
    return log(state.rate[SUM]) + total(state.v) / (state.rate[Y] * state.rate[SUM])


@kernel
def _mix(state: State) -> float:
    """Return the mix loss of a round that has been multiplied into all weights."""
    before, y = state.rate[SUM], state.rate[Y]
    after = total(state.w)
    state.rate[SUM] = after
    if after > 1e-280:
        return y * (log(before) - log(after))  # 7
    return smallest(state.L) - state.rate[LEAST] + y * log(before)  # those of least L have the weight, within y ln N


@kernel
def _charge(state: State, present: np.ndarray, advice: np.ndarray) -> float:
    """Add the estimates in `a` to the L of those that were there, and the mix loss to that of others; return it."""
    K = present.size
    mark_experts(state, present, advice)
    for m in range(advice.size // K):
        if state.there[K + m]:
            for i in range(K):
                state.a[K + m] += advice[m * K + i] * state.a[i]
    before = _write_weights(state, 0.0)
    sum_ = total(state.v)
    after = _write_weights(state, 1.0)
    mix = after - before + state.rate[Y] * (log(sum_) - log(total(state.v)))  # 7
    for e in range(state.L.size):
        state.L[e] += state.a[e] if state.there[e] else mix  # 9
    return mix


@kernel
def _spend(state: State, J: float, noise: float, some: bool) -> None:
    state.rate[Z] += J
    state.rate[NOISE] += noise * noise
    if some:
        for e in range(state.z.size):
            if not state.there[e]:
                state.z[e] -= J  # 10
                state.rate[UNEVEN] = 1.0


@kernel
def _slow_down(state: State, C: float, h: float, t: int) -> None:
    state.rate[G] += C
    x, ln_N = state.rate[X], state.rate[LOG_N]
    lam = 1.0 + ln_N + log(float(t))
    if PLAIN * lam >= ln_N * t:
        state.rate[X] = x + C / ln_N  # 11
    else:
        state.rate[X] = x + min(C / max(h, PLAIN * lam / t), x / (2.0 * lam))


@kernel
def _renew(state: State) -> None:
    """Make the weights anew."""
    least, y = smallest(state.L), state.rate[Y]
    for e in range(state.w.size):
        # Not below e^-700, where numbers lose digits and sums slow down.
        state.w[e] = exp(max(-700.0, -(state.L[e] - least) / y))
    state.rate[LEAST], state.rate[SUM] = least, total(state.w)
