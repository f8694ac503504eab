"""Results that people hold: as a table, as a figure, as columns; and learners side by side."""

import re
from dataclasses import replace
from xml.etree import ElementTree as ET

import numpy as np
import pytest

import sidelong as sl
from sidelong.errors import LearnerError, ObservabilityError, SimulationError

GRAPH = sl.graphs.nested(3)
WORLD = sl.losses.bernoulli([0.2, 0.6, 0.6])
BETA = sl.losses.beta([0.2, 0.6, 0.6], 2)


@pytest.fixture(scope="module")
def found():
    learners = ["uniform", {"name": "exp3.g++", "gamma": 1.0}, {"name": "exp3.g++", "gamma": 4.0}, "hedge", "ts-n"]
    return sl.compare(learners, GRAPH, {"coins <b>": WORLD, "beta": BETA}, rounds=300, runs=4, seed=3)


def test_a_result_of_a_comparison_is_that_of_simulate(found):
    alone = sl.simulate("exp3.g++", GRAPH, WORLD, rounds=300, runs=4, seed=3, gamma=1.0)
    assert np.array_equal(found["exp3.g++ gamma=1.0", "coins <b>"].regret, alone.regret)
    assert not np.array_equal(found["exp3.g++ gamma=4.0", "coins <b>"].regret, alone.regret)
    assert alone.learner == "exp3.g++ gamma=1.0"


def test_who_cannot_play_is_listed_with_the_reason_and_the_others_play(found):
    assert set(found.unplayable) == {("hedge", "coins <b>"), ("hedge", "beta"), ("ts-n", "beta")}
    assert "reveal all arms" in found.unplayable["hedge", "beta"]
    assert "0 or 1" in found.unplayable["ts-n", "beta"]
    assert len(found.results) == 7
    with pytest.raises(SimulationError, match="hedge did not play in beta: hedge needs"):
        found["hedge", "beta"]
    with pytest.raises(SimulationError, match="There is no result of"):
        found["glance", "beta"]


def test_the_table_begins_with_the_smallest_worst_ratio_and_has_everyone(found):
    lines = str(found).splitlines()
    assert lines[0] == "Regret after 300 rounds, mean over 4 runs, ± half of its 95 % interval."
    rows = [line.split("  ")[0] for line in lines[4:9]]
    assert set(rows) == set(found.learners)
    assert rows[:3] == [found.learners[row] for row in found.scoreboard.standing[:3]]
    assert rows[3:] == ["ts-n", "hedge"] or rows[3:] == ["hedge", "ts-n"]
    assert sum(line.startswith("- hedge in coins <b>, beta: ") for line in lines) == 1


def test_html_and_latex_have_the_same_table_escaped(found):
    ET.fromstring(found._repr_html_())  # noqa: S314
    assert "coins &lt;b&gt;" in found._repr_html_()
    assert r"coins \ensuremath{<}b\ensuremath{>}" in found.to_latex()
    assert found.to_latex().count(r"\\") == 1 + len(found.learners)


def test_pandas_gets_a_row_for_each_checkpoint_of_each_run(found):
    frame = found.to_pandas()
    marks = found.results["uniform", "beta"].rounds.size
    assert len(frame) == 7 * 4 * marks
    assert {"learner", "world", "run", "round", "regret", "loss"} <= set(frame.columns)
    last = frame[(frame["learner"] == "uniform") & (frame["world"] == "beta") & (frame["round"] == 300)]
    assert last["regret"].tolist() == found["uniform", "beta"].regret[:, -1].tolist()


def test_figures_draw_one_line_for_each_that_played(found):
    axes = found.plot("beta").axes[0]
    texts = [each.get_text() for each in axes.texts]
    assert texts.count("uniform") == 1
    assert "ts-n" not in texts
    with pytest.raises(SimulationError, match="no world named 'nowhere'"):
        found.plot("nowhere")


def test_one_learner_one_world_and_names_that_are_equal():
    once = sl.compare("uniform", GRAPH, WORLD, rounds=10, runs=1)
    assert once.learners == ("uniform",)
    assert "ratio" in str(once)
    assert "±" not in str(once)
    twice = sl.compare(["uniform", "uniform"], GRAPH, [WORLD, sl.losses.bernoulli([0.1, 0.2, 0.3])], 10, 1)
    assert twice.learners == ("uniform #1", "uniform #2")
    assert twice.worlds == ("bernoulli #1", "bernoulli #2")
    named = sl.compare({"mine": "uniform"}, GRAPH, {"here": WORLD}, 10, 1)
    assert (named.learners, named.worlds) == (("mine",), ("here",))


@pytest.mark.parametrize(
    ("learners", "worlds", "error", "said"),
    [
        ([], WORLD, LearnerError, "at least one"),
        (["glanse"], WORLD, LearnerError, "Did you mean 'glance'"),
        ([{"gamma": 1.0}], WORLD, LearnerError, "A learner with options is"),
        ([{"name": "exp3.g++", "gama": 1.0}], WORLD, LearnerError, "gama"),
        (["hedge"], WORLD, ObservabilityError, "No learner can play there. hedge needs"),
        ("uniform", [], SimulationError, "worlds are made by"),
        ("uniform", [0.2, 0.6, 0.6], SimulationError, "worlds are made by"),
        (3, WORLD, SimulationError, "learners is a list"),
    ],
)
def test_what_is_wrong_is_refused_before_anything_is_played(learners, worlds, error, said):
    with pytest.raises(error, match=re.escape(said)):
        sl.compare(learners, GRAPH, worlds, rounds=10, progress=lambda *_: pytest.fail("it has played"))


def test_all_stands_for_every_learner(monkeypatch):
    monkeypatch.setattr("sidelong.learners.catalogue.names", lambda: ("uniform", "hedge"))
    found = sl.compare("all", GRAPH, WORLD, rounds=10, runs=1)
    assert found.learners == ("uniform", "hedge")


def test_a_result_is_a_table_a_figure_and_columns():
    result = sl.simulate("uniform", GRAPH, WORLD, rounds=300, runs=4, seed=3, switches=0)
    shown = result._repr_html_()
    ET.fromstring(shown)  # noqa: S314
    assert f"{result.regret[:, -1].mean():,.1f}" in shown
    assert "uniform in bernoulli" in shown
    assert result.plot().axes[0].get_title(loc="left") == "bernoulli"
    frame = result.to_pandas()
    assert frame["tracking_regret"].to_numpy().reshape(4, -1).tolist() == result.tracking_regret.tolist()
    assert frame["run"].unique().tolist() == [0, 1, 2, 3]


def test_a_learner_of_ones_own_is_called_by_its_name():
    from sidelong.learners import uniform  # noqa: PLC0415

    assert sl.compare([replace(uniform.LEARNER, name="<own>")], GRAPH, WORLD, rounds=10, runs=1).learners == ("<own>",)
