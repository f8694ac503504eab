r"""EXP3.G++: near-optimal against any adversary and in a stochastic world, without being told which it is in.

C. Rouyer, D. van der Hoeven, N. Cesa-Bianchi, Y. Seldin, "A Near-Optimal Best-of-Both-Worlds Algorithm for Online
Learning with Feedback Graphs", NeurIPS 2022. Algorithm 1, with the exploration set of Algorithm 2.

::

    play each arm once to initialise Lhat and O                                               1
    for t = K + 1, K + 2, ...
        UCB_i = min(1, Lhat_i / O_i + sqrt((gamma ln t + ln K) / (2 O_i)))                    2
        LCB_i = max(0, Lhat_i / O_i - sqrt((gamma ln t + ln K) / (2 O_i)))                    3
        gap_i = max(0, LCB_i - min_j UCB_j)                                                   4
        S = {}; for each arm i by ascending gap: if no arm of S reveals i, add i to S         5
        xi_i  = beta ln t / (t gap_i^2) if i in S, else 4 / t^2                               6
        eps_i = min(1 / (2 K), sqrt(lambda ln K / (t K^2)) / 2, xi_i)                         7
        q_i ~ exp(-eta Ltilde_i),  p_i = (1 - sum_j eps_j) q_i + eps_i                        8
        draw I ~ p, observe the losses l_i of all arms i that I reveals                       9
        P_i = sum of p_j over the arms j that reveal i                                        10
        Ltilde_i += l_i / P_i,  Lhat_i += l_i,  O_i += 1   for each observed i                11
        Theta += theta = sum_i p_i / P_i                   (adaptive rate)                    12

Rate "fixed" has eta = sqrt(ln K / (2 alpha~ t)) and lambda = alpha~, the strong independence number, and is for one
graph. Against any adversary the regret is at most 4 sqrt(alpha~ T ln K) + K (Theorem 2), and in a stochastic world, up
to terms of lower order, the largest sum of 4 beta ln^2 T / gap_i over a strongly independent set (Theorem 3). The
adversarial proof uses only that alpha~ bounds theta: graphs may change if a number is given that does so for each.

Rate "adaptive" has eta = sqrt(ln K / (2 Theta)) and lambda = 1, for graphs that change (Theorem 4). Against any
adversary the regret is at most 9 sqrt(ln K ln(K T) sum_t alpha_t) + 2 K, where alpha_t is the independence number of
the graph of round t; on one graph also 3.83 sqrt(alpha~ T ln K) + K + 2.13 sqrt(K ln K). In a stochastic world it is,
up to terms of lower order and for every n, n plus the largest sum of 4 beta ln^2 T / gap_i over as many arms as the
strong independence number that at most n of the graphs exceed.

Lines 2 to 7 are in `sidelong.learners.exploration`.

Where this departs from the page: q uses Ltilde of the rounds before t (printed: of t), as the proof does. A gap
of 0 makes xi infinite. What the initial rounds reveal on the side counts for Lhat and O, never for Ltilde. An
arm that was not observed yet has LCB 0 and UCB 1. xi is at least 4 / t^2 on S too, which only a tiny beta can
notice and Theorem 4 needs. A single arm is played.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from sidelong._jit import kernel
from sidelong.errors import LearnerError
from sidelong.graphs.arrays import GraphArrays, observe
from sidelong.graphs.cover import cover_scratch
from sidelong.learners.exploration import GAPS, SIZE, estimate_gaps, explore, extremes, set_rates
from sidelong.learners.interface import About, Asked, Learner, Need, Told, bound
from sidelong.learners.options import graph_number, initial_arms, load, number, one_of
from sidelong.learners.outstanding import count_asked, count_told
from sidelong.learners.weights import weigh
from sidelong.numerics import log, total

if TYPE_CHECKING:
    from collections.abc import Mapping

    from sidelong.graphs.graph import FeedbackGraph
    from sidelong.numerics import Whole

_PROVED = ("adversarial", "stochastic")
_NEEDS = frozenset({Need.SELF_LOOPS, Need.GRAPH_BEFORE})
TRACES = ("theta", "exploration_set", "exploration_mass", "learning_rate")
_THETA, _SIZE, _MASS, _ETA = range(4)
COUNTS_OUTSTANDING = False  # whether the rate counts outstanding decisions: a constant, so that it costs nothing
_GROWTH = 0.05


class Params(NamedTuple):
    """The constants, in the paper's symbols."""

    log_K: float
    adaptive: bool
    alpha: float  #: the strong independence number, or a bound on it; of no effect if adaptive
    gamma: float
    beta: float
    lambda_: float
    eta_scale: float
    largest_first: bool
    shifted: bool
    growth: float  #: of the epochs, where there are any
    initial: np.ndarray  #: the arms of the initial rounds, in order


def variant(options: Mapping[str, Any]) -> Learner | None:
    """Return the learner for these options, if it is another: that of the epochs, or that of the guarded rate."""
    if options.get("refresh") == "epoch":
        return load("exp3gpp_epoch")
    return GUARDED if options.get("late") == "guarded" else None


def proved(options: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the worlds with a theorem: the stochastic half of Theorems 3 and 4 is for the paper's constants."""
    as_printed = (
        options.get("estimator", "plain") == "plain"
        and options.get("start", "all") == "all"
        and options.get("beta", 320.0) >= 320.0
        and options.get("gamma", 4.0) >= 4.0
        and options.get("eta_scale", 1.0) == 1.0
        and options.get("exploration") is None
    )
    return _PROVED if as_printed else _PROVED[:1]


def needs(options: Mapping[str, Any]) -> frozenset[Need]:
    """Return what it needs with these options: a rate that is tuned by the graph needs one for all rounds."""
    tuned = options.get("rate") == "fixed" and options.get("strong_independence") is None
    return _NEEDS | {Need.FIXED_GRAPH} if tuned else _NEEDS


def configure(
    graph: FeedbackGraph,
    *,
    rate: str = "adaptive",
    gamma: float = 4.0,
    beta: float = 320.0,
    exploration: float | None = None,
    eta_scale: float = 1.0,
    strong_independence: int | None = None,
    ties: str = "paper",
    start: str = "all",
    estimator: str = "plain",
    refresh: str = "round",
    growth: float = _GROWTH,
    late: str = "plain",
) -> Params:
    """Turn options into constants.

    Args:
        graph: the graph that the learner starts on.
        rate: "adaptive" follows theta and suits changing graphs; "fixed" is tuned by the strong independence number.
        gamma: the width of the confidence intervals (4).
        beta: the rate of exploration once a gap is known (320).
        exploration: lambda, in [1, K], the height of the cap on exploration (1; fixed rate: the strong independence
            number).
        eta_scale: m, a factor on the learning rate (1). Any other keeps the adversarial bound with the constant
            (m + 1/m) sqrt(2) + 1 in place of 2 sqrt(2) + 1.
        strong_independence: for the fixed rate. Computed if not given, and refused if ten seconds are not enough. Any
            number from it up to K is valid and gives the same bounds with that number in its place. If graphs change,
            it must be given, and bound that of each.
        ties: how the exploration set treats arms of equal gap: "paper" takes the lowest index first, "practical"
            the one that reveals most arms that are not covered yet.
        start: the initial rounds: "all" arms once (the paper), a "cover" of the graph, or "none". Theta begins with
            their number, or 1. `docs/epoch.md` has the bound of each for refresh="epoch".
        estimator: "plain" is line 11. "shifted" takes (l_i - 1/2) / P_i + 1/2 for an observed arm and 1/2 for another,
            where P_i is at least eta, and counts those arms by a quarter in Theta. It has no bias either, and a
            fourth of the second moment, so that eta may be larger: with q <= 2 p and exp(-x) <= 1 - x + x^2 for
            x >= -1, the regret against any adversary is at most (2 m + 1/m) sqrt(2 ln K Theta_T) plus the exploration.
        refresh: "round" looks at every arm in each round. "epoch" does so only when the round number or Theta has grown
            by the share `growth`, so that a round costs O(log K) for each revealed arm: for thousands of arms and more.
            See `sidelong.learners.exp3gpp_epoch`. Its estimator is "plain".
        growth: with refresh="epoch", from 0 to 1, by which share the round or Theta grows until all arms are looked at
            again. At 0 they are in every round. `docs/epoch.md` says how the default was measured.
        late: the rate of "plain" does not count late feedback. Its bound under delay can be computed from what
            happened. "guarded" counts the outstanding decisions in its rate: see `sidelong.learners.outstanding`.
    """
    one_of("rate", rate, ("adaptive", "fixed"))
    epochs = one_of("refresh", refresh, ("round", "epoch")) == "epoch"
    guarded = one_of("late", late, ("plain", "guarded")) == "guarded"
    growth = number("growth", growth, least=0, most=1)
    given = {"rate": rate, "estimator": estimator, "refresh": refresh}
    for chosen, instead, others in (
        (
            "late='guarded'",
            "late='plain'",
            {"rate": "adaptive", "estimator": "plain", "refresh": "round"} if guarded else {},
        ),
        ("refresh='epoch'", "refresh='round'", {"estimator": "plain"} if epochs else {}),
    ):
        for name, only in others.items():
            if given[name] != only:
                raise LearnerError(f"{chosen} needs {name}={only!r}, and {name} is {given[name]!r}. Or take {instead}.")
    if not epochs and growth != _GROWTH:
        raise LearnerError(f"growth is that of epochs: give refresh='epoch' too, or leave growth={growth:g} out.")
    K = graph.n_arms
    adaptive = rate == "adaptive"
    alpha = 1.0
    if strong_independence is not None or not adaptive:
        instead = ", or use the adaptive rate, which does not need it"
        alpha = graph_number(graph, "strong_independence", strong_independence, instead)
    return Params(
        log_K=log(float(K)),
        adaptive=adaptive,
        alpha=alpha,
        gamma=number("gamma", gamma, above=0),
        beta=number("beta", beta, above=0),
        lambda_=number(
            "exploration",
            (1.0 if adaptive else alpha) if exploration is None else exploration,
            least=1,
            most=K,
        ),
        eta_scale=number("eta_scale", eta_scale, above=0),
        largest_first=one_of("ties", ties, ("paper", "practical")) == "practical",
        shifted=one_of("estimator", estimator, ("plain", "shifted")) == "shifted",
        growth=growth,
        initial=initial_arms(graph, start),
    )


class State(NamedTuple):
    """What the next round needs, and scratch to compute it in."""

    Ltilde: np.ndarray
    Lhat: np.ndarray
    O: np.ndarray
    mean: np.ndarray  #: Lhat / O
    width: np.ndarray  #: 1 / sqrt(O)
    gap: np.ndarray
    eps: np.ndarray
    P: np.ndarray
    Theta: np.ndarray
    S: np.ndarray  #: whether an arm is in the exploration set
    order: np.ndarray  #: the arms by ascending gap
    ties: np.ndarray  #: whether the gap of an arm in `order` equals that of the one before
    known: np.ndarray  #: what S was made from; `exploration` names its entries
    free: np.ndarray
    heap: np.ndarray
    outstanding: np.ndarray  #: how many decisions are that enter the weights, if that is counted


def init(params: Params, graph: FeedbackGraph) -> State:
    """Return the state before round 1."""
    K = graph.n_arms
    return State(
        Ltilde=np.zeros(K),
        Lhat=np.zeros(K),
        O=np.zeros(K),
        mean=np.zeros(K),
        width=np.full(K, math.inf),
        gap=np.zeros(K),
        eps=np.zeros(K),
        P=np.zeros(K),
        Theta=np.array([max(1.0, float(params.initial.size))]),
        S=np.zeros(K, np.bool_),
        order=np.arange(K, dtype=np.uint32),
        ties=np.ones(K, np.bool_),
        known=np.array([-1, 0, 0]),
        **cover_scratch(K)._asdict(),
        outstanding=np.zeros(1),
    )


@kernel
def distribution(params: Params, state: State, graph: GraphArrays, asked: Asked) -> None:
    """Write into `p` the probabilities of round t."""
    t, p, trace = asked.t, asked.p, asked.trace
    K = p.size
    if t <= params.initial.size or K == 1:
        p[:] = 0.0
        p[params.initial[t - 1] if t <= params.initial.size else 0] = 1.0  # 1
        trace[_THETA] = 1.0
        return
    if COUNTS_OUTSTANDING:
        state.Theta[0] += state.outstanding[0]
    log_t, log_K = log(float(t)), params.log_K
    radius = math.sqrt((params.gamma * log_t + log_K) / 2.0)
    ucb, lcb, least = extremes(state, radius)
    eta = params.eta_scale * math.sqrt(log_K / (2.0 * (state.Theta[0] if params.adaptive else params.alpha * t)))
    weigh(state.Ltilde, least, eta, p)  # before the rates, which a processor computes while it waits for these
    if lcb > ucb or state.known[GAPS] > 0:
        estimate_gaps(state, radius, ucb)
    explore(params, state, graph, lcb > ucb)
    cap = min(1.0 / (2.0 * K), math.sqrt(params.lambda_ * log_K / t) / (2.0 * K))
    floor = min(cap, 4.0 / (float(t) * float(t)))
    xi = params.beta * log_t / t  # times 1 / gap^2
    mass = set_rates(state, cap, floor, xi, max(lcb - ucb, 0.0))
    scale = (1.0 - mass) / total(p)
    for i in range(K):
        p[i] = scale * p[i] + state.eps[i]  # 8
    trace[_SIZE] = state.known[SIZE]
    trace[_MASS] = mass
    trace[_ETA] = eta
    if COUNTS_OUTSTANDING:
        trace[_THETA] = count_asked(state, graph, p)


@kernel
def update(params: Params, state: State, graph: GraphArrays, told: Told) -> None:
    """Learn the losses that playing `arm` revealed in round t, when the probabilities were `p`."""
    t, arm, p, losses, trace = told.t, told.arm, told.p, told.losses, told.trace
    first, count = graph.start[arm], graph.stop[arm] - graph.start[arm]
    in_a_row = graph.contiguous and count > 2
    if t > params.initial.size:
        least = trace[_ETA] if params.shifted else math.inf  # P from which on the estimator is shifted
        observe(graph, p, state.P)  # 10
        if params.shifted:
            for j in range(p.size):
                state.Ltilde[j] += 0.5 if state.P[j] >= least else 0.0
        if in_a_row:
            _learn_range(state, first, losses[:count], least)
        else:
            for k in range(count):
                _learn(state, np.uint64(graph.targets[np.uint64(first + k)]), losses[k], least)
        # Before what the next round needs later: there is one unit for divisions and roots, and they wait in turn.
        for j in range(p.size):
            weight = 0.25 if state.P[j] >= least else 1.0
            state.P[j] = weight * p[j] / state.P[j]  # in place: P has been used
        counted = trace[_THETA]
        trace[_THETA] = total(state.P)
        if COUNTS_OUTSTANDING and p.size > 1:
            count_told(state, counted, trace[_THETA])
        else:
            state.Theta[0] += trace[_THETA]  # 12
    if in_a_row:
        _count_range(state, first, losses[:count])
    else:
        for k in range(count):
            _count(state, np.uint64(graph.targets[np.uint64(first + k)]), losses[k])


@kernel
def release(params: Params, state: State, graph: GraphArrays, asked: Asked) -> None:
    """Learn that round t will never be told: it is outstanding no more."""
    if asked.t > params.initial.size and asked.p.size > 1:
        state.outstanding[0] -= 1.0


@kernel
def _learn(state: State, i: Whole, l: float, least: float) -> None:
    state.Ltilde[i] += (l - (0.5 if state.P[i] >= least else 0.0)) / state.P[i]  # 11


@kernel
def _learn_range(state: State, first: int, losses: np.ndarray, least: float) -> None:
    """Do the same for arms in a row, which become vectors."""
    Ltilde, P = state.Ltilde[first : first + losses.size], state.P[first : first + losses.size]
    for k in range(losses.size):
        Ltilde[k] += (losses[k] - (0.5 if P[k] >= least else 0.0)) / P[k]  # 11


@kernel
def _count(state: State, i: Whole, l: float) -> None:
    Lhat, O = state.Lhat[i] + l, state.O[i] + 1.0
    state.Lhat[i], state.O[i] = Lhat, O
    state.mean[i], state.width[i] = Lhat / O, 1.0 / math.sqrt(O)


@kernel
def _count_range(state: State, first: int, losses: np.ndarray) -> None:
    """Do the same for arms in a row, in short loops: of few arrays the compiler can tell that they do not overlap."""
    count = losses.size
    last = first + count
    Lhat, O = state.Lhat[first:last], state.O[first:last]
    for k in range(count):
        Lhat[k] += losses[k]
    for k in range(count):
        O[k] += 1.0
    # A root and two divisions take long, and eight of each as long as one. So this is done for as many arms as fill
    # vectors, neighbours included, whose numbers stay as they are.
    K = state.O.size
    begin = max(min(first, K - (count + 7) // 8 * 8), 0)
    end = min(begin + (count + 7) // 8 * 8, K)
    Lhat, O, mean, width = state.Lhat[begin:end], state.O[begin:end], state.mean[begin:end], state.width[begin:end]
    for k in range(end - begin):
        width[k] = 1.0 / math.sqrt(O[k]) if O[k] > 0.0 else math.inf
    for k in range(end - begin):
        mean[k] = Lhat[k] / O[k] if O[k] > 0.0 else 0.0


LEARNER = Learner(
    name="exp3.g++",
    params=Params,
    configure=configure,
    init=init,
    distribution=distribution,
    update=update,
    ranges={
        "order": "arms",
        "known": ("any", "sizes", "counts"),
        "initial": "arms",
        "width": "lengths",
        "growth": "shares",
        "Theta": "shares",
        "outstanding": "counts",
    },
    gaps="gap",
    initial="initial",
    needs=_NEEDS,
    traces=TRACES,
    scratch=("P", "free", "heap"),
    variants=({"refresh": "epoch"}, {"late": "guarded"}),
    variant=variant,
    needs_with=needs,
    proved_with=proved,
    about=About(
        paper="Rouyer, van der Hoeven, Cesa-Bianchi, Seldin 2022",
        cite=("rouyer2022near",),
        proved=_PROVED,
        cost="O(K + E)",
        bound="9 sqrt(ln K ln(K T) sum_t alpha_t), and 3.83 sqrt(alpha~ T ln K) on one graph; "
        "sum over at most alpha~ arms of 4 beta ln^2 T / gap",
        theorem='Theorem 4; with rate="fixed", Theorems 2 and 3',
        guess=True,
    ),
)

GUARDED = replace(
    LEARNER,
    module=count_asked.__module__,
    chosen_by="late='guarded'",
    distribution=bound(distribution, "distribution_guarded", COUNTS_OUTSTANDING=True),
    update=bound(update, "update_guarded", COUNTS_OUTSTANDING=True),
    release=release,
    variants=(),
    variant=None,
    settled=("estimator", "growth", "late", "rate", "refresh", "strong_independence"),
    needs_with=None,
    proved_with=None,
    about=About(
        paper="this package, after Rouyer et al. 2022",
        cite=("rouyer2022near",),
        proved=("adversarial",),
        cost="O(K + E)",
        bound="2 sqrt(2 ln K (sum_t theta_t + D)) + sqrt(T ln K), where D sums the outstanding decisions of all rounds",
        theorem="docs/proofs.md",
        published=False,
        guess=True,
    ),
)
