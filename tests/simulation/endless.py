"""Simulations that never end, to be stopped: `python endless.py KIND` prints "ready" when one is about to begin."""

import signal
import sys

import numpy as np

import sidelong as sl


def plain(seed, run, t, arm):  # noqa: ARG001
    return (t + arm) % 3 / 2


@sl.losses.compiled
def compiled(seed, run, t, arm):  # noqa: ARG001
    return (t + arm) % 3 / 2


@sl.losses.compiled
def bad_in_run_0(seed, run, t, arm):  # noqa: ARG001
    return 2.0 if run == 0 and t == 2_000_000 else 0.5


MEANS = [0.1, 0.2, 0.3, 0.4]
KINDS = {
    "built in": lambda: sl.losses.bernoulli(MEANS),
    "one thread": lambda: sl.losses.bernoulli(MEANS),
    "many checkpoints": lambda: sl.losses.bernoulli(MEANS),
    "many arms": lambda: sl.losses.bernoulli(np.linspace(0, 1, 100_000)),
    "compiled, no means": lambda: sl.losses.function(compiled, n_arms=4),
    "plain, no means": lambda: sl.losses.function(plain, n_arms=4),
    "plain, many arms": lambda: sl.losses.function(plain, np.full(20_000, 0.5)),
    "a million checkpoints": lambda: sl.losses.constrained(0.1, 2000),
    "compiling": lambda: sl.losses.bernoulli(MEANS),
    "bad in run 0": lambda: sl.losses.function(bad_in_run_0, n_arms=4),
}

if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.default_int_handler)  # whatever the parent made of it
    world = KINDS[sys.argv[1]]()
    graph = sl.graphs.nested(world.n_arms)
    checkpoints = [*range(1, 300), 10**12] if sys.argv[1] == "many checkpoints" else 1  # what makes it hardest to stop
    learner, options = "exp3.g++", {"start": "none"}
    if sys.argv[1] in {"compiled, no means", "bad in run 0"}:
        learner, options = "uniform", {}  # whose loop over a world of its own compiles in a third of the time
    if sys.argv[1] != "compiling":
        sl.simulate(learner, graph, world, rounds=1, **options)
    print("ready", flush=True)  # noqa: T201  # read by test_simulate.py
    if sys.argv[1] == "a million checkpoints":  # which take long when the rounds are over
        sl.simulate("uniform", graph, world, rounds=10**6, runs=3, checkpoints=range(1, 10**6 + 1))
    threads = 1 if sys.argv[1] == "one thread" else 2
    sl.simulate(learner, graph, world, 10**12, runs=3, threads=threads, checkpoints=checkpoints, **options)
