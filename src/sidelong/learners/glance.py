r"""glance: plays what is cheapest as far as it knows, on a budget that keeps a bound in both worlds.

A *cautious* half is follow-the-regularised-leader with Tsallis weights, a prediction for each arm, and exploration as
far as measured variances are worth it. A *bold* half plays the arm that is cheapest as far as is known. It plays as
long as an unbiased estimate of what it has lost to the cautious half stays below what the cautious half's own bound is
made of: so whatever the bold half is, both theorems hold. `docs/glance.md` has the measurements, and
`docs/glance-proof.md` the proof.

::

    n = max(2, round(ln K)),  H = n (K^(1/n) - 1),  x = sqrt(2/H) / (2 m),  eps = Z = G = 0
    N_i = o_i = V_i = L_i = 0

    while some arm was never seen
        play the arm that reveals most of those;  L_i = the first loss seen of i;  lines 16 to 20          1
    in each round after that, with eta = 1/x
        q_i = (eta (L_i - min L) / (n-1) + y)^-n, summing to 1;  r_i = q_i^(1/n)                           2
            h = n (sum q_i / r_i - 1);  w_i = n/(n-1) q_i r_i
        v_i = (V_i + 0.1 + 2 v) / (N_i + 3),  where v = (0.1 + sum V) / (1 + sum (N_i - 1))                3
        D_i ~ (1 + 4 N_i / (N_i + 2) (o_i - min o)^2 / v_i)^-(N_i + 2)              the bold half          4
        rho = min(1/2, (10 + x) / 500);  W = 4 + 2 G                                                       5
        beta = (1 - rho) min(1, max(0, 2 (1 - Z/W)))                                the budget             6
            base = (1 - beta) q + beta D
        U = uniform on a cover;  P(e) the observation of (1 - e) base + e U                                7
        eps moves by a step of Newton's towards the least                                                  8
            2 (1 - beta) eta sum v_i w_i / P_i(e) + e,  within [0, 1/2]
        limit = 4 eta (sum of w_i / P_i(eps) over all arms but the one of largest q)                       9
            if eps > limit: eps = limit / 2
        p = (1 - eps) base + eps U;  draw;  P = P(eps)                                                     10
        d_i = clip(b + o_i, 0, 1);  b_i = min(d_i, 0.9 P_i x / (2 r_i))                                    11
        a_i = b_i + [observed] (l_i - b_i) / P_i;  L += a                                                  12
        c = min(the mean of the a_i with weights q_i r_i,  the least a_i + x / (2 r_i))                    13
            S = x sum q_i / r_i phi(eta (a_i - c) r_i / (n-1)),  phi(s) = (1+s)^-(n-1) - 1 + (n-1) s
        Z += (1 - eps) beta sum (D_i - q_i) (d_i + [observed] (l_i - d_i) / P_i)                           14
        C = S + 0.3 eps;  G += C;  x += min(C / (m^2 max(h, H/t)), x/n)                                    15

    what is known (after every round; k arms were observed; e_i = l_i - b - o_i, E their mean)
        tau = shift / (shift + noise / (k-1)), 0 if k = 1 or in the first round,                           16
            noise = (A + (B + 0.1) / (1 + rounds)) / (1 + A'),  shift = max(0, (B - noise B') / rounds),
            where A = sum over rounds of sum (e_i - E)^2,  A' = of k - 1,  B = of E^2,  B' = of 1/k,
            of the rounds before, without the first
        e_i -= tau (mean of the other observed e)                                                          17
        N_i += 1;  o_i += e_i / N_i;  V_i += e_i^2 (1 - 1/N_i)          for each observed i                18
        three levels follow the mean of the observed l_i - o_i, over all, 32 and 4 rounds                  19
        b = the level of longest memory, or one whose squared error, over about 20 rounds,                 20
            is below 0.9 of it, in turn             (in the first round all are the mean loss)

    as soon as the graph of a round was not the one asked with, in place of 16 to 18 (at first F = F2 = N)
        F_i and F2_i fall by 2 / (rounds told) of themselves, for each i                                   21
        w_i = p_i / P_i,  F_i += w_i,  o_i += w_i e_i / F_i             for each observed i                22
        F2_i += p_i^2 / P_i,  N_i = F_i^2 / F2_i,  V_i / N_i the variance with the weights, for each i     23
        in line 19 the levels follow the l_i - o_i of the played arm alone                                 24

The last lines are for those who learn the graph with the outcome. They may see an arm on certain days only, as a shop
that sold out sees nothing of larger orders, and a mean of what they saw would mislead. A weight p_i / P_i counts each
loss as if arms had shown themselves alone, N_i also knows of days on which i could hardly be seen, and what was seen
long ago fades, since who plays one arm may not see that the others have changed. Late feedback of line 1 is left out.

In line 1 a loss that is on its way counts as seen. What a round's estimates depend on (p, q, D, d, x, h, eps and beta)
is fixed in lines 2 to 11 and kept with the decision, so that L and Z stay unbiased however late feedback comes.

Against any adversary the regret is of the order of sqrt(ln K sum_t theta_t), and in a stochastic world of
M ln K ln(M T) / gap, where M is the largest number of arms without a cycle among them. Both constants are too large to
say anything at the horizons that people play; there the measurements speak.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from sidelong._jit import kernel, rare_kernel
from sidelong.graphs.arrays import GraphArrays, observe
from sidelong.graphs.cover import new_room
from sidelong.learners.glance_bold import (
    LEVEL,
    MEMORIES,
    N_KNOWN,
    TOLD,
    WEIGHED,
    estimate_variances,
    know,
    know_by_weights,
    play_boldly,
)
from sidelong.learners.glance_cautious import UNSEEN, G, X, Z, explore, make_cover, stability, weigh
from sidelong.learners.interface import About, Need
from sidelong.learners.options import number
from sidelong.numerics import exp, log, total

if TYPE_CHECKING:
    from sidelong.graphs.graph import FeedbackGraph
    from sidelong.numerics import Whole

NAME = "glance"
VERSION = 1
NEEDS = frozenset({Need.SELF_LOOPS, Need.GRAPH_BEFORE})
ABOUT = About(
    paper="this package",
    proved=("adversarial", "stochastic"),
    cost="O(K ln K + E)",
    bound="111 sqrt(ln K sum_t theta_t); O(M ln K ln(M T) / gap)",
    theorem="derived in docs/glance-proof.md",
    published=False,
)
TRACES = ("stability", "entropy", "exploration_mass", "learning_rate", "bold_share")
_S, _H, _EPS, _ETA, _BETA, _ASKED = range(6)  # the last is the key of the graph that was asked with
#: Rows that are kept with a decision: g is 1/r.
KEPT = ("q", "g", "D", "d")
ROOM = ("v", "w", "P", "a", "e", "order", "zeros", "chosen", "free", "heap")


class Params(NamedTuple):
    """The constants."""

    n: int
    H: float
    m: float


def configure(graph: FeedbackGraph, *, eta_scale: float = 1.6) -> Params:
    """Turn options into constants.

    Args:
        graph: the graph that the learner starts on.
        eta_scale: m, the scale of the learning rate.
    """
    log_K = log(float(graph.n_arms))
    n = max(2, math.floor(log_K + 0.5))
    H = n * (exp(log_K / n) - 1.0) if graph.n_arms > 1 else 1.0
    return Params(n, H, number("eta_scale", eta_scale, above=0))


class State(NamedTuple):
    """What the next round needs, and room to compute it in."""

    L: np.ndarray
    N: np.ndarray
    o: np.ndarray
    V: np.ndarray
    F: np.ndarray  #: the sum of the weights of what was observed; N if the graph was always the one asked with
    F2: np.ndarray  #: the sum of their squares
    level: np.ndarray  #: the three of line 19
    error: np.ndarray  #: the mean of their squared errors
    known: np.ndarray  #: what lines 16 to 20 count; `glance_bold` names its entries
    rate: np.ndarray  #: x and what goes with it; `glance_cautious` names its entries
    marks: np.ndarray  #: of the graph and of line 1; named there too
    seen: np.ndarray  #: whether a loss of the arm is known or on its way
    U: np.ndarray
    u: np.ndarray  #: the probability that U reveals each arm
    v: np.ndarray
    w: np.ndarray
    P: np.ndarray
    a: np.ndarray
    e: np.ndarray
    order: np.ndarray
    zeros: np.ndarray
    chosen: np.ndarray
    free: np.ndarray
    heap: np.ndarray


def init(params: Params, graph: FeedbackGraph) -> State:
    """Return the state before round 1."""
    K = graph.n_arms
    vectors = {
        name: np.zeros(K) for name in ("L", "N", "o", "V", "F", "F2", "U", "u", "v", "w", "P", "a", "e", "zeros")
    }
    return State(
        level=np.zeros(len(MEMORIES)),
        error=np.zeros(len(MEMORIES)),
        known=np.zeros(N_KNOWN),
        rate=np.array([math.sqrt(2.0 / params.H) / (2.0 * params.m), 1.0, 0.0, 0.0, 0.0, 0.0]),
        marks=np.array([-1, K]),
        seen=np.zeros(K, np.bool_),
        order=np.arange(K, dtype=np.uint32),
        chosen=np.zeros(K, np.bool_),
        **new_room(K)._asdict(),
        **vectors,
    )


@kernel
def _rows(trace: np.ndarray, K: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return q, g, D and d of a round."""
    first = trace.size - 4 * K
    q, g = trace[first : first + K], trace[first + K : first + 2 * K]
    return q, g, trace[first + 2 * K : first + 3 * K], trace[first + 3 * K :]


@kernel
def distribution(params: Params, state: State, graph: GraphArrays, t: int, p: np.ndarray, trace: np.ndarray) -> None:
    """Write into `p` the probabilities of round t."""
    if state.marks[UNSEEN] > 0 or p.size == 1:
        p[:] = 0.0
        p[_look(state, graph)] = 1.0  # 1
        trace[_ETA] = 0.0
        return
    q, g, D, d = _rows(trace, p.size)
    eta = 1.0 / state.rate[X]
    trace[_ETA] = eta
    trace[_H] = weigh(state, params.n, eta, q, g)
    estimate_variances(state)
    play_boldly(state, D)
    beta = _boldness(state)
    for i in range(p.size):
        p[i] = (1.0 - beta) * q[i] + beta * D[i]
    make_cover(state, graph)
    observe(graph, p, state.P)
    eps = explore(state, eta, 1.0 - beta)
    for i in range(p.size):
        p[i] = (1.0 - eps) * p[i] + eps * state.U[i]  # 10
    b = state.known[LEVEL]
    for i in range(p.size):
        d[i] = min(1.0, max(0.0, b + state.o[i]))  # 11
    trace[_EPS] = eps
    trace[_BETA] = beta
    trace[_ASKED] = graph.key


@rare_kernel
def _look(state: State, graph: GraphArrays) -> Whole:
    """Return the arm that reveals most of those never seen, and count these as seen."""
    best, most = 0, 0
    if graph.contiguous:  # by the number of such arms up to each one
        count = 0
        for i in range(state.seen.size):
            count += 0 if state.seen[i] else 1
            state.heap[i] = count
    for j in range(state.seen.size):
        first, last = graph.start[j], graph.stop[j]
        new = 0
        if not graph.contiguous:
            for e in range(first, last):
                new += 0 if state.seen[graph.targets[e]] else 1
        elif last > first:
            new = state.heap[last - 1] - (state.heap[first - 1] if first > 0 else 0)
        if new > most:
            best, most = j, new
    for e in range(graph.start[best], graph.stop[best]):
        state.seen[graph.targets[e]] = True
    state.marks[UNSEEN] -= most
    return best


@kernel
def _boldness(state: State) -> float:
    """Return the share of the bold half: less of it when half of its budget is spent."""
    rho = min(0.5, (10.0 + state.rate[X]) / 500.0)
    W = 4.0 + 2.0 * state.rate[G]  # 5
    return (1.0 - rho) * min(1.0, max(0.0, 2.0 * (1.0 - state.rate[Z] / W)))  # type: ignore[no-any-return]  # 6


@kernel
def update(
    params: Params,
    state: State,
    graph: GraphArrays,
    t: int,
    arm: int,
    p: np.ndarray,
    losses: np.ndarray,
    trace: np.ndarray,
) -> None:
    """Learn the losses that playing `arm` revealed in round t, when the probabilities were `p`."""
    first = graph.start[arm]
    if trace[_ETA] > 0.0:
        q, g, _, _ = _rows(trace, p.size)
        J = _estimate(state, graph, arm, p, losses, trace)
        S = stability(state, params.n, trace[_ETA], q, g)
        for j in range(p.size):
            state.L[j] += state.a[j]  # 12
        state.rate[Z] += (1.0 - trace[_EPS]) * trace[_BETA] * J  # 14
        C = S + 0.3 * trace[_EPS]
        state.rate[G] += C
        x = state.rate[X]
        state.rate[X] += min(C / (params.m * params.m * max(trace[_H], params.H / t)), x / params.n)  # 15
        trace[_S] = S
        if trace[_ASKED] != float(graph.key):
            state.known[WEIGHED] = 1.0
    else:
        for k in range(graph.stop[arm] - first):
            i = np.uint64(graph.targets[first + k])
            if state.N[i] == 0.0:
                state.L[i] += losses[k]  # 1
    if state.known[WEIGHED] == 0.0 or state.known[TOLD] == 0.0:
        know(state, graph, arm, losses)
    elif trace[_ETA] > 0.0:  # what came by line 1 has no weight
        know_by_weights(state, graph, arm, p, losses)


@kernel
def _estimate(
    state: State, graph: GraphArrays, arm: int, p: np.ndarray, losses: np.ndarray, trace: np.ndarray
) -> float:
    """Write into `a` the estimates of a round; return the sum of line 14."""
    q, g, D, d = _rows(trace, p.size)
    observe(graph, p, state.P)
    half = 0.45 / trace[_ETA]
    for j in range(p.size):
        state.a[j] = min(d[j], half * state.P[j] * g[j])  # 11
    for j in range(p.size):
        state.e[j] = (D[j] - q[j]) * d[j]
    first = graph.start[arm]
    for k in range(graph.stop[arm] - first):
        i = np.uint64(graph.targets[first + k])
        l = losses[k]
        P = max(state.P[i], p[arm])  # rounding may lose p[arm] in P
        state.a[i] += (l - state.a[i]) / P
        state.e[i] += (D[i] - q[i]) * ((l - d[i]) / P)
    return total(state.e)
