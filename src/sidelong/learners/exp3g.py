r"""EXP3.G: exponential weights on any graph from which something can be learned, with self-loops or without.

N. Alon, N. Cesa-Bianchi, O. Dekel, T. Koren, "Online Learning with Feedback Graphs: Beyond Bandits", COLT 2015.
Algorithm 1, with the constants of Theorem 2.

::

    for t = 1, ..., T
        q_i ~ exp(-eta Lhat_i)                                                                1
        p_i = (1 - gamma) q_i + gamma / |U| if i in U,  p_i = (1 - gamma) q_i if not          2
        draw I ~ p, observe the losses l_i of all arms i that I reveals                       3
        P_i = sum of p_j over the arms j that reveal i                                        4
        Lhat_i += l_i / P_i   for each observed i                                             5

An arm is strongly observable if it reveals itself or if all other arms reveal it; it is weakly observable if some other
arms do.

If all arms are strongly observable, U is all arms, gamma = min(sqrt(1 / (alpha T)), 1/2), where alpha is the
independence number, and eta = 2 gamma: the regret is O(sqrt(alpha T) ln(K T)).                                       6

Else U reveals every weakly observable arm, gamma = min((|U| ln K / T)^(1/3), 1/2) and eta = gamma^2 / |U|: with the
smallest such U, of delta arms, the regret is O((delta ln K)^(1/3) T^(2/3)) for T >= K^3 ln K / delta^2. No learner
has a better power of T.                                                                                              7

Where this departs from the page: U of line 7 is chosen by greedy set cover, since to find a smallest one is NP-hard. It
is at most 1 + ln K times as large, and the bound holds with |U| in the place of delta. Rounds after T are played with
the same constants, and without a theorem. Others have other constants: eta, gamma, U and how both fall with t can be
given. Then nothing is proved here. rate="adaptive" is another rule, which needs no horizon, and the graph may
change: `sidelong.learners.exp3g_adaptive`.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from sidelong._jit import kernel
from sidelong.checks import check_whole
from sidelong.errors import LearnerError
from sidelong.graphs.domination import weak_cover
from sidelong.learners.interface import About, Asked, Learner, Need, Told
from sidelong.learners.options import graph_number, load, number, one_of
from sidelong.learners.weights import exponential, learn
from sidelong.numerics import exp, log

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from sidelong.graphs.arrays import GraphArrays
    from sidelong.graphs.graph import FeedbackGraph

_NEEDS = frozenset({Need.OBSERVABLE, Need.FIXED_GRAPH, Need.HORIZON})
_PROVED = ("adversarial",)
TRACES = ("exploration_mass", "learning_rate")
_MASS, _ETA = range(2)


class Params(NamedTuple):
    """The constants, in the paper's symbols."""

    eta: float
    gamma: float
    eta_power: float  #: a: eta t^-a is the rate of round t
    gamma_power: float
    u: np.ndarray  #: the probabilities of exploration, uniform on U


def variant(options: Mapping[str, Any]) -> Learner | None:
    """Return the learner for these options, if it is another: that of the rate without a horizon."""
    return load("exp3g_adaptive") if options.get("rate") == "adaptive" else None


def needs(options: Mapping[str, Any]) -> frozenset[Need]:
    """Return what it needs with these options: the horizon tunes eta and gamma."""
    given = options.get("eta") is not None and options.get("gamma") is not None
    return _NEEDS - {Need.HORIZON} if given else _NEEDS


def proved(options: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the worlds with a theorem: it is for the paper's constants."""
    own = any(options.get(name) for name in ("eta_power", "gamma_power"))
    return () if own or any(options.get(name) is not None for name in ("eta", "gamma", "explored")) else _PROVED


def configure(
    graph: FeedbackGraph,
    *,
    horizon: float | None = None,
    independence: int | None = None,
    rate: str = "fixed",
    eta: float | None = None,
    gamma: float | None = None,
    eta_power: float = 0.0,
    gamma_power: float = 0.0,
    explored: Sequence[int] | None = None,
) -> Params:
    """Turn options into constants.

    Args:
        graph: the graph of all rounds.
        horizon: T, how many rounds there will be. `simulate` fills it in. Not needed if eta and gamma are given.
        independence: alpha, for a strongly observable graph. Computed if not given, and refused if ten seconds are
            not enough. Any number from it up to K is valid and gives the same bound with that number in its place.
        rate: "fixed", or "adaptive" without a horizon and for graphs that change: see
            `sidelong.learners.exp3g_adaptive`.
        eta: the learning rate, if not that of line 6 or 7. Not proved, as are all options below.
        gamma: the share of exploration, from 0 to 1, if not that of line 6 or 7.
        eta_power: a, from 0 to 1: the rate of round t is eta t^-a.
        gamma_power: the same for gamma.
        explored: U, the arms that are explored, if not those of line 6 or 7.
    """
    one_of("rate", rate, ("fixed", "adaptive"))
    K = graph.n_arms
    if independence is not None:
        number("independence", independence, least=1, most=K)
    U = weak_cover(graph)
    if eta is None or gamma is None:
        T = number("horizon", horizon, least=1)
        if U.size:
            tuned = min(exp(log(U.size * log(float(K)) / T) / 3.0), 0.5)
            rate_ = tuned * tuned / U.size  # 7
        else:
            instead = ", or use a learner that does not need it, such as exp3.g++"
            tuned = min(math.sqrt(1.0 / (graph_number(graph, "independence", independence, instead) * T)), 0.5)
            rate_ = 2.0 * tuned  # 6
        eta, gamma = rate_ if eta is None else eta, tuned if gamma is None else gamma
    if explored is not None:
        U = np.array([check_whole(LearnerError, "An arm in explored", arm, 0, K - 1) for arm in explored], np.int64)
        if not U.size or len(set(U.tolist())) < U.size:
            raise LearnerError(f"explored must be arms, each once and at least one, not {explored!r}.")
    return Params(
        eta=number("eta", eta, above=0),
        gamma=number("gamma", gamma, least=0, most=1),
        eta_power=number("eta_power", eta_power, least=0, most=1),
        gamma_power=number("gamma_power", gamma_power, least=0, most=1),
        u=_uniform_on(U if U.size else np.arange(K), K),
    )


def _uniform_on(arms: np.ndarray, K: int) -> np.ndarray:
    u = np.zeros(K)
    u[arms] = 1.0 / arms.size
    return u


class State(NamedTuple):
    """What the next round needs, and scratch to compute it in."""

    Lhat: np.ndarray
    P: np.ndarray


def init(params: Params, graph: FeedbackGraph) -> State:
    """Return the state before round 1."""
    return State(Lhat=np.zeros(graph.n_arms), P=np.zeros(graph.n_arms))


@kernel
def distribution(params: Params, state: State, graph: GraphArrays, asked: Asked) -> None:
    """Write into `p` the probabilities of round t."""
    p, trace = asked.p, asked.trace
    eta, gamma = params.eta, params.gamma
    if params.eta_power > 0.0 or params.gamma_power > 0.0:
        log_t = log(float(asked.t))
        eta *= exp(-params.eta_power * log_t)
        gamma *= exp(-params.gamma_power * log_t)
    scale = (1.0 - gamma) / exponential(state.Lhat, eta, p)  # 1
    for i in range(p.size):
        p[i] = scale * p[i] + gamma * params.u[i]  # 2
    trace[_MASS] = gamma
    trace[_ETA] = eta


@kernel
def update(params: Params, state: State, graph: GraphArrays, told: Told) -> None:
    """Learn the losses that playing `arm` revealed in round t, when the probabilities were `p`."""
    arm, p, losses = told.arm, told.p, told.losses
    learn(graph, p, arm, losses, state.P, state.Lhat)  # 4, 5


LEARNER = Learner(
    name="exp3.g",
    params=Params,
    configure=configure,
    init=init,
    distribution=distribution,
    update=update,
    ranges={"gamma": "shares", "eta_power": "shares", "gamma_power": "shares", "u": "shares"},
    needs=_NEEDS,
    needs_with=needs,
    proved_with=proved,
    traces=TRACES,
    scratch=("P",),
    variants=({"rate": "adaptive"},),
    variant=variant,
    about=About(
        paper="Alon, Cesa-Bianchi, Dekel, Koren 2015",
        cite=("alon2015beyond",),
        proved=_PROVED,
        cost="O(K + E)",
        bound="O(sqrt(alpha T) ln(K T)); weakly observable: O((delta ln K)^(1/3) T^(2/3))",
        theorem="Theorem 2",
    ),
)
