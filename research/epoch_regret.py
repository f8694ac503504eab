"""What the epochs of EXP3.G++ lose against its exact schedule: `python research/epoch_regret.py`, half an hour.

Both play the report suite of `glance` (suites.py) with the same seeds, so that they meet the same losses.
On each instance the difference of their regrets is taken as a share of the exact schedule's mean regret. What is
printed is its mean over the instances of a kind of world, with a 95 % interval over the runs, each of which is one pass
through the suite; and then the single instances that differ most.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import suites
from scipy import stats

sys.path.append(str(Path(__file__).parents[1] / "benchmarks"))

from measure import machine

import sidelong as sl

if TYPE_CHECKING:
    import numpy.typing as npt
    from contests import Contest

    Floats = npt.NDArray[np.float64]

GROWTHS = (0.02, 0.05, 0.1, 0.2)
STOCHASTIC = ("bernoulli", "beta")


def main() -> None:
    """Play, and print a table for each way to sum up."""
    parser = argparse.ArgumentParser(description="Compare the regret of the two schedules of EXP3.G++.")
    parser.add_argument("--runs", type=int, default=48, help="passes through the suite (48)")
    parser.add_argument("--start", default="all", help="the initial rounds: all, cover or none (all)")
    arguments = parser.parse_args()
    instances = list(suites.report())
    print(machine())
    exact = regrets(instances, arguments.runs, start=arguments.start)
    shares = {
        growth: (regrets(instances, arguments.runs, start=arguments.start, refresh="epoch", growth=growth) - exact)
        / exact.mean(axis=1, keepdims=True)
        for growth in GROWTHS
    }
    print_worlds(instances, shares)
    print_instances(instances, exact, shares)


def regrets(instances: list[Contest], runs: int, **options: Any) -> Floats:
    """Return the regret on each instance in each run."""
    rows = []
    for number, each in enumerate(instances):
        print(f"\r{number + 1} of {len(instances)}", end="", file=sys.stderr, flush=True)
        game = sl.simulate(
            "exp3.g++", each.graph, each.losses, each.rounds, runs, suites.REPORT_SEED, checkpoints=1, **options
        )
        rows.append(game.regret[:, -1])
    return np.array(rows)


def interval(samples: Floats) -> tuple[float, float]:
    """Return the mean of independent samples, and how far a 95 % interval reaches from it."""
    return samples.mean(), stats.sem(samples) * stats.t.ppf(0.975, samples.size - 1)


def print_worlds(instances: list[Contest], shares: dict[float, Floats]) -> None:
    """Print the mean over the instances of a kind of world."""
    stochastic = np.array([each.name.split(", ")[3] in STOCHASTIC for each in instances])
    kinds = {
        f"stochastic, {stochastic.sum()} instances": stochastic,
        f"adversarial, {(~stochastic).sum()} instances": ~stochastic,
    }
    print("| worlds | " + " | ".join(f"growth {growth:g}" for growth in shares) + " |")
    print("|---|" + "---:|" * len(shares))
    for kind, chosen in kinds.items():
        cells = [interval(share[chosen].mean(axis=0)) for share in shares.values()]
        print(f"| {kind} | " + " | ".join(f"{mean:+.1%} ± {reach:.1%}" for mean, reach in cells) + " |")


def print_instances(instances: list[Contest], exact: Floats, shares: dict[float, Floats], most: int = 6) -> None:
    """Print for each growth how many instances are surely 3 % off, and those that lose and gain most."""
    for growth, share in shares.items():
        found = np.array([interval(row) for row in share])
        worse, better = (found[:, 0] - found[:, 1] > 0.03), (found[:, 0] + found[:, 1] < -0.03)
        print(f"\ngrowth {growth:g}: surely 3 % worse on {worse.sum()}, 3 % better on {better.sum()} of {len(found)}")
        order = np.argsort(found[:, 0])
        for k in (*order[:most], *order[-most:]):
            print(f"  {found[k, 0]:+7.1%} ± {found[k, 1]:.1%} of {exact[k].mean():8,.1f}  {instances[k].name}")


if __name__ == "__main__":
    main()
