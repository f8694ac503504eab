"""`sidelong run`: what it prints, and its exit codes. What survives what is tested in tests/studies."""

import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
from typer.testing import CliRunner

import sidelong as sl
from sidelong.cli import app
from sidelong.cli.playing import LogLines
from sidelong.learners import uniform
from sidelong.studies import estimate, work
from sidelong.studies.provenance import source_hash
from sidelong.studies.spec import load
from sidelong.studies.summary import Summary
from studies import small


def invoke(*arguments):
    done = CliRunner().invoke(app, ["run", *map(str, arguments)])
    assert done.exception is None or isinstance(done.exception, SystemExit)
    return done


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("rounds = ", "ronds = ", "study.toml:1: ronds: there is no key 'ronds'. Did you mean 'rounds'?"),
        ("runs = 2", "runs = 0", "study.toml:2: runs: Input should be greater than or equal to 1; got 0."),
        ('"uniform"', '"unifrom"', "study.toml:7: learner.name: There is no learner named 'unifrom'. Did you mean"),
        ('"star"]', '"sta"]', "study.toml:10: graph.name: There is no graph named 'sta'. Did you mean 'star'?"),
        ('name = ["nested", "star"]\nn = 4', 'file = "no.json"', "study.toml:10: graph.file: "),
        ("n = 4", "n = -4", "study.toml:11: graph.n: n of nested must be a whole number from 1 to"),
    ],
)
def test_what_is_wrong_gives_one_message_and_code_2(tmp_path, old, new, said):
    assert old in small.STUDY
    done = invoke(small.write(tmp_path, text=small.STUDY.replace(old, new)), "--out", tmp_path / "results")
    assert done.exit_code == 2
    assert said in done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert done.stdout == ""
    assert not (tmp_path / "results").exists()


def test_the_page_shows_the_message_about_its_own_file(tmp_path):
    page = (Path(__file__).parents[2] / "docs" / "studies.md").read_text("utf-8")
    study = re.search(r"```toml study.toml\n(.*?)```", page, re.DOTALL)[1]
    shown = re.search(r"```\n(study\.toml:.*?\n)```", page, re.DOTALL)[1]
    (tmp_path / "study.toml").write_text(study.replace("n = 10\n", "n = 10\nreveal = 1\n"))
    assert invoke(tmp_path / "study.toml", "--dry-run").stderr.endswith(shown)


def test_a_study_that_is_not_there(tmp_path):
    done = invoke(tmp_path / "none.toml")
    assert done.exit_code == 2
    assert "none.toml: cannot be read: No such file or directory." in done.stderr


def test_a_process_ends_with_code_2_and_no_traceback(tmp_path):
    path = small.write(tmp_path, text=small.STUDY.replace("uniform", "unifrom"))
    done = small.run(path, code=2)
    assert done.stderr.startswith("sidelong run: ")
    assert done.stdout == ""


def test_a_dry_run_lists_the_cells_and_writes_nothing(tmp_path):
    done = invoke(small.write(tmp_path), "--out", tmp_path / "results", "--dry-run", "--workers", 2)
    assert done.exit_code == 0
    lines = done.stdout.splitlines()
    assert sum("to do    " in line for line in lines) == 24
    assert "uniform on star(n=4) in bernoulli(means=" in done.stdout
    assert lines[-1].startswith("24 cells, 0 done, 24 to do: 12,000 rounds, about 0:0")
    assert lines[-1].endswith("on 2 cores, and compilation.")
    assert not (tmp_path / "results").exists()


def test_a_dry_run_loads_no_code(tmp_path):
    (tmp_path / "mine.py").write_text(f"from pathlib import Path\nPath({str(tmp_path / 'mark')!r}).write_text('run')\n")
    text = small.STUDY.replace('name = "uniform"', 'file = "mine.py"')
    done = invoke(small.write(tmp_path, text=text), "--out", tmp_path / "results", "--dry-run", "--workers", 2)
    assert done.exit_code == 0
    assert "24 cells with code of your own, which a dry run does not load: neither checked nor timed." in done.stdout
    assert done.stdout.endswith("\n24 cells, 0 done, 24 to do: 12,000 rounds.\n")  # and not "about 0:00"
    assert not (tmp_path / "mark").exists()


def test_a_dry_run_says_for_how_many_cells_its_estimate_is(tmp_path):
    (tmp_path / "mine.py").write_text("")
    text = small.STUDY.replace("[learner]", "[[learner]]") + '\n[[learner]]\nfile = "mine.py"\n'
    done = invoke(small.write(tmp_path, text=text), "--out", tmp_path / "results", "--dry-run", "--workers", 2)
    assert re.search(r"about 0:0\d for 24 of them on 2 cores, and compilation\.$", done.stdout.strip())


def test_files_outside_of_the_folder_need_a_flag(tmp_path):
    sl.graphs.star(4).save(tmp_path / "graph.json")
    (tmp_path / "study").mkdir()
    text = small.STUDY.replace('name = ["nested", "star"]\nn = 4', 'file = "../graph.json"')
    path = small.write(tmp_path / "study", 1, text)
    refused = invoke(path, "--dry-run")
    assert refused.exit_code == 2
    assert "is outside of the study's folder" in refused.stderr
    assert invoke(path, "--dry-run", "--allow-outside").exit_code == 0


def test_a_run_ends_with_a_summary_and_a_later_one_knows_what_is_done(tmp_path, monkeypatch):
    path = small.write(tmp_path, 1)
    done = small.run(path, "--out", tmp_path / "results", "--workers", 2)
    assert done.stdout.startswith("8 of 8 cells are done. 4,000 rounds in ")
    assert done.stderr == ""
    told = invoke(path, "--out", tmp_path / "results", "--dry-run").stdout
    assert sum("done     " in line for line in told.splitlines()) == 8
    assert "8 cells, 8 done, 0 to do: 0 rounds" in told
    assert invoke(path, "--out", tmp_path / "results").stderr == ""
    monkeypatch.setattr(uniform, "LEARNER", replace(uniform.LEARNER, version=2))
    again = invoke(path, "--out", tmp_path / "results")
    assert again.stdout.startswith("8 of 8 cells are done, 8 of them before.")
    assert "8 cells were run by a version of their learner that decides otherwise" in again.stderr


def test_what_cannot_be_played_is_listed_with_the_reason_and_left_out(tmp_path):
    text = small.STUDY.replace('"uniform"', '["uniform", "ts-n"]').replace('"bernoulli"', '"beta"')
    path = small.write(tmp_path, 1, text)
    told = invoke(path, "--out", tmp_path / "results", "--dry-run").stdout.splitlines()
    left_out = [number for number, line in enumerate(told) if "  left out  ts-n on " in line]
    assert len(left_out) == 8
    assert {told[number + 1] for number in left_out} == {
        f"  ts-n needs losses that are 0 or 1; those of <World beta: 4 arms, best arm 0 with mean {low}, next {high}; "
        f"concentration 10> lie between. Use a learner for any losses, such as ucb-n."
        for low, high in ((0.45, 0.55), (0.4, 0.6))
    }
    assert "8 cells, 0 done, 8 to do" in told[-1]
    assert small.run(path, "--out", tmp_path / "results").stdout.startswith("8 of 8 cells are done.")


def test_the_estimate_is_of_the_right_size(tmp_path):
    """One cell that takes seconds, so that start-up does not count; within a factor of five, on a busy machine too."""
    text = (
        small.STUDY.replace("[200, 300]", "3_000_000")
        .replace('["nested", "star"]', '"star"')
        .replace("[0.1, 0.2]", "0.2")
    )
    study = load(small.write(tmp_path, 1, text))
    guess = estimate.seconds_of(study.cells, study.files)
    taken = work.play(work.Task(study.cells[0].spec, 1, source_hash()), study.files).seconds
    assert taken / 5 < guess < taken * 5


def test_the_estimate_measures_every_learner_however_long_the_first_takes(tmp_path, monkeypatch):
    """Compiling, or one slow learner, must not let all others be guessed from it."""
    paces = {"uniform": 1e-2, "exp3": 1e-5, "ucb-n": 1e-6}  # seconds a round

    def probe(spec, _files, rounds):
        return SimpleNamespace(seconds=paces[spec["learner"]["name"]] * rounds, rounds=[rounds])

    monkeypatch.setattr("sidelong.studies.work.probe", probe)
    monkeypatch.setattr("sidelong.studies.estimate._BUDGET", 1.0)
    study = load(small.write(tmp_path, 1, small.STUDY.replace('"uniform"', '["uniform", "exp3", "ucb-n"]')))
    expected = sum(paces[cell.spec["learner"]["name"]] * cell.n_rounds for cell in study.cells)
    assert estimate.seconds_of(study.cells, study.files) == pytest.approx(expected)


def test_a_log_gets_a_line_per_minute_with_what_failed_and_where_it_went_on(tmp_path, capsys):
    cell = load(small.write(tmp_path, 1)).cells[0]
    now = 0.0
    lines = LogLines(clock=lambda: now)
    rounds = 1_000_000 + cell.n_rounds  # of which those of the cell that fails are not left
    summary = Summary(48, rounds, done_before=12, played=3, rounds_played=250_000, seconds=50.0)
    lines(summary)
    assert capsys.readouterr().err == ""
    now, summary.failed[cell], summary.set_aside = 60.0, "it is broken", [tmp_path / "damaged"]
    lines(summary)
    said = re.sub(r"\d\d:\d\d:\d\d", "TIME", capsys.readouterr().err, count=3).splitlines()
    assert said[0] == "TIME  15 of 48 cells, 12 of them before this run, 5,000 rounds per second, 2:30 left"
    assert said[1].startswith("TIME  failed: uniform on nested")
    assert said[2:] == ["  it is broken", f"TIME  damaged, set aside and run again: {tmp_path / 'damaged'}"]
    now = 119.0
    lines(summary)
    assert capsys.readouterr().err == ""
    now, summary.played = 121.0, 5
    lines(summary)
    assert capsys.readouterr().err.endswith("  17 of 48 cells, 5,000 rounds per second, 2:30 left\n")
    now, summary.rounds_wasted = 182.0, 50_000
    lines(summary)
    assert capsys.readouterr().err.endswith("  17 of 48 cells, 5,000 rounds per second, 2:40 left\n")


def test_left_out_cells_are_listed_with_the_reason(tmp_path):
    path = small.write(tmp_path, 1, small.STUDY.replace('"uniform"', '["uniform", "hedge"]'))
    told = invoke(path, "--out", tmp_path / "results", "--dry-run").stdout
    assert told.count("left out") == 8
    assert "hedge needs every arm to reveal all arms" in told


def test_no_scheduler_is_code_2(tmp_path):
    done = invoke(small.write(tmp_path, 1), "--out", tmp_path / "results", "--on", "nonsense://nowhere")
    assert done.exit_code == 2
    assert "there is no Dask scheduler there" in done.stderr


def test_without_the_packages_of_studies_it_gives_the_pip_command(tmp_path, monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None if name == "pyarrow" else object())
    done = invoke(small.write(tmp_path))
    assert done.exit_code == 2
    assert "sidelong run: pyarrow is missing. Install with: pip install pyarrow\n" in done.stderr


def test_without_pyarrow_the_rest_of_the_package_works():
    program = (
        "import sys; sys.modules['pyarrow'] = None\n"
        "import sidelong as sl; sl.graphs.nested(3)\n"
        "try: sl.read_results('.')\n"
        "except ModuleNotFoundError as error: print(error)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.stdout == "Studies need pyarrow. Install with: pip install pyarrow\n"
