"""Numbers of graphs: against trying all sets of arms, against closed forms, and what happens when time ends."""

import importlib
import math
import time
import types
from itertools import combinations
from pkgutil import iter_modules

import networkx as nx
import numpy as np
import pytest

import graphs_brute
import sidelong as sl
from nightly import share
from sidelong import graphs
from sidelong._jit import Kernel
from sidelong.errors import GraphError
from sidelong.graphs import solvers
from sidelong.graphs.solvers import acyclic, clique_cover, clique_search, packing
from sidelong.graphs.solvers import budget as budgets
from sidelong.graphs.solvers.budget import Budget

NAMES = ("independence", "acyclic", "strong_independence", "domination", "clique_cover")


@pytest.fixture(scope="module", autouse=True)
def by_processor_time():
    """Let budgets count what this process uses: the machine may do something else."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(budgets, "time", types.SimpleNamespace(perf_counter=time.process_time))
        yield


def random_graph(seed, most=9):
    """Return a random graph: any digraph, undirected, with self-loops, or intervals, ascending or not."""
    rng = np.random.default_rng(seed)
    K = int(rng.integers(1, most + 1))
    A = rng.random((K, K)) < rng.uniform(0.05, 0.95)
    kind = seed % 5
    if kind == 1:
        A |= A.T
    if kind in (1, 2):
        A |= np.eye(K, dtype=bool)
    if kind in (3, 4):
        low = np.array([rng.integers(0, i + 1) for i in range(K)])
        high = np.array([rng.integers(i + 1, K + 1) for i in range(K)])
        low, high = (np.sort(low), np.sort(high)) if kind == 4 else (low, high)
        return sl.FeedbackGraph.from_intervals(low, high)
    return sl.FeedbackGraph.from_matrix(A)


def weak_domination(A):
    """Try all sets for the arms that are observable, but neither by themselves nor by all others."""
    n = len(A)
    weak = [
        j
        for j in range(n)
        if not A[j][j] and any(A[i][j] for i in range(n)) and not all(A[i][j] for i in range(n) if i != j)
    ]
    return next(
        size
        for size in range(n + 1)
        if any(all(any(A[i][j] for i in arms) for j in weak) for arms in combinations(range(n), size))
    )


def heaviest(A, weights):
    n = len(A)
    return max(
        math.fsum(weights[i] for i in arms)
        for size in range(n + 1)
        for arms in combinations(range(n), size)
        if not any(A[i][j] and A[j][i] for i, j in combinations(arms, 2))
    )


def check_all_numbers(graph, weights):
    A = graph.matrix().tolist()
    found = graph.numbers()
    want = {
        "independence": graphs_brute.independence(A),
        "acyclic": graphs_brute.acyclic(A),
        "strong_independence": graphs_brute.strong_independence(A),
        "clique_cover": graphs_brute.clique_cover(A),
    }
    if graph.observability.kind != "none":
        want |= {"domination": graphs_brute.domination(A), "weak_domination": weak_domination(A)}
    assert {name: getattr(found, name).value for name in want} == want
    for name in want:
        assert getattr(found, name).holds_for(graph), name
    weighted = found.weighted_strong_independence(weights)
    assert weighted.value == pytest.approx(heaviest(A, weights), rel=1e-12)
    assert weighted.upper - weighted.lower <= 1e-11 * weighted.upper
    assert weighted.holds_for(graph)
    fractional = found.fractional_clique_cover
    assert fractional.exact
    assert fractional.holds_for(graph)
    assert fractional.value == pytest.approx(graphs_brute.fractional_clique_cover(A), rel=1e-5)  # HiGHS's tolerance
    assert want["strong_independence"] <= fractional.upper
    assert fractional.lower <= want["clique_cover"]
    if "domination" in want:
        assert found.fractional_domination.exact
        assert found.fractional_domination.holds_for(graph)
        assert found.fractional_domination.value == pytest.approx(graphs_brute.fractional_domination(A), rel=1e-5)
        assert found.fractional_domination.lower <= want["domination"]


@pytest.mark.parametrize("batch", share(range(10), 3))
def test_random_digraphs_of_up_to_nine_arms(batch):
    for seed in range(50 * batch, 50 * batch + 50):
        graph = random_graph(seed)
        rng = np.random.default_rng(seed)
        weights = rng.random(graph.n_arms) * rng.integers(0, 2, graph.n_arms) * 10.0 ** rng.integers(-9, 9)
        check_all_numbers(graph, weights)


@pytest.mark.interpreted
@pytest.mark.parametrize("seed", range(15))
def test_small_digraphs_also_with_the_jit_off(seed):
    graph = random_graph(seed, most=7)
    check_all_numbers(graph, np.arange(graph.n_arms) + 1.0)


@pytest.mark.interpreted
def test_graphs_that_reductions_leave_as_they_are():
    """So that every search is reached: by the Petersen graph, its line graph, and a tournament."""
    petersen = graphs.petersen()
    assert [getattr(petersen.numbers(), name).value for name in NAMES] == [4, 4, 4, 3, 5]
    weighted = petersen.numbers().weighted_strong_independence(np.arange(10) + 1.0)
    assert weighted.value == heaviest(petersen.matrix().tolist(), np.arange(10) + 1.0)
    tournament = graphs.rotational_tournament(9)
    assert [getattr(tournament.numbers(), name).value for name in NAMES] == [1, 5, 9, 2, 9]
    line = sl.FeedbackGraph.from_networkx(nx.line_graph(nx.petersen_graph())).with_self_loops()
    assert line.numbers().independence.value == 5  # a perfect matching
    assert line.numbers().clique_cover.value == 6  # a smallest vertex cover


# Closed forms


def up(a, b):
    return -(-a // b)


def undirected(independence, domination, clique_cover):
    return (independence, independence, independence, domination, clique_cover)


def table(n):
    """Return graphs of about n arms, and their numbers by formula; None where there is none."""
    yield graphs.complete(n), undirected(1, 1, 1)
    yield graphs.self_loops(n), undirected(n, n, n)
    yield graphs.path(n), undirected(up(n, 2), up(n, 3), up(n, 2))
    yield graphs.directed_path(n), (up(n, 2), n, n, up(n, 2), n)
    yield graphs.transitive_tournament(n), (1, n, n, 1, n)
    yield graphs.nested(n), (1, n, n, 1, n)
    yield graphs.cliques([n, 1, 3]), undirected(3, 3, 3)
    a, b = up(n, 3), n - n // 3
    yield graphs.complete_bipartite(a, b), undirected(max(a, b), min(2, a, b), max(a, b))
    yield graphs.grid(3, up(n, 3)), undirected(up(3 * up(n, 3), 2), None, up(3 * up(n, 3), 2))
    if n >= 3:
        yield graphs.star(n, n // 2), undirected(n - 1, 1, n - 1)
        yield graphs.out_star(n), (n - 1, n, n, 1, n)
        yield graphs.in_star(n), (n - 1, n, n, n - 1, n)
        yield graphs.directed_cycle(n), (n // 2, n - 1, n, up(n, 2), n)
    if n >= 4:
        yield graphs.cycle(n), undirected(n // 2, up(n, 3), up(n, 2))
    if n >= 5:
        yield graphs.wheel(n), undirected((n - 1) // 2, 1, up(n - 1, 2))
    if n >= 3 and n % 2:
        yield graphs.rotational_tournament(n), (1, (n + 1) // 2, n, 2, n)
    if n >= 4 and n % 2 == 0:
        yield graphs.cocktail_party(n), undirected(2, 2, 2)
    for k in {1, n // 5} - {0}:
        if n >= 2 * k + 2:
            yield graphs.circulant(n, k), undirected(n // (k + 1), up(n, 2 * k + 1), up(n, k + 1))
            yield graphs.directed_circulant(n, k), (n // (k + 1), n - k, n, up(n, k + 1), n)
        yield graphs.banded(n, k), undirected(up(n, k + 1), up(n, 2 * k + 1), up(n, k + 1))


@pytest.mark.parametrize(
    "n", [pytest.param(n, marks=() if n < 13 or n == 40 else pytest.mark.nightly) for n in range(1, 41)]
)
def test_families_have_the_numbers_of_their_formulas(n):
    for graph, want in table(n):
        for each in (graph, graph.as_arcs()) if n in (5, 12, 40) else (graph,):
            for name, value in zip(NAMES, want, strict=True):
                found = getattr(each.numbers(), name)
                assert found.exact
                assert found.value == value or value is None, (graph.name, name, found)
                assert found.holds_for(each), (graph.name, name)


@pytest.mark.parametrize(("d", "domination"), [(1, 1), (2, 2), (3, 2), (4, 4), (5, 7)])
def test_hypercubes(d, domination):
    found = graphs.hypercube(d).numbers()
    assert [getattr(found, name).value for name in NAMES] == [2 ** (d - 1)] * 3 + [domination, 2 ** (d - 1)]


def test_networks_whose_independence_number_is_known():
    for network, value in (
        (nx.karate_club_graph(), 20),
        (nx.les_miserables_graph(), 35),
        (nx.davis_southern_women_graph(), 18),
        (nx.florentine_families_graph(), 7),
    ):
        found = sl.FeedbackGraph.from_networkx(network).numbers().independence
        assert found.value == value
        assert found.proved == (value, value)  # by a cover alone, without trust in a search


@pytest.mark.parametrize(("n", "r", "seed"), [(60, 0.1, 1), (60, 0.5, 2), (70, 0.3, 3)])
def test_random_graphs_that_take_a_search_agree_with_networkx(n, r, seed):
    network = nx.gnp_random_graph(n, r, seed=seed)
    found = sl.FeedbackGraph.from_networkx(network).with_self_loops().numbers()
    clique, size = nx.max_weight_clique(nx.complement(network), weight=None)
    assert found.independence.value == size == len(clique)
    assert found.acyclic.value == found.strong_independence.value == size


def test_fractional_numbers_in_closed_form():
    for graph, domination, cover in (
        (graphs.cycle(5), 5 / 3, 5 / 2),
        (graphs.petersen(), 10 / 4, 5),
        (graphs.circulant(20, 3), 20 / 7, 20 / 4),
        (graphs.directed_cycle(7), 7 / 2, 7),
        (graphs.nested(6), 1, 6),
        (graphs.cocktail_party(10), 10 / 9, 2),
    ):
        found = graph.numbers()
        assert found.fractional_domination.value == pytest.approx(domination, rel=1e-6)
        assert found.fractional_clique_cover.value == pytest.approx(cover, rel=1e-6)


# Every engine


@pytest.mark.parametrize(
    "settings",
    [
        {"_FEW_ARMS": 0, "_MOST_BITS": 0},
        {"_FEW_ARMS": 0, "_MOST_BITS": 0, "_LISTED": 0},
        {"_SMALL_PROGRAM": 0, "_LISTED": 0},
    ],
    ids=["programs", "neither", "search"],
)
@pytest.mark.parametrize("seed", range(4))
def test_sets_by_each_engine(monkeypatch, settings, seed):
    graph = graphs.erdos_renyi(25, 0.15 + 0.1 * seed, seed)
    weights = np.random.default_rng(seed).integers(1, 20, 25)
    want = graph.numbers().independence.value
    heaviest_ = graph.numbers().weighted_strong_independence(weights).value
    for name, value in settings.items():
        monkeypatch.setattr(packing, name, value)
    found = graph.numbers(5).independence
    weighted = graph.numbers(5).weighted_strong_independence(weights)
    assert found.holds_for(graph)
    assert weighted.holds_for(graph)
    assert found.lower <= want <= found.upper
    assert weighted.lower <= heaviest_ <= weighted.upper
    if len(settings) < 3:
        assert found.exact
        assert weighted.exact
        assert found.value == want
        assert weighted.value == heaviest_


@pytest.mark.parametrize("seed", range(4))
def test_acyclic_sets_by_few_cycles_and_by_integer_programs_alone(monkeypatch, seed):
    graph = graphs.erdos_renyi(22, 0.1 + 0.03 * seed, seed, directed=True)
    want = graph.numbers().acyclic
    assert want.exact
    assert want.holds_for(graph)
    for name in ("_MOST_TRIANGLES", "_ROUNDS"):  # no triangles from the beginning; and no linear programs
        monkeypatch.setattr(acyclic, name, 0)
        found = graph.numbers().acyclic
        assert found.value == want.value
        assert found.holds_for(graph)


@pytest.mark.parametrize("budget", [0, 0.3])
@pytest.mark.parametrize(("n", "r", "most"), [(300, 0.02, 250), (2000, 0.01, 1462)])
def test_disjoint_cycles_bound_acyclic_sets_without_a_search(n, r, most, budget):
    graph = graphs.erdos_renyi(n, r, 1, directed=True)
    found = graph.numbers(budget).acyclic
    assert found.upper <= most
    assert found.proved[1] <= most
    assert found.holds_for(graph)


@pytest.mark.parametrize("n", [41, 101, 301])
def test_acyclic_sets_of_large_tournaments_and_circulants(n):
    """What no arm of a set leads to bounds them, and is one of them."""
    assert graphs.rotational_tournament(n).numbers().acyclic.value == (n + 1) // 2
    assert graphs.directed_circulant(n, 12).numbers().acyclic.value == n - 12


@pytest.mark.parametrize("seed", range(4))
def test_clique_covers_by_all_cliques_and_by_some(monkeypatch, seed):
    graph = graphs.erdos_renyi(24, 0.4 + 0.1 * seed, seed)
    want, fractional = graph.numbers().clique_cover, graph.numbers().fractional_clique_cover
    assert want.exact
    assert fractional.exact
    monkeypatch.setattr(clique_cover, "_MOST_CLIQUES", 2)
    some = graph.numbers().clique_cover
    assert some.lower <= want.value <= some.upper <= want.value + 2
    assert some.holds_for(graph)
    few = graph.numbers().fractional_clique_cover
    assert few.lower <= fractional.value <= few.upper <= want.value + 1
    assert few.holds_for(graph)


# Budgets


@pytest.mark.parametrize("seed", range(40))
def test_without_time_there_is_an_interval_that_has_the_number(seed):
    graph = random_graph(seed) if seed % 2 else graphs.erdos_renyi(30, 0.05 + 0.02 * seed, seed, directed=seed % 4 > 0)
    none, enough = graph.numbers(0), graph.numbers()
    for name in (*NAMES, "weak_domination"):
        if graph.observability.kind == "none" and name in {"domination", "weak_domination"}:
            continue
        found, want = getattr(none, name), getattr(enough, name)
        assert want.exact
        assert found.lower <= want.value <= found.upper, name
        assert found.holds_for(graph), name
    assert none.fractional_clique_cover.lower <= enough.fractional_clique_cover.upper
    assert enough.fractional_clique_cover.lower <= none.fractional_clique_cover.upper
    assert none.fractional_clique_cover.holds_for(graph)
    if graph.observability.kind != "none":
        assert none.fractional_domination.lower <= enough.fractional_domination.upper
        assert enough.fractional_domination.lower <= none.fractional_domination.upper
        assert none.fractional_domination.holds_for(graph)
    weights = np.arange(graph.n_arms) % 7
    found, want = none.weighted_strong_independence(weights), enough.weighted_strong_independence(weights)
    assert found.lower <= want.value <= found.upper
    assert found.holds_for(graph)


def test_a_hard_graph_comes_back_in_time_with_an_interval():
    graph = graphs.erdos_renyi(400, 0.1, 1)
    graphs.erdos_renyi(100, 0.1, 1).numbers().independence  # noqa: B018  # so that all is compiled
    begun = time.process_time()  # of this process alone, however busy the machine is
    found = graph.numbers(0.5).independence
    assert time.process_time() - begun < 5  # ten times the budget
    assert not found.exact
    assert found.value is None
    assert 40 <= found.lower < found.upper <= 200
    assert found.holds_for(graph)
    assert str(found) == f"{found.lower} to {found.upper}"
    assert found.seconds > 0


def test_a_search_that_was_interrupted_goes_on_where_it_was():
    graph = graphs.erdos_renyi(150, 0.2, 1)
    apart = ~graph.matrix()
    search = clique_search.CliqueSearch(apart, np.ones(150, np.int64), np.empty(0, np.int64))
    turns = 0
    while not search.run(Budget(0)):
        turns += 1
    assert turns > 2
    assert search.best.size == graph.numbers().independence.value


@pytest.mark.parametrize("budget", [-1, float("nan"), "much", True])
def test_a_budget_is_a_number_of_seconds(budget):
    with pytest.raises(GraphError, match="A budget is a number of seconds"):
        graphs.path(3).numbers(budget)


def test_the_same_graph_has_the_same_certificates_every_time():
    for graph in (graphs.erdos_renyi(80, 0.1, 5), graphs.erdos_renyi(50, 0.1, 5, directed=True)):
        first, second = graph.numbers(), graph.numbers()
        for name in NAMES:
            assert np.array_equal(getattr(first, name).certificate, getattr(second, name).certificate), name


@pytest.mark.interpreted
def test_certificates_are_the_same_on_every_machine():
    """Recorded. Another set of the same size would be as right, but then something depends on more than the graph."""
    found = graphs.erdos_renyi(40, 0.12, 3).numbers().independence
    assert found.certificate.tolist() == [1, 2, 3, 5, 8, 12, 15, 16, 17, 26, 28, 29, 31, 32, 35, 36, 39]
    found = graphs.erdos_renyi(30, 0.15, 3, directed=True).numbers().acyclic
    assert found.certificate.tolist() == [0, 2, 3, 5, 8, 10, 11, 13, 15, 16, 17, 19, 20, 22, 24, 25, 26, 27, 29]


# Large graphs


def test_large_intervals_need_no_edges():
    K = 100_000
    for graph, want in (
        (graphs.nested(K), (1, K, K, 1, K)),
        (graphs.complete(K), undirected(1, 1, 1)),
        (graphs.banded(K, 500), undirected(up(K, 501), up(K, 1001), up(K, 501))),
    ):
        found = graph.numbers()
        assert tuple(getattr(found, name).value for name in NAMES) == want
        assert all(getattr(found, name).holds_for(graph) for name in NAMES)
        assert found.weighted_strong_independence(np.full(K, 0.25)).value == 0.25 * want[2]


def test_a_large_sparse_graph_needs_no_matrix():
    network = nx.barabasi_albert_graph(20_000, 3, seed=1)
    found = (
        sl.FeedbackGraph.from_networkx(network).with_self_loops().numbers(60).independence
    )  # HiGHS goes by the clock
    assert found.exact
    assert found.proved[0] == found.value


def test_many_equal_parts_are_solved_once():
    m = 2_000
    first, i = 5 * np.arange(m)[:, None], np.arange(5)
    around = np.stack([first + i, first + (i + 1) % 5], axis=-1).reshape(-1, 2)
    further = np.stack([first + i, first + (i + 2) % 5], axis=-1).reshape(-1, 2)
    cycles = sl.FeedbackGraph.from_edges(around, undirected=True, self_loops=True)
    tournaments = sl.FeedbackGraph.from_edges(np.concatenate([around, further]), self_loops=True)
    for graph, want in ((cycles, (2, 2, 2, 2, 3)), (tournaments, (1, 3, 5, 2, 5))):
        found = graph.numbers()
        assert [getattr(found, name).value for name in NAMES] == [m * each for each in want]
        assert all(getattr(found, name).holds_for(graph) for name in NAMES)
        assert max(getattr(found, name).seconds for name in NAMES) < 5


def test_dense_graphs_come_back_in_time():
    graph = graphs.erdos_renyi(700, 0.3, 1, directed=True)
    for name in (*NAMES, "fractional_clique_cover", "fractional_domination"):
        found = getattr(graph.numbers(0.2), name)
        assert found.seconds < 4, name  # twenty times the budget
        assert found.lower < found.upper
        assert found.holds_for(graph)


def test_a_graph_that_is_too_large_is_refused_with_what_to_do():
    n = 4000
    low = np.where(np.arange(n) % 2, 0, np.arange(n) // 2)  # not ascending
    graph = sl.FeedbackGraph.from_intervals(low, np.full(n, n))
    with pytest.raises(GraphError, match="The strong independence number is computed for at most 5,000,000 edges"):
        graph.numbers().strong_independence  # noqa: B018
    with pytest.raises(GraphError, match="The clique cover number is computed for at most 5,000,000 edges"):
        graph.numbers().clique_cover  # noqa: B018
    assert graph.numbers().independence.exact  # this one is easy on intervals
    assert graph.numbers().domination.exact


# Refusals and descriptions


def test_what_nothing_reveals_cannot_be_dominated():
    graph = sl.FeedbackGraph.from_edges([(0, 0), (0, 1)], 3)
    for name in ("domination", "weak_domination", "fractional_domination"):
        with pytest.raises(GraphError, match="no arm reveals arm 2"):
            getattr(graph.numbers(), name)


def test_weak_domination_of_a_graph_without_self_loops():
    """A hub that reveals all and that all reveal, but no arm itself: only the others are weakly observable."""
    graph = sl.FeedbackGraph.from_edges([(0, i) for i in range(1, 6)] + [(i, 0) for i in range(1, 6)])
    found = graph.numbers().weak_domination
    assert found.value == 1
    assert found.certificate.tolist() == [0]
    assert found.holds_for(graph)
    assert graphs.cycle(5).numbers().weak_domination.value == 0


@pytest.mark.parametrize("weights", [[1, 2], [1, -1, 1], [1, np.inf, 1], [1, np.nan, 1], "abc", None])
def test_weights_are_one_for_each_arm(weights):
    with pytest.raises(GraphError, match="weights"):
        graphs.path(3).numbers().weighted_strong_independence(weights)


@pytest.mark.parametrize("scale", [1e-300, 1.0, 1e300])
def test_weights_of_any_size(scale):
    weights = scale * np.array([1.0, 1.5, 1.0, 0.0, 7.0])
    found = graphs.cycle(5).numbers().weighted_strong_independence(weights)
    assert found.value == pytest.approx(8.5 * scale)
    assert found.holds_for(graphs.cycle(5))
    assert graphs.cycle(5).numbers().weighted_strong_independence(np.zeros(5)).value == 0


def test_numbers_are_computed_once_and_described():
    found = graphs.petersen().numbers(7)
    assert found.independence is found.independence
    assert repr(found) == f"<GraphNumbers of {graphs.petersen()!r}, 7 seconds each>"
    assert str(found.independence) == "4"
    assert str(found.fractional_domination) == "2.5"


# Kernels


def test_every_kernel_is_compiled_for_one_signature():
    """Of any kind of graph: with and without self-loops, intervals, one arm, many; and of any kind of number."""
    for graph in (*map(random_graph, range(10)), graphs.petersen(), graphs.rotational_tournament(7), graphs.grid(9, 9)):
        for name in (*NAMES, "weak_domination", "fractional_clique_cover"):
            if graph.observability.kind != "none" or "domination" not in name:
                getattr(graph.numbers(), name)
        graph.numbers().weighted_strong_independence(np.arange(graph.n_arms))
    modules = [importlib.import_module(f"{solvers.__name__}.{each.name}") for each in iter_modules(solvers.__path__)]
    kernels = {
        f"{module.__name__.rsplit('.', 1)[1]}.{name}": max(len(each.signatures), len(each.whole.signatures))
        for module in modules
        for name, each in vars(module).items()
        if isinstance(each, Kernel) and each.py_func.__module__ == module.__name__
    }
    assert len(kernels) > 15
    assert {name: count for name, count in kernels.items() if count > 1} == {}
    called = "clique_search.search", "on_intervals.find_chains"
    assert {name: kernels[name] for name in called} == dict.fromkeys(called, 1)  # the others are parts of these
