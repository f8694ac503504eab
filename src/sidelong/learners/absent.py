r"""Arms that are absent, for a learner with exponential weights: what they are charged, and how a new arm enters.

In a round with absent arms, `graph` lacks the edges of each of them, in both directions; an arm that is there reveals
itself at least. With A_t the arms that are there, x_i = l_i / P_i for the revealed ones and 0 for the others of A_t:

::

    p_i ~ exp(-eta L_i)  for i in A_t, and 0 elsewhere                                        a
    m = sum_i p_i x_i,   v = (eta / 2) sum_i p_i x_i^2                                        b
    L_i += x_i  for i in A_t,   L_i += m - v  for the others                                  c

An absent arm is charged about what was paid without it, so that it comes back as good or bad as it went. If no arm is
absent, nothing is different.

*Proof.* Let Psi = -(1 / eta) ln sum_i pi_i exp(-eta L_i) over all arms, with the prior pi_i = 1 / K, so that Psi
is 0 in the beginning. Within A_t, sum p_i exp(-eta x_i) <= 1 - eta m + eta v <= exp(-eta (m - v)), and the others are
charged m - v: so line c lets Psi grow by m - v at least. Psi does not fall when eta falls (means of powers). So for
every arm k, sum_t (m_t - v_t) <= Psi <= L_k + ln(1 / pi_k) / eta, in which what k was charged while it was absent
stands on both sides:

    sum over the rounds with k of (m_t - x_(t,k))  <=  ln(1 / pi_k) / eta_T + sum over these rounds of v_t.

Given the past, m has the mean of the loss of the played arm, x_k that of the loss of k, and v at most eta theta / 2.

*An arm that comes later* enters with L = Psi, of the rate of its first round, and the priors become 1 / (K + 1).
Then Psi is what it was, and all of the above holds for the new arm from its first round on, with ln(K + 1). The rate
keeps the ln K of the beginning, so that it never grows, and Theta grows by 1, so that it is never below theta.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from sidelong._jit import kernel
from sidelong.learners.weights import exponential
from sidelong.numerics import exp, log, total

if TYPE_CHECKING:
    from sidelong.graphs.arrays import GraphArrays
    from sidelong.learners.interface import Told


@kernel
def exponential_of_present(present: np.ndarray, L: np.ndarray, eta: float, w: np.ndarray) -> float:
    """Write the weights of the arms that are there into `w`, and 0 for the others; return their sum."""
    least = math.inf
    for i in range(w.size):
        if present[i]:
            least = min(least, L[i])
    for i in range(w.size):
        w[i] = exp(-eta * (L[i] - least)) if present[i] else 0.0  # a
    return total(w)


@kernel
def charge(graph: GraphArrays, told: Told, eta: float, P: np.ndarray, L: np.ndarray) -> None:
    """Charge the absent arms for a round, when `P` says how likely each arm was observed."""
    arm, p = told.arm, told.p
    m = 0.0
    v = 0.0
    first = graph.start[arm]
    for e in range(first, graph.stop[arm]):
        i = np.uint64(graph.targets[e])
        x = told.losses[e - first] / max(P[i], p[arm])
        m += p[i] * x
        v += p[i] * x * x
    paid = m - 0.5 * eta * v  # b
    for k in range(L.size):
        if not told.present[k]:
            L[k] += paid  # c


def grow(params: Any, state: Any) -> tuple[Any, Any]:
    """Return the constants and the state with one more arm, the last."""
    K = state.Lhat.size
    params = params._replace(log_K=params.log_K or log(2.0))  # of a single arm it was 0, and the rate of no effect
    Theta = state.Theta + 1.0
    eta = params.eta_scale * math.sqrt(params.log_K / Theta[0])
    w = np.empty(K)
    Psi = state.Lhat.min() - log(exponential(state.Lhat, eta, w) / K) / eta
    return params, state._replace(Lhat=np.append(state.Lhat, Psi), Theta=Theta, P=np.zeros(K + 1))
