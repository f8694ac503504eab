"""Strong, weak and none, after Alon, Cesa-Bianchi, Dekel and Koren (2015)."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sidelong import graphs
from sidelong.graphs import FeedbackGraph
from sidelong.graphs.observability import self_loop_subgraph


def forms(graph):
    return [graph, graph.as_arcs()]


@pytest.mark.parametrize("form", [*forms(graphs.nested(5)), graphs.petersen(), graphs.self_loops(1)])
def test_self_loops_make_a_graph_strongly_observable(form):
    seen = form.observability
    assert (seen.kind, seen.arm) == ("strong", None)
    assert seen.weak_arms.size == seen.unobservable_arms.size == 0
    assert "every arm" in str(seen)


def test_an_arm_that_all_others_reveal_is_strongly_observable():
    loopless = ~np.eye(4, dtype=bool)
    assert FeedbackGraph.from_matrix(loopless).observability.kind == "strong"
    one_missing = loopless.copy()
    one_missing[0, 2] = False
    seen = FeedbackGraph.from_matrix(one_missing).observability
    assert (seen.kind, seen.arm, seen.weak_arms.tolist()) == ("weak", 2, [2])
    assert "arm 2" in str(seen)
    one_missing[2, 2] = True
    assert FeedbackGraph.from_matrix(one_missing).observability.kind == "strong"


def test_the_revealing_action():
    # One arm reveals all, itself included; the others reveal nothing.
    for form in forms(FeedbackGraph.from_intervals([0, 0, 0], [3, 0, 0])):
        seen = form.observability
        assert (seen.kind, seen.arm, seen.weak_arms.tolist()) == ("weak", 1, [1, 2])
        assert str(seen).startswith("Weakly observable: arm 1 ")
        assert "first of 2" in str(seen)


def test_an_arm_that_nobody_reveals():
    for form in forms(FeedbackGraph.from_intervals([0, 0, 0, 2], [2, 1, 0, 3])):
        seen = form.observability
        assert (seen.kind, seen.arm) == ("none", 3)
        assert seen.unobservable_arms.tolist() == [3]
        assert seen.weak_arms.tolist() == [1, 2]
        assert str(seen) == "Not observable: no arm reveals arm 3."


def test_a_single_arm_without_self_loop_is_never_observed():
    seen = FeedbackGraph.from_intervals([0], [0]).observability
    assert (seen.kind, seen.arm) == ("none", 0)


def test_two_arms_that_reveal_each_other_are_strongly_observable():
    assert FeedbackGraph.from_edges([(0, 1), (1, 0)]).observability.kind == "strong"


def test_it_cannot_be_changed():
    seen = FeedbackGraph.from_intervals([0, 0, 0], [3, 0, 0]).observability
    with pytest.raises(AttributeError):
        seen.kind = "strong"
    with pytest.raises(ValueError, match="read-only"):
        seen.weak_arms[0] = 0


@given(
    st.integers(1, 6).flatmap(
        lambda n: st.lists(st.lists(st.booleans(), min_size=n, max_size=n), min_size=n, max_size=n)
    )
)
def test_it_follows_the_definition(matrix):
    n = len(matrix)
    arms = range(n)
    unobservable = [j for j in arms if not any(matrix[i][j] for i in arms)]
    strong = [j for j in arms if matrix[j][j] or (n > 1 and all(matrix[i][j] for i in arms if i != j))]
    weak = [j for j in arms if j not in strong and j not in unobservable]
    graph = FeedbackGraph.from_matrix(matrix)
    for form in forms(graph):
        seen = form.observability
        assert seen.unobservable_arms.tolist() == unobservable
        assert seen.weak_arms.tolist() == weak
        assert seen.kind == ("none" if unobservable else "weak" if weak else "strong")
        assert seen.arm == next(iter(unobservable or weak), None)


@given(
    st.integers(1, 6).flatmap(
        lambda n: st.lists(st.lists(st.booleans(), min_size=n, max_size=n), min_size=n, max_size=n)
    )
)
def test_the_subgraph_of_self_loops_keeps_the_arms_that_reveal_themselves(matrix):
    kept = [i for i in range(len(matrix)) if matrix[i][i]]
    for form in forms(FeedbackGraph.from_matrix(matrix)):
        found = self_loop_subgraph(form)
        if kept:
            assert found.matrix().tolist() == [[matrix[i][j] for j in kept] for i in kept]
        else:
            assert found is None
