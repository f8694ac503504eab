r"""Luo, Tong, Zhang and Zhang: regret that is small with high probability, also where arms do not reveal themselves.

H. Luo, H. Tong, M. Zhang, Y. Zhang, "Improved High-Probability Regret for Adversarial Bandits with Time-Varying
Feedback Graphs", ALT 2023. Algorithm 1 for strongly observable graphs, in which every arm reveals itself or is
revealed by all others, and Algorithm 2 for weakly observable ones.

::

    for t = 1, 2, ..., T
        q_i ~ exp(-eta L_i)                                                                   1
        p = (1 - eta) q + eta / K                                       (strong)              2
        D = arms that together reveal every arm without a self-loop,                          3
        p = (1 - eps |D|) q + eps 1[D]                                  (weak)                4
        draw I ~ p, observe the losses l_i of all arms i that I reveals                       5
        W_i = sum of p_j over the arms j that reveal i                                        6
        L_i += l_i / (W_i + gamma)   for each observed i with a self-loop                     7
        L_i += l_i / W_i             for each observed i without                              8
        if an arm j without a self-loop has p_j > 1/2: L_j += beta / W_j    (strong)          9

Strong: the graph may change, by the will of an adversary who watches, and may be shown after the draw. With alpha the
independence number, or the mean of those of all rounds, eta = gamma = beta = min(1/2, sqrt(ln(1 / delta) / (alpha T))).
The regret is of order sqrt(alpha T ln(1 / delta)) up to logarithms, with probability 1 - 6 delta (Theorem 3).

Weak: the graph may change, and is shown before the draw. With d the size of D and a the independence number among the
arms with a self-loop, gamma = min(1/2, sqrt(ln(1 / delta) / (a T))), eta = min((d T^2 ln(1 / delta))^(-1/3), gamma)
and eps = min(1 / (2 d), (ln(1 / delta) / (d^2 T))^(1/3)). The regret is of order (d ln(1 / delta))^(1/3) T^(2/3) up to
logarithms, with probability 1 - 4 delta (Theorem 4). `sidelong.theory.rivals` has both with all constants, which are
ours, and ``docs/bounds.md`` says how.

Where this departs from the paper: Algorithm 1 is printed with the rate 1 / sqrt(alpha T ln(1 / delta)), with which the
proof gives ln(1 / delta)^(3/2) and not the theorem; tuning="printed" has it. The caps 1 / (2 d) and 1/2 of the weak
case are ours: without them eps |D| may exceed 1, and gamma is infinite where no arm reveals itself. D is chosen
greedily. If every arm reveals itself, both are EXP3-IX with a fixed rate, in the strong case with exploration.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from sidelong._jit import kernel
from sidelong.graphs.arrays import GraphArrays, mark_loops, observe
from sidelong.graphs.cover import CoverScratch, cover_scratch
from sidelong.graphs.domination import dominate_others, loopless_cover
from sidelong.graphs.observability import self_loop_subgraph
from sidelong.learners.interface import About, Asked, Learner, Need, Told
from sidelong.learners.options import graph_number, number, one_of
from sidelong.learners.weights import exponential
from sidelong.numerics import exp, log

if TYPE_CHECKING:
    from collections.abc import Mapping

    from sidelong.graphs.graph import FeedbackGraph

_NEEDS = frozenset({Need.OBSERVABLE, Need.FIXED_GRAPH, Need.HORIZON})
TRACES = ("exploration_mass", "learning_rate")
_MASS, _ETA = range(2)


class Params(NamedTuple):
    """The constants, in the paper's symbols."""

    eta: float
    gamma: float
    beta: float  #: 0 in the weak case
    spread: float  #: what all arms share: eta in the strong case, 0 in the weak one
    eps: float  #: what each arm of D gets in the weak case; 0 in the strong one


def needs(options: Mapping[str, Any]) -> frozenset[Need]:
    """Return what it needs with these options: the graph may change if it is said how observable all are."""
    observability, given = options.get("observability"), options.get("independence") is not None
    fixed = frozenset({Need.FIXED_GRAPH})
    if observability == "strong":
        found = frozenset({Need.STRONGLY_OBSERVABLE, Need.HORIZON})
        return found if given else found | fixed
    if observability == "weak":
        found = frozenset({Need.OBSERVABLE, Need.GRAPH_BEFORE, Need.HORIZON})
        return found if given and options.get("domination") is not None else found | fixed
    return _NEEDS


def configure(
    graph: FeedbackGraph,
    *,
    horizon: float,
    observability: str | None = None,
    delta: float = 0.05,
    independence: float | None = None,
    domination: float | None = None,
    tuning: str = "corrected",
) -> Params:
    """Turn options into constants.

    Args:
        graph: the graph that the learner starts on.
        horizon: T, how many rounds there will be. `simulate` fills it in.
        observability: "strong" if every graph is strongly observable, else "weak". From the graph if not given, which
            must stay then.
        delta: how much the bound may fail: with a probability of at most 6 delta if "strong", and 7 delta if "weak",
            with our constants. A smaller one makes rates larger.
        independence: alpha if "strong"; if "weak" that of the arms with a self-loop. Computed if not given, and refused
            if ten seconds are not enough. Any number from it up to K is valid and gives the same bound with that
            number in its place. If graphs change, it must be given: the mean of their numbers, or any bound on it.
        domination: d, if "weak": how many arms are chosen to reveal those without a self-loop. Found if not given. If
            graphs change, it must be given, and bound that of each; the number of arms is always valid.
        tuning: "corrected", or "printed" for the rate that the paper has if "strong".
    """
    T, K = number("horizon", horizon, least=1), graph.n_arms
    log_delta = -log(number("delta", delta, least=1e-100, most=0.5))
    if independence is not None:
        number("independence", independence, least=1, most=K)
    if domination is not None:
        number("domination", domination, least=1, most=K)
    printed = one_of("tuning", tuning, ("corrected", "printed")) == "printed"
    if observability is None:
        observability = "weak" if graph.observability.kind == "weak" else "strong"
    if one_of("observability", observability, ("strong", "weak")) == "strong":
        alpha = graph_number(graph, "independence", independence)
        eta = 1.0 / math.sqrt(alpha * T * log_delta) if printed else math.sqrt(log_delta / (alpha * T))
        eta = min(0.5, eta)
        return Params(eta, gamma=eta, beta=eta, spread=eta if K > 1 else 0.0, eps=0.0)
    part = self_loop_subgraph(graph) if independence is None else graph
    a = 0.0 if part is None else graph_number(part, "independence", independence)
    d = float(len(loopless_cover(graph)) if domination is None else domination)
    gamma = min(0.5, math.sqrt(log_delta / (a * T))) if a > 0.0 else 0.5
    if d == 0.0:
        return Params(eta=gamma, gamma=gamma, beta=0.0, spread=0.0, eps=0.0)
    eps = min(0.5 / d, exp(log(log_delta / (d * d * T)) / 3.0))
    return Params(min(exp(-log(d * T * T * log_delta) / 3.0), gamma), gamma, beta=0.0, spread=0.0, eps=eps)


class State(NamedTuple):
    """What the next round needs, and scratch to compute it in."""

    L: np.ndarray
    W: np.ndarray
    loops: np.ndarray  #: whether an arm reveals itself
    D: np.ndarray  #: whether an arm is in D
    known: np.ndarray  #: the key of the graph that `loops` and D are those of, and the size of D
    free: np.ndarray
    heap: np.ndarray


_GRAPH, _SIZE = range(2)  # in `known`


def init(params: Params, graph: FeedbackGraph) -> State:
    """Return the state before round 1."""
    K = graph.n_arms
    flags = {"loops": np.zeros(K, np.bool_), "D": np.zeros(K, np.bool_), "known": np.array([-1, 0])}
    return State(L=np.zeros(K), W=np.zeros(K), **flags, **cover_scratch(K)._asdict())


@kernel
def _look(params: Params, state: State, graph: GraphArrays) -> None:
    """See which arms reveal themselves, and choose D, unless the graph is the one that was looked at last."""
    if state.known[_GRAPH] != graph.key:
        state.known[_GRAPH] = graph.key
        mark_loops(graph, state.loops)
        if params.eps > 0.0:
            state.known[_SIZE] = dominate_others(graph, state.loops, state.D, CoverScratch(state.free, state.heap))  # 3


@kernel
def distribution(params: Params, state: State, graph: GraphArrays, asked: Asked) -> None:
    """Write into `p` the probabilities of round t."""
    p, trace = asked.p, asked.trace
    mass, eps = params.spread, 0.0
    if params.eps > 0.0:
        _look(params, state, graph)
        size = float(state.known[_SIZE])
        eps = min(params.eps, 0.5 / max(size, 1.0))  # what was given for d may be too small
        mass = eps * size
    scale = (1.0 - mass) / exponential(state.L, params.eta, p)  # 1
    share = params.spread / float(p.size)
    for i in range(p.size):
        p[i] = scale * p[i] + (share if eps == 0.0 or not state.D[i] else eps)  # 2, 4
    trace[_MASS] = mass
    trace[_ETA] = params.eta


@kernel
def update(params: Params, state: State, graph: GraphArrays, told: Told) -> None:
    """Learn the losses that playing `arm` revealed in round t, when the probabilities were `p`."""
    arm, p, losses = told.arm, told.p, told.losses
    _look(params, state, graph)
    observe(graph, p, state.W)  # 6: for an arm without a self-loop the sum of others, and not 1 - p_j
    first = graph.start[arm]
    for e in range(first, graph.stop[arm]):
        i = np.uint64(graph.targets[e])
        # p[arm] is a part of W_i. Where rounding has lost it beside larger parts, it is still above 0.
        W = max(state.W[i], p[arm])
        state.L[i] += losses[e - first] / (W + params.gamma if state.loops[i] else W)  # 7, 8
    if params.beta > 0.0:
        for j in range(p.size):
            if p[j] > 0.5 and not state.loops[j]:
                state.L[j] += params.beta / state.W[j]  # 9


LEARNER = Learner(
    name="luo-2023",
    params=Params,
    configure=configure,
    init=init,
    distribution=distribution,
    update=update,
    ranges={
        "known": ("any", "sizes"),
        "free": "sizes",
        "heap": "any",
        "beta": "shares",
        "spread": "shares",
        "eps": "shares",
    },
    needs=_NEEDS,
    traces=TRACES,
    needs_with=needs,
    about=About(
        paper="Luo, Tong, Zhang, Zhang 2023",
        cite=("luo2023improved",),
        proved=("adversarial",),
        cost="O(K + E)",
        bound="O(sqrt(alpha T) ln(K T)) with high probability; weakly observable: O(d^(1/3) T^(2/3))",
        theorem="Theorems 3 and 4; with constants of our own in docs/bounds.md",
    ),
)
