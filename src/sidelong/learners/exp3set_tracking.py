r"""EXP3-SET with track=...: for a best arm that moves, so that regret is against a sequence of arms.

M. Herbster, M. K. Warmuth, "Tracking the Best Expert", Machine Learning 32 (1998), the fixed and the variable share;
with the importance weights of a feedback graph, a rate that needs no horizon, and the proof below.

::

    Theta = K,  q = uniform
    for t = 1, 2, ...
        eta = m sqrt(c / Theta),  draw I ~ q, observe the losses l_i of all arms i that I reveals          1
        P_i = sum of q_j over the arms j that reveal i                                                     2
        v_i ~ q_i exp(-eta l_i / P_i)   with l_i = 0 for each i that was not observed                      3
        q = (1 - zeta) v + zeta / K,   zeta = 1 / (t + 1), or 1 / T if the horizon T is given              4
        Theta += theta = sum_i q_i / P_i, with the q of line 1                                             5

Let B = (S + 1) ln(K T) + ln T; if the horizon is given, 1 stands in the place of the last ln T. The regret against
every sequence of arms with at most S switches is at most

    (B / sqrt(c) + sqrt(c)) sqrt(sum_t E theta_t) + B sqrt(K / c).

With track=S the constant c is (S + 1) ln K, or (S + 1) ln(K T) + 1 if the horizon is given, for which the first term
is 2 sqrt(B sum_t E theta_t). If track="unknown", it is that for S = 0. In each case the bound holds for every S.

*Proof.* With x = l / P where observed: -ln sum q e^{-eta x} >= eta <q, x> - (eta^2 / 2) <q, x^2>. So by line 3,
eta (<q, x> - x_k) <= ln v_k - ln q_k + (eta^2 / 2) <q, x^2>, and by line 4, ln v_k <= ln q'_k + ln(1 / (1 - zeta)),
where q' is the q of the next round. Divide by eta, and sum over t with k = k_t. Where k stays, ln(1 / q_k) times
(1 / eta_t - 1 / eta_(t-1)) is left of each round, and as q_k >= zeta / K >= 1 / (K T), that is at most ln(K T) / eta_T
over all rounds. Each switch adds at most ln(K T) / eta_T more. The sum of ln(1 / (1 - zeta)) over t < T is ln T, or at
most 1 with the horizon. At last, E <q, x^2> <= theta, and theta <= K, the first Theta. The share of line 4 is why the
rate may change: it bounds ln(1 / q).

Rounds are counted as they are told. Feedback that is late is learned without bias; nothing is proved about it here.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from sidelong._jit import kernel
from sidelong.checks import check_whole
from sidelong.errors import LearnerError
from sidelong.graphs.arrays import observe
from sidelong.learners import exp3set
from sidelong.learners.interface import About, Asked, Learner, Told
from sidelong.learners.options import number
from sidelong.learners.weights import theta
from sidelong.numerics import exp, log, total

if TYPE_CHECKING:
    from sidelong.graphs.arrays import GraphArrays
    from sidelong.graphs.graph import FeedbackGraph

TRACES = ("theta", "learning_rate")
_THETA, _ETA = range(2)


class Params(NamedTuple):
    """The constants."""

    c: float
    eta_scale: float
    horizon: int  #: 0 if there is none


def configure(
    graph: FeedbackGraph,
    *,
    track: int | str = "unknown",
    horizon: int | None = None,
    eta_scale: float = 1.0,
) -> Params:
    """Turn options into constants.

    Args:
        graph: the graph that the learner starts on.
        track: how often the best arm changes, or "unknown".
        horizon: the number of rounds, if it is known, for a bound with smaller constants.
        eta_scale: m, a factor on the learning rate.
    """
    if isinstance(track, str) and track != "unknown":
        raise LearnerError(f"track must be how often the best arm changes, or 'unknown', not {track!r}.")
    switches = 0 if track == "unknown" else check_whole(LearnerError, "track", track, 0, 2**48)
    T = 0 if horizon is None else check_whole(LearnerError, "horizon", horizon, 1, 2**48)
    c = (switches + 1) * log(float(graph.n_arms) * max(T, 1)) + (1.0 if T else 0.0)
    return Params(c=c, eta_scale=number("eta_scale", eta_scale, above=0), horizon=T)


class State(NamedTuple):
    """What the next round needs, and scratch to compute it in."""

    q: np.ndarray
    Theta: np.ndarray
    told: np.ndarray  #: how many rounds were told
    P: np.ndarray


def init(params: Params, graph: FeedbackGraph) -> State:
    """Return the state before round 1."""
    K = graph.n_arms
    return State(q=np.full(K, 1.0 / K), Theta=np.array([float(K)]), told=np.zeros(1, np.int64), P=np.zeros(K))


@kernel
def distribution(params: Params, state: State, graph: GraphArrays, asked: Asked) -> None:
    """Write into `p` the probabilities of round t."""
    p, trace = asked.p, asked.trace
    trace[_ETA] = params.eta_scale * math.sqrt(params.c / state.Theta[0])  # 1
    for i in range(p.size):
        p[i] = state.q[i]


@kernel
def update(params: Params, state: State, graph: GraphArrays, told: Told) -> None:
    """Learn the losses that playing `arm` revealed in round t, when the probabilities were `p`."""
    arm, p, losses, trace = told.arm, told.p, told.losses, told.trace
    observe(graph, p, state.P)  # 2
    first = graph.start[arm]
    least = math.inf if graph.stop[arm] - first == p.size else 0.0
    for e in range(first, graph.stop[arm]):
        least = min(least, trace[_ETA] * losses[e - first] / max(state.P[graph.targets[e]], p[arm]))
    if least < 500.0:
        least = 0.0  # it matters only where all weights would vanish: at a rate that many switches make large
    for e in range(first, graph.stop[arm]):
        i = np.uint64(graph.targets[e])
        state.q[i] *= exp(least - trace[_ETA] * losses[e - first] / max(state.P[i], p[arm]))  # 3
    state.told[0] += 1
    zeta = 1.0 / (params.horizon if params.horizon > 0 else state.told[0] + 1)
    scale = (1.0 - zeta) / total(state.q)
    for k in range(p.size):
        state.q[k] = state.q[k] * scale + zeta / p.size  # 4
    trace[_THETA] = theta(p, state.P)
    state.Theta[0] += trace[_THETA]  # 5


LEARNER = Learner(
    name="exp3-set",
    chosen_by="track=...",
    params=Params,
    configure=configure,
    init=init,
    distribution=distribution,
    update=update,
    ranges={"told": "counts", "horizon": "counts", "Theta": "shares"},
    needs=exp3set.LEARNER.needs,
    traces=TRACES,
    about=About(
        paper="this package, after Alon et al. 2017 and Herbster, Warmuth 1998",
        cite=("alon2017nonstochastic",),
        proved=("adversarial",),
        cost="O(K + E)",
        bound="sqrt(S ln(K T) sum_t mas(G_t)), against any sequence of arms with S switches",
        theorem="derived in its file",
        published=False,
    ),
)
