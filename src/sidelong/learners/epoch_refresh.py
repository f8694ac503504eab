"""Where an epoch begins: what the epoch schedule knows, and the look at every arm that it takes once an epoch.

The line numbers are those of the pseudo-code in `sidelong.learners.exp3gpp_epoch`.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from sidelong._jit import kernel, rare_kernel
from sidelong.graphs.arrays import GraphArrays, observe
from sidelong.graphs.cover import cover_scratch
from sidelong.learners.exploration import GAPS, estimate_gaps, explore, extremes, set_rates
from sidelong.learners.sum_tree import first_leaf, new_tree, plant
from sidelong.learners.tree_probabilities import fill, sources_are_ranges
from sidelong.learners.weights import theta
from sidelong.numerics import exp, log, smallest

if TYPE_CHECKING:
    from sidelong.graphs.graph import FeedbackGraph
    from sidelong.learners.exp3gpp import Params
    from sidelong.numerics import Whole


class State(NamedTuple):
    """What the next round needs, and scratch to compute it in."""

    Ltilde: np.ndarray
    Lhat: np.ndarray
    O: np.ndarray
    mean: np.ndarray  #: Lhat / O
    Theta: np.ndarray
    w: np.ndarray  #: a tree over exp(-eta (Ltilde_i - least))
    e: np.ndarray  #: a tree over eps
    rates: np.ndarray  #: of the epoch: eta, least, the sum of eps, the largest Theta
    epoch: np.ndarray  #: the last round of the epoch, the mark of its graph, whether P can be read off the trees
    width: np.ndarray  #: 1 / sqrt(O), and all below: as they were when the epoch began
    gap: np.ndarray
    eps: np.ndarray
    S: np.ndarray  #: whether an arm is in the exploration set
    order: np.ndarray  #: the arms by ascending gap
    ties: np.ndarray  #: whether the gap of an arm in `order` equals that of the one before
    known: np.ndarray  #: what S was made from; `exploration` names its entries
    p: np.ndarray  #: scratch
    P: np.ndarray
    free: np.ndarray
    heap: np.ndarray


ETA, LEAST, EPS, LIMIT = range(4)  # in `rates`
LAST, MARK, IN_TREES = range(3)  # in `epoch`


def init(params: Params, graph: FeedbackGraph) -> State:
    """Return the state before round 1."""
    K = graph.n_arms
    vectors = {name: np.zeros(K) for name in ("Ltilde", "Lhat", "O", "mean", "gap", "eps", "p", "P")}
    return State(
        Theta=np.array([max(1.0, float(params.initial.size))]),
        w=new_tree(K),
        e=new_tree(K),
        rates=np.zeros(4),
        epoch=np.array([0, -1, 0]),
        width=np.full(K, math.inf),
        S=np.zeros(K, np.bool_),
        order=np.arange(K, dtype=np.uint32),
        ties=np.ones(K, np.bool_),
        known=np.array([-1, 0, 0]),
        **cover_scratch(K)._asdict(),
        **vectors,
    )


@kernel
def mark_of(graph: GraphArrays) -> Whole:
    """Return what tells graphs apart, and arcs from intervals of one graph: P is read off the trees in another way."""
    return graph.key ^ np.int64(graph.contiguous)


@rare_kernel
def begin_epoch(params: Params, state: State, graph: GraphArrays, t: int) -> float:
    """Begin an epoch with round t; return theta."""
    last = np.int64(math.floor((1.0 + params.growth) * t))
    state.epoch[LAST] = last  # 2
    state.epoch[MARK] = mark_of(graph)
    state.epoch[IN_TREES] = not graph.contiguous or sources_are_ranges(graph)
    state.rates[LIMIT] = (1.0 + params.growth) * state.Theta[0]
    state.rates[EPS] = _explore(params, state, graph, t, last)
    plant(state.e, state.eps)
    Theta = state.Theta[0] if params.adaptive else params.alpha * t
    state.rates[ETA] = params.eta_scale * math.sqrt(params.log_K / (2.0 * Theta))  # 5
    plant_weights(state)
    fill(state.p, state.w, state.e, scale_of(state), first_leaf(state.p.size))
    observe(graph, state.p, state.P)
    return theta(state.p, state.P)


@kernel
def _explore(params: Params, state: State, graph: GraphArrays, t: int, last: Whole) -> float:
    """Make the exploration set of round t, and the rates of an epoch from t to `last`; return their sum."""
    K = state.mean.size
    for i in range(K):
        state.width[i] = 1.0 / math.sqrt(state.O[i]) if state.O[i] > 0.0 else math.inf
    radius = math.sqrt((params.gamma * log(float(t)) + params.log_K) / 2.0)
    ucb, lcb, _ = extremes(state, radius)
    if lcb > ucb or state.known[GAPS] > 0:
        estimate_gaps(state, radius, ucb)
    explore(params, state, graph, lcb > ucb)  # 3
    cap = min(1.0 / (2.0 * K), math.sqrt(params.lambda_ * params.log_K / last) / (2.0 * K))  # 4
    floor = min(cap, 4.0 / (float(last) * float(last)))
    xi = params.beta * min(log(float(t)) / t, log(float(last)) / last)  # ln t / t has no minimum but at the ends
    return set_rates(state, cap, floor, xi, max(lcb - ucb, 0.0))


@rare_kernel
def plant_weights(state: State) -> None:
    """Make the tree of the weights, centred at the smallest Ltilde."""
    eta, least = state.rates[ETA], smallest(state.Ltilde)
    state.rates[LEAST] = least
    for i in range(state.p.size):
        state.p[i] = exp(-eta * (state.Ltilde[i] - least))
    plant(state.w, state.p)


@kernel
def scale_of(state: State) -> float:
    """Return what a weight is multiplied with to be a share of the probability that is not exploration."""
    return (1.0 - state.rates[EPS]) / state.w[0]  # type: ignore[no-any-return]
