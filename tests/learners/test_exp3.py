"""EXP3 against its oracle, closed forms and its theorem."""

import math

import pytest

import sidelong as sl
from learners.stepping import Stepper, play_alike


@pytest.mark.interpreted
def test_two_arms_by_hand():
    stepper = Stepper("exp3", sl.graphs.complete(2))
    assert stepper.distribution().tolist() == [0.5, 0.5]
    assert stepper.traced("learning_rate") == pytest.approx(math.sqrt(math.log(2) / 2))
    stepper.update(0, [1, 1])
    assert stepper.state.Lhat.tolist() == [2, 0]
    p = stepper.distribution()
    assert p[0] == pytest.approx(1 / (1 + math.exp(2 * math.sqrt(math.log(2) / 4))))


@pytest.mark.interpreted
def test_side_observations_change_nothing():
    loops, path = Stepper("exp3", sl.graphs.self_loops(5)), Stepper("exp3", sl.graphs.path(5).as_arcs())
    play_alike(loops, path, rounds=100)
