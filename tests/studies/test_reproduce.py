"""The reference studies: measures are by their definitions, and a quarter of the runs reproduces what is stated."""

import importlib.util
import math
import re
import sys
import tomllib
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from typer.testing import CliRunner

from sidelong.cli import app
from sidelong.errors import StudyError
from sidelong.studies import reference
from sidelong.studies.reproduce.cells import PlayedCell
from sidelong.studies.reproduce.statements import Judged, Statement, judge, read_expected
from sidelong.studies.spec import load

ROOT = Path(__file__).parents[2]
MARKS = [10, 100, 1000]


def cell(learner, n, regrets, world="bernoulli", **options):
    """Make a cell whose regret at the end of each run is given, and grows like the square root before."""
    rows = [regret * math.sqrt(mark / MARKS[-1]) for regret in regrets for mark in MARKS]
    table = pa.table(
        {
            "arms": [n] * len(rows),
            "round": MARKS * len(regrets),
            "regret": rows,
            "plays": [[1, 2, 3, 994] if mark == MARKS[-1] else None for _ in regrets for mark in MARKS],
            "trace_x": [1 / mark for _ in regrets for mark in MARKS],
        }
    )
    spec = {"learner": {"name": learner, **options}, "graph": {"name": "nested", "n": n}, "world": {"name": world}}
    return PlayedCell({**spec, "rounds": 1000, "delay": 0}, table)


CELLS = [
    cell("a", 4, [9.0, 11.0]),
    cell("a", 16, [19.0, 21.0]),
    cell("b", 4, [30.0, 30.0], rate="fixed"),
    cell("b", 16, [15.0, 25.0], rate="fixed"),
    cell("c", 4, [-2.0, 0.0], world="table"),
]


def measured(value, of, **more):
    statement = Statement(says="x", value=value, of=of, expected=0.0, tolerance=1.0, **more)
    return judge(statement, CELLS).measured


def test_measures_are_by_their_definitions():
    assert measured("regret", {"learner": "a"}) == 15.0
    assert measured("regret", {"learner": "a", "graph.n": 4}) == 10.0
    assert measured("regret", {"learner": ["a", "c"], "graph.n": 4}) == 4.5
    assert measured("ratio", {"learner": "b(rate=fixed)"}, over={"learner": "a"}) == 25 / 15
    assert measured("rise", {"learner": "b(rate=fixed)"}, over={"learner": "a"}, per=4) == 2.5
    # On 4 arms (30 + 4) / (10 + 4), on 16 arms 1.
    assert measured("worst", {"learner": "b(rate=fixed)"}) == pytest.approx(34 / 14)
    assert measured("worst", {"learner": "c"}) == 1.0
    assert measured("slope", {"learner": "a"}, against="graph.n") == pytest.approx(0.5)
    assert measured("slope", {"learner": "a", "graph.n": 4}) == pytest.approx(0.5)
    assert measured("slope", {"learner": "a"}, column="trace_x", since=100) == pytest.approx(-1.0)
    assert measured("regret", {"learner": "a", "delay": 0}) == 15.0
    assert measured("regret", {"learner": "a"}, column="misses.3") == 6.0
    with pytest.raises(StudyError, match="no cell of the study has"):
        measured("regret", {"learner": "d"})


def test_a_number_outside_of_its_tolerance_is_not_reproduced():
    statement = Statement(says="x", value="regret", of={}, expected=2.0, tolerance=0.5)
    assert [Judged(statement, each, 0.5).holds for each in (1.4, 1.5, 2.5, 2.6, math.nan)] == [
        False,
        True,
        True,
        False,
        False,
    ]
    assert judge(statement, CELLS, 0.25).tolerance == 1.0


@pytest.mark.parametrize("name", reference.names())
def test_every_reference_study_can_be_read_and_its_statements_speak_of_its_cells(name):
    study, expected = load(reference.find(name)), read_expected(reference.find(name))
    cells = [PlayedCell(each.spec, None) for each in study.cells]
    assert expected.statement
    for statement in expected.statement:
        assert any(each.fits(statement.of) for each in cells), statement.says
        assert any(each.fits(statement.over) for each in cells), statement.says
        assert statement.tolerance > 0.0
    assert any(each.fits(expected.figure.of) for each in cells)
    assert not study.unplayable


def test_the_studies_are_those_of_the_page():
    page = (ROOT / "docs" / "reproduce.md").read_text()
    for name in reference.names():
        assert f"sidelong reproduce {name}" in page
        if not read_expected(reference.find(name)).long:
            assert f"<!-- {name} -->" in page
            assert (ROOT / "docs" / "figures" / f"study-{name}.svg").exists()
            for statement in read_expected(reference.find(name)).statement:
                assert f"| {statement.says} | {statement.expected:.4g} ± {statement.tolerance:.2g} |" in page
    assert "NOT reproduced" not in page


def test_the_page_is_renewed_from_results(tmp_path, monkeypatch):
    place = importlib.util.spec_from_file_location("study_pictures", ROOT / "docs" / "pictures" / "studies.py")
    script = importlib.util.module_from_spec(place)
    place.loader.exec_module(script)
    for folder in ("docs/figures", "results/nested"):
        (tmp_path / folder).mkdir(parents=True)
    page = tmp_path / "docs" / "reproduce.md"
    page.write_text("above\n<!-- nested -->\nold\n<!-- / -->\nbelow\n<!-- delay -->\nold\n<!-- / -->\n")
    specs = [each.spec for each in load(reference.find("nested")).cells]
    tables = [pa.table({"arms": [4], "round": [1], "regret": [float(k + 1)]}) for k in range(len(specs))]
    cells = [PlayedCell(*each) for each in zip(specs, tables, strict=True)]
    monkeypatch.setattr(script, "DOCS", tmp_path / "docs")
    monkeypatch.setattr(script, "read_cells", lambda _: cells)
    script.main(tmp_path / "results")
    parts = re.fullmatch(r"above\n<!-- nested -->\n(.*?)(<!-- / -->\nbelow.*)", page.read_text(), re.DOTALL)
    table, rest = parts.groups()
    assert table.count("reproduced |\n") == len(read_expected(reference.find("nested")).statement)
    assert rest.endswith("<!-- delay -->\nold\n<!-- / -->\n")
    assert [path.name for path in (tmp_path / "docs" / "figures").iterdir()] == ["study-nested.svg"]


def test_all_families_of_graphs_play_in_both_worlds():
    from sidelong.graphs.makers import makers  # noqa: PLC0415

    assert {each.spec["graph"]["name"] for each in load(reference.find("both-worlds")).cells} == set(
        makers(over_time=False)
    )


def test_the_wheel_has_the_studies():
    """Whatever is in the package's folder is, so that it is enough to see that they are there and nothing else is."""
    config = tomllib.loads((ROOT / "pyproject.toml").read_text())
    assert config["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"] == ["src/sidelong"]
    assert reference.find("demo").is_relative_to(ROOT / "src" / "sidelong")
    assert (ROOT / "studies" / "demo.toml").samefile(reference.find("demo"))


@pytest.mark.long
def test_a_quarter_of_the_runs_reproduces_some_studies(tmp_path):
    """Those that are played in some seconds. The failure probability is that of five standard deviations: nil."""
    quick = ["reproduce", "changing-graphs", "nested", "--quick", "--out", str(tmp_path)]
    done = CliRunner().invoke(app, quick, env={"COLUMNS": "120"})
    assert done.exit_code == 0, done.output
    count = sum(len(read_expected(reference.find(name)).statement) for name in quick[1:3])
    assert f"{count} of {count} statements are reproduced." in done.output
    assert "NOT" not in done.output


def test_what_is_not_reproduced_is_exit_code_1(tmp_path, monkeypatch):
    expected = read_expected(reference.find("delay"))
    wrong = [each.model_copy(update={"expected": np.inf}) for each in expected.statement[:1]]
    claimed = expected.model_copy(update={"statement": wrong})
    monkeypatch.setattr("sidelong.studies.reproduce.statements.read_expected", lambda _: claimed)
    command = sys.modules["sidelong.cli.reproduce"]  # the name in the package is the function's
    monkeypatch.setattr(command, "play", lambda *_: None)
    monkeypatch.setattr(command, "stop_unless_done", lambda _: None)
    study = load(reference.find("delay"))
    table = pa.table({"arms": [10], "round": [1], "regret": [1.0]})
    cells = [PlayedCell(each.spec, table) for each in study.cells]
    monkeypatch.setattr("sidelong.studies.reproduce.cells.read_cells", lambda _: cells)
    done = CliRunner().invoke(app, ["reproduce", "delay", "--out", str(tmp_path)], env={"COLUMNS": "120"})
    assert done.exit_code == 1
    assert "NOT reproduced" in done.output
    assert "0 of 1 statements are reproduced" in done.output


def test_an_unknown_study_is_code_2_with_the_nearest():
    done = CliRunner().invoke(app, ["reproduce", "nestd"])
    assert done.exit_code == 2
    assert "there is no study 'nestd'. Did you mean 'nested'?" in done.stderr


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("expected = ", "expectd = ", r"statement.0.expected: Field required"),
        ("expected = ", 'expected = "x', r"this is not TOML"),
    ],
)
def test_a_damaged_file_of_expected_numbers_is_named(tmp_path, old, new, said):
    beside = reference.find("nested").with_suffix(".expected.toml")
    (tmp_path / beside.name).write_text(beside.read_text().replace(old, new, 1))
    with pytest.raises(StudyError, match=rf"nested.expected.toml: .*{said}|nested.expected.toml: {said}"):
        read_expected(tmp_path / "nested.toml")
