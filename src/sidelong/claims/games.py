"""Games: many runs of the compiled loop, stopped in a round to look at the learner."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from sidelong.claims.chance import least_mean
from sidelong.claims.claim import Outcome
from sidelong.graphs.sequences import GraphSequence, fixed
from sidelong.simulation import simulate
from sidelong.simulation.loop import loop_for, new_tally

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy.typing as npt

    from sidelong.claims.claim import Setting
    from sidelong.graphs import FeedbackGraph
    from sidelong.losses import World

    Floats = npt.NDArray[np.float64]

__all__ = ["Contest", "Look", "looks", "worst_contest"]


@dataclass(frozen=True)
class Look:
    """A learner before the draw of round t."""

    t: int
    state: Any
    p: Floats
    eta: float


def looks(
    setting: Setting, graph: FeedbackGraph, world: World, rounds: list[int], runs: int, **options: Any
) -> Iterator[list[Look]]:
    """Play runs, and yield for each the learner in these ascending rounds."""
    learner, sequence = setting.learner, fixed(graph)
    play = loop_for(learner, world, anew=False)
    params = learner.configure(graph, **options)
    bank, seed, K = sequence.arrays, np.uint64(setting.seed), graph.n_arms
    eta = learner.TRACES.index("learning_rate")
    for run in range(runs):
        state, tally = learner.init(params, graph), new_tally(K, len(learner.TRACES))
        seen, done = [], 0
        for t in rounds:
            play(params, state, bank, world.arrays, seed, run, done + 1, t - 1, tally)
            done = t - 1
            p, trace = np.zeros(K), np.zeros(len(learner.TRACES))
            learner.distribution(params, state, graph.arrays, t, p, trace)
            kept = type(state)(*(np.copy(array) for array in state)) if t != rounds[-1] else state
            seen.append(Look(t, kept, p, float(trace[eta])))
        yield seen


@dataclass(frozen=True)
class Contest:
    """A game whose regret a theorem bounds."""

    name: str
    graph: FeedbackGraph | GraphSequence
    world: World
    rounds: int
    bound: float


def worst_contest(setting: Setting, contests: list[Contest], runs: int, **options: Any) -> Outcome:
    """Play all contests; return the one whose regret comes nearest to its bound.

    A contest fails where a lower confidence limit for its mean regret is above the bound. The regret of these worlds is
    never negative: one arm is best in every round.
    """
    risk = setting.risk / len(contests)
    worst: tuple[float, float, str, float] = (-math.inf, 0.0, "", 0.0)
    for each in contests:
        result = simulate(
            setting.learner, each.graph, each.world, each.rounds, runs, setting.seed, checkpoints=1, progress=False, **options
        )
        regret = result.regret[:, -1]
        limit = least_mean(np.maximum(regret, 0.0), risk)
        error = regret.std(ddof=1) / math.sqrt(runs)
        shown = f"regret {regret.mean():,.0f} ± {error:,.0f} on {each.name}, T = {each.rounds:,}"
        ratio = max(float(regret.mean()) / each.bound, 1e9 * (limit > each.bound))
        worst = max(worst, (ratio, limit, f"{shown}; {len(contests)} games", each.bound))
    return Outcome(worst[1], worst[3], worst[2], allowed=f"{worst[3]:,.0f}")
