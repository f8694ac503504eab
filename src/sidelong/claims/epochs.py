"""Beyond the paper: what is left of Theorem 4 where rates are refreshed once an epoch (docs/epoch.md)."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from sidelong import graphs, losses, theory
from sidelong.claims.algorithm import ROUNDING, largest
from sidelong.claims.claim import Outcome, Trial, claim
from sidelong.claims.games import Contest, worst_contest
from sidelong.claims.walks import digraphs
from sidelong.learners import catalogue
from sidelong.learners.interface import Asked, Told, drawing

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sidelong.graphs import FeedbackGraph

_GROWTH = 0.2


@claim("thm-4-epochs", "regret against an oblivious adversary, in epochs", "docs/epoch.md", random=True)
def theorem_4_epochs(trial: Trial) -> Outcome:
    """R_T <= (1 + sqrt(1 + d)) sqrt(2 ln K (K + T mas)) + sqrt(T ln K) + K, with refresh="epoch" and growth d.

    Not in the paper, which looks at every arm in every round. Whatever the losses are, and with graphs that change.
    """
    T, contests = trial.size(30_000, 300), []
    shown = {
        "self-loops": [graphs.self_loops(6)],
        "star": [graphs.star(6)],
        "nested": [graphs.nested(6)],
        "directed cycle": [graphs.directed_cycle(6)],
        "cliques and a star": [graphs.cliques([3, 3]), graphs.star(6)],
    }
    for name, bank in shown.items():
        # Each graph for a hundred rounds, so that some epochs end with it and others do not.
        sequence = graphs.scheduled(bank, np.repeat(np.arange(len(bank)), 100))
        most = max(graph.numbers().acyclic.upper for graph in bank)
        bound = theory.theorem_4_epochs(K=6, T=T, theta_sum=most * T, growth=_GROWTH)
        contests += [
            Contest(f"{name}, constrained", sequence, losses.constrained(0.3, 6, 5), T, bound),
            Contest(f"{name}, lower bound", sequence, losses.lower_bound(bank[0], horizon=T), T, bound),
        ]
    return worst_contest(trial, contests, trial.size(24, 8), refresh="epoch", growth=_GROWTH)


@claim("thm-4-epochs-rates", "in epochs the rates are at most a little old", "docs/epoch.md, 3, 4, 5")
def rates(trial: Trial) -> Outcome:
    """In every round eta has not grown, is at most sqrt(1 + d) times Theorem 4's, and exploration is below its cap.

    And what is added to Theta is at most 2 K. That is all that the proof of `thm-4-epochs` asks of an epoch.
    """
    rng, excess = trial.rng("thm-4-epochs-rates"), []
    for graph in digraphs(rng, trial.size(30, 3), largest=9):
        growth = float(rng.uniform(0.0, 1.0))
        for Theta, eta, before, mass, X, t in _walk(trial, graph, growth, rng):
            K, log_K = graph.n_arms, math.log(graph.n_arms)
            fresh = math.sqrt((1 + growth) * log_K / (2 * Theta))
            excess += [eta / fresh, eta / before, mass / min(0.5, math.sqrt(log_K / t) / 2), X / (2 * K)]
    worst = largest(excess)
    return Outcome(worst, 1 + ROUNDING, f"ratios up to {worst:.5g} in {len(excess) // 4:,} rounds", "1")


def _walk(
    trial: Trial, graph: FeedbackGraph, growth: float, rng: np.random.Generator, rounds: int = 150
) -> Iterator[tuple[float, ...]]:
    """Play; yield for each round after the initial ones Theta, eta, eta of the round before, mass, X and t."""
    options = {"refresh": "epoch", "growth": growth, "gamma": 0.2, "beta": 0.01}
    learner = catalogue.choose(trial.learner, options)
    params: Any = catalogue.configure(learner, graph, options)
    draw, state = drawing(learner), learner.init(params, graph)
    p, trace = np.zeros(graph.n_arms), np.zeros(len(learner.traces))
    theta, mass, eta = (learner.traces.index(name) for name in ("theta", "exploration_mass", "learning_rate"))
    before = math.inf
    for t in range(1, rounds + 1):
        Theta = float(state.Theta[0])
        arm = draw(params, state, graph.arrays, Asked.new(t, p, trace, seed=trial.seed))
        learner.update(params, state, graph.arrays, Told.new(t, arm, p, rng.random(graph.n_arms), trace))
        if t > params.initial.size:
            yield Theta, float(trace[eta]), before, float(trace[mass]), float(trace[theta]), t
            before = float(trace[eta])
