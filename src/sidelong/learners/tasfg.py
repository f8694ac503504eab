r"""TaS-FG: track-and-stop for feedback graphs, which looks for the best arm and does not mind what that costs.

A. Russo, Y. Song, A. Pacchiano, "Pure Exploration with Feedback Graphs", AISTATS 2025 (PMLR 258), with the constants
of the code that its authors have published (github.com/rssalessio/Pure-Exploration-with-Feedback-Graphs).

::

    for t = 1, 2, ...
        a = the arm of the smallest mean, gap_i = mean_i - mean_a
        T(w, G) = max over i != a of 2 s^2 (1 / m_i + 1 / m_a) / gap_i^2, where m = w G       1
        Z = t / max(1, T(N / sum N, G)),  stop if Z >= ln(1 / delta) + 3 ln(1 + 2 ln t)       2
        if N_i < sqrt(t) - K / 2 for some i, play the first of them                           3
        else play the i of the smallest N_i / t - v_i                                         4
        N_i += 1; learn the means, and how often i reveals each arm, which is row i of G      5
        after every c rounds, if a is the only best arm:
            w = argmin over distributions of T(w, G);  v = the mean of all w so far           6

T(w*, G) is the least number of rounds, for each ln(1 / delta), after which anybody who is wrong with a probability of
at most delta can stop. Their theorem is for Gaussian losses with the deviation s: the time at which line 2 stops comes
to it as delta goes to 0. Losses from 0 to 1 have at most s = 1/2. It says nothing of regret.

A learner never stops: its trace `evidence` is Z, and `threshold` of this file the other side of line 2. Their code
takes rewards: with losses 1 - reward it plays the same.

*Line 6* is a convex program. With c_i = 1 / gap_i^2, weights y on the arms other than a, and
r_i = y_i c_i / m_i^2, r_a = sum_i y_i c_i / m_a^2, these steps are repeated:

::

    y_i ~ y_i c_i (1 / m_i + 1 / m_a),   d = G r,   w_j ~ w_j sqrt(d_j / sum_k w_k d_k)       7

The sum over y is convex in w and of degree -1, and its slope is -d. So 2 sum_k w_k d_k - max d bounds the least T from
below, and line 7 stops when T is at most 0.01 % above that, after 100 steps as a rule.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from sidelong._jit import kernel, rare_kernel
from sidelong.checks import check_whole
from sidelong.errors import LearnerError
from sidelong.learners.interface import About, Asked, Learner, Need, Told
from sidelong.learners.options import number, one_of
from sidelong.learners.ucbn import average
from sidelong.numerics import log

if TYPE_CHECKING:
    from collections.abc import Mapping

    from sidelong.graphs.arrays import GraphArrays
    from sidelong.graphs.graph import FeedbackGraph

_NEEDS = frozenset({Need.OBSERVABLE, Need.FIXED_GRAPH})
TRACES = ("evidence",)
_Z = 0
_STEPS = 2_000  # of line 7, at most
_CLOSE = 1.0001  # how far T may be above its lower bound, as a factor
_LEAST = 1e-12  # of w, so that no m becomes 0
_TIED = 1e-8  # means that differ by less


class Params(NamedTuple):
    """The constants, in the paper's symbols."""

    variance: float  #: s^2
    every: int  #: c
    estimated: bool  #: whether G is


def needs(options: Mapping[str, Any]) -> frozenset[Need]:
    """Return what it needs with these options: graphs may change if their edges are estimated."""
    return frozenset() if options.get("edges") == "estimated" else _NEEDS


def configure(
    graph: FeedbackGraph, *, deviation: float = 0.5, every: int | None = None, edges: str = "known"
) -> Params:
    """Turn options into constants.

    Args:
        graph: the graph of all rounds, or the one that it starts on if edges are estimated.
        deviation: s, the standard deviation of losses: at most 1/2 if they are between 0 and 1. The authors have 1.
        every: c, after how many rounds line 6 is done again. 5 K, as the authors have it, if not given.
        edges: "known" takes the graph as G. With "estimated", what a play reveals is random, or only told with the
            outcome: G_ij is how often playing i has revealed j, and one more, out of the plays of i.
    """
    return Params(
        variance=number("deviation", deviation, above=0) ** 2,
        every=5 * graph.n_arms if every is None else check_whole(LearnerError, "every", every, 1, 2**48),
        estimated=one_of("edges", edges, ("known", "estimated")) == "estimated",
    )


def threshold(t: float, delta: float) -> float:
    """Return how large Z must be to stop before round t, and be wrong with a probability of about delta at most."""
    t, delta = number("t", t, least=1), number("delta", delta, above=0, most=1)
    return log(1.0 / delta) + 3.0 * log(1.0 + 2.0 * log(t))  # 2


class State(NamedTuple):
    """What the next round needs, and scratch to compute it in."""

    O: np.ndarray
    L: np.ndarray  #: the sum of the losses observed
    mean: np.ndarray  #: L / O; 0 before the first
    N: np.ndarray  #: how often each arm was played
    pairs: np.ndarray  #: (K, K): how often playing i has revealed j, and one more
    G: np.ndarray  #: (K, K)
    v: np.ndarray
    solved: np.ndarray  #: how often line 6 was done
    w: np.ndarray
    m: np.ndarray
    y: np.ndarray
    d: np.ndarray


def init(params: Params, graph: FeedbackGraph) -> State:
    """Return the state before round 1."""
    K = graph.n_arms
    return State(
        O=np.zeros(K),
        L=np.zeros(K),
        mean=np.zeros(K),
        N=np.zeros(K),
        pairs=np.ones((K, K)),
        G=np.ones((K, K)) if params.estimated else graph.matrix().astype(np.float64),
        v=np.full(K, 1.0 / K),
        solved=np.zeros(1),
        w=np.zeros(K),
        m=np.zeros(K),
        y=np.zeros(K),
        d=np.zeros(K),
    )


@kernel
def best_arm(mean: np.ndarray) -> int:
    """Return the arm of the smallest mean, or -1 if there are two, up to rounding, or it is the only arm."""
    best = 0
    for i in range(1, mean.size):
        best = i if mean[i] < mean[best] else best
    for i in range(mean.size):
        if i != best and mean[i] - mean[best] <= _TIED:
            return -1
    return best if mean.size > 1 else -1


@kernel
def _observed(G: np.ndarray, w: np.ndarray, m: np.ndarray) -> None:
    """Write w G into `m`: how often each arm is revealed, if arms are played by w."""
    m[:] = 0.0
    for i in range(w.size):
        for j in range(w.size):
            m[j] += w[i] * G[i, j]


@kernel
def largest_time(mean: np.ndarray, m: np.ndarray, best: int) -> float:
    """Return T of line 1 without the 2 s^2; infinite if an arm is never revealed."""
    longest = 0.0
    for i in range(mean.size):
        if m[i] <= 0.0 or m[best] <= 0.0:
            return math.inf
        if i != best:
            gap = mean[i] - mean[best]
            longest = max(longest, (1.0 / m[i] + 1.0 / m[best]) / (gap * gap))
    return longest


@kernel
def distribution(params: Params, state: State, graph: GraphArrays, asked: Asked) -> None:
    """Write into `p` the probabilities of round t: 1 for one arm."""
    t, p, K = float(asked.t), asked.p, asked.p.size
    best = best_arm(state.mean)
    asked.trace[_Z] = 0.0
    if best >= 0 and asked.t >= K:
        played = 0.0
        for i in range(K):
            played += state.N[i]
        for i in range(K):
            state.w[i] = state.N[i] / max(played, 1.0)
        _observed(state.G, state.w, state.m)
        T = 2.0 * params.variance * largest_time(state.mean, state.m, best)  # 1
        asked.trace[_Z] = t / max(1.0, T)  # 2
    arm, least = 0, math.inf
    for i in range(K):
        if state.N[i] < math.sqrt(t) - 0.5 * K:
            arm = i  # 3
            break
        behind = state.N[i] / t - state.v[i]
        if behind < least:
            arm, least = i, behind  # 4
    p[:] = 0.0
    p[arm] = 1.0


@kernel
def update(params: Params, state: State, graph: GraphArrays, told: Told) -> None:
    """Learn the losses that playing `arm` revealed in round t."""
    arm, K = told.arm, told.p.size
    average(state, graph, told)
    state.N[arm] += 1.0
    if params.estimated:
        for e in range(graph.start[arm], graph.stop[arm]):
            state.pairs[arm, graph.targets[e]] += 1.0
        for j in range(K):
            state.G[arm, j] = state.pairs[arm, j] / state.N[arm]  # 5
    played = 0.0
    for i in range(K):
        played += state.N[i]
    best = best_arm(state.mean)
    if best >= 0 and np.int64(played) % params.every == 0:
        allocate(state.mean, state.G, best, state.w, state.m, state.y, state.d)
        state.solved[0] += 1.0
        for i in range(K):
            state.v[i] += (state.w[i] - state.v[i]) / state.solved[0]  # 6


@rare_kernel
def allocate(
    mean: np.ndarray, G: np.ndarray, best: int, w: np.ndarray, m: np.ndarray, y: np.ndarray, d: np.ndarray
) -> None:
    """Write into `w` how often each arm is to be played, so that the best arm is known soonest; the rest is scratch."""
    K = w.size
    w[:] = 1.0 / K
    y[:] = 1.0
    for _ in range(_STEPS):
        _observed(G, w, m)
        T = largest_time(mean, m, best)
        sum_ = 0.0
        for i in range(K):
            gap = mean[i] - mean[best]
            y[i] = 0.0 if i == best else y[i] * (1.0 / m[i] + 1.0 / m[best]) / (gap * gap)
            sum_ += y[i]
        r_best = 0.0
        for i in range(K):
            y[i] /= sum_
            gap = mean[i] - mean[best]
            r_best += 0.0 if i == best else y[i] / (gap * gap)
        most, mean_d = 0.0, 0.0
        for j in range(K):
            d[j] = G[j, best] * r_best / (m[best] * m[best])
            for i in range(K):
                if i != best:
                    gap = mean[i] - mean[best]
                    d[j] += G[j, i] * y[i] / (gap * gap * m[i] * m[i])
            most = max(most, d[j])
            mean_d += w[j] * d[j]
        if _CLOSE * (2.0 * mean_d - most) >= T:
            return
        sum_ = 0.0
        for j in range(K):
            w[j] = max(w[j] * math.sqrt(d[j] / mean_d), _LEAST)
            sum_ += w[j]
        for j in range(K):
            w[j] /= sum_  # 7


LEARNER = Learner(
    name="tas-fg",
    params=Params,
    configure=configure,
    init=init,
    distribution=distribution,
    update=update,
    ranges={"every": "counts", "estimated": "counts", "O": "counts", "N": "counts", "pairs": "counts", "G": "counts"},
    needs=_NEEDS,
    needs_with=needs,
    traces=TRACES,
    scratch=("w", "m", "y", "d"),
    about=About(
        paper="Russo, Song, Pacchiano 2025",
        cite=("russo2025pure",),
        proved=(),
        cost="O(K^2), and a convex program in every 5 K rounds",
        bound="none on regret; stops after T* ln(1 / delta) rounds as delta goes to 0",
        theorem="for Gaussian losses, Russo, Song, Pacchiano 2025",
    ),
)
