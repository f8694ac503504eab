r"""AlphaSample: elimination that profits from graphs without ever seeing them.

A. Cohen, T. Hazan, T. Koren, "Online Learning with Feedback Graphs Without the Graphs", ICML 2016. Algorithm 1.

::

    all arms are active; d = 1 / (2 K T)
    for r = 1, 2, ..., until one arm is active, which is then played to the end
        eps = 2^-(r + 1)                                                                      1
        repeat at least 2 ln(1 / d) / eps^2 times                        (a pass)             2
            U = the active arms                                                               3
            while U is not empty                                                              4
                play an arm drawn from U with equal probability                               5
                take down the losses of all active arms that it reveals,                      6
                and remove these arms from U
        mean_i = the mean of what phase r took down about arm i                               7
        an arm stays active iff mean_i <= min_j mean_j + 2 eps                                8

In a stochastic world the regret is O~(sqrt(alpha T)), where alpha bounds the independence numbers of graphs that may
change in every round and of which only what was revealed is seen; and at most of the order of sum_S ln T / gap_i for a
set S of O(alpha ln(K T)) arms. Against an adversary nothing is proved: there, hidden graphs are worth nothing. The
horizon T must be known. The constants are large: on self-loops with ten arms, a gap of 0.2 is found after about
100,000 rounds.

What is told late counts in the pass and the phase in which it is told: it is one more independent observation. So
every active arm was observed in every pass, however the feedback came, and lines 7 and 8 are as sure as they should be.
A decision that was not told yet removes nothing from U, so that late feedback costs time: a pass waits for its last
arm, and what was drawn from U meanwhile goes to later passes. A cancelled decision costs its round alone.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from sidelong._jit import kernel
from sidelong.learners.interface import About, Asked, Learner, Need, Told
from sidelong.learners.options import number
from sidelong.numerics import log

if TYPE_CHECKING:
    from sidelong.graphs.arrays import GraphArrays
    from sidelong.graphs.graph import FeedbackGraph

TRACES = ("phase", "active")
_PHASE, _ACTIVE = range(2)


class Params(NamedTuple):
    """The constants."""

    log_inverse_d: float  #: ln(1 / d)


def configure(graph: FeedbackGraph, *, horizon: float) -> Params:
    """Turn options into constants.

    Args:
        graph: the graph that the learner starts on: only its number of arms is used.
        horizon: T, how many rounds will be played.
    """
    T = number("horizon", horizon, least=1)
    return Params(log(2.0 * graph.n_arms * T))


class State(NamedTuple):
    """What the next round needs."""

    O: np.ndarray
    L: np.ndarray  #: the sum of the losses observed
    mean: np.ndarray  #: L / O
    n: np.ndarray  #: how often phase r has observed each arm
    s: np.ndarray  #: the sum of these losses
    active: np.ndarray
    U: np.ndarray
    sizes: np.ndarray  #: how many arms are active, and how many are in U
    clock: np.ndarray  #: r, eps, and the passes completed


_LEFT, _IN_U = range(2)  # in `sizes`
_R, _EPS, _PASSES = range(3)  # in `clock`


def init(params: Params, graph: FeedbackGraph) -> State:
    """Return the state before round 1."""
    K = graph.n_arms
    return State(
        O=np.zeros(K),
        L=np.zeros(K),
        mean=np.zeros(K),
        n=np.zeros(K),
        s=np.zeros(K),
        active=np.ones(K, np.bool_),
        U=np.ones(K, np.bool_),
        sizes=np.array([K, K]),
        clock=np.array([1.0, 0.25, 0.0]),
    )


@kernel
def distribution(params: Params, state: State, graph: GraphArrays, asked: Asked) -> None:
    """Write into `p` the probabilities of round t."""
    p, trace = asked.p, asked.trace
    share = 1.0 / state.sizes[_IN_U]
    for i in range(p.size):
        p[i] = share if state.U[i] else 0.0  # 5
    trace[_PHASE] = state.clock[_R]
    trace[_ACTIVE] = state.sizes[_LEFT]


@kernel
def update(params: Params, state: State, graph: GraphArrays, told: Told) -> None:
    """Learn the losses that playing `arm` revealed in round t."""
    arm, losses = told.arm, told.losses
    first = graph.start[arm]
    searching = state.sizes[_LEFT] > 1
    for e in range(first, graph.stop[arm]):
        i = np.uint64(graph.targets[e])
        l = losses[e - first]
        state.O[i] += 1.0
        state.L[i] += l
        state.mean[i] = state.L[i] / state.O[i]
        if searching and state.active[i]:
            state.n[i] += 1.0  # 6
            state.s[i] += l
            state.sizes[_IN_U] -= state.U[i]
            state.U[i] = False
    if state.sizes[_IN_U] > 0:
        return
    state.clock[_PASSES] += 1.0
    if state.clock[_PASSES] * state.clock[_EPS] * state.clock[_EPS] >= 2.0 * params.log_inverse_d:  # 2
        _eliminate(state)
    for j in range(state.U.size):
        state.U[j] = state.active[j]  # 3
    state.sizes[_IN_U] = state.sizes[_LEFT]


@kernel
def _eliminate(state: State) -> None:
    """End a phase and begin the next."""
    least = math.inf
    for i in range(state.active.size):
        if state.active[i]:
            least = min(least, state.s[i] / state.n[i])  # 7
    for i in range(state.active.size):
        if state.active[i] and state.s[i] / state.n[i] > least + 2.0 * state.clock[_EPS]:  # 8
            state.active[i] = False
            state.sizes[_LEFT] -= 1
        state.n[i] = 0.0
        state.s[i] = 0.0
    state.clock[_R] += 1.0
    state.clock[_EPS] *= 0.5  # 1
    state.clock[_PASSES] = 0.0


LEARNER = Learner(
    name="alphasample",
    params=Params,
    configure=configure,
    init=init,
    distribution=distribution,
    update=update,
    ranges={"sizes": "sizes"},
    needs=frozenset({Need.SELF_LOOPS, Need.HORIZON}),
    traces=TRACES,
    about=About(
        paper="Cohen, Hazan, Koren 2016",
        cite=("cohen2016without",),
        proved=("stochastic",),
        cost="O(K)",
        bound="sqrt(alpha T) up to logarithms; sum over O(alpha ln(K T)) arms of ln T / gap",
        theorem="Cohen, Hazan, Koren 2016",
    ),
)
