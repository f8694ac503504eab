"""Who did best: ratios and the order."""

import numpy as np

from sidelong.simulation.scoreboard import Scoreboard


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


def test_a_contestant_that_can_play_nowhere_and_an_instance_that_nobody_can_play_are_nan_and_last():
    table = board([[np.nan, np.nan], [40, np.nan], [90, np.nan]])
    assert np.isnan(table.ratio).tolist() == [[True, True], [False, True], [False, True]]
    assert np.isnan(table.worst).tolist() == [True, False, False]
    assert table.standing == [1, 2, 0]


def test_a_contestant_that_beats_the_best_arm_by_more_than_the_price_leaves_ratios_that_are_ratios():
    """In a world without means that is possible: (regret + K) would be 0 or negative."""
    table = board([[-10, -500], [40, 30]])
    assert table.ratio.tolist() == [[0.0, 0.0], [50.0, 40.0]]
    assert table.standing == [0, 1]
