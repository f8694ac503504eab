r"""Exponential weights whose rate follows the entropy: near-optimal in both worlds on a graph.

S. Ito, T. Tsuchiya, J. Honda, "Nearly Optimal Best-of-Both-Worlds Algorithms for Online Learning with Feedback
Graphs", NeurIPS 2022, for graphs in which every arm reveals itself. The constants are our own, from the proof below.

::

    for t = 1, 2, ...
        p_i ~ exp(-Lhat_i / beta)                                                             1
        H = -sum_i p_i ln p_i                                                                 2
        draw I ~ p, observe the losses l_i of all arms i that I reveals                       3
        P_i = sum of p_j over the arms j that reveal i                                        4
        Lhat_i += l_i / P_i   for each observed i                                             5
        B += H,  beta += c / sqrt(1 + B / ln K)                                               6

With Z the strong independence number, or any other bound on sum_i p_i / P_i, and a known horizon T it has
c = sqrt(Z (1 + ln T) / ln K) / 2, and beta = max(1, c) in round 1. The regret is at most

    E[sum_t Z / (2 beta_t) + sum_t (beta_{t+1} - beta_t) H_{t+1}] + beta_1 ln K

and by line 6 both sums are at most sqrt(Z (1 + ln T) (ln K + B)), so that it is of order 2 sqrt(Z T ln K (1 + ln T))
against any adversary. In a stochastic world with one best arm, B itself is bounded by the regret over the smallest
gap, which leaves 4 Z (1 + ln T) ln(e K T) / gap.

Where this departs from the paper: it mixes p with some exploration, which is not needed where every arm reveals itself.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from sidelong._jit import kernel
from sidelong.learners.interface import About, Asked, Learner, Need, Told
from sidelong.learners.options import graph_number, number
from sidelong.learners.weights import learn, theta
from sidelong.numerics import exp, log, smallest, total

if TYPE_CHECKING:
    from collections.abc import Mapping

    from sidelong.graphs.arrays import GraphArrays
    from sidelong.graphs.graph import FeedbackGraph

_NEEDS = frozenset({Need.SELF_LOOPS, Need.FIXED_GRAPH, Need.HORIZON})
TRACES = ("theta", "entropy", "learning_rate")
_THETA, _H, _ETA = range(3)


class Params(NamedTuple):
    """The constants."""

    log_K: float
    c: float
    beta_1: float


def needs(options: Mapping[str, Any]) -> frozenset[Need]:
    """Return what it needs with these options: the graph may change if Z is given."""
    return _NEEDS - {Need.FIXED_GRAPH} if options.get("strong_independence") is not None else _NEEDS


def configure(graph: FeedbackGraph, *, horizon: float, strong_independence: float | None = None) -> Params:
    """Turn options into constants.

    Args:
        graph: the graph that the learner starts on.
        horizon: T, how many rounds there will be. `simulate` fills it in.
        strong_independence: Z. Computed if not given, and refused if ten seconds are not enough. Any number from it up
            to K is valid and gives the same bounds with that number in its place. If graphs change, it must be given,
            and bound the strong independence number of each.
    """
    K = graph.n_arms
    log_K = log(float(max(K, 2)))  # a single arm is played whatever the constants are
    T = number("horizon", horizon, least=1)
    Z = graph_number(graph, "strong_independence", strong_independence)
    c = math.sqrt(Z * (1.0 + log(T)) / log_K) / 2.0
    return Params(log_K, c, beta_1=max(1.0, c))


class State(NamedTuple):
    """What the next round needs, and scratch to compute it in."""

    Lhat: np.ndarray
    beta: np.ndarray
    B: np.ndarray
    P: np.ndarray
    terms: np.ndarray


def init(params: Params, graph: FeedbackGraph) -> State:
    """Return the state before round 1."""
    K = graph.n_arms
    return State(Lhat=np.zeros(K), beta=np.array([params.beta_1]), B=np.zeros(1), P=np.zeros(K), terms=np.zeros(K))


@kernel
def distribution(params: Params, state: State, graph: GraphArrays, asked: Asked) -> None:
    """Write into `p` the probabilities of round t."""
    p, trace = asked.p, asked.trace
    eta = 1.0 / state.beta[0]
    least = smallest(state.Lhat)
    for i in range(p.size):
        x = eta * (state.Lhat[i] - least)
        p[i] = exp(-x)
        state.terms[i] = p[i] * x
    sum_ = total(p)
    trace[_H] = log(sum_) + total(state.terms) / sum_  # 2: as -ln p_i = x_i + ln(sum)
    trace[_ETA] = eta
    for i in range(p.size):
        p[i] /= sum_  # 1


@kernel
def update(params: Params, state: State, graph: GraphArrays, told: Told) -> None:
    """Learn the losses that playing `arm` revealed in round t, when the probabilities were `p`."""
    arm, p, losses, trace = told.arm, told.p, told.losses, told.trace
    learn(graph, p, arm, losses, state.P, state.Lhat)  # 4, 5
    trace[_THETA] = theta(p, state.P)
    state.B[0] += trace[_H]
    state.beta[0] += params.c / math.sqrt(1.0 + state.B[0] / params.log_K)  # 6


LEARNER = Learner(
    name="ito-2022",
    params=Params,
    configure=configure,
    init=init,
    distribution=distribution,
    update=update,
    needs=_NEEDS,
    traces=TRACES,
    scratch=("P", "terms"),
    needs_with=needs,
    about=About(
        paper="Ito, Tsuchiya, Honda 2022",
        cite=("ito2022nearly",),
        proved=("adversarial", "stochastic"),
        cost="O(K + E)",
        bound="2 sqrt(alpha~ T ln K (1 + ln T)); 4 alpha~ (1 + ln T) ln(e K T) / smallest gap",
        theorem="derived in its file, with constants of our own",
    ),
)
