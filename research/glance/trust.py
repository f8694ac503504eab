r"""How far the bold half of `glance` follows each adviser. No theorem of `glance` depends on this.

AdaHedge over the bold half's own D and the M advisers, whose scale is measured from the first round on::

    T_k ~ prior_k exp(-H_k / y) over those that advise, y = (gap + 10^-6) / ln(M + 1); prior 1/10 for the own D
        each adviser gets 0.02 / (1 + t / 1000) at least; the bold half plays sum T_k D_k
    told: c_k = <D_k, d + [seen] (l - d) / P>,  mix = -y ln sum T'_k exp(-c_k / y), with the weights T' of now
        gap += max(0, <T', c> - mix);  H_k += c_k for those that advised;  H_k += mix for the silent

The estimates have predictions d of the level, since the noise of l / P alone would drown differences of a hundredth.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from sidelong._jit import kernel
from sidelong.numerics import exp, log, total

if TYPE_CHECKING:
    from glance_next import State

    from sidelong.graphs.arrays import GraphArrays
    from sidelong.learners.interface import Told

LEAST, FADES = 0.02, 1_000.0


@kernel
def _weigh(state: State, K: int, more: float) -> float:
    """Write the weights into `T`, with `more` times `c` added to H; return what -y ln of their sum is, but for T's."""
    M = state.H.size - 1
    y = (state.gap[0] + 1e-6) / log(M + 1.0)
    least = math.inf
    for k in range(M + 1):
        if k == 0 or state.there[K + k - 1]:
            least = min(least, state.H[k] + more * state.c[k])
    for k in range(M + 1):
        state.T[k] = 0.0
        if k == 0 or state.there[K + k - 1]:
            prior = 0.1 if k == 0 else 0.9 / M
            state.T[k] = prior * exp(max(-700.0, -(state.H[k] + more * state.c[k] - least) / y))
    return least - y * log(total(state.T))


@kernel
def follow(state: State, advice: np.ndarray, own: np.ndarray, t: int, mixed: np.ndarray) -> None:
    """Write into `mixed` what the bold half plays, with its `own` D and the advice of those in `there`."""
    K = own.size
    _weigh(state, K, 0.0)
    floor = LEAST / (1.0 + t / FADES)
    sum_, free = total(state.T), 1.0
    for k in range(1, state.T.size):
        free -= floor if state.there[K + k - 1] else 0.0
    free = max(0.0, free)
    for i in range(K):
        mixed[i] = free * (state.T[0] / sum_) * own[i]
    for k in range(1, state.T.size):
        if state.there[K + k - 1]:
            share = free * (state.T[k] / sum_) + floor
            for i in range(K):
                mixed[i] += share * advice[(k - 1) * K + i]
    scale = 1.0 / total(mixed)
    for i in range(K):
        mixed[i] *= scale


@kernel
def judge_advice(
    state: State, graph: GraphArrays, told: Told, own: np.ndarray, P: np.ndarray, d: np.ndarray, advice: np.ndarray
) -> None:
    """Learn what each would have lost; `there` says who was."""
    K, first = own.size, graph.start[told.arm]
    for i in range(K):
        state.e[i] = d[i]
    for k in range(graph.stop[told.arm] - first):
        i = np.uint64(graph.targets[first + k])
        state.e[i] += (told.losses[k] - d[i]) / max(P[i], told.p[told.arm])
    for k in range(state.c.size):
        state.c[k] = 0.0
        if k == 0 or state.there[K + k - 1]:
            for i in range(K):
                state.c[k] += state.e[i] * (own[i] if k == 0 else advice[(k - 1) * K + i])
    before = _weigh(state, K, 0.0)
    sum_, mean = total(state.T), 0.0
    for k in range(state.c.size):
        mean += state.T[k] / sum_ * state.c[k]
    mix = _weigh(state, K, 1.0) - before
    state.gap[0] += max(0.0, mean - mix)
    for k in range(state.c.size):
        state.H[k] += state.c[k] if k == 0 or state.there[K + k - 1] else mix
