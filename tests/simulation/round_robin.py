"""A learner whose every choice is known beforehand: the arms in turn. What a simulation must report is then plain."""

from typing import NamedTuple

import numpy as np

from sidelong.learners import Learner, kernel


class Params(NamedTuple):
    first: int


def configure(graph, *, first=0):
    return Params(int(first) % graph.n_arms)


class State(NamedTuple):
    seen: np.ndarray


def init(params, graph):  # noqa: ARG001  # every learner is called so
    return State(np.zeros(1))


@kernel
def distribution(params, state, graph, asked):
    t, p, trace = asked.t, asked.p, asked.trace
    p[:] = 0.0
    p[(params.first + t - 1) % p.size] = 1.0
    trace[0] = t
    trace[1] = state.seen[0] + 0.0 * graph.start[0]


@kernel
def update(params, state, graph, told):  # noqa: ARG001
    arm = told.arm
    state.seen[0] += graph.stop[arm] - graph.start[arm]


LEARNER = Learner(
    name="round-robin",
    params=Params,
    configure=configure,
    init=init,
    distribution=distribution,
    update=update,
    traces=("round", "seen"),
)
