r"""EXP3++: the forebear of EXP3.G++. It sees the loss of the arm it plays and nothing else.

Y. Seldin, G. Lugosi, "An Improved Parametrization and Analysis of the EXP3++ Algorithm for Stochastic and Adversarial
Bandits", COLT 2017: Algorithm 1 of Y. Seldin, A. Slivkins, "One Practical Algorithm for Both Stochastic and
Adversarial Bandits", ICML 2014, with a new estimate of the gaps.

::

    play each arm once to initialise Lhat and O                                               1
    for t = K + 1, K + 2, ...
        UCB_i = min(1, Lhat_i / O_i + sqrt((gamma ln t + ln K) / (2 O_i)))                    2
        LCB_i = max(0, Lhat_i / O_i - sqrt((gamma ln t + ln K) / (2 O_i)))                    3
        gap_i = max(0, LCB_i - min_j UCB_j)                                                   4
        eps_i = min(1 / (2 K), sqrt(ln K / (t K)) / 2, beta ln t / (t gap_i^2))               5
        q_i ~ exp(-eta Ltilde_i),  eta = sqrt(ln K / (t K)) / 2                               6
        p_i = (1 - sum_j eps_j) q_i + eps_i                                                   7
        draw I ~ p, observe the loss l_I                                                      8
        Ltilde_I += l_I / p_I,  Lhat_I += l_I,  O_I += 1                                      9

The regret is at most 4 sqrt(K T ln K) against any adversary (Seldin and Slivkins, Theorem 1), and of order
sum_i ln^2 T / gap_i in a stochastic world (Seldin and Lugosi), with gamma = 3 and beta = 256; their alpha is called
gamma here, as in EXP3.G++. That learner on self-loops, at the fixed rate, is this one with S = all arms, an
eta that is sqrt(2) larger, gamma = 4 and beta = 320.

Where this departs from the page: a gap of 0 leaves eps at its cap. An arm that was not observed yet has LCB 0 and
UCB 1. What other arms a play reveals is not used. A single arm is played.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from sidelong._jit import kernel
from sidelong.learners.interface import About, Asked, Learner, Need, Told
from sidelong.learners.options import number
from sidelong.learners.weights import exponential
from sidelong.numerics import log, smallest, total

if TYPE_CHECKING:
    from collections.abc import Mapping

    from sidelong.graphs.arrays import GraphArrays
    from sidelong.graphs.graph import FeedbackGraph

_PROVED = ("adversarial", "stochastic")
TRACES = ("exploration_mass", "learning_rate")
_MASS, _ETA = range(2)


class Params(NamedTuple):
    """The constants."""

    log_K: float
    gamma: float
    beta: float


def proved(options: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the worlds with a theorem: the stochastic one is for the constants of the paper, or larger ones."""
    as_printed = options.get("gamma", 3.0) >= 3.0 and options.get("beta", 256.0) >= 256.0
    return _PROVED if as_printed else _PROVED[:1]


def configure(graph: FeedbackGraph, *, gamma: float = 3.0, beta: float = 256.0) -> Params:
    """Turn options into constants.

    Args:
        graph: the graph, of which only the self-loops are used.
        gamma: the width of the confidence intervals; the paper's alpha.
        beta: the rate of exploration once a gap is known.
    """
    return Params(
        log_K=log(float(graph.n_arms)),
        gamma=number("gamma", gamma, above=0),
        beta=number("beta", beta, above=0),
    )


class State(NamedTuple):
    """What the next round needs, and scratch to compute it in."""

    Ltilde: np.ndarray
    Lhat: np.ndarray
    O: np.ndarray
    mean: np.ndarray  #: Lhat / O
    width: np.ndarray  #: 1 / sqrt(O)
    gap: np.ndarray
    eps: np.ndarray


def init(params: Params, graph: FeedbackGraph) -> State:
    """Return the state before round 1."""
    K = graph.n_arms
    return State(
        Ltilde=np.zeros(K),
        Lhat=np.zeros(K),
        O=np.zeros(K),
        mean=np.zeros(K),
        width=np.full(K, math.inf),
        gap=np.zeros(K),
        eps=np.zeros(K),
    )


@kernel
def distribution(params: Params, state: State, graph: GraphArrays, asked: Asked) -> None:
    """Write into `p` the probabilities of round t."""
    t, p, trace = asked.t, asked.p, asked.trace
    K = p.size
    if t <= K or K == 1:
        p[:] = 0.0
        p[t - 1 if t <= K else 0] = 1.0  # 1
        trace[_MASS] = trace[_ETA] = 0.0
        return
    log_t, log_K = log(float(t)), params.log_K
    radius = math.sqrt((params.gamma * log_t + log_K) / 2.0)
    for i in range(K):
        state.gap[i] = state.mean[i] + radius * state.width[i]
    ucb = min(1.0, smallest(state.gap))  # 2
    eta = math.sqrt(log_K / (float(t) * K)) / 2.0
    cap = min(1.0 / (2.0 * K), eta)
    xi = params.beta * log_t / t  # times 1 / gap^2
    for i in range(K):
        excess = (state.mean[i] - radius * state.width[i]) - ucb
        gap = excess if excess > 0.0 else 0.0  # 3, 4: ucb >= 0 implies LCB's own maximum with 0
        state.gap[i] = gap
        state.eps[i] = xi / (gap * gap) if gap * gap * cap > xi else cap  # 5
    mass = total(state.eps)
    scale = (1.0 - mass) / exponential(state.Ltilde, eta, p)  # 6
    for i in range(K):
        p[i] = scale * p[i] + state.eps[i]  # 7
    trace[_MASS] = mass
    trace[_ETA] = eta


@kernel
def update(params: Params, state: State, graph: GraphArrays, told: Told) -> None:
    """Learn the loss of `arm`, played in round t when the probabilities were `p`."""
    t, arm, p, losses = told.t, told.arm, told.p, told.losses
    first = graph.start[arm]
    for e in range(first, graph.stop[arm]):
        if graph.targets[e] == arm:
            l = losses[e - first]
            state.Lhat[arm] += l
            state.O[arm] += 1.0
            state.mean[arm] = state.Lhat[arm] / state.O[arm]
            state.width[arm] = 1.0 / math.sqrt(state.O[arm])
            if t > p.size:
                state.Ltilde[arm] += l / p[arm]  # 9


LEARNER = Learner(
    name="exp3++",
    params=Params,
    configure=configure,
    init=init,
    distribution=distribution,
    update=update,
    ranges={"O": "counts", "width": "lengths"},
    gaps="gap",
    needs=frozenset({Need.SELF_LOOPS}),
    traces=TRACES,
    proved_with=proved,
    about=About(
        paper="Seldin, Lugosi 2017",
        cite=("seldin2017improved", "seldin2014practical"),
        proved=_PROVED,
        cost="O(K)",
        bound="4 sqrt(K T ln K); O(sum of ln^2 T / gap)",
        theorem="adversarial: Theorem 1 of Seldin, Slivkins 2014; stochastic: Seldin, Lugosi 2017",
    ),
)
