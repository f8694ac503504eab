"""Rows of a family: to the bit what the same keys do by name."""

import numpy as np
import pytest

import sidelong as sl
from sidelong.agent import state_file

pytestmark = pytest.mark.interpreted

KEYS = ["pears", "apples", "plums", "figs"]
ROWS = np.array([2, 0, 3, 2, 1])  # out of order, and one of them twice
GRAPH = sl.graphs.cliques([3, 2])


def families(count=2, learner="exp3.g++"):
    made = [sl.Family(learner, GRAPH, seed=5) for _ in range(count)]
    for each in made:
        each.add(KEYS)
    return made


def state(family):
    return state_file.pack(*family.contents())


@pytest.mark.parametrize("learner", ["exp3.g++", "ts-n"])
@pytest.mark.parametrize("shown", [None, sl.graphs.complete(5)])
def test_rows_are_asked_and_told_as_their_keys_are(learner, shown):
    by_key, by_row = families(learner=learner)
    rng = np.random.default_rng(3)
    for _ in range(12):
        plan = by_key.ask([KEYS[row] for row in ROWS])
        drawn = by_row.rows.ask(ROWS)
        for name, column in drawn._asdict().items():
            np.testing.assert_array_equal(column, getattr(plan, name))
        expected = by_key.observe_probabilities(plan, shown)
        losses = rng.integers(0, 2, expected.size).astype(float)
        by_key.tell(plan, losses, shown)
        observed = by_row.rows.tell(ROWS, drawn.rounds, losses, shown)
        np.testing.assert_array_equal(observed, expected)
        assert state(by_row) == state(by_key)


def test_what_is_not_to_be_learned_is_given_up():
    by_key, told, cancelled = families(3)
    plan = by_key.ask([KEYS[row] for row in ROWS])
    expected = by_key.observe_probabilities(plan)
    by_key.cancel(plan, lost=True)
    rounds = told.rows.ask(ROWS).rounds
    cancelled.rows.ask(ROWS)
    assert np.array_equal(told.rows.tell(ROWS, rounds, np.zeros(expected.size), learn=False), expected)
    cancelled.rows.cancel(ROWS, rounds, lost=True)
    assert state(told) == state(cancelled) == state(by_key)


def test_what_does_not_wait_is_refused():
    (family,) = families(1)
    rounds = family.rows.ask(ROWS[:2]).rounds
    family.rows.cancel(ROWS[:1], rounds[:1])
    before = state(family)
    for refused in (
        lambda: family.rows.cancel(ROWS[:2], rounds),
        lambda: family.rows.tell(ROWS[:2], rounds, np.zeros(GRAPH.n_arms)),
    ):
        with pytest.raises(sl.errors.DecisionError, match="Decision 1 of the key in row 2 does not wait"):
            refused()
    assert state(family) == before
