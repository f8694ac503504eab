"""The graph type: both representations against a plain matrix, and what is refused."""

import copy
import hashlib
import itertools
import os
import pickle
import subprocess
import sys
import tracemalloc
from fractions import Fraction

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from sidelong import graphs
from sidelong.errors import GraphError
from sidelong.graphs.arrays import ALONE, observe
from sidelong.graphs.graph import FeedbackGraph


def ranges(max_arms=9):
    """Random low and high: any order, empty ones too."""
    return st.integers(1, max_arms).flatmap(
        lambda n: st.lists(st.tuples(st.integers(0, n), st.integers(0, n)).map(sorted), min_size=n, max_size=n)
    )


def matrices(max_arms=7):
    return st.integers(1, max_arms).flatmap(
        lambda n: st.lists(st.lists(st.booleans(), min_size=n, max_size=n), min_size=n, max_size=n)
    )


def probabilities(n, seed):
    """Weights whose sizes span eighteen powers of ten."""
    p = 10.0 ** np.random.default_rng(seed).uniform(-18, 0, n)
    p[np.random.default_rng(seed + 1).integers(n)] = 1.0
    return p


def agrees(graph, matrix, seed=0):
    """Compare everything that a graph says with a plain matrix."""
    n = len(matrix)
    edges = [[i, j] for i in range(n) for j in range(n) if matrix[i][j]]
    assert graph.n_arms == n
    assert graph.n_edges == len(edges)
    assert graph.matrix().tolist() == [list(map(bool, row)) for row in matrix]
    assert graph.edges().tolist() == edges
    assert graph.edges().shape == (len(edges), 2)
    assert graph.is_undirected == all(matrix[j][i] for i, j in edges)
    assert graph.arms_without_self_loop.tolist() == [i for i in range(n) if not matrix[i][i]]
    for i in range(n):
        assert graph.out_neighbors(i).tolist() == graph.row_list(i) == [j for j in range(n) if matrix[i][j]]
        assert graph.in_neighbors(i).tolist() == [j for j in range(n) if matrix[j][i]]
        assert [graph.reveals(i, j) for j in range(n)] == [bool(x) for x in matrix[i]]
    assert (graph.to_scipy().toarray() == graph.matrix()).all()
    assert sorted(map(list, graph.to_networkx().edges)) == edges
    p = probabilities(n, seed)
    exact = [sum(Fraction(p[i]) for i in range(n) if matrix[i][j]) for j in range(n)]
    P = graph.observe_probabilities(p)
    for got, right in zip(P.tolist(), exact, strict=True):
        assert abs(Fraction(got) - right) <= right * Fraction(1e-12)
    arms = [n - 1, 0, n - 1]
    assert graph.observe_probabilities(p, arms).tolist() == P[arms].tolist()  # the same bits


@given(ranges(), st.integers(0, 1000))
def test_intervals_and_arcs_agree_on_everything(pairs, seed):
    low, high = zip(*pairs, strict=True)
    matrix = [[a <= j < b for j in range(len(pairs))] for a, b in pairs]
    graph = FeedbackGraph.from_intervals(low, high)
    assert graph.representation == "intervals"
    assert graph.as_arcs().representation == "arcs"
    for form in (graph, graph.as_arcs()):
        agrees(form, matrix, seed)
    assert graph == graph.as_arcs()
    assert graph.content_hash == graph.as_arcs().content_hash
    assert graph.arrays.key == graph.as_arcs().arrays.key
    assert graph.with_self_loops() == graph.as_arcs().with_self_loops()


@given(matrices())
def test_any_matrix_comes_back(matrix):
    graph = FeedbackGraph.from_matrix(matrix)
    agrees(graph, matrix)
    rows = [[j for j, x in enumerate(row) if x] for row in matrix]
    contiguous = all(not row or row[-1] - row[0] + 1 == len(row) for row in rows)
    assert graph.representation == ("intervals" if contiguous else "arcs")
    n = len(matrix)
    rebuilt = [
        FeedbackGraph.from_matrix(graph.matrix()),
        FeedbackGraph.from_matrix(graph.matrix().astype(float)),
        FeedbackGraph.from_edges(graph.edges(), n),
        FeedbackGraph.from_edges(map(tuple, reversed(graph.edges().tolist())), n),
        FeedbackGraph.from_edges(np.repeat(graph.edges(), 2, axis=0), n),
        FeedbackGraph.from_scipy(graph.to_scipy()),
        FeedbackGraph.from_scipy(sparse.coo_matrix(graph.matrix().astype(np.int8))),
        FeedbackGraph.from_networkx(graph.to_networkx()),
        pickle.loads(pickle.dumps(graph)),  # noqa: S301  # our own
        copy.deepcopy(graph),
        graph.as_arcs(),
        graph.named("other"),
    ]
    for other in rebuilt:
        assert other == graph
        assert hash(other) == hash(graph)
        assert other.content_hash == graph.content_hash
    with_loops = [[x or i == j for j, x in enumerate(row)] for i, row in enumerate(matrix)]
    agrees(graph.with_self_loops(), with_loops)
    assert FeedbackGraph.from_edges(graph.edges(), n, self_loops=True) == graph.with_self_loops()
    both = [[matrix[i][j] or matrix[j][i] for j in range(n)] for i in range(n)]
    agrees(FeedbackGraph.from_edges(graph.edges(), n, undirected=True), both)


def test_symmetry_of_all_small_intervals():
    options = [(low, high) for low in range(4) for high in range(low, 4) if low < high or low == 0]
    found = 0
    for rows in itertools.product(options, repeat=3):
        graph = FeedbackGraph.from_intervals(*zip(*rows, strict=True))
        matrix = graph.matrix()
        assert graph.is_undirected == (matrix == matrix.T).all(), rows
        found += graph.is_undirected
    assert found > 10


@given(st.lists(st.integers(1, 9), min_size=1, max_size=6), st.integers(0, 50), st.integers(0, 50))
def test_symmetry_of_intervals_that_nearly_have_it(sizes, arm, other):
    graph = graphs.cliques(sizes)
    assert graph.is_undirected
    low, high = graph.arrays.start.copy(), graph.arrays.stop.copy()
    n = graph.n_arms
    low[arm % n] = min(other % n, high[arm % n])
    changed = FeedbackGraph.from_intervals(low, high)
    assert changed.is_undirected == (changed.matrix() == changed.matrix().T).all()


@pytest.mark.interpreted
@given(ranges(60), st.integers(0, 10**6))
def test_rare_arms_are_not_lost_behind_frequent_ones(pairs, seed):
    low, high = zip(*pairs, strict=True)
    graph = FeedbackGraph.from_intervals(low, high)
    p = probabilities(graph.n_arms, seed)
    for form in (graph, graph.as_arcs()):
        for j, got in enumerate(form.observe_probabilities(p).tolist()):
            exact = sum((Fraction(p[i]) for i, (a, b) in enumerate(pairs) if a <= j < b), Fraction(0))
            assert abs(Fraction(got) - exact) <= exact * Fraction(1e-12)


@pytest.mark.interpreted
def test_a_few_arms_of_many_arcs_touch_only_their_edges():
    graph = graphs.erdos_renyi(300, 0.1, 1)
    p = np.random.default_rng(0).dirichlet(np.ones(300))
    assert graph.observe_probabilities(p, [7, 3]).tolist() == graph.observe_probabilities(p)[[7, 3]].tolist()
    spoiled = p.copy()
    untouched = np.setdiff1d(np.arange(300), graph.in_neighbors(7))
    spoiled[untouched] = np.nan
    assert graph.observe_probabilities(spoiled, [7]).tolist() == graph.observe_probabilities(p, [7]).tolist()


def test_probabilities_in_any_form_need_no_new_compilation():
    graph = graphs.petersen()
    p = np.full(10, 0.1)
    expected = graph.observe_probabilities(p)
    compiled = len(getattr(observe, "signatures", ()))
    frozen = p.copy()
    frozen.setflags(write=False)
    for form in (p.tolist(), frozen, np.full(20, 0.1)[::2], tuple(p)):
        assert graph.observe_probabilities(form).tolist() == expected.tolist()
        assert np.allclose(graphs.complete(10).observe_probabilities(form), 1.0)
    assert len(getattr(observe, "signatures", ())) == compiled


@pytest.mark.parametrize(
    ("p", "match"),
    [
        ([0.5, 0.5], r"each of the 3 arms; its shape is \(2,\)"),
        ([0.5, np.nan, 0.5], "p holds nan"),
        ([0.5, -0.5, 1.0], r"p holds -0\.5"),
        ([0.5, np.inf, 1.0], "p holds inf"),
        (["a", "b", "c"], "cannot be read as numbers"),
    ],
)
def test_probabilities_are_checked(p, match):
    for graph in (graphs.complete(3), graphs.complete(3).as_arcs()):
        with pytest.raises(GraphError, match=match):
            graph.observe_probabilities(p)
        with pytest.raises(GraphError, match=match):
            graph.observe_probabilities(p, [0, 1, 2])


def test_a_ladder_of_100000_steps_needs_no_square():
    n = 100_000
    graphs.nested(3).observe_probabilities(np.ones(3))  # compile
    tracemalloc.start()
    graph = graphs.nested(n)
    assert graph.n_edges == n * (n + 1) // 2
    assert graph.content_hash != graphs.nested(n, reveals="higher").content_hash
    P = graph.observe_probabilities(np.full(n, 1 / n))
    assert np.allclose(P, np.arange(n, 0, -1) / n)
    assert graph.observe_probabilities(np.full(n, 1 / n), [n - 1])[0] == P[n - 1]
    assert graph.in_neighbors(n - 2).tolist() == [n - 2, n - 1]
    assert graph.out_neighbors(n - 1).size == n
    assert not graph.reveals(5, 6)
    assert not graph.is_undirected
    assert graph.observability.kind == "strong"
    assert graph.with_self_loops() is graph
    assert pickle.loads(pickle.dumps(graph)) == graph  # noqa: S301  # our own
    assert "5,000,050,000 edges as intervals" in repr(graph)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 40e6
    for listing in (graph.as_arcs, graph.matrix, graph.edges, graph.to_scipy, graph.to_networkx):
        with pytest.raises(GraphError, match=r"nested\(100000\)"):
            listing()


def test_of_many_arms_those_that_reveal_one_are_found_in_order():
    """Arms that differ in the lower and in the upper half of 32 bits."""
    n = 200_000
    edges = np.random.default_rng(3).integers(0, n, (5_000, 2))
    edges[::5, 1] = (edges[::5, 1] % 3) * 2**16  # some are revealed by many
    graph = FeedbackGraph.from_edges(edges, n)
    assert graph.representation == "arcs"
    for arm in (0, 2**16, 2**17, *edges[1:20, 1].tolist()):
        assert graph.in_neighbors(arm).tolist() == sorted(set(edges[edges[:, 1] == arm, 0].tolist()))


def test_the_layout_that_kernels_see():
    arcs = graphs.petersen().arrays
    intervals = graphs.nested(10).arrays
    for arrays in (arcs, intervals):
        assert isinstance(arrays.key, int)
        assert 0 <= arrays.key < 2**63
        for name in ("start", "stop", "in_start", "in_stop"):
            part = getattr(arrays, name)
            assert (part.dtype, part.shape, part.flags.writeable) == (np.int64, (10,), False), name
        for name in ("targets", "sources", "leaving"):
            part = getattr(arrays, name)
            assert (part.dtype, part.flags.writeable) == (np.int32, False), name
    assert (arcs.contiguous, intervals.contiguous) == (False, True)
    assert (arcs.targets.size, arcs.sources.size, arcs.leaving.size) == (40, 40, 0)
    assert (intervals.targets.size, intervals.sources.size, intervals.leaving.size) == (10, 10, 10)
    assert graphs.petersen().arrays.key == int(graphs.petersen().content_hash, 16) >> 193


def test_nothing_can_be_changed():
    graph = graphs.nested(4)
    for change in (
        lambda: setattr(graph, "name", "x"),
        lambda: setattr(graph, "new", 1),
        lambda: delattr(graph, "name"),
    ):
        with pytest.raises(AttributeError, match="cannot be changed"):
            change()
    for form in (graph, graph.as_arcs(), pickle.loads(pickle.dumps(graph.as_arcs()))):  # noqa: S301  # our own
        arrays = [part for part in form.arrays if isinstance(part, np.ndarray) and part.size]
        for array in (*arrays, form.out_neighbors(2), form.in_neighbors(2)):
            with pytest.raises(ValueError, match="read-only"):
                array[0] = 1
    lacking = FeedbackGraph.from_edges([(0, 1)]).arms_without_self_loop
    with pytest.raises(ValueError, match="read-only"):
        lacking[0] = 1


def test_a_graph_keeps_no_hold_on_what_it_was_made_from():
    low, high, matrix, edges = np.array([0, 0]), np.array([1, 2]), np.eye(3), np.array([[0, 1], [2, 0]])
    made = [
        FeedbackGraph.from_intervals(low, high),
        FeedbackGraph.from_matrix(matrix),
        FeedbackGraph.from_edges(edges),
    ]
    coo = sparse.coo_array(([1, 0], ([0, 1], [1, 0])), shape=(2, 2))
    made.append(FeedbackGraph.from_scipy(coo))
    before = [graph.edges().tolist() for graph in made]
    for array in (low, high, matrix, edges, coo.data):
        assert array.flags.writeable
        array[:] = 0
    assert [graph.edges().tolist() for graph in made] == before
    graph = graphs.petersen()
    graph.matrix()[:] = False
    graph.edges()[:] = 0
    graph.to_scipy().indices[:] = 0
    assert graph == graphs.petersen()
    assert graph.out_neighbors(0).tolist() == [0, 1, 4, 5]


def test_equality_is_by_content():
    assert graphs.nested(4, reveals="higher") == graphs.transitive_tournament(4)
    assert graphs.nested(4) != graphs.nested(5)
    assert graphs.nested(4) != graphs.transitive_tournament(4)
    assert graphs.nested(4) != "nested(4)"
    assert len({graphs.star(3, hub=1), graphs.path(3), graphs.path(3).as_arcs(), graphs.star(3)}) == 2
    # A target that follows on the last one of the row before begins a new run.
    assert FeedbackGraph.from_edges([(0, 0), (1, 1)], 3) != FeedbackGraph.from_edges([(0, 0), (0, 1)], 3)


def by_hand(graph):
    """Hash as documented: from maximal runs, number by number."""
    counts, first, behind = [], [], []
    for i in range(graph.n_arms):
        runs = []
        for j in graph.out_neighbors(i).tolist():
            if runs and runs[-1][1] == j:
                runs[-1][1] = j + 1
            else:
                runs.append([j, j + 1])
        counts.append(len(runs))
        first += [a for a, _ in runs]
        behind += [b for _, b in runs]
    text = b"sidelong graph 1\0" + graph.n_arms.to_bytes(8, "little")
    return hashlib.sha256(text + b"".join(x.to_bytes(4, "little") for x in counts + first + behind)).hexdigest()


def test_the_hash_is_the_documented_one():
    for graph in (
        graphs.petersen(),
        graphs.nested(9),
        FeedbackGraph.from_edges([], 3),
        graphs.erdos_renyi(30, 0.5, 1),
    ):
        assert graph.content_hash == graph.as_arcs().content_hash == by_hand(graph)
    assert graphs.nested(3).content_hash == "0a4d27d56133bbe9181fce1b4318ccf2fa47d28e14372c75fedfc5420e597b63"
    assert graphs.petersen().content_hash == "15725fbd1b77e4c5f3d1373b1b6e96fe7d6411ac80c18ec28531f70a675659c0"


def test_the_hash_is_the_same_in_another_process():
    code = (
        "import pickle, sys\n"
        "for graph in pickle.load(sys.stdin.buffer):\n"
        "    print(graph.content_hash, hash(graph), graph.name, graph.arrays.start.flags.writeable)"
    )
    sent = [graphs.nested(50), graphs.petersen()]
    result = subprocess.run(
        [sys.executable, "-c", code],
        input=pickle.dumps(sent),
        capture_output=True,
        check=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "PYTHONHASHSEED": "1"},
    )
    expected = [f"{graph.content_hash} {hash(graph)} {graph.name} False" for graph in sent]
    assert result.stdout.decode().splitlines() == expected


def test_repr_tells_a_person_what_it_is():
    assert repr(graphs.nested(24)) == (
        "<FeedbackGraph nested(24): 24 arms, 300 edges as intervals, every arm reveals itself>"
    )
    assert repr(FeedbackGraph.from_edges([(0, 0), (0, 2), (1, 1)])) == (
        "<FeedbackGraph: 3 arms, 3 edges as arcs, arm 2 does not reveal itself>"
    )
    assert repr(FeedbackGraph.from_edges([(0, 1)]).named("shop")) == (
        "<FeedbackGraph shop: 2 arms, 1 edge as intervals, 2 arms do not reveal themselves, the first is 0>"
    )
    assert repr(FeedbackGraph.from_matrix([[1]])) == (
        "<FeedbackGraph: 1 arm, 1 edge as intervals, every arm reveals itself>"
    )


def test_names():
    graph = FeedbackGraph.from_edges([(0, 1), (1, 0)]).named("pair")
    assert graph.name == "pair"
    assert graph.as_arcs().name == "pair"
    assert copy.copy(graph).name == "pair"
    assert graph.with_self_loops().name == "pair with self-loops"
    assert FeedbackGraph.from_edges([(0, 1)]).with_self_loops().name is None
    assert graph.named(None).name is graph.named("").name is None


def test_self_loops_are_added_only_on_request():
    graph = FeedbackGraph.from_edges([(0, 1), (1, 0)])
    assert graph.arms_without_self_loop.tolist() == [0, 1]
    assert graph.with_self_loops() == graphs.complete(2)
    assert FeedbackGraph.from_edges([(0, 1)], undirected=True, self_loops=True) == graphs.complete(2)
    far = FeedbackGraph.from_intervals([2, 0, 0], [3, 0, 1])  # 0 reveals 2, which is not next to it
    assert far.with_self_loops().representation == "arcs"
    near = FeedbackGraph.from_intervals([1, 0, 3], [3, 1, 3])
    assert near.with_self_loops().representation == "intervals"
    assert near.with_self_loops().edges().tolist() == [[0, 0], [0, 1], [0, 2], [1, 0], [1, 1], [2, 2]]


def test_networkx_nodes_become_arms():
    letters = nx.DiGraph([("b", "a"), ("a", "c")])
    assert FeedbackGraph.from_networkx(letters).edges().tolist() == [[0, 1], [1, 2]]
    shuffled = nx.DiGraph([(2, 1), (1, 0)])
    assert list(shuffled) == [2, 1, 0]
    assert FeedbackGraph.from_networkx(shuffled).edges().tolist() == [[1, 0], [2, 1]]
    assert FeedbackGraph.from_networkx(nx.petersen_graph()).with_self_loops() == graphs.petersen()
    assert FeedbackGraph.from_networkx(nx.MultiGraph([(0, 1), (0, 1)])).n_edges == 2
    isolated = nx.Graph()
    isolated.add_nodes_from("xyz")
    assert FeedbackGraph.from_networkx(isolated).n_arms == 3
    back = graphs.nested(3).to_networkx()
    assert isinstance(back, nx.DiGraph)
    assert list(back.nodes) == [0, 1, 2]


def test_without_networkx_the_message_says_how_to_install_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "networkx", None)
    for use in (graphs.petersen().to_networkx, lambda: FeedbackGraph.from_networkx(None)):
        with pytest.raises(GraphError, match=r"Install with: pip install networkx$"):
            use()


def test_scipy_forms():
    dense = np.array([[1, 0, 1], [0, 1, 0], [0, 0, 0]])
    expected = FeedbackGraph.from_matrix(dense)
    for make in (sparse.csr_array, sparse.csc_matrix, sparse.coo_array, sparse.lil_matrix, sparse.dok_array):
        assert FeedbackGraph.from_scipy(make(dense)) == expected
    zeros = sparse.coo_array(([1, 0, 1], ([0, 1, 2], [0, 2, 1])), shape=(3, 3))
    assert FeedbackGraph.from_scipy(zeros).edges().tolist() == [[0, 0], [2, 1]]
    twice = sparse.coo_array(([1, 1], ([0, 0], [1, 1])), shape=(2, 2))
    with pytest.raises(GraphError, match="holds 2"):
        FeedbackGraph.from_scipy(twice)
    assert twice.nnz == 2


REFUSED = [
    (lambda: FeedbackGraph.from_matrix([[1, 0, 0], [0, 1, 0]]), r"square; this one has shape \(2, 3\)"),
    (lambda: FeedbackGraph.from_matrix([1, 0]), r"shape \(2,\)"),
    (lambda: FeedbackGraph.from_matrix([[1, 0], [1]]), "rows of equal length"),
    (lambda: FeedbackGraph.from_matrix([[1, 2], [0, 1]]), "holds 2"),
    (lambda: FeedbackGraph.from_matrix([[1, -1], [0, 1]]), "holds -1"),
    (lambda: FeedbackGraph.from_matrix([[1, 0.5], [0, 1]]), r"holds 0\.5.*matrix > 0"),
    (lambda: FeedbackGraph.from_matrix([[1, np.nan], [0, 1]]), "holds nan"),
    (lambda: FeedbackGraph.from_matrix([["1", "0"], ["0", "1"]]), "dtype <U1"),
    (lambda: FeedbackGraph.from_matrix(np.empty((0, 0))), "at least one arm.* not 0"),
    (lambda: FeedbackGraph.from_matrix(sparse.eye_array(2)), "from_scipy"),
    (lambda: FeedbackGraph.from_scipy(np.eye(2)), "not ndarray; use FeedbackGraph.from_matrix"),
    (lambda: FeedbackGraph.from_scipy(sparse.eye_array(2, 3)), r"shape \(2, 3\)"),
    (lambda: FeedbackGraph.from_scipy(sparse.eye_array(2) * np.nan), "holds nan"),
    (lambda: FeedbackGraph.from_networkx([(0, 1)]), "networkx graph, not list"),
    (lambda: FeedbackGraph.from_networkx(nx.Graph()), "at least one arm"),
    (lambda: FeedbackGraph.from_edges([]), "pass n_arms"),
    (lambda: FeedbackGraph.from_edges([], 0), "at least one arm.* not 0"),
    (lambda: FeedbackGraph.from_edges([], -3), "at least one arm.* not -3"),
    (lambda: FeedbackGraph.from_edges([], n_arms=True), "at least one arm.* not True"),
    (lambda: FeedbackGraph.from_edges([], 2.0), r"whole number .* not 2\.0"),
    (lambda: FeedbackGraph.from_edges([], 2**31), "from 1 to 2,147,483,647, not 2147483648"),
    (lambda: FeedbackGraph.from_edges([(0, 2**31 - 1)]), "n_arms must be a whole number from 1 to 2,147,483,647"),
    (lambda: FeedbackGraph.from_edges([(0, 1), (2, -1)]), r"edge number 1 is \(2, -1\)"),
    (lambda: FeedbackGraph.from_edges([(0, 1), (2, 7)], 5), r"arms 0 to 4; edge number 1 is \(2, 7\)"),
    (lambda: FeedbackGraph.from_edges([(0, 1), (0, 1.5)]), r"edge number 1 is \(0, 1\.5\)"),
    (lambda: FeedbackGraph.from_edges([(0, 1), (0, 2**70)]), "edge number 1"),
    (lambda: FeedbackGraph.from_edges([(0, 1), (0, 1, 2)]), r"edge number 1 is \(0, 1, 2\)"),
    (lambda: FeedbackGraph.from_edges([(0, 1, 2)]), r"edge number 0 is \(0, 1, 2\)"),
    (lambda: FeedbackGraph.from_edges([(), ()]), r"edge number 0 is \(\)"),
    (lambda: FeedbackGraph.from_edges([("a", "b")]), r"edge number 0 is \('a', 'b'\)"),
    (lambda: FeedbackGraph.from_edges([(0, 1), None]), "edge number 1 is None"),
    (lambda: FeedbackGraph.from_edges([3, 4]), "edge number 0 is 3"),
    (lambda: FeedbackGraph.from_edges([(True, False)]), "whole numbers"),
    (lambda: FeedbackGraph.from_edges(np.array([[0.0, 1.0]])), "dtype float64"),
    (lambda: FeedbackGraph.from_edges(np.zeros((2, 3), int)), r"shape \(2, 3\)"),
    (lambda: FeedbackGraph.from_edges(np.array([[0, 2**64 - 1]], np.uint64)), "from 1 to 2,147,483,647"),
    (lambda: FeedbackGraph.from_edges(np.array([[0, 2**64 - 1]], np.uint64), 5), "arms 0 to 4"),
    (lambda: FeedbackGraph.from_intervals([], []), "at least one arm"),
    (lambda: FeedbackGraph.from_intervals([0], [1, 2]), r"\(1,\) and \(2,\)"),
    (lambda: FeedbackGraph.from_intervals([[0]], [[1]]), r"\(1, 1\)"),
    (lambda: FeedbackGraph.from_intervals([0, 0], [1, 3]), r"arm 1 is \[0, 3\)"),
    (lambda: FeedbackGraph.from_intervals([0, 2], [1, 1]), r"arm 1 is \[2, 1\)"),
    (lambda: FeedbackGraph.from_intervals([-1, 0], [1, 1]), r"arm 0 is \[-1, 1\)"),
    (lambda: FeedbackGraph.from_intervals([0.0, 0.0], [1, 1]), "low has dtype float64"),
    (lambda: FeedbackGraph(np.eye(2)), "from_matrix"),
    (lambda: graphs.nested(3).out_neighbors(3), "An arm must be a whole number from 0 to 2, not 3"),
    (lambda: graphs.nested(3).in_neighbors(-1), "from 0 to 2, not -1"),
    (lambda: graphs.nested(3).reveals(0, 3), "from 0 to 2, not 3"),
    (lambda: graphs.nested(3).out_neighbors(1.0), r"whole number from 0 to 2, not 1\.0"),
    (lambda: graphs.nested(3).observe_probabilities([1, 0, 0], [3]), "from 0 to 2, not 3"),
    (lambda: graphs.petersen().observe_probabilities([0.1] * 10, [10]), "from 0 to 9, not 10"),
]


@pytest.mark.parametrize(("make", "match"), REFUSED)
def test_a_refusal_gives_the_rule_and_the_value(make, match):
    with pytest.raises(GraphError, match=match):
        make()


def test_rows_of_arcs_come_back():
    rng = np.random.default_rng(4)
    for _ in range(50):
        matrix = rng.random((7, 7)) < rng.random()
        graph = FeedbackGraph.from_matrix(matrix).as_arcs()
        arrays = graph.arrays
        again = FeedbackGraph.from_rows(arrays.stop - arrays.start, arrays.targets)
        assert again.representation == "arcs"
        assert again == graph
        for arm in range(7):
            assert again.in_neighbors(arm).tolist() == np.flatnonzero(matrix[:, arm]).tolist()


@pytest.mark.parametrize(
    ("degree", "targets", "message"),
    [
        ([1, 1], [0, 2], "arms 0 to 1, not 0 or 2"),
        ([2, 0], [1, 0], "ascend, each once"),
        ([2, 0], [0, 0], "ascend, each once"),
        ([-1, 3], [0, 1], "0 or more, and 2 in all; these are 2"),
        ([1], [0, 0], "0 or more, and 2 in all; these are 1"),
    ],
)
def test_wrong_rows_are_refused(degree, targets, message):
    with pytest.raises(GraphError, match=message):
        FeedbackGraph.from_rows(np.array(degree), np.array(targets))


@pytest.mark.parametrize(
    ("low", "high", "alone"),
    [([0, 1, 2], [1, 2, 3], True), ([0, 1, 2], [1, 3, 3], False), ([1, 2, 0], [2, 3, 1], False)],
)
def test_each_arm_reveals_itself_alone_in_a_graph_that_needs_no_sums(low, high, alone):
    graph = FeedbackGraph.from_intervals(low, high)
    assert (graph.arrays.direction == ALONE) == alone
    p = probabilities(3, seed=2)
    sums = [sum(p[j] for j in range(3) if low[j] <= i < high[j]) for i in range(3)]
    assert graph.observe_probabilities(p).tolist() == sums
