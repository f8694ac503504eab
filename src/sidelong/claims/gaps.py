"""Lemma 1 and Appendix C of the paper: what the gap estimates are worth."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
from scipy import stats

from sidelong import graphs, losses, theory
from sidelong.claims.algorithm import confidence
from sidelong.claims.chance import least_probability, most_probability, probability_fails_from
from sidelong.claims.claim import Outcome, Trial, claim
from sidelong.claims.games import looks
from sidelong.claims.stochastic import late_looks
from sidelong.claims.walks import remember
from sidelong.learners.interface import Asked

if TYPE_CHECKING:
    from sidelong.claims.games import Look
    from sidelong.graphs import FeedbackGraph

_MEANS = np.array([0.3, 0.5, 0.9])
_TIMES = [4, 8, 20, 100]


def worst_frequency(counts: list[tuple[str, int, int, float]], risk: float) -> Outcome:
    """Return the event that comes nearest to the bound on its probability; each is (name, hits, trials, bound)."""
    each = risk / len(counts)

    def nearness(count: tuple[str, int, int, float]) -> tuple[bool, float]:
        _, hits, trials, bound = count
        return least_probability(hits, trials, each) > bound, hits / trials / bound

    name, hits, trials, bound = max(counts, key=nearness)
    most = most_probability(hits, trials, each)
    shown = f"{hits:,} of {trials:,}, so at most {most:.2g} ({name}); {len(counts)} events"
    fails_from = probability_fails_from(trials, bound, each)
    return Outcome(least_probability(hits, trials, each), bound, shown, f"{bound:.3g}", fails_from=fails_from)


def _seen(trial: Trial, graph: FeedbackGraph, gamma: float) -> list[list[Look]]:
    """Return what is seen of the gaps in runs of a three-armed world; both lemmas look at the same runs."""
    key = f"gaps {graph!r} {gamma}"
    if key not in trial.shared:
        world, runs = losses.bernoulli(_MEANS), trial.size(1500, 50)
        trial.shared[key] = looks(trial, graph, world, _TIMES, runs, gamma=gamma)
    return trial.shared[key]  # type: ignore[no-any-return]


#: The paper's gamma, under which a gap estimate is hardly ever wrong, and ones for which Hoeffding's inequality can be
#: seen at work. The proof of the upper half asks for nothing but gamma > 1, or its bound says nothing.
_GAMMAS = (4.0, 1.5, 1.1)


@claim("lem-1-upper", "gap estimates are hardly ever too large", "Lemma 1, first part, App. C.1", random=True)
def lemma_1_upper(trial: Trial) -> Outcome:
    """P[gap_i > Dbar_i] <= 1 / t^(gamma - 1), where Dbar_i is the gap, and the smallest one for a best arm.

    Printed with a K in the denominator and with >= (E6, E8). Also checked for smaller gamma, which this part allows.
    """
    gap = np.maximum(_MEANS - _MEANS.min(), np.diff(np.sort(_MEANS))[0])
    counts = []
    for graph in (graphs.self_loops(3), graphs.star(3, hub=1)):
        for gamma in _GAMMAS:
            runs = _seen(trial, graph, gamma)
            for k, t in enumerate(_TIMES):
                for i in range(3):
                    hits = sum(not run[k].state.gap[i] <= gap[i] for run in runs)
                    counts.append(
                        (f"gamma = {gamma}, t = {t}", int(hits), len(runs), theory.lemma_1_upper(K=3, t=t, gamma=gamma))
                    )
    return worst_frequency(counts, trial.risk)


@claim("lem-8", "the confidence bounds hold", "Lemma 8, App. C.1", random=True)
def lemma_8(trial: Trial) -> Outcome:
    """P[UCB_i < mu_i] and P[LCB_i > mu_i] are at most 1 / (K t^(gamma - 1)).

    Printed with T for t (E7) and with <= and >= (E8).
    """
    counts = []
    for graph in (graphs.self_loops(3), graphs.star(3, hub=1)):
        for gamma in _GAMMAS:
            runs = _seen(trial, graph, gamma)
            for k, t in enumerate(_TIMES):
                bounds = [confidence(run[k].state.Lhat, run[k].state.O, t, gamma) for run in runs]
                for i in range(3):
                    low = sum(not lcb[i] <= _MEANS[i] for lcb, _ in bounds)
                    high = sum(not ucb[i] >= _MEANS[i] for _, ucb in bounds)
                    name, bound = f"gamma = {gamma}, t = {t}", theory.lemma_8(K=3, t=t, gamma=gamma)
                    counts += [(name, low, len(runs), bound), (name, high, len(runs), bound)]
    return worst_frequency(counts, trial.risk)


def _after(K: int, gap: float, lambda_: float, beta: float) -> int:
    """Return a round that is just late enough for what the paper proves after t_min."""
    return max(5 * K, math.ceil(theory.t_min(K=K, gap=gap, lambda_=lambda_, beta=beta)) + 1)


@claim("lem-9", "the promised rate of observation keeps up", "Lemma 9, App. C.2", random=True)
def lemma_9(trial: Trial) -> Outcome:
    """After t_min, some o_s with s <= t is below beta ln t / (t gap^2) with a chance of at most Lemma 2's series.

    Namely the one from m = t gap^2 / ln t on. With beta = 320, t_min is 4e8 or more. The proof asks nothing of
    beta, so that this is checked with beta = 1/2. As printed, with 1 / m^(gamma - 2), it holds from m = 2 on if
    gamma is 4.
    """
    gap, beta = 0.8, 0.5
    t = _after(2, gap, 2.0, beta)
    rounds = np.unique(np.geomspace(3, t, 16).astype(int)).tolist()
    world = losses.bernoulli([0.1, 0.1 + gap])
    counts = []
    for gamma in (4.0, 3.0):
        hits, runs = np.zeros(2, int), trial.size(150, 20)
        for seen in looks(trial, graphs.self_loops(2), world, rounds, runs, rate="fixed", gamma=gamma, beta=beta):
            o = np.array([[_o(each, i, 2.0, beta) for i in range(2)] for each in seen])
            hits += (o < beta * math.log(t) / (t * gap**2)).any(axis=0)
        bound = theory.lemma_9(t=t, gap=gap, gamma=gamma)
        counts += [
            (f"gamma = {gamma}, t = {t}, {arm}", int(n), runs, bound) for arm, n in zip(("i*", "i"), hits, strict=True)
        ]
    return worst_frequency(counts, trial.risk)


def _o(look: Look, i: int, lambda_: float, beta: float) -> float:
    return theory.o_t(K=look.p.size, t=look.t, gap_estimate=float(look.state.gap[i]), lambda_=lambda_, beta=beta)


@claim("lem-1-lower", "gap estimates are hardly ever less than half", "Lemma 1, second part, App. C.2", random=True)
def lemma_1_lower(trial: Trial) -> Outcome:
    """After t_min, P[gap_i <= Delta_i / 2] <= 2 B + 2 / (K t^(gamma - 1)) + 2 / t^(beta / 10), B of Lemma 9.

    With the lemma's constants t_min is 4e8 or more; --thorough plays that long. Else in the two steps of the proof:
    arms are seen beta ln t / (2 Delta^2) times, with beta = 4, which that step allows; and a learner that has seen
    them so often knows half of the gap, with the paper's constants and with smaller ones.
    """
    counts = [*_enough_seen(trial), *_half_known(trial)]
    if trial.effort > 1:
        counts += _in_one_go(trial)
    return worst_frequency(counts, trial.risk)


def _enough_seen(trial: Trial) -> list[tuple[str, int, int, float]]:
    gap, beta = 0.8, 4.0
    t, runs = _after(2, gap, 2.0, beta), trial.size(150, 3)
    few = beta * math.log(t) / (2 * gap**2)
    world = losses.bernoulli([0.1, 0.1 + gap])
    seen = looks(trial, graphs.self_loops(2), world, [t + 1], runs, rate="fixed", beta=beta)
    counts = np.array([last.state.O for (last,) in seen])
    bound = t ** (-beta / 10) + theory.lemma_9(t=t, gap=gap)
    return [(f"seen too rarely by t = {t:,}", int((counts[:, i] <= few).sum()), runs, bound) for i in range(2)]


def _half_known(trial: Trial) -> list[tuple[str, int, int, float]]:
    rng, learner, graph, gap = trial.rng("lem-1-lower"), trial.learner, graphs.self_loops(3), 0.2
    mu = np.array([0.4, 0.4 + gap, 0.9])
    counts = []
    for gamma, t in ((4.0, 10**6), (4.0, 40), (0.25, 40)):
        beta = 64 * (gamma + 1)
        params = learner.configure(graph, gamma=gamma, beta=beta)
        n, runs, hits = math.ceil(beta * math.log(t) / (2 * gap**2)), trial.size(2000, 100), 0
        state, p, trace = learner.init(params, graph), np.zeros(3), np.zeros(len(learner.traces))
        for mean in rng.binomial(n, mu, (runs, 3)) / n:
            remember(state, np.full(3, float(n)), mean)
            learner.distribution(params, state, graph.arrays, Asked.new(t, p, trace))
            hits += not state.gap[1] > gap / 2
        counts.append((f"gamma = {gamma}, t = {t:,}, just seen enough", hits, runs, 2 / (3 * t**gamma)))
    return counts


def _in_one_go(trial: Trial) -> list[tuple[str, int, int, float]]:
    """Look at runs until after the paper's t_min, where that comes first: two arms, self-loops, a gap of 1."""
    runs, gap = late_looks(trial, theory.BETA)
    t = runs[0][0].t
    hits = sum(not run[0].state.gap[1] > gap / 2 for run in runs)
    return [(f"t = {t:,}", int(hits), len(runs), theory.lemma_1_lower(K=2, t=t, gap=gap))]


_LAWS = [(n, rate) for n in (1, 5, 20, 100, 1000) for rate in (0.01, 0.1, 0.3, 0.5, 0.9, 1.0)]


@claim("thm-5", "few successes are rare: Theorem 8 of Seldin and Lugosi", "Theorem 5, App. C.2; E12")
def theorem_5(_: Trial) -> Outcome:
    """P[a sum of n Bernoulli variables of rate lambda <= n lambda / 2] <= exp(-n lambda / 8), exactly.

    Printed with ">= n lambda", which is what one expects to happen. The theorem is for variables that depend on those
    before, with a rate of at least lambda.
    """
    ratio = max(stats.binom.cdf(math.floor(n * rate / 2), n, rate) * math.exp(n * rate / 8) for n, rate in _LAWS)
    n, rate = 100, 0.5
    printed = float(stats.binom.sf(n * rate - 1, n, rate))
    bound = theory.theorem_5(n=n, rate=rate)
    shown = f"P / bound up to {ratio:.3g}; printed event: {printed:.2g} > {bound:.2g}"
    return Outcome(float(ratio), 1.0, shown, "1", (printed, bound))


@claim("thm-6", "Bernstein's inequality", "Theorem 6, App. D.2")
def theorem_6(_: Trial) -> Outcome:
    """P[S_n >= sqrt(2 nu ln(1 / delta)) + kappa ln(1 / delta) / 3] <= delta.

    Exactly, for sums of centred Bernoulli variables. The theorem is for martingales.
    """
    ratios = []
    for n, rate in _LAWS:
        for delta in (0.5, 0.1, 1e-3, 1e-6):
            deviation = theory.theorem_6(variance=n * rate * (1 - rate), largest=1 - rate, delta=delta)
            if rate < 1.0:
                ratios.append(float(stats.binom.sf(math.ceil(n * rate + deviation - 1e-9) - 1, n, rate)) / delta)
    return Outcome(max(ratios), 1.0, f"P / delta up to {max(ratios):.3g} for {len(ratios)} laws", "1")
