"""Games: many runs of the compiled loop, stopped in a round to look at the learner."""

from __future__ import annotations

import math
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from sidelong.claims.chance import least_mean, mean_fails_from
from sidelong.claims.claim import Outcome
from sidelong.graphs.sequences import GraphSequence, fixed
from sidelong.learners.interface import Asked
from sidelong.machine import cores
from sidelong.simulation import simulate
from sidelong.simulation.loop import loop_for, new_tally

if TYPE_CHECKING:
    import numpy.typing as npt

    from sidelong.claims.claim import Trial
    from sidelong.graphs import FeedbackGraph
    from sidelong.losses import World

    Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Look:
    """A learner before the draw of round t."""

    t: int
    state: Any
    p: Floats
    eta: float


def looks(
    trial: Trial, graph: FeedbackGraph, world: World, rounds: list[int], runs: int, **options: Any
) -> list[list[Look]]:
    """Play runs, on all cores, and return for each the learner in these ascending rounds."""
    learner = trial.learner
    play = loop_for(learner, world, anew=False)
    params = learner.configure(graph, **options)
    bank, seed, K = fixed(graph).arrays, np.uint64(trial.seed), graph.n_arms
    eta = learner.traces.index("learning_rate")

    def one(run: int) -> list[Look]:
        state, tally = learner.init(params, graph), new_tally(learner, K)
        seen, done = [], 0
        for t in rounds:
            play(params, state, bank, world.arrays, seed, run, done + 1, t - 1, tally)
            done = t - 1
            p, trace = np.zeros(K), np.zeros(len(learner.traces))
            learner.distribution(params, state, graph.arrays, Asked.new(t, p, trace))
            kept = type(state)(*(np.copy(array) for array in state)) if t != rounds[-1] else state
            seen.append(Look(t, kept, p, float(trace[eta])))
        return seen

    first = one(0)  # compiles
    with ThreadPoolExecutor(cores()) as pool:
        return [first, *pool.map(one, range(1, runs))]


@dataclass(frozen=True)
class Contest:
    """A game whose regret a theorem bounds. Its means, if it has any, are equally far apart in all rounds."""

    name: str
    graph: FeedbackGraph | GraphSequence
    world: World
    rounds: int
    bound: float
    least: float = 0.0  #: the least regret that is possible: 0 where one arm is best in every round

    @property
    def most(self) -> float:
        """No regret is above this: that of the worst arm in every round."""
        if not self.world.has_means:
            return float(self.rounds)
        return self.rounds * float(np.ptp([self.world.mean(0, 0, 1, arm) for arm in range(self.world.n_arms)]))


def worst_contest(trial: Trial, contests: list[Contest], runs: int, **options: Any) -> Outcome:
    """Play all contests; return the one whose regret comes nearest to its bound.

    A contest fails where a lower confidence limit for its mean regret is above the bound.
    """
    risk = trial.risk / len(contests)
    worst = (-math.inf, Outcome(math.nan, math.nan, "", ""))
    for each in contests:
        result = simulate(
            trial.learner,
            each.graph,
            each.world,
            each.rounds,
            runs,
            trial.seed,
            checkpoints=1,
            progress=False,
            **options,
        )
        regret = result.regret[:, -1]
        limit = least_mean(np.maximum(regret - each.least, 0.0), risk) + each.least
        mean, error = float(regret.mean()), float(regret.std(ddof=1)) / math.sqrt(runs)
        shown = f"regret {mean:,.0f} ± {error:,.0f} on {each.name}, T = {each.rounds:,}; {len(contests)} games"
        allowed = f"{each.bound:,.0f}" if each.bound < 1e6 else f"{each.bound:.2g}"
        needed = (each.bound - each.least) * mean_fails_from(runs, risk) + each.least
        fails_from = needed / each.bound if needed <= each.most else math.inf
        outcome = Outcome(limit, each.bound, shown, allowed, fails_from=fails_from)
        nearness = mean / each.bound if limit <= each.bound else math.inf
        worst = max(worst, (nearness, outcome), key=lambda pair: pair[0])
    return worst[1]
