"""A learner is a record: what is missing in one or wrong is said when it is made or passed in."""

import re
import types
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import pytest

import sidelong as sl
from sidelong.errors import LearnerError
from sidelong.learners import Learner, exp3set, tsn, uniform

pytestmark = pytest.mark.interpreted

GRAPH = sl.graphs.complete(3)
WORLD = sl.losses.bernoulli([0.1, 0.5, 0.5])


def test_what_is_missing_is_named():
    with pytest.raises(TypeError, match="'init' and 'update'"):
        Learner(name="half", params=uniform.Params, configure=uniform.configure)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"name": ""}, "The name of a learner is text, not ''"),
        ({"init": None}, r"init of the learner 'uniform' is None, and must be a function of params, graph\."),
        ({"update": lambda _p, _s, _g: None}, "update .* must be a function of params, state, graph, told"),
        (
            {"distribution": lambda _p, _s, _g, _a, _e: None},
            "distribution .* a function of params, state, graph, asked",
        ),
        ({"draw": 3}, "draw of the learner 'uniform' is 3, and must be a function"),
        ({"grow": lambda _p: None}, "grow .* must be a function of params, state"),
        ({"params": dict}, "params .* must be a NamedTuple class"),
        ({"version": 0}, "version .* is 0, and must be a whole number from 1 on"),
        ({"needs": {"self-loops"}}, "needs .* must be a set of `Need`"),
        ({"needs": None}, "needs .* is None, and must be a set of `Need`"),
        ({"about": None}, "about .* is None, and must be an `About`"),
        ({"ranges": None}, "ranges .* is None, and must be a mapping of names to arms, sizes"),
        ({"ranges": {"n": "few"}}, "ranges .* must be a mapping of names to arms, sizes"),
        ({"traces": "observed"}, "traces .* is 'observed', and must be a tuple of names"),
        ({"kept": ("P", 3)}, "kept .* must be a tuple of names"),
        ({"gaps": None}, "gaps .* must be the name of an array of its state, or empty"),
        ({"initial": "first"}, "initial .* must be the name of one of its params, or empty"),
        ({"probability": lambda *_: 0.5}, "has a `probability`, and no `draw` that it is of"),
    ],
)
def test_what_is_wrong_is_named(changes, said):
    with pytest.raises(LearnerError, match=said):
        replace(uniform.LEARNER, **changes)


class State(NamedTuple):
    n: object


WRONG_STATES = [
    ({"init": lambda _p, _g: None}, "init of .* must return a NamedTuple of arrays, not NoneType"),
    ({"init": lambda _p, _g: State([0.0])}, "n in the state of .* must be an array of numbers, not list"),
    ({"init": lambda _p, _g: State(np.zeros(3, object))}, "n in the state of .*, not an array of object"),
    ({"gaps": "gap"}, "gaps of the learner 'own' names 'gap'; its state has n"),
    ({"scratch": ("n", "q")}, "scratch of the learner 'own' names 'q'; its state has n"),
]


@pytest.mark.parametrize("take", [sl.Agent, sl.Family, lambda own, graph: sl.simulate(own, graph, WORLD, 5)])
@pytest.mark.parametrize(("changes", "said"), WRONG_STATES)
def test_a_state_that_no_kernel_can_take_is_refused(changes, said, take):
    own = replace(uniform.LEARNER, **{"name": "own", "init": lambda _p, _g: State(np.zeros(3))} | changes)
    with pytest.raises(LearnerError, match=said):
        take(own, GRAPH)


@pytest.mark.parametrize(("changes", "said"), WRONG_STATES)
def test_the_check_of_a_learner_names_what_is_wrong_with_its_state(changes, said):
    own = replace(uniform.LEARNER, **{"name": "own", "init": lambda _p, _g: State(np.zeros(3))} | changes)
    (found,) = sl.learners.check(own, GRAPH, rounds=5).violations
    assert found.rule == "configure and init"
    assert re.match(said, found.said)


def test_constants_of_another_type_are_refused():
    own = replace(uniform.LEARNER, name="own", configure=lambda graph: None)  # noqa: ARG005  # called by name
    with pytest.raises(LearnerError, match="configure of the learner 'own' must return its params, a Params, not None"):
        sl.Agent(own, GRAPH)


def test_a_learner_decides_by_a_distribution_or_a_draw():
    parts = {name: getattr(tsn, name) for name in ("configure", "init", "update")}
    with pytest.raises(LearnerError, match="neither a `distribution` nor a `draw`"):
        Learner(name="idle", params=tsn.Params, **parts)
    assert not tsn.LEARNER.is_sparing
    assert tsn.LEARNER.draws_itself


@pytest.mark.parametrize("take", [sl.Agent, sl.Family, lambda own, graph: sl.simulate(own, graph, WORLD, 5)])
def test_a_module_without_a_record_is_refused(take):
    with pytest.raises(LearnerError, match=r"module empty has no LEARNER.*LEARNER = Learner\(name=\.\.\."):
        take(types.ModuleType("empty"), GRAPH)


def test_the_record_stands_for_its_module():
    first, second = sl.Agent(uniform, GRAPH, seed=3), sl.Agent(uniform.LEARNER, GRAPH, seed=3)
    assert [first.ask().arm for _ in range(20)] == [second.ask().arm for _ in range(20)]


def test_a_variant_is_of_the_learner_that_was_given():
    own = replace(exp3set.LEARNER, name="own")
    assert sl.Agent(own, GRAPH).learner == "own"


def test_a_learner_that_takes_no_new_arm_says_so():
    agent = sl.Agent(replace(exp3set.LEARNER, name="settled", grow=None), GRAPH)
    with pytest.raises(LearnerError, match="add_arm needs a learner that can take in a new arm, and settled cannot"):
        agent.add_arm(reveals=[0], revealed_by=[1])
    assert agent.graph.n_arms == 3


def test_a_function_in_the_place_of_a_kernel_is_refused():
    own = replace(uniform.LEARNER, name="plain", update=lambda *_: None)
    if not hasattr(uniform.update, "py_func"):  # the JIT is off, and any function will do
        sl.Agent(own, GRAPH)
        return
    with pytest.raises(LearnerError, match="update of the learner 'plain' is no kernel: write @kernel above it"):
        sl.Agent(own, GRAPH)
