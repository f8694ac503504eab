"""Section 4 and Appendix B of the paper: against any oblivious adversary, on a fixed graph."""

from __future__ import annotations

import itertools
import math
from typing import TYPE_CHECKING

import numpy as np

from sidelong import graphs, losses, theory
from sidelong.claims.algorithm import ROUNDING, apart, compared, largest
from sidelong.claims.claim import Outcome, Trial, claim
from sidelong.claims.games import Contest, worst_contest
from sidelong.claims.walks import digraphs, walks
from sidelong.errors import TheoryError
from sidelong.graphs import FeedbackGraph

if TYPE_CHECKING:
    import numpy.typing as npt

    from sidelong.claims.walks import WalkedRound


@claim("lem-6", "exponential weights: Lemma 7 of Seldin and Slivkins", "Lemma 6, App. B")
def lemma_6(trial: Trial) -> Outcome:
    """sum <q_t, X_t> - min_k sum X_(t,k) <= ln K / eta_T + sum (eta_t / 2) sum_i q_i X_i^2, if eta never grows.

    With the estimates and rates of the learner for X and eta, and with X and eta of any size.
    """
    rng = trial.rng("lem-6")
    excess = [_regret_over_bound([r.eta for r in walk], _steps(walk)) for walk in map(_played, walks(trial))]
    for _ in range(trial.size(200, 10)):
        K, T = int(rng.integers(2, 8)), int(rng.integers(1, 60))
        X = rng.exponential(10 ** rng.uniform(-2, 2), (T, K)) * (rng.random((T, K)) < rng.uniform(0.1, 1))
        eta = np.minimum.accumulate(10 ** rng.uniform(-3, 1, T))
        excess.append(_regret_over_bound(eta.tolist(), X))
    worst = largest(excess)
    return Outcome(worst, 1 + ROUNDING, f"left / right up to {worst:.4g} on {len(excess)} sequences", "1")


def _played(walk: list[WalkedRound]) -> list[WalkedRound]:
    return [each for each in walk if each.played]


def _steps(walk: list[WalkedRound]) -> npt.NDArray[np.float64]:
    return np.diff([each.Ltilde for each in walk], axis=0)


def _regret_over_bound(eta: list[float], X: npt.NDArray[np.float64]) -> float:
    L, moments, suffered = np.zeros(X.shape[1]), [], 0.0
    for rate_, x in zip(eta, X, strict=False):
        w = np.exp(-rate_ * (L - L.min()))
        q = w / w.sum()
        suffered += float(q @ x)
        moments.append(float(q @ x**2))
        L += x
    try:
        bound = theory.lemma_6(K=X.shape[1], learning_rates=eta[: len(X)], second_moments=moments)
    except TheoryError:  # a rate that grows
        return math.inf
    return (suffered - float(L.min())) / bound


def _all_digraphs(K: int) -> list[FeedbackGraph]:
    places = np.flatnonzero(~np.eye(K, dtype=bool).ravel())
    found = []
    for edges in itertools.product((False, True), repeat=places.size):
        A = np.eye(K, dtype=bool)
        A.ravel()[places] = edges
        found.append(FeedbackGraph.from_matrix(A))
    return found


@claim("prop-4", "alpha <= mas <= alpha~", "Proposition 4, App. B")
def proposition_4(trial: Trial) -> Outcome:
    """The largest acyclic set has at most as many arms as the largest strongly independent one.

    And at least as many as the largest independent one. On all digraphs of three arms and on random ones; on undirected
    graphs all three are equal.
    """
    some = [*_all_digraphs(3), *digraphs(trial.rng("prop-4"), trial.size(120, 10), largest=8)]
    wrong = 0
    for graph in some:
        numbers = graph.numbers()
        alpha, mas, strong = (
            n.value or -1 for n in (numbers.independence, numbers.acyclic, numbers.strong_independence)
        )
        wrong += not alpha <= mas <= strong or (graph.is_undirected and alpha != strong)
    return Outcome(wrong, 0, f"{wrong} of {len(some)} digraphs break it", "0")


@claim("lem-7", "theta is at most mas: Lemma 10 of Alon et al. 2014", "Lemma 7, App. B")
def lemma_7(trial: Trial) -> Outcome:
    """theta = sum_i p_i / P_i is at most the size of the largest acyclic set, for every p on every digraph.

    With the learner's own theta, and with distributions that come near to the largest: geometric along an acyclic set.
    """
    ratios, known = [], {}
    for each in itertools.chain.from_iterable(map(_played, walks(trial))):
        key = each.A.tobytes()
        if key not in known:
            known[key] = FeedbackGraph.from_matrix(each.A).numbers().acyclic.upper
        ratios.append(each.theta / known[key])
    rng = trial.rng("lem-7")
    for graph in digraphs(rng, trial.size(60, 5), largest=7):
        A, found = graph.matrix(), graph.numbers().acyclic
        for _ in range(10):
            p = rng.dirichlet(np.full(graph.n_arms, 10 ** rng.uniform(-1, 1)))
            near = np.zeros(graph.n_arms)
            near[rng.permutation(found.certificate)] = 10.0 ** -(2.0 * np.arange(len(found.certificate)))
            ratios += [theta(A, p) / found.upper, theta(A, near / near.sum()) / found.upper]
    worst = largest(ratios)
    return Outcome(worst, 1 + ROUNDING, f"theta / mas up to {worst:.5g} for {len(ratios):,} p", "1")


def theta(A: npt.NDArray[np.bool_], p: npt.NDArray[np.float64]) -> float:
    """Return the sum of p_i / P_i, where 0 / 0 is 0."""
    P = p @ A
    return float((p[P > 0] / P[P > 0]).sum())


@claim("thm-2-rate", "the fixed learning rate is that of the theorem", "Theorem 2")
def rate(trial: Trial) -> Outcome:
    """eta_t = sqrt(ln K / (2 alpha~ t)) in every round t > K."""
    differences = [
        apart(each.eta, math.sqrt(math.log(each.rules.K) / (2 * each.rules.alpha * each.t)))
        for walk in walks(trial)
        for each in walk
        if each.rules.rate == "fixed"
    ]
    return compared(differences)


@claim("thm-2", "regret against an oblivious adversary", "Theorem 2", random=True)
def theorem_2(trial: Trial) -> Outcome:
    """R_T <= 4 sqrt(alpha~ T ln K) + K, with the fixed rate on a fixed digraph, whatever the losses.

    Against adversaries that move all losses together, hide the best arm, switch it, and fool UCB-N.
    """
    T, contests = trial.size(30_000, 300), []
    for name, graph in {
        "self-loops": graphs.self_loops(6),
        "star": graphs.star(6),
        "cliques": graphs.cliques([3, 3, 2]),
        "tournament": graphs.rotational_tournament(5),
        "directed cycle": graphs.directed_cycle(5),
        "complete": graphs.complete(8),
    }.items():
        K, alpha = graph.n_arms, graph.numbers().strong_independence.upper
        bound = theory.theorem_2(K=K, T=T, strong_independence=alpha)
        contests += [
            Contest(f"{name}, constrained", graph, losses.constrained(0.3, K, K - 1), T, bound),
            Contest(f"{name}, lower bound", graph, losses.lower_bound(graph, horizon=T), T, bound),
        ]
    graph, best = graphs.star(6), np.array([[0.5, 0.2, 0.9, 0.9, 0.9, 0.9], [0.5, 0.9, 0.9, 0.2, 0.9, 0.9]])
    bound = theory.theorem_2(K=6, T=T, strong_independence=5)
    for name, world in (("switching", losses.switching(best, every=T // 3)), ("breaker", losses.breaker(graph, T))):
        most = float(world.best_total(trial.seed, 0, [T])[0])
        contests.append(Contest(f"star, {name}", graph, world, T, bound, least=-most))
    return worst_contest(trial, contests, trial.size(24, 8), rate="fixed")
