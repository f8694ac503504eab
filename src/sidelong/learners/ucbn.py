r"""UCB-N: UCB1 that also counts what it sees on the side.

S. Caron, B. Kveton, M. Lelarge, S. Bhagat, "Leveraging Side Observations in Stochastic Bandits", UAI 2012; for
losses in place of rewards, so that the largest upper bound becomes the smallest lower bound.

::

    for t = 1, 2, ...
        play the arm I of the smallest mean_i - sqrt(2 ln t / O_i);                           1
            arms that were never observed first, the lowest index between equal ones
        O_i += 1, and mean_i takes in l_i,   for each i that I reveals                        2

In a stochastic world the regret is at most the least value, over all ways to cover the graph by cliques C, of
sum_C 8 (max_C gap / min_C gap^2) ln T + O(sum of gaps): Caron et al. On undirected graphs it is also of the order of
the largest value, over independent sets S, of sum_S ln(K T) ln T / gap_i: T. Lykouris, E. Tardos, D. Wali, "Feedback
graph regret bounds for Thompson Sampling and UCB", ALT 2020. Against an adversary nothing is proved, and nothing
holds: the world `losses.breaker` costs it 1 in every round.

The graph need not be known before the draw. On self-loops this is UCB1. Late feedback does no harm to the means, but
the learner knows nothing of decisions that were not told yet: asked many times in a row, it repeats one arm.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from sidelong._jit import kernel
from sidelong.learners.interface import About, Asked, Learner, Need, Told
from sidelong.learners.options import number
from sidelong.numerics import log, smallest

if TYPE_CHECKING:
    from collections.abc import Mapping

    from sidelong.graphs.arrays import GraphArrays
    from sidelong.graphs.graph import FeedbackGraph


_PROVED = ("stochastic",)


class Params(NamedTuple):
    """The constants."""

    width: float
    log_delta: float  #: ln(1 / delta), or 0 for ln t
    unseen: float  #: the loss that an arm is taken to have shown once before it is observed; -inf for arms first


def proved(options: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the worlds with a theorem: none for intervals that are not the paper's, or narrower."""
    other = options.get("delta") is not None or options.get("unseen") is not None
    return _PROVED if options.get("width", 2.0) >= 2.0 and not other else ()


def configure(
    graph: FeedbackGraph, *, width: float = 2.0, delta: float | None = None, unseen: float | None = None
) -> Params:
    """Turn options into constants.

    Args:
        graph: the graph that the learner starts on.
        width: w in sqrt(w ln t / O_i), which is taken off the mean: 2 in the paper. Smaller ones often do better, and
            below 1/2 the interval no longer holds with probability 1 - 1/t.
        delta: a number up to 1/2 takes the place of 1/t, so that sqrt(w ln(1 / delta) / O_i) is taken off, as much in
            every round. Not of the paper, and without a theorem here. Qi, Fei and Zhu (UAI 2024) have width 1 and
            delta = 1 / (sqrt(2) T^2).
        unseen: None plays arms first that were never observed. A number from 0 to 1 is the loss that such an arm is
            taken to have shown once, so that it may never be played. Not of the paper, and without a theorem. Those
            authors have 1.
    """
    return Params(
        width=number("width", width, above=0),
        log_delta=0.0 if delta is None else -log(number("delta", delta, above=0, most=0.5)),
        unseen=-math.inf if unseen is None else number("unseen", unseen, least=0, most=1),
    )


class State(NamedTuple):
    """What the next round needs, and scratch to compute it in."""

    O: np.ndarray
    L: np.ndarray  #: the sum of the losses observed
    mean: np.ndarray  #: L / O
    bound: np.ndarray  #: the lower bounds of this round


def init(params: Params, graph: FeedbackGraph) -> State:
    """Return the state before round 1."""
    K = graph.n_arms
    return State(O=np.zeros(K), L=np.zeros(K), mean=np.zeros(K), bound=np.zeros(K))


@kernel
def distribution(params: Params, state: State, graph: GraphArrays, asked: Asked) -> None:
    """Write into `p` the probabilities of round t: 1 for one arm."""
    t, p = asked.t, asked.p
    p[:] = 0.0
    p[lowest(params, state, t)] = 1.0


@kernel
def lowest(params: Params, state: State, t: int) -> int:
    """Return the first arm of the smallest lower bound."""
    numerator = params.width * (params.log_delta if params.log_delta > 0.0 else log(float(t)))
    unseen = params.unseen - math.sqrt(numerator)
    for i in range(state.O.size):
        n = state.O[i]
        bound = state.mean[i] - math.sqrt(numerator / (n if n > 0.0 else 1.0))  # 1
        state.bound[i] = bound if n > 0.0 else unseen
    least = smallest(state.bound)
    arm = 0
    while arm < state.bound.size - 1 and state.bound[arm] != least:  # NaN is no bound, and equals none
        arm += 1
    return arm


@kernel
def update(params: Params, state: State, graph: GraphArrays, told: Told) -> None:
    """Learn the losses that playing `arm` revealed in round t."""
    average(state, graph, told)  # 2


@kernel
def average(state: Any, graph: GraphArrays, told: Told) -> None:
    """Count and average what was revealed, in the arrays O, L and mean of a state."""
    arm, losses = told.arm, told.losses
    first = graph.start[arm]
    for e in range(first, graph.stop[arm]):
        i = np.uint64(graph.targets[e])
        state.O[i] += 1.0
        state.L[i] += losses[e - first]
        state.mean[i] = state.L[i] / state.O[i]


LEARNER = Learner(
    name="ucb-n",
    params=Params,
    configure=configure,
    init=init,
    distribution=distribution,
    update=update,
    ranges={"unseen": "any", "O": "counts", "log_delta": "shares"},
    needs=frozenset({Need.SELF_LOOPS}),
    scratch=("bound",),
    proved_with=proved,
    about=About(
        paper="Caron, Kveton, Lelarge, Bhagat 2012",
        cite=("caron2012leveraging", "lykouris2020feedback"),
        proved=_PROVED,
        cost="O(K)",
        bound="undirected: sum over independent arms of ln(K T) ln T / gap",
        theorem="Lykouris, Tardos, Wali 2020; over cliques that cover the graph: Caron et al. 2012",
    ),
)
