import functools

import numpy as np
import pytest

import sidelong as sl
from losses.world_examples import bits, plain, small_table, swinging, swinging_mean


@pytest.mark.interpreted
def test_a_table_gives_its_losses():
    losses = small_table()
    world = sl.losses.table(losses)
    assert [[world.loss(5, 3, t, arm) for arm in range(4)] for t in range(1, 50)] == losses[:49].tolist()
    assert not world.has_means
    assert repr(world) == "<World table: 4 arms, 400 rounds>"


@pytest.mark.interpreted
def test_a_mapped_table_is_not_copied(tmp_path):
    np.save(tmp_path / "losses.npy", small_table())
    mapped = np.load(tmp_path / "losses.npy", mmap_mode="r")
    for each in (mapped, np.asarray(mapped), mapped[100:]):
        world = sl.losses.table(each)
        assert np.shares_memory(world.arrays.table, mapped)
        assert world.rounds == len(each)
    assert bits(sl.losses.table(mapped)) == bits(sl.losses.table(small_table()))


@pytest.mark.interpreted
def test_a_table_in_memory_is_copied():
    losses = small_table()
    world = sl.losses.table(losses)
    losses[:] = 1.0
    assert world.loss(0, 0, 1, 0) == 0.0


@pytest.mark.interpreted
@pytest.mark.parametrize("convert", [lambda a: a.astype(bool), np.asfortranarray, lambda a: a.tolist(), np.float32])
def test_a_table_in_memory_may_have_any_layout(convert):
    losses = np.round(small_table())
    assert bits(sl.losses.table(convert(losses))) == bits(sl.losses.table(losses))


@pytest.mark.interpreted
def test_a_mapped_table_that_would_have_to_be_copied_is_refused(tmp_path):
    for name, array in (("narrow", np.float32(small_table())), ("fortran", np.asfortranarray(small_table()))):
        np.save(tmp_path / f"{name}.npy", array)
        with pytest.raises(sl.SidelongError, match=r"must be float64, in C order and aligned.*numpy.save"):
            sl.losses.table(np.load(tmp_path / f"{name}.npy", mmap_mode="r"))


@pytest.mark.interpreted
@pytest.mark.parametrize("bad", [np.nan, 1.0000001, -1e-9, np.inf])
def test_a_bad_entry_of_a_table_is_named(bad):
    losses = np.zeros((3000, 500))  # more than is checked at a time
    losses[2900, 7] = losses[2950, 3] = bad
    with pytest.raises(sl.SidelongError, match=r"must lie from 0 to 1; round 2901, arm 7 has"):
        sl.losses.table(losses)


def test_a_compiled_function_gives_what_it_gives():
    world = sl.losses.function(swinging, swinging_mean, n_arms=3)
    assert world.compiled
    assert world.has_means
    for t in range(1, 20):
        for arm in range(3):
            assert world.loss(9, 2, t, arm) == swinging(9, 2, t, arm)
            assert world.mean(9, 2, t, arm) == swinging_mean(9, 2, t, arm)


@pytest.mark.interpreted
def test_a_plain_function_gives_what_it_gives():
    world = sl.losses.function(plain, n_arms=3)
    assert not world.has_means
    assert [world.loss(9, 2, t, 1) for t in range(1, 20)] == [plain(9, 2, t, 1) for t in range(1, 20)]


def test_a_plain_function_is_not_compiled_and_says_so():
    world = sl.losses.function(plain, n_arms=3)
    assert not world.compiled
    assert repr(world) == "<World plain: 3 arms, a plain Python function (slow); no means>"


@pytest.mark.interpreted
def test_any_callable_of_four_arguments_will_do():
    world = sl.losses.function(functools.partial(lambda scale, seed, run, t, arm: scale, 0.5), n_arms=2)  # noqa: ARG005
    assert world.loss(0, 0, 1, 0) == 0.5
    assert world.best_total(0, 0, [4]) == [2.0]


def constant(value):
    @sl.losses.compiled
    def loss(seed, run, t, arm):  # noqa: ARG001
        return value

    return loss


def test_functions_of_one_factory_are_told_apart():
    # They share a file, a line, a name and their bytecode, by which machine code is found.
    worlds = {value: sl.losses.function(constant(value), n_arms=2) for value in (0.25, 0.5, 0.75)}
    for value, world in worlds.items():
        assert world.loss(0, 0, 1, 0) == value
        assert world.best_total(0, 0, [100]) == [100 * value]
    assert len({world.code for world in worlds.values()}) == 3
    assert sl.losses.function(constant(0.5), n_arms=9).code == worlds[0.5].code


def test_functions_are_told_apart_by_the_arrays_they_capture():
    def replayed(array):
        return sl.losses.function(lambda seed, run, t, arm: array[t, arm], n_arms=2)  # noqa: ARG005

    one, other = np.zeros((2000, 2)), np.zeros((2000, 2))
    other[1000, 1] = 0.5  # where the text of the array has dots
    assert replayed(one).code != replayed(other).code
    assert replayed(one).code == replayed(one.copy()).code
