"""Study files: what they stand for, what names a cell, and what is said where something is wrong."""

import json
import os

import numpy as np
import pytest

import sidelong as sl
from sidelong.errors import StudyError
from sidelong.studies import work
from sidelong.studies.build import build
from sidelong.studies.estimate import seconds_of
from sidelong.studies.provenance import source_hash
from sidelong.studies.source import line_of
from sidelong.studies.spec import load

BASE = """\
rounds = 50

[[learner]]
name = "uniform"

[[graph]]
name = "nested"
n = 4

[[world]]
name = "bernoulli"
means = [0.2, 0.5, 0.5, 0.5]
"""


def write(folder, text=BASE, name="study.toml", **changes):
    for old, new in changes.items():
        assert old in text
        text = text.replace(old, new)
    path = folder / name
    path.write_text(text)
    return path


def cells(folder, text=BASE, **changes):
    return load(write(folder, text, **changes)).cells


def values(cells, *path):
    found = []
    for cell in cells:
        value = cell.spec
        for key in path:
            value = value[key]
        found.append(value)
    return found


# What a study stands for


def test_a_study_is_the_product_of_its_lists(tmp_path):
    text = BASE.replace("rounds = 50", "rounds = [50, 60]\nseed = [1, 2, 3]\nruns = 2")
    text = text.replace('"uniform"', '["uniform", "exp3"]').replace("[0.2, 0.5, 0.5, 0.5]", "{ gap = [0.1, 0.2] }")
    found = cells(tmp_path, text)
    assert len(found) == 2 * 3 * 2 * 2
    assert len({cell.name for cell in found}) == len(found)
    assert {(c.spec["rounds"], c.spec["seed"], c.spec["world"]["means"]["gap"]) for c in found} == {
        (rounds, seed, gap) for rounds in (50, 60) for seed in (1, 2, 3) for gap in (0.1, 0.2)
    }


def test_a_list_is_one_value_where_an_argument_takes_a_list(tmp_path):
    (one,) = cells(tmp_path)
    assert one.spec["world"]["means"] == [0.2, 0.5, 0.5, 0.5]
    text = BASE.replace("[0.2, 0.5, 0.5, 0.5]", "{ each = [[0.2, 0.5, 0.5, 0.5], [0.1, 0.5, 0.5, 0.5]] }")
    assert [means[0] for means in values(cells(tmp_path, text), "world", "means")] == [0.2, 0.1]
    text = BASE.replace("rounds = 50", "rounds = 50\ncheckpoints = [10, 50]")
    assert values(cells(tmp_path, text), "checkpoints") == [[10, 50]]


def test_zips_go_in_step_over_the_whole_file(tmp_path):
    text = BASE.replace("n = 4", "n = { zip = [4, 8] }").replace(
        "rounds = 50", "rounds = { zip = [50, 70] }\nseed = [0, 1]"
    )
    text = text.replace("[0.2, 0.5, 0.5, 0.5]", "{ gap = 0.1 }")
    found = cells(tmp_path, text)
    assert [(c.spec["graph"]["n"], c.spec["rounds"], c.spec["seed"]) for c in found] == [
        (4, 50, 0),
        (4, 50, 1),
        (8, 70, 0),
        (8, 70, 1),
    ]


def test_what_has_no_zip_is_there_once(tmp_path):
    text = BASE + '\n[[world]]\nname = "constrained"\ngaps = { zip = [0.1, 0.2, 0.3] }\n'
    assert len(cells(tmp_path, text)) == 1 + 3


def test_graphs_of_a_sequence_are_tables_with_lists_too(tmp_path):
    text = BASE.replace(
        'name = "nested"\nn = 4',
        'name = "alternating"\ngraphs = [{ name = "nested", n = 4 }, { name = ["star", "path"], n = 4 }]',
    )
    found = cells(tmp_path, text)
    assert [each[1]["name"] for each in values(found, "graph", "graphs")] == ["star", "path"]
    graph = build(found[0].spec, None).sequence
    assert graph.bank == (sl.graphs.nested(4), sl.graphs.star(4))


def test_a_cell_plays_what_the_functions_of_the_package_make(tmp_path):
    text = BASE.replace("[0.2, 0.5, 0.5, 0.5]", "{ gap = 0.2, best = 2 }")
    text += '[[world]]\nname = "constrained"\ngaps = 0.25\n'
    text += '[[world]]\nname = "breaker"\n[[world]]\nname = "lower_bound"\ngap = 0.1\n'
    games = [build(cell.spec, None) for cell in cells(tmp_path, text)]
    expected = [
        sl.losses.bernoulli([0.6, 0.6, 0.4, 0.6]),
        sl.losses.constrained(0.25, 4),
        sl.losses.breaker(sl.graphs.nested(4), 50),
        sl.losses.lower_bound(sl.graphs.nested(4), gap=0.1),
    ]
    for game, world in zip(games, expected, strict=True):
        assert game.sequence.bank == (sl.graphs.nested(4),)
        assert repr(game.world) == repr(world)
        for mine, theirs in zip(game.world.arrays, world.arrays, strict=True):
            np.testing.assert_array_equal(mine, theirs)


def test_cells_that_cannot_be_played_are_left_out_with_the_reason(tmp_path):
    study = load(write(tmp_path, BASE.replace('"uniform"', '["uniform", "hedge"]')))
    assert values(study.cells, "learner", "name") == ["uniform"]
    ((cell, reason),) = study.unplayable
    assert cell.spec["learner"]["name"] == "hedge"
    assert "needs every arm to reveal all arms" in reason
    with pytest.raises(StudyError, match="no learner of this study can play"):
        load(write(tmp_path, BASE.replace('"uniform"', '"hedge"')))


@pytest.mark.parametrize("form", ['learner = "all"', 'learner = ["all"]', '[[learner]]\nname = "all"'])
def test_all_stands_for_every_learner_and_who_cannot_play_is_left_out(tmp_path, form):
    text = BASE.replace('[[learner]]\nname = "uniform"\n', form + "\n" * 2 if form.startswith("[[") else "")
    assert text != BASE
    study = load(write(tmp_path, text if form.startswith("[[") else f"{form}\n{text}"))
    left = {cell.spec["learner"]["name"]: reason for cell, reason in study.unplayable}
    assert {*values(study.cells, "learner", "name"), *left} == {*sl.learners.names()}
    assert "needs every arm to reveal all arms" in left["hedge"]


def test_a_learner_that_needs_other_losses_is_left_out_before_anything_runs(tmp_path):
    text = BASE.replace('"uniform"', '["ucb-n", "ts-n"]') + '\n[[world]]\nname = "beta"\nmeans = { gap = 0.2 }\n'
    np.save(tmp_path / "binary.npy", np.eye(4)[np.arange(60) % 4])
    np.save(tmp_path / "between.npy", np.full((60, 4), 0.25))
    for name in ("binary", "between"):
        text += f'\n[[world]]\nname = "table"\narray = {{ file = "{name}.npy" }}\n'
    study = load(write(tmp_path, text))
    assert len(study.cells) == 4 + 2
    assert [(cell.spec["learner"]["name"], cell.spec["world"]["name"]) for cell, _ in study.unplayable] == [
        ("ts-n", "beta"),
        ("ts-n", "table"),
    ]
    assert all(reason.startswith("ts-n needs losses that are 0 or 1; those of") for _, reason in study.unplayable)
    for cell, reason in study.unplayable:  # and who plays it all the same gets the same reason
        assert work.play(work.Task(cell.spec, 1, source_hash()), study.files).error == reason
    for cell in study.cells:
        assert work.play(work.Task(cell.spec, 1, source_hash()), study.files).content


def test_a_delay_that_takes_too_much_memory_is_found_before_anything_runs(tmp_path):
    text = BASE.replace("rounds = 50", "rounds = 50\ndelay = 1_000_000").replace("n = 4", "n = 200")
    with pytest.raises(StudyError, match=r"study\.toml:2: delay: delay must be a whole number from 0 to 500,000"):
        load(write(tmp_path, text.replace("[0.2, 0.5, 0.5, 0.5]", "{ gap = 0.2 }")))


# What names a cell


def test_a_cell_does_not_depend_on_the_study_around_it(tmp_path):
    (one,) = cells(tmp_path)
    many = cells(
        tmp_path,
        'name = "another"\n'
        + BASE.replace('"uniform"', '["exp3", "uniform"]').replace("n = 4", "n = [4]")
        + '\n[[world]]\nmeans = [0.5, 0.5, 0.5, 0.5]\nname = "bernoulli"\n',
    )
    assert one.name in {cell.name for cell in many}
    assert len(many) == 4


def test_the_name_of_a_cell_is_fixed(tmp_path):
    """Results are found by it: after the first release, a change here is a new format of cells."""
    (cell,) = cells(tmp_path)
    assert cell.json == (
        '{"checkpoints":null,"delay":0,"format":1,"graph":{"n":4,"name":"nested"},"learner":{"name":"uniform"},'
        '"rounds":50,"runs":1,"seed":0,"world":{"means":[0.2,0.5,0.5,0.5],"name":"bernoulli"}}'
    )
    assert cell.name == "dd69ab5b59892dc0ac584995af697f9c"
    assert json.loads(cell.json).items() >= cell.spec.items()


def test_a_delay_is_part_of_a_cell(tmp_path):
    none, late = cells(tmp_path, BASE.replace("rounds = 50", "rounds = 50\ndelay = [0, 7]"))
    assert none.name == cells(tmp_path)[0].name
    assert (late.delay, late.spec["delay"]) == (7, 7)
    assert "50 rounds, 7 late" in str(late)
    anew = BASE.replace('name = "nested"\nn = 4', 'name = "shadows"\nn_arms = 4\ncapacity = 1')
    with pytest.raises(StudyError, match=r"study\.toml:2: delay: delay is 7: feedback that comes late needs graphs"):
        load(write(tmp_path, anew.replace("rounds = 50", "rounds = 50\ndelay = 7")))


def test_a_graph_file_counts_by_its_name_and_content_not_by_its_folder(tmp_path):
    text = BASE.replace('name = "nested"\nn = 4', 'file = "{}"')
    for folder in ("a", "b", "c"):
        (tmp_path / folder).mkdir()
        sl.graphs.star(4).save(tmp_path / folder / "g.json")
    sl.graphs.path(4).save(tmp_path / "c" / "g.json")
    names = [cells(tmp_path, text.replace("{}", f"{folder}/g.json"))[0].name for folder in ("a", "b", "c")]
    assert names[0] == names[1] != names[2]
    study = load(write(tmp_path, text.replace("{}", "a/g.json")))
    (tmp_path / "a" / "g.json").write_text("edited after the study was read")
    assert build(study.cells[0].spec, study.files.locate).sequence.bank == (sl.graphs.star(4),)


def test_a_learner_a_function_and_a_table_come_from_files(tmp_path):
    (tmp_path / "mine.py").write_text("def weekly(seed, run, t, arm):\n    return ((t + arm) % 7) / 7\n")
    np.save(tmp_path / "table.npy", np.full((60, 4), 0.25))
    (tmp_path / "twin.py").write_text("from sidelong.learners.uniform import LEARNER\n")
    text = (
        BASE.replace('name = "uniform"', 'file = "twin.py"').replace(
            'name = "bernoulli"\nmeans = [0.2, 0.5, 0.5, 0.5]',
            'name = "function"\nf = { file = "mine.py", function = "weekly" }',
        )
        + '\n[[world]]\nname = "table"\narray = { file = "table.npy" }\n'
    )
    study = load(write(tmp_path, text))
    function, table = (build(cell.spec, study.files.locate) for cell in study.cells)
    assert function.world.loss(0, 0, 9, 3) == 5 / 7
    assert function.learner.name == "uniform"
    assert table.world.loss(0, 0, 9, 3) == 0.25
    assert "tmp" not in study.cells[0].json


GRAPHS = """\
import sidelong as sl
def grid(rows, columns):
    return sl.graphs.nested(rows * columns)
def over_time(n):
    return sl.graphs.alternating([sl.graphs.nested(n), sl.graphs.star(n)])
def nothing():
    return 3
def fails():
    return 1 / 0
"""


def with_graph(folder, text):
    (folder / "mine.py").write_text(GRAPHS)
    return write(
        folder,
        BASE.replace('name = "nested"\nn = 4', f'name = "function"\n{text}').replace(
            "means = [0.2, 0.5, 0.5, 0.5]", "means = { gap = 0.2 }"
        ),
    )


def test_a_family_of_graphs_is_a_function_of_a_file(tmp_path):
    path = with_graph(tmp_path, 'f = { file = "mine.py", function = "grid" }\nrows = [2, 3]\ncolumns = 2')
    study = load(path)
    assert [cell.n_arms for cell in study.cells] == [4, 6]
    assert "on grid(rows=2, columns=2) in" in str(study.cells[0])
    assert build(study.cells[0].spec, study.files.locate).sequence.bank == (sl.graphs.nested(4),)
    dry = load(path, code=False)
    assert dry.unchecked == {cell.name for cell in dry.cells} == {cell.name for cell in study.cells}
    done = [(cell, float(cell.n_rounds)) for cell in dry.cells]  # a second a round, and nobody knows of how many arms
    assert seconds_of(dry.cells, dry.files, done) == sum(cell.n_rounds for cell in dry.cells)
    path = with_graph(tmp_path, 'f = { file = "mine.py", function = "over_time" }\nn = 3')
    assert load(path).cells[0].n_arms == 3


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            "rows = 2",
            r'study.toml:\d+: graph.*: A graph of your own has f = \{ file = "graphs.py", function = "NAME" \}',
        ),
        ('f = { file = "mine.py", function = "gird" }', "mine.py has no function 'gird'"),
        (
            'f = { file = "mine.py", function = "nothing" }',
            "nothing must return a sidelong.FeedbackGraph or a sequence",
        ),
        (
            'f = { file = "mine.py", function = "fails" }',
            "fails made no graph: ZeroDivisionError: .*, at mine.py, line 9: ",
        ),
        ('f = { file = "mine.py", function = "grid" }\nrow = 2', "grid made no graph: TypeError: .* 'row'"),
    ],
)
def test_a_function_that_makes_no_graph_is_named(tmp_path, text, said):
    with pytest.raises(StudyError, match=said):
        load(with_graph(tmp_path, text))


def test_a_learner_of_ones_own_has_the_name_that_it_was_given(tmp_path):
    (tmp_path / "twin.py").write_text("from sidelong.learners.uniform import LEARNER\n")
    for name, expected in (("", "twin on "), ('name = "mine"\n', "mine on ")):
        text = BASE.replace('name = "uniform"', f'{name}file = "twin.py"')
        (cell,) = load(write(tmp_path, text)).cells
        assert str(cell).startswith(expected)


def test_a_table_comes_from_a_csv_file_with_a_header_and_its_errors_name_line_and_column(tmp_path):
    world = 'name = "bernoulli"\nmeans = [0.2, 0.5, 0.5, 0.5]'
    text = BASE.replace(world, 'name = "table"\narray = { file = "losses.csv" }')
    assert text != BASE
    (tmp_path / "losses.csv").write_text("a,b,c,d\n" + "0,0.25,1,1\n" * 50)
    study = load(write(tmp_path, text))
    assert build(study.cells[0].spec, study.files.locate).world.loss(0, 0, 50, 1) == 0.25
    (tmp_path / "losses.csv").write_text("a,b,c,d\n0,0.25,1,2\n")
    with pytest.raises(StudyError, match=r"losses.csv, line 2, column 4 \('d'\): a loss is .* not '2'"):
        load(write(tmp_path, text))


# What is said where something is wrong


@pytest.mark.parametrize(
    ("old", "new", "line", "said"),
    [
        ("rounds = 50", "rouns = 50", 1, "there is no key 'rouns'. Did you mean 'rounds'?"),
        ("rounds = 50", "runs = 2", 1, "rounds is missing"),
        ("rounds = 50", "rounds = [50, 0]", 1, "rounds: Input should be greater than or equal to 1; got 0"),
        ("rounds = 50", "rounds = 'many'", 1, "rounds: Input should be a valid integer; got 'many'"),
        ("rounds = 50", "rounds = true", 1, "rounds: Input should be a valid integer; got True"),
        ("rounds = 50", "rounds = 50\ndelay = -1", 2, "delay: a whole number from 0"),
        ("rounds = 50", "rounds = 50\nseed = -1", 2, "seed: Input should be greater than or equal to 0"),
        ("rounds = 50", "rounds = 50\ncheckpoints = [5, 3]", 2, "checkpoints: how many, or a list of ascending rounds"),
        ("rounds = 50", "rounds = 50\ncheckpoints = [5, 300]", 2, "beyond the last round, 50"),
        ("rounds = 50", "rounds = 2024-01-01", 1, "rounds: a value is text, a finite number"),
        ("rounds = 50", "rounds = 50\n\nx y", 3, "this is not TOML"),
        ('"uniform"', '"exp3-seet"', 4, "There is no learner named 'exp3-seet'. Did you mean 'exp3-set'?"),
        ('"uniform"', '"exp3.g++"\ngama = 3', 5, "has no option 'gama'. Did you mean 'gamma'?"),
        ('"uniform"', '"exp3.g++"\ngamma = -3', 5, "gamma must be"),
        ('"uniform"', '"exp3.g++"\ngamma = inf', 5, "learner.gamma: a value is text, a finite number"),
        ('name = "uniform"', 'preset = "paper"', 3, "A learner has a name or a file"),
        ('name = "uniform"', 'file = "none.py"', 4, "none.py: cannot be read: No such file"),
        ('"nested"', '"nestd"', 7, "There is no graph named 'nestd'. Did you mean 'nested'?"),
        ("n = 4", "n = 4\nreveal = 1", 9, "graph.reveal: nested takes no 'reveal'. Did you mean 'reveals'?"),
        ("n = 4", "", 6, "nested needs n. It takes: n, reveals."),
        ("n = 4", "n = 0", 8, "graph.n: n of nested must be a whole number from 1 to"),
        ("n = 4", "n = [4, '5']", 8, "n of nested must be a whole number from 1 to 2,147,483,647, not '5'"),
        ("n = 4", "n = 5", 10, "The graph has 5 arms and the world 4: they must agree"),
        ("n = 4", "n = { each = [] }", 8, "write { each = [...] }, with at least one value"),
        ("n = 4", "n = { zip = [4, 5] }\nreveals = { zip = [1] }", 9, "the first has 2, this one 1"),
        ('name = "nested"\nn = 4', 'file = "none.json"', 7, "none.json: cannot be read: No such file"),
        ('"bernoulli"', '"bernouli"', 11, "There is no world named 'bernouli'. Did you mean 'bernoulli'?"),
        ("[0.2,", "[1.2,", 12, "world.means: "),
        ("[0.2, 0.5, 0.5, 0.5]", "{ gp = 0.2 }", 12, "world.means.gp: means is a value or { file = ... }, and means"),
        ("[0.2, 0.5, 0.5, 0.5]", "{ gap = 0.2, best = 4 }", 12, "best is one of the arms 0 to 3, not 4"),
        ("[0.2, 0.5, 0.5, 0.5]", "[\n  0.2, # first\n  0.5,\n  nan,\n  0.5]", 15, "a finite number"),
    ],
)  # fmt: skip
def test_an_error_says_where_it_is_and_what_is_near(tmp_path, old, new, line, said):
    path = write(tmp_path, **{old: new})
    with pytest.raises(StudyError) as error:
        load(path)
    message = str(error.value)
    assert message.startswith(f"{path}:{line}: ")
    assert said in message


def test_code_that_cannot_be_imported_is_an_error_of_the_study(tmp_path):
    (tmp_path / "mine.py").write_text("import sys\nsys.exit('no')\n")
    path = write(tmp_path, BASE.replace('name = "uniform"', 'file = "mine.py"'))
    with pytest.raises(StudyError, match=r"study.toml:4: learner.file: mine.py cannot be imported: SystemExit: no"):
        load(path)


@pytest.mark.parametrize(
    ("place", "line"),
    [
        (("a",), 1),
        (("b", "c", "d"), 2),
        (("b", "e"), 3),
        (("t", 0), 5),
        (("t", 0, "x"), 6),
        (("t", 0, "x", 1), 8),
        (("t", 0, "x", 2), 9),
        (("t", 1, "y", "z"), 14),
        (("t", 1, "text"), 15),
        (("t", 1, "after"), 17),
        (("t", 1, "missing"), 13),
        (("t", 1, "sub", "deep"), 19),
        (("nothing",), 1),
    ],
)
def test_the_line_of_a_key(place, line):
    text = """a = 1
b.c.d = 2
b.e = 3 # a = 1

[[t]]
x = [
  1, # y = [
  2,
  { k = "]" },
]


[[t]]
y = { z = 1, w = [1, 2] }
text = '''
a = 1'''
after = 1
[t.sub]
deep = 2
"""
    assert line_of(text, place) == line


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("rounds = 50", "rounds = []", r"study.toml:1: rounds: a list stands for each of its values"),
        ('"uniform"', "[]", r"study.toml:4: learner.name: a list stands for each of its values"),
        ("n = 4", "n = { each = [[]] }", r"study.toml:8: graph.n: "),
        ('name = "nested"\nn = 4', "file = 3", r"study.toml:7: graph.file: a file is named by text, not 3."),
        ('"nested"', '[["nested"]]', r"study.toml:7: graph.name: A graph is named by text, not \['nested'\]."),
        ('name = "nested"\nn = 4', 'file = "graph.json"', r"study.toml:7: graph.file: graph.json: this is not JSON"),
        ("n = 4", f"n = {'[' * 5000}4{']' * 5000}", r"study.toml: its lists or tables are nested too deep."),
    ],
)
def test_what_is_no_value_is_refused_in_words(tmp_path, old, new, said):
    (tmp_path / "graph.json").write_text("{")
    with pytest.raises(StudyError, match=said):
        load(write(tmp_path, **{old: new}))


def test_too_many_cells_are_refused_before_they_are_made(tmp_path):
    many = f"rounds = {[*range(1, 3001)]}\nseed = {[*range(3000)]}"
    with pytest.raises(StudyError, match=r"at most 100,000 cells, and these lists alone make more"):
        load(write(tmp_path, **{"rounds = 50": many}))


def test_a_mark_at_the_beginning_of_a_file_is_no_part_of_it(tmp_path):
    path = write(tmp_path)
    names = [cell.name for cell in load(path).cells]
    path.write_text(f"\ufeff{path.read_text()}")
    assert [cell.name for cell in load(path).cells] == names


def test_a_delay_may_be_a_law(tmp_path):
    none, late = cells(tmp_path, BASE.replace("rounds = 50", 'rounds = 50\ndelay = [0, "geometric:5:40"]'))
    assert (none.delay, late.delay) == (0, "geometric:5:40")
    assert "50 rounds, late by geometric:5:40" in str(late)
    with pytest.raises(StudyError, match=r"study\.toml:2: delay: delay has no law 'geo'"):
        cells(tmp_path, BASE.replace("rounds = 50", 'rounds = 50\ndelay = "geo:5:40"'))


# What a study file of somebody else may do

MARK = "from pathlib import Path\nPath({path!r}).write_text('run')\n"


def with_code(folder):
    """Write a study whose learner and whose world are files that leave a mark where they are imported."""
    mark = folder / "mark"
    for name in ("mine.py", "worlds.py"):
        (folder / name).write_text(MARK.format(path=str(mark)))
    learner = '[[learner]]\nname = "uniform"\n[[learner]]\nfile = "mine.py"'
    world = 'name = ["function"]\nf = { file = "worlds.py", function = "weekly" }\n[[world]]\nname = "bernoulli"'
    text = BASE.replace('[[learner]]\nname = "uniform"', learner).replace('name = "bernoulli"', world)
    return write(folder, text), mark


def test_a_study_is_read_without_running_its_code(tmp_path):
    path, mark = with_code(tmp_path)
    study = load(path, code=False)
    assert not mark.exists()
    assert (len(study.cells), len(study.unchecked)) == (4, 3)
    assert {cell.name for cell in study.cells if cell.kind} == {cell.name for cell in study.cells} - study.unchecked
    assert {cell.n_arms for cell in study.cells} == {4}
    with pytest.raises(StudyError, match=r"mine_\w+ lacks|has no function"):
        load(path)
    assert mark.exists()


def test_code_is_not_loaded_in_place_of_numbers_either(tmp_path):
    path, mark = with_code(tmp_path)
    text = BASE.replace("[0.2, 0.5, 0.5, 0.5]", '{ file = "worlds.py", function = "weekly" }')
    study = load(write(tmp_path, text), code=False)
    assert study.unchecked == {cell.name for cell in study.cells}
    graph = BASE.replace("n = 4", 'n = { file = "worlds.py", function = "weekly" }')
    with pytest.raises(StudyError, match=r"study\.toml:\d+: graph: worlds\.py is code"):
        load(write(tmp_path, graph), code=False)
    assert path.exists()
    assert not mark.exists()


@pytest.mark.parametrize("how", ["above", "absolute", "link"])
def test_files_outside_of_the_folder_are_read_only_if_told(tmp_path, how):
    np.save(tmp_path / "secret.npy", np.full((50, 4), 0.5))
    folder = tmp_path / "study"
    folder.mkdir()
    named = {"above": "../secret.npy", "absolute": str(tmp_path / "secret.npy"), "link": "link.npy"}[how]
    (folder / "link.npy").symlink_to(tmp_path / "secret.npy")
    world = f'name = "table"\narray = {{ file = "{named}" }}'
    path = write(folder, BASE.replace('name = "bernoulli"\nmeans = [0.2, 0.5, 0.5, 0.5]', world))
    with pytest.raises(StudyError, match=r"study\.toml:12: world\.array\.file: .* is outside of the study's folder"):
        load(path)
    assert len(load(path, outside=True).cells) == 1


@pytest.mark.parametrize("named", ["pipe.npy", "device.npy", "folder.npy"])
def test_what_is_no_regular_file_is_not_read(tmp_path, named):
    os.mkfifo(tmp_path / "pipe.npy")
    (tmp_path / "device.npy").symlink_to("/dev/zero")
    (tmp_path / "folder.npy").mkdir()
    world = f'name = "table"\narray = {{ file = "{named}" }}'
    path = write(tmp_path, BASE.replace('name = "bernoulli"\nmeans = [0.2, 0.5, 0.5, 0.5]', world))
    with pytest.raises(StudyError, match=r"cannot be read: (it is not a regular file|Is a directory)"):
        load(path, outside=True)
