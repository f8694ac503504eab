r"""EXP3.G++ with preset="practical": the smallest worst ratio to the best learner that we found, with a bound.

It keeps what makes EXP3.G++: importance weights by the graph, exploration on a set of arms that reveals all, and a rate
that follows what the graphs reveal. The weights, the estimator and the rule for the exploration are others, since the
paper's constants take hundreds of millions of rounds to show what they are worth. `docs/preset.md` has the measurements
and the proof.

::

    n = max(2, round(ln K)),  H = n (K^(1/n) - 1),  x = sqrt(2 / H) / m,  eps = 0,  b = 1/2
    play each arm of a cover of the graph once                                                1
    in each round after that, with eta = 1 / x
        q_i = (eta (L_i - min L) / (n - 1) + y)^-n,  where y >= 1 makes them sum to 1         2
        r_i = q_i^(1/n),  h = n (sum_i q_i / r_i - 1)                                         3
        w_i = n / (n - 1) q_i r_i                                                             4
        D = uniform on a cover of the graph;  P(e) the observation of (1 - e) q + e D         5
        eps moves by a step of Newton's towards the least 4 eta sum_i w_i / P_i(e) + e,       6
            and is at most 3/5 and 4 eta sum_i w_i / P_i(eps)
        p = (1 - eps) q + eps D;  draw I ~ p;  observe l_i for all i that I reveals           7
        b_i = min(b, P_i / (2 eta r_i))                                                       8
        a_i = b_i,  plus (l_i - b_i) / P_i for each observed i;  L += a                       9
        c = min(the mean of the a_i with weights q_i r_i,  the least a_i + 1 / (2 eta r_i))   10
        S = x sum_i q_i / r_i phi(eta (a_i - c) r_i / (n - 1)),                               11
            where phi(s) = (1 + s)^-(n - 1) - 1 + (n - 1) s
        x += (S + eps / 10) / (m^2 max(h, H / 4))                                             12
        b += (the mean of the observed l_i - b) / 20                                          13

Line 2 minimises eta <q, L> minus the Tsallis entropy of order 1 - 1/n. For n = 2 these are the weights of Tsallis-INF,
and for n without end exponential ones. n = ln K takes from the first that late rounds cost little, and from the second
that H <= 2 ln K, not a power of K. Line 6 explores where that lowers the bound. S is what the round has cost, and not
what it might have: where losses are easy to foretell, by b or by each other, the rate stays large. Line 12 balances it
with what the rate costs.

Against any adversary the regret is at most

    |cover| + sqrt(2 H) / m + (10 + 4 / m^2) (4.6 + 11.25 d + 2 m sqrt(H sum_t E y_t)),   y_t = sum_i w_i / P_i,

where d is the largest number of arms that a play reveals: of the order of sqrt(ln K sum_t theta_t), which is at most
sqrt(ln K sum_t mas(G_t)). With m = 2, as it is unless `eta_scale` says otherwise, the constant before the root of
H sum_t E y_t is 44. Unlike in Theorem 4 of the paper, no bound in the independence number is claimed. In a stochastic
world nothing is proved.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from sidelong._jit import kernel
from sidelong.graphs.arrays import GraphArrays, observe
from sidelong.graphs.cover import Room, cover_largest_first, new_room
from sidelong.learners.exp3gpp import NAME, NEEDS  # noqa: F401  # the same learner, with another preset
from sidelong.learners.interface import About
from sidelong.learners.options import initial_arms, number, one_of
from sidelong.numerics import exp, log, smallest, total

if TYPE_CHECKING:
    from sidelong.graphs.graph import FeedbackGraph

TITLE = "exp3.g++ with preset='practical'"
VERSION = 1
ABOUT = About(
    paper="this package, after Rouyer et al. 2022",
    cite=("rouyer2022near",),
    proved=("adversarial",),
    cost="O(K ln K + E)",
    bound="140 sqrt(ln K sum_t theta_t)",
    theorem="derived in docs/preset.md",
    published=False,
)
#: The options of the other preset that have one value here, and are taken with it.
SETTLED = frozenset({"preset", "rate"})
TRACES = ("stability", "entropy", "exploration_mass", "learning_rate")
_Z, _H, _EPS, _ETA = range(4)


class Params(NamedTuple):
    """The constants."""

    n: int
    H: float
    m: float
    initial: np.ndarray  #: the arms of the initial rounds, in order


def configure(
    graph: FeedbackGraph,
    *,
    preset: str = "practical",
    rate: str = "adaptive",
    eta_scale: float = 2.0,
    start: str = "cover",
) -> Params:
    """Turn options into constants.

    Args:
        graph: the graph that the learner starts on.
        preset: "practical".
        rate: "adaptive": this preset follows what the graphs reveal.
        eta_scale: m, the scale of the learning rate, by which the leading term of the bound is
            (20 m + 8 / m) sqrt(H sum_t E y_t).
        start: the initial rounds: "all" arms once, a "cover" of the graph, or "none".
    """
    one_of("preset", preset, ("practical",))
    one_of("rate", rate, ("adaptive",))
    log_K = log(float(graph.n_arms))
    n = max(2, math.floor(log_K + 0.5))
    H = n * (exp(log_K / n) - 1.0) if graph.n_arms > 1 else 1.0
    return Params(n, H, number("eta_scale", eta_scale, above=0), initial_arms(graph, start))


class State(NamedTuple):
    """What the next round needs, and room to compute it in."""

    L: np.ndarray
    O: np.ndarray  #: how often each arm was observed
    mean: np.ndarray  #: of its losses
    q: np.ndarray
    r: np.ndarray
    g: np.ndarray  #: 1 / r
    w: np.ndarray
    P: np.ndarray
    D: np.ndarray
    u: np.ndarray  #: the probability that D reveals each arm
    a: np.ndarray  #: the estimates of a round
    rate: np.ndarray  #: x, where y and eps were last, and b
    known: np.ndarray  #: the key of the graph of D and u, and the round of q and r
    order: np.ndarray
    zeros: np.ndarray
    chosen: np.ndarray
    free: np.ndarray
    heap: np.ndarray


_X, _Y, _E, _B = range(4)


def init(params: Params, graph: FeedbackGraph) -> State:
    """Return the state before round 1."""
    K = graph.n_arms
    vectors = {name: np.zeros(K) for name in ("L", "O", "mean", "q", "r", "g", "w", "P", "D", "u", "a", "zeros")}
    return State(
        rate=np.array([math.sqrt(2.0 / params.H) / params.m, 1.0, 0.0, 0.5]),
        known=np.array([-1, 0]),
        order=np.arange(K, dtype=np.uint32),
        chosen=np.zeros(K, np.bool_),
        **new_room(K)._asdict(),
        **vectors,
    )


@kernel
def distribution(params: Params, state: State, graph: GraphArrays, t: int, p: np.ndarray, trace: np.ndarray) -> None:
    """Write into `p` the probabilities of round t."""
    if t <= params.initial.size or p.size == 1:
        p[:] = 0.0
        p[params.initial[t - 1] if t <= params.initial.size else 0] = 1.0  # 1
        return
    eta = 1.0 / state.rate[_X]
    trace[_ETA] = eta
    trace[_H] = _weigh(state, params.n, eta)
    _cover(state, graph)
    observe(graph, state.q, state.P)
    eps = _exploration(state, params.n, eta)
    for i in range(p.size):
        p[i] = (1.0 - eps) * state.q[i] + eps * state.D[i]  # 7
    trace[_EPS] = eps
    trace[_Z] = graph.key  # until the round is told, and S takes its place: `_recall` needs the graph of D
    state.known[1] = t


@kernel
def _weigh(state: State, n: int, eta: float) -> float:
    """Write q and r, by Newton's method on the power -1/n of the sum, nearly linear in y; return h."""
    least = smallest(state.L)
    slope = eta / (n - 1.0)
    y = state.rate[_Y]
    sum_ = 0.0
    for _ in range(60):
        for i in range(state.q.size):
            state.g[i] = slope * (state.L[i] - least) + y  # 2
            state.r[i] = 1.0 / state.g[i]
            state.q[i] = _power(state.r[i], n)
            state.w[i] = state.q[i] * state.r[i]
        sum_ = total(state.q)
        if abs(sum_ - 1.0) <= 1e-12:
            break
        y = max(1.0, y + sum_ * (exp(log(sum_) / n) - 1.0) / total(state.w))
    state.rate[_Y] = y
    for i in range(state.q.size):
        state.q[i] /= sum_
        state.w[i] = state.q[i] * state.g[i]
    return n * (total(state.w) - 1.0)  # 3


@kernel
def _power(r: float, n: int) -> float:
    product = r * r
    for _ in range(2, n):
        product *= r
    return product


@kernel
def _cover(state: State, graph: GraphArrays) -> None:
    """Make D and u, unless the graph is the one they were made for."""
    if state.known[0] == graph.key:
        return
    room = Room(state.free, state.heap)
    size = cover_largest_first(graph, state.order, state.zeros, state.chosen, room)
    for i in range(state.D.size):
        state.D[i] = 1.0 / size if state.chosen[i] else 0.0  # 5
    observe(graph, state.D, state.u)
    state.known[0] = graph.key


@kernel
def _exploration(state: State, n: int, eta: float) -> float:
    scale = 4.0 * eta * n / (n - 1.0)
    eps = state.rate[_E]
    first = 0.0
    second = 0.0
    for i in range(state.q.size):
        state.w[i] = scale * state.q[i] * state.r[i]  # 4, times 4 eta
        gain = state.u[i] - state.P[i]
        inverse = 1.0 / (state.P[i] + eps * gain)
        change = state.w[i] * inverse * inverse * gain
        first += change
        second += 2.0 * change * inverse * gain
    if second > 1e-300:
        eps += (first - 1.0) / second  # 6
    eps = min(0.6, max(0.0, eps))
    bound = 0.0
    for i in range(state.q.size):
        bound += state.w[i] / (state.P[i] + eps * (state.u[i] - state.P[i]))
    state.rate[_E] = min(eps, bound)
    return state.rate[_E]  # type: ignore[no-any-return]


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
    first, last = graph.start[arm], graph.stop[arm]
    level = 0.0
    for e in range(first, last):
        i = np.uint64(graph.targets[e])
        level += losses[e - first]
        state.O[i] += 1.0
        state.mean[i] += (losses[e - first] - state.mean[i]) / state.O[i]
    if t <= params.initial.size or p.size == 1:
        return
    if state.known[1] != t:
        _recall(params, state, graph, t, p, trace)
    observe(graph, p, state.P)
    half = 0.5 / trace[_ETA]
    b = state.rate[_B]
    for j in range(p.size):
        state.a[j] = min(b, half * state.P[j] * state.g[j])  # 8
    for e in range(first, last):
        i = np.uint64(graph.targets[e])
        # Rounding may lose p[arm] in P.
        state.a[i] += (losses[e - first] - state.a[i]) / max(state.P[i], p[arm])  # 9
    S = _stability(state, params.n, half)
    for j in range(p.size):
        state.L[j] += state.a[j]
    cost = S + 0.1 * trace[_EPS]
    state.rate[_X] += cost / (params.m * params.m * max(trace[_H], 0.25 * params.H))  # 12
    state.rate[_B] += 0.05 * (level / (last - first) - b)  # 13
    trace[_Z] = S


@kernel
def _stability(state: State, n: int, half: float) -> float:
    """Return S, with phi(s) as s^2 u (N + (N - 1) u + ... + u^(N - 1)), where N = n - 1 and u = 1 / (1 + s)."""
    above = 0.0
    below = 0.0
    least = math.inf
    for i in range(state.q.size):
        weight = state.q[i] * state.r[i]
        above += weight * state.a[i]
        below += weight
        least = min(least, state.a[i] + half * state.g[i])
    c = min(above / below, least)  # 10
    slope = 0.5 / (half * (n - 1.0))
    S = 0.0
    for i in range(state.q.size):
        s = slope * (state.a[i] - c) * state.r[i]
        u = 1.0 / (1.0 + s)
        sum_ = 0.0
        for k in range(1, n):
            sum_ = sum_ * u + k
        S += state.q[i] * state.g[i] * s * s * u * sum_  # 11
    return 2.0 * half * S


@kernel
def _recall(params: Params, state: State, graph: GraphArrays, t: int, p: np.ndarray, trace: np.ndarray) -> None:
    """Find q and r of a round that is told late, from its probabilities.

    That takes D of the graph that was asked. Where `tell` is given another one, and graphs have changed since, D is
    gone, and p, which was played, stands for q: the estimates stay unbiased, and S is what p would have cost.
    """
    if trace[_Z] == float(graph.key):
        _cover(state, graph)
    eps = trace[_EPS] if trace[_Z] == float(state.known[0]) else 0.0
    for i in range(p.size):
        state.q[i] = max((p[i] - eps * state.D[i]) / (1.0 - eps), 1e-300)
        state.r[i] = exp(log(state.q[i]) / params.n)
        state.g[i] = 1.0 / state.r[i]
    state.known[1] = t
