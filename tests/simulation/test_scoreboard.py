"""Who did best: regrets, ratios and the order."""

import numpy as np
import pytest

import sidelong as sl
from sidelong.errors import LearnerError, SimulationError
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


@pytest.mark.parametrize(
    ("contestant", "error", "words"),
    [
        (Contestant("misspelt", "exp3.g++", {"ties": "practcal"}), LearnerError, "Did you mean 'practical'"),
        (Contestant("no such option", "ucb-n", {"widht": 1.0}), LearnerError, "Did you mean 'width'"),
        (Contestant("no such learner", "ucb-m"), LearnerError, "no learner named 'ucb-m'"),
    ],
)
def test_a_mistake_is_an_error_and_no_gap(contestant, error, words):
    instance = Instance("one", sl.graphs.complete(3), sl.losses.bernoulli([0.2, 0.5, 0.5]), 100)
    with pytest.raises(error, match=words):
        compete([contestant], [instance], runs=2, processes=1)


def test_losses_that_a_learner_cannot_use_are_a_gap_and_a_world_of_another_size_is_an_error():
    means = [0.2, 0.5, 0.5]
    table = compete(
        [Contestant("ts-n", "ts-n"), Contestant("ucb-n", "ucb-n")],
        [
            Instance("binary", sl.graphs.complete(3), sl.losses.bernoulli(means), 100),
            Instance("not", sl.graphs.complete(3), sl.losses.beta(means, 4.0), 100),
        ],
        runs=2,
        processes=1,
    )
    assert np.isnan(table.regret).tolist() == [[False, True], [False, False]]
    with pytest.raises(SimulationError, match="4 arms and the world 3"):
        compete(
            [Contestant("ts-n", "ts-n")],
            [Instance("odd", sl.graphs.complete(4), sl.losses.bernoulli(means), 100)],
            processes=1,
        )
