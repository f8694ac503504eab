r"""ELP: exponential weights with the exploration that a linear program finds for the graph.

S. Mannor, O. Shamir, "From Bandits to Experts: On the Value of Side-Observations", NIPS 2011. Algorithm ELP
("exponentially-weighted algorithm with linear programming"). The paper's graphs may change, and are seen before the
draw. That there is one graph for all rounds is a restriction of ours: line 1 is solved once, when the learner is made.

::

    s = the distribution with the largest v = min_i sum of s_j over the arms j that reveal i  1
    for t = 1, 2, ...
        b = min(v / 2, sqrt(ln K / (2 C)))                                                    2
        g = b / v                                                                             3
        p_i = (1 - g) w_i / sum_j w_j + g s_i,  w_i = exp(b Ghat_i)                           4
        draw I ~ p, observe the gains 1 - l_i of all arms i that I reveals                    5
        P_i = sum of p_j over the arms j that reveal i                                        6
        Ghat_i += (1 - l_i) / P_i   for each observed i                                       7
        C += (e - 2) sum_i p_i / P_i + 1 / v                                                  8

The paper has a constant b, tuned by the horizon T and the independence number alpha: the option `b` is for that. With
any b up to v / 2 the regret is at most ln K / b + b ((e - 2) theta + 1 / v) T, where theta bounds sum_i p_i / P_i. On
an undirected graph theta and 1 / v are at most alpha, and the best b gives 2 sqrt((e - 1) alpha T ln K). On a directed
one both are at most the number of cliques in a cover, and theta at most the size of the largest acyclic set.

Lines 2 and 8 need neither T nor alpha. With b_t, g_t, C_t for what b, g, C are in round t and q for w over its sum, the
regret is at most

    E[ln K / b_T + sum_t b_t ((e - 2) sum_i q_i / P_i + 1 / v)]
    <= 2 sqrt(2 E[C_T] ln K) + (2 + log2(T + 1)) ln K / v

The first line holds as b_t does not grow and b_t / P_i is at most 1. The second: C begins with (e - 2) K + 1 / v, a
bound on all that is ever added to it, so that sqrt pays for the sum with C_T; and q_i <= p_i / (1 - g_t) for its last
part. Since E[C_T] is of order ((e - 2) theta + 1 / v) T, this is 3.71 sqrt(alpha T ln K) on an undirected graph.

We have the paper's rates but not its text: both bounds are derived for the lines as they stand here.

Line 1 is the linear program of the fractional domination number, 1 / v. Where it has several solutions the solver
chooses one. Its result is rounded to 2^-40, so that the solver's last bits do not show.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from sidelong._jit import kernel
from sidelong.graphs.arrays import GraphArrays, observe
from sidelong.learners.fractional_cover import cheapest_shares
from sidelong.learners.interface import About, Asked, Learner, Need, Told
from sidelong.learners.options import number
from sidelong.learners.weights import theta
from sidelong.numerics import exp, log, total

if TYPE_CHECKING:
    from sidelong.graphs.graph import FeedbackGraph

TRACES = ("theta", "exploration_mass", "learning_rate")
_THETA, _MASS, _B = range(3)

_E2 = 0.7182818284590452  # e - 2


class Params(NamedTuple):
    """The constants, in the paper's symbols; its beta is b."""

    log_K: float
    b: float  #: a constant one, or 0 if it follows C
    v: float
    s: np.ndarray


def configure(graph: FeedbackGraph, *, b: float | None = None) -> Params:
    """Turn options into constants, and solve the linear program.

    Args:
        graph: the graph.
        b: a constant rate, as in the paper, instead of the one that follows what was seen. At most half of v.
    """
    shares = cheapest_shares(graph, "elp")
    s = np.rint(shares / shares.sum() * 2.0**40)  # whole numbers: the solver's last bits do not show
    v = float((s @ graph.to_scipy().astype(np.float64)).min() / s.sum())  # 1
    return Params(
        log_K=log(float(max(graph.n_arms, 2))),  # a single arm is played whatever the constants are
        b=0.0 if b is None else number("b", b, above=0, most=v / 2),
        v=v,
        s=s / s.sum(),
    )


class State(NamedTuple):
    """What the next round needs, and scratch to compute it in."""

    Ghat: np.ndarray
    C: np.ndarray
    P: np.ndarray


def init(params: Params, graph: FeedbackGraph) -> State:
    """Return the state before round 1."""
    K = graph.n_arms
    return State(Ghat=np.zeros(K), C=np.array([_E2 * K + 1.0 / params.v]), P=np.zeros(K))


@kernel
def distribution(params: Params, state: State, graph: GraphArrays, asked: Asked) -> None:
    """Write into `p` the probabilities of round t."""
    p, trace = asked.p, asked.trace
    b = params.b if params.b > 0.0 else min(params.v / 2.0, math.sqrt(params.log_K / (2.0 * state.C[0])))  # 2
    g = b / params.v  # 3
    most = state.Ghat[0]
    for i in range(1, p.size):
        most = max(most, state.Ghat[i])
    for i in range(p.size):
        p[i] = exp(b * (state.Ghat[i] - most))
    scale = (1.0 - g) / total(p)
    for i in range(p.size):
        p[i] = scale * p[i] + g * params.s[i]  # 4
    trace[_MASS] = g
    trace[_B] = b


@kernel
def update(params: Params, state: State, graph: GraphArrays, told: Told) -> None:
    """Learn the losses that playing `arm` revealed in round t, when the probabilities were `p`."""
    arm, p, losses, trace = told.arm, told.p, told.losses, told.trace
    observe(graph, p, state.P)  # 6
    first = graph.start[arm]
    for e in range(first, graph.stop[arm]):
        i = np.uint64(graph.targets[e])
        state.Ghat[i] += (1.0 - losses[e - first]) / state.P[i]  # 7
    trace[_THETA] = theta(p, state.P)
    state.C[0] += _E2 * trace[_THETA] + 1.0 / params.v  # 8


LEARNER = Learner(
    name="elp",
    params=Params,
    configure=configure,
    init=init,
    distribution=distribution,
    update=update,
    ranges={"b": "shares", "s": "shares", "C": "shares"},
    needs=frozenset({Need.SELF_LOOPS, Need.FIXED_GRAPH, Need.GRAPH_BEFORE}),
    traces=TRACES,
    scratch=("P",),
    about=About(
        paper="Mannor, Shamir 2011",
        cite=("mannor2011side",),
        proved=("adversarial",),
        cost="O(K + E), after one linear program",
        bound="3.71 sqrt(alpha T ln K), with chi for alpha if directed",
        theorem="derived in its file, from the rates of the paper",
    ),
)
