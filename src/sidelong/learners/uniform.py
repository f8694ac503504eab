"""Uniform: every arm with the same probability, whatever happens.

It learns nothing, and is what every other learner must beat. Where losses have a mean, its regret is T times the mean
gap. An agent that plays it still counts and averages what it is told, as a randomised trial would.

::

    p_i = 1 / K                                                                               1
    draw I ~ p, observe the losses l_i of all arms i that I reveals                           2
    O_i += 1,  mean_i += (l_i - mean_i) / O_i   for each observed i                           3
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from sidelong._jit import kernel
from sidelong.learners.interface import About, Asked, Learner, Told

if TYPE_CHECKING:
    from sidelong.graphs.arrays import GraphArrays
    from sidelong.graphs.graph import FeedbackGraph

TRACES = ("observed",)
_OBSERVED = 0


class Params(NamedTuple):
    """The one constant."""

    share: float  #: 1 / K


def configure(graph: FeedbackGraph) -> Params:
    """Return the constant; there are no options.

    Args:
        graph: any graph.
    """
    return Params(share=1.0 / graph.n_arms)


class State(NamedTuple):
    """What was seen. No round needs it."""

    O: np.ndarray
    mean: np.ndarray


def init(params: Params, graph: FeedbackGraph) -> State:
    """Return the state before round 1."""
    return State(O=np.zeros(graph.n_arms), mean=np.zeros(graph.n_arms))


@kernel
def distribution(params: Params, state: State, graph: GraphArrays, asked: Asked) -> None:
    """Write into `p` the probabilities of round t."""
    p = asked.p
    for i in range(p.size):
        p[i] = params.share  # 1


@kernel
def update(params: Params, state: State, graph: GraphArrays, told: Told) -> None:
    """Count the losses that playing `arm` revealed."""
    arm, losses, trace = told.arm, told.losses, told.trace
    first = graph.start[arm]
    for e in range(first, graph.stop[arm]):
        i = np.uint64(graph.targets[e])
        state.O[i] += 1.0
        state.mean[i] += (losses[e - first] - state.mean[i]) / state.O[i]  # 3
    trace[_OBSERVED] = float(graph.stop[arm] - first)


LEARNER = Learner(
    name="uniform",
    params=Params,
    configure=configure,
    init=init,
    distribution=distribution,
    update=update,
    traces=TRACES,
    about=About(
        paper="no paper",
        proved=(),
        cost="O(K)",
        bound="T times the mean gap",
        theorem="none is needed",
        published=False,
    ),
)
