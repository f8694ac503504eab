r"""Maillard sampling on what the graph shows: an arm is played as often as it might be the best.

J. Bian, K.-S. Jun, "Maillard Sampling: Boltzmann Exploration Done Optimally", AISTATS 2022, with O_i the number of
observations in place of the number of plays, and with the variance that was observed in place of a known one.

::

    while some arm was never observed
        play the arm that reveals most of those, the lowest index between equal ones          1
    in each round after that
        v_i = (V_i + 0.25) / (O_i + 1)                                                        2
        p_i ~ exp(-c O_i (mean_i - min mean)^2 / v_i)                                         3
    O_i += 1; mean_i and V_i, the sum of squares around it, take in l_i,                      4
        for each i that was revealed

The paper has c = 1/2 and proves, for bandits and a known bound on the variance, a regret of the order of ln T / gap for
each arm, and of sqrt(K T ln T) whatever the gaps are. With an observed variance and a graph nothing is proved: an arm
whose first losses were dear and equal may wait for thousands of rounds. Against an adversary nothing holds: a world
that turns costs it as much as it has lasted. It is here because it is a rule of ten lines that does well where nothing
ever turns, and because its probabilities have a closed form, so that decisions carry them and what was played can be
evaluated later.

Late feedback does no harm to the means. Asked many times in a row before the first losses are told, line 1 repeats one
arm.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from sidelong._jit import kernel
from sidelong.learners.interface import About, Asked, Learner, Need, Told
from sidelong.learners.looks import most_new
from sidelong.learners.options import number
from sidelong.numerics import exp, smallest, total

if TYPE_CHECKING:
    from sidelong.graphs.arrays import GraphArrays
    from sidelong.graphs.graph import FeedbackGraph

PRIOR = 0.25  # the largest variance of a loss between 0 and 1


class Params(NamedTuple):
    """The constants."""

    sharpness: float


def configure(graph: FeedbackGraph, *, sharpness: float = 1.0) -> Params:
    """Turn options into constants.

    Args:
        graph: the graph that the learner starts on.
        sharpness: c in line 3: 1/2 in the paper. Larger ones are bolder, and do better over few rounds.
    """
    return Params(number("sharpness", sharpness, above=0))


class State(NamedTuple):
    """What the next round needs, and scratch to compute it in."""

    O: np.ndarray
    mean: np.ndarray
    V: np.ndarray  #: the sum of the squared distances from the mean
    seen: np.ndarray  #: whether the arm was ever observed
    counts: np.ndarray
    unseen: np.ndarray  #: how many arms were never observed


def init(params: Params, graph: FeedbackGraph) -> State:
    """Return the state before round 1."""
    K = graph.n_arms
    return State(
        O=np.zeros(K),
        mean=np.zeros(K),
        V=np.zeros(K),
        seen=np.zeros(K, np.bool_),
        counts=np.zeros(K, np.int64),
        unseen=np.array([K]),
    )


@kernel
def distribution(params: Params, state: State, graph: GraphArrays, asked: Asked) -> None:
    """Write into `p` the probabilities of round t."""
    p = asked.p
    if state.unseen[0] > 0:
        p[:] = 0.0
        arm, _ = most_new(graph, state.seen, state.counts)
        p[arm] = 1.0  # 1
        return
    least = smallest(state.mean)
    for i in range(p.size):
        v = (state.V[i] + PRIOR) / (state.O[i] + 1.0)  # 2
        gap = state.mean[i] - least
        p[i] = exp(max(-700.0, -params.sharpness * state.O[i] * (gap * gap) / v))
    scale = 1.0 / total(p)
    for i in range(p.size):
        p[i] *= scale  # 3


@kernel
def update(params: Params, state: State, graph: GraphArrays, told: Told) -> None:
    """Learn the losses that playing `arm` revealed in round t."""
    arm, losses = told.arm, told.losses
    first = graph.start[arm]
    for e in range(first, graph.stop[arm]):
        i = np.uint64(graph.targets[e])
        state.unseen[0] -= 0 if state.seen[i] else 1
        state.seen[i] = True
        state.O[i] += 1.0
        away = losses[e - first] - state.mean[i]
        state.mean[i] += away / state.O[i]
        state.V[i] += away * (losses[e - first] - state.mean[i])  # 4


LEARNER = Learner(
    name="maillard",
    params=Params,
    configure=configure,
    init=init,
    distribution=distribution,
    update=update,
    ranges={"counts": "counts", "unseen": "sizes"},
    needs=frozenset({Need.SELF_LOOPS, Need.GRAPH_BEFORE}),
    about=About(
        paper="Bian, Jun 2022",
        cite=("bian2022maillard",),
        proved=(),
        cost="O(K)",
        bound="none on graphs; bandits of known variance: sum of ln T / gap",
        theorem="Bian, Jun 2022",
    ),
)
