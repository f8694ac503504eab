"""Beyond the paper: what the proof of `glance` is made of, on what the learner does (docs/glance-proof.md)."""

from __future__ import annotations

import dataclasses
import math

import numpy as np

from sidelong import graphs, losses, theory
from sidelong.claims.algorithm import ROUNDING, compared, largest
from sidelong.claims.claim import Outcome, Trial, claim
from sidelong.claims.games import Contest, worst_contest
from sidelong.claims.glance_walks import Walk, rounds_of, walks

_PAGE = "docs/glance-proof.md"


@claim("glance-unbiased", "estimates of losses and of what boldness costs have no bias", f"{_PAGE}, 3, 5")
def unbiased(trial: Trial) -> Outcome:
    """Over the draw, the mean of a_i is l_i, that of a_i^2 at most 1 / P_i, and that of J what the bold half loses.

    That is (1 - eps) beta <D - q, l>. By enumeration, with the estimates by which the learner's L and Z grow.
    """
    differences = []
    for _, each in rounds_of(trial, every_draw=True):
        a, J = np.array([drawn.a for drawn in each.others]), np.array([drawn.J for drawn in each.others])
        # L is large beside what it grows by, so that rounding is relative to the largest estimate.
        scale = 1.0 + float(np.abs(a).max())
        lost = float((1 - each.eps) * each.beta * ((each.D - each.q) @ each.losses))
        errors = (
            float(np.abs(each.p @ a - each.losses).max()) / scale,
            float((each.p @ a**2 * each.P).max()) - 1.0,
            abs(float(each.p @ J) - lost) / (1.0 + float(np.abs(J).max())),
        )
        differences.append(largest(errors))
    return compared(differences)


@claim("glance-exploration", "exploration is limited, and the cautious half keeps its share", f"{_PAGE}, 2, 6")
def exploration(trial: Trial) -> Outcome:
    """eps <= 1/2, eps <= 4 eta y' and p >= (1 - eps) ((1 - beta) q + beta D), where beta <= 1 - rho.

    y' is the sum of w_i / P_i without the arm of largest q.
    """
    excess = []
    for walk, each in rounds_of(trial):
        moments = walk.moments(each)
        others = np.delete(moments, each.q.argmax()).sum()
        floor = (1 - each.eps) * ((1 - each.beta) * each.q + each.beta * each.D)
        excess += [
            2 * each.eps,
            each.eps * each.x / (4 * others) if each.eps > 0 else 0.0,
            float((floor / np.maximum(each.p, 1e-300)).max()),
            each.beta / (1 - each.rho),
        ]
    return _ratios(excess, "round")


@claim("glance-costs", "what a round costs and spends is bounded", f"{_PAGE}, 3, 5, 6")
def costs(trial: Trial) -> Outcome:
    """J <= 1 + (1/rho - 1) d' and C <= 4.5 (1 + 2 d' / rho) + 0.15 whatever is drawn, and the mean of S is <= eta y.

    d' is the smaller of the largest number of arms that a play reveals and of the largest acyclic set.
    """
    excess = []
    for walk, each in rounds_of(trial, every_draw=True):
        most = 4.5 * (1 + 2 * walk.d / each.rho) + 0.15
        S = np.array([drawn.S for drawn in each.others])
        excess += [
            max(drawn.J for drawn in each.others) / (1 + (1 / each.rho - 1) * walk.d),
            float(S.max() + 0.3 * each.eps) / most,
            float(each.p @ S) * each.x / float(walk.moments(each).sum()),
        ]
    return _ratios(excess, "round")


@claim("glance-ftrl", "on every path the estimated regret of the cautious half is paid for", f"{_PAGE}, 4")
def ftrl(trial: Trial) -> Outcome:
    """sum <q - u, a> <= 1 + x_1 H + sum (x_(t+1) - x_t) h_(t+1) + sum S for every arm u, after every round."""
    return _ratios([_paid(walk) for walk in walks(trial)], "walk")


def _paid(walk: Walk) -> float:
    """Return the largest regret over its bound, after all rounds but the last."""
    q, a = np.array([each.q for each in walk.rounds]), np.array([each.drawn.a for each in walk.rounds])
    regret = np.cumsum((q * a).sum(axis=1)[:, None] - a, axis=0).max(axis=1)
    x = np.array([each.x for each in walk.rounds])
    h = np.array([walk.entropy(each) for each in walk.rounds])
    S = np.array([each.drawn.S for each in walk.rounds])
    paid = 1 + x[0] * walk.H + np.cumsum(np.diff(x) * h[1:]) + np.cumsum(S)[:-1]
    fell = math.inf if (np.diff(x) < 0).any() else 0.0  # then the inequality is another one
    return max(float((regret[:-1] / paid).max()), fell)


@claim("glance-budget", "on every path boldness costs no more than its budget", f"{_PAGE}, 3")
def budget(trial: Trial) -> Outcome:
    """Z <= 4 + 2 sum C + the largest J so far, after every round: summed here, not read from the learner."""
    excess, empty = [], 0
    for walk in walks(trial):
        spent = np.array([each.spent for each in walk.rounds])
        cost = np.cumsum([each.cost for each in walk.rounds])
        W = 4 + 2 * (cost - [each.cost for each in walk.rounds])
        most = np.maximum(np.maximum.accumulate(spent), 0.0)
        excess.append(float((np.cumsum(spent) / (W + most)).max()))
        empty += sum(each.beta == 0 for each in walk.rounds)
    outcome = _ratios(excess, "walk")
    return dataclasses.replace(outcome, shown=f"{outcome.shown}; nothing was left in {empty:,} rounds")


@claim("glance-regret", "regret against any adversary, of glance", f"{_PAGE}, 9", random=True)
def regret(trial: Trial) -> Outcome:
    """R_T is at most `theory.glance.adversarial`, with and without a graph that changes.

    The horizon is long enough for the bound to be below what random play loses here.
    """
    T, contests = trial.size(500_000, 3_000), []
    shown = {
        "two arms": ([graphs.self_loops(2)], 1, 2),
        "complete graph": ([graphs.complete(6)], 6, 1),
        "complete graph and a star": ([graphs.complete(6), graphs.star(6)], 6, 6),
    }
    for name, (bank, revealed, first) in shown.items():
        K = bank[0].n_arms
        sequence = graphs.scheduled(bank, np.repeat(np.arange(len(bank)), 50))
        most = max(graph.numbers().acyclic.upper for graph in bank)
        bound = theory.glance.adversarial(K=K, T=T, acyclic=most, revealed=revealed, first=first)
        world = losses.constrained(0.9, K, K - 1)
        contests.append(Contest(f"{name}, constrained", sequence, world, T, bound))
    return worst_contest(dataclasses.replace(trial, learner=trial.glance), contests, trial.size(24, 2))


def _ratios(excess: list[float], what: str) -> Outcome:
    worst = largest(excess)
    return Outcome(worst, 1 + ROUNDING, f"ratios up to {worst:.5g}, {len(excess):,} in all, of each {what}", "1")
