"""Graphs of every kind for the epoch schedule, and agents that play on them."""

import functools

import numpy as np
import pytest

import sidelong as sl

EARLY = {"gamma": 0.2, "beta": 0.01}  # constants that let gaps show early
GRAPHS = {
    "intervals in a row": sl.graphs.banded(30, 2),
    "long intervals": sl.graphs.nested(40),
    "other intervals": sl.FeedbackGraph.from_intervals([0, 0, 2, 1, 3, 0], [3, 2, 4, 6, 5, 6]),
    "arcs": sl.graphs.erdos_renyi(25, 0.2, 3, directed=True),
    "ring": sl.graphs.circulant(30, 2),
    "complete": sl.graphs.complete(12),
    "cliques": sl.graphs.cliques([20, 1, 5, 30]),
}
EVERY_ROUND = {"refresh": "epoch", "growth": 0}
every_graph = pytest.mark.parametrize("name", GRAPHS)


def new_agent(graph, seed=3, **options):
    return sl.Agent("exp3.g++", graph, seed=seed, **{"refresh": "epoch", **options})


@functools.cache
def world(K):
    return sl.losses.bernoulli(np.linspace(0.3, 0.7, K))


def losses_of(decision):
    return {int(i): world(decision.graph.n_arms).loss(3, 0, decision.round, int(i)) for i in decision.reveals}


def play(agent, rounds):
    """Ask and tell; return all that was decided, as bytes."""
    record = b""
    for _ in range(rounds):
        decision = agent.ask()
        record += bytes([decision.arm]) + decision.drawn.p.tobytes() + decision.drawn.trace.tobytes()
        agent.tell(decision, losses_of(decision))
    return record
