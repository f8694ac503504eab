"""What a notebook shows of a graph, an agent and its estimates."""

from xml.etree import ElementTree as ET

import numpy as np
import pytest

import sidelong as sl

pytestmark = pytest.mark.interpreted


def shown(thing):
    made = thing._repr_html_()
    ET.fromstring(f"<div>{made}</div>")  # noqa: S314  # it is well formed
    assert "<script>" not in made
    assert "background:#" not in made
    return made


def test_a_small_graph_is_drawn_and_a_large_one_is_told():
    small = shown(sl.graphs.nested(5))
    assert small.count("<circle") == 5
    assert small.count("marker-end") == 10  # one arrow for each smaller order
    assert "nested(5)" in small
    large = shown(sl.graphs.nested(5_000))
    assert "<svg" not in large
    assert "12,502,500" in large


def test_labels_are_escaped_and_arms_that_do_not_reveal_themselves_are_dashed():
    matrix = np.array([[True, True], [True, False]])
    graph = sl.FeedbackGraph.from_matrix(matrix).labelled(["<script>", "b & c"])
    made = shown(graph)
    assert "&lt;script&gt;" in made
    assert made.count("stroke-dasharray") == 1


def test_an_agent_shows_what_it_is_and_what_it_knows():
    agent = sl.Agent("exp3.g++", sl.graphs.nested(3).labelled(["<script>", "m", "l"]), seed=1, gamma=2.0)
    assert "cheapest so far" not in shown(agent)
    decision = agent.ask()
    agent.tell(decision, [0.5] * len(decision.reveals))
    agent.ask()
    made = shown(agent)
    assert "exp3.g++ with gamma = 2.0" in made
    assert "2, of which 1 wait" in made
    assert "cheapest so far" in shown(agent.estimates())
