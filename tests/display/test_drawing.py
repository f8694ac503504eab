"""Drawings: nothing lies upon anything else, and lines go around arms where they can."""

import numpy as np
import pytest

import sidelong as sl
from sidelong import graphs
from sidelong.display.drawing import SIDE, lay_out


def curve(line):
    t = np.linspace(0, 1, 400)[:, None]
    bend = (line.start + line.end) / 2 if line.bend is None else line.bend
    return (1 - t) ** 2 * line.start + 2 * t * (1 - t) * bend + t**2 * line.end


def hidden(drawing):
    """Return the lines of which a part lies behind an arm that they do not join."""
    return [
        line
        for line in drawing.lines
        for arm, place in enumerate(drawing.place)
        if arm not in {line.first, line.second} and np.hypot(*(curve(line) - place).T).min() < drawing.radius
    ]


@pytest.mark.parametrize(
    "graph",
    [
        graphs.nested(10),
        graphs.star(12),
        graphs.path(9),
        graphs.grid(4, 5),
        graphs.cliques([4, 4]),
        graphs.erdos_renyi(12, 0.3, 3),
        graphs.petersen(),
        graphs.self_loops(6),
        graphs.nested(24),
    ],
    ids=repr,
)
def test_no_line_passes_behind_an_arm(graph):
    drawing = lay_out(graph)
    assert hidden(drawing) == []
    assert all(((curve(line) > 0) & (curve(line) < SIDE)).all() for line in drawing.lines)


def test_a_line_bends_only_around_what_is_in_its_way():
    triangle = sl.FeedbackGraph.from_edges([(0, 1), (1, 2), (0, 2)], 3).with_self_loops()
    assert all(line.bend is None for line in lay_out(triangle).lines)
    bent = [line for line in lay_out(graphs.nested(24)).lines if line.bend is not None]
    assert bent  # on a circle this dense, a line past one arm touches it
    assert {min(line.first - line.second, 24 - line.first + line.second) for line in bent} <= {2, 3}


def test_every_edge_is_one_line_and_ends_at_the_rims():
    graph = sl.FeedbackGraph.from_edges([(0, 1), (1, 0), (1, 2), (3, 3)], 4)
    drawing = lay_out(graph)
    assert [(line.first, line.second, line.both) for line in drawing.lines] == [(0, 1, True), (1, 2, False)]
    for line in drawing.lines:
        gaps = [
            np.hypot(*(end - drawing.place[arm])) for end, arm in ((line.start, line.first), (line.end, line.second))
        ]
        assert gaps == pytest.approx([drawing.radius, drawing.radius + (0 if line.both else 1.5)])


def test_the_same_graph_gives_the_same_drawing():
    one, other = lay_out(graphs.grid(3, 4)), lay_out(graphs.grid(3, 4))
    assert one.place.tobytes() == other.place.tobytes()
