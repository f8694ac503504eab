r"""q-Tsallis: follow the regularised leader, with a regulariser fitted to how dense the graph is.

K. Eldowa, E. Esposito, T. Cesari, N. Cesa-Bianchi, "On the Minimax Regret for Online Learning with Feedback Graphs",
NeurIPS 2023. Algorithm 1 with the q and the eta of Theorem 1, for undirected graphs in which every arm reveals itself.

::

    L = ln(K / alpha),  q = (1 + L / (sqrt(L^2 + 4) + 2)) / 2                                 1
    eta = sqrt(2 q K^(1-q) / ((1 - q) T alpha^q))                                             2
    for t = 1, 2, ..., T
        p = argmin of eta <Lhat, p> + (1 - sum_i p_i^q) / (1 - q)                             3
        draw I ~ p, observe the losses l_i of all arms i that I reveals                       4
        P_i = sum of p_j over the arms j that reveal i                                        5
        Lhat_i += l_i / P_i   for each observed i                                             6

alpha is the independence number and T the horizon. Against any adversary the regret is at most
sqrt(2 K^(1-q) alpha^q T / (q (1 - q))) <= 2 sqrt(e alpha T (2 + L)): without the ln K of exponential weights where
there are few edges (q = 1/2, Tsallis-INF, for self-loops), and with it where there are many (q near 1). The bound holds
for graphs that change, with the mean of their independence numbers for alpha.

Line 3 has p_i = (c / (eta Lhat_i + u))^(1 / (1 - q)), c = q / (1 - q), where the multiplier u makes the sum 1. Newton's
method is used on this sum to the power -(1 - q), a concave function of u that is almost a line: it begins at the u of
the last round that was told, never stands above the root after a step, and needs about two steps. The one from a sum
within 1e-6 of 1 is the last, and is taken to first order in p, which leaves an error of order 1e-12.

A single arm is played.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from sidelong._jit import kernel
from sidelong.learners.interface import About, Asked, Learner, Need, Told
from sidelong.learners.options import graph_number, number
from sidelong.learners.weights import learn
from sidelong.numerics import exp, log, smallest, total

if TYPE_CHECKING:
    from collections.abc import Mapping

    from sidelong.graphs.arrays import GraphArrays
    from sidelong.graphs.graph import FeedbackGraph

_NEEDS = frozenset({Need.SELF_LOOPS, Need.UNDIRECTED, Need.FIXED_GRAPH, Need.HORIZON})
TRACES = ("theta", "multiplier")
_THETA, _U = range(2)


class Params(NamedTuple):
    """The constants."""

    q: float
    eta: float


def needs(options: Mapping[str, Any]) -> frozenset[Need]:
    """Return what it needs with these options: the graph may change if alpha is given."""
    return _NEEDS - {Need.FIXED_GRAPH} if options.get("independence") is not None else _NEEDS


def configure(graph: FeedbackGraph, *, horizon: float, independence: float | None = None) -> Params:
    """Turn options into constants.

    Args:
        graph: the graph that the learner starts on.
        horizon: how many rounds there will be.
        independence: alpha. Computed if not given, and refused if ten seconds are not enough. Any number from it
            up to K is valid and gives the same bound with that number in its place. If graphs change, it must be
            given: the mean of their numbers, or any bound on it.
    """
    K = float(graph.n_arms)
    T = number("horizon", horizon, least=1)
    alpha = graph_number(graph, "independence", independence)
    L = log(K / alpha)
    q = 0.5 * (1.0 + L / (math.sqrt(L * L + 4.0) + 2.0))  # 1
    powers = exp((1.0 - q) * log(K) - q * log(alpha))
    return Params(q=q, eta=math.sqrt(2.0 * q * powers / ((1.0 - q) * T)))  # 2


class State(NamedTuple):
    """What the next round needs, and scratch to compute it in."""

    Lhat: np.ndarray
    u: np.ndarray  #: the multiplier of a round before
    share: np.ndarray
    P: np.ndarray


def init(params: Params, graph: FeedbackGraph) -> State:
    """Return the state before round 1."""
    K = graph.n_arms
    return State(Lhat=np.zeros(K), u=np.zeros(1), share=np.zeros(K), P=np.zeros(K))


@kernel
def distribution(params: Params, state: State, graph: GraphArrays, asked: Asked) -> None:
    """Write into `p` the probabilities of round t."""
    p, trace = asked.p, asked.trace
    power = 1.0 / (1.0 - params.q)
    c = params.q * power
    least = smallest(state.Lhat)
    y = max(c, state.u[0] + params.eta * least)  # eta Lhat_i + u of the best arm is never below c, as p_i <= 1
    step = 0.0
    for _ in range(100):  # 3
        for i in range(p.size):
            state.share[i] = 1.0 / (params.eta * (state.Lhat[i] - least) + y)
        for i in range(p.size):
            p[i] = power * log(c * state.share[i])  # log and exp apart: together they take twice as long
        for i in range(p.size):
            p[i] = exp(p[i])
            state.share[i] *= p[i]
        sum_ = total(p)
        step = sum_ * (exp(log(sum_) / power) - 1.0) / total(state.share)
        y = max(c, y + step)
        if abs(sum_ - 1.0) <= 1e-6:
            break
    for i in range(p.size):
        p[i] -= power * step * state.share[i]
    scale = 1.0 / total(p)
    for i in range(p.size):
        p[i] *= scale
    trace[_U] = y - params.eta * least


@kernel
def update(params: Params, state: State, graph: GraphArrays, told: Told) -> None:
    """Learn the losses that playing `arm` revealed in round t, when the probabilities were `p`."""
    arm, p, losses, trace = told.arm, told.p, told.losses, told.trace
    learn(graph, p, arm, losses, state.P, state.Lhat)  # 5, 6
    for j in range(p.size):
        state.P[j] = p[j] / state.P[j] if p[j] > 0.0 else 0.0  # in place: P has been used
    trace[_THETA] = total(state.P)
    state.u[0] = trace[_U]


LEARNER = Learner(
    name="q-tsallis",
    params=Params,
    configure=configure,
    init=init,
    distribution=distribution,
    update=update,
    needs=_NEEDS,
    traces=TRACES,
    scratch=("share", "P"),
    needs_with=needs,
    about=About(
        paper="Eldowa, Esposito, Cesari, Cesa-Bianchi 2023",
        cite=("eldowa2023minimax",),
        proved=("adversarial",),
        cost="O(K + E)",
        bound="2 sqrt(e alpha T (2 + ln(K / alpha)))",
        theorem="Theorem 1",
    ),
)
