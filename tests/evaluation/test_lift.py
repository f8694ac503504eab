"""The lift of a learner beside a holdout: without bias, and within its interval."""

import numpy as np
import pytest

import sidelong as sl
from sidelong.evaluation.lift import ROWS, add, baseline, lift

EXPERIMENTS, ROUNDS = 1000, 150


def test_the_estimate_is_the_mean_of_weighted_differences():
    sums, told = np.zeros(ROWS), [(True, 0.8, 0.5), (False, 0.2, 0.45), (False, 0.6, 0.4), (True, 1.0, 0.5)]
    for held, loss, b in told:
        add(sums, 0.2, loss, b, held=held)
    d = [(loss - b) / 0.2 if held else -(loss - b) / 0.8 for held, loss, b in told]
    found = lift(sums, 0.2)
    assert found.value == pytest.approx(np.mean(d))
    assert found.lower == -1.0
    assert found.lower < found.value
    assert (found.held, found.learned, found.held_cost, found.learner_cost) == (2, 2, 0.9, 0.4)
    assert lift(np.zeros(ROWS), 0.2) is None


def test_the_interval_closes_on_the_lift_and_leaves_zero_behind():
    draws = np.random.default_rng(3)
    sums = np.zeros(ROWS)
    for _ in range(20_000):
        held = draws.random() < 0.1
        add(sums, 0.1, draws.random() ** (0.5 if held else 2.0), baseline(sums, 0.1), held=held)
    found = lift(sums, 0.1)
    assert found.lower < 1 / 3 < found.upper  # 2/3 and 1/3 in the mean
    assert found.lower > 0.25
    assert found.upper < 0.42


@pytest.mark.nightly
def test_the_interval_covers_the_lift_of_a_thousand_experiments_that_learn():
    """The losses drift, and the learner learns from its own rounds. What it saves is another number in each experiment.

    Who looks every fiftieth round must find it each time. If an experiment is missed with a probability of 1% at most,
    then fewer than 950 of 1,000 are covered with one of below 1e-15.
    """
    draws, share = np.random.default_rng(12), 0.1
    covered = 0
    graph = sl.graphs.nested(4)
    for seed in range(EXPERIMENTS):
        agent, sums, true, misses = sl.Agent("exp3-set", graph, seed=seed), np.zeros(ROWS), 0.0, 0
        losses = (draws.random((ROUNDS, 4)) < np.linspace(0.3, 0.7, ROUNDS)[:, None] * [1.2, 0.2, 1.0, 0.8]).astype(
            float
        )
        for t in range(ROUNDS):
            b, row = baseline(sums, share), losses[t]
            true += row[2] - agent.outlook() @ row
            held = draws.random() < share
            if not held:
                decision = agent.ask()
                agent.tell(decision, row[decision.reveals])
            add(sums, share, row[2 if held else decision.arm], b, held=held)
            if (t + 1) % 50 == 0:
                found = lift(sums, share)
                misses += not found.lower <= true / (t + 1) <= found.upper
        covered += not misses
    assert covered >= 0.95 * EXPERIMENTS
