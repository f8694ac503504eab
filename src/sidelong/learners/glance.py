r"""glance: plays what is cheapest as far as it knows, on a budget that keeps a bound in both worlds.

The *cautious* half has exponential weights over experts: the K arms, and M advisers if somebody advises. The *bold*
half plays the arm that is cheapest as far as is known, or what an adviser says who is better. What it has lost to the
cautious half is estimated without bias, and it plays as long as that stays below what the cautious half's own bound is
made of. So the theorems hold whatever the bold half is. `docs/glance.md` has the measurements, and
`docs/glance-proof.md` the proof.

::

    L_e = Z_e = G = V = 0,  x = 0.3,  N = K + M
    1   while some arm that is there was not yet asked for, and nobody advises: play the arm that reveals most of those
    2   w_e ~ exp(-L_e / x) over the experts that are there;  q = sum w_e E_e
            E_e is the arm itself, or the distribution over arms that an adviser advises
    3   D = the bold half, a distribution on the arms that are there
    4   W = 4 + 2 G + 2 sqrt(V);  Z = the largest Z_e of those that are there
            rho = 0.002 + 0.018 (1 - s) K / (K - 1) min(1, 300 / W);  beta = (1 - rho) min(1, max(0, 2 (1 - Z / W)))
            p = (1 - beta) q + beta D;  draw
    5   d_i = clip(b + o_i, 0, 1), a prediction, or what line i of the bold half says
    --- told, at any later time and in any order; p, q, d and the advice are kept from the ask ---
    6   a_i = [i seen] l_i / P_i;  a_e = <E_e, a>
    7   mix = -x ln sum w'_e exp(-a_e / x), with the weights w' of now, over the experts that were there
    8   C = max(0, <q, a> - mix)
    9   L_e += a_e for those that were there;  L_e += mix for the absent
    10  J = sum (p_i - q_i) (d_i + [i seen] (l_i - d_i) / P_i);  Z_e += J for those that were there
            V += (the part of J from what was seen)^2
    11  G += C;  c = 1 + ln(N t);  h = the entropy of the weights of all experts
            x += C / ln N while 1000 c / t >= ln N, and then min(C / max(h, 1000 c / t), x / (2 c))
    12  s += (share of arms seen - s) / 50, and the bold half learns

An expert is absent if its arm is, or if it advises nothing, or an arm that is absent. A new one comes with
L = -x ln((1/N) sum exp(-L_e / x)) and Z = 0. A prior and a log are for the bold half alone, and change no theorem.
Line 8 measures what a round costs with the weights at the moment it is told. So late feedback is counted.
With an incumbent, `glance_incumbent` has other lines in the place of 2, 4 and 6 to 11.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from sidelong._jit import kernel
from sidelong.graphs.arrays import GraphArrays, observe
from sidelong.graphs.cover import cover_scratch
from sidelong.learners.glance_advice import follow, judge, trust
from sidelong.learners.glance_bold import (
    FORGETS,
    HID,
    LEADER,
    LEVEL,
    N_KNOWN,
    N_MARKS,
    TOLD,
    UNSEEN,
    WEIGHED,
    foretell,
    know,
    play_boldly,
)
from sidelong.learners.glance_cautious import (
    LEAST,
    LOG_N,
    PREDICTED,
    REVEALED,
    SUM,
    UNEVEN,
    Y,
    Z,
    boldness,
    learn,
    mark_experts,
    weigh,
)
from sidelong.learners.glance_incumbent import ALLOWANCE, allowed_boldness, settle
from sidelong.learners.interface import About, Asked, Learner, Need, Told
from sidelong.learners.looks import most_new
from sidelong.numerics import log, total

if TYPE_CHECKING:
    from collections.abc import Mapping

    from sidelong.graphs.graph import FeedbackGraph
    from sidelong.numerics import Whole

TRACES = ("stability", "learning_rate", "bold_share", "predicted")
_C, _ETA, _BETA, _, _ASKED = range(5)  # the last is the key of the graph that was asked with
_OF_ARMS = ("o", "V", "F", "F2", "f", "slow", "pairs", "was", "bad", "looks", "last", "D", "e", "P", "zeros")
#: What alarms need takes half the place, as a family keeps it for each key: nothing depends on its last digits.
_SMALL: dict[str, Any] = dict.fromkeys(("f", "slow", "bad", "looks", "last"), np.float32) | {"pairs": np.bool_}


class Params(NamedTuple):
    """There is nothing to choose."""

    x_1: float


def configure(graph: FeedbackGraph) -> Params:
    """Return the constants.

    Args:
        graph: the graph that the learner starts on.
    """
    return Params(0.3)  # about the rate of losses in [0, 1]; what a round costs sets the scale soon


class State(NamedTuple):
    """What the next round needs, and scratch to compute it in."""

    L: np.ndarray  #: of the arms and then of the advisers, as w, z, v and there
    w: np.ndarray
    z: np.ndarray  #: by how much Z_e is above the Z of those that are always there
    rate: np.ndarray  #: x and what goes with it; `glance_cautious` names its entries
    o: np.ndarray
    V: np.ndarray  #: the variance with the same weights
    F: np.ndarray  #: the sum of the weights of what was observed, and F2 of those squared
    F2: np.ndarray
    f: np.ndarray
    slow: np.ndarray  #: f of what was seen alone, against the level of longest memory
    pairs: np.ndarray  #: the arms that were ever seen with others
    was: np.ndarray
    bad: np.ndarray
    looks: np.ndarray  #: n_i
    last: np.ndarray  #: the round in which the arm was last seen
    D: np.ndarray  #: as it was when it was last computed
    H: np.ndarray  #: of the own D and of each adviser; see `glance_advice`
    budget: np.ndarray  #: of an incumbent; `glance_incumbent` names its entries
    others: np.ndarray  #: as H; how far other keys of a family trust each
    S: np.ndarray  #: by how much weights by trust have missed the mix loss
    level: np.ndarray
    error: np.ndarray  #: the mean of the squared errors of the levels
    known: np.ndarray  #: what the bold half counts; `glance_bold` names its entries
    marks: np.ndarray  #: named there too
    seen: np.ndarray  #: whether a loss of the arm is known or on its way
    cell: np.ndarray  #: the arm of the cover that each arm belongs to
    T: np.ndarray
    c: np.ndarray
    v: np.ndarray
    e: np.ndarray
    P: np.ndarray  #: of a graph that was not the one asked with
    there: np.ndarray  #: which experts are; all, but while a round is asked or told in which some are not
    order: np.ndarray
    zeros: np.ndarray
    chosen: np.ndarray
    free: np.ndarray
    heap: np.ndarray


def init(params: Params, graph: FeedbackGraph) -> State:
    """Return the state before round 1."""
    K = graph.n_arms
    x = params.x_1
    return State(
        w=np.ones(K),
        H=np.zeros(1),
        others=np.zeros(1),
        S=np.zeros(1),
        budget=np.zeros(2),
        T=np.zeros(1),
        c=np.zeros(1),
        rate=np.array([x, x, 0.0, K, 0.0, 0.0, 0.0, 0.0, log(float(max(K, 2))), log(float(max(K, 2))), 0.0]),
        level=np.zeros(len(FORGETS)),
        error=np.zeros(len(FORGETS)),
        known=np.zeros(N_KNOWN),
        marks=np.array([-1, K] + [0] * (N_MARKS - 2)),
        seen=np.zeros(K, np.bool_),
        cell=np.zeros(K, np.int32),
        there=np.ones(K, np.bool_),
        order=np.arange(K, dtype=np.uint32),
        chosen=np.zeros(K, np.bool_),
        **cover_scratch(K)._asdict(),
        **{name: np.zeros(K, _SMALL.get(name, np.float64)) for name in ("L", "z", "v", *_OF_ARMS)},
    )


@kernel
def _rows(trace: np.ndarray, K: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return P, q, d and D of a round, and its advice."""
    P, q, d = trace[5 : 5 + K], trace[5 + K : 5 + 2 * K], trace[5 + 2 * K : 5 + 3 * K]
    return P, q, d, trace[5 + 3 * K : 5 + 4 * K], trace[5 + 4 * K :]


@kernel
def distribution(params: Params, state: State, graph: GraphArrays, asked: Asked) -> None:
    """Write into `p` the probabilities of round t."""
    p, trace, K = asked.p, asked.trace, asked.p.size
    advised = state.L.size > K
    if (state.marks[UNSEEN] > 0 and not advised) or K == 1:
        arm = _look(state, graph)
        if arm >= 0:
            p[:] = 0.0
            p[arm] = 1.0  # 1
            trace[_ETA] = 0.0
            return
    P, q, d, D, advice = _rows(trace, K)
    some = asked.absent > 0 or advised
    if some:
        mark_experts(state, asked.present, advice)
    has_incumbent = advised and state.budget[ALLOWANCE] > 0.0 and state.there[K]
    if has_incumbent:
        for i in range(K):
            q[i] = advice[i]
    else:
        weigh(state, some, advice, q)
    _predict(state, graph, asked, D, d)
    played = D
    if advised:
        played = state.P
        follow(state, graph, advice, D, played)
    beta = allowed_boldness(state, graph, q, played, d, p, P) if has_incumbent else boldness(state, some)
    for i in range(K):
        p[i] = (1.0 - beta) * q[i] + beta * played[i]  # 4
        state.e[i] = (p[i] - q[i]) * d[i]
    if some:
        state.there[:] = True
    observe(graph, p, P)
    trace[PREDICTED] = total(state.e)
    trace[_ETA] = 1.0 / state.rate[Y]
    trace[_BETA] = beta
    trace[_ASKED] = graph.key


@kernel
def _predict(state: State, graph: GraphArrays, asked: Asked, D: np.ndarray, d: np.ndarray) -> None:
    """Write D, without advice, and d."""
    look = play_boldly(state, graph, asked, D)
    for i in range(d.size):
        d[i] = foretell(state, i)  # 5
    if look >= 0:
        D[:] = 0.0
        D[look] = 1.0


@kernel
def _look(state: State, graph: GraphArrays) -> Whole:
    """Return the arm that reveals most of those never asked for, which now are; -1 if those are all absent."""
    best, most = most_new(graph, state.seen, state.heap)
    for e in range(graph.start[best], graph.stop[best]):
        state.seen[graph.targets[e]] = True
    state.marks[UNSEEN] -= most
    return best if most > 0 or state.seen.size == 1 else -1


@kernel
def update(params: Params, state: State, graph: GraphArrays, told: Told) -> None:
    """Learn the losses that playing `arm` revealed in round t, when the probabilities were `p`."""
    K = told.p.size
    share = (graph.stop[told.arm] - graph.start[told.arm]) / (K - told.absent)
    state.rate[REVEALED] += (share - state.rate[REVEALED]) / min(50.0, 1.0 + state.known[TOLD])  # 12
    A, q, d, D, advice = _rows(told.trace, K)
    P = A
    if told.trace[_ETA] == 0.0:  # what came by line 1 has no weight
        if state.known[WEIGHED] == 0.0 or state.known[TOLD] == 0.0:
            know(state, graph, told, P)
        return
    if told.trace[_ASKED] != float(graph.key):
        P = state.P
        observe(graph, told.p, P)
        for i in range(K):
            if abs(P[i] - A[i]) > 1e-9 * A[i]:
                state.known[WEIGHED] = 1.0
                state.known[HID] = 1.0 if P[i] < A[i] else state.known[HID]
    if told.absent > 0 or state.L.size > K:
        mark_experts(state, told.present, advice)
    if state.L.size > K:
        judge(state, graph, told, D, P, d, advice)
    if state.budget[ALLOWANCE] > 0.0:
        settle(state, graph, told, q, d, A)
        state.there[:] = True
    else:
        told.trace[_C] = learn(state, graph, told, q, P, d, advice)
    know(state, graph, told, P)


def grow(params: Params, state: State) -> tuple[Params, State]:
    """Return the constants and the state with one more arm, the last."""
    K = state.o.size
    wider = {name: np.append(getattr(state, name), np.zeros(1, getattr(state, name).dtype)) for name in _OF_ARMS}
    state = _with_expert(state, K)._replace(
        **wider,
        marks=np.concatenate([[-1, state.marks[UNSEEN] + 1], state.marks[2:-1], [0]]),
        seen=np.append(state.seen, np.zeros(1, np.bool_)),
        cell=np.zeros(K + 1, np.int32),
        order=np.arange(K + 1, dtype=np.uint32),
        chosen=np.zeros(K + 1, np.bool_),
        **cover_scratch(K + 1)._asdict(),
    )
    return params, state


def add_adviser(params: Params, state: State) -> tuple[Params, State]:
    """Return the constants and the state with one more adviser, the last."""
    H = np.append(state.H, state.H.min())
    return params, _with_expert(state, state.L.size)._replace(
        H=H, **{name: np.zeros(H.size) for name in ("others", "T", "c")}
    )


def _with_expert(state: State, place: int) -> State:
    """Return the state with one more expert, who has lost as much as the weights have on average."""
    N, rate = state.L.size, state.rate.copy()
    share = rate[SUM] / N
    rate[SUM] += share
    rate[LOG_N], rate[UNEVEN] = log(max(N + 1.0, 2.0)), 1.0
    L = rate[LEAST] - rate[Y] * log(float(share))
    new = {"L": L, "w": share, "z": -rate[Z], "v": 0.0, "there": True}
    return state._replace(
        rate=rate, **{name: np.insert(getattr(state, name), place, each) for name, each in new.items()}
    )


def tilt(params: Params, state: State, prior: Mapping[int, tuple[float, float]]) -> float:
    """Begin with a prior, by arm the mean loss and the rounds that it counts for; return 0, as no bound changes."""
    for arm, (mean, n) in prior.items():
        if n > 0.0:
            _believe(state, arm, np.array([n]), np.array([mean]), n, mean * (1.0 - mean))
    _begin(state)
    return 0.0


def replay(
    params: Any, state: State, ends: np.ndarray, arms: np.ndarray, losses: np.ndarray, P: np.ndarray, p: np.ndarray
) -> None:
    """Let the bold half know logged losses, before round 1: means with the weights 1 / P."""
    arms, w = arms[: ends[-1] if ends.size else 0], 1.0 / P
    for arm in np.unique(arms).tolist():
        own = np.flatnonzero(arms == arm)
        _believe(state, arm, w[own], losses[own], float((w[own] * w[own]).sum()), 0.0)
    _begin(state)


def _believe(state: State, arm: int, w: np.ndarray, l: np.ndarray, squares: float, spread: float) -> None:
    """Add losses of an arm with their weights; `squares` is the sum of those squared, `spread` the variance of each."""
    before, mean = state.F[arm], state.o[arm] + state.known[LEVEL]
    F = before + w.sum()
    now = (before * mean + (w * l).sum()) / F
    state.V[arm] = (before * (state.V[arm] + (mean - now) ** 2) + (w * (spread + (l - now) ** 2)).sum()) / F
    state.o[arm] = now - state.known[LEVEL]
    state.F[arm], state.F2[arm] = F, state.F2[arm] + squares


def _begin(state: State) -> None:
    """Split what is known of arms into the level of all and what each adds to it, and look for none of them."""
    known = state.F > 0.0
    if known.any():
        more = float((state.F * state.o)[known].sum() / state.F[known].sum())
        state.o[known] -= more
        state.level[:] = state.known[LEVEL] = state.known[LEVEL] + more
        state.known[TOLD] = max(1.0, state.known[TOLD])
        state.marks[UNSEEN] -= np.count_nonzero(known & ~state.seen)
        state.seen[known] = True
        state.marks[LEADER] = int(state.o.argmin())


LEARNER = Learner(
    name="glance",
    params=Params,
    configure=configure,
    init=init,
    distribution=distribution,
    update=update,
    ranges={
        "rate": ("shares", "shares", "any", "shares", "any", *["shares"] * 6),
        "cell": "arms",
        "marks": ("any", "sizes", "sizes", "arms", "counts", "counts"),
        **dict.fromkeys(("V", "F", "F2"), "counts"),
    },
    needs=frozenset({Need.SELF_LOOPS, Need.GRAPH_BEFORE}),
    traces=TRACES,
    kept=("P", "q", "d", "D"),  # P is that of the graph that was asked with, and D without advice
    scratch=("others", "T", "c", "v", "e", "P", "there", "order", "zeros", "chosen", "free", "heap"),
    sleeps=True,
    grow=grow,
    add_adviser=add_adviser,
    budget="budget",
    pooled=("H", "others"),
    trust=trust,
    tilt=tilt,
    replay=replay,
    takes_history=True,
    about=About(
        paper="this package",
        proved=("adversarial", "stochastic"),
        cost="O(K + E)",
        bound="O(sqrt(ln K sum_t theta_t)); O(M ln(K T) ln(M T) / gap)",
        theorem="derived in docs/glance-proof.md",
        published=False,
        guess=True,
    ),
)
