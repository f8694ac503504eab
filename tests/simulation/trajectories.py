"""One short simulation for each kind of graph, over changing worlds, and a digest of all that it returns.

Run as a program it prints the digests of those that it is told, so that another interpreter can be asked for them.
"""

import hashlib
import itertools
import sys

import numpy as np

import sidelong as sl
from sidelong.numerics import LOSSES, uniform

SEED = 2**63 + 5
ROUNDS = 70
RUNS = [0, 3]
K = 6

INTERVALS = sl.FeedbackGraph.from_intervals([0, 0, 2, 1, 3, 0], [3, 2, 4, 6, 5, 6])
ARCS = sl.FeedbackGraph.from_edges([(0, 2), (2, 5), (5, 0), (1, 4), (3, 0), (3, 5)], self_loops=True)
BANK = [sl.graphs.nested(K), ARCS, INTERVALS]

GRAPHS = {
    "nested": sl.graphs.nested(K),
    "nested upwards": sl.graphs.nested(K, reveals="higher"),
    "intervals": INTERVALS,
    "arcs": ARCS,
    "intervals as arcs": INTERVALS.as_arcs(),
    "self-loops": sl.graphs.self_loops(K),
    "alternating": sl.graphs.alternating(BANK),
    "scheduled": sl.graphs.scheduled(BANK, [2, 2, 0, 1, 1, 1, 0]),
    "drawn": sl.graphs.drawn(BANK, [0.5, 0.2, 0.3]),
    "resampled": sl.graphs.resampled(K, 0.3),
    "resampled, directed": sl.graphs.resampled(K, 0.3, directed=True),
    "shadows": sl.graphs.shadows(K, 3),
}

MEANS = [0.5, 0.2, 0.9, 0.4, 0.6, 0.3]


@sl.losses.compiled
def swinging(seed, run, t, arm):
    return uniform(seed, LOSSES, run, t, arm) * (1.0 if t % 3 == arm else 0.5)


WORLDS = itertools.cycle(
    [
        sl.losses.beta(MEANS, 3.0),
        sl.losses.constrained(gaps=0.3, n_arms=K, best=2),
        sl.losses.drifting(MEANS, every=9),
        sl.losses.function(swinging, n_arms=K),
        sl.losses.breaker(ARCS, rounds=ROUNDS),
    ]
)
OPTIONS = itertools.cycle(
    [
        {"gamma": 0.2, "beta": 0.01},
        {"rate": "fixed", "strong_independence": K},
        {"ties": "practical", "gamma": 0.1, "start": "cover"},
    ]
)
#: by the name of the graph: the graph, a world and the learner's options
CASES = {name: (graph, next(WORLDS), next(OPTIONS)) for name, graph in GRAPHS.items()}
GLANCE = {"learner": "glance"}
CASES["glance"] = (sl.graphs.resampled(K, 0.3), sl.losses.beta(MEANS, 3.0), GLANCE)
CASES["glance, long ranges"] = (sl.graphs.nested(40), sl.losses.drifting([0.5] * 40, every=9), GLANCE)
EPOCHS = {"refresh": "epoch", "gamma": 0.2, "beta": 0.01}
CASES["epochs"] = (INTERVALS.as_arcs(), sl.losses.beta(MEANS, 3.0), EPOCHS)
CASES["epochs, graphs that change"] = (
    sl.graphs.alternating(BANK),
    sl.losses.drifting(MEANS, every=9),
    EPOCHS | {"start": "none"},
)
#: ranges so long that they are taken several arms at a time
CASES["long ranges"] = (sl.graphs.nested(40), sl.losses.constrained(gaps=0.3, n_arms=40, best=22), {"start": "none"})
CASES = {name: (graph, world, {"learner": "exp3.g++"} | options) for name, (graph, world, options) in CASES.items()}


def play(name, **arguments):
    graph, world, options = CASES[name]
    arguments = {"rounds": ROUNDS, "runs": RUNS, "seed": SEED} | options | arguments
    return sl.simulate(graph=graph, losses=world, **arguments)


def rows(result):
    """Return the bytes of everything that was measured, run by run."""
    table = [result.regret, result.loss, result.plays, result.observations, *result.traces.values()]
    return [b"".join(np.ascontiguousarray(part[row]).tobytes() for part in table) for row in range(result.runs.size)]


def digests(names=tuple(CASES)):
    return {name: hashlib.sha256(b"".join(rows(play(name)))).hexdigest() for name in names}


if __name__ == "__main__":
    for name, digest in digests(sys.argv[1:]).items():
        print(name, digest, sep="\t")  # noqa: T201  # read by test_same_bits.py
