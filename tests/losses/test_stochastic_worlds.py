import math

import numpy as np
import pytest
from scipy import stats

import sidelong as sl
from sidelong._jit import kernel
from sidelong.losses.world_kernels import loss


@kernel
def draw(world, seed, arm, out):
    for k in range(out.size):
        out[k] = loss(world, seed, 0, k + 1, arm)


# Dvoretzky, Kiefer, Wolfowitz and Massart: with probability 1e-9 a law is further off than this.
DRAWS = 200_000
ALLOWED = math.sqrt(math.log(2e9) / (2 * DRAWS))


@pytest.mark.parametrize("concentration", [0.01, 0.7, 2.0, 2.5, 10.0, 1e4])
def test_beta_losses_have_the_beta_law(concentration):
    means = [0.02, 0.3, 0.5, 0.9]
    world = sl.losses.beta(means, concentration)
    out = np.empty(DRAWS)
    for arm, mean in enumerate(means):
        draw(world.arrays, np.uint64(1), arm, out)
        law = stats.beta(mean * concentration, (1 - mean) * concentration)
        # Not at 1 itself, where small shapes have an atom: no double lies between 1 - 1e-16 and 1.
        at = np.concatenate(
            [np.logspace(-300, -1, 100), 1 - np.logspace(-1, -15, 50), law.ppf(np.arange(1, 100) / 100)]
        )
        at = at[at < 1 - 1e-15]
        measured = np.searchsorted(np.sort(out), at, side="right") / DRAWS
        assert np.abs(measured - law.cdf(at)).max() < ALLOWED


@pytest.mark.interpreted
@pytest.mark.parametrize("concentration", [1e-9, 1e-3, 1e9])
def test_beta_losses_of_extreme_shape_are_losses(concentration):
    world = sl.losses.beta([1e-310, 1e-290, 1e-9, 0.5, 1 - 1e-16], concentration)
    assert all(0.0 <= world.loss(0, 0, t, arm) <= 1.0 for t in range(1, 50) for arm in range(5))


@pytest.mark.interpreted
def test_beta_of_mean_0_or_1_is_constant():
    world = sl.losses.beta([0.0, 1.0])
    assert {(world.loss(0, 0, t, 0), world.loss(0, 0, t, 1)) for t in range(1, 20)} == {(0.0, 1.0)}


@pytest.mark.interpreted
def test_beta_takes_a_concentration_for_each_arm():
    alike, mixed = sl.losses.beta([0.3, 0.6], 5.0), sl.losses.beta([0.3, 0.6], [5.0, 50.0])
    assert alike.loss(0, 0, 1, 0) == mixed.loss(0, 0, 1, 0)
    assert alike.loss(0, 0, 1, 1) != mixed.loss(0, 0, 1, 1)


@pytest.mark.interpreted
def test_bernoulli_losses_of_mean_0_or_1_are_certain():
    world = sl.losses.bernoulli([0.0, 1.0])
    assert {(world.loss(0, 0, t, 0), world.loss(0, 0, t, 1)) for t in range(1, 50)} == {(0.0, 1.0)}


@pytest.mark.interpreted
def test_worlds_of_one_seed_share_their_luck():
    low, high = sl.losses.bernoulli([0.3]), sl.losses.bernoulli([0.6])
    assert all(low.loss(0, 0, t, 0) <= high.loss(0, 0, t, 0) for t in range(1, 100))


@pytest.mark.interpreted
def test_repr_says_what_it_is():
    assert repr(sl.losses.bernoulli([0.6, 0.4, 0.6])) == (
        "<World bernoulli: 3 arms, best arm 1 with mean 0.4, next 0.6>"
    )
    assert repr(sl.losses.beta([0.5], 4)) == "<World beta: 1 arm, mean 0.5; concentration 4>"
