"""Beyond the paper: what the proof of `glance` is made of, on what the learner does (docs/glance-proof.md)."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import numpy as np

from sidelong import graphs
from sidelong.claims.algorithm import ROUNDING, compared, largest
from sidelong.claims.claim import Outcome, Trial, claim
from sidelong.claims.glance_walks import Walk, rounds_of, walks
from sidelong.claims.walks import copy_of
from sidelong.learners.glance_cautious import LOG_N, G, Y, Z
from sidelong.learners.glance_incumbent import ALLOWANCE, SPENT
from sidelong.learners.interface import Asked, Told, trace_size

_PAGE = "docs/glance-proof.md"


@claim("glance-unbiased", "estimates of losses and of what boldness costs have no bias", f"{_PAGE}, 2")
def unbiased(trial: Trial) -> Outcome:
    """Over the draw, the mean of a_e is <E_e, l>, that of a_i^2 at most 1 / P_i, and that of J is <p - q, l>.

    By enumeration, with the estimates by which the learner's L and Z grow, for arms and for who advises.
    """
    differences = []
    for _, each in rounds_of(trial, every_draw=True):
        there, K = each.there, each.p.size
        a, J = np.array([drawn.a for drawn in each.others]), np.array([drawn.J for drawn in each.others])
        # L is large beside what it grows by, so that rounding is relative to the largest estimate.
        scale = 1.0 + float(np.abs(a).max()) + float(np.abs(each.L).max())
        errors = (
            float(np.abs((each.p @ a - each.E @ each.losses)[there]).max()) / scale,
            (float((each.p @ a[:, :K] ** 2 * each.P).max()) - 1.0) / scale,
            abs(float(each.p @ J) - float((each.p - each.q) @ each.losses)) / (1.0 + float(np.abs(J).max())),
        )
        differences.append(largest(errors))
    return compared(differences)


@claim("glance-share", "the cautious half keeps its share", f"{_PAGE}, 1")
def share(trial: Trial) -> Outcome:
    """p >= (1 - beta) q >= 0.002 q, in every round."""
    excess = []
    for _, each in rounds_of(trial):
        floor = (1 - each.beta) * each.q
        excess += [float((floor / np.maximum(each.p, 1e-300)).max()), each.beta / (1 - 0.002)]
    return _ratios(excess, "round")


@claim("glance-costs", "what a round costs and spends is bounded", f"{_PAGE}, 2, 3, 4")
def costs(trial: Trial) -> Outcome:
    """J <= 1 + (1/rho - 1) d' and C <= d' / rho whatever is drawn, and the mean of y C is at most sum q_i / P_i / 2.

    d' is the smaller of the largest number of arms that a play reveals and of the largest acyclic set, and rho the
    cautious share of the round, 1 - beta.
    """
    excess = []
    for walk, each in rounds_of(trial, every_draw=True):
        rho = min(0.5, 1 - each.beta)
        C = np.array([drawn.C for drawn in each.others])
        excess += [
            max(drawn.J for drawn in each.others) / (1 + (1 / rho - 1) * walk.d),
            float(C.max()) / (walk.d / rho),
            float(each.p @ C) * each.y / (0.5 * float((each.q / each.P).sum())),
        ]
    return _ratios(excess, "round")


@claim("glance-ftrl", "on every path the estimated regret of the cautious half is paid for", f"{_PAGE}, 1")
def ftrl(trial: Trial) -> Outcome:
    """sum (<q, a> - a_e) <= sum C + y_1 ln N + sum (y_(t+1) - y_t) h_(t+1) for every expert, after every round.

    The first sum is over the rounds in which the expert is there, and h the entropy of the weights of all.
    """
    return _ratios([_paid(walk) for walk in walks(trial)], "walk")


def _paid(walk: Walk) -> float:
    """Return the largest regret over its bound, after all rounds but the last."""
    K = walk.rounds[0].p.size
    a, there = np.array([each.drawn.a for each in walk.rounds]), np.array([each.there for each in walk.rounds])
    mean = np.array([each.q @ each.drawn.a[:K] for each in walk.rounds])
    regret = np.cumsum(np.where(there, mean[:, None] - a, 0.0), axis=0).max(axis=1)
    y, h = np.array([each.y for each in walk.rounds]), np.array([each.entropy for each in walk.rounds])
    C = np.cumsum([each.drawn.C for each in walk.rounds])
    paid = y[0] * math.log(a.shape[1]) + np.cumsum(np.diff(y) * h[1:]) + C[:-1]
    fell = math.inf if (np.diff(y) < 0).any() else 0.0  # then the inequality is another one
    return max(float((regret[:-1] / paid).max()), fell)


@claim("glance-budget", "on every path boldness costs no more than its budget", f"{_PAGE}, 3")
def budget(trial: Trial) -> Outcome:
    """Z <= 4 + 2 sum C + 2 sqrt(V) + the largest J so far, after every round: summed here, not read from the learner.

    For every expert, over the rounds in which it is there.
    """
    excess, empty = [], 0
    for walk in walks(trial):
        spent, cost, V = (
            np.array(each)
            for each in zip(*((each.spent, each.drawn.C, each.noise**2) for each in walk.rounds), strict=True)
        )
        W = 4 + 2 * (np.cumsum(cost) - cost) + 2 * np.sqrt(np.cumsum(V) - V)
        most = np.maximum(np.maximum.accumulate(spent), 0.0)
        Z_e = np.cumsum(np.where([each.there for each in walk.rounds], spent[:, None], 0.0), axis=0)
        excess.append(float((Z_e.max(axis=1) / (W + most)).max()))
        empty += sum(each.beta == 0 for each in walk.rounds)
    outcome = _ratios(excess, "walk")
    return dataclasses.replace(outcome, shown=f"{outcome.shown}; nothing was left in {empty:,} rounds")


@claim("glance-regret", "regret is at most what the learner counts, also with late feedback", f"{_PAGE}, 5")
def regret(trial: Trial) -> Outcome:
    """The mean of the regret is at most that of Z + G + y ln N plus the rounds of line 1, over all draws of a game.

    Two arms and an adviser, six rounds, by enumeration; losses and advice depend on all earlier draws. Feedback comes
    at once, or that of arm 0 three rounds late, or that of arm 1 two rounds late, and all of it in the end.
    """
    excess = [
        _enumerated(trial, graph, late, game)
        for game in range(trial.size(12, 2))
        for graph in (graphs.self_loops(2), graphs.nested(2))
        for late in ((0, 0), (3, 0), (0, 2))
    ]
    worst = largest(excess)
    return Outcome(worst, ROUNDING, f"regret less its bound up to {worst:.5g}, in {len(excess):,} games", "0")


@claim("glance-incumbent", "beyond an incumbent no more than the allowance is lost", f"{_PAGE}, Theorem 3")
def incumbent(trial: Trial) -> Outcome:
    """Z never exceeds the allowance, and the mean of what is lost beyond the incumbent is at most that of Z.

    The games of `glance-regret`, with losses of 1 for each arm that is played more than the incumbent would, and 0 for
    the other, and allowances of 0.5 and 5.
    """
    excess = [
        _enumerated(trial, graph, late, game, allowance)
        for game in range(trial.size(6, 1))
        for graph in (graphs.self_loops(2), graphs.nested(2))
        for late in ((0, 0), (3, 0), (0, 2))
        for allowance in (0.5, 5.0)
    ]
    worst = largest(excess)
    return Outcome(worst, ROUNDING, f"beyond the allowance by up to {worst:.5g}, in {len(excess):,} games", "0")


def _enumerated(trial: Trial, graph: Any, late: tuple[int, int], game: int, allowance: float = 0.0) -> float:
    """Return the largest mean of regret to an expert less its bound, over all draws.

    With an allowance, the adviser is the incumbent, and the result also exceeds 0 if Z ever exceeds the allowance.
    """
    learner, T = trial.glance, 6
    params: Any = learner.configure(graph)
    params, start = learner.add_adviser(params, learner.init(params, graph))  # type: ignore[misc]  # it has one
    size, excess, over = trace_size(learner, 2, 1), np.zeros(3), [-math.inf]
    start.budget[ALLOWANCE] = allowance

    def tell(state: Any, due: list[Any]) -> None:
        for t, arm, p, trace, losses in due:
            told = np.zeros(2)
            arms = graph.out_neighbors(arm)
            told[: arms.size] = losses[arms]
            learner.update(params, state, graph.arrays, Told.new(t, arm, p, told, trace))

    def play(state: Any, t: int, draws: tuple[int, ...], chance: float, lost: Any, waiting: list[Any]) -> None:
        due = [each for when, each in waiting if when < t or t > T]
        waiting = [(when, each) for when, each in waiting if when >= t and t <= T]
        state = copy_of(state)
        tell(state, due)
        over.append(state.budget[SPENT] - allowance)
        if t > T and allowance > 0.0:
            excess[:] += chance * (lost[2] - state.budget[SPENT])
            return
        if t > T:
            counted = state.rate[Z] + state.rate[G] + state.rate[Y] * state.rate[LOG_N]
            excess[:] += chance * (lost - (counted + state.z))
            return
        rng = np.random.default_rng([trial.seed, game, *draws])
        losses, advised = (rng.random(2) < rng.random()).astype(float), rng.random()
        p, trace = np.zeros(2), np.zeros(size)
        trace[-2:] = advised, 1 - advised
        learner.distribution(params, state, graph.arrays, Asked.new(t, p, trace))
        if allowance > 0.0:
            losses = (p > trace[-2:]).astype(float)
        for arm in np.flatnonzero(p > 0).tolist():
            paid = losses[arm] - np.array([*losses, advised * losses[0] + (1 - advised) * losses[1]])
            mine = t + late[arm], (t, arm, p.copy(), trace.copy(), losses)
            play(state, t + 1, (*draws, arm), chance * p[arm], lost + paid, [*waiting, mine])

    play(start, 1, (), 1.0, np.zeros(3), [])
    return max(float(excess.max()), max(over) if allowance > 0.0 else -math.inf)


def _ratios(excess: list[float], what: str) -> Outcome:
    worst = largest(excess)
    return Outcome(worst, 1 + ROUNDING, f"ratios up to {worst:.5g}, {len(excess):,} in all, of each {what}", "1")
