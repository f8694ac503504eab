"""Section 3 of the paper: Algorithms 1 and 2, the exploration rates, and Proposition 1."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

import numpy as np

from sidelong.claims.claim import Outcome, Trial, claim
from sidelong.claims.walks import remember, rounds_of
from sidelong.graphs import FeedbackGraph
from sidelong.learners.interface import Asked

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    import numpy.typing as npt

    from sidelong.claims.walks import WalkedRound

    Floats = npt.NDArray[np.float64]
    Sets = tuple[npt.NDArray[np.bool_], Floats, npt.NDArray[np.int64]]

#: What rounding may do, relative to the size of a number. Learners sum in another order than these checks.
ROUNDING = 1e-9


def apart(a: npt.ArrayLike, b: npt.ArrayLike) -> float:
    """Return the largest difference of two arrays, relative to what they are about."""
    x, y = np.asarray(a, np.float64), np.asarray(b, np.float64)
    with np.errstate(invalid="ignore"):
        return float(np.where(x == y, 0.0, np.abs(x - y) / np.maximum(np.abs(y), 1e-12)).max())


def largest(values: Iterable[float]) -> float:
    """Return the largest value, or NaN if any is: no fault of a learner may hide behind it, as it does behind `max`."""
    return float(np.max(list(values)))


def compared(differences: list[float]) -> Outcome:
    """Return the outcome of a comparison in many rounds, which only rounding may tell apart."""
    worst = largest(differences)
    return Outcome(worst, ROUNDING, f"largest error {worst:.1g} in {len(differences):,} rounds", f"{ROUNDING:g}")


@claim("alg-1-sums", "Lhat, O and Ltilde sum what was observed", "Algorithm 1")
def estimates(trial: Trial) -> Outcome:
    """Lhat sums the observed losses, O counts them, and Ltilde sums l / P over the rounds after the first K.

    The initial rounds count for Lhat and O with all that they reveal, and for Ltilde with nothing (E24).
    """
    differences = [
        largest(apart(each.own[name], getattr(each, name)) for name in ("Lhat", "O", "Ltilde"))
        for each in rounds_of(trial, played=True)
    ]
    return compared(differences)


@claim("alg-1-gaps", "gap estimates are differences of confidence bounds", "Algorithm 1")
def gap_estimates(trial: Trial) -> Outcome:
    """gap_i = max(0, LCB_i - min_j UCB_j), with the radius sqrt((gamma ln t + ln K) / (2 O_i)), cut to [0, 1]."""
    differences = []
    for each in rounds_of(trial):
        lcb, ucb = confidence(each.Lhat, each.O, each.t, each.rules.gamma)
        # A gap is a difference of two numbers up to 1, so that rounding is relative to 1.
        differences.append(float(np.abs(each.gap - np.maximum(0.0, lcb - ucb.min())).max()))
    return compared(differences)


def confidence(Lhat: Floats, O: Floats, t: int, gamma: float) -> tuple[Floats, Floats]:
    """Return LCB and UCB of all arms, as Algorithm 1 has them."""
    radius = np.sqrt((gamma * np.log(t) + np.log(O.size)) / (2 * O))
    return np.maximum(0.0, Lhat / O - radius), np.minimum(1.0, Lhat / O + radius)


@claim("alg-1-mix", "p mixes exponential weights with exploration", "Algorithm 1")
def weights(trial: Trial) -> Outcome:
    """p_i = (1 - sum_j eps_j) q_i + eps_i, with q_i proportional to exp(-eta Ltilde_i) of the rounds before (E1)."""
    differences = [apart(each.p, (1 - each.eps.sum()) * each.q + each.eps) for each in rounds_of(trial)]
    return compared(differences)


@claim("unbiased", "the loss estimates have no bias", "Algorithm 1; eq. (9)")
def unbiased(trial: Trial) -> Outcome:
    """Over the draw of the arm, the mean of l~_i is l_i and that of its square at most 1 / P_i: by enumeration."""
    differences = []
    for each in rounds_of(trial, played=True):
        excess = float((each.square * each.P).max()) - 1.0
        differences.append(largest([apart(each.estimate, each.losses), excess]))
    return compared(differences)


@claim("prop-1", "the exploration set dominates, and is strongly independent", "Proposition 1")
def proposition_1(trial: Trial) -> Outcome:
    """Every arm i is revealed by an arm of S with no larger gap, and no two arms of S reveal each other.

    S is what Algorithm 2 returns. On all digraphs of two and three arms with all orders of the gaps and all ties,
    and on those of the walks.
    """
    sets = wrong = 0
    for A, gap, S in itertools.chain(small_sets(trial), ((r.A, r.gap, r.S) for r in rounds_of(trial))):
        covers = A[S] & (gap[S][:, None] <= gap[None, :])
        mutual = A[np.ix_(S, S)] & A[np.ix_(S, S)].T & ~np.eye(S.size, dtype=bool)
        wrong += not covers.any(axis=0).all() or bool(mutual.any())
        sets += 1
    return Outcome(wrong, 0, f"{wrong} of {sets:,} sets break it", "0")


def small_sets(trial: Trial) -> Iterator[Sets]:
    """Yield digraphs, gaps and exploration sets: all of two and three arms, with more effort of four."""
    for K in (2, 3, 4)[: 2 + (trial.effort > 1)]:
        places = [(i, j) for i in range(K) for j in range(K) if i != j]
        levels = list(itertools.product(range(K), repeat=K))
        for edges in itertools.product((False, True), repeat=len(places)):
            A = np.eye(K, dtype=bool)
            A[tuple(np.transpose(places))] = edges
            graph = FeedbackGraph.from_matrix(A)
            yield from _explored(trial, graph, A, levels)


def _explored(
    trial: Trial, graph: FeedbackGraph, A: npt.NDArray[np.bool_], levels: list[tuple[int, ...]]
) -> Iterator[Sets]:
    """Show the learner arms that were seen so often that their gaps are as the levels say."""
    learner, K, t = trial.learner, graph.n_arms, 10**9
    params: Any = learner.configure(graph)
    state = learner.init(params, graph)
    p, trace = np.zeros(K), np.zeros(len(learner.traces))
    for level in levels:
        remember(state, np.full(K, 1e8), np.array(level) / K)
        learner.distribution(params, state, graph.arrays, Asked.new(t, p, trace))
        yield A, state.gap.copy(), np.flatnonzero(state.S)


@claim("eq-2-3", "exploration is capped, and follows the gaps", "eqs. (2), (3)")
def exploration_rates(trial: Trial) -> Outcome:
    """eps_i = min(1 / (2 K), sqrt(lambda ln K / (t K^2)) / 2, xi_i), and xi_i = beta ln t / (t gap_i^2) on S.

    Else xi_i = 4 / t^2. A gap of 0 makes xi infinite (E3), xi is at least 4 / t^2 on S too, and all rates sum to
    at most 1/2.
    """
    differences = [largest([apart(each.eps, _rates(each)), float(each.eps.sum()) - 0.5]) for each in rounds_of(trial)]
    return compared(differences)


def _rates(each: WalkedRound) -> Floats:
    floor = min(each.cap, 4 / each.t**2)
    eps = np.full(each.rules.K, floor)
    with np.errstate(divide="ignore"):
        xi = each.rules.beta * np.log(each.t) / (each.t * each.gap[each.S] ** 2)
    eps[each.S] = np.maximum(np.minimum(each.cap, xi), floor)
    return eps


@claim("eq-4", "every arm is observed as often as the proofs need", "eq. (4)")
def observation(trial: Trial) -> Outcome:
    """P_i >= o_i = min(1 / (2 K), sqrt(lambda ln K / (t K^2)) / 2, beta ln t / (t gap_i^2)) for every arm i."""
    ratios = []
    for each in rounds_of(trial):
        with np.errstate(divide="ignore"):
            o = np.minimum(each.cap, each.rules.beta * np.log(each.t) / (each.t * each.gap**2))
        ratios.append(float((o / each.P).max()))
    worst = largest(ratios)
    return Outcome(worst, 1 + ROUNDING, f"largest o / P {worst:.4g} in {len(ratios):,} rounds", "1")
