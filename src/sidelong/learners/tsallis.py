r"""Tsallis-INF: optimal for bandits in both worlds. It sees the loss of the arm it plays and nothing else.

J. Zimmert, Y. Seldin, "Tsallis-INF: An Optimal Algorithm for Stochastic and Adversarial Bandits", JMLR 22 (2021).
Algorithm 1, with Newton's method for the weights as in Algorithm 2.

::

    for t = 1, 2, ...
        eta = 2 / sqrt(t)  (estimator "iw"),  4 / sqrt(t)  (estimator "rv")                   1
        p_i = 4 / (eta (L_i - x))^2,  where x < min_j L_j makes the sum of p equal 1          2
        draw I ~ p, observe the loss l_I                                                      3
        "iw":  L_I += l_I / p_I                                                               4
        "rv":  B_i = 1/2 if p_i >= eta^2, else 0                                              5
               L_i += B_i for all i,  L_I += (l_I - B_I) / p_I                                6

Theorem 1, against any adversary: at most 4 sqrt(K T) + 1 with "iw" (importance weighting), and 2 sqrt(K T) + 14 K ln T
+ 16 with "rv" (reduced variance; printed with 10, and its proof gives 14). In a stochastic world, also a corrupted or
constrained one, with one best arm: of order sum_i ln T / gap_i.

With feedback "graph", a heuristic of ours, all revealed arms count: line 4 is L_i += l_i / P_i for each of them, P_i
being the probability that i is revealed, which takes the place of p_i in lines 5 and 6 too. As P_i >= p_i, "iw" keeps
its adversarial bound. Nothing better, and nothing for "rv" or for a stochastic world, has been proved.

Where this departs from the page: with y = eta (min_j L_j - x) the sum of 4 / (eta (L_i - min_j L_j) + y)^2 is to be 1.
Newton's method is used on this sum to the power -1/2, a concave function of y that is almost a line: from y = 2 on
it climbs to the root in about four steps, where on the sum itself it takes ten. It stops when the sum is at
most 1 + 1e-12, and what is left is divided out.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from sidelong._jit import kernel
from sidelong.graphs.arrays import GraphArrays, observe
from sidelong.learners.interface import About, Asked, Learner, Need, Told
from sidelong.learners.options import one_of
from sidelong.numerics import smallest, total

if TYPE_CHECKING:
    from collections.abc import Mapping

    from sidelong.graphs.graph import FeedbackGraph

_PROVED = ("adversarial", "stochastic")
TRACES = ("learning_rate",)
_ETA = 0


class Params(NamedTuple):
    """The constants."""

    reduced_variance: bool
    graph_feedback: bool


def proved(options: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the worlds with a theorem: with all that is revealed, the adversarial one and only for "iw"."""
    if options.get("feedback", "bandit") == "bandit":
        return _PROVED
    return _PROVED[:1] if options.get("estimator", "iw") == "iw" else ()


def configure(graph: FeedbackGraph, *, estimator: str = "iw", feedback: str = "bandit") -> Params:
    """Turn options into constants.

    Args:
        graph: the graph that the learner starts on.
        estimator: "iw", importance weighting, or "rv", with reduced variance, which has half the adversarial bound.
        feedback: "bandit" uses the loss of the played arm alone, as published; "graph" uses all that are revealed,
            which is unproved.
    """
    return Params(
        reduced_variance=one_of("estimator", estimator, ("iw", "rv")) == "rv",
        graph_feedback=one_of("feedback", feedback, ("bandit", "graph")) == "graph",
    )


class State(NamedTuple):
    """What the next round needs, and scratch to compute it in."""

    L: np.ndarray
    excess: np.ndarray  #: eta (L_i - min L)
    slope: np.ndarray
    P: np.ndarray


def init(params: Params, graph: FeedbackGraph) -> State:
    """Return the state before round 1."""
    K = graph.n_arms
    return State(L=np.zeros(K), excess=np.zeros(K), slope=np.zeros(K), P=np.zeros(K))


@kernel
def distribution(params: Params, state: State, graph: GraphArrays, asked: Asked) -> None:
    """Write into `p` the probabilities of round t."""
    t, p, trace = asked.t, asked.p, asked.trace
    eta = (4.0 if params.reduced_variance else 2.0) / math.sqrt(float(t))  # 1
    least = smallest(state.L)
    for i in range(p.size):
        state.excess[i] = eta * (state.L[i] - least)
    y = 2.0
    for _ in range(100):  # 2
        for i in range(p.size):
            root = 2.0 / (state.excess[i] + y)
            p[i] = root * root
            state.slope[i] = p[i] * root
        sum_ = total(p)
        if sum_ <= 1.0 + 1e-12:
            break
        y += 2.0 * sum_ * (math.sqrt(sum_) - 1.0) / total(state.slope)
    scale = 1.0 / total(p)
    for i in range(p.size):
        p[i] *= scale
    trace[_ETA] = eta


@kernel
def update(params: Params, state: State, graph: GraphArrays, told: Told) -> None:
    """Learn the losses that playing `arm` revealed in round t, when the probabilities were `p`."""
    arm, p, losses, trace = told.arm, told.p, told.losses, told.trace
    if params.graph_feedback:
        observe(graph, p, state.P)
    else:
        for j in range(p.size):
            state.P[j] = p[j]
    # Where B_i is 0, as always with "iw", line 6 is line 4.
    least = trace[_ETA] * trace[_ETA] if params.reduced_variance else math.inf
    if params.reduced_variance:
        for j in range(p.size):
            state.L[j] += 0.5 if state.P[j] >= least else 0.0  # 5, 6
    first = graph.start[arm]
    for e in range(first, graph.stop[arm]):
        i = np.uint64(graph.targets[e])
        if params.graph_feedback or i == np.uint64(arm):
            B = 0.5 if state.P[i] >= least else 0.0
            # p[arm] is a part of P_i. Where rounding has lost it beside larger parts, it is still above 0.
            state.L[i] += (losses[e - first] - B) / max(state.P[i], p[arm])  # 4, 6


LEARNER = Learner(
    name="tsallis-inf",
    params=Params,
    configure=configure,
    init=init,
    distribution=distribution,
    update=update,
    needs=frozenset({Need.SELF_LOOPS}),
    traces=TRACES,
    scratch=("excess", "slope", "P"),
    proved_with=proved,
    about=About(
        paper="Zimmert, Seldin 2021",
        cite=("zimmert2021tsallis",),
        proved=_PROVED,
        cost="O(K)",
        bound="4 sqrt(K T); O(sum of ln T / gap)",
        theorem="Theorem 1",
    ),
)
