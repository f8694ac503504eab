"""Beyond the paper: EXP3-SET for a best arm that moves (learners/exp3set_tracking.py)."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from sidelong.claims.algorithm import ROUNDING, largest
from sidelong.claims.claim import Outcome, Trial, claim
from sidelong.claims.walks import digraphs
from sidelong.graphs import complete
from sidelong.learners.interface import Asked, Told, trace_size

if TYPE_CHECKING:
    import numpy.typing as npt

    from sidelong.graphs import FeedbackGraph

    Floats = npt.NDArray[np.float64]

_SWITCHES = 4


@claim("track-ftrl", "regret against a sequence of arms", "learners/exp3set_tracking.py")
def tracking(trial: Trial) -> Outcome:
    """sum <q_t, x_t> - sum x_(t,k_t) <= B / eta_T + sum (eta_t / 2) <q_t, x_t^2>, for every sequence with S switches.

    On every path, with B = (S + 1) ln(K T) + ln T, for S = 0 to 4 and the best sequence of each S, where the best arm
    moves. With expectations on both sides it is the bound on the regret.
    """
    rng = trial.rng("track-ftrl")
    some = [graph for graph in digraphs(rng, trial.size(12, 6), largest=6) if graph.n_arms > 1]
    ratios = []
    for k, graph in enumerate([*some, complete(3), complete(4)]):
        # It holds for any factor on the rate. A large one makes the right side small, and a fault shows.
        scale = 10.0 if k % 2 or k >= len(some) else 1.0
        ratios += _ratios(trial, graph, trial.size(400, 200), rng, eta_scale=scale)
    worst = largest(ratios)
    return Outcome(worst, 1 + ROUNDING, f"left / right up to {worst:.4g} on {len(some) + 2} walks", "1")


def _ratios(trial: Trial, graph: FeedbackGraph, T: int, rng: np.random.Generator, *, eta_scale: float) -> list[float]:
    """Play, by hand, where the best arm moves every quarter; return left / right for each S."""
    learner, K, A = trial.tracking, graph.n_arms, graph.matrix()
    params = learner.configure(graph, track="unknown", eta_scale=eta_scale)
    state: Any = learner.init(params, graph)
    paid, spread, eta = 0.0, 0.0, math.inf
    least = np.zeros((_SWITCHES + 1, K))  # over sequences that end with an arm, by their switches
    for t in range(1, T + 1):
        q, trace = np.zeros(K), np.zeros(trace_size(learner, K))
        learner.distribution(params, state, graph.arrays, Asked.new(t, q, trace))
        rate = float(trace[learner.traces.index("learning_rate")])
        eta = rate if rate <= eta else math.nan  # it must never grow
        losses = (np.arange(K) != (4 * t // (T + 1)) % K).astype(float)
        arm = int(rng.choice(K, p=q / q.sum()))
        reveals = graph.out_neighbors(arm)
        told = np.append(losses[reveals], np.zeros(K - reveals.size))
        learner.update(params, state, graph.arrays, Told.new(t, arm, q, told, trace))
        x = np.where(A[arm], losses / np.maximum(q @ A, 1e-300), 0.0)
        paid += float(q @ x)
        spread += eta / 2 * float(q @ x**2)
        least[1:] = np.minimum(least[1:], least[:-1].min(axis=1, keepdims=True))
        least += x
    B = (np.arange(_SWITCHES + 1) + 1) * math.log(K * T) + math.log(T)
    return ((paid - least.min(axis=1)) / (B / eta + spread)).tolist()  # type: ignore[no-any-return]
