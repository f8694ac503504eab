r"""EXP3: exponential weights for a bandit, which sees the loss of the arm that it plays and no other.

P. Auer, N. Cesa-Bianchi, Y. Freund, R. E. Schapire, "The Nonstochastic Multiarmed Bandit Problem", SIAM Journal on
Computing 32 (2002), in the form without a horizon and without mixing of S. Bubeck, N. Cesa-Bianchi, "Regret Analysis
of Stochastic and Nonstochastic Multi-armed Bandit Problems", Foundations and Trends in Machine Learning 5 (2012),
section 3.1.

::

    for t = 1, 2, ...
        eta = sqrt(ln K / (t K))                                                              1
        p_i ~ exp(-eta Lhat_i)                                                                2
        draw I ~ p, observe its loss l                                                        3
        Lhat_I += l / p_I                                                                     4

Theorem 3.1 of Bubeck and Cesa-Bianchi: the regret is at most 2 sqrt(K T ln K), against any oblivious adversary.

What an arm reveals about others is ignored: EXP3 is what learners for feedback graphs are compared with. On a graph of
self-loops alone EXP3-SET has the same rate, and plays the same.
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
        graph: the graph that the learner starts on. Only its self-loops are used.
    """
    return Params(log_K=log(float(graph.n_arms)))


class State(NamedTuple):
    """What the next round needs."""

    Lhat: np.ndarray


def init(params: Params, graph: FeedbackGraph) -> State:
    """Return the state before round 1."""
    return State(Lhat=np.zeros(graph.n_arms))


@kernel
def distribution(params: Params, state: State, graph: GraphArrays, asked: Asked) -> None:
    """Write into `p` the probabilities of round t."""
    t, p, trace = asked.t, asked.p, asked.trace
    eta = math.sqrt(params.log_K / (float(t) * float(p.size)))  # 1
    scale = 1.0 / exponential(state.Lhat, eta, p)
    for i in range(p.size):
        p[i] *= scale  # 2
    trace[_ETA] = eta


@kernel
def update(params: Params, state: State, graph: GraphArrays, told: Told) -> None:
    """Learn the loss of `arm` in round t, when the probabilities were `p`."""
    arm, p, losses = told.arm, told.p, told.losses
    first = graph.start[arm]
    for e in range(first, graph.stop[arm]):
        if graph.targets[e] == arm:
            state.Lhat[arm] += losses[e - first] / p[arm]  # 4


LEARNER = Learner(
    name="exp3",
    params=Params,
    configure=configure,
    init=init,
    distribution=distribution,
    update=update,
    needs=frozenset({Need.SELF_LOOPS}),
    traces=TRACES,
    about=About(
        paper="Auer, Cesa-Bianchi, Freund, Schapire 2002; Bubeck, Cesa-Bianchi 2012",
        cite=("auer2002nonstochastic", "bubeck2012regret"),
        proved=("adversarial",),
        cost="O(K)",
        bound="2 sqrt(K T ln K)",
        theorem="Theorem 3.1 of Bubeck, Cesa-Bianchi 2012",
    ),
)
