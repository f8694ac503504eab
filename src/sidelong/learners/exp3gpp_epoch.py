r"""EXP3.G++ with refresh="epoch": a round whose cost does not grow with the number of arms.

Between two rounds only the observed arms change, and everything else changes slowly. So the steps that look at every
arm are done once per *epoch*. A round in between takes O(log K) steps for each arm that it reveals. For arcs it also
takes as many as there are arms that reveal those. `docs/epoch.md` has the proof of the bound, and the measurements.

::

    play each arm once to initialise Lhat and O                                               1
    for t = K + 1, K + 2, ...
        if t > e or Theta > (1 + growth) Theta_r or the graph is another:       (a new epoch)
            r = t,  Theta_r = Theta,  e = floor((1 + growth) t)                               2
            gap and S as in lines 2 to 5 of `sidelong.learners.exp3gpp`, in round r           3
            eps_i = the smallest that lines 6 and 7 there give for any round from r to e      4
            eta = sqrt(ln K / (2 Theta_r))                                                    5
        q_i ~ exp(-eta Ltilde_i),  p_i = (1 - sum_j eps_j) q_i + eps_i                        6
        draw I ~ p, observe the losses l_i of all arms i that I reveals                       7
        P_i = sum of p_j over the arms j that reveal i                                        8
        Ltilde_i += l_i / P_i,  Lhat_i += l_i,  O_i += 1   for each observed i                9
        Theta += X,  where X = theta = sum_i p_i / P_i if t = r, and else an estimate:        10
            J uniform on all arms,  X = sum over i = I, J of (p_i / P_i) / (p_i + 1 / K)      11

Nothing is approximated in what is played and learned: p is exact for the arm that is drawn, and P for those that
are revealed, from two sum trees, one over exp(-eta Ltilde_i) and one over eps_i. X has the mean theta, whatever p and
the graph are, and is at most 2 K: that is all that the proof asks of theta. With growth 0 every round begins an epoch,
and this is EXP3.G++ as it is printed.

Against any adversary the regret is at most (1 + sqrt(1 + growth)) sqrt(2 ln K E[Theta]) + sqrt(T ln K) + K, where
Theta is K plus the sum of theta over all rounds: the paper's bound, but for the factor sqrt(1 + growth) on half of the
first term. With rate="fixed" and growth <= 1/4, Theorem 2 holds as it is printed. For a stochastic world the proof has
not been redone.

What looks at every arm happens when an epoch begins, in `sidelong.learners.epoch_refresh`. In between, `draw` and
`update` go down and up the two trees. The weights are relative to the smallest Ltilde of the round in which the epoch
began, so that none is above 1; when all of them have become small they are centred anew.

P of intervals is a range of the tree where those that reveal an arm lie
in a row: where neither end of the intervals ever moves back from one arm to the next. On other intervals each round
looks at every arm: take `graph.as_arcs()` there. Graphs that change begin an epoch with each change.

The shifted estimator has no epochs, because it changes the estimate of every arm in every round.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from sidelong._jit import kernel
from sidelong.graphs.arrays import GraphArrays, observe
from sidelong.learners import exp3gpp
from sidelong.learners.epoch_refresh import (
    EPS,
    ETA,
    IN_TREES,
    LAST,
    LEAST,
    LIMIT,
    MARK,
    State,
    begin_epoch,
    init,
    mark_of,
    plant_weights,
    scale_of,
)
from sidelong.learners.exploration import SIZE
from sidelong.learners.interface import About, Asked, Learner, Told
from sidelong.learners.sum_tree import first_leaf, locate, resum
from sidelong.learners.tree_probabilities import fill, have_the_same_sources, sum_over_sources
from sidelong.numerics import DRAWS, exp, uniform

if TYPE_CHECKING:
    from sidelong.learners.exp3gpp import Params
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
        known = begin_epoch(params, state, graph, t)
        trace[_REFRESHED] = 1.0
    elif state.w[0] < _FAINT:
        plant_weights(state)
    base, scale = first_leaf(K), scale_of(state)
    arm = locate(state.w, state.e, scale, uniform(asked.seed, DRAWS, asked.run, t, np.int64(0)), base)  # 7
    arm = min(arm, K - 1)  # a state that was not saved by this learner may have shares behind the last arm
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
        trace[_THETA] = _share(state, scale, arm, own, base)  # 11
        trace[_THETA] += _share(state, scale, j, _observed(state, graph, scale, j, base), base)
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
            state.Ltilde[i] += losses[k] / p[k]  # 9
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
def _share(state: State, scale: float, i: Whole, P: float, base: Whole) -> float:
    """Return what arm i adds to the estimate of theta if it is drawn; 0 / 0 is 0."""
    p = scale * state.w[base + i] + state.e[base + i]
    return p / P / (p + 1.0 / state.mean.size) if P > 0.0 else 0.0


LEARNER = Learner(
    name="exp3.g++",
    chosen_by="refresh='epoch'",
    params=exp3gpp.Params,
    configure=exp3gpp.configure,
    gaps="gap",
    initial="initial",
    init=init,
    draw=draw,
    probability=probability,
    update=update,
    ranges=dict(exp3gpp.LEARNER.ranges) | {"epoch": "any", "free": "sizes", "heap": "any"},
    needs=exp3gpp.LEARNER.needs,
    traces=TRACES,
    settled=("estimator", "late", "refresh"),
    needs_with=exp3gpp.needs,
    module=__name__,
    about=About(
        paper="this package, after Rouyer et al. 2022",
        cite=("rouyer2022near",),
        proved=("adversarial",),
        cost="O(log K) for each revealed arm",
        bound="(1 + sqrt(1 + growth)) sqrt(2 ln K sum_t theta_t) + sqrt(T ln K)",
        theorem="docs/epoch.md",
        published=False,
    ),
)
