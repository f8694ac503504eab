import itertools
import os
import pickle
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import sidelong as sl
from losses.world_examples import BUILT_IN, EXAMPLES, MEANS, PLACES, bits
from sidelong.losses.world_kernels import FEW, has_range, loss, loss_range, losses_of, mean

pytestmark = pytest.mark.compiled

every_world = pytest.mark.parametrize("name", EXAMPLES)


@every_world
@pytest.mark.interpreted
def test_losses_and_means_do_not_depend_on_the_order_of_the_questions(name):
    world = EXAMPLES[name]()
    places = [(*place, arm) for place in PLACES for arm in range(world.n_arms) if place[0] == 0]
    forward = {place: (world.loss(*place), world.mean(*place)) for place in places}
    again = EXAMPLES[name]()
    for k in np.random.default_rng(0).permutation(len(places)):
        np.testing.assert_array_equal((again.loss(*places[k]), again.mean(*places[k])), forward[places[k]])
    assert all(0.0 <= l <= 1.0 for l, _ in forward.values())
    assert all((0.0 <= m <= 1.0) is world.has_means for _, m in forward.values())


def test_the_jit_off_gives_the_same_bits():
    script = Path(__file__).with_name("world_examples.py")
    environment = {**os.environ, "NUMBA_DISABLE_JIT": "1"}
    answer = subprocess.run([sys.executable, script], env=environment, capture_output=True, text=True, check=True)
    interpreted = dict(line.split("\t") for line in answer.stdout.splitlines())
    assert interpreted == {name: bits(make()) for name, make in EXAMPLES.items()}


def test_all_built_in_worlds_share_one_signature():
    # In a process of its own: whoever simulates may call the kernels with integers of 32 bits.
    script = (
        "from world_examples import BUILT_IN, EXAMPLES, bits\n"
        "from sidelong.losses.world_kernels import cumulative, loss, mean\n"
        "for name in BUILT_IN: bits(EXAMPLES[name]())\n"
        "print(*(len({*each.signatures, *each.whole.signatures}) for each in (loss, mean, cumulative)))"
    )
    folders = os.pathsep.join([str(Path(__file__).parent), *sys.path])
    environment = {**os.environ, "NUMBA_DISABLE_JIT": "0", "PYTHONPATH": folders}
    answer = subprocess.run([sys.executable, "-c", script], env=environment, capture_output=True, text=True, check=True)
    assert answer.stdout.split() in (["1", "1", "1"], ["1", "1", "0"])  # 0 if its caller was compiled before


@pytest.mark.parametrize("name", BUILT_IN)
@pytest.mark.interpreted
def test_all_built_in_worlds_share_two_kernels(name):
    world = EXAMPLES[name]()
    assert world.kernels == (loss, mean)
    assert world.compiled
    assert world.code == "builtin"


@pytest.mark.parametrize("name", [name for name in EXAMPLES if name != "plain mean function"])
@pytest.mark.interpreted
def test_a_pickled_world_is_the_same_world(name):
    world = EXAMPLES[name]()
    again = pickle.loads(pickle.dumps(world))  # noqa: S301  # our own
    assert bits(again) == bits(world)
    assert repr(again) == repr(world)
    assert (again.rounds, again.has_means, again.code) == (world.rounds, world.has_means, world.code)
    assert not any(each.flags.writeable for each in again.arrays[1:])


@pytest.mark.interpreted
@pytest.mark.parametrize("name", BUILT_IN)
@pytest.mark.interpreted
def test_losses_of_arms_in_a_row_are_those_of_the_arms_one_by_one(name):
    world = EXAMPLES[name]()
    if not has_range(world.arrays):
        return
    for t in (1, 2, 3, 17, 500):
        for first, last in itertools.combinations_with_replacement(range(world.n_arms + 1), 2):
            wide = np.full(1 + (last - first) + 1, np.nan)  # more room than that is not needed
            loss_range(world.arrays, np.uint64(3), 2, t, first, last, wide)
            assert wide[1:-1].tolist() == [world.loss(3, 2, t, arm) for arm in range(first, last)]


@pytest.mark.interpreted
@pytest.mark.parametrize("n_arms", [2, 5, 10, FEW, FEW + 1, 2 * FEW + 3])
@pytest.mark.parametrize("name", ["bernoulli", "constrained"])
def test_losses_of_a_list_of_arms_are_those_of_the_arms_one_by_one(name, n_arms):
    rng = np.random.default_rng(n_arms)
    means = rng.random(n_arms).tolist()
    world = sl.losses.bernoulli(means) if name == "bernoulli" else sl.losses.constrained(0.4, n_arms=n_arms)
    everyone, luck = np.arange(n_arms, dtype=np.int32), np.full(FEW, np.nan)
    for t in range(1, 20):
        first, last = sorted(rng.integers(0, n_arms + 1, 2))
        some = np.flatnonzero(rng.random(n_arms) < 0.5).astype(np.int32)
        for arms, begin, count, in_a_row in ((everyone, first, last - first, True), (some, 0, some.size, False)):
            wide = np.full(1 + n_arms + 1, np.nan)
            losses_of(world.arrays, np.uint64(3), 2, t, arms, begin, count, in_a_row, wide, luck)
            assert wide[1 : 1 + count].tolist() == [world.loss(3, 2, t, arm) for arm in arms[begin : begin + count]]


def test_the_worlds_that_know_arms_in_a_row():
    assert {name for name in BUILT_IN if has_range(EXAMPLES[name]().arrays)} >= {"bernoulli", "constrained"}


def test_a_world_cannot_be_changed():
    means = np.array(MEANS)
    world = sl.losses.bernoulli(means)
    means[:] = 1.0
    assert world.mean(0, 0, 1, 1) == 0.2
    with pytest.raises(AttributeError):
        world.n_arms = 3
    with pytest.raises(ValueError, match="read-only"):
        world.arrays.numbers[0] = 1.0


@pytest.mark.interpreted
@pytest.mark.parametrize("name", ["table", "breaker"])
def test_a_world_that_ends_has_no_loss_afterwards(name):
    world = EXAMPLES[name]()
    assert world.rounds == 400
    assert np.isnan(loss(world.arrays, np.uint64(0), 0, 401, 0))
    with pytest.raises(sl.SidelongError, match="t must be a whole number from 1 to 400, not 401"):
        world.loss(0, 0, 401, 0)
    with pytest.raises(sl.SidelongError, match="each of rounds must be a whole number from 0 to 400, not 401"):
        world.best_total(0, 0, [401])


@pytest.mark.interpreted
@pytest.mark.parametrize("place", [(-1, 0, 1, 0), (2**64, 0, 1, 0), (0, 2**32, 1, 0), (0, 0, 0, 0), (0, 0, 1, 4)])
def test_a_place_that_does_not_exist_is_refused(place):
    with pytest.raises(sl.SidelongError, match="must be a whole number from"):
        sl.losses.bernoulli(MEANS).loss(*place)


@pytest.mark.interpreted
def test_seed_run_round_and_arm_each_make_a_difference():
    world = sl.losses.beta([0.5, 0.5])
    places = [
        (0, 0, 1, 0),
        (1, 0, 1, 0),
        (2**63, 0, 1, 0),
        (0, 1, 1, 0),
        (0, 0, 2, 0),
        (0, 0, 2**40, 0),
        (0, 0, 1, 1),
    ]
    assert len({world.loss(*place) for place in places}) == len(places)


@pytest.mark.interpreted
def test_the_public_names():
    assert sl.losses.__all__ == [
        "World",
        "bernoulli",
        "beta",
        "breaker",
        "compiled",
        "constrained",
        "corrupted",
        "drifting",
        "function",
        "lower_bound",
        "switching",
        "table",
    ]
