"""A certificate beside the true regret: `python research/certificates.py` writes the table of docs/certificate.md."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

import sidelong as sl

sys.path.append(str(Path(__file__).parents[1] / "docs" / "_ext"))
import numbers_of_pages as numbers

LEARNERS = ("exp3-set", "exp3.g++", "glance")
GAPS = (0.2, 0.4, 0.0, 0.1, 0.3)  #: what each arm loses more than arm 2; four arms leave out the last
BEST, RUNS, SEED = 0.3, 20, 1

GRAPHS = {
    "5 arms, all revealed": sl.graphs.complete(5),
    "4 nested arms": sl.graphs.nested(4),
    "5 arms that reveal themselves": sl.graphs.self_loops(5),
}


def main() -> None:
    """Write mean regret and mean certificate of each learner on each graph into the page."""
    lines = [f"| | rounds | {' | '.join(f'`{name}`' for name in LEARNERS)} |", f"|---|---|{'---|' * len(LEARNERS)}"]
    for title, graph in GRAPHS.items():
        world = sl.losses.bernoulli(BEST + np.array(GAPS[: graph.n_arms]))
        played = {
            name: sl.simulate(
                name, graph, world, 30_000, runs=RUNS, seed=SEED, checkpoints=[300, 30_000], certificate=True
            )
            for name in LEARNERS
        }
        for k, rounds in enumerate((300, 30_000)):
            cells = [
                f"{each.regret[:, k].mean():,.0f}, at most {each.certificate[:, k].mean():,.0f}"
                for each in played.values()
            ]
            lines.append(f"| {title if k == 0 else ''} | {rounds:,} | {' | '.join(cells)} |")
    numbers.write_table("certificate.md", "certificates", "\n".join(lines))


if __name__ == "__main__":
    main()
