r"""EXP3-IX: implicit exploration on feedback graphs, which need not be known when an arm is drawn.

T. Kocak, G. Neu, M. Valko, R. Munos, "Efficient Learning by Implicit Exploration in Bandit Problems with Side
Observations", NIPS 2014. Algorithm 1, with the rates of Theorem 1.

::

    for t = 1, 2, ...
        eta = gamma = sqrt(ln K / (K + sum_{s < t} Q_s))                                      1
        p_i ~ exp(-eta Lhat_i)                                                                2
        draw I ~ p, observe the losses l_i of all arms i that I reveals                       3
        P_i = sum of p_j over the arms j that reveal i                                        4
        Lhat_i += l_i / (P_i + gamma)   for each observed i                                   5
        Q_t = sum_i p_i / (P_i + gamma)                                                       6

The graphs may be directed, may change, and may be shown after the draw; every arm must reveal itself. gamma makes the
estimates small rather than unbiased: an arm that is rarely observed looks better than it is, and so is explored.

Theorem 1: the regret is at most 4 sqrt(ln K (K + 2 sum_t (H_t alpha_t + 1))), where alpha_t is the independence number
of the graph of round t and H_t = ln(1 + (ceil(K^2 sqrt(t K / ln K)) + K) / alpha_t), against any oblivious adversary.

A round that is told late is weighted by its own gamma.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from sidelong._jit import kernel
from sidelong.graphs.arrays import GraphArrays, observe
from sidelong.learners.interface import About, Asked, Learner, Need, Told
from sidelong.learners.weights import exponential
from sidelong.numerics import log, total

if TYPE_CHECKING:
    from sidelong.graphs.graph import FeedbackGraph

TRACES = ("Q", "learning_rate")
_Q, _ETA = range(2)


class Params(NamedTuple):
    """The constants."""

    log_K: float


def configure(graph: FeedbackGraph) -> Params:
    """Return the constants; there are no options.

    Args:
        graph: the graph that the learner starts on.
    """
    return Params(log_K=log(float(graph.n_arms)))


class State(NamedTuple):
    """What the next round needs, and scratch to compute it in."""

    Lhat: np.ndarray
    Q: np.ndarray  #: K and the sum of Q over past rounds
    P: np.ndarray


def init(params: Params, graph: FeedbackGraph) -> State:
    """Return the state before round 1."""
    K = graph.n_arms
    return State(Lhat=np.zeros(K), Q=np.array([float(K)]), P=np.zeros(K))


@kernel
def distribution(params: Params, state: State, graph: GraphArrays, asked: Asked) -> None:
    """Write into `p` the probabilities of round t."""
    p, trace = asked.p, asked.trace
    eta = math.sqrt(params.log_K / state.Q[0])  # 1
    scale = 1.0 / exponential(state.Lhat, eta, p)
    for i in range(p.size):
        p[i] *= scale  # 2
    trace[_ETA] = eta


@kernel
def update(params: Params, state: State, graph: GraphArrays, told: Told) -> None:
    """Learn the losses that playing `arm` revealed in round t, when the probabilities were `p`."""
    arm, p, losses, trace = told.arm, told.p, told.losses, told.trace
    gamma = trace[_ETA]
    observe(graph, p, state.P)  # 4
    first = graph.start[arm]
    for e in range(first, graph.stop[arm]):
        i = np.uint64(graph.targets[e])
        state.Lhat[i] += losses[e - first] / (state.P[i] + gamma)  # 5
    for j in range(p.size):
        state.P[j] = p[j] / (state.P[j] + gamma)  # in place: P has been used
    trace[_Q] = total(state.P)  # 6
    state.Q[0] += trace[_Q]


LEARNER = Learner(
    name="exp3-ix",
    params=Params,
    configure=configure,
    init=init,
    distribution=distribution,
    update=update,
    ranges={"Q": "shares"},
    needs=frozenset({Need.SELF_LOOPS}),
    traces=TRACES,
    scratch=("P",),
    about=About(
        paper="Kocak, Neu, Valko, Munos 2014",
        cite=("kocak2014implicit",),
        proved=("adversarial",),
        cost="O(K + E)",
        bound="4 sqrt(2 ln K sum_t H_t alpha_t), H_t of order ln(K t)",
        theorem="Theorem 1",
    ),
)
