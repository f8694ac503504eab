r"""SquareCB.G: what to play when a regressor predicts the loss of each arm, without a convex program.

M. Zhang, Y. Zhang, O. Vrousgou, H. Luo, P. Mineiro, "Practical Contextual Bandits with Feedback Graphs", NeurIPS 2023.
In each round they minimise, over all probabilities p, the value

    dec(p) = V(p) / gamma,   V(p) = gamma <p, gap> + sum_i p_i^2 / P_i + max_a [(1 - 2 p_a) / P_a - gamma gap_a],

where gap_i is how far the prediction f_i is above the least one, and P_i the probability that arm i is revealed. It is
the most that p can lose beyond any arm a, less gamma / 4 times the expected squared error of the predictions of the
revealed arms, over all that the true means might be. The paper calls a solver for it. Here p has a closed form, up to
one number c. Every arm must reveal itself.

::

    Theta = K + 1
    for t = 1, 2, ...
        gamma = m sqrt(Theta)                                                                 1
        S = (); for arms i by ascending f_i: unless an arm of S reveals i, append i to S      2
        p_j = 1 / (c + gamma gap_j) for j in S, with the c in [1, |S|] for which the sum is 1 3
        if each arm of S reveals all that the one before it in S reveals:
            for j from the last arm of S to the first:
                p'_j = 1 / (1 + gamma gap_j) - (sum of p' so far)                             4
        let b and j be the first two arms of S, r the arm of least f that reveals all that b does not
        if f_r < f_j and gamma gap_j > 2:
            p"_r = 1 / (gamma gap_j - 1), p"_b = 1 - p"_r                                     5
        p = whichever of p, p', their mean and p" has the least V                             6
        draw I ~ p; the regressor learns the losses of all arms that I reveals                7
        Theta += V(p)                                                                         8

**V(p) <= |S| + 1**, the set S being that of Algorithm 2 of the EXP3.G++ paper, at most as large as the largest set of
arms none of which reveals another. *Proof.* The first term of V is sum_j (1 - c p_j) = |S| - c, and the second at most
1, as P_i >= p_i. An arm a is revealed by some j of S with gap_j <= gap_a, so that 1 / P_a <= 1 / p_j <= c + gamma
gap_a, and the third is at most c. (With p_j = 1 / (|S| + gamma gap_j) and the rest for the best arm, which needs no c,
V is at most 2 |S|.)

**V(p') <= 2 + ln(1 + gamma gap_last)**, as on nested graphs. *Proof.* The arms of S that reveal j are j and those
after it, so that P_j = 1 / (1 + gamma gap_j), which is 1 for the first. What j reveals, those after it reveal too: so
P_a >= P_j >= 1 / (1 + gamma gap_a) for an arm a that j was the first of S to reveal. So the third term is at most 1, as
is the second. The first is sum_j p_j (1 / P_j - 1), where p_j = P_j - P_(j+1): at most ln(1 / P_last).

**Line 5** is for graphs on which a good arm shows what S plays bad arms for. All that b does not reveal has a gap of
gap_j or more, and 1 / P <= gamma gap_j - 1, so that the third term of V(p") is below 0 there. The first term is
gap_r / gap_j or little more. No bound needs this line: V(p) is only ever lowered by it.

**Regret**, against the best arm of each round, where f_t are the predictions as they were made, and the losses of a
round have the means f*_t, whatever is drawn: at most sum_t V_t / gamma_t + sum_t (gamma_t / 4) err_t, where err_t is
the sum of (f_(t,i) - f*_(t,i))^2 over the revealed arms. If err_t sum to R at most, then by line 1 that is at most

    (2 / m) sqrt(sum V) + (m R / 4) sqrt(K + 1 + sum V),   and for m = sqrt(8 / R)   sqrt(2 R (K + 1 + sum V)).

The paper has T times a constant of the graph in place of sum V, and needs T for gamma.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from sidelong._jit import kernel
from sidelong.graphs.arrays import observe
from sidelong.graphs.cover import CoverScratch, cover_in_order
from sidelong.learners.interface import About, Asked, Learner, Need, Told
from sidelong.learners.options import number
from sidelong.numerics import reorder

if TYPE_CHECKING:
    from sidelong.graphs.arrays import GraphArrays
    from sidelong.graphs.graph import FeedbackGraph
    from sidelong.numerics import Whole

TRACES = ("gamma", "value")
_GAMMA, _VALUE, _OWN = range(3)


class Params(NamedTuple):
    """The constants."""

    gamma_scale: float


def configure(graph: FeedbackGraph, *, gamma_scale: float = 30.0) -> Params:
    """Turn options into constants.

    Args:
        graph: the graph that the learner starts on.
        gamma_scale: m. The larger, the less an arm is played that is predicted to be worse. If the squared errors of
            the regressor sum to R, sqrt(8 / R) has the least bound; see `sidelong.theory.squarecb`.
    """
    return Params(number("gamma_scale", gamma_scale, above=0, most=1e6))


class State(NamedTuple):
    """What the next round needs, and scratch to compute it in."""

    f: np.ndarray  #: the predictions for the round, which the agent writes into the trace before it asks
    Theta: np.ndarray
    order: np.ndarray
    S: np.ndarray
    members: np.ndarray  #: the arms of S, by ascending prediction
    free: np.ndarray
    P: np.ndarray
    other: np.ndarray  #: p' or p"
    mean: np.ndarray
    hidden: np.ndarray  #: the arms that the first of S does not reveal


def init(params: Params, graph: FeedbackGraph) -> State:
    """Return the state before round 1."""
    K = graph.n_arms
    return State(
        f=np.zeros(K),
        Theta=np.array([K + 1.0]),
        order=np.arange(K, dtype=np.uint32),
        S=np.zeros(K, np.bool_),
        members=np.zeros(K, np.int64),
        free=np.zeros(K + 1, np.uint32),
        P=np.zeros(K),
        other=np.zeros(K),
        mean=np.zeros(K),
        hidden=np.zeros(K, np.bool_),
    )


@kernel
def distribution(params: Params, state: State, graph: GraphArrays, asked: Asked) -> None:
    """Write into `p` the probabilities of round t."""
    p, trace = asked.p, asked.trace
    for i in range(p.size):
        state.f[i] = trace[_OWN + 1 + i]
    gamma = params.gamma_scale * math.sqrt(state.Theta[0])  # 1
    size = _cover(state, graph)
    _weigh(state, size, gamma, p)
    V = _value(state, graph, gamma, p)
    if _is_chain(state, graph, size):
        _nest(state, size, gamma)
        for i in range(p.size):
            state.mean[i] = 0.5 * (p[i] + state.other[i])
        V = _take_better(state, graph, gamma, state.other, p, V)
        V = _take_better(state, graph, gamma, state.mean, p, V)
    if size > 1 and _stand_in(state, graph, gamma):
        V = _take_better(state, graph, gamma, state.other, p, V)
    trace[_GAMMA] = gamma
    trace[_VALUE] = V / gamma
    state.Theta[0] += V  # 8


@kernel
def update(params: Params, state: State, graph: GraphArrays, told: Told) -> None:
    """Learn nothing: that is for the regressor."""  # 7


@kernel
def _cover(state: State, graph: GraphArrays) -> int:
    """Write S into `members`, without the arms that are absent; return its size."""  # 2
    if _is_nested(graph):
        return _cover_nested(state)
    reorder(state.order, state.f, state.free)
    cover_in_order(graph, state.order, state.S, CoverScratch(state.free, state.members))
    size = 0
    for k in range(state.order.size):
        i = np.int64(state.order[k])
        if state.S[i] and graph.start[i] < graph.stop[i]:
            state.members[size] = i
            size += 1
    return size


@kernel
def _is_nested(graph: GraphArrays) -> bool:
    """Tell whether each arm reveals itself and all before it: then S needs no sort, which would take the longest."""
    wrong = 0
    for i in range(graph.start.size):
        wrong += graph.start[i] != 0 or graph.stop[i] != i + 1
    return bool(graph.contiguous and wrong == 0)


@kernel
def _cover_nested(state: State) -> int:
    """Do what `_cover` does: S is made of the arms that no later one is better than."""
    size = 0
    for i in range(state.f.size):
        while size > 0 and state.f[i] < state.f[state.members[size - 1]]:
            size -= 1
        state.members[size] = i
        size += 1
    return size


@kernel
def _weigh(state: State, size: int, gamma: float, p: np.ndarray) -> None:
    """Write the probabilities of line 3. The sum is convex in c, so that Newton's steps from 1 never pass the root."""
    least = state.f[state.members[0]]
    c = 1.0
    step = 1.0
    while step > 0.0:
        total = 0.0
        slope = 0.0
        for k in range(size):
            w = 1.0 / (c + gamma * (state.f[state.members[k]] - least))
            total += w
            slope += w * w
        step = (total - 1.0) / slope
        if c + step <= c or step < 1e-14 * c:
            step = 0.0
        c += step
    for i in range(p.size):
        p[i] = 0.0
    for k in range(size):
        j = state.members[k]
        p[j] = 1.0 / (c + gamma * (state.f[j] - least))  # 3


@kernel
def _nest(state: State, size: int, gamma: float) -> None:
    """Write the probabilities of line 4."""
    least = state.f[state.members[0]]
    for i in range(state.other.size):
        state.other[i] = 0.0
    above = 0.0
    for k in range(size - 1, -1, -1):
        j = state.members[k]
        P = 1.0 / (1.0 + gamma * (state.f[j] - least))
        state.other[j] = max(0.0, P - above)  # 4
        above = max(above, P)


@kernel
def _is_chain(state: State, graph: GraphArrays, size: int) -> bool:
    """Tell whether each arm of S reveals all that the one before it reveals."""
    k = 1
    while k < size and _contains(graph, state.members[k], state.members[k - 1]):
        k += 1
    return k >= size


@kernel
def _contains(graph: GraphArrays, larger: Whole, smaller: Whole) -> bool:
    """Tell whether one arm reveals all that another one does."""
    if graph.contiguous:
        return bool(graph.start[larger] <= graph.start[smaller] and graph.stop[smaller] <= graph.stop[larger])
    e = graph.start[larger]
    for d in range(graph.start[smaller], graph.stop[smaller]):
        while e < graph.stop[larger] and graph.targets[e] < graph.targets[d]:
            e += 1
        if e == graph.stop[larger] or graph.targets[e] != graph.targets[d]:
            return False
    return True


@kernel
def _stand_in(state: State, graph: GraphArrays, gamma: float) -> bool:
    """Write the probabilities of line 5, and tell whether there are any."""
    b, j = state.members[0], state.members[1]
    rest = gamma * (state.f[j] - state.f[b]) - 1.0
    count, low, high = _hide(state, graph, b)
    r = j
    for i in range(state.f.size):
        if state.f[i] < state.f[r]:
            if graph.contiguous:
                shows = graph.start[i] <= low and high < graph.stop[i]
            else:
                shown = 0
                for e in range(graph.start[i], graph.stop[i]):
                    shown += state.hidden[graph.targets[e]]
                shows = shown == count
            if shows:
                r = i
    if r == j or rest <= 1.0:
        return False
    for i in range(state.other.size):
        state.other[i] = 0.0
    state.other[r] = 1.0 / rest  # 5
    state.other[b] = 1.0 - state.other[r]
    return True


@kernel
def _hide(state: State, graph: GraphArrays, b: Whole) -> tuple[Whole, Whole, Whole]:
    """Mark the arms that b does not reveal; return how many they are, the first and the last."""
    for i in range(state.hidden.size):
        state.hidden[i] = graph.start[i] < graph.stop[i]  # an absent arm is not hidden
    for e in range(graph.start[b], graph.stop[b]):
        state.hidden[np.int64(e) if graph.contiguous else np.int64(graph.targets[e])] = False
    count, low, high = np.int64(0), np.int64(state.hidden.size), np.int64(-1)
    for i in range(state.hidden.size):
        if state.hidden[i]:
            count += 1
            low = min(low, np.int64(i))
            high = np.int64(i)
    return count, low, high


@kernel
def _take_better(state: State, graph: GraphArrays, gamma: float, other: np.ndarray, p: np.ndarray, V: float) -> float:
    """Copy `other` into `p` if its value is below V, that of p; return the value of what `p` is then."""  # 6
    value = _value(state, graph, gamma, other)
    if value >= V:
        return V
    for i in range(p.size):
        p[i] = other[i]
    return value


@kernel
def _value(state: State, graph: GraphArrays, gamma: float, p: np.ndarray) -> float:
    """Return V(p), the maximum over the arms that are there."""
    observe(graph, p, state.P)
    least = state.f[state.members[0]]
    loss = 0.0
    spread = 0.0
    worst = -math.inf
    for i in range(p.size):
        if graph.start[i] < graph.stop[i]:
            excess = gamma * (state.f[i] - least)
            P = max(state.P[i], p[i])  # rounding may lose p[i] in P
            loss += p[i] * excess
            spread += p[i] * p[i] / P
            regret = (1.0 - 2.0 * p[i]) / P - excess
            worst = regret if regret > worst else worst
    return max(0.0, loss + spread + worst)


LEARNER = Learner(
    name="squarecb.g",
    params=Params,
    configure=configure,
    init=init,
    distribution=distribution,
    update=update,
    scratch=("f", "S", "members", "free", "P", "other", "mean", "hidden"),
    ranges={"order": "arms", "Theta": "shares"},
    needs=frozenset({Need.SELF_LOOPS, Need.GRAPH_BEFORE}),
    traces=TRACES,
    kept=("predictions",),
    sleeps=True,
    about=About(
        paper="Zhang, Zhang, Vrousgou, Luo, Mineiro 2023",
        cite=("zhang2023practical",),
        proved=("stochastic",),
        cost="O(K log K + E)",
        bound="sqrt(2 R sum_t (|S_t| + 1)), R the squared errors of the regressor",
        theorem="derived in its file, for a closed form in place of the paper's convex program",
    ),
)
