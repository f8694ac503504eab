r"""EXP3.G with rate="adaptive": no horizon, and graphs that change, whether their arms reveal themselves or not.

EXP3.G is tuned for one graph and a number of rounds. Here each round pays for itself: b = 1 / eta grows by what the
round may have cost, so that the regret is at most twice what b has come to. The graph must be shown before the draw.

::

    b = 8
    for t = 1, 2, ...
        eta = 1 / b,  q_i ~ exp(-eta L_i)                                                     1
        U = arms that together reveal every weakly observable arm, w = sum of q over those    2
        j = the arm that does not reveal itself, is revealed by all others, and has q_j > 1/2, if there is one
        g = 1 / (4 t), and at least 2 eta if there is a j                                     3
        c = min(1/4, sqrt(eta w |U| / 2))                                                     4
        p_i = (1 - g - c) q_i + g / K + c / |U| if i in U,  the same without c / |U| if not   5
        draw I ~ p, observe the losses l_i of all arms i that I reveals
        P_i = sum of p_j over the arms j that reveal i                                        6
        V = sum_i q_i / P_i,  or if there is a j, 2 sum_{i != j} q_i (1 / P_i + 1 / P_j)      7
        L_i += l_i / P_i   for each observed i                                                8
        b += (g + c + eta V / 2) / ln K                                                       9

After T rounds the regret against any adversary who does not watch is at most ln K E(2 b - 8), whatever the graphs
were. `sidelong.theory.exp3_g` bounds b: with d the largest |U| and h the largest sum of p_i / P_i over arms that
reveal themselves, the regret is of order (d ln K)^(1/3) T^(2/3) + sqrt(h T ln K), without the first term where all arms
are strongly observable. The proof is in ``docs/bounds.md``.

A round that is told late counts with its own eta and V. A single arm is played.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from sidelong._jit import kernel
from sidelong.graphs.arrays import GraphArrays, mark_loops, mark_strong, observe
from sidelong.graphs.cover import CoverScratch, cover_scratch
from sidelong.graphs.domination import dominate_others
from sidelong.learners.interface import About, Asked, Learner, Need, Told
from sidelong.learners.options import one_of
from sidelong.learners.weights import exponential, learn
from sidelong.numerics import log, total

if TYPE_CHECKING:
    from sidelong.graphs.graph import FeedbackGraph

TRACES = ("exploration_mass", "learning_rate", "cost")
_MASS, _ETA, _COST = range(3)
START = 8.0  #: b before round 1: 2 eta is then at most 1/4


class Params(NamedTuple):
    """The constants."""

    log_K: float


def configure(graph: FeedbackGraph, *, rate: str = "adaptive") -> Params:
    """Turn options into constants.

    Args:
        graph: the graph that the learner starts on.
        rate: "adaptive".
    """
    one_of("rate", rate, ("adaptive",))
    return Params(log_K=log(float(graph.n_arms)))


class State(NamedTuple):
    """What the next round needs, and scratch to compute it in."""

    L: np.ndarray
    b: np.ndarray
    q: np.ndarray
    P: np.ndarray
    loops: np.ndarray  #: whether an arm reveals itself
    strong: np.ndarray  #: whether an arm is strongly observable
    U: np.ndarray  #: whether an arm is in U
    known: np.ndarray  #: the key of the graph that these are of, and the size of U
    free: np.ndarray
    heap: np.ndarray


_GRAPH, _SIZE = range(2)  # in `known`


def init(params: Params, graph: FeedbackGraph) -> State:
    """Return the state before round 1."""
    K = graph.n_arms
    reals = {"L": np.zeros(K), "b": np.array([START]), "q": np.zeros(K), "P": np.zeros(K)}
    flags = {name: np.zeros(K, np.bool_) for name in ("loops", "strong", "U")}
    return State(**reals, **flags, known=np.array([-1, 0]), **cover_scratch(K)._asdict())


@kernel
def _look(state: State, graph: GraphArrays) -> None:
    """See what kind each arm is of, and choose U, unless the graph is the one that was looked at last."""
    if state.known[_GRAPH] != graph.key:
        state.known[_GRAPH] = graph.key
        mark_loops(graph, state.loops)
        mark_strong(graph, state.strong)
        state.known[_SIZE] = dominate_others(graph, state.strong, state.U, CoverScratch(state.free, state.heap))  # 2


@kernel
def distribution(params: Params, state: State, graph: GraphArrays, asked: Asked) -> None:
    """Write into `p` the probabilities of round t."""
    t, p, trace = asked.t, asked.p, asked.trace
    q, P, K = state.q, state.P, p.size
    eta = 1.0 / state.b[0]
    trace[_ETA] = eta
    if K == 1:
        p[0] = 1.0
        return
    _look(state, graph)
    scale = 1.0 / exponential(state.L, eta, q)
    j, w = -1, 0.0
    for i in range(K):
        q[i] *= scale  # 1
        w += 0.0 if state.strong[i] else q[i]
        if q[i] > 0.5 and state.strong[i] and not state.loops[i]:
            j = i
    size = float(state.known[_SIZE])
    g = max(0.25 / float(t), 2.0 * eta if j >= 0 else 0.0)  # 3
    c = min(0.25, math.sqrt(0.5 * eta * w * size))  # 4
    share = c / max(size, 1.0)
    for i in range(K):
        p[i] = (1.0 - g - c) * q[i] + g / K + (share if state.U[i] else 0.0)  # 5
    observe(graph, p, P)  # 6
    least = g / K  # of each P: where rounding has lost it, it is still above 0
    of_j = 1.0 / max(P[j], least) if j >= 0 else 0.0
    for i in range(K):
        P[i] = 0.0 if i == j else q[i] * (1.0 / max(P[i], least) + of_j)
    V = total(P) if j < 0 else 2.0 * total(P)  # 7
    trace[_MASS] = g + c
    trace[_COST] = g + c + 0.5 * eta * V


@kernel
def update(params: Params, state: State, graph: GraphArrays, told: Told) -> None:
    """Learn the losses that playing `arm` revealed in round t, when the probabilities were `p`."""
    arm, p, losses, trace = told.arm, told.p, told.losses, told.trace
    if p.size > 1:
        learn(graph, p, arm, losses, state.P, state.L)  # 6, 8
        state.b[0] += trace[_COST] / params.log_K  # 9


LEARNER = Learner(
    name="exp3.g",
    chosen_by="rate='adaptive'",
    params=Params,
    configure=configure,
    init=init,
    distribution=distribution,
    update=update,
    ranges={"known": ("any", "sizes"), "free": "sizes", "heap": "any"},
    needs=frozenset({Need.OBSERVABLE, Need.GRAPH_BEFORE}),
    traces=TRACES,
    settled=("rate",),
    about=About(
        paper="this package, after Alon et al. 2015",
        cite=("alon2015beyond",),
        proved=("adversarial",),
        cost="O(K + E)",
        bound="O(sqrt(alpha T ln K ln(K T))); weakly observable: O((d ln K)^(1/3) T^(2/3))",
        theorem="docs/bounds.md",
        published=False,
    ),
)
