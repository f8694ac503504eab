r"""glance: plays what is cheapest as far as it knows, on a budget that keeps a bound in both worlds.

The *cautious* half is follow-the-regularised-leader with Tsallis weights and a prediction for each arm. It explores as
far as measured variances make that worth it. The *bold* half plays the arm that is cheapest as far as is known. What it
has lost to the cautious half is estimated without bias. It plays as long as that stays below the sum that the cautious
half's own bound is made of. So both theorems hold, whatever the bold half is. `docs/glance.md` has the measurements,
and `docs/glance-proof.md` the proof.

::

    n = max(2, round(ln K)),  H = n (K^(1/n) - 1),  x = sqrt(2/H) / (2 m),  eps = Z = G = 0
    N_i = o_i = V_i = L_i = f_i = R = M = 0

    while some arm was never seen
        play the arm that reveals most of those;  L_i = the first loss seen of i;  lines 16 to 21          1
    in each round after that, with eta = 1/x
        q_i = (eta (L_i - min L) / (n-1) + y)^-n, summing to 1;  r_i = q_i^(1/n)                           2
            h = n (sum q_i / r_i - 1);  w_i = n/(n-1) q_i r_i
        v_i = (V_i + 0.1 + 4 v) / (N_i + 5),  where v = (0.1 + R) / (1 + M)                                3
        D_i ~ exp(-2 (N_i + 2) u_i / (2 + u_i)),  g_i = o_i - min o,                the bold half          4
            u_i = s_i N_i g_i^2 / ((N_i + 2) v_i + 2 N_i g_i^2 / (N_i + 5)),
            s_i = 1 + 3 / (1 + t/4000), or 1 + 3 / (1 + t/30) if arms other than i belong to i;
            the leader, the first arm with g_i = 0, takes the D of all arms that it reveals;
            each arm c of the cover takes the D of those that belong to it, if that makes sum D_i g_i smaller
                where g_c counts as max(0, g_c - z_c),  z_c = sqrt(max(0, ln(t/200)) v_c / max(1, N_c));
                and half of the D of the leader, if that belongs to it and g_c < z_c
        rho = min(1/2, (10 + x) / 500);  W = 4 + 2 G                                                       5
        beta = (1 - rho) min(1, max(0, 2 (1 - Z/W)))                                the budget             6
            base = (1 - beta) q + beta D
        U = uniform on a cover (see below);  P(e) the observation of (1 - e) base + e U                    7
        in every fourth round eps moves by a step of Newton's towards the least                            8
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
        f_i += (e_i - f_i) / 30 where N_i > 2;  an alarm if N_i > 30 and f_i^2 > 36/60 max(v_i, v):        16
            V_i *= 5 / N_i,  N_i = 5  for each i with N_i > 5;  f = 0
        noise = (A + (B + 0.1) / (1 + rounds)) / (1 + A'),  shift = max(0, (B - noise B') / rounds),       17
            where A = sum over rounds of sum (e_i - E)^2,  A' = of k - 1,  B = of E^2,  B' = of 1/k,
            of the rounds before, without the first;  shift = 0 in the first two
        R += e_i^2 N_i / (N_i + 1),  M += 1 if N_i > 0;  then e_i -= shift / (shift + noise Q) (mean of    18
            the other observed e with weights N, where Q = sum of squared weights / squared sum of weights)
        N_i += 1;  o_i += e_i / N_i;  V_i += e_i^2 (1 - 1/N_i)          for each observed i                19
        three levels follow the mean of the observed l_i - o_i, over all, 32 and 4 rounds;                 20
            from the 50th round on the first does so where k > 1
        b = the level of longest memory, or one whose squared error, over about 20 rounds,                 21
            is below 0.9 of it, in turn             (in the first round all are the mean loss)

    as soon as the graph of a round was not the one asked with, all have one s_i in line 4, nobody takes the D of
    others, and in place of 16 to 19 (at first F = F2 = N)
        F_i and F2_i fall by 2 / (rounds told) of themselves, for each i                                   22
        w_i = p_i / P_i,  F_i += w_i,  o_i += w_i e_i / F_i             for each observed i                23
        F2_i += p_i^2 / P_i,  N_i = F_i^2 / F2_i,  V_i / N_i the variance with the weights, for each i;    24
            R = sum V,  M = sum max(0, N_i - 1)
        in line 20 the levels follow the l_i - o_i of the played arm alone                                 25

The last lines are for those who learn the graph with the outcome. They may see an arm on certain days only, as a shop
that sold out sees nothing of larger orders, and a mean of what they saw would mislead. A weight p_i / P_i counts each
loss as if arms had shown themselves alone, N_i also knows of days on which i could hardly be seen, and what was seen
long ago fades, since who plays one arm may not see that the others have changed. Late feedback of line 1 is left out.

An arm of the cover belongs to itself, and any other to the first arm of the cover that reveals it. In line 1 a loss
that is on its way counts as seen. What a round's estimates depend on (p, q, D, d, x, h, eps and beta)
is fixed in lines 2 to 11 and kept with the decision, so that L and Z stay unbiased however late feedback comes.

Against any adversary the regret is of the order of sqrt(ln K sum_t theta_t), and in a stochastic world of
M ln K ln(M T) / gap, where M is the largest number of arms without a cycle among them. Both constants are too large to
say anything at the horizons that people play; there the measurements speak.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from sidelong._jit import kernel
from sidelong.graphs.arrays import GraphArrays, observe
from sidelong.graphs.cover import new_room
from sidelong.learners.glance_bold import (
    FORGETS,
    LEVEL,
    N_KNOWN,
    TOLD,
    WEIGHED,
    estimate_variances,
    know,
    know_by_weights,
    play_boldly,
)
from sidelong.learners.glance_cautious import UNSEEN, G, X, Z, explore, limited, make_cover, stability, weigh
from sidelong.learners.interface import About, Asked, Learner, Need, Told
from sidelong.learners.looks import most_new
from sidelong.learners.options import number
from sidelong.numerics import exp, log, total

if TYPE_CHECKING:
    from sidelong.graphs.graph import FeedbackGraph
    from sidelong.numerics import Whole

TRACES = ("stability", "entropy", "exploration_mass", "learning_rate", "bold_share")
PACE = 4  # eps moves in every fourth round
_S, _H, _EPS, _ETA, _BETA, _ASKED = range(6)  # the last is the key of the graph that was asked with


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
    f: np.ndarray  #: the mean of the last errors of each arm
    level: np.ndarray  #: the three of line 20
    error: np.ndarray  #: the mean of their squared errors
    known: np.ndarray  #: what lines 17 to 21 count; `glance_bold` names its entries
    rate: np.ndarray  #: x and what goes with it; `glance_cautious` names its entries
    marks: np.ndarray  #: of the graph and of line 1; named there too
    seen: np.ndarray  #: whether a loss of the arm is known or on its way
    U: np.ndarray
    u: np.ndarray  #: the probability that U reveals each arm
    cell: np.ndarray  #: the arm of the cover that each arm belongs to
    wide: np.ndarray  #: 1 if others belong to the arm, else 0
    v: np.ndarray
    w: np.ndarray
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
        name: np.zeros(K)
        for name in ("L", "N", "o", "V", "F", "F2", "U", "u", "v", "w", "a", "e", "f", "wide", "zeros")
    }
    return State(
        level=np.zeros(len(FORGETS)),
        error=np.zeros(len(FORGETS)),
        known=np.zeros(N_KNOWN),
        rate=np.array([math.sqrt(2.0 / params.H) / (2.0 * params.m), 1.0, 0.0, 0.0, 0.0, 0.0]),
        marks=np.array([-1, K, 0]),
        cell=np.zeros(K, np.int64),
        seen=np.zeros(K, np.bool_),
        order=np.arange(K, dtype=np.uint32),
        chosen=np.zeros(K, np.bool_),
        **new_room(K)._asdict(),
        **vectors,
    )


@kernel
def _rows(trace: np.ndarray, K: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return P, q, g, D and d of a round."""
    first = trace.size - 5 * K
    P, q = trace[first : first + K], trace[first + K : first + 2 * K]
    g, D = trace[first + 2 * K : first + 3 * K], trace[first + 3 * K : first + 4 * K]
    return P, q, g, D, trace[first + 4 * K :]


@kernel
def distribution(params: Params, state: State, graph: GraphArrays, asked: Asked) -> None:
    """Write into `p` the probabilities of round t."""
    t, p, trace = asked.t, asked.p, asked.trace
    if state.marks[UNSEEN] > 0 or p.size == 1:
        p[:] = 0.0
        p[_look(state, graph)] = 1.0  # 1
        trace[_ETA] = 0.0
        return
    P, q, g, D, d = _rows(trace, p.size)
    eta = 1.0 / state.rate[X]
    trace[_ETA] = eta
    trace[_H] = weigh(state, params.n, eta, q, g)
    make_cover(state, graph)
    play_boldly(state, graph, t, D)
    beta = _boldness(state)
    for i in range(p.size):
        p[i] = (1.0 - beta) * q[i] + beta * D[i]
    observe(graph, p, P)
    if t % PACE == 0:
        estimate_variances(state)
        explore(state, eta, 1.0 - beta, P)
    eps = limited(state, eta, P)
    if eps > 0.0:
        for i in range(p.size):
            p[i] = (1.0 - eps) * p[i] + eps * state.U[i]  # 10
            P[i] = (1.0 - eps) * P[i] + eps * state.u[i]
    b = state.known[LEVEL]
    for i in range(p.size):
        d[i] = min(1.0, max(0.0, b + state.o[i]))  # 11
    trace[_EPS] = eps
    trace[_BETA] = beta
    trace[_ASKED] = graph.key


@kernel
def _look(state: State, graph: GraphArrays) -> Whole:
    """Return the arm that reveals most of those never seen, and count these as seen."""
    best, most = most_new(graph, state.seen, state.heap)
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
def update(params: Params, state: State, graph: GraphArrays, told: Told) -> None:
    """Learn the losses that playing `arm` revealed in round t, when the probabilities were `p`."""
    t, arm, p, losses, trace = told.t, told.arm, told.p, told.losses, told.trace
    first = graph.start[arm]
    if trace[_ETA] > 0.0:
        P, q, g, _, _ = _rows(trace, p.size)
        if trace[_ASKED] != float(graph.key):
            state.known[WEIGHED] = 1.0
            observe(graph, p, P)
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
    else:
        for k in range(graph.stop[arm] - first):
            i = np.uint64(graph.targets[first + k])
            if state.N[i] == 0.0:
                state.L[i] += losses[k]  # 1
    if state.known[WEIGHED] == 0.0 or state.known[TOLD] == 0.0:
        know(state, graph, arm, losses)
    elif trace[_ETA] > 0.0:  # what came by line 1 has no weight
        know_by_weights(state, graph, arm, p, _rows(trace, p.size)[0], losses)


@kernel
def _estimate(
    state: State, graph: GraphArrays, arm: int, p: np.ndarray, losses: np.ndarray, trace: np.ndarray
) -> float:
    """Write into `a` the estimates of a round; return the sum of line 14."""
    P, q, g, D, d = _rows(trace, p.size)
    half = 0.45 / trace[_ETA]
    for j in range(p.size):
        state.a[j] = min(d[j], half * P[j] * g[j])  # 11
    for j in range(p.size):
        state.e[j] = (D[j] - q[j]) * d[j]
    first = graph.start[arm]
    for k in range(graph.stop[arm] - first):
        i = np.uint64(graph.targets[first + k])
        l = losses[k]
        seen = max(P[i], p[arm])  # rounding may lose p[arm] in P
        state.a[i] += (l - state.a[i]) / seen
        state.e[i] += (D[i] - q[i]) * ((l - d[i]) / seen)
    return total(state.e)


LEARNER = Learner(
    name="glance",
    params=Params,
    configure=configure,
    init=init,
    distribution=distribution,
    update=update,
    ranges={"cell": "arms", "marks": "any", "n": "sizes", "N": "counts"},
    needs=frozenset({Need.SELF_LOOPS, Need.GRAPH_BEFORE}),
    traces=TRACES,
    kept=("P", "q", "g", "D", "d"),
    scratch=("v", "w", "a", "e", "order", "zeros", "chosen", "free", "heap"),
    about=About(
        paper="this package",
        proved=("adversarial", "stochastic"),
        cost="O(K ln K + E)",
        bound="111 sqrt(ln K sum_t theta_t); O(M ln K ln(M T) / gap)",
        theorem="derived in docs/glance-proof.md",
        published=False,
    ),
)
