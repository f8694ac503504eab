"""Who did best: regrets, ratios and the order."""

import numpy as np
import pytest

import sidelong as sl
from sidelong.simulation.scoreboard import Contestant, Instance, Scoreboard, compete


def board(regret, arms=(10, 10)):
    regret = np.array(regret, float)
    names = tuple("abcdef"[: len(regret)])
    return Scoreboard(names, ("x", "y"), regret, np.zeros_like(regret), np.array(arms))


def test_a_ratio_is_to_the_best_with_one_play_of_each_arm_added_to_both():
    table = board([[90, 10], [40, 30]])
    assert table.ratio.tolist() == [[2.0, 1.0], [1.0, 2.0]]
    assert table.worst.tolist() == [2.0, 2.0]


def test_the_smallest_worst_ratio_comes_first_and_those_that_cannot_play_last():
    assert board([[500, 10], [np.nan, 10], [20, 12], [10, 90]]).standing == [2, 3, 0, 1]


def test_regrets_are_those_of_simulate_and_a_refusal_is_a_gap():
    """The bound on the difference is 0: both play the same runs."""
    instances = [
        Instance("one", sl.graphs.nested(4), sl.losses.bernoulli([0.2, 0.5, 0.5, 0.9]), 200),
        Instance("two", sl.graphs.complete(3), sl.losses.constrained(gaps=0.3, n_arms=3, best=1), 100),
    ]
    contestants = [
        Contestant("mine", "exp3.g++", {"eta_scale": 2.0}),
        Contestant("hedge", "hedge"),
        Contestant("blind", "uniform"),
    ]
    seen = []
    table = compete(contestants, instances, runs=3, seed=5, processes=1, progress=lambda *step: seen.append(step))
    for column, (_, graph, world, rounds) in enumerate(instances):
        result = sl.simulate("exp3.g++", graph, world, rounds, runs=3, seed=5, eta_scale=2.0)
        assert table.regret[0, column] == result.regret[:, -1].mean()
        assert table.error[0, column] == pytest.approx(result.regret[:, -1].std(ddof=1) / 3**0.5)
    assert np.isnan(table.regret[1]).tolist() == [True, False]
    assert table.arms.tolist() == [4, 3]
    assert seen == [(k, 6) for k in range(1, 7)]
