"""Section 5 and Appendix D of the paper: stochastic worlds, on a fixed graph."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
from scipy import optimize

from sidelong import graphs, losses, theory
from sidelong.claims.chance import least_mean, mean_fails_from
from sidelong.claims.claim import Outcome, Trial, claim
from sidelong.claims.games import Contest, looks, worst_contest

if TYPE_CHECKING:
    from sidelong.claims.games import Look


@claim("prop-5", "t <= c (ln t)^2 in closed form", "Proposition 5, App. D.1")
def proposition_5(_: Trial) -> Outcome:
    """The largest t with t <= c (ln t)^2 is at most 25 c (ln c)^2, for c > e^2. The largest t is found by bisection."""
    ratios = []
    for c in np.geomspace(math.e**2 * 1.0001, 1e15, 60).tolist():
        bound = theory.proposition_5(c=c)
        # sqrt(t) - sqrt(c) ln t is negative at t = e^2 and falls before it rises: one root beyond.
        t = optimize.brentq(lambda t, c=c: math.sqrt(t) - math.sqrt(c) * math.log(t), math.e**2, 1e3 * bound, xtol=1e-9)
        ratios.append(t / bound)
    return Outcome(max(ratios), 1.0, f"t / bound up to {max(ratios):.4g} for {len(ratios)} c", "1")


_SIZES = [
    (K, alpha, lambda_, gap)
    for K in (2, 3, 10, 1000)
    for alpha in {1, 2, K}
    for lambda_ in {1, alpha, K}
    for gap in (1.0, 0.3, 0.01)
]


@claim("prop-6", "what the first t_min rounds cost", "Proposition 6, App. D.1")
def proposition_6(_: Trial) -> Outcome:
    """R_tmin <= (80 beta K / Dmin^2) sqrt(alpha~ / lambda) ln(6 beta^2 K^2 / Dmin^4) + K, by Theorem 2 at t_min.

    40 in the place of 80 would do (E11).
    """
    ratios = []
    for K, alpha, lambda_, gap in _SIZES:
        cost = theory.R_tmin(K=K, gap=gap, strong_independence=alpha, lambda_=lambda_)
        ratios.append(cost / theory.proposition_6(K=K, gap=gap, strong_independence=alpha, lambda_=lambda_))
    worst = max(ratios)
    return Outcome(worst, 1.0, f"R_tmin / bound up to {worst:.4g} for {len(ratios)} sizes; 1/2 would do", "1")


def late_looks(trial: Trial, beta: float) -> tuple[list[list[Look]], float]:
    """Return runs of two arms that reveal themselves, seen in some rounds after t_min, and the gap."""
    gap, key = 0.95 if beta < theory.BETA else 1.0, f"late {beta}"
    if key not in trial.shared:
        first = math.ceil(theory.t_min(K=2, gap=gap, lambda_=2, beta=beta)) + 1
        rounds = [first, first + first // 8, first + first // 4]
        world = losses.bernoulli([(1 - gap) / 2, (1 + gap) / 2])
        graph, runs = graphs.self_loops(2), min(4, trial.size(4, 2))
        trial.shared[key] = looks(trial, graph, world, rounds, runs, rate="fixed", beta=beta)
    return trial.shared[key], gap


def _betas(trial: Trial) -> tuple[float, ...]:
    return (40.0, theory.BETA) if trial.effort > 1 else (40.0,)


@claim("prop-7", "exponential weights after t_min", "Propositions 2, 7, App. D.2", random=True)
def proposition_7(trial: Trial) -> Outcome:
    """After t_min, E[q_i] <= exp(-t eta Delta_i / 2) + (lambda ln K / (4 K^2 beta^2) + 1 / K) / t.

    For every arm i that is not best. With beta = 320, t_min is 4e8 or more; --thorough plays that long. Else with
    beta = 40, for which the proof still goes through: Bernstein's inequality leaves more than half of t Delta
    (E16).
    """
    return _worst_mean(trial, _weight)


def _weight(look: Look, gap: float, beta: float) -> tuple[float, float]:
    """Return the weight of the worse of two arms, and the bound on its mean."""
    L = look.state.Ltilde
    q = math.exp(-look.eta * max(0.0, L[1] - L[0])) / (1 + math.exp(-look.eta * abs(L[1] - L[0])))
    bound = math.exp(-look.t * look.eta * gap / 2) + (2 * math.log(2) / (16 * beta**2) + 0.5) / look.t
    return q, bound


@claim("prop-8", "exploration after t_min", "Propositions 3, 8, App. D.3", random=True)
def proposition_8(trial: Trial) -> Outcome:
    """After t_min, Delta_i E[eps_i] <= 4 beta ln t / (t Delta_i) for an arm in S, and what failures and 4 / t^2 add.

    With beta = 320, t_min is 4e8 or more; --thorough plays that long. Else with beta = 40, where the step of the
    proof by which half of the gap is known is not proved, but seen.
    """
    return _worst_mean(trial, _exploration)


def _exploration(look: Look, gap: float, beta: float) -> tuple[float, float]:
    t, inside = look.t, bool(look.state.S[1])
    failure = 2 * math.log(2) / (16 * beta**2 * t) + 1 / t**3 + 2 / t**2
    bound = inside * 4 * beta * math.log(t) / (t * gap) + gap * (4 / t**2 + failure)
    return gap * float(look.state.eps[1]), bound


def _worst_mean(trial: Trial, quantity: object) -> Outcome:
    worst = (-math.inf, Outcome(math.nan, math.nan, "", ""))
    betas = _betas(trial)
    for beta in betas:
        runs, gap = late_looks(trial, beta)
        for seen in zip(*runs, strict=True):
            pairs = np.array([quantity(each, gap, beta) for each in seen])  # type: ignore[operator]
            mean, bound = (float(x) for x in pairs.mean(axis=0))
            limit = least_mean(pairs[:, 0], trial.risk / (3 * len(betas)))
            shown = f"mean {mean:.3g} in round {seen[0].t:,}, beta = {beta:g}, {len(runs)} runs"
            nearness = mean / bound if limit <= bound else math.inf
            fails_from = mean_fails_from(len(runs), trial.risk / (3 * len(betas)))
            outcome = Outcome(limit, bound, shown, f"{bound:.3g}", fails_from=fails_from)
            worst = max(worst, (nearness, outcome), key=lambda pair: pair[0])
    return worst[1]


@claim("thm-3", "regret in a stochastic world", "Theorem 3; E10", random=True)
def theorem_3(trial: Trial) -> Outcome:
    """R_T is at most the sum of 4 beta (ln T)^2 / Delta_i over a strongly independent set, and terms that do not grow.

    Those are above 10^8, so that at any horizon one can play the bound says less than Theorem 2; its parts are
    checked as propositions 5 to 8.
    """
    T, contests = trial.size(30_000, 300), []
    for name, graph in {
        "self-loops": graphs.self_loops(5),
        "star": graphs.star(6),
        "tournament": graphs.rotational_tournament(5),
    }.items():
        K, numbers = graph.n_arms, graph.numbers()
        gaps = np.linspace(0.1, 0.5, K)
        gaps[1] = 0.0
        heaviest = numbers.weighted_strong_independence(np.divide(1, gaps, out=np.zeros(K), where=gaps > 0)).upper
        alpha = numbers.strong_independence.upper
        bound = theory.theorem_3(T=T, gaps=gaps, strong_independence=alpha, inverse_gap_sum=heaviest)
        contests.append(Contest(name, graph, losses.bernoulli(0.3 + gaps), T, bound))
    return worst_contest(trial, contests, trial.size(24, 8), rate="fixed")
