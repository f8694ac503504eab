"""`glance` against all learners: `python research/standing.py [tune|report] [RUNS] [ROUNDS]`.

With a number of rounds, only the instances of at most so many are played.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import numpy as np
import suites
from contests import compete

if TYPE_CHECKING:
    from sidelong.simulation.scoreboard import Scoreboard

RUNS = 8


def main() -> None:
    """Play a suite, and print who did how well."""
    given = sys.argv[1:] + ["report", str(RUNS), "1000000"][len(sys.argv) - 1 :]
    which, runs, most = given[0], int(given[1]), int(given[2])
    instances, seed = {
        "tune": (list(suites.tune()), suites.TUNE_SEED),
        "report": (list(suites.report()), suites.REPORT_SEED),
    }[which]
    instances = [each for each in instances if each.rounds <= most]
    board = compete(suites.CONTESTANTS, instances, runs, seed, progress=_count)
    print(f"\n{which} suite, {len(instances)} instances of at most {most:,} rounds, {runs} runs each\n")
    print_board(board)
    print_hard(board, board.contestants.index("glance"))


def print_board(board: Scoreboard) -> None:
    """Print the worst and the median ratio of each contestant, best first, in Markdown."""
    print("| learner | worst ratio | median ratio | plays | worst on |\n|---|---:|---:|---:|---|")
    for row in board.standing:
        ratio = board.ratio[row]
        played = np.isfinite(ratio)
        if not played.any():
            print(f"| {board.contestants[row]} | - | - | 0 | - |")
            continue
        hardest = board.instances[int(np.nanargmax(ratio))]
        print(
            f"| {board.contestants[row]} | {board.worst[row]:.2f} | {np.median(ratio[played]):.2f} | "
            f"{played.sum()} | {hardest} |"
        )


def print_hard(board: Scoreboard, row: int, limit: float = 2.0) -> None:
    """Print the instances on which the ratio of a contestant is above a limit, hardest first, with the best learner."""
    ratio = board.ratio[row]
    hard = sorted(np.flatnonzero(ratio > limit), key=lambda column: -ratio[column])
    print(f"\n{board.contestants[row]} is above {limit:g} on {len(hard)} of {len(board.instances)} instances:\n")
    print("| instance | ratio | regret | best learner | its regret |\n|---|---:|---:|---|---:|")
    for column in hard:
        best = int(np.nanargmin(board.regret[:, column]))
        print(
            f"| {board.instances[column]} | {ratio[column]:.2f} | {board.regret[row, column]:.0f} | "
            f"{board.contestants[best]} | {board.regret[best, column]:.0f} |"
        )


def _count(done: int, games: int) -> None:
    print(f"\r{done} of {games}", end="", file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
