"""Section 6 and Appendix E of the paper: graphs that change over time."""

from __future__ import annotations

import math
from collections import Counter
from typing import TYPE_CHECKING

import numpy as np

from sidelong import graphs, losses, theory
from sidelong.claims.adversarial import theta
from sidelong.claims.algorithm import apart, compared, largest
from sidelong.claims.claim import Outcome, Trial, claim
from sidelong.claims.games import Contest, worst_contest
from sidelong.claims.walks import digraphs, rounds_of

if TYPE_CHECKING:
    from sidelong.graphs import FeedbackGraph, GraphSequence


@claim("eq-7", "theta is what the learner plays over what it sees", "eq. (7)")
def theta_of_the_learner(trial: Trial) -> Outcome:
    """theta_t = sum_i p_i / P_i with the p that was played and the graph of the round; it lies from 1 to K."""
    differences = []
    for each in rounds_of(trial, played=True):
        outside = [1 - each.theta, each.theta - each.rules.K]
        differences.append(largest([apart(each.theta, theta(each.A, each.p)), *outside]))
    return compared(differences)


@claim("thm-4-rate", "the adaptive learning rate is that of the theorem", "Theorem 4; E22")
def rate(trial: Trial) -> Outcome:
    """eta_t = sqrt(ln K / (2 (K + theta_(K+1) + ... + theta_(t-1)))) in every round t > K, so that it never grows."""
    differences = [
        apart(each.eta, math.sqrt(math.log(each.rules.K) / (2 * each.Theta)))
        for each in rounds_of(trial, played=True)
        if each.rules.rate == "adaptive"
    ]
    return compared(differences)


@claim("lem-10", "theta and the independence number: Lemma 5 of Alon et al. 2015", "Lemma 10, App. E")
def lemma_10(trial: Trial) -> Outcome:
    """sum_i w_i / (w_i + w(N_in(i))) <= 4 alpha ln(4 K / (alpha eps)) if all w_i >= eps and they sum to at most 1."""
    ratios, rng = [], trial.rng("lem-10")
    some = [*digraphs(rng, trial.size(60, 5), largest=9), graphs.transitive_tournament(12), graphs.complete(5)]
    for graph in some:
        A, alpha, K = graph.matrix(), graph.numbers().independence.upper, graph.n_arms
        for eps in (1e-2, 1e-6, 1e-12):
            for w in (rng.dirichlet(np.full(K, 0.3)), 10.0 ** -np.arange(K), 10.0 ** -np.arange(K)[::-1]):
                least = np.maximum(w / w.sum() * (1 - K * eps), eps)
                ratios.append(
                    theta(A, least / max(1.0, least.sum())) / theory.lemma_10(K=K, independence=alpha, floor=eps / 2)
                )
    return Outcome(max(ratios), 1.0, f"left / right up to {max(ratios):.3g} for {len(ratios)} weights", "1")


def _sequences(trial: Trial) -> dict[str, tuple[GraphSequence, list[FeedbackGraph]]]:
    rng = trial.rng("thm-4")
    drawn: list[FeedbackGraph] = []
    while len(drawn) < 4:
        drawn += [graph for graph in digraphs(rng, 10) if graph.n_arms == 6][: 4 - len(drawn)]
    banks = {
        "complete and self-loops in turn": [graphs.complete(6), graphs.self_loops(6)],
        "four digraphs in turn": drawn,
        "a tournament": [graphs.transitive_tournament(6)],
    }
    return {name: (graphs.alternating(bank), bank) for name, bank in banks.items()}


@claim("thm-4-adv", "regret against an oblivious adversary, graphs that change", "Theorem 4, first part", random=True)
def theorem_4_adversarial(trial: Trial) -> Outcome:
    """R_T <= 9 sqrt(ln K ln(K T) sum_t alpha_t) + 2 K, with the adaptive rate, whatever the losses and the graphs."""
    T, contests = trial.size(30_000, 300) // 4 * 4, []
    for name, (sequence, bank) in _sequences(trial).items():
        total = T / len(bank) * sum(graph.numbers().independence.upper for graph in bank)
        bound = theory.theorem_4_adversarial(K=6, T=T, independence_sum=total)
        contests += [
            Contest(f"{name}, constrained", sequence, losses.constrained(0.3, 6, 4), T, bound),
            Contest(f"{name}, lower bound", sequence, losses.lower_bound(graphs.self_loops(6), horizon=T), T, bound),
        ]
    return worst_contest(trial, contests, trial.size(24, 8), rate="adaptive")


@claim("thm-4-sto", "regret in a stochastic world, graphs that change", "Theorem 4, second part; E10", random=True)
def theorem_4_stochastic(trial: Trial) -> Outcome:
    """R_T is at most the sum of 4 beta (ln T)^2 / Delta_i over the alpha~_n smallest gaps, plus n, for any n.

    And terms that do not grow. Those are above 10^9, so that at any horizon one can play the bound says less than
    the first part; its parts are checked as propositions 5 to 8.
    """
    T, contests = trial.size(30_000, 300) // 4 * 4, []
    gaps = np.array([0.1, 0.0, 0.2, 0.3, 0.4, 0.5])
    for name, (sequence, bank) in _sequences(trial).items():
        numbers = Counter(graph.numbers().strong_independence.upper for graph in bank)
        rounds = {alpha: T * count / len(bank) for alpha, count in numbers.items()}
        bound = theory.theorem_4_stochastic(T=T, gaps=gaps, strong_independence=rounds)
        contests.append(Contest(name, sequence, losses.bernoulli(0.3 + gaps), T, bound))
    return worst_contest(trial, contests, trial.size(24, 8), rate="adaptive")
