import math

import numpy as np
import pytest

import sidelong as sl
from losses.world_examples import MEANS, ROWS


def phases(rounds):
    """Return the phase of each round, counted from 0: lengths grow by 1.6, rounded up."""
    phase, length, left = 0, 1, 1
    for _ in range(rounds):
        if left == 0:
            phase += 1
            length = math.ceil(1.6 * length)
            left = length
        left -= 1
        yield phase


@pytest.mark.interpreted
def test_constrained_phases():
    world = sl.losses.constrained(gaps=0.2, n_arms=3, best=1)
    for t, phase in enumerate(phases(1000), 1):
        expected = [1.0, 0.8, 1.0] if phase % 2 else [0.2, 0.0, 0.2]
        assert [world.mean(0, 0, t, arm) for arm in range(3)] == pytest.approx(expected, abs=1e-15)


@pytest.mark.interpreted
def test_constrained_phases_far_out():
    world = sl.losses.constrained(gaps=0.25, n_arms=2)
    length, end, phase = 1, 1, 0
    while end < 2**47:
        assert world.mean(0, 0, end, 0) == (0.75 if phase % 2 else 0.0)
        assert world.mean(0, 0, end + 1, 0) == (0.0 if phase % 2 else 0.75)
        length, phase = -(-8 * length // 5), phase + 1
        end += length


@pytest.mark.interpreted
def test_constrained_gaps_stay():
    gaps = [0.3, 0.0, 0.5, 1.0]
    world = sl.losses.constrained(gaps)
    for t in (1, 2, 5, 100, 10**9):
        means = [world.mean(0, 0, t, arm) for arm in range(4)]
        assert np.subtract(means, means[1]) == pytest.approx(gaps)


@pytest.mark.interpreted
def test_both_ways_to_give_gaps_make_one_world():
    one, other = (
        sl.losses.constrained(gaps=0.2, n_arms=3, best=1),
        sl.losses.constrained(gaps=[0.2, 0.0, 0.2], best=1),
    )
    for ours, theirs in zip(one.arrays, other.arrays, strict=True):
        np.testing.assert_array_equal(ours, theirs)


@pytest.mark.interpreted
def test_corrupted_losses_are_the_clean_ones_turned_over():
    clean, spoilt = sl.losses.bernoulli(MEANS), sl.losses.corrupted(MEANS, budget=30)
    for t in range(1, 60):
        for arm in range(4):
            l = clean.loss(3, 1, t, arm)
            assert spoilt.loss(3, 1, t, arm) == (1.0 - l if t <= 30 else l)
            assert spoilt.mean(3, 1, t, arm) == (1.0 - MEANS[arm] if t <= 30 else MEANS[arm])


@pytest.mark.interpreted
def test_swapped_losses_are_those_of_the_other_arm():
    clean, spoilt = sl.losses.bernoulli(MEANS), sl.losses.corrupted(MEANS, budget=30, attack="swap")
    exchanged = [0, 3, 2, 1]  # arm 1 is best, arm 3 second
    for t in range(1, 60):
        for arm in range(4):
            source = exchanged[arm] if t <= 30 else arm
            assert spoilt.loss(3, 1, t, arm) == clean.loss(3, 1, t, source)
            assert spoilt.mean(3, 1, t, arm) == MEANS[source]


def means_at(world, t):
    return [world.mean(0, 0, t, arm) for arm in range(world.n_arms)]


@pytest.mark.interpreted
def test_switching_at_given_rounds():
    world = sl.losses.switching(ROWS, at=[7, 51])
    expected = {1: ROWS[0], 7: ROWS[0], 8: ROWS[1], 51: ROWS[1], 52: ROWS[2], 2**48 - 1: ROWS[2]}
    assert {t: means_at(world, t) for t in expected} == expected


@pytest.mark.interpreted
def test_switching_every_so_many_rounds():
    world = sl.losses.switching(ROWS, every=10)
    for t in (1, 10, 11, 20, 21, 30, 31, 10**12):
        assert means_at(world, t) == ROWS[(t - 1) // 10 % 3]


@pytest.mark.interpreted
def test_one_row_of_means_exchanges_the_two_best_arms():
    world = sl.losses.switching(MEANS, at=5)
    assert means_at(world, 5) == MEANS
    assert means_at(world, 6) == [0.5, 0.4, 0.9, 0.2]


@pytest.mark.interpreted
def test_drifting_moves_in_straight_lines():
    world = sl.losses.drifting(ROWS, every=10)
    for t in range(1, 70):
        s, steps = divmod(t - 1, 10)
        here, there = np.array(ROWS[s % 3]), np.array(ROWS[(s + 1) % 3])
        assert means_at(world, t) == pytest.approx(here + (there - here) * steps / 10)


@pytest.mark.interpreted
@pytest.mark.parametrize(
    "world",
    [
        sl.losses.drifting([[0.2, 0.6], [0.8, 0.6]], every=2**46),
        sl.losses.switching([[0.2, 0.6], [0.8, 0.6]], every=2**46),
        sl.losses.switching([[0.2, 0.6], [0.8, 0.6]], at=2**46),
        sl.losses.constrained(0.2, 2),
        sl.losses.corrupted([0.2, 0.6], 2**46),
    ],
    ids=repr,
)
def test_totals_over_very_long_times(world):
    # The total is close to an average over evenly spread rounds; integers that overflowed would be far off.
    T = 2**48 - 1
    sampled = np.mean([means_at(world, round((k + 0.5) * T / 4096)) for k in range(4096)], axis=0)
    assert world.best_total(0, 0, [T])[0] / T == pytest.approx(sampled.min(), abs=1e-3)
