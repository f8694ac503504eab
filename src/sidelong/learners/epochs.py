"""The epoch schedule: rounds of exponential weights that do not look at every arm.

`sidelong.learners.exp3gpp_epoch` has the pseudo-code whose line numbers stand here; EXP3-SET and EXP3-IX are the same
kernels with other constants. What takes a look at every arm happens when an epoch begins, in
`sidelong.learners.epoch_refresh`. In between, `draw` and `update` go down and up two sum trees, one over the weights
exp(-eta Ltilde_i) and one over eps.

The weights are relative to the smallest Ltilde of the round in which the epoch began, so that none is above 1; when all
of them have become small they are centred anew.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from sidelong._jit import kernel
from sidelong.graphs.arrays import GraphArrays, observe
from sidelong.learners.epoch_refresh import (
    EPS,
    ETA,
    IN_TREES,
    LAST,
    LEAST,
    LIMIT,
    MARK,
    Params,
    State,
    mark_of,
    refresh,
    scale_of,
    weigh,
)
from sidelong.learners.exploration import SIZE
from sidelong.learners.sum_tree import first_leaf, locate, resum
from sidelong.learners.tree_probabilities import fill, have_the_same_sources, sum_over_sources
from sidelong.numerics import DRAWS, exp, uniform

if TYPE_CHECKING:
    from sidelong.learners.interface import Asked, Told
    from sidelong.numerics import Whole

TRACES = ("theta", "exploration_set", "exploration_mass", "learning_rate", "refreshed")
_THETA, _SIZE, _MASS, _ETA, _REFRESHED = range(5)

#: The weights are centred anew when their sum falls below this: the smallest ones that matter are still normal numbers.
_FAINT = 1e-100


@kernel
def draw(params: Params, state: State, graph: GraphArrays, asked: Asked) -> int:
    """Return the arm I of round t; write into `p` not p, but P of the arms that I reveals, one after the other."""
    t, p, trace = asked.t, asked.p, asked.trace
    K = state.mean.size
    trace[_REFRESHED] = 0.0
    if t <= params.initial.size or K == 1:
        arm: Any = np.int64(params.initial[t - 1] if t <= params.initial.size else 0)  # 1
        for k in range(graph.stop[arm] - graph.start[arm]):
            p[k] = 1.0
        trace[_THETA] = 1.0
        return arm  # type: ignore[no-any-return]
    known = -1.0
    if t > state.epoch[LAST] or state.Theta[0] > state.rates[LIMIT] or mark_of(graph) != state.epoch[MARK]:
        known = refresh(params, state, graph, t)
        trace[_REFRESHED] = 1.0
    elif state.w[0] < _FAINT:
        weigh(state)
    base, scale = first_leaf(K), scale_of(state)
    arm = locate(state.w, state.e, scale, uniform(asked.seed, DRAWS, asked.run, t, np.int64(0)), base)  # 7
    if state.epoch[IN_TREES] == 0:
        fill(state.p, state.w, state.e, scale, base)
        observe(graph, state.p, state.P)
    own = 1.0
    first = graph.start[arm]
    for k in range(graph.stop[arm] - first):
        i = np.int64(graph.targets[first + k])
        repeated = k > 0 and graph.contiguous and have_the_same_sources(graph, i, i - 1)
        p[k] = p[k - 1] if repeated else _observed(state, graph, scale, i, base)  # 8
        own = p[k] if i == arm else own
    trace[_SIZE] = state.known[SIZE]
    trace[_MASS] = state.rates[EPS]
    trace[_ETA] = state.rates[ETA]
    trace[_THETA] = known
    if known < 0.0:
        j = np.int64(uniform(asked.seed, DRAWS, asked.run, t, np.int64(1)) * K)
        trace[_THETA] = _share(params, state, scale, arm, own, base)  # 11
        trace[_THETA] += _share(params, state, scale, j, _observed(state, graph, scale, j, base), base)
    return arm  # type: ignore[no-any-return]


@kernel
def probability(params: Params, state: State, graph: GraphArrays, asked: Asked, arm: int) -> float:
    """Return the probability of an arm in round t, which has been drawn and not been told yet."""
    t = asked.t
    if t <= params.initial.size or state.mean.size == 1:
        return 1.0 if arm == (params.initial[t - 1] if t <= params.initial.size else 0) else 0.0
    leaf = first_leaf(state.mean.size) + arm
    return scale_of(state) * state.w[leaf] + state.e[leaf]  # type: ignore[no-any-return]  # 6


@kernel
def update(params: Params, state: State, graph: GraphArrays, told: Told) -> None:
    """Learn the losses that playing `arm` revealed in round t; `p` and `trace` are what `draw` wrote for this one."""
    t, arm, p, losses, trace = told.t, told.arm, told.p, told.losses, told.trace
    learning = t > params.initial.size and state.mean.size > 1
    base = first_leaf(state.mean.size)
    first, count = graph.start[arm], graph.stop[arm] - graph.start[arm]
    for k in range(count):
        i = np.uint64(graph.targets[first + k])
        state.Lhat[i] += losses[k]
        state.O[i] += 1.0
        state.mean[i] = state.Lhat[i] / state.O[i]
        if learning and losses[k] > 0.0:
            state.Ltilde[i] += losses[k] / (p[k] + params.implicit * trace[_ETA])  # 9
            state.w[np.uint64(base) + i] = exp(-state.rates[ETA] * (state.Ltilde[i] - state.rates[LEAST]))
    if not learning:
        return
    state.Theta[0] += trace[_THETA]  # 10
    if graph.contiguous and count > 0:
        resum(state.w, base + first, base + first + count - 1)
        return
    for k in range(count):
        leaf = base + np.int64(graph.targets[first + k])
        if k + 1 == count or (base + graph.targets[first + k + 1] - 1) >> 3 != (leaf - 1) >> 3:
            resum(state.w, leaf, leaf)  # once for all leaves of a family


@kernel
def _observed(state: State, graph: GraphArrays, scale: float, i: Whole, base: Whole) -> float:
    """Return P of an arm."""
    if state.epoch[IN_TREES] == 0:
        return state.P[i]  # type: ignore[no-any-return]
    return sum_over_sources(graph, state.w, state.e, scale, base, i)


@kernel
def _share(params: Params, state: State, scale: float, i: Whole, P: float, base: Whole) -> float:
    """Return what arm i adds to the estimate of theta if it is drawn; 0 / 0 is 0."""
    p = scale * state.w[base + i] + state.e[base + i]
    P += params.implicit * state.rates[ETA]
    return p / P / (p + 1.0 / state.mean.size) if P > 0.0 else 0.0
