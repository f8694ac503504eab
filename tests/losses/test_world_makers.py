"""The registry of worlds: none is left out, and what it says of each holds."""

import importlib
import inspect
import pkgutil

import numpy as np
import pytest

import sidelong as sl
from losses.world_examples import EXAMPLES, MEANS, PLACES, ROWS, plain, small_table
from sidelong.losses.world_makers import WorldMaker, makers

GRAPH = sl.graphs.star(4)
#: What each maker may be given, with a value of each kind.
ARGUMENTS = {
    "bernoulli": {"means": MEANS},
    "beta": {"means": MEANS, "concentration": [2.0, 3.0, 2.0, 3.0]},
    "breaker": {"graph": GRAPH, "rounds": 400},
    "constrained": {"gaps": [0.1, 0.0, 0.2, 0.2], "n_arms": 4, "best": 1},
    "corrupted": {"means": MEANS, "budget": 50, "attack": "swap"},
    "drifting": {"means": ROWS, "every": 7},
    "function": {"f": plain, "means": MEANS, "n_arms": 4, "name": "mine"},
    "lower_bound": {"graph": GRAPH, "gap": 0.1, "independent_set": [1, 2]},
    "switching": {"means": ROWS, "at": [7, 51]},
    "table": {"array": small_table().tolist()},
}


def makes_worlds(each, file):
    """Tell whether it is a function of this file that returns a world."""
    return inspect.isfunction(each) and each.__module__ == file.__name__ and each.__annotations__["return"] == "World"


@pytest.mark.interpreted
def test_every_maker_is_registered_public_and_has_arguments_here():
    files = [
        importlib.import_module(f"sidelong.losses.{each.name}") for each in pkgutil.iter_modules(sl.losses.__path__)
    ]
    written = {name for file in files for name, each in vars(file).items() if makes_worlds(each, file)}
    assert makers().keys() == written, "put @world above the function"
    public = {name for name in sl.losses.__all__ if inspect.isfunction(getattr(sl.losses, name))} - {"compiled"}
    assert makers().keys() == public, "put @world above the function, and its name into sidelong.losses"
    assert makers().keys() == ARGUMENTS.keys()
    assert makers().keys() <= {EXAMPLES[name]().name for name in EXAMPLES} | {"function"}, "world_examples.py"


@pytest.mark.interpreted
@pytest.mark.parametrize("name", ARGUMENTS)
def test_an_argument_takes_what_its_kind_says(name):
    maker, given = makers()[name], ARGUMENTS[name]
    assert maker.make(**given).n_arms == 4
    for key, value in given.items():
        assert maker.takes_list(key) == isinstance(value, list)
        assert (maker.kinds[key] == "graph") == isinstance(value, sl.FeedbackGraph)
        assert (maker.kinds[key] == "function") == callable(value)
    filled = {"graph": GRAPH, "n_arms": 4, "rounds": 400}
    for key, kind in maker.kinds.items():
        assert kind == key or kind not in filled  # a cell of a study fills it in by this name


@pytest.mark.interpreted
@pytest.mark.parametrize("name", ARGUMENTS)
def test_a_world_has_fixed_means_where_its_maker_says_so(name):
    world = makers()[name].make(**ARGUMENTS[name])
    assert (world.fixed_means is not None) == makers()[name].stochastic
    if world.fixed_means is not None:
        assert world.fixed_means.tolist() == [world.mean(3, 1, 99, arm) for arm in range(world.n_arms)]


@pytest.mark.interpreted
@pytest.mark.parametrize("name", EXAMPLES)
def test_a_world_knows_whether_its_losses_are_0_or_1(name):
    world = EXAMPLES[name]()
    losses = {world.loss(*place, arm) for place in PLACES if place[0] == 0 for arm in range(world.n_arms)}
    assert (world.binary is None) == (world.functions is not None)
    if world.binary is not None:
        assert world.binary == (losses <= {0.0, 1.0})


@pytest.mark.interpreted
def test_a_table_and_sure_losses_are_binary_if_all_their_losses_are():
    assert sl.losses.table(np.eye(3)).binary
    assert not sl.losses.table(np.eye(3) / 2).binary
    assert sl.losses.beta([0.0, 1.0]).binary


@pytest.mark.interpreted
def test_a_kind_that_is_forgotten_is_an_error_at_once():
    def steady(means, level):
        return sl.losses.bernoulli(np.array(means) + level)

    with pytest.raises(TypeError, match=r"steady takes means, level, and kinds were given for means\."):
        WorldMaker(steady, {"means": "means"}, stochastic=True)
