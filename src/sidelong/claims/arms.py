"""Beyond the paper: EXP3-SET where arms are absent or come later (learners/absent.py)."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from sidelong.claims.algorithm import ROUNDING, compared, largest
from sidelong.claims.claim import Outcome, Trial, claim
from sidelong.claims.walks import digraphs
from sidelong.graphs.presence import only
from sidelong.learners.interface import Asked, Told, trace_size

if TYPE_CHECKING:
    import numpy.typing as npt

    from sidelong.graphs import FeedbackGraph
    from sidelong.learners.interface import Learner

    Floats = npt.NDArray[np.float64]

_FILE = "learners/absent.py"


class Step(NamedTuple):
    """A round of a walk: what the learner drew from, and what each draw would have added to its sums."""

    there: npt.NDArray[np.bool_]
    p: Floats
    eta: float
    losses: Floats
    arm: int
    added: Floats  #: a row for each arm: what L grows by if it is drawn


def walk(learner: Learner, graph: FeedbackGraph, rounds: int, rng: np.random.Generator, *, in_turn: bool) -> list[Step]:
    """Play, by hand, where arms come and go: at random; or `in_turn`, dear ones beside a cheap one that stays.

    One that forgets what the cheap arm was paid for while a dear one was away would take each dear one for the best.
    """
    K, steps = graph.n_arms, []
    params = learner.configure(graph)
    state: Any = learner.init(params, graph)
    rare = rng.uniform(0.2, 1.0, K)
    for t in range(1, rounds + 1):
        there = np.isin(np.arange(K), [t % (K - 1), K - 1]) if in_turn else rng.random(K) < rare
        there[rng.integers(K)] |= not there.any()
        shown = only(graph, there)
        p, trace = np.zeros(K), np.zeros(trace_size(learner, K))
        learner.distribution(params, state, shown.arrays, Asked.new(t, p, trace, there))
        losses = np.append(np.ones(K - 1), 0.5) if in_turn else (rng.random(K) < rare).astype(float)
        arm, added = int(rng.choice(K, p=p / p.sum())), np.zeros((K, K))
        after = state
        for drawn in np.flatnonzero(there).tolist():
            other = type(state)(*(np.copy(array) for array in state))
            reveals = shown.out_neighbors(drawn)
            told = np.append(losses[reveals], np.zeros(K - reveals.size))
            learner.update(params, other, shown.arrays, Told.new(t, drawn, p, told, trace.copy(), there))
            added[drawn] = other.Lhat - state.Lhat
            after = other if drawn == arm else after
        steps.append(Step(there, p, float(trace[learner.traces.index("learning_rate")]), losses, arm, added))
        state = after
    return steps


def _walks(trial: Trial) -> list[list[Step]]:
    if "absent" not in trial.shared:
        rng = trial.rng("absent")
        some = [graph for graph in digraphs(rng, trial.size(12, 6), largest=6) if graph.n_arms > 2]
        trial.shared["absent"] = [
            walk(trial.exp3_set, graph, trial.size(400, 200), rng, in_turn=k % 2 > 0) for k, graph in enumerate(some)
        ]
    return trial.shared["absent"]  # type: ignore[no-any-return]


@claim("absent-unbiased", "estimates have no bias where arms are absent", _FILE)
def unbiased(trial: Trial) -> Outcome:
    """Over the draw, the mean of what is added for an arm that is there is its loss; no absent arm is drawn.

    By enumeration, with what the sums of EXP3-SET grow by. An absent arm is charged m - v of the round.
    """
    differences = []
    for each in (step for steps in _walks(trial) for step in steps):
        x = np.where(each.there, each.added, 0.0)
        m, v = x @ each.p, each.eta / 2 * (x**2 @ each.p)
        scale = 1.0 + float(np.abs(each.added).max())
        differences.append(float(np.abs((each.p @ x - each.losses)[each.there]).max()) / scale)
        differences.append(float(each.p[~each.there].sum()))
        charged = np.where(each.there[:, None] & ~each.there, each.added - (m - v)[:, None], 0.0)
        differences.append(float(np.abs(charged).max()) / scale)
    return compared(differences)


@claim("absent-ftrl", "regret over the rounds in which an arm is there", _FILE)
def absent(trial: Trial) -> Outcome:
    """For every arm k, the sum of m_t - x_(t,k) - v_t over the rounds in which k is there is at most ln K / eta_T.

    On every path, whatever arms are there: with expectations on both sides it is the bound on the regret.
    """
    ratios = []
    for steps in _walks(trial):
        K = steps[0].p.size
        regret = np.zeros(K)
        for each in steps:
            x = np.where(each.there, each.added[each.arm], 0.0)
            paid = each.p @ x - each.eta / 2 * (each.p @ x**2)
            regret += np.where(each.there, paid - x, 0.0)
            ratios.append(float(regret.max()) * each.eta / math.log(K))
    worst = largest(ratios)
    return Outcome(worst, 1 + ROUNDING, f"left / right up to {worst:.4g} in {len(ratios):,} rounds", "1")
