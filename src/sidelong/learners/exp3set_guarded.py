r"""EXP3-SET with late="guarded": a rate that counts the decisions whose feedback has not come.

Feedback is often later than the next draw. The rate of EXP3-SET is right then, too, but its bound grows with the delay
d as d sqrt(T). Here Theta counts what is outstanding as soon as it is asked for, and the bound grows as sqrt(d T).

::

    Theta = K
    for t = 1, 2, ...
        sigma = how many decisions were made before t and neither told nor given up
        Theta += 2 sigma                                                                      1
        eta = m sqrt(ln K / Theta),  p_i ~ exp(-eta Lhat_i)                                   2
        Theta += theta = sum_i p_i / P_i,  where P_i = sum of p_j over the arms j that reveal i  3
        draw I ~ p
    whenever the losses of round s come, in any order
        Lhat_i += l_i / P_i   for each i that was observed, with the P of round s             4

If every round is told before the next one is asked for, sigma is 0, and this is EXP3-SET to the bit. Let D be the sum
of all sigma. If the delay of a round depends on neither its draw nor its losses, then for m = 1 the regret is at most

    2 sqrt(ln K (sum_t E theta_t + 2 E D)) + sqrt(K ln K)

plus 1 for each round that is given up (`sidelong.theory.delay`; docs/late.md has the proof). In an easy world it loses
more than EXP3-SET does (docs/late.md has the numbers).

The graph must be known before the draw. If another one is shown with the losses, Theta grows by what its theta is
above that of line 3; the closed bound is then lost, and the one that is computed from what happened stays.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from sidelong._jit import kernel
from sidelong.learners import exp3set
from sidelong.learners.exp3set import TRACES, Params
from sidelong.learners.exp3set import distribution as plain_distribution
from sidelong.learners.exp3set import update as plain_update
from sidelong.learners.interface import About, Asked, Learner, Need, Told
from sidelong.learners.options import one_of
from sidelong.learners.outstanding import begin, settle

if TYPE_CHECKING:
    from sidelong.graphs.arrays import GraphArrays
    from sidelong.graphs.graph import FeedbackGraph

_THETA = TRACES.index("theta")


def configure(graph: FeedbackGraph, *, late: str = "guarded", eta_scale: float = 1.0, refresh: str = "round") -> Params:
    """Turn options into constants.

    Args:
        graph: the graph that the learner starts on.
        late: "guarded".
        eta_scale: m, a factor on the learning rate. The leading 2 of the bound becomes m + 1 / m.
        refresh: "round".
    """
    one_of("late", late, ("guarded",))
    return exp3set.configure(graph, eta_scale=eta_scale, refresh=refresh)


class State(NamedTuple):
    """That of EXP3-SET, and how many decisions are outstanding."""

    Lhat: np.ndarray
    Theta: np.ndarray
    P: np.ndarray
    outstanding: np.ndarray


def init(params: Params, graph: FeedbackGraph) -> State:
    """Return the state before round 1."""
    return State(*exp3set.init(params, graph), np.zeros(1))


@kernel
def distribution(params: Params, state: Any, graph: GraphArrays, asked: Asked) -> None:
    """Write into `p` the probabilities of round t, which is outstanding from now on."""
    state.Theta[0] += 2.0 * state.outstanding[0]  # 1
    plain_distribution(params, state, graph, asked)  # 2
    asked.trace[_THETA] = begin(state, graph, asked.p)  # 3


@kernel
def update(params: Params, state: Any, graph: GraphArrays, told: Told) -> None:
    """Learn the losses that playing `arm` revealed in round t, when the probabilities were `p`."""
    Theta, counted = state.Theta[0], told.trace[_THETA]
    plain_update(params, state, graph, told)  # 4
    settle(state, Theta, counted, told.trace[_THETA])


@kernel
def release(params: Params, state: Any, graph: GraphArrays, asked: Asked) -> None:
    """Learn that round t will never be told: it is outstanding no more."""
    state.outstanding[0] -= 1.0


LEARNER = Learner(
    name="exp3-set",
    chosen_by="late='guarded'",
    params=Params,
    configure=configure,
    init=init,
    distribution=distribution,
    update=update,
    release=release,
    needs=exp3set.LEARNER.needs | {Need.GRAPH_BEFORE},
    traces=TRACES,
    settled=("late", "refresh"),
    about=About(
        paper="this package, after Alon et al. 2017",
        cite=("alon2017nonstochastic",),
        proved=("adversarial",),
        cost="O(K + E)",
        bound="2 sqrt(ln K (sum_t mas(G_t) + 2 D)), where D sums the outstanding decisions of all rounds",
        theorem="docs/late.md",
        published=False,
        guess=True,
    ),
)
