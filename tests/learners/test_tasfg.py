"""TaS-FG against its oracle, its allocation against a general solver, and when it stops."""

import numpy as np
import pytest

import naive
import sidelong as sl
from learners.stepping import Stepper, follow, random_digraph
from sidelong.learners import tasfg


def allocation(oracle, a):
    """Return the shares that the learner finds for what an oracle has seen."""
    w, *scratch = (np.zeros(oracle.K) for _ in range(4))
    tasfg.allocate(oracle.means, np.ascontiguousarray(oracle.G), a, w, *scratch)
    return w


@pytest.mark.interpreted
@pytest.mark.parametrize("edges", ["known", "estimated"])
@pytest.mark.parametrize("late", [False, True])
@pytest.mark.parametrize("seed", [2, 5])  # odd: losses are 0 or 1, and arms differ
def test_agrees_with_the_oracle_in_every_round(seed, late, edges):
    rng = np.random.default_rng(seed)
    K = int(rng.integers(3, 6))
    bank = [random_digraph(rng, K, loops=False) for _ in range(1 if edges == "known" else 3)]
    agent = sl.Agent("tas-fg", sl.FeedbackGraph.from_matrix(bank[0]), seed=seed, every=7, edges=edges)
    oracle = naive.TasFg(bank[0], every=7, edges=edges)
    oracle.allocation = lambda a: allocation(oracle, a)  # what is best is often reached by several
    follow(agent, oracle, bank, rounds=300, late=late, after=edges == "estimated", seed=seed)
    assert len(oracle.found) > 20
    state = agent._state
    np.testing.assert_allclose(state.v, np.mean(oracle.found, axis=0), rtol=1e-9, atol=1e-15)
    np.testing.assert_allclose(state.G, oracle.G, rtol=1e-12)


@pytest.mark.interpreted
@pytest.mark.parametrize("loops", [True, False])
@pytest.mark.parametrize("seed", range(6))
def test_no_solver_finds_an_allocation_that_stops_sooner(seed, loops):
    rng = np.random.default_rng([seed, loops])
    K = int(rng.integers(3, 9))
    oracle = naive.TasFg(random_digraph(rng, K, loops=loops) * rng.uniform(0.1, 1.0, (K, K)))
    oracle.seen = [[each] for each in rng.permutation(np.linspace(0.2, 0.8, K))]
    a = oracle.single
    ours, theirs = allocation(oracle, a), naive.TasFg.allocation(oracle, a)
    assert ours.min() >= 0
    assert ours.sum() == pytest.approx(1)
    assert oracle.time_of(ours, a) <= 1.0002 * oracle.time_of(theirs, a)


@pytest.mark.interpreted
def test_an_allocation_by_hand():
    """Two arms that reveal themselves are played as often; of one that reveals both, nothing else is played."""
    oracle = naive.TasFg(np.eye(2))
    oracle.seen = [[0.2], [0.7]]
    np.testing.assert_allclose(allocation(oracle, 0), [0.5, 0.5], atol=1e-3)
    assert oracle.time_of(np.array([0.5, 0.5]), 0) == pytest.approx(2 * 0.25 * 4 / 0.5**2)
    oracle.A = np.array([[1.0, 0.0], [1.0, 1.0]])
    np.testing.assert_allclose(allocation(oracle, 0), [0.0, 1.0], atol=1e-3)


@pytest.mark.interpreted
def test_evidence_is_that_of_the_oracle_and_begins_when_one_arm_is_best():
    graph, rng = sl.graphs.nested(4), np.random.default_rng(3)
    stepper, oracle = Stepper("tas-fg", graph, deviation=1.0, every=8), naive.TasFg(graph.matrix(), 1.0, every=8)
    oracle.allocation = lambda a: allocation(oracle, a)
    some = []
    for _ in range(120):
        told = oracle.distribution(graph.matrix())
        arm = int(stepper.distribution().argmax())
        assert arm == told.p.argmax()
        some.append(stepper.traced("evidence"))
        assert some[-1] == pytest.approx(oracle.evidence, rel=1e-9)
        losses = rng.random(4)
        oracle.update(told, arm, {int(i): losses[i] for i in graph.out_neighbors(arm)})
        stepper.update(arm, losses)
    assert some[0] == 0 < some[-1]


def test_it_stops_with_the_best_arm_and_sooner_than_uniform_play():
    """With delta = 1/20, of 40 runs two may be wrong on average; these are not."""
    graph, means = sl.graphs.star(6), [0.6, 0.6, 0.6, 0.3, 0.6, 0.6]
    rounds, runs = 1500, 40
    result = sl.simulate(
        "tas-fg", graph, sl.losses.bernoulli(means), rounds, runs=runs, checkpoints=range(1, rounds + 1)
    )
    limits = np.array([tasfg.threshold(t, 0.05) for t in result.rounds])
    enough = result.traces["evidence"] >= limits
    assert enough.any(axis=1).all()
    stopped = enough.argmax(axis=1) + 1
    assert np.median(stopped) < 600
    share = result.plays.sum(axis=0) / (runs * rounds)
    assert share[0] > 0.5  # the centre reveals all, and is not the best arm


def test_a_threshold_is_the_papers_and_bad_numbers_are_refused():
    assert tasfg.threshold(1, np.exp(-7)) == pytest.approx(7)
    assert tasfg.threshold(100, 0.05) == pytest.approx(np.log(20) + 3 * np.log(1 + 2 * np.log(100)))
    with pytest.raises(sl.SidelongError, match="delta"):
        tasfg.threshold(10, 0)
