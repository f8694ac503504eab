"""Many learners in many contests, each on all cores that there are."""

from __future__ import annotations

import concurrent.futures
import multiprocessing
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from sidelong.errors import BinaryLossError, ObservabilityError
from sidelong.machine import cores
from sidelong.simulation import simulate
from sidelong.simulation.scoreboard import Scoreboard, mean_and_error

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from sidelong.graphs import FeedbackGraph, GraphSequence
    from sidelong.losses.world import World


class Contest(NamedTuple):
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


def compete(
    contestants: Sequence[Contestant],
    contests: Sequence[Contest],
    runs: int = 8,
    seed: int = 0,
    processes: int | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Scoreboard:
    """Let every contestant play every contest, all with the same losses.

    Contestants go to processes, since each has to be compiled once, which threads could not do at the same time.

    Args:
        contestants: the learners.
        contests: what they play.
        runs: how often.
        seed: the seed of all runs.
        processes: how many at once; as many as there are cores that it may use if not given.
        progress: is called with the number of games done and the number of all.
    """
    # By contest, so that two processes do not begin by compiling the same learner.
    games = [(row, column) for column in range(len(contests)) for row in range(len(contestants))]
    regret, error = np.full((2, len(contestants), len(contests)), np.nan)
    spawn = multiprocessing.get_context("spawn")
    with concurrent.futures.ProcessPoolExecutor(processes or cores(), spawn) as pool:
        futures = {
            pool.submit(_play, contestants[row], contests[column], runs, seed): (row, column) for row, column in games
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
        tuple(each.name for each in contests),
        regret,
        error,
        np.array([each.graph.n_arms for each in contests]),
    )


def _play(contestant: Contestant, contest: Contest, runs: int, seed: int) -> tuple[float, float]:
    try:
        result = simulate(
            contestant.learner,
            contest.graph,
            contest.losses,
            contest.rounds,
            runs,
            seed,
            checkpoints=[contest.rounds],
            threads=1,
            progress=False,
            **contestant.options,
        )
    except (ObservabilityError, BinaryLossError):  # it cannot play this contest; any other error is the caller's
        return np.nan, np.nan
    return mean_and_error(result.regret[:, -1])
