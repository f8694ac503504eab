"""Uniform: the baseline that learns nothing."""

import numpy as np
import pytest

import sidelong as sl


@pytest.mark.interpreted
def test_every_arm_has_the_same_probability_whatever_it_is_told():
    agent = sl.Agent("uniform", sl.graphs.path(7), seed=1)
    for _ in range(50):
        decision = agent.ask()
        assert decision.probabilities.tolist() == [1 / 7] * 7
        agent.tell(decision, {int(i): float(i == 0) for i in decision.reveals})


@pytest.mark.interpreted
def test_it_counts_and_averages_what_it_is_told():
    rng = np.random.default_rng(2)
    agent = sl.Agent("uniform", sl.graphs.nested(5), seed=2)
    seen = [[] for _ in range(5)]
    for _ in range(200):
        decision = agent.ask()
        losses = {int(i): float(rng.random()) for i in decision.reveals}
        for i, l in losses.items():
            seen[i].append(l)
        agent.tell(decision, losses)
    estimates = agent.estimates()
    assert estimates.counts.tolist() == [len(each) for each in seen]
    np.testing.assert_allclose(estimates.means, [np.mean(each) for each in seen], rtol=1e-12)


def test_it_plays_on_a_graph_that_shows_nothing():
    graph = sl.FeedbackGraph.from_edges([(0, 1)], 3)
    result = sl.simulate("uniform", graph, sl.losses.bernoulli([0.1, 0.4, 0.7]), rounds=1000, seed=3)
    assert result.plays.sum() == 1000
    assert result.observations.tolist() == [[0, result.plays[0, 0], 0]]


def test_its_regret_is_the_mean_gap_in_every_round():
    """The mean of 100,000 draws with standard deviation .3: five standard errors, failure probability 1e-6."""
    result = sl.simulate("uniform", sl.graphs.complete(2), sl.losses.bernoulli([0.1, 0.7]), rounds=100_000, seed=4)
    assert result.regret[0, -1] / 100_000 == pytest.approx(0.3, abs=5 * 0.3 / np.sqrt(100_000))
    assert result.traces["observed"][0, -1] == 2
