"""Worlds made against learners that see side observations on a given graph."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from sidelong._jit import compiled, kernel
from sidelong.errors import WorldError
from sidelong.graphs.graph import FeedbackGraph
from sidelong.learners import ucbn
from sidelong.learners.interface import Told
from sidelong.losses.world import World, arrays
from sidelong.losses.world_arguments import LAST_ROUND, number, whole
from sidelong.losses.world_kernels import BREAKER, LOWER_BOUND
from sidelong.losses.world_makers import world

if TYPE_CHECKING:
    from collections.abc import Iterable

    from sidelong.graphs.arrays import GraphArrays


@world(graph="graph", horizon="whole", gap="number", independent_set="list", stochastic=False)
def lower_bound(
    graph: FeedbackGraph,
    horizon: int | None = None,
    gap: float | None = None,
    independent_set: Iterable[int] | None = None,
) -> World:
    """Make the world behind the lower bound sqrt(alpha T), where a graph helps least.

    Arms outside the set always have loss 1. Those in the set have losses 0 and 1 with mean 1/2. One of them, which each
    run draws for itself, has mean 1/2 - gap. Since arms in the set do not reveal each other, finding it is a bandit
    problem with as many arms as the set has.

    Source: Mannor and Shamir, "From bandits to experts: on the value of side-observations", NIPS 2011,
    Theorem 4; Alon et al., "Nonstochastic multi-armed bandits with graph-structured feedback", SICOMP 46
    (2017).

    Args:
        graph: whose independent set is taken.
        horizon: sets the gap to sqrt(size of the set / horizon) / 4, which is hardest after that many rounds.
        gap: the gap itself, above 0 and at most 1/2; give either `horizon` or `gap`.
        independent_set: arms of which none reveals another. If not given, one is chosen greedily, arms with
            few neighbours first; it need not be the largest.

    Raises:
        WorldError: both or none of horizon and gap are given, or the set is empty or not independent.

    Example:
        >>> import sidelong as sl
        >>> lower_bound(sl.graphs.star(10), gap=0.1)
        <World lower_bound: 10 arms, of which 9 independent; gap 0.1, best arm drawn in each run>

    """
    _check_graph(graph)
    chosen = _independent_arms(graph) if independent_set is None else _check_independent(graph, independent_set)
    if (horizon is None) == (gap is None):
        raise WorldError(f"give either horizon or gap, not both or none; horizon is {horizon!r} and gap is {gap!r}.")
    size = len(chosen)
    if horizon is not None:
        gap = 0.25 * math.sqrt(size / whole("horizon", horizon, size, LAST_ROUND))
    else:
        gap = number("gap", gap, above=0, most=0.5)  # one of the two is given
    places = np.full(graph.n_arms + 1, -1)
    places[chosen] = np.arange(size)
    places[-1] = size
    return World(
        "lower_bound",
        graph.n_arms,
        arrays(LOWER_BOUND, [gap], places),
        f"{graph.n_arms} arms, of which {size} independent; gap {gap:g}, best arm drawn in each run",
        binary=True,
    )


def _independent_arms(graph: FeedbackGraph) -> list[int]:
    layout = graph.arrays
    neighbors = (layout.stop - layout.start) + (layout.in_stop - layout.in_start)
    taken = np.zeros(graph.n_arms, np.bool_)
    chosen = []
    for arm in np.argsort(neighbors, kind="stable").tolist():
        if not taken[arm]:
            chosen.append(arm)
            taken[arm] = True
            taken[graph.out_neighbors(arm)] = True
            taken[graph.in_neighbors(arm)] = True
    return sorted(chosen)


def _check_independent(graph: FeedbackGraph, arms: Iterable[int]) -> list[int]:
    chosen = [whole("each arm of independent_set", arm, 0, graph.n_arms - 1) for arm in arms]
    if not chosen or len(set(chosen)) < len(chosen):
        raise WorldError(f"independent_set must be one or more different arms, not {chosen}.")
    inside = np.zeros(graph.n_arms, np.bool_)
    inside[chosen] = True
    for arm in chosen:
        for other in graph.out_neighbors(arm):
            if inside[other] and other != arm:
                raise WorldError(
                    f"independent_set must hold no two arms of which one reveals the other; "
                    f"arm {arm} reveals arm {other}. Leave one of them out."
                )
    return sorted(chosen)


@world(graph="graph", rounds="rounds", stochastic=False)
def breaker(graph: FeedbackGraph, rounds: int) -> World:
    """Record the losses that break UCB-N on a graph: 1 for the arm it is about to play, 0 for all others.

    UCB-N is deterministic, so the sequence can be written down beforehand, and any learner can be run on it. UCB-N
    itself loses 1 in every round, while the best arm loses at most rounds / K: its regret is at least (1 - 1/K) rounds.
    UCB-N plays the arm with the smallest mean_i - sqrt(2 ln t / O_i), where O_i counts observations. Between equal ones
    the lower index goes first. An arm that was never observed goes before all others. The world ends after the recorded
    rounds, since nothing is known of later ones. It takes 8 bytes per round.

    Source: for the opponent, Caron, Kveton, Lelarge and Bhagat, "Leveraging side observations in stochastic
    bandits", UAI 2012; for the argument, Cesa-Bianchi and Lugosi, "Prediction, learning, and games" (2006),
    ch. 4.

    Args:
        graph: what UCB-N sees.
        rounds: how many rounds to record.

    Raises:
        WorldError: `rounds` is not a whole number above 0, or `graph` is not a FeedbackGraph.

    Example:
        >>> import sidelong as sl
        >>> breaker(sl.graphs.star(10), rounds=1_000)
        <World breaker: 10 arms, 1000 rounds recorded against UCB-N>

    """
    _check_graph(graph)
    T = whole("rounds", rounds, 1, LAST_ROUND)
    K = graph.n_arms
    played = np.empty(T, np.int64)
    params = ucbn.configure(graph)
    state = ucbn.init(params, graph)
    present = np.ones(K, np.bool_)
    step = max(1, 2**22 // K)  # so that Ctrl-C is heard
    for first in range(1, T + 1, step):
        last = min(first + step - 1, T)
        known = (params, state, graph.arrays, first, last, played, np.zeros(K), np.empty(0), present)
        compiled(fool, *known)(*known)
    summary = f"{K} arms, {T} rounds recorded against UCB-N"
    return World("breaker", K, arrays(BREAKER, (), played), summary, binary=True, rounds=T)


@kernel
def fool(
    params: ucbn.Params,
    state: ucbn.State,
    graph: GraphArrays,
    first: int,
    last: int,
    played: np.ndarray,
    losses: np.ndarray,
    nothing: np.ndarray,
    present: np.ndarray,
) -> None:
    """Let UCB-N play rounds in which the arm that it plays has loss 1 and all others 0, and record what it plays."""
    for t in range(first, last + 1):
        arm = ucbn.lowest(params, state, t)
        played[t - 1] = arm
        begin = graph.start[arm]
        for e in range(begin, graph.stop[arm]):
            losses[e - begin] = 1.0 if graph.targets[e] == arm else 0.0
        ucbn.update(params, state, graph, Told(t, arm, nothing, losses, nothing, present, 0, graph))


def _check_graph(graph: FeedbackGraph) -> None:
    if not isinstance(graph, FeedbackGraph):
        raise WorldError(
            f"graph must be a FeedbackGraph, not {type(graph).__name__}. "
            f"Make one with sidelong.graphs or FeedbackGraph.from_matrix."
        )
