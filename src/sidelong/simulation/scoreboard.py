"""Many learners on many instances: what each lost, next to the best of them."""

from __future__ import annotations

import concurrent.futures
import multiprocessing
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from sidelong.errors import BinaryLossError, ObservabilityError
from sidelong.machine import cores
from sidelong.simulation.simulate import simulate

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    import numpy.typing as npt

    from sidelong.graphs.graph import FeedbackGraph
    from sidelong.graphs.sequences import GraphSequence
    from sidelong.losses.world import World


class Instance(NamedTuple):
    """A world on a graph, for some rounds."""

    name: str
    graph: FeedbackGraph | GraphSequence
    losses: World
    rounds: int


class Contestant(NamedTuple):
    """A learner with its options, under a name for the table."""

    name: str
    learner: str
    options: Mapping[str, Any] = {}


@dataclass(frozen=True)
class Scoreboard:
    """The mean regret of each contestant on each instance; NaN where it cannot play."""

    contestants: tuple[str, ...]
    instances: tuple[str, ...]
    regret: npt.NDArray[np.float64]  #: (contestants, instances)
    error: npt.NDArray[np.float64]  #: one standard error of each
    arms: npt.NDArray[np.int64]  #: K of each instance

    @property
    def ratio(self) -> npt.NDArray[np.float64]:
        """(regret + K) / (the smallest regret of any contestant + K): K is the price of playing each arm once.

        A world without means can let a learner beat the best arm by K or more: then there is no price to compare
        with, the smallest counts as 1 - K, and a ratio is at least 0.
        """
        least = np.fmin.reduce(self.regret, axis=0)  # NaN only where no contestant can play
        ratio: npt.NDArray[np.float64] = np.maximum(self.regret + self.arms, 0.0) / np.maximum(least + self.arms, 1.0)
        return ratio

    @property
    def worst(self) -> npt.NDArray[np.float64]:
        """The largest ratio of each contestant, over the instances that it can play; NaN if it can play none."""
        worst: npt.NDArray[np.float64] = np.fmax.reduce(self.ratio, axis=1)
        return worst

    @property
    def standing(self) -> list[int]:
        """The contestants, best first: by their worst ratio, those that cannot play everywhere last."""
        missing = np.isnan(self.regret).sum(axis=1)
        worst = np.nan_to_num(self.worst, nan=np.inf)
        return sorted(range(len(self.contestants)), key=lambda k: (bool(missing[k]), float(worst[k])))


def compete(
    contestants: Sequence[Contestant],
    instances: Sequence[Instance],
    runs: int = 8,
    seed: int = 0,
    processes: int | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Scoreboard:
    """Let every contestant play every instance, all with the same losses.

    Contestants go to processes, since each has to be compiled once, which threads could not do at the same time.

    Args:
        contestants: the learners.
        instances: what they play.
        runs: how often.
        seed: the seed of all runs.
        processes: how many at once; as many as there are cores that it may use if not given.
        progress: is called with the number of games done and the number of all.
    """
    # By instance, so that two processes do not begin by compiling the same learner.
    games = [(row, column) for column in range(len(instances)) for row in range(len(contestants))]
    regret, error = np.full((2, len(contestants), len(instances)), np.nan)
    spawn = multiprocessing.get_context("spawn")
    with concurrent.futures.ProcessPoolExecutor(processes or cores(), spawn) as pool:
        futures = {
            pool.submit(_play, contestants[row], instances[column], runs, seed): (row, column) for row, column in games
        }
        try:
            for done, future in enumerate(concurrent.futures.as_completed(futures), 1):
                regret[futures[future]], error[futures[future]] = future.result()
                if progress is not None:
                    progress(done, len(games))
        finally:  # after an error, nobody waits for the games that have not begun
            pool.shutdown(wait=False, cancel_futures=True)
    return Scoreboard(
        tuple(each.name for each in contestants),
        tuple(each.name for each in instances),
        regret,
        error,
        np.array([each.graph.n_arms for each in instances]),
    )


def _play(contestant: Contestant, instance: Instance, runs: int, seed: int) -> tuple[float, float]:
    try:
        result = simulate(
            contestant.learner,
            instance.graph,
            instance.losses,
            instance.rounds,
            runs,
            seed,
            checkpoints=[instance.rounds],
            threads=1,
            progress=False,
            **contestant.options,
        )
    except (ObservabilityError, BinaryLossError):  # it cannot play this instance; any other error is the caller's
        return np.nan, np.nan
    return mean_and_error(result.regret[:, -1])


def mean_and_error(regret: npt.NDArray[np.float64]) -> tuple[float, float]:
    """Return the mean over runs, and its standard error: NaN for one run, which says nothing of others."""
    runs = regret.size
    return float(regret.mean()), float(regret.std(ddof=1) / np.sqrt(runs)) if runs > 1 else np.nan
