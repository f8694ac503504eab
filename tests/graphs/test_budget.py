"""What counts as time spent on a number, and numbers that need not be computed twice."""

import json
import subprocess
import sys
import threading
import types

import numpy as np
import pytest

import sidelong as sl
from sidelong import graphs
from sidelong.graphs.solvers import budget as budgets
from sidelong.graphs.solvers import packing
from sidelong.graphs.solvers.budget import Budget, uncounted

# A loader that seems slow: by the clock each file with machine code takes longer by the seconds that are given. That
# clock counts processor time beside, since the machine may do something else.
SLOWLY = """
import json, pathlib, sys, time, types

slept = []
read = pathlib.Path.read_bytes

def slowly(path):
    if path.suffix == ".code":
        slept.append(float(sys.argv[1]))
    return read(path)

pathlib.Path.read_bytes = slowly
import sidelong as sl
from sidelong.graphs.solvers import budget

budget.time = types.SimpleNamespace(perf_counter=lambda: time.process_time() + sum(slept))

both, one = sl.graphs.erdos_renyi(44, 0.25, 0), sl.graphs.erdos_renyi(30, 0.15, 3, directed=True)
found = []
for graph, name in ((both, "independence"), (both, "clique_cover"), (one, "acyclic"), (one, "domination")):
    before = sum(slept)
    number = getattr(graph.numbers(), name)
    found.append((name, str(number), number.seconds, sum(slept) - before))
print(json.dumps(found))
"""


def test_to_load_machine_code_in_a_fresh_process_does_not_count(tmp_path):
    def run(seconds):
        command = [sys.executable, "-c", SLOWLY, str(seconds)]
        return json.loads(subprocess.run(command, check=True, capture_output=True, text=True, cwd=tmp_path).stdout)

    run(0)  # so that all is compiled
    found = run(5.0)
    assert found[0][:2] == ["independence", "13"]
    names, _, seconds, slept = zip(*found, strict=True)
    assert slept[0] > 0, names  # a clique cover and an acyclic set need what was loaded for it
    assert slept[3] > 0, names
    assert sum(seconds) < sum(slept) / 2


def test_what_another_thread_does_counts(monkeypatch):
    now = [100.0]
    monkeypatch.setattr(budgets, "time", types.SimpleNamespace(perf_counter=lambda: now[0]))
    budget = Budget(10)

    def wait():
        with uncounted():
            now[0] += 0.25

    thread = threading.Thread(target=wait)
    thread.start()
    thread.join()
    assert budget.spent == 0.25
    with uncounted(), uncounted():
        now[0] += 0.5
    assert budget.spent == 0.25
    now[0] += 1
    assert budget.left == 8.75


@pytest.fixture
def searches(monkeypatch):
    """Count the searches for a largest set."""
    calls, search = [], packing.heaviest_set
    monkeypatch.setattr(packing, "heaviest_set", lambda *given: calls.append(given) or search(*given))
    return calls


@pytest.mark.parametrize("budget", [0, 10])
@pytest.mark.parametrize("first", ["independence", "acyclic", "strong_independence"])
def test_numbers_that_are_equal_where_edges_go_both_ways_are_computed_once(searches, first, budget):
    graph = graphs.erdos_renyi(44, 0.25, 0)
    found = graph.numbers(budget)
    getattr(found, first)
    for name in ("independence", "acyclic", "strong_independence"):
        number = getattr(found, name)
        assert number.kind == name
        assert number.holds_for(graph)
        assert (number.lower, number.upper) == (found.independence.lower, found.independence.upper)
        assert number.certificate is found.independence.certificate
    assert len(searches) == 1
    assert not budget or found.independence.value == 13


def test_an_acyclic_set_is_a_strongly_independent_one_if_every_cycle_has_a_pair(searches):
    edges = [(i, j) for i in range(20) for j in range(i) if (7 * i + 3 * j) % 5 == 0]  # down, without a cycle
    back = [(j, i) for i, j in edges if (i + j) % 3 == 0]
    graph = sl.FeedbackGraph.from_edges(edges + back, 20, self_loops=True)
    found = graph.numbers()
    assert found.acyclic.value == found.strong_independence.value > found.independence.value
    assert found.acyclic.holds_for(graph)
    assert len(searches) == 2  # one for both
    assert graph.numbers().acyclic.value == found.acyclic.value
    ring = sl.FeedbackGraph.from_edges([(i, (i + 1) % 5) for i in range(5)], self_loops=True).numbers()
    assert (ring.acyclic.value, ring.strong_independence.value) == (4, 5)


def test_where_all_arms_are_weakly_observable_both_dominations_are_one():
    graph = sl.FeedbackGraph.from_edges([(i, (i + k) % 9) for i in range(9) for k in (1, 2)])
    found = graph.numbers()
    assert graph.observability.weak_arms.size == 9
    assert found.weak_domination.certificate is found.domination.certificate
    assert found.weak_domination.kind == "weak_domination"
    assert found.weak_domination.holds_for(graph)


def test_equal_shares_dominate_a_regular_graph_without_a_search():
    squares = {x * x % 401 for x in range(1, 401)}
    paley = sl.FeedbackGraph.from_edges([(i, (i + s) % 401) for i in range(401) for s in squares], self_loops=True)
    for graph, value in ((paley, 401 / 201), (graphs.directed_cycle(101), 101 / 2), (graphs.hypercube(7), 128 / 8)):
        found = graph.numbers(0).fractional_domination
        assert found.value == pytest.approx(value, rel=1e-15)
        assert found.lower <= value <= found.upper
        assert found.holds_for(graph)
    for graph in (graphs.path(9).as_arcs(), graphs.out_star(5).as_arcs()):  # not regular, or not both ways
        found = graph.numbers().fractional_domination
        assert found.holds_for(graph)
        assert found.value == pytest.approx(graph.numbers().domination.value)
    assert np.array_equal(paley.numbers(0).fractional_domination.dual.weight, np.ones(401))
