"""Graphs in which some arms are absent: what is kept of them, and for how long."""

import gc
import weakref

import numpy as np

from sidelong import graphs
from sidelong.graphs import presence


def without(arm, n):
    return np.arange(n) != arm


def test_a_graph_and_its_restrictions_are_collected_when_nobody_has_them():
    graph = graphs.erdos_renyi(40, 0.3, 1)
    both = [weakref.ref(graph), weakref.ref(presence.only(graph, without(3, 40)))]
    assert both[1]() is presence.only(graph, without(3, 40))  # kept while the graph is
    del graph
    gc.collect()
    assert [each() for each in both] == [None, None]


def test_few_large_restrictions_are_kept_and_always_the_last(monkeypatch):
    graph = graphs.erdos_renyi(40, 0.3, 1)
    edges = presence.only(graph, without(0, 40)).n_edges
    monkeypatch.setattr(presence, "_KEPT_EDGES", 3 * edges)
    made = [weakref.ref(presence.only(graph, without(arm, 40))) for arm in range(10)]
    gc.collect()
    alive = [each() is not None for each in made]
    assert alive == [False] * 8 + [True] * 2
    monkeypatch.setattr(presence, "_KEPT_EDGES", 0)
    last = presence.only(graph, without(11, 40))
    assert presence.only(graph, without(11, 40)) is last


def test_equal_graphs_of_other_names_are_kept_apart():
    plain = graphs.path(6).as_arcs()
    named = plain.labelled(list("abcdef"))
    assert presence.only(plain, without(2, 6)).labels is None
    assert presence.only(named, without(2, 6)).labels == tuple("abcdef")
