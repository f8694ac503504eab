"""One small world of each kind, and what their losses and means are, bit for bit."""

import hashlib
import struct

import numpy as np

import sidelong as sl
from sidelong.numerics import LOSSES, uniform

MEANS = [0.5, 0.2, 0.9, 0.4]
ROWS = [[0.5, 0.2, 0.9, 0.4], [0.1, 0.8, 0.3, 0.4], [1.0, 0.7, 0.0, 0.4]]


@sl.losses.compiled
def swinging(seed, run, t, arm):
    return uniform(seed, LOSSES, run, t, arm) * (1.0 if t % 3 == arm else 0.5)


@sl.losses.compiled
def swinging_mean(seed, run, t, arm):  # noqa: ARG001  # the package calls it with four
    return 0.5 if t % 3 == arm else 0.25


def plain(seed, run, t, arm):
    return (seed + 3 * run + t * (arm + 2)) % 5 / 4


def small_table():
    t, arm = np.indices((400, 4))
    return (t * (arm + 2)) % 7 / 6


EXAMPLES = {
    "bernoulli": lambda: sl.losses.bernoulli(MEANS),
    "one arm": lambda: sl.losses.bernoulli([0.3]),
    "beta": lambda: sl.losses.beta([*MEANS, 0.0, 1.0], 3.0),
    "beta, shapes below 1": lambda: sl.losses.beta(MEANS, [0.5, 1.5, 1.0, 8.0]),
    "constrained": lambda: sl.losses.constrained(gaps=0.2, n_arms=5, best=3),
    "constrained, gaps": lambda: sl.losses.constrained([0.3, 0.0, 0.5, 1.0]),
    "flipped": lambda: sl.losses.corrupted(MEANS, 50),
    "swapped": lambda: sl.losses.corrupted(MEANS, 50, "swap"),
    "not corrupted": lambda: sl.losses.corrupted(MEANS, 0, "swap"),
    "switching at": lambda: sl.losses.switching(ROWS, at=[7, 51]),
    "switching every": lambda: sl.losses.switching(ROWS, every=7),
    "switching, one row": lambda: sl.losses.switching(MEANS, at=33),
    "drifting": lambda: sl.losses.drifting(ROWS, every=7),
    "drifting, one step": lambda: sl.losses.drifting(MEANS, every=1),
    "lower bound": lambda: sl.losses.lower_bound(sl.graphs.path(5), horizon=100),
    "breaker": lambda: sl.losses.breaker(sl.graphs.star(4), rounds=400),
    "table": lambda: sl.losses.table(small_table()),
    "function": lambda: sl.losses.function(swinging, n_arms=3),
    "function, means": lambda: sl.losses.function(swinging, [0.3, 0.4, 0.5]),
    "function, mean function": lambda: sl.losses.function(swinging, swinging_mean, n_arms=3),
    "plain function": lambda: sl.losses.function(plain, n_arms=3),
    "plain function, means": lambda: sl.losses.function(plain, [0.5, 0.5, 0.5]),
    "plain mean function": lambda: sl.losses.function(plain, lambda *_: 0.5, n_arms=3),
}
BUILT_IN = [name for name in EXAMPLES if "function" not in name]

PLACES = [(seed, run, t) for seed in (0, 2**64 - 1) for run in (0, 5) for t in (1, 2, 3, 8, 49, 52, 400)]


def bits(world):
    """Return a hash of some losses, means and totals."""
    digest = hashlib.sha256()
    for seed, run, t in PLACES:
        if world.name == "plain" and seed > 0:
            seed = 17  # noqa: PLW2901  # it computes with the seed, which is a signed number where it is compiled
        for arm in range(world.n_arms):
            digest.update(struct.pack("dd", world.loss(seed, run, t, arm), world.mean(seed, run, t, arm)))
    digest.update(world.best_total(3, 1, [5, 60]).tobytes())
    return digest.hexdigest()


if __name__ == "__main__":
    for name, make in EXAMPLES.items():
        print(name, bits(make()), sep="\t")  # noqa: T201  # read by test_world_kernels.py
