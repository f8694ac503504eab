"""Regret against the best sequence of arms, beside that against one arm."""

import itertools

import numpy as np
import pytest

import sidelong as sl
from sidelong.errors import SimulationError, WorldError

MEANS = [[0.1, 0.6, 0.6], [0.6, 0.1, 0.6], [0.6, 0.6, 0.1]]


def cheapest(values, switches):
    """Return what the best sequence with at most so many changes pays, over all of them: the obvious way."""
    T, K = values.shape
    return min(
        sum(values[a:b, arm].sum() for a, b, arm in zip([0, *cuts], [*cuts, T], arms, strict=True))
        for n in range(switches + 1)
        for cuts in itertools.combinations(range(1, T), n)
        for arms in itertools.product(range(K), repeat=n + 1)
    )


@pytest.mark.interpreted
@pytest.mark.parametrize("switches", [0, 1, 2, 3])
@pytest.mark.parametrize("kind", ["table", "bernoulli", "drifting", "breaker", "constrained"])
def test_the_best_sequence_is_that_of_all_sequences(kind, switches):
    rng, T = np.random.default_rng(3), 9
    world = {
        "table": lambda: sl.losses.table(rng.random((T, 3))),
        "bernoulli": lambda: sl.losses.bernoulli([0.2, 0.5, 0.7]),
        "drifting": lambda: sl.losses.drifting(MEANS, every=3),
        "breaker": lambda: sl.losses.breaker(sl.graphs.self_loops(3), T),
        "constrained": lambda: sl.losses.constrained(0.2, n_arms=3, best=1),
    }[kind]()
    value = world.mean if world.has_means else world.loss
    values = np.array([[value(5, 2, t, arm) for arm in range(3)] for t in range(1, T + 1)])
    found = world.best_sequence_total(5, 2, [4, T], switches)
    assert found == pytest.approx([cheapest(values[:4], switches), cheapest(values, switches)], rel=1e-12)
    if switches == 0:
        assert found == pytest.approx(world.best_total(5, 2, [4, T]), rel=1e-12)


def test_a_regret_below_0_is_no_praise_and_the_result_says_so():
    world = sl.losses.switching(MEANS, every=1_000)
    graph, rounds = sl.graphs.complete(3), 3_000
    plain = sl.simulate("exp3-set", graph, world, rounds, runs=3, seed=1, checkpoints=[1_500, rounds], track=2)
    assert plain.tracking_regret is None
    assert plain.regret[:, -1].mean() < 0
    assert "Below 0: the best arm has moved; simulate(..., switches=S) says what was lost" in repr(plain)
    result = sl.simulate(
        "exp3-set", graph, world, rounds, runs=3, seed=1, checkpoints=[1_500, rounds], track=2, switches=2
    )
    assert result.regret.tobytes() == plain.regret.tobytes()
    # Each arm loses 1,300 in all, and the sequence 300. After 1,500 rounds, arm 0 has lost 400, and the sequence 150.
    assert result.tracking_regret - result.regret == pytest.approx(np.tile([250, 1_000], (3, 1)))
    assert "against the best sequence of arms with at most 2 switches" in repr(result)


def test_where_the_best_arm_stays_nothing_is_added():
    result = sl.simulate(
        "exp3-set", sl.graphs.complete(3), sl.losses.bernoulli([0.2, 0.5, 0.7]), 500, runs=2, switches=5
    )
    assert result.tracking_regret == pytest.approx(result.regret)


def test_what_is_no_number_of_switches_is_refused():
    world = sl.losses.bernoulli([0.2, 0.5])
    with pytest.raises(SimulationError, match="switches must be a whole number from 0"):
        sl.simulate("exp3-set", sl.graphs.complete(2), world, 10, switches=-1)
    with pytest.raises(WorldError, match="switches must be a whole number from 0"):
        world.best_sequence_total(0, 0, [1], 1.5)
