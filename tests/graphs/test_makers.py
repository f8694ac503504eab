"""The registry of families and sequences: none is left out, and what it says of each holds."""

import inspect

import pytest

from sidelong import graphs
from sidelong.graphs import families, sequences
from sidelong.graphs.makers import GraphMaker, makers

BANK = [graphs.star(5), graphs.self_loops(5), graphs.cycle(5)]
EXAMPLES = {
    "alternating": {"graphs": BANK},
    "banded": {"n": 9, "width": 2},
    "circulant": {"n": 9, "k": 2},
    "cliques": {"sizes": [4, 3, 3]},
    "cocktail_party": {"n": 8},
    "complete": {"n": 7},
    "complete_bipartite": {"a": 3, "b": 4},
    "cycle": {"n": 9},
    "directed_circulant": {"n": 9, "k": 2},
    "directed_cycle": {"n": 9},
    "directed_path": {"n": 9},
    "drawn": {"graphs": BANK, "weights": [1, 2, 1.5]},
    "erdos_renyi": {"n": 9, "r": 0.9, "seed": 3},
    "grid": {"rows": 3, "columns": 4},
    "hypercube": {"d": 4},
    "in_star": {"n": 9, "hub": 4},
    "nested": {"n": 9, "reveals": "higher"},
    "out_star": {"n": 9},
    "path": {"n": 9},
    "petersen": {},
    "resampled": {"n_arms": 9, "r": 0.9},
    "rotational_tournament": {"n": 9},
    "scheduled": {"graphs": BANK, "schedule": [0, 2, 1]},
    "self_loops": {"n": 9},
    "shadows": {"n_arms": 9, "capacity": 3},
    "star": {"n": 9, "hub": 4},
    "transitive_tournament": {"n": 9},
    "wheel": {"n": 9},
}
OTHERS = {"fixed"}  # makes a sequence of a graph, for the loop; nobody asks for it by name


def test_every_maker_is_registered_public_and_has_an_example_here():
    written = {
        name: function
        for module in (families, sequences)
        for name, function in inspect.getmembers(module, inspect.isfunction)
        if function.__module__ == module.__name__ and not name.startswith("_")
    }
    assert written.keys() - OTHERS == makers().keys(), "put @family or @sequence above the function"
    assert makers().keys() == {name for name in graphs.__all__ if inspect.isfunction(getattr(graphs, name))}
    assert makers().keys() == EXAMPLES.keys()
    assert makers() == makers(over_time=False) | makers(over_time=True)


@pytest.mark.parametrize("name", EXAMPLES)
def test_the_size_is_known_before_the_graph_is_made(name):
    maker, given = makers()[name], EXAMPLES[name]
    made, size = maker.make(**given), maker.size(**given)
    assert made.n_arms == size.arms
    listed = [made] if not maker.over_time else made.bank or [made.graph_of_round(t) for t in range(1, 9)]
    edges = [graph.n_edges for graph in listed if graph.representation == "arcs"]
    needed = sum(edges) if not maker.over_time or made.bank else max(edges)
    assert needed <= size.edges <= 2 * max(needed, made.n_arms)


@pytest.mark.parametrize("name", EXAMPLES)
def test_an_argument_takes_what_its_kind_says(name):
    maker = makers()[name]
    for key, value in EXAMPLES[name].items():
        if maker.kinds[key] != "graphs":
            assert maker.fits(key, value)
        assert maker.takes_list(key) == isinstance(value, list)
    for key, default in maker.defaults.items():
        assert maker.fits(key, default) or default is None
    for key, kind in maker.kinds.items():
        assert not maker.fits(key, {})
        assert maker.fits(key, True) == (kind == "flag")  # noqa: FBT003  # a bool is an int to Python
        assert not maker.fits(key, ["a"])


def test_a_kind_that_is_forgotten_is_an_error_at_once():
    def family(n, k):
        return graphs.circulant(n, k)

    with pytest.raises(TypeError, match=r"family takes n, k, and kinds were given for n\."):
        GraphMaker(family, {"n": "whole"}, lambda n: (n, n), over_time=False)
