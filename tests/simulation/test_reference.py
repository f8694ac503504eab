"""The loop in C that benchmarks compare `simulate` with: it is worth comparing only while it plays the same arms."""

import sys
from pathlib import Path

import numpy as np
import pytest

import sidelong as sl

sys.path.append(str(Path(__file__).parents[2] / "benchmarks"))
import reference

SEED = 1
GRAPHS = {
    "self-loops": sl.graphs.self_loops(10),
    "cliques of 5": sl.graphs.cliques([5, 5]),
    "star": sl.graphs.star(10),
    "random": sl.graphs.erdos_renyi(10, 0.3, seed=SEED, directed=True),
    "nested": sl.graphs.nested(10),
}


@pytest.mark.skipif(not reference.available(), reason="there is no C compiler")
@pytest.mark.parametrize("family", GRAPHS)
def test_the_loop_in_c_plays_the_same_arms(family):
    """Without leave to reorder sums. Its exp and log are those of the C library, so that roundings do differ."""
    graph, rounds = GRAPHS[family], 20_000
    means = np.linspace(0.2, 0.8, graph.n_arms).tolist()
    played = reference.play(graph, means, rounds, SEED, reference.STRICT)
    ours = sl.simulate("exp3.g++", graph, sl.losses.bernoulli(means), rounds, seed=SEED, start="none")
    assert played.tolist() == ours.plays[0].tolist()
