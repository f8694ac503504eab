"""Maillard sampling against its oracle, and what is known of how it fares."""

import numpy as np
import pytest

import sidelong as sl
from learners.stepping import Stepper


@pytest.mark.interpreted
def test_the_rule_by_hand():
    """Two arms: observed twice and three times, with means 0.5 and 0.7."""
    stepper = Stepper("maillard", sl.graphs.self_loops(2))
    for arm, losses in ((0, [0.4, 0.6]), (1, [0.6, 0.7, 0.8])):
        for loss in losses:
            stepper.distribution()
            stepper.update(arm, [loss, loss])
    v = (0.02 + 0.25) / 4
    assert stepper.distribution()[1] / stepper.p[0] == pytest.approx(np.exp(-3 * 0.04 / v))


@pytest.mark.parametrize("graph", [sl.graphs.nested(7), sl.graphs.star(7).as_arcs()], ids=["intervals", "arcs"])
def test_an_arm_that_shows_all_is_looked_at_first(graph):
    agent = sl.Agent("maillard", graph)
    widest = int(np.argmax(graph.matrix().sum(axis=1)))
    decision = agent.ask()
    assert (decision.arm, decision.probability) == (widest, 1.0)
    agent.tell(decision, [0.5] * 7)
    assert agent.ask().probability < 1


def test_it_is_good_where_nothing_turns():
    """The mean over 48 runs was 26, and the largest 149; `ucb-n` lost 193."""
    means = [0.5, 0.6, 0.2, 0.6, 0.6, 0.6]
    setting = {"rounds": 10_000, "runs": 16, "seed": 1}
    ours, theirs = (
        sl.simulate(name, sl.graphs.self_loops(6), sl.losses.bernoulli(means), **setting).regret[:, -1].mean()
        for name in ("maillard", "ucb-n")
    )
    assert ours < 100 < theirs
