"""`sidelong graph`: its table, its picture, its drawing, its JSON."""

import json
from functools import partial
from xml.etree import ElementTree as ET

import numpy as np
import pytest

import sidelong as sl
from sidelong import graphs
from sidelong.cli import graph_argument
from sidelong.cli.graph_argument import read_graph
from sidelong.cli.graph_svg import draw
from sidelong.errors import GraphError

SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture
def run(sidelong):
    return partial(sidelong, "graph")


def test_the_page_has_the_nine_numbers_what_they_mean_and_a_picture(run, tmp_path):
    done = run("rotational_tournament:9", "--mark", "acyclic", "--svg", str(tmp_path / "graph.svg"))
    assert (done.returncode, done.stderr) == (0, "")
    lines = done.stdout.splitlines()
    assert all(len(line) <= 80 for line in lines)
    rows = {line[:23].strip(): line[23:].split() for line in lines[3:12]}
    assert {name: (int(row[0]), int(row[1]), row[2]) for name, row in rows.items() if "." not in row[0]} == {
        "independence": (1, 1, "yes"),
        "acyclic": (5, 5, "yes"),
        "strong independence": (9, 9, "yes"),
        "domination": (2, 2, "yes"),
        "weak domination": (0, 0, "yes"),
        "clique cover": (9, 9, "yes"),
        "fractional clique cover": (9, 9, "yes"),
        "weighted strong": (9, 9, "yes"),
    }
    assert rows["fractional domination"][:2] == ["1.8", "1.8"]
    text = " ".join(done.stdout.split())
    for part in (
        "All certificates were checked, and hold.",
        "Strongly observable",
        "alpha = 1",
        "mas = 5",
        "alpha~ = 9",
    ):
        assert part in text
    assert "May not: hedge, q-tsallis, spm-2024." in text
    assert sum(line[3:5] == "* " for line in lines) == 5
    assert ET.parse(tmp_path / "graph.svg").getroot().tag == f"{SVG}svg"  # noqa: S314  # our own file


def test_json_has_certificates_that_hold(run):
    found = json.loads(run("petersen", "--json").stdout)
    graph = graphs.petersen()
    assert {name: number["lower"] for name, number in found["numbers"].items()} == {
        "independence": 4,
        "acyclic": 4,
        "strong_independence": 4,
        "domination": 3,
        "weak_domination": 0,
        "clique_cover": 5,
        "fractional_domination": 2.5,
        "fractional_clique_cover": 5.0,
        "weighted_strong_independence": 4.0,
    }
    assert all(number["checked"] and number["exact"] for number in found["numbers"].values())
    arms = found["numbers"]["independence"]["certificate"]
    assert not graph.matrix()[np.ix_(arms, arms)].sum() > len(arms)
    assert found["exploration_set"] == [0, 2, 6]


def test_a_file_without_self_loops_is_taken_as_it_is_or_with_them(run, tmp_path):
    file = tmp_path / "ring.txt"
    file.write_text("0 1\n1 2\n2 0\n")
    assert json.loads(run(str(file), "--json").stdout)["observability"] == "weak"
    assert json.loads(run(str(file), "--json", "--self-loops").stdout)["observability"] == "strong"
    weak = run(str(file)).stdout
    assert "delta^(1/3) T^(2/3), up to logarithms, with delta = 3" in " ".join(weak.split())
    assert "May play: exp3.g, tas-fg, luo-2023, uniform." in weak


def test_an_arm_that_nothing_reveals_is_no_crash(run, tmp_path):
    file = tmp_path / "lost.txt"
    file.write_text("# arms: 3\n0 0\n0 1\n")
    done = run(str(file))
    assert done.returncode == 0
    assert "No set of arms dominates" in done.stdout
    assert "regret in proportion to T" in " ".join(done.stdout.split())
    refused = run(str(file), "--mark", "domination")
    assert refused.returncode == 2
    assert "--mark domination is not possible" in refused.stderr


@pytest.mark.parametrize(
    ("graph", "lines", "arrows", "dashed"),
    [
        (graphs.path(4), 3, 0, 0),
        (graphs.nested(5), 10, 10, 0),
        (graphs.self_loops(3), 0, 0, 0),
        (sl.FeedbackGraph.from_matrix([[1, 1], [1, 0]]), 1, 0, 1),
        (graphs.cliques([1]), 0, 0, 0),
    ],
)
def test_the_drawing_has_a_circle_for_each_arm_and_a_line_for_each_edge(tmp_path, graph, lines, arrows, dashed):
    marked = np.full(graph.n_arms, -1)
    marked[0] = 0
    draw(tmp_path / "one.svg", graph.named("a <b> & c"), marked, "exploration")
    root = ET.parse(tmp_path / "one.svg").getroot()  # noqa: S314  # our own file
    circles, drawn = root.findall(f"{SVG}circle"), root.findall(f"{SVG}path[@class='edge']")
    assert len(circles) == graph.n_arms
    assert (len(drawn), sum("marker-end" in line.attrib for line in drawn)) == (lines, arrows)
    assert sum("stroke-dasharray" in circle.attrib for circle in circles) == dashed
    assert len({circle.get("fill") for circle in circles[1:]} | {circles[0].get("fill")}) == min(2, graph.n_arms)
    assert root.find(f"{SVG}title").text == "a <b> & c"
    draw(tmp_path / "two.svg", graph.named("a <b> & c"), marked, "exploration")
    assert (tmp_path / "one.svg").read_bytes() == (tmp_path / "two.svg").read_bytes()


@pytest.mark.parametrize("graph", [graphs.star(30), graphs.cliques([4, 4, 4]), graphs.grid(5, 6), graphs.nested(24)])
def test_no_two_arms_are_drawn_upon_each_other(tmp_path, graph):
    draw(tmp_path / "graph.svg", graph, np.zeros(graph.n_arms, np.int64), "exploration")
    circles = ET.parse(tmp_path / "graph.svg").getroot().findall(f"{SVG}circle")  # noqa: S314  # our own file
    place = np.array([[float(circle.get("cx")), float(circle.get("cy"))] for circle in circles])
    assert ((place > 0) & (place < 640)).all()
    distance = np.hypot(*(place[:, None] - place[None]).transpose(2, 0, 1)) + 1e9 * np.eye(graph.n_arms)
    assert distance.min() > 2 * 17


@pytest.mark.parametrize(
    ("text", "graph"),
    [
        ("nested:24", graphs.nested(24)),
        ("nested:5,reveals=higher", graphs.nested(5, reveals="higher")),
        ("star:10,hub=3", graphs.star(10, hub=3)),
        ("self-loops:4", graphs.self_loops(4)),
        ("cliques:4,3,3", graphs.cliques([4, 3, 3])),
        ("cliques:2x5,1", graphs.cliques([5, 5, 1])),
        ("grid: 3, 4", graphs.grid(3, 4)),
        ("erdos_renyi:9,0.3,seed=2,directed=true", graphs.erdos_renyi(9, 0.3, 2, directed=True)),
        ("petersen", graphs.petersen()),
    ],
)
def test_families_are_named_with_their_arguments(text, graph):
    assert read_graph(text) == graph


@pytest.mark.parametrize(("gaps", "says"), [("nan", "0 to 1"), ("2", "0 to 1"), ("0,0.1", "each of the 5 arms, not 2")])
def test_gaps_that_are_none_are_refused(run, gaps, says):
    done = run("star:5", "--gaps", gaps)
    assert done.returncode == 2
    assert says in done.stderr


def test_what_cannot_be_drawn_or_written_is_refused(run, tmp_path):
    done = run("star:101", "--svg", str(tmp_path / "large.svg"))
    assert done.returncode == 2
    assert "drawn with up to 100 arms" in done.stderr
    done = run("star:5", "--svg", str(tmp_path / "no" / "folder.svg"))
    assert done.returncode == 2
    assert "cannot be written" in done.stderr
    with pytest.raises(GraphError, match="neither a graph file"):
        read_graph("__import__:1")


def test_a_long_edge_list_has_a_bar_on_a_terminal_and_no_other(tmp_path, monkeypatch, capsys):
    path = tmp_path / "wheel.txt"
    sl.graphs.wheel(9).save(path)
    monkeypatch.setattr(graph_argument, "_LONG", 1)
    assert read_graph(str(path)) == sl.graphs.wheel(9)
    assert capsys.readouterr().err == ""
    monkeypatch.setenv("FORCE_COLOR", "1")  # rich takes it for a terminal
    read_graph(str(path))
    assert "making the graph" in capsys.readouterr().err
    monkeypatch.setattr(graph_argument, "_LONG", 10**6)
    read_graph(str(path))
    assert "making the graph" not in capsys.readouterr().err


def test_arms_with_labels_are_named_in_the_table_the_matrix_and_the_drawing(run, tmp_path):
    names = ["small", "[red]large", "largest & <best>", "none\x1b[31m"]
    graphs.star(4, hub=2).labelled(names).save(tmp_path / "named.json")
    done = run(str(tmp_path / "named.json"), "--svg", str(tmp_path / "named.svg"))
    assert done.returncode == 0
    assert "arm largest & <best>" in done.stdout  # that dominates all
    assert "arms small ... (3)" in done.stdout
    assert "begins to explore with 3 arms: small, [red]large, none [31m." in " ".join(done.stdout.split())
    assert "\x1b" not in done.stdout
    rows = [line for line in done.stdout.splitlines() if line.strip()[:1] in "0123" and "■" in line]
    assert [row.rpartition("  ")[2].strip() for row in rows] == ["small", "[red]large", "largest & <best>", "none [31m"]
    root = ET.parse(tmp_path / "named.svg").getroot()  # noqa: S314  # our own file
    assert [text.text for text in root.findall(f"{SVG}text[@class='label']")] == [
        "small",
        "[red]large",
        "largest & <best>",
        "none [31m",
    ]
    assert json.loads(run(str(tmp_path / "named.json"), "--json").stdout)["labels"] == names
    assert json.loads(run("path:3", "--json").stdout)["labels"] is None
