"""Losses without mercy, millions of rounds: every number stays finite, and probabilities are probabilities."""

import numpy as np
import pytest

import sidelong as sl
from learners.stepping import endure
from sidelong.learners import exp3g_adaptive

CYCLE, PATH = sl.graphs.directed_cycle(3), sl.graphs.path(3)
RING = sl.FeedbackGraph.from_matrix(np.roll(np.eye(5, dtype=bool), 1, axis=1))  # every arm reveals the next one alone
REVEALING = sl.FeedbackGraph.from_edges([(0, arm) for arm in range(5)])  # arm 0 reveals all arms, the others nothing
LOOPLESS = sl.FeedbackGraph.from_matrix(~np.eye(5, dtype=bool))  # every arm reveals all others
MIXED = sl.FeedbackGraph.from_edges([(1, 1), (2, 2), (3, 3), (1, 0), (2, 0), (3, 0), (0, 1)], 4)
WEAK = sl.FeedbackGraph.from_edges([(0, 0), (0, 1), (0, 2), (1, 0), (3, 3), (3, 4)], 5)

#: Learner, graph and options.
GAMES = [
    ("alphasample", CYCLE, {"horizon": 10**7}),
    ("elp", CYCLE, {}),
    ("exp3", CYCLE, {}),
    ("exp3++", sl.graphs.self_loops(3), {}),
    ("exp3-dom", CYCLE, {}),
    ("exp3-ix", CYCLE, {}),
    ("exp3-set", CYCLE, {}),
    *[("exp3.g", graph, {"horizon": 10**7}) for graph in (RING, REVEALING, LOOPLESS)],
    *[(exp3g_adaptive, graph, {}) for graph in (RING, REVEALING, LOOPLESS)],
    ("exp3.g++", CYCLE, {"rate": "fixed"}),
    ("exp3.g++", CYCLE, {"rate": "adaptive"}),
    ("hedge", sl.graphs.complete(3), {}),
    ("ito-2022", CYCLE, {"horizon": 10**7}),
    *[("luo-2023", graph, {"horizon": 10**7}) for graph in (LOOPLESS, MIXED, WEAK)],
    ("maillard", CYCLE, {}),
    ("q-tsallis", PATH, {"horizon": 10**7}),
    ("spm-2024", PATH, {}),
    *[("tas-fg", graph, {"edges": edges}) for graph, edges in ((RING, "known"), (CYCLE, "estimated"))],
    ("tsallis-inf", CYCLE, {"estimator": "iw"}),
    ("tsallis-inf", CYCLE, {"estimator": "rv", "feedback": "graph"}),
    ("ucb-lp", CYCLE, {"horizon": 10**7}),
    ("ucb-maxn", CYCLE, {}),
    ("ucb-n", CYCLE, {}),
]


@pytest.mark.parametrize("rounds", [300_000, pytest.param(10_000_000, marks=pytest.mark.nightly)])
@pytest.mark.parametrize(("learner", "graph", "options"), GAMES)
def test_every_number_stays_finite(learner, graph, options, rounds):
    for others in (0.0, 1.0):
        endure(learner, graph, 0.0, others, rounds, **options)
