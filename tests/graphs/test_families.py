"""The numbers that docstrings of families promise, by exhaustive search, and theta in closed form."""

import math
import os
import subprocess
import sys
from fractions import Fraction

import numpy as np
import pytest

from graphs_brute import numbers
from sidelong import graphs
from sidelong.errors import GraphError
from sidelong.graphs.makers import makers


def up(a, b):
    return -(-a // b)


def undirected(independence, domination, clique_cover):
    return (independence, independence, independence, domination, clique_cover)


SIZES = range(1, 10)
TABLE = [
    *[(graphs.complete(n), undirected(1, 1, 1)) for n in SIZES],
    *[(graphs.self_loops(n), undirected(n, n, n)) for n in SIZES],
    *[(graphs.star(n, hub), undirected(n - 1, 1, n - 1)) for n in range(3, 9) for hub in (0, n - 1)],
    *[(graphs.out_star(n, hub), (n - 1, n, n, 1, n)) for n in range(3, 9) for hub in (0, 1)],
    *[(graphs.in_star(n, hub), (n - 1, n, n, n - 1, n)) for n in range(3, 9) for hub in (0, 2)],
    *[(graphs.path(n), undirected(up(n, 2), up(n, 3), up(n, 2))) for n in SIZES],
    *[(graphs.directed_path(n), (up(n, 2), n, n, up(n, 2), n)) for n in SIZES],
    *[(graphs.cycle(n), undirected(n // 2, up(n, 3), up(n, 2))) for n in range(4, 10)],
    *[(graphs.directed_cycle(n), (n // 2, n - 1, n, up(n, 2), n)) for n in range(3, 10)],
    *[
        (graphs.complete_bipartite(a, b), undirected(max(a, b), min(2, a, b), max(a, b)))
        for a in range(1, 5)
        for b in range(1, 5)
    ],
    *[(graphs.cliques(s), undirected(len(s), len(s), len(s))) for s in ([1], [4], [2, 2, 2], [3, 1, 4], [1] * 6)],
    *[(graphs.transitive_tournament(n), (1, n, n, 1, n)) for n in SIZES],
    *[(graphs.rotational_tournament(n), (1, (n + 1) // 2, n, 2, n)) for n in (3, 5, 7, 9)],
    *[
        (graphs.circulant(n, k), undirected(n // (k + 1), up(n, 2 * k + 1), up(n, k + 1)))
        for k in range(4)
        for n in range(2 * k + 2, 10)
    ],
    *[
        (graphs.directed_circulant(n, k), (n // (k + 1), n - k, n, up(n, k + 1), n))
        for k in range(4)
        for n in range(2 * k + 1, 10)
    ],
    *[(graphs.cocktail_party(n), undirected(2, 2, 2)) for n in (4, 6, 8)],
    *[(graphs.wheel(n), undirected((n - 1) // 2, 1, n // 2)) for n in range(5, 10)],
    *[(graphs.hypercube(d), undirected(2 ** (d - 1), (1, 2, 2)[d - 1], 2 ** (d - 1))) for d in (1, 2, 3)],
    *[(graphs.grid(r, c), undirected(up(r * c, 2), g, up(r * c, 2))) for r, c, g in ((1, 5, 2), (3, 3, 3), (3, 4, 4))],
    (graphs.petersen(), undirected(4, 3, 5)),
    *[(graphs.nested(n), (1, n, n, 1, n)) for n in SIZES],
    *[(graphs.nested(n, reveals="higher"), (1, n, n, 1, n)) for n in SIZES],
    *[(graphs.banded(n, w), undirected(up(n, w + 1), up(n, 2 * w + 1), up(n, w + 1))) for n in SIZES for w in range(4)],
]
FAMILIES = sorted({graph.name.split("(")[0] for graph, _ in TABLE})


@pytest.mark.parametrize("family", FAMILIES)
def test_the_numbers_of_a_family_are_those_of_its_docstring(family):
    cases = [(graph, expected) for graph, expected in TABLE if graph.name.startswith(f"{family}(")]
    found = {graph.name: numbers(graph.matrix().tolist()) for graph, _ in cases}
    assert found == {graph.name: expected for graph, expected in cases}


def test_the_table_has_every_family_but_the_random_one():
    assert {*FAMILIES, "erdos_renyi"} == set(makers(over_time=False))


@pytest.mark.parametrize("graph", [graph for graph, _ in TABLE], ids=lambda graph: graph.name)
def test_every_arm_reveals_itself_and_a_name_is_how_to_make_the_graph(graph):
    assert graph.arms_without_self_loop.size == 0
    assert graph.matrix().diagonal().all()
    assert eval(graph.name, vars(graphs).copy()) == graph  # noqa: S307  # our own names


@pytest.mark.parametrize(
    "graph",
    [
        graphs.complete(5),
        graphs.self_loops(5),
        graphs.path(5),
        graphs.directed_path(5),
        graphs.cliques([3, 2]),
        graphs.transitive_tournament(5),
        graphs.nested(5),
        graphs.banded(9, 2),
        graphs.star(3, hub=1),
        graphs.complete_bipartite(1, 1),
    ],
    ids=lambda graph: graph.name,
)
def test_contiguous_families_are_intervals(graph):
    assert graph.representation == "intervals"


def test_orientation():
    assert graphs.nested(4).out_neighbors(2).tolist() == [0, 1, 2]
    assert graphs.nested(4, reveals="higher").out_neighbors(2).tolist() == [2, 3]
    assert graphs.transitive_tournament(4).out_neighbors(1).tolist() == [1, 2, 3]
    assert graphs.out_star(4, hub=2).out_neighbors(2).tolist() == [0, 1, 2, 3]
    assert graphs.out_star(4, hub=2).out_neighbors(0).tolist() == [0]
    assert graphs.in_star(4, hub=2).in_neighbors(2).tolist() == [0, 1, 2, 3]
    assert graphs.directed_path(3).out_neighbors(0).tolist() == [0, 1]
    assert graphs.directed_cycle(4).out_neighbors(3).tolist() == [0, 3]
    assert graphs.rotational_tournament(5).out_neighbors(4).tolist() == [0, 1, 4]
    assert graphs.directed_circulant(7, 2).out_neighbors(5).tolist() == [0, 5, 6]


def theta(graph, p):
    """Return the sum of p / P in exact arithmetic, after comparing P with that of the graph."""
    matrix = graph.matrix()
    P = [sum(p[i] for i in range(graph.n_arms) if matrix[i, j]) for j in range(graph.n_arms)]
    for form in (graph, graph.as_arcs()):
        np.testing.assert_allclose(form.observe_probabilities([float(x) for x in p]), [float(x) for x in P], rtol=1e-14)
    return sum(a / b for a, b in zip(p, P, strict=True))


@pytest.mark.parametrize(
    ("graph", "expected"),
    [
        (graphs.complete(7), 1),
        (graphs.self_loops(7), 7),
        (graphs.cycle(8), Fraction(8, 3)),
        (graphs.directed_cycle(8), 4),
        (graphs.circulant(11, 3), Fraction(11, 7)),
        (graphs.directed_circulant(11, 3), Fraction(11, 4)),
        (graphs.rotational_tournament(9), Fraction(9, 5)),
        (graphs.hypercube(5), Fraction(32, 6)),
        (graphs.petersen(), Fraction(10, 4)),
        (graphs.cocktail_party(10), Fraction(10, 9)),
        (graphs.cliques([4, 4, 4]), 3),
        (graphs.transitive_tournament(9), sum(Fraction(1, k) for k in range(1, 10))),
        (graphs.nested(9), sum(Fraction(1, k) for k in range(1, 10))),
        (graphs.out_star(9), 1 + Fraction(8, 2)),
    ],
    ids=lambda value: getattr(value, "name", str(value)),
)
def test_theta_of_the_uniform_distribution(graph, expected):
    assert theta(graph, [Fraction(1, graph.n_arms)] * graph.n_arms) == expected


def test_theta_of_a_path():
    p = [Fraction(k, 10) for k in (1, 2, 3, 4)]
    assert theta(graphs.path(4), p) == Fraction(11, 7)
    np.testing.assert_allclose(graphs.path(4).observe_probabilities([0.1, 0.2, 0.3, 0.4]), [0.3, 0.6, 0.9, 0.7])


def test_theta_of_a_tournament_comes_near_the_acyclic_number():
    p = np.cumprod(np.full(9, 1e-3))
    for graph in (graphs.transitive_tournament(9).as_arcs(), graphs.nested(9), graphs.nested(9, "higher")):
        order = p if graph.out_neighbors(0).size == 1 else p[::-1].copy()
        value = (order / graph.observe_probabilities(order)).sum()
        assert value > 8.99, graph


def test_a_random_graph_depends_on_its_arguments_alone():
    code = "from sidelong import graphs; print(graphs.erdos_renyi(40, 0.3, 7).content_hash)"
    elsewhere = subprocess.run(
        [sys.executable, "-c", code],
        check=True,
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    assert elsewhere.stdout.strip() == graphs.erdos_renyi(40, 0.3, 7).content_hash
    assert graphs.erdos_renyi(40, 0.3, 8) != graphs.erdos_renyi(40, 0.3, 7)
    assert graphs.erdos_renyi(40, 0.3, 7, directed=True) != graphs.erdos_renyi(40, 0.3, 7)


def test_a_random_graph_is_pinned_by_the_published_words_of_philox():
    words = np.random.Philox(key=3).random_raw(6)
    present = [int(word) / 2**64 < 0.5 for word in words]
    pairs = [(0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3)]
    expected = {pair for pair, there in zip(pairs, present, strict=True) if there}
    graph = graphs.erdos_renyi(4, 0.5, 3)
    assert {(i, j) for i, j in graph.edges().tolist() if i < j} == expected
    assert graph.is_undirected


def test_a_random_graph_has_its_share_of_edges():
    n, r = 300, 0.2
    both = graphs.erdos_renyi(n, r, 0)
    single = graphs.erdos_renyi(n, r, 0, directed=True)
    assert both.is_undirected
    assert not single.is_undirected
    pairs = n * (n - 1)
    for graph, trials in ((both, pairs / 2), (single, pairs)):
        share = (graph.n_edges - n) / pairs
        assert abs(share - r) < 5 * math.sqrt(r * (1 - r) / trials)
    assert graphs.erdos_renyi(20, 0.0, 1) == graphs.self_loops(20)
    assert graphs.erdos_renyi(20, 1.0, 1) == graphs.complete(20)
    assert graphs.erdos_renyi(1, 0.5, 1) == graphs.complete(1)


def test_domination_of_the_hypercube_of_dimension_4():
    matrix = graphs.hypercube(4).matrix()
    pairs = matrix[:, None, :] | matrix[None, :, :]
    assert pairs.sum(axis=2).max() == 10
    triples = (pairs[:, :, None, :] | matrix).sum(axis=3).max()
    assert triples < 16
    assert matrix[[0, 1, 14, 15]].any(axis=0).all()


@pytest.mark.parametrize(
    "make",
    [
        lambda: graphs.complete(0),
        lambda: graphs.self_loops(-1),
        lambda: graphs.star(3, hub=3),
        lambda: graphs.star(3, hub=-1),
        lambda: graphs.out_star(0),
        lambda: graphs.path(2.5),
        lambda: graphs.path("3"),
        lambda: graphs.cycle(2),
        lambda: graphs.directed_cycle(2),
        lambda: graphs.complete_bipartite(0, 3),
        lambda: graphs.complete_bipartite(100_000, 100_000),
        lambda: graphs.cliques([]),
        lambda: graphs.cliques([2, 0]),
        lambda: graphs.rotational_tournament(4),
        lambda: graphs.circulant(5, 2),
        lambda: graphs.circulant(5, -1),
        lambda: graphs.directed_circulant(4, 2),
        lambda: graphs.cocktail_party(5),
        lambda: graphs.cocktail_party(2),
        lambda: graphs.wheel(4),
        lambda: graphs.hypercube(0),
        lambda: graphs.hypercube(10**6),
        lambda: graphs.grid(0, 3),
        lambda: graphs.grid(10**6, 10**6),
        lambda: graphs.nested(3, reveals="all"),
        lambda: graphs.nested(2**31),
        lambda: graphs.banded(3, -1),
        lambda: graphs.erdos_renyi(3, 1.5, 0),
        lambda: graphs.erdos_renyi(3, math.nan, 0),
        lambda: graphs.erdos_renyi(3, True, 0),  # noqa: FBT003
        lambda: graphs.erdos_renyi(3, 0.5, -1),
    ],
)
def test_a_size_that_makes_no_sense_is_refused(make):
    with pytest.raises(GraphError):
        make()


def test_a_refusal_gives_the_rule_and_the_value():
    with pytest.raises(GraphError, match=r"n of cycle must be a whole number from 3 to 2,147,483,647, not 2\."):
        graphs.cycle(2)
    with pytest.raises(GraphError, match=r"rotational_tournament takes an odd n, .* not 4"):
        graphs.rotational_tournament(4)
    with pytest.raises(GraphError, match="hub one of the arms 0 to 2, not 3"):
        graphs.star(3, hub=3)
