r"""A head start for a learner with exponential weights: what one believes of arms before round 1, and rounds of a log.

*A prior.* With eta_1 the rate of round 1, mu_i what one believes arm i to lose per round, and n_i for how many rounds
of evidence that counts (0 for an arm of which one believes nothing):

::

    w_i ~ exp(-eta_1 n_i (mu_i - 1/2))                                                        a
    q_i = (w_i + 1 / K) / 2                                                                   b
    L_i = -ln(K q_i) / eta_1,  in the place of 0, before round 1                              c

So round 1 is played with q. With Psi = -(1 / eta) ln((1 / K) sum_i exp(-eta L_i)), as in `sidelong.learners.absent`,
line c leaves Psi = 0 at eta_1. So for every arm k, ln(1 / (K q_k)) / eta_1 is added to the bound on the regret. With
eta_1 = sqrt(ln K / K), that of EXP3-SET, the bound 2 sqrt(ln K sum_t E theta_t) + sqrt(K ln K) becomes

    2 sqrt(ln K sum_t E theta_t) + ln(1 / q_k) sqrt(K / ln K),

and as q_k >= 1 / (2 K) by line b, a belief that is wrong costs at most ln 2 sqrt(K / ln K).

*A log.* For each of its rounds, with the probabilities P_i that the losses would be revealed:

::

    p_i ~ exp(-eta L_i),  eta = m sqrt(ln K / Theta)                                          d
    L_i += l_i / P_i   for each revealed i                                                    e
    Theta += min(K, sum over the revealed i of p_i / P_i^2)                                   f

Line e is without bias, whoever drew the arms. The sum in line f has the mean sum_i p_i / P_i, by which the estimates of
line e scatter. What is promised is the bound of the learner over the rounds of the log and those that follow, as if it
had played the logged ones too, if the sum never exceeds K. About the rounds that follow alone nothing is promised: a
log of a world that has turned misleads, by as much as it is long.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from sidelong._jit import kernel
from sidelong.learners.weights import exponential
from sidelong.numerics import exp, log, total

if TYPE_CHECKING:
    from collections.abc import Mapping


def tilt(params: Any, state: Any, prior: Mapping[int, tuple[float, float]]) -> float:
    """Begin with a prior, by arm the mean loss and the rounds that it counts for; return the most that it can cost."""
    K = state.Lhat.size
    eta = params.eta_scale * math.sqrt(params.log_K / state.Theta[0])
    if eta == 0.0:  # a single arm
        return 0.0
    believed = [eta * n * (mean - 0.5) for mean, n in (prior.get(arm, (0.5, 0.0)) for arm in range(K))]
    least = min(believed)
    w = np.array([exp(least - each) for each in believed])  # a
    q = 0.5 * (w / total(w) + 1.0 / K)  # b
    state.Lhat[:] = [-log(K * each) / eta for each in q.tolist()]  # c
    return max(0.0, float(state.Lhat.max()))


@kernel
def replay(
    params: Any, state: Any, ends: np.ndarray, arms: np.ndarray, losses: np.ndarray, P: np.ndarray, p: np.ndarray
) -> None:
    """Learn logged rounds: the losses of round t are those from ends[t - 1] to ends[t]; `p` is scratch."""
    K = p.size
    first = 0
    for t in range(ends.size):
        eta = params.eta_scale * math.sqrt(params.log_K / state.Theta[0])
        scale = 1.0 / exponential(state.Lhat, eta, p)  # d
        theta = 0.0
        for e in range(first, ends[t]):
            theta += p[arms[e]] * scale / (P[e] * P[e])
        for e in range(first, ends[t]):
            state.Lhat[arms[e]] += losses[e] / P[e]  # e
        state.Theta[0] += min(float(K), theta)  # f
        first = ends[t]
