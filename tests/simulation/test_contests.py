"""What scripts of research let learners compete with."""

import sys
from pathlib import Path

import numpy as np
import pytest

import sidelong as sl
from sidelong.errors import LearnerError, SimulationError

sys.path.append(str(Path(__file__).parents[2] / "research"))

from contests import Contest, Contestant, compete


def test_regrets_are_those_of_simulate_and_a_refusal_is_a_gap():
    """The bound on the difference is 0: both play the same runs."""
    instances = [
        Contest("one", sl.graphs.nested(4), sl.losses.bernoulli([0.2, 0.5, 0.5, 0.9]), 200),
        Contest("two", sl.graphs.complete(3), sl.losses.constrained(gaps=0.3, n_arms=3, best=1), 100),
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


@pytest.mark.parametrize(
    ("contestant", "error", "words"),
    [
        (Contestant("misspelt", "exp3.g++", {"ties": "practcal"}), LearnerError, "Did you mean 'practical'"),
        (Contestant("no such option", "ucb-n", {"widht": 1.0}), LearnerError, "Did you mean 'width'"),
        (Contestant("no such learner", "ucb-m"), LearnerError, "no learner named 'ucb-m'"),
    ],
)
def test_a_mistake_is_an_error_and_no_gap(contestant, error, words):
    instance = Contest("one", sl.graphs.complete(3), sl.losses.bernoulli([0.2, 0.5, 0.5]), 100)
    with pytest.raises(error, match=words):
        compete([contestant], [instance], runs=2, processes=1)


def test_losses_that_a_learner_cannot_use_are_a_gap_and_a_world_of_another_size_is_an_error():
    means = [0.2, 0.5, 0.5]
    table = compete(
        [Contestant("ts-n", "ts-n"), Contestant("ucb-n", "ucb-n")],
        [
            Contest("binary", sl.graphs.complete(3), sl.losses.bernoulli(means), 100),
            Contest("not", sl.graphs.complete(3), sl.losses.beta(means, 4.0), 100),
        ],
        runs=2,
        processes=1,
    )
    assert np.isnan(table.regret).tolist() == [[False, True], [False, False]]
    with pytest.raises(SimulationError, match="4 arms and the world 3"):
        compete(
            [Contestant("ts-n", "ts-n")],
            [Contest("odd", sl.graphs.complete(4), sl.losses.bernoulli(means), 100)],
            processes=1,
        )
