"""Lines 2 to 7 of EXP3.G++: confidence intervals, gaps, the exploration set and its rates.

Each function goes through arrays of the learner's `State` in one short loop, which the compiler can vectorise. What
did not change since the round before, as the order of the gaps in most rounds, is not computed again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sidelong._jit import kernel
from sidelong.graphs.cover import CoverScratch, cover_in_order, cover_largest_first
from sidelong.numerics import from_bits, ordered, ordered_bits, reorder, to_bits, total

if TYPE_CHECKING:
    from sidelong.graphs.arrays import GraphArrays
    from sidelong.learners import epoch_refresh, exp3gpp

    Params = exp3gpp.Params
    State = exp3gpp.State | epoch_refresh.State

# In `known`: the key of the graph that S was made for, the size of S, and whether a gap was positive then.
GRAPH, SIZE, GAPS = range(3)


@kernel
def extremes(state: State, radius: float) -> tuple[float, float, float]:
    """Return the smallest UCB, the largest LCB and the smallest Ltilde."""
    # As whole numbers, whose least is found in vectors. No UCB is below 0, and an LCB below 0 does not count: their
    # bits are in order as they are.
    ucb, lcb, least = to_bits(1.0), to_bits(0.0), ordered(state.Ltilde[0])
    for i in range(state.mean.size):
        ucb = min(ucb, to_bits(state.mean[i] + radius * state.width[i]))  # 2
        lcb = max(lcb, to_bits(state.mean[i] - radius * state.width[i]))  # 3
        least = min(least, ordered(state.Ltilde[i]))
    return from_bits(ucb), from_bits(lcb), from_bits(ordered_bits(least))


@kernel
def estimate_gaps(state: State, radius: float, ucb: float) -> None:
    """Write by how much each arm is worse than the best one, with confidence."""
    for i in range(state.gap.size):
        excess = (state.mean[i] - radius * state.width[i]) - ucb
        state.gap[i] = excess if excess > 0.0 else 0.0  # 3, 4: ucb >= 0 implies LCB's own maximum with 0


@kernel
def set_rates(state: State, cap: float, floor: float, xi: float, largest_gap: float) -> float:
    """Write the rates of exploration; return their sum."""
    if largest_gap * largest_gap * cap <= xi:  # no xi is below the cap: two values, and no division
        for i in range(state.eps.size):
            state.eps[i] = cap if state.S[i] else floor
        return state.known[SIZE] * cap + (state.eps.size - state.known[SIZE]) * floor  # type: ignore[no-any-return]
    for i in range(state.eps.size):
        square = state.gap[i] * state.gap[i]
        eps = xi / square if square * cap > xi else cap
        state.eps[i] = max(eps, floor) if state.S[i] else floor  # 6, 7
    return total(state.eps)


@kernel
def explore(params: Params, state: State, graph: GraphArrays, known: bool) -> None:
    """Make S by Algorithm 2, unless neither the order of the gaps nor the graph has changed."""  # 5
    changed = state.known[GRAPH] != graph.key
    if known or state.known[GAPS] > 0:  # else all gaps are 0, as they were
        # While S stands, `free` is not needed, and the sort may use it.
        changed = reorder(state.order, state.gap, state.free) or changed
        changed = (params.largest_first and _ties_changed(state)) or changed
        state.known[GAPS] = known
    if not changed:
        return
    state.known[GRAPH] = graph.key
    scratch = CoverScratch(state.free, state.heap)
    if params.largest_first:
        state.known[SIZE] = cover_largest_first(graph, state.order, state.gap, state.S, scratch)
    else:
        state.known[SIZE] = cover_in_order(graph, state.order, state.S, scratch)


@kernel
def _ties_changed(state: State) -> bool:
    changed = False
    for k in range(1, state.order.size):
        tie = state.gap[state.order[k]] == state.gap[state.order[k - 1]]
        changed = changed or tie != state.ties[k]
        state.ties[k] = tie
    return changed
