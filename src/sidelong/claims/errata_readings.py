"""Errata of the algorithms and the definitions: what is to be read where the paper slips or is silent.

E9 and E12 are claims of their own, with Lemma 2 and Theorem 5. E26's other parts are notation.
"""

from __future__ import annotations

import itertools
import math
from typing import TYPE_CHECKING

import numpy as np

from sidelong import graphs, theory
from sidelong.claims.algorithm import ROUNDING, apart, confidence, largest, small_sets
from sidelong.claims.claim import Outcome, Trial, claim
from sidelong.claims.walks import rounds_of, walks
from sidelong.learners.interface import Asked, Told

if TYPE_CHECKING:
    import numpy.typing as npt


@claim("e1", "q of a round uses the estimates of the rounds before", "Algorithm 1")
def e1(trial: Trial) -> Outcome:
    """q_t is made of Ltilde_(t-1). Printed with Ltilde_t, which depends on the arm that is drawn from it."""
    differences, spread = [], 0.0
    for each in rounds_of(trial, played=True):
        differences.append(apart(each.p, (1 - each.eps.sum()) * each.q + each.eps))
        after = each.Ltilde + np.where(each.A, each.losses / each.P, 0.0)  # a row for each arm that might be drawn
        w = np.exp(-each.eta * (after - after.min(axis=1, keepdims=True)))
        spread = max(spread, float(np.ptp(w / w.sum(axis=1, keepdims=True), axis=0).max()))
    worst = largest(differences)
    shown = f"largest error {worst:.1g}; printed: q differs by up to {spread:.2g} with the arm drawn"
    return Outcome(worst, ROUNDING, shown, f"{ROUNDING:g}", (spread, 0.0))


@claim("e2", "the smallest UCB may be that of the arm itself", "Algorithm 1, App. C.1")
def e2(trial: Trial) -> Outcome:
    """gap_i is the same with min_j UCB_j, as in Algorithm 1, and with min over j other than i, as in the proof."""
    rng, worst = trial.rng("e2"), 0.0
    for _ in range(trial.size(1000, 100)):
        K = int(rng.integers(2, 7))
        O = rng.integers(1, 10 ** rng.integers(1, 6), K).astype(float)
        lcb, ucb = confidence(rng.random(K) * O, O, 10**4, rng.uniform(0.01, 4))
        others = np.array([np.delete(ucb, i).min() for i in range(K)])
        worst = max(worst, float(np.abs(np.maximum(0, lcb - ucb.min()) - np.maximum(0, lcb - others)).max()))
    return Outcome(worst, 0.0, f"largest difference {worst:.1g}", "0")


@claim("e3", "a gap of 0 makes xi infinite", "eq. (3)")
def e3(trial: Trial) -> Outcome:
    """An arm of the exploration set with gap 0 is explored at the cap. As printed, xi divides by 0."""
    found = [apart(r.eps[i], r.cap) for r in rounds_of(trial) for i in r.S if r.gap[i] == 0]
    worst = largest(found)
    return Outcome(worst, ROUNDING, f"{worst:.1g} from the cap, at most, {len(found):,} times", f"{ROUNDING:g}")


@claim("e4", "a single arm is played", "Section 2, App. B")
def e4(trial: Trial) -> Outcome:
    """With K = 1, where ln K and eta are 0 and the proofs assume K >= 2, the arm is played with probability 1."""
    learner, graph = trial.learner, graphs.complete(1)
    params = learner.configure(graph)
    state, p, trace, wrong = learner.init(params, graph), np.zeros(1), np.zeros(len(learner.traces)), 0
    for t in range(1, 20):
        learner.distribution(params, state, graph.arrays, Asked.new(t, p, trace))
        learner.update(params, state, graph.arrays, Told.new(t, 0, p, np.array([0.5]), trace))
        wrong += not (p[0] == 1.0 and all(np.isfinite(array).all() for array in state))
    return Outcome(wrong, 0, f"{wrong} of 19 rounds wrong", "0")


@claim("e19", "exploration sets are strongly independent, not independent", "Proposition 1, proof")
def e19(trial: Trial) -> Outcome:
    """No two arms of S reveal each other. Printed in the proof: none reveals another."""
    sets = mutual = single = 0
    for A, _, S in small_sets(trial):
        inside = A[np.ix_(S, S)] & ~np.eye(S.size, dtype=bool)
        sets, mutual, single = sets + 1, mutual + bool((inside & inside.T).any()), single + bool(inside.any())
    shown = f"{mutual} of {sets:,} sets have a mutual pair; printed: {single:,} have an edge"
    return Outcome(mutual, 0, shown, "0", (single, 0))


@claim("e20", "an independent set has no edge between distinct arms", "Section 2, Lemmas 7, 10")
def e20(_: Trial) -> Outcome:
    """Independence is about distinct arms. Printed for all i, j in S: with self-loops no set would be independent."""
    different, printed = 0, 0
    families = [graphs.path(5), graphs.directed_cycle(5), graphs.star(5), graphs.rotational_tournament(5)]
    for graph in families:
        A = graph.matrix()
        different += _largest_without(A & ~np.eye(5, dtype=bool)) != graph.numbers().independence.value
        printed = max(printed, _largest_without(A))
    shown = f"{different} of {len(families)} numbers differ from search; printed: alpha would be {printed}"
    return Outcome(different, 0, shown, "0", (1, printed))


def _largest_without(A: npt.NDArray[np.bool_]) -> int:
    """Return the size of the largest set of arms that has none of these edges, by search."""
    subsets = itertools.chain.from_iterable(itertools.combinations(range(len(A)), n) for n in range(len(A) + 1))
    return max(len(S) for S in subsets if not A[np.ix_(S, S)].any())


@claim("e21", "an arm may be played less often than 4 / t^2 at first", "after eq. (3)")
def e21(trial: Trial) -> Outcome:
    """The cap is at least 4 / T^2 once T >= 4 K^(2/3) / (ln K)^(1/3).

    Printed for every t; it fails for K = 10 at t = 11.
    """
    ratios = []
    for K in (2, 3, 10, 100):
        late = [t for t in range(K + 1, 10_000) if _cap(K, t) < 4 / t**2]
        ratios.append(max(late, default=0) / (4 * K ** (2 / 3) / math.log(K) ** (1 / 3)))
    learner, graph, t = trial.learner, graphs.complete(10), 11
    params = learner.configure(graph)
    state, p, trace = learner.init(params, graph), np.zeros(10), np.zeros(len(learner.traces))
    state.Ltilde[1:] = 1e6  # so that nothing but exploration plays them
    learner.distribution(params, state, graph.arrays, Asked.new(t, p, trace))
    shown = f"last t / threshold {max(ratios):.3g}; printed: p = {p[9]:.4f} < 4 / t² = {4 / t**2:.4f}, K = 10, t = {t}"
    return Outcome(max(ratios), 1.0, shown, "1", (4 / t**2, float(p[9])))


def _cap(K: int, t: int) -> float:
    return theory.o_t(K=K, t=t, gap_estimate=0.0, lambda_=1.0)


@claim("e23", "alpha~_n counts rounds, not values", "Theorem 4, second part")
def e23(_: Trial) -> Outcome:
    """alpha~_n is what is left when the n rounds with the largest numbers are struck out.

    Printed: the n-th largest element of a set. With alpha~ = 6 in half of the rounds and 1 in the others, the
    second largest element is 1, but half of the rounds have more.
    """
    T, gaps = 10**30, [0.0, 0.1, 0.1, 0.1, 0.1, 0.1]
    rounds = np.repeat([6, 1], 500)
    printed = int((rounds > sorted(set(rounds.tolist()), reverse=True)[1]).sum())
    kept = {n: int((rounds > np.sort(rounds)[::-1][n]).sum()) for n in (0, 1, 499, 500, 999)}
    worst = max(above - n for n, above in kept.items())
    gain = theory.theorem_4_stochastic(T=T, gaps=gaps, strong_independence={6: T / 2, 1: T / 2}) - (
        theory.theorem_4_stochastic(T=T, gaps=gaps, strong_independence={6: T / 2, 1: T / 2}, as_printed=True)
    )
    shown = f"rounds above alpha~_n, less n: {worst}; printed: {printed} above, n = 1; bounds {gain:.2g} apart"
    return Outcome(worst, 0, shown, "0", (printed, 1))


@claim("e24", "what initial rounds reveal on the side is counted, but not weighed", "Algorithm 1")
def e24(trial: Trial) -> Outcome:
    """After K rounds O counts all that was revealed, at least 1 for each arm, and Ltilde is 0. The paper is silent."""
    wrong, first = 0, [walk[0] for walk in walks(trial)]
    for each in first:
        counted = bool((each.own["O"] == each.O).all() and (each.O >= 1).all())
        wrong += not counted or bool(each.own["Ltilde"].any())
    return Outcome(wrong, 0, f"{wrong} of {len(first)} walks wrong", "0")


@claim("e25", "any rule for ties will do", "Algorithm 2")
def e25(trial: Trial) -> Outcome:
    """Proposition 1 holds if arms of equal gap are taken by index, and if the one that reveals most goes first.

    The paper is silent. On a star whose hub has the last index, the first rule explores all leaves, the second the hub.
    """
    learner, graph = trial.learner, graphs.star(5, hub=4)
    A, wrong, sizes = graph.matrix(), 0, []
    for ties in ("paper", "practical"):
        params = learner.configure(graph, ties=ties)
        state, p, trace = learner.init(params, graph), np.zeros(5), np.zeros(len(learner.traces))
        learner.distribution(params, state, graph.arrays, Asked.new(6, p, trace))
        S = np.flatnonzero(state.S)
        mutual = A[np.ix_(S, S)] & A[np.ix_(S, S)].T & ~np.eye(S.size, dtype=bool)
        wrong += not A[S].any(axis=0).all() or bool(mutual.any())
        sizes.append(S.size)
    return Outcome(wrong, 0, f"{wrong} of 2 rules break it; sets of {sizes[0]} and {sizes[1]} arms", "0")


@claim("e27", "the abstract's alpha is alpha~ in Theorem 2", "Abstract")
def e27(_: Trial) -> Outcome:
    """Theorem 2 has the strong independence number; only Theorem 4 has alpha. For a tournament they are K and 1."""
    numbers = graphs.rotational_tournament(9).numbers()
    alpha, strong = numbers.independence.upper, numbers.strong_independence.lower
    shown = f"tournament of 9 arms: alpha = {alpha}, alpha~ = {strong}"
    return Outcome(float(alpha), float(strong), shown, f"{strong}", (float(strong), float(alpha)))
