r"""Hedge: exponential weights where every loss is seen, with a rate that decreases.

Y. Freund, R. E. Schapire, "A Decision-Theoretic Generalization of On-Line Learning and an Application to Boosting",
Journal of Computer and System Sciences 55 (1997), with the rate that J. Mourtada, S. Gaiffas, "On the optimality of the
Hedge algorithm in the stochastic regime", JMLR 20 (2019), call decreasing Hedge.

::

    for t = 1, 2, ...
        eta = 2 sqrt(ln K / t)                                                                1
        p_i ~ exp(-eta L_i)                                                                   2
        draw I ~ p, observe the losses l_i of all arms i                                      3
        L_i += l_i                                                                            4

Against any adversary the regret is at most ln K / eta_T + sum_t eta_t / 8 <= sqrt(T ln K). Mourtada and Gaiffas prove
that in a stochastic world it also stays below (4 ln K + 25) / gap for ever, where gap is the smallest one; with a rate
tuned to a horizon it does not.

The graph must be complete: every arm reveals all arms. There EXP3-SET is Hedge too, with the rate
sqrt(ln K / (K + t - 1)).
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from sidelong._jit import kernel
from sidelong.learners.interface import About, Asked, Learner, Need, Told
from sidelong.learners.weights import exponential
from sidelong.numerics import log

if TYPE_CHECKING:
    from sidelong.graphs.arrays import GraphArrays
    from sidelong.graphs.graph import FeedbackGraph

TRACES = ("learning_rate",)
_ETA = 0


class Params(NamedTuple):
    """The constants."""

    log_K: float


def configure(graph: FeedbackGraph) -> Params:
    """Return the constants; there are no options.

    Args:
        graph: a complete graph.
    """
    return Params(log_K=log(float(graph.n_arms)))


class State(NamedTuple):
    """What the next round needs."""

    L: np.ndarray


def init(params: Params, graph: FeedbackGraph) -> State:
    """Return the state before round 1."""
    return State(L=np.zeros(graph.n_arms))


@kernel
def distribution(params: Params, state: State, graph: GraphArrays, asked: Asked) -> None:
    """Write into `p` the probabilities of round t."""
    t, p, trace = asked.t, asked.p, asked.trace
    eta = 2.0 * math.sqrt(params.log_K / float(t))  # 1
    scale = 1.0 / exponential(state.L, eta, p)
    for i in range(p.size):
        p[i] *= scale  # 2
    trace[_ETA] = eta


@kernel
def update(params: Params, state: State, graph: GraphArrays, told: Told) -> None:
    """Learn all losses of round t."""
    p, losses = told.p, told.losses
    for i in range(p.size):  # what an arm reveals is in ascending order: losses[i] is that of arm i
        state.L[i] += losses[i]  # 4


LEARNER = Learner(
    name="hedge",
    params=Params,
    configure=configure,
    init=init,
    distribution=distribution,
    update=update,
    needs=frozenset({Need.FULL_INFORMATION}),
    traces=TRACES,
    about=About(
        paper="Freund, Schapire 1997; Mourtada, Gaiffas 2019",
        cite=("freund1997decision", "mourtada2019optimality"),
        proved=("adversarial", "stochastic"),
        cost="O(K)",
        bound="sqrt(T ln K); (4 ln K + 25) / smallest gap",
        theorem="adversarial: classic, in its file; stochastic: Mourtada, Gaiffas 2019",
    ),
)
