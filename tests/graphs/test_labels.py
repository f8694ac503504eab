"""Names of arms: set, kept, and no part of what a graph is; and what an edge of weight 0 is."""

import json
import pickle
import zipfile

import networkx as nx
import numpy as np
import pytest
from scipy import sparse

from sidelong import graphs
from sidelong.display.drawing import called
from sidelong.errors import GraphError, GraphFileError
from sidelong.graphs import FeedbackGraph
from sidelong.service.store.graphs import identify

NAMES = ("small", "größer", "3 < 4 & [red]")
PATH = graphs.path(3)


def test_labels_are_set_and_taken_away_and_every_form_of_the_graph_has_them():
    assert PATH.labels is None
    named = PATH.labelled(NAMES)
    assert named.labels == NAMES
    assert named.name == "path(3)"
    assert PATH.labels is None
    assert PATH.labelled([1, 2.5, None]).labels == ("1", "2.5", "None")
    for form in (named.named("x"), named.as_arcs(), named.as_arcs().with_self_loops()):
        assert form.labels == NAMES
    without = FeedbackGraph.from_edges([(0, 1), (2, 2)]).labelled(NAMES)
    assert without.with_self_loops().labels == NAMES
    assert FeedbackGraph.from_edges([(0, 2)]).labelled(NAMES).with_self_loops().labels == NAMES
    assert named.labelled(None).labels is None


def test_labels_are_no_part_of_what_a_graph_is():
    named = PATH.labelled(NAMES)
    assert named == PATH
    assert hash(named) == hash(PATH)
    assert named.content_hash == PATH.content_hash
    assert named.arrays.key == PATH.arrays.key
    assert repr(named) == repr(PATH)
    assert identify(named).id != identify(PATH).id  # the next who sends this graph may call its arms something else
    assert identify(named).graph.labels == named.labels


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        (["a", "b"], "one label for each of the 3 arms, not 2"),
        (["a", "b", "a"], "differ from each other; 'a' stands there twice"),
        ([1, "b", "1"], "'1' stands there twice"),
        ("abc", "a list of names, one for each arm, not 'abc'"),
    ],
)
def test_labels_that_name_no_arm_are_refused(labels, message):
    with pytest.raises(GraphError, match=message):
        PATH.labelled(labels)


def test_nodes_of_networkx_come_back():
    network = nx.Graph([("Ann", "Bob"), ("Bob", ("Cid", 1))])
    graph = FeedbackGraph.from_networkx(network)
    assert graph.labels == ("Ann", "Bob", "('Cid', 1)")
    back = graph.to_networkx()
    assert list(back.nodes) == ["Ann", "Bob", "('Cid', 1)"]
    assert FeedbackGraph.from_networkx(back) == graph
    assert FeedbackGraph.from_networkx(back).labels == graph.labels
    assert FeedbackGraph.from_networkx(nx.path_graph(3)).labels is None
    assert list(FeedbackGraph.from_networkx(nx.path_graph(3)).to_networkx().nodes) == [0, 1, 2]
    assert FeedbackGraph.from_networkx(nx.Graph([(7, 8)])).labels == ("7", "8")
    assert FeedbackGraph.from_networkx(nx.Graph([(1, "1")])).labels == ("1", "'1'")


def test_a_weight_of_0_is_no_edge_wherever_a_graph_comes_from():
    network = nx.DiGraph()
    network.add_nodes_from(range(3))
    network.add_weighted_edges_from([(0, 1, 1), (1, 2, 0), (2, 2, 0.0), (2, 0, 1)])
    network.add_edge(1, 0)  # without a weight
    graph = FeedbackGraph.from_networkx(network)
    assert graph.edges().tolist() == [[0, 1], [1, 0], [2, 0]]
    stored = nx.to_scipy_sparse_array(network)
    entries = (np.array([1, 0, 1]), (np.array([0, 1, 2]), np.array([1, 2, 0])))
    assert sparse.coo_array(entries).nnz == 3
    assert graph == FeedbackGraph.from_scipy(stored)
    assert graph == FeedbackGraph.from_matrix(nx.to_numpy_array(network))
    assert FeedbackGraph.from_scipy(sparse.coo_array(entries)).edges().tolist() == [[0, 1], [2, 0]]
    parallel = nx.MultiDiGraph([(0, 1, {"weight": 0}), (0, 1, {"weight": 2})])
    assert FeedbackGraph.from_networkx(parallel).edges().tolist() == [[0, 1]]


@pytest.mark.parametrize("suffix", [".json", ".npz"])
@pytest.mark.parametrize("graph", [PATH, PATH.as_arcs(), graphs.star(3, hub=2)], ids=repr)
def test_files_keep_labels(tmp_path, suffix, graph):
    path = tmp_path / f"graph{suffix}"
    graph.labelled(NAMES).save(path)
    found = FeedbackGraph.load(path)
    assert found == graph
    assert found.labels == NAMES
    graph.save(path)
    assert FeedbackGraph.load(path).labels is None
    graph.labelled(NAMES).save(tmp_path / "graph.txt")
    assert FeedbackGraph.load(tmp_path / "graph.txt").labels is None


def test_a_file_with_labels_is_one_of_version_1_with_one_thing_more(tmp_path):
    PATH.labelled(NAMES).save(tmp_path / "graph.json")
    content = json.loads((tmp_path / "graph.json").read_bytes())
    assert (content["version"], tuple(content.pop("labels"))) == (1, NAMES)
    PATH.save(tmp_path / "plain.json")
    assert content == json.loads((tmp_path / "plain.json").read_bytes())
    PATH.labelled(NAMES).save(tmp_path / "graph.npz")
    with np.load(tmp_path / "graph.npz", allow_pickle=False) as arrays:
        assert int(arrays["version"]) == 1
        assert tuple(json.loads(arrays["labels"].tobytes())) == NAMES


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        (["a", "b"], "one label for each of the 3 arms"),
        (["a", "b", 3], "must be a list of texts"),
        ("abc", "must be a list of texts"),
        ({"a": 1}, "must be a list of texts"),
        (["a", "b", "b"], "'b' stands there twice"),
    ],
)
def test_files_with_bad_labels_are_refused(tmp_path, labels, message):
    content = {"format": "sidelong-graph", "version": 1, "n_arms": 3, "edges": [[0, 1]], "labels": labels}
    (tmp_path / "bad.json").write_text(json.dumps(content))
    arrays = {"version": 1, "n_arms": 3, "edges": np.array([[0, 1]])}
    np.savez(tmp_path / "bad.npz", labels=np.frombuffer(json.dumps(labels).encode(), np.uint8), **arrays)
    for name in ("bad.json", "bad.npz"):
        with pytest.raises(GraphFileError, match=message):
            FeedbackGraph.load(tmp_path / name)


@pytest.mark.parametrize("labels", [np.array([255, 254], np.uint8), np.array([[1]]), np.array(["a", "b", "c"])])
def test_labels_that_are_no_text_are_refused(tmp_path, labels):
    np.savez(tmp_path / "bad.npz", version=1, n_arms=3, edges=np.array([[0, 1]]), labels=labels)
    with pytest.raises(GraphFileError):
        FeedbackGraph.load(tmp_path / "bad.npz")
    with zipfile.ZipFile(tmp_path / "bad.npz") as archive:
        assert "labels.npy" in archive.namelist()


def test_pickles_keep_labels():
    assert pickle.loads(pickle.dumps(PATH.labelled(NAMES))).labels == NAMES  # noqa: S301  # our own


def test_what_an_arm_is_called_in_a_picture_is_short_and_printable():
    graph = PATH.labelled(["a\n\x1b[31mb", "x" * 40, "c"])
    assert [called(graph, arm) for arm in range(3)] == ["a  [31mb", "xxxxxxxxxxxxx...", "c"]
    assert called(PATH, 2) == "2"
