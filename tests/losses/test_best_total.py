import math

import numpy as np
import pytest

import sidelong as sl
from losses.world_examples import EXAMPLES, swinging
from sidelong._jit import rebind, specialise
from sidelong.losses import world as world_module

CHECKPOINTS = [0, 1, 2, 3, 7, 8, 14, 50, 51, 52, 107]


def totals(world, seed, run, rounds):
    """Sum over rounds, the slow and obvious way."""
    value = world.mean if world.has_means else world.loss
    return [
        min(math.fsum(value(seed, run, t, arm) for t in range(1, T + 1)) for arm in range(world.n_arms)) for T in rounds
    ]


@pytest.mark.parametrize("name", EXAMPLES)
@pytest.mark.interpreted
def test_best_total_is_the_smallest_sum(name):
    world = EXAMPLES[name]()
    best = world.best_total(11, 2, CHECKPOINTS)
    np.testing.assert_allclose(best, totals(world, 11, 2, CHECKPOINTS), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("name", ["table", "breaker", "function", "function, mean function", "plain function"])
@pytest.mark.interpreted
def test_summing_in_pieces_gives_the_same_bits(name, monkeypatch):
    best = EXAMPLES[name]().best_total(0, 0, CHECKPOINTS)
    monkeypatch.setattr(world_module, "_CALLS_AT_A_TIME", 20)
    np.testing.assert_array_equal(EXAMPLES[name]().best_total(0, 0, CHECKPOINTS), best)


@pytest.mark.parametrize("name", ["table", "bernoulli"])
@pytest.mark.interpreted
def test_checkpoints_come_in_any_order(name):
    world = EXAMPLES[name]()
    first, second = world.best_total(0, 0, [7, 50])
    assert world.best_total(0, 0, np.array([50, 7, 0, 50])).tolist() == [second, first, 0.0, second]
    assert world.best_total(0, 0, []).size == 0


@pytest.mark.parametrize("name", EXAMPLES)
@pytest.mark.interpreted
def test_same_in_all_runs(name):
    world = EXAMPLES[name]()
    if world.same_in_all_runs:
        expected = world.best_total(0, 0, CHECKPOINTS)
        np.testing.assert_array_equal(world.best_total(5, 7, CHECKPOINTS), expected)


@pytest.mark.parametrize("rounds", [[1.5], [-1], [2**48], 3, [[1]], ["a"]])
@pytest.mark.interpreted
def test_wrong_checkpoints_are_refused(rounds):
    with pytest.raises(sl.SidelongError, match="rounds must be"):
        sl.losses.bernoulli([0.5]).best_total(0, 0, rounds)


@pytest.mark.parametrize("bad", [1.5, -0.25, math.nan])
@pytest.mark.interpreted
def test_a_bad_loss_is_named(bad):
    world = sl.losses.function(lambda _, run, t, arm: bad if (run, t, arm) == (2, 30, 1) else 0.0, n_arms=3)
    assert world.best_total(0, 1, [40]) == [0.0]
    with pytest.raises(sl.SidelongError, match=f"loss must lie from 0 to 1; run 2, round 30, arm 1 has {bad}"):
        world.best_total(0, 2, [40])


# Of all arms of all worlds, each sum of losses is off by more than this with probability 1e-9 (Hoeffding).
ROUNDS = 20_000
ALLOWED = math.sqrt(ROUNDS * math.log(2e9) / 2)


@pytest.mark.parametrize("name", [name for name in EXAMPLES if EXAMPLES[name]().has_means and "plain" not in name])
def test_losses_have_their_means(name):
    world = EXAMPLES[name]()
    if name == "function, means":
        world = sl.losses.function(swinging, [1 / 3, 1 / 3, 1 / 3])  # over three rounds
    summed = []
    for k, role in enumerate(("losses", "means")):
        bind = specialise if world.compiled else rebind
        add = bind(world_module._add, f"test_{role}_{world.code}", value=world.kernels[k])
        each = np.zeros((1, world.n_arms))
        assert add(world.arrays, np.uint64(4), 1, 1, ROUNDS, each) == -1
        summed.append(each)
    assert np.abs(summed[0] - summed[1]).max() < ALLOWED
