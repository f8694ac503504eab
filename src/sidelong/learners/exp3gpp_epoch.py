r"""EXP3.G++ with refresh="epoch": a round whose cost does not grow with the number of arms.

Between two rounds only the arms that were observed change, and all else changes slowly. So what takes a look at every
arm is done once an *epoch*, and a round in between takes O(log K) steps for each arm that it reveals, and for arcs as
many as there are arms that reveal those. `docs/epoch.md` has the proof of the bound, and the measurements.

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

The weights are centred anew at the begin of an epoch, and within one before they could underflow. P of intervals is a
range of the tree where those that reveal an arm lie in a row: where neither end of the intervals ever moves back from
one arm to the next. On other intervals each round looks at every arm: take `graph.as_arcs()` there.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from sidelong._jit import kernel, rare_kernel
from sidelong.graphs.arrays import GraphArrays, observe
from sidelong.learners import exp3gpp
from sidelong.learners.exp3gpp import NAME, NEEDS  # noqa: F401  # the same learner, on another schedule
from sidelong.learners.exploration import estimate_gaps, explore, extremes, set_rates
from sidelong.learners.interface import About, Need
from sidelong.learners.options import number, one_of
from sidelong.learners.sum_tree import first_leaf, locate, new_tree, plant, range_sum, resum
from sidelong.numerics import DRAWS, exp, log, smallest, total, uniform

if TYPE_CHECKING:
    from collections.abc import Mapping

    from sidelong.graphs.graph import FeedbackGraph
    from sidelong.numerics import Whole

TITLE = "exp3.g++ with refresh='epoch'"
ABOUT = About(
    paper="this package, after Rouyer et al. 2022",
    proved=("adversarial",),
    cost="O(log K) for each revealed arm",
    bound="(1 + sqrt(1 + growth)) sqrt(2 ln K sum_t theta_t) + sqrt(T ln K)",
)
TRACES = ("theta", "exploration_set", "exploration_mass", "learning_rate", "refreshed")
_THETA, _SIZE, _MASS, _ETA, _REFRESHED = range(5)

#: The weights are centred anew when their sum falls below this: the smallest ones that matter are still normal numbers.
_FAINT = 1e-100


class Params(NamedTuple):
    """The constants, in the paper's symbols."""

    growth: float
    log_K: float
    adaptive: bool
    alpha: float  #: the strong independence number, or a bound on it; of no effect if adaptive
    gamma: float
    beta: float
    lambda_: float
    eta_scale: float
    largest_first: bool
    initial: np.ndarray  #: the arms of the initial rounds, in order


def needs(options: Mapping[str, Any]) -> frozenset[Need]:
    """Return what it needs with these options: a rate that is tuned by the graph needs one for all rounds."""
    return exp3gpp.needs(options)


def configure(
    graph: FeedbackGraph,
    *,
    refresh: str = "epoch",
    growth: float = 0.05,
    rate: str = "adaptive",
    preset: str = "paper",
    gamma: float = 4.0,
    beta: float = 320.0,
    exploration: float | None = None,
    eta_scale: float = 1.0,
    strong_independence: int | None = None,
    ties: str = "paper",
    start: str = "all",
) -> Params:
    """Turn options into constants.

    Args:
        graph: the graph that the learner starts on.
        refresh: "epoch".
        growth: from 0 to 1, by which share the round or Theta grows until all arms are looked at again (0.05).
        rate: "adaptive" follows theta and suits changing graphs; "fixed" is tuned by the strong independence number.
        preset: "paper": the practical one has no epochs.
        gamma: the width of the confidence intervals (4).
        beta: the rate of exploration once a gap is known (320).
        exploration: lambda, in [1, K], the height of the cap on exploration (1; fixed rate: the strong independence
            number).
        eta_scale: m, a factor on the learning rate (1).
        strong_independence: for the fixed rate; see `sidelong.learners.exp3gpp.configure`.
        ties: how the exploration set treats arms of equal gap: "paper" takes the lowest index first, "practical"
            the one that reveals most arms that are not covered yet.
        start: the initial rounds: "all" arms once (the paper), a "cover" of the graph, or "none".
    """
    one_of("refresh", refresh, ("epoch",))
    paper = exp3gpp.configure(
        graph,
        rate=rate,
        preset=preset,
        gamma=gamma,
        beta=beta,
        exploration=exploration,
        eta_scale=eta_scale,
        strong_independence=strong_independence,
        ties=ties,
        start=start,
    )
    shared = {name: value for name, value in paper._asdict().items() if name in Params._fields}
    return Params(growth=number("growth", growth, least=0, most=1), **shared)


class State(NamedTuple):
    """What the next round needs, and room to compute it in."""

    Ltilde: np.ndarray
    Lhat: np.ndarray
    O: np.ndarray
    mean: np.ndarray  #: Lhat / O
    Theta: np.ndarray
    w: np.ndarray  #: a tree over exp(-eta (Ltilde_i - least))
    e: np.ndarray  #: a tree over eps
    rates: np.ndarray  #: of the epoch: eta, least, the sum of eps, the largest Theta
    epoch: np.ndarray  #: the last round of the epoch, the key of its graph, whether its P are ranges of the tree
    width: np.ndarray  #: 1 / sqrt(O), and all below: as they were when the epoch began
    gap: np.ndarray
    eps: np.ndarray
    S: np.ndarray  #: whether an arm is in the exploration set
    order: np.ndarray  #: the arms by ascending gap
    ties: np.ndarray  #: whether the gap of an arm in `order` equals that of the one before
    known: np.ndarray  #: the key of the graph that S was made for, the size of S, and how many gaps were positive
    p: np.ndarray  #: room
    P: np.ndarray
    free: np.ndarray
    heap: np.ndarray


_RATE, _LEAST, _EPS, _LIMIT = range(4)
_LAST, _KEY, _RANGES = range(3)


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
        free=np.zeros(K + 1, np.uint32),
        heap=np.zeros(K, np.int64),
        **vectors,
    )


@kernel
def draw(
    params: Params,
    state: State,
    graph: GraphArrays,
    t: int,
    seed: int,
    run: int,
    p: np.ndarray,
    trace: np.ndarray,
) -> int:
    """Return the arm I of round t; write into `p` not p, but P of the arms that I reveals, one after the other."""
    K = state.mean.size
    trace[_REFRESHED] = 0.0
    if t <= params.initial.size or K == 1:
        arm: Any = np.int64(params.initial[t - 1] if t <= params.initial.size else 0)  # 1
        for k in range(graph.stop[arm] - graph.start[arm]):
            p[k] = 1.0
        trace[_THETA] = 1.0
        return arm  # type: ignore[no-any-return]
    theta = -1.0
    if t > state.epoch[_LAST] or state.Theta[0] > state.rates[_LIMIT] or graph.key != state.epoch[_KEY]:
        theta = _refresh(params, state, graph, t)
        trace[_REFRESHED] = 1.0
    elif state.w[0] < _FAINT:
        _weigh(state)
    base = first_leaf(K)
    scale = _scale(state)
    arm = locate(state.w, state.e, scale, uniform(seed, DRAWS, run, t, np.int64(0)), base)  # 7
    if graph.contiguous and state.epoch[_RANGES] == 0:
        _fill(state, scale)
        observe(graph, state.p, state.P)
    own = 1.0
    first = graph.start[arm]
    for k in range(graph.stop[arm] - first):
        i = np.int64(graph.targets[first + k])
        before = np.int64(graph.targets[first + k - 1]) if k > 0 else i
        again = k > 0 and graph.contiguous and state.epoch[_RANGES] == 1 and _alike(graph, i, before)
        p[k] = p[k - 1] if again else _observed(state, graph, scale, i, base)  # 8
        own = p[k] if i == arm else own
    if theta < 0.0:
        j = np.int64(uniform(seed, DRAWS, run, t, np.int64(1)) * K)
        theta = _share(state, scale, arm, own, base)  # 11
        theta += _share(state, scale, j, _observed(state, graph, scale, j, base), base)
    trace[_THETA] = theta
    trace[_SIZE] = state.known[1]
    trace[_MASS] = state.rates[_EPS]
    trace[_ETA] = state.rates[_RATE]
    return arm  # type: ignore[no-any-return]


@kernel
def probability(params: Params, state: State, graph: GraphArrays, t: int, arm: int) -> float:
    """Return the probability of an arm in round t, which has been drawn and not been told yet."""
    if t <= params.initial.size or state.mean.size == 1:
        return 1.0 if arm == (params.initial[t - 1] if t <= params.initial.size else 0) else 0.0
    leaf = first_leaf(state.mean.size) + arm
    return _scale(state) * state.w[leaf] + state.e[leaf]  # type: ignore[no-any-return]  # 6


@kernel
def update(
    params: Params,
    state: State,
    graph: GraphArrays,
    t: int,
    arm: int,
    p: np.ndarray,
    losses: np.ndarray,
    trace: np.ndarray,
) -> None:
    """Learn the losses that playing `arm` revealed in round t; `p` and `trace` are what `draw` wrote for this one."""
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
            state.w[np.uint64(base) + i] = exp(-state.rates[_RATE] * (state.Ltilde[i] - state.rates[_LEAST]))
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


@rare_kernel
def _refresh(params: Params, state: State, graph: GraphArrays, t: int) -> float:
    """Begin an epoch with round t; return theta."""
    K = state.mean.size
    last = np.int64(math.floor((1.0 + params.growth) * t))
    state.epoch[_LAST] = last  # 2
    state.epoch[_KEY] = graph.key
    state.epoch[_RANGES] = graph.contiguous and _in_a_row(graph)
    state.rates[_LIMIT] = (1.0 + params.growth) * state.Theta[0]
    for i in range(K):
        state.width[i] = 1.0 / math.sqrt(state.O[i]) if state.O[i] > 0.0 else math.inf
    log_K = params.log_K
    radius = math.sqrt((params.gamma * log(float(t)) + log_K) / 2.0)
    ucb, lcb, _ = extremes(state, radius)
    if lcb > ucb or state.known[2] > 0:
        estimate_gaps(state, radius, ucb)
    explore(params, state, graph, lcb > ucb)  # 3
    cap = min(1.0 / (2.0 * K), math.sqrt(params.lambda_ * log_K / last) / (2.0 * K))  # 4
    floor = min(cap, 4.0 / (float(last) * float(last)))
    xi = params.beta * min(log(float(t)) / t, log(float(last)) / last)  # ln t / t has no minimum but at the ends
    state.rates[_EPS] = set_rates(state, cap, floor, xi, max(lcb - ucb, 0.0))
    Theta = state.Theta[0] if params.adaptive else params.alpha * t
    state.rates[_RATE] = params.eta_scale * math.sqrt(log_K / (2.0 * Theta))  # 5
    plant(state.e, state.eps)
    _weigh(state)
    _fill(state, _scale(state))
    observe(graph, state.p, state.P)
    for i in range(K):
        state.P[i] = state.p[i] / state.P[i]
    return total(state.P)


@rare_kernel
def _weigh(state: State) -> None:
    """Make the tree of the weights, centred at the smallest Ltilde."""
    eta, least = state.rates[_RATE], smallest(state.Ltilde)
    state.rates[_LEAST] = least
    for i in range(state.p.size):
        state.p[i] = exp(-eta * (state.Ltilde[i] - least))
    plant(state.w, state.p)


@kernel
def _scale(state: State) -> float:
    return (1.0 - state.rates[_EPS]) / state.w[0]  # type: ignore[no-any-return]


@kernel
def _fill(state: State, scale: float) -> None:
    base = first_leaf(state.p.size)
    for i in range(state.p.size):
        state.p[i] = scale * state.w[base + i] + state.e[base + i]


@kernel
def _observed(state: State, graph: GraphArrays, scale: float, i: Whole, base: Whole) -> float:
    """Return P of an arm."""
    low, high = graph.in_start[i], graph.in_stop[i]
    if not graph.contiguous:
        s = 0.0
        for k in range(np.uint64(low), np.uint64(high)):
            leaf = np.uint64(base) + np.uint64(graph.sources[k])
            s += scale * state.w[leaf] + state.e[leaf]
        return s
    if state.epoch[_RANGES] == 0:
        return state.P[i]  # type: ignore[no-any-return]
    return scale * range_sum(state.w, base + low, base + high) + range_sum(state.e, base + low, base + high)


@kernel
def _share(state: State, scale: float, i: Whole, P: float, base: Whole) -> float:
    p = scale * state.w[base + i] + state.e[base + i]
    return p / P / (p + 1.0 / state.mean.size)  # type: ignore[no-any-return]


@kernel
def _alike(graph: GraphArrays, i: Whole, j: Whole) -> bool:
    return graph.in_start[i] == graph.in_start[j] and graph.in_stop[i] == graph.in_stop[j]  # type: ignore[no-any-return]


@kernel
def _in_a_row(graph: GraphArrays) -> bool:
    """Tell whether the arms that reveal an arm are those from in_start to in_stop: intervals that never move back."""
    for k in range(1, graph.start.size):
        if graph.start[k] < graph.start[k - 1] or graph.stop[k] < graph.stop[k - 1]:
            return False
    return True
