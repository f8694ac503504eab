r"""EXP3-SET: exponential weights with the importance weights of a feedback graph, and nothing else.

N. Alon, N. Cesa-Bianchi, C. Gentile, S. Mannor, Y. Mansour, O. Shamir, "Nonstochastic Multi-Armed Bandits with
Graph-Structured Feedback", SIAM Journal on Computing 46 (2017). Algorithm 1, with a rate that needs no horizon.

::

    Theta = K
    for t = 1, 2, ...
        eta = m sqrt(ln K / Theta)                                                            1
        p_i ~ exp(-eta Lhat_i)                                                                2
        draw I ~ p, observe the losses l_i of all arms i that I reveals                       3
        P_i = sum of p_j over the arms j that reveal i                                        4
        Lhat_i += l_i / P_i   for each observed i                                             5
        Theta += theta = sum_i p_i / P_i                                                      6

The graphs may be directed, may change, and may be shown after the draw; every arm must reveal itself.

The paper has one eta for all rounds and proves R <= ln K / eta + (eta / 2) sum_t E theta_t, where theta_t is at most
mas(G_t), the size of the largest acyclic set of arms, which is the independence number if the graph is undirected. With
the rate of line 1, which never grows, the same proof gives R <= ln K / eta_T + sum_t (eta_t / 2) E theta_t. As theta is
at most K, the first Theta, and m = 1, that is at most

    2 sqrt(ln K sum_t E theta_t) + sqrt(K ln K)  <=  2 sqrt(ln K sum_t mas(G_t)) + sqrt(K ln K).

For any m the leading 2 becomes m + 1 / m. Arms may be absent in some rounds, and new ones may come: `absent.py` has the
rule, and the same bound on the regret against an arm over the rounds in which it is there.

EXP3-SET is EXP3.G++ without exploration: it shows what that is worth.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from sidelong._jit import kernel
from sidelong.errors import LearnerError
from sidelong.learners.absent import charge, exponential_of_present, grow
from sidelong.learners.head_start import replay, tilt
from sidelong.learners.interface import About, Asked, Learner, Need, Told, bound
from sidelong.learners.options import load, number, one_of
from sidelong.learners.outstanding import count_asked, count_told
from sidelong.learners.weights import exponential, learn, theta
from sidelong.numerics import log

if TYPE_CHECKING:
    from collections.abc import Mapping

    from sidelong.graphs.arrays import GraphArrays
    from sidelong.graphs.graph import FeedbackGraph

TRACES = ("theta", "learning_rate")
_THETA, _ETA = range(2)
COUNTS_OUTSTANDING = False  # whether the rate counts outstanding decisions: a constant, so that it costs nothing


class Params(NamedTuple):
    """The constants."""

    log_K: float
    eta_scale: float


def variant(options: Mapping[str, Any]) -> Learner | None:
    """Return the learner for these options, if it is another: for a best arm that moves, or of the guarded rate."""
    if options.get("track") is not None:
        return load("exp3set_tracking")
    return GUARDED if options.get("late") == "guarded" else None


def configure(
    graph: FeedbackGraph,
    *,
    eta_scale: float = 1.0,
    late: str = "plain",
    track: int | str | None = None,
) -> Params:
    """Turn options into constants.

    Args:
        graph: the graph that the learner starts on.
        eta_scale: m, a factor on the learning rate. With 1 / sqrt(2) it is that of EXP3.G++'s adaptive rate.
        late: the rate of "plain" does not count late feedback. Its bound under delay can be computed from what
            happened. "guarded" counts the outstanding decisions in its rate: see `sidelong.learners.outstanding`.
        track: for a best arm that moves, how often it does, or "unknown": see `sidelong.learners.exp3set_tracking`.
    """
    if track is not None:
        raise LearnerError("track is an option of sidelong.learners.exp3set_tracking, which exp3-set becomes with it.")
    one_of("late", late, ("plain", "guarded"))
    return Params(log_K=log(float(graph.n_arms)), eta_scale=number("eta_scale", eta_scale, above=0))


class State(NamedTuple):
    """What the next round needs, and scratch to compute it in."""

    Lhat: np.ndarray
    Theta: np.ndarray
    P: np.ndarray
    outstanding: np.ndarray  #: how many decisions are, if that is counted


def init(params: Params, graph: FeedbackGraph) -> State:
    """Return the state before round 1."""
    K = graph.n_arms
    return State(Lhat=np.zeros(K), Theta=np.array([float(K)]), P=np.zeros(K), outstanding=np.zeros(1))


@kernel
def distribution(params: Params, state: State, graph: GraphArrays, asked: Asked) -> None:
    """Write into `p` the probabilities of round t."""
    p, trace = asked.p, asked.trace
    if COUNTS_OUTSTANDING:
        state.Theta[0] += 2.0 * state.outstanding[0]
    eta = params.eta_scale * math.sqrt(params.log_K / state.Theta[0])  # 1
    if asked.absent > 0:
        scale = 1.0 / exponential_of_present(asked.present, state.Lhat, eta, p)
    else:
        scale = 1.0 / exponential(state.Lhat, eta, p)
    for i in range(p.size):
        p[i] *= scale  # 2
    trace[_ETA] = eta
    if COUNTS_OUTSTANDING:
        trace[_THETA] = count_asked(state, graph, p)


@kernel
def update(params: Params, state: State, graph: GraphArrays, told: Told) -> None:
    """Learn the losses that playing `arm` revealed in round t, when the probabilities were `p`."""
    arm, p, losses, trace = told.arm, told.p, told.losses, told.trace
    learn(graph, p, arm, losses, state.P, state.Lhat)  # 4, 5
    if told.absent > 0:
        charge(graph, told, trace[_ETA], state.P, state.Lhat)
    counted = trace[_THETA]
    trace[_THETA] = theta(p, state.P)
    if COUNTS_OUTSTANDING:
        count_told(state, counted, trace[_THETA])
    else:
        state.Theta[0] += trace[_THETA]  # 6


@kernel
def release(params: Params, state: State, graph: GraphArrays, asked: Asked) -> None:
    """Learn that round t will never be told: it is outstanding no more."""
    state.outstanding[0] -= 1.0


LEARNER = Learner(
    name="exp3-set",
    params=Params,
    configure=configure,
    init=init,
    distribution=distribution,
    update=update,
    ranges={"Theta": "shares", "outstanding": "counts"},
    needs=frozenset({Need.SELF_LOOPS}),
    traces=TRACES,
    scratch=("P",),
    sleeps=True,
    grow=grow,
    tilt=tilt,
    replay=replay,
    variants=({"late": "guarded"}, {"track": "unknown"}),
    variant=variant,
    about=About(
        paper="Alon, Cesa-Bianchi, Gentile, Mannor, Mansour, Shamir 2017",
        cite=("alon2017nonstochastic",),
        proved=("adversarial",),
        cost="O(K + E)",
        bound="2 sqrt(ln K sum_t mas(G_t))",
        theorem="derived in its file, for a rate without a horizon, by the paper's proof",
    ),
)

GUARDED = replace(
    LEARNER,
    module=count_asked.__module__,
    chosen_by="late='guarded'",
    distribution=bound(distribution, "distribution_guarded", COUNTS_OUTSTANDING=True),
    update=bound(update, "update_guarded", COUNTS_OUTSTANDING=True),
    release=release,
    needs=LEARNER.needs | {Need.GRAPH_BEFORE},
    sleeps=False,
    grow=None,
    tilt=None,
    replay=None,
    variants=(),
    variant=None,
    settled=("late", "track"),
    about=About(
        paper="this package, after Alon et al. 2017",
        cite=("alon2017nonstochastic",),
        proved=("adversarial",),
        cost="O(K + E)",
        bound="2 sqrt(ln K (sum_t mas(G_t) + 2 D)), where D sums the outstanding decisions of all rounds",
        theorem="docs/proofs.md",
        published=False,
        guess=True,
    ),
)
