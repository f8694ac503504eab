"""What single runs lose: `python research/tails.py`, some two minutes on two cores. docs/learners.md has the numbers.

First EXP3-SET, whose estimates may be huge, beside EXP3-IX and luo-2023, which keep theirs small. Arm 7 is bad in the
first half, so that it is hardly ever played, and the best in the second: who estimates what he hardly ever sees without
bias finds that out early or late, by luck. Then the bound of luo-2023 with 95 % beside what 2,000 runs lost.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

import sidelong as sl
from sidelong import theory

if TYPE_CHECKING:
    import numpy.typing as npt

ROUNDS, RUNS, SEED = 10_000, 2_000, 1
GRAPHS = {"Ten arms alone": sl.graphs.self_loops(10), "A path of ten arms": sl.graphs.path(10)}
LEVELS = (0.05, 0.5, 0.95, 0.99)


def play(learner: str, graph: sl.FeedbackGraph, runs: int = RUNS) -> npt.NDArray[np.float64]:
    """Return the regret of each run, in the world where an arm that was bad becomes the best."""
    before, after = np.full(10, 0.5), np.full(10, 0.5)
    before[3] = after[3] = 0.4
    before[7], after[7] = 0.6, 0.1
    world = sl.losses.switching([before, after], at=ROUNDS // 2)
    return sl.simulate(learner, graph, world, ROUNDS, runs, SEED, checkpoints=[ROUNDS]).regret[:, -1]


def bounded() -> dict[str, tuple[sl.FeedbackGraph, int]]:
    """Return graphs, and rounds after which the bound with 95 % is below what playing at random loses."""
    clique = sl.FeedbackGraph.from_matrix(~np.eye(4, dtype=bool))
    mixed = sl.FeedbackGraph.from_edges([(i, j) for i in (1, 2, 3) for j in (i, 0)] + [(0, 1)])
    weak = sl.FeedbackGraph.from_edges([(0, 0), (0, 1), (0, 2), (1, 0), (3, 3), (3, 4)], 5)
    return {
        "clique of 4 without self-loops": (clique, 70_000),
        "4 arms, one without a self-loop": (mixed, 44_000),
        "4 arms alone": (sl.graphs.self_loops(4), 44_000),
        "5 arms, weakly observable": (weak, 13_000),
    }


def main() -> None:
    """Print quantiles of the regret."""
    for title, graph in GRAPHS.items():
        print(f"\n{title}, {ROUNDS:,} rounds, {RUNS:,} runs: quantiles {LEVELS}")
        for learner in ("exp3-set", "exp3-ix", "luo-2023"):
            regret = play(learner, graph)
            print(f"{learner:12} {np.quantile(regret, LEVELS).round()}   mean {regret.mean():,.0f}", flush=True)
    print(f"\nluo-2023, one arm 0 and all others 1, {RUNS:,} runs")
    for title, (graph, rounds) in bounded().items():
        setting = theory.Setting(graph)
        (promise,) = theory.promises(setting, ["luo-2023"])
        assert promise.likely is not None  # noqa: S101
        bound = promise.likely(setting, rounds, 0.05)
        world = sl.losses.bernoulli([0.0] + [1.0] * (graph.n_arms - 1))
        regret = sl.simulate("luo-2023", graph, world, rounds, RUNS, SEED, checkpoints=[rounds]).regret[:, -1]
        quantile, largest = np.quantile(regret, 0.95), regret.max()
        print(
            f"{title:34} {rounds:7,} rounds: 95 % lost up to {quantile:,.0f}, all up to {largest:,.0f}, of {bound:,.0f}"
        )


if __name__ == "__main__":
    main()
