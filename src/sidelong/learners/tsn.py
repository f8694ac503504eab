r"""TS-N: Thompson sampling that also learns from what it sees on the side. For losses 0 and 1.

A. Tossou, C. Dimitrakakis, D. Dubhashi, "Thompson Sampling for Stochastic Bandits with Graph Feedback", AAAI 2017;
for losses in place of rewards.

::

    for t = 1, 2, ...
        theta_i ~ Beta(1 + L_i, 1 + O_i - L_i),   for each arm i                              1
        play the arm I of the smallest theta_i                                                2
        O_i += 1,  L_i += l_i,   for each i that I reveals                                    3

In a stochastic world on undirected graphs the regret is at most of the order of the largest value, over independent
sets S, of sum_S ln(K T) ln T / gap_i: T. Lykouris, E. Tardos, D. Wali, "Feedback graph regret bounds for Thompson
Sampling and UCB", ALT 2020. Averaged over the prior it is O~(sqrt(alpha T)) there, even where graphs change and are
never shown: F. Liu, Z. Zheng, N. Shroff, "Analysis of Thompson Sampling for Graphical Bandits Without the Graphs", UAI
2018. Against an adversary nothing is proved.

The graph need not be known before the draw. The probability of the arm that is drawn has no closed form: `p` is NaN.
Late feedback is harmless: the posterior does not depend on the order of what was told, and draws differ meanwhile.

The draws are exact, by rejection in `numerics.beta`: two random numbers, one logarithm and one exponential an attempt,
and at least two attempts in three are accepted. The quotient of gamma variates, which is the other exact way, takes two
such rejections and two normal variates instead.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from sidelong._jit import kernel
from sidelong.errors import LearnerError
from sidelong.learners.interface import About, Asked, Learner, Need, Told
from sidelong.learners.options import number
from sidelong.numerics import DRAWS, beta, beta_power, log

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from sidelong.graphs.arrays import GraphArrays
    from sidelong.graphs.graph import FeedbackGraph


_PROVED = ("stochastic",)


class Params(NamedTuple):
    """The constants."""

    a: np.ndarray  #: (K,), the parameters of the prior of each arm
    b: np.ndarray


def proved(options: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the worlds with a theorem: it is for the uniform prior."""
    return _PROVED if np.all(np.equal(options.get("prior", 1.0), 1.0)) else ()


def configure(graph: FeedbackGraph, *, prior: float | Sequence[float] | Sequence[Sequence[float]] = 1.0) -> Params:
    """Turn options into constants.

    Args:
        graph: the graph that the learner starts on.
        prior: the Beta distribution from which each mean loss is drawn beforehand: one number for both parameters, a
            pair for both, or a pair for each arm. A loss of 1 adds to the first, and a loss of 0 to the second. It is
            1 in the paper, where all means are equally likely, and the theorem is for that.
    """
    pairs = np.asarray(prior, object)
    if pairs.shape not in {(), (2,), (graph.n_arms, 2)}:
        raise LearnerError(f"prior must be a number, a pair, or a pair for each of {graph.n_arms} arms, not {prior!r}.")
    checked = [number("prior", each, least=0.01, most=100) for each in pairs.ravel()]
    return Params(*np.array(np.broadcast_to(np.reshape(checked, pairs.shape), (graph.n_arms, 2)).T))


class State(NamedTuple):
    """What the next round needs: the posterior Beta(a, b) of each arm, with what `numerics.beta` wants to know."""

    O: np.ndarray
    L: np.ndarray  #: the sum of the losses observed
    mean: np.ndarray  #: L / O
    a: np.ndarray
    b: np.ndarray
    power: np.ndarray
    log_sum: np.ndarray  #: ln(a + b)


def init(params: Params, graph: FeedbackGraph) -> State:
    """Return the state before round 1."""
    K = graph.n_arms
    a, b = params.a.tolist(), params.b.tolist()
    return State(
        O=np.zeros(K),
        L=np.zeros(K),
        mean=np.zeros(K),
        a=np.array(a),
        b=np.array(b),
        power=np.array([beta_power(a[i], b[i]) for i in range(K)]),
        log_sum=np.array([log(a[i] + b[i]) for i in range(K)]),
    )


@kernel
def draw(params: Params, state: State, graph: GraphArrays, asked: Asked) -> int:
    """Return the arm of round t; its probability is not known."""
    p, K = asked.p, asked.p.size
    arm = 0
    least = 2.0
    for i in range(K):
        p[i] = 1.0 if K == 1 else np.nan
        own = (state.a[i], state.b[i], state.power[i], state.log_sum[i])
        theta = beta(*own, asked.seed, DRAWS, asked.run, asked.t, i, K)  # 1
        if theta < least:  # 2
            least = theta
            arm = i
    return arm


@kernel
def update(params: Params, state: State, graph: GraphArrays, told: Told) -> None:
    """Learn the losses that playing `arm` revealed in round t."""
    arm, losses = told.arm, told.losses
    first = graph.start[arm]
    for e in range(first, graph.stop[arm]):
        i = np.uint64(graph.targets[e])
        state.O[i] += 1.0  # 3
        state.L[i] += losses[e - first]
        state.mean[i] = state.L[i] / state.O[i]
        state.a[i] = params.a[i] + state.L[i]
        state.b[i] = params.b[i] + (state.O[i] - state.L[i])
        state.power[i] = beta_power(state.a[i], state.b[i])
        state.log_sum[i] = log(state.a[i] + state.b[i])


LEARNER = Learner(
    name="ts-n",
    params=Params,
    configure=configure,
    init=init,
    draw=draw,
    update=update,
    needs=frozenset({Need.SELF_LOOPS, Need.BINARY_LOSSES}),
    proved_with=proved,
    about=About(
        paper="Tossou, Dimitrakakis, Dubhashi 2017",
        cite=("tossou2017thompson", "lykouris2020feedback"),
        proved=_PROVED,
        cost="O(K)",
        bound="undirected: sum over independent arms of ln(K T) ln T / gap",
        theorem="Lykouris, Tardos, Wali 2020",
    ),
)
