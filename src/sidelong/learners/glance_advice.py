r"""How far the bold half of `glance` follows each adviser. No theorem of `glance` depends on this.

AdaHedge over the bold half's own D and the M advisers, whose scale is measured from the first round on::

    T_k ~ exp(-H_k / y) over those that advise, y = (S + 10^-6) / (2 ln(M + 1));  the bold half plays sum T_k D_k
    who would be seen with less than 0.02 is given what is missing, one after the other, and all sum to 1
    told: c_k = <D_k, d + [seen] (l - d) / P>,  mix = -y ln sum T'_k exp(-c_k / y), with the weights T' of now
          S += max(0, <T', c> - mix);  H_k += c_k for those that advised;  H_k += mix for the silent

Of a family whose keys learn trust together, `others` has the logarithms of the weights that they give to each, and
H_k - y others_k stands for H_k in T. It is 0 otherwise.

The estimates have predictions d of the level, since the noise of l / P alone would drown differences of a hundredth.
An adviser whose advice others reveal needs no share to be judged. The others need one: without it P is so small that
who was unlucky at first is never judged again.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from sidelong._jit import kernel
from sidelong.graphs.arrays import observe
from sidelong.numerics import exp, log, total

if TYPE_CHECKING:
    from sidelong.graphs.arrays import GraphArrays
    from sidelong.learners.glance import State
    from sidelong.learners.interface import Told

LEAST = 0.02  # with which each adviser is seen: it costs that share of what worse ones lose, and 0.05 cost 0.8 % of all
RATE = 2.0  # times that of AdaHedge, which is for an adversary: orders cost 1 % less so


@kernel
def _weigh(state: State, K: int, more: float) -> float:
    """Write into `T` the weights of those who advise, with `more` times `c` added to H; return -y ln of their sum."""
    M = state.H.size - 1
    y = (state.S[0] + 1e-6) / (RATE * log(M + 1.0))
    least = state.H[0] - y * state.others[0] + more * state.c[0]
    for k in range(1, M + 1):
        if state.there[K + k - 1]:
            least = min(least, state.H[k] - y * state.others[k] + more * state.c[k])
    for k in range(M + 1):
        away = state.H[k] - y * state.others[k] + more * state.c[k] - least
        state.T[k] = exp(max(-700.0, -away / y)) if k == 0 or state.there[K + k - 1] else 0.0
    sum_ = total(state.T)
    for k in range(M + 1):
        state.T[k] /= sum_
    return least - y * log(sum_)  # type: ignore[no-any-return]


def trust(state: State) -> np.ndarray:
    """Return how far the bold half follows its own D and each adviser, if all of them advise."""
    y = (state.S[0] + 1e-6) / (RATE * math.log(max(state.H.size, 2)))
    H = state.H - y * state.others
    T = np.exp((H.min() - H) / y)
    return np.asarray(T / T.sum())


@kernel
def follow(state: State, graph: GraphArrays, advice: np.ndarray, own: np.ndarray, mixed: np.ndarray) -> None:
    """Write into `mixed` what the bold half plays, with its `own` D and the advice of those in `there`."""
    K = own.size
    _weigh(state, K, 0.0)
    for i in range(K):
        mixed[i] = state.T[0] * own[i]
    for k in range(1, state.T.size):
        if state.there[K + k - 1]:
            for i in range(K):
                mixed[i] += state.T[k] * advice[(k - 1) * K + i]
    for k in range(1, state.T.size):
        if state.there[K + k - 1]:
            observe(graph, mixed, state.e)
            seen = 0.0
            for i in range(K):
                seen += advice[(k - 1) * K + i] * state.e[i]
            if seen < LEAST:
                for i in range(K):
                    mixed[i] += (LEAST - seen) * (advice[(k - 1) * K + i] - mixed[i])


@kernel
def judge(
    state: State, graph: GraphArrays, told: Told, own: np.ndarray, P: np.ndarray, d: np.ndarray, advice: np.ndarray
) -> None:
    """Learn what each would have lost; `there` says who advised."""
    K, first = own.size, graph.start[told.arm]
    for i in range(K):
        state.e[i] = d[i]
    for k in range(graph.stop[told.arm] - first):
        seen = np.uint64(graph.targets[first + k])
        state.e[seen] += (told.losses[k] - d[seen]) / max(P[seen], told.p[told.arm])
    state.c[:] = 0.0
    for i in range(K):
        state.c[0] += own[i] * state.e[i]
        for m in range(advice.size // K):
            state.c[m + 1] += advice[m * K + i] * state.e[i]
    before, mean = _weigh(state, K, 0.0), 0.0
    for k in range(state.c.size):
        mean += state.T[k] * state.c[k]
    mix = _weigh(state, K, 1.0) - before
    state.S[0] += max(0.0, mean - mix)
    for k in range(state.c.size):
        state.H[k] += state.c[k] if k == 0 or state.there[K + k - 1] else mix
