"""How far squarecb.g is from the optimum of the convex program in whose place it plays: `python research/optimum.py`.

Over 500 random instances, with 2 to 8 arms and gamma from 1 to 10,000: a third nested, the others directed graphs. The
optimum is that of a solver, certified from below. Where it is next to nothing, a ratio says nothing and is left out.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))
sys.path.insert(0, str(Path(__file__).parent.parent / "tests" / "learners"))
from test_squarecb import instances, played

from convex import optimum

__all__ = ["main"]


def main(count: int = 500) -> None:
    """Print the median and the worst ratio, and the largest differences."""
    found = []
    for nested, f, graph, gamma in instances(count, seed=3):
        p, value = played(f, graph, gamma)
        best, low = optimum(f, graph.matrix(), gamma, [p, np.full(len(f), 1 / len(f))])
        found.append((nested, gamma * value, gamma * min(best, value), gamma * low))
    nested, V, best, low = np.array(found).T
    counted = best > 1e-6
    print(f"{count} instances; {counted.sum()} with an optimum above 1e-6; certified to {np.max(best - low):.1e}")
    print("\n| graphs | instances | median ratio | 95 % below | worst | median difference of V | largest |")
    print("|---|---:|---:|---:|---:|---:|---:|")
    for name, which in (("all", nested >= 0), ("nested", nested == 1), ("directed", nested == 0)):
        kept = which & counted
        ratio, more = V[kept] / best[kept], V[which] - best[which]
        shares = f"{np.median(ratio):.2f} | {np.quantile(ratio, 0.95):.2f} | {ratio.max():.2f}"
        print(f"| {name} | {kept.sum()} | {shares} | {np.median(more):.2f} | {more.max():.2f} |")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
