"""What a round of `glance` costs beside one of `exp3.g++`: `python benchmarks/costs.py`.

Both play in turn, many times, and the least processor time of each counts, so that a busy machine does little harm.
"""

from __future__ import annotations

import time

import sidelong as sl

ARMS = (10, 100, 1_000)
GRAPHS = {"self-loops": sl.graphs.self_loops, "nested": sl.graphs.nested}
LEARNERS = ("glance", "exp3.g++")
TURNS = 9


def main() -> None:
    """Print a table in Markdown."""
    print("| graph | arms | glance, microseconds a round | exp3.g++ | ratio |\n|---|---:|---:|---:|---:|")
    for name, make in GRAPHS.items():
        for K in ARMS:
            glance, paper = least(make(K), max(2_000, 1_000_000 // K))
            print(f"| {name} | {K:,} | {glance:.2f} | {paper:.2f} | {glance / paper:.2f} |", flush=True)


def least(graph: sl.FeedbackGraph, rounds: int) -> list[float]:
    """Return the microseconds of a round of each learner, in a world with one best arm."""
    world = sl.losses.bernoulli([0.3 if arm == 3 else 0.5 for arm in range(graph.n_arms)])
    found = [[] for _ in LEARNERS]  # type: list[list[float]]
    for _ in range(TURNS):
        for seconds, learner in zip(found, LEARNERS, strict=True):
            begun = time.process_time()
            sl.simulate(learner, graph, world, rounds, checkpoints=[rounds], threads=1, progress=False)
            seconds.append(time.process_time() - begun)
    return [1e6 * min(seconds[1:]) / rounds for seconds in found]  # the first one loads machine code


if __name__ == "__main__":
    main()
