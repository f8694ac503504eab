r"""EXP3-DOM: exponential weights that explore a dominating set of the graph, which is seen before the draw.

N. Alon, N. Cesa-Bianchi, C. Gentile, Y. Mansour, "From Bandits to Experts: A Tale of Domination and Independence",
NIPS 2013, Algorithm 2; also N. Alon, N. Cesa-Bianchi, C. Gentile, S. Mannor, Y. Mansour, O. Shamir, "Nonstochastic
Multi-Armed Bandits with Graph-Structured Feedback", SIAM Journal on Computing 46 (2017).

::

    for t = 1, 2, ...
        R = a dominating set of the graph, chosen greedily                                    1
        b = floor(log2 |R|)                                                                   2
        g = sqrt(2^b ln K / M_b)                                                              3
        p_i = (1 - g) w_i / sum_j w_j + g [i in R] / |R|,  w_i = exp(-g Lhat^b_i / 2^b)       4
        draw I ~ p, observe the losses l_i of all arms i that I reveals                       5
        P_i = sum of p_j over the arms j that reveal i                                        6
        Lhat^b_i += l_i / P_i   for each observed i                                           7
        Q_b += 1 + theta / 2^(b+1),  theta = sum_i p_i / P_i                                  8
        if Q_b > M_b: M_b doubles, Q_b = 0, Lhat^b_i = 0 for all i                            9

There is one learner for each b, of the rounds with 2^b <= |R| < 2^(b+1). While its g stands, its regret is at most
2^b ln K / g + g Q_b, as in the paper's theorem, which the g of line 3 keeps below 2 sqrt(2^b ln K M_b). All
learners and doublings together come to at most

    10 sqrt(ln K (1 + log2 K) E[sum_t |R_t| + theta_t / 2])

and terms of lower order; that is the paper's O(ln K sqrt(ln(K T) sum_t alpha_t)). The theorem for an adversary is all
that is proved.

Where this may depart from the page: we have its rates but not its text on doubling, and the bound above is derived
for the lines as they stand here. M_b begins with the first power of two at which g is at most 1. A loss that is told
after its learner has begun anew counts for the new one. A single arm is played.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from sidelong._jit import kernel
from sidelong.graphs.arrays import GraphArrays, observe
from sidelong.graphs.cover import CoverScratch, cover_scratch
from sidelong.graphs.domination import dominate
from sidelong.learners.interface import About, Asked, Learner, Need, Told
from sidelong.learners.weights import exponential, theta
from sidelong.numerics import log

if TYPE_CHECKING:
    from sidelong.graphs.graph import FeedbackGraph

TRACES = ("theta", "exploration_set", "exploration_mass", "learning_rate")
_THETA, _SIZE, _MASS, _ETA = range(4)


class Params(NamedTuple):
    """The constants."""

    log_K: float


def configure(graph: FeedbackGraph) -> Params:
    """Return the constants; there are no options.

    Args:
        graph: the graph that the learner starts on.
    """
    return Params(log_K=log(float(max(graph.n_arms, 2))))  # a single arm is played whatever the constants are


class State(NamedTuple):
    """What the next round needs, and scratch to compute it in."""

    Lhat: np.ndarray  #: one row for each b
    Q: np.ndarray
    M: np.ndarray
    P: np.ndarray
    R: np.ndarray  #: whether an arm is in the dominating set
    known: np.ndarray  #: the key of the graph that R was made for, and the size of R
    free: np.ndarray
    heap: np.ndarray


_GRAPH, _R_SIZE = range(2)  # in `known`


def init(params: Params, graph: FeedbackGraph) -> State:
    """Return the state before round 1."""
    K = graph.n_arms
    M = np.ones(K.bit_length())
    for b in range(M.size):
        while M[b] < 2**b * params.log_K:
            M[b] *= 2.0
    return State(
        Lhat=np.zeros((M.size, K)),
        Q=np.zeros(M.size),
        M=M,
        P=np.zeros(K),
        R=np.zeros(K, np.bool_),
        known=np.array([-1, 0]),
        **cover_scratch(K)._asdict(),
    )


@kernel
def _instance(size: float) -> int:
    """Return the largest b for which 2^b is at most `size`."""
    b = 0
    while size >= 2.0:
        size *= 0.5
        b += 1
    return b


@kernel
def distribution(params: Params, state: State, graph: GraphArrays, asked: Asked) -> None:
    """Write into `p` the probabilities of round t."""
    p, trace = asked.p, asked.trace
    if state.known[_GRAPH] != graph.key:
        state.known[_GRAPH] = graph.key
        state.known[_R_SIZE] = dominate(graph, state.R, CoverScratch(state.free, state.heap))  # 1
    size = float(state.known[_R_SIZE])
    b = _instance(size)  # 2
    g = math.sqrt(float(1 << b) * params.log_K / state.M[b])  # 3
    eta = g / float(1 << b)
    scale = (1.0 - g) / exponential(state.Lhat[b], eta, p)
    for i in range(p.size):
        p[i] = scale * p[i] + (g / size if state.R[i] else 0.0)  # 4
    trace[_SIZE] = size
    trace[_MASS] = g
    trace[_ETA] = eta


@kernel
def update(params: Params, state: State, graph: GraphArrays, told: Told) -> None:
    """Learn the losses that playing `arm` revealed in round t, when the probabilities were `p`."""
    arm, p, losses, trace = told.arm, told.p, told.losses, told.trace
    b = _instance(trace[_SIZE])
    observe(graph, p, state.P)  # 6
    first = graph.start[arm]
    for e in range(first, graph.stop[arm]):
        i = np.uint64(graph.targets[e])
        state.Lhat[b, i] += losses[e - first] / state.P[i]  # 7
    trace[_THETA] = theta(p, state.P)
    state.Q[b] += 1.0 + trace[_THETA] / float(2 << b)  # 8
    if state.Q[b] > state.M[b]:  # 9
        state.M[b] *= 2.0
        state.Q[b] = 0.0
        for j in range(p.size):
            state.Lhat[b, j] = 0.0


LEARNER = Learner(
    name="exp3-dom",
    params=Params,
    configure=configure,
    init=init,
    distribution=distribution,
    update=update,
    ranges={"known": ("any", "sizes"), "M": "counts", "exploration_set": "sizes"},
    needs=frozenset({Need.SELF_LOOPS, Need.GRAPH_BEFORE}),
    traces=TRACES,
    scratch=("P", "free", "heap"),
    about=About(
        paper="Alon, Cesa-Bianchi, Gentile, Mansour 2013",
        cite=("alon2013tale", "alon2017nonstochastic"),
        proved=("adversarial",),
        cost="O(K + E)",
        bound="O(ln K sqrt(ln(K T) sum_t alpha_t))",
        theorem="derived in its file, from the rates of the paper",
    ),
)
