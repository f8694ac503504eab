r"""SPM: Tsallis regularisation whose rate matches stability and penalty, for both worlds and without a horizon.

S. Ito, T. Tsuchiya, J. Honda, "Adaptive Learning Rate for Follow-the-Regularized-Leader: Competitive Analysis and
Best-of-Both-Worlds", COLT 2024. Algorithm 1 with rule (2) for the rate, on graphs as in appendix D.6: undirected
graphs in which every arm reveals itself.

::

    b = 4 K / (1 - a),  a' = 1 - a,  b' = 8 / (1 - a), or 0 if a <= 1/2                       1
    for t = 1, 2, ...
        p = argmin of <L, x> - (b / a) sum_i x_i^a - (b' / a') sum_i x_i^a'                   2
        draw I ~ p, observe the losses l_i of all arms i that I reveals                       3
        P_i = sum of p_j over the arms j that reveal i                                        4
        m = min(max_i p_i, 1 - max_i p_i),  c_i = min(p_i, m)                                 5
        z = sum_i c_i^(2 - a) / P_i / (1 - a)                                                 6
        h = (sum_i p_i^a - 1) / a                                                             7
        L_i += l_i / P_i   for each observed i                                                8
        b += z / (b h)                                  (with the b of the round)             9

The power is a = 1 - 1 / (2 (1 + ln(K / alpha))), where alpha is the independence number. With h_1 = (K^(1-a) - 1) / a
and Z = (1 + alpha^a) (1 - 1/K)^(1-a) / (1 - a), the largest that z can be, the regret is at most 16 sqrt(h_1 Z T) + k
against any adversary, of order sqrt(alpha T (1 + ln(K / alpha))). In a stochastic world with one best arm it is of
order alpha (1 + ln(K / alpha)) ln T / gap. `sidelong.theory.rivals` has all constants, which are ours: the paper has
orders, and ``docs/bounds.md`` the derivation.

Where this departs from the paper: b and b' may be larger there, and equality is our reading. That the penalty does
not grow faster than fourfold in a round is a lemma there for estimates with one denominator, which graphs do not
have; ``docs/bounds.md`` mends it. Only a depends on the graph, so that graphs may change if it is given.

Line 2 has b p_i^(a-1) + b' p_i^(-a) = L_i - min L + u, where u makes the sum 1. Both the logarithm of the left side,
as a function of s_i = ln p_i, and that of the sum, as a function of u, are convex and nearly straight: Newton's method
converges from anywhere, and needs two or three steps from the s and the u of the last round that was told. The step
from a sum within 1e-6 of 1 is the last, and is taken to first order in p, which leaves an error of order 1e-12. With
one power, b' = 0, the first equation is solved in closed form.

A round that is told late counts with its own b. A single arm is played.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from sidelong._jit import kernel
from sidelong.learners.interface import About, Asked, Learner, Need, Told
from sidelong.learners.options import graph_number, number
from sidelong.learners.weights import learn
from sidelong.numerics import exp, expm1, log, log1p, log_normal, smallest, total

if TYPE_CHECKING:
    from collections.abc import Mapping

    from sidelong.graphs.arrays import GraphArrays
    from sidelong.graphs.graph import FeedbackGraph

_NEEDS = frozenset({Need.SELF_LOOPS, Need.UNDIRECTED, Need.FIXED_GRAPH})
TRACES = ("learning_rate", "stability", "penalty", "multiplier")
_ETA, _Z, _H, _U = range(4)


class Params(NamedTuple):
    """The constants, in the paper's symbols."""

    a: float
    b_1: float
    b_other: float  #: b'


def needs(options: Mapping[str, Any]) -> frozenset[Need]:
    """Return what it needs with these options: the graph may change if a, or alpha, is given."""
    given = options.get("independence") is not None or options.get("a") is not None
    return _NEEDS - {Need.FIXED_GRAPH} if given else _NEEDS


def configure(graph: FeedbackGraph, *, independence: float | None = None, a: float | None = None) -> Params:
    """Turn options into constants.

    Args:
        graph: the graph that the learner starts on.
        independence: alpha, for a. Computed if not given, and refused if ten seconds are not enough. Any number from 1
            to K is valid: the bounds hold with the a that follows from it and the true alpha. If graphs change, it must
            be given.
        a: the Tsallis power, from 0.01 to 0.99, in the place of the one that follows from alpha.
    """
    K = float(graph.n_arms)
    if a is not None:
        power = number("a", a, least=0.01, most=0.99)
    else:
        power = 1.0 - 0.5 / (1.0 + log(K / graph_number(graph, "independence", independence)))
    return Params(
        a=power,
        b_1=4.0 * K / (1.0 - power),
        b_other=8.0 / (1.0 - power) if power > 0.5 else 0.0,  # 1
    )


class State(NamedTuple):
    """What the next round needs, and scratch to compute it in."""

    L: np.ndarray
    b: np.ndarray
    u: np.ndarray  #: the multiplier of a round before
    log_p: np.ndarray  #: of a round before
    s: np.ndarray
    slope: np.ndarray
    P: np.ndarray


def init(params: Params, graph: FeedbackGraph) -> State:
    """Return the state before round 1."""
    K = graph.n_arms
    b, log_K = np.array([params.b_1]), log(float(K))
    u = np.array([params.b_1 * exp((1.0 - params.a) * log_K) + params.b_other * exp(params.a * log_K)])
    return State(np.zeros(K), b, u, np.full(K, -log_K), np.zeros(K), np.zeros(K), np.zeros(K))


@kernel
def _invert_one(params: Params, state: State, b: float, least: float, u: float, p: np.ndarray) -> None:
    """Do what `_invert` does where there is one power, in closed form."""
    a = params.a
    for i in range(p.size):
        state.s[i] = b / (state.L[i] - least + u)
        p[i] = state.s[i] * state.s[i]
    if a != 0.5:
        for i in range(p.size):
            p[i] = exp(log_normal(state.s[i]) / (1.0 - a))
    for i in range(p.size):
        state.slope[i] = p[i] / ((1.0 - a) * (state.L[i] - least + u))


@kernel
def _invert(params: Params, state: State, b: float, least: float, u: float, p: np.ndarray) -> None:
    """Write into `p` what b p_i^(a-1) + b' p_i^(-a) = L_i - least + u has for p_i, and how fast it falls in u."""
    a = params.a
    for _ in range(100):
        for i in range(p.size):
            p[i] = exp(state.s[i])
            state.slope[i] = exp(a * state.s[i])
        far = 0.0
        for i in range(p.size):
            first = b * state.slope[i] / p[i]
            second = params.b_other / state.slope[i]
            y = state.L[i] - least + u
            state.slope[i] = (1.0 - a) * first + a * second
            # The step of Newton's method on the logarithm, ln(G / y) G / slope. Near the root ln(G / y) = G / y - 1.
            ratio = (first + second) / y
            far = max(far, abs(ratio - 1.0))
            state.P[i] = ratio
        if far <= 1e-6:
            for i in range(p.size):
                step = (state.P[i] - 1.0) * (state.L[i] - least + u) / state.slope[i]
                p[i] += p[i] * step
                state.slope[i] = p[i] / state.slope[i]
            return
        for i in range(p.size):
            state.s[i] += log_normal(state.P[i]) * state.P[i] * (state.L[i] - least + u) / state.slope[i]


@kernel
def distribution(params: Params, state: State, graph: GraphArrays, asked: Asked) -> None:
    """Write into `p` the probabilities of round t."""
    p, trace = asked.p, asked.trace
    b = state.b[0]
    least = smallest(state.L)
    lowest = b + params.b_other  # where the best arm has all
    u = max(lowest, state.u[0] + least)
    for i in range(p.size):
        state.s[i] = state.log_p[i]
    step = 0.0
    for _ in range(100):  # 2
        if params.b_other == 0.0:
            _invert_one(params, state, b, least, u, p)
        else:
            _invert(params, state, b, least, u, p)
        sum_ = total(p)
        step = sum_ * log(sum_) / total(state.slope)
        if abs(sum_ - 1.0) <= 1e-6:
            break
        step = max(lowest, u + step) - u
        u += step
        if abs(sum_ - 1.0) <= 0.1:  # a long step along the tangent would leave the range of exp
            for i in range(p.size):
                state.s[i] -= step * state.slope[i] / p[i]  # where the next search begins
    for i in range(p.size):
        p[i] -= step * state.slope[i]
    scale = 1.0 / total(p)
    for i in range(p.size):
        p[i] *= scale
    trace[_ETA] = 1.0 / b
    trace[_U] = u + step - least


@kernel
def update(params: Params, state: State, graph: GraphArrays, told: Told) -> None:
    """Learn the losses that playing `arm` revealed in round t, when the probabilities were `p`."""
    arm, p, losses, trace = told.arm, told.p, told.losses, told.trace
    learn(graph, p, arm, losses, state.P, state.L)  # 4, 8
    a = params.a
    most = 0
    for i in range(p.size):
        most = i if p[i] > p[most] else most
        state.log_p[i] = log(p[i])
    for i in range(p.size):
        power = exp(a * state.log_p[i])
        state.s[i] = power - p[i]
        state.slope[i] = p[i] * p[i] / (power * max(state.P[i], p[i]))
    state.s[most] = 0.0
    state.slope[most] = 0.0
    rest = 0.0
    for i in range(p.size):  # 1 - max p as the sum of the others, which has all digits
        rest += p[i] if i != most else 0.0
    m = min(p[most], rest)  # 5
    largest = exp((2.0 - a) * log(m)) / max(state.P[most], p[most]) if m > 0.0 else 0.0
    trace[_Z] = (total(state.slope) + largest) / (1.0 - a)  # 6
    trace[_H] = (total(state.s) + p[most] * expm1((a - 1.0) * log1p(-rest))) / a  # 7
    if trace[_H] > 0.0:  # else there is a single arm
        state.b[0] += trace[_Z] * trace[_ETA] / trace[_H]  # 9
    state.u[0] = trace[_U]


LEARNER = Learner(
    name="spm-2024",
    params=Params,
    configure=configure,
    init=init,
    distribution=distribution,
    update=update,
    ranges={"b_other": "shares"},
    needs=_NEEDS,
    traces=TRACES,
    scratch=("s", "slope", "P"),
    needs_with=needs,
    about=About(
        paper="Ito, Tsuchiya, Honda 2024",
        cite=("ito2024adaptive",),
        proved=("adversarial", "stochastic"),
        cost="O(K + E)",
        bound="O(sqrt(alpha T (1 + ln(K / alpha)))); O(alpha (1 + ln(K / alpha)) ln T / smallest gap)",
        theorem="Theorem 27; with constants of our own in docs/bounds.md",
    ),
)
