"""The command line: what it prints, and what it says where it cannot."""

import os
import re
import subprocess
import sys

import pytest
from typer.testing import CliRunner

import sidelong as sl
from sidelong import __main__, cli
from sidelong.cli.demo import folder_name
from sidelong.learners import catalogue


def run(*arguments, **environment):
    return subprocess.run(
        [sys.executable, "-m", "sidelong", *map(str, arguments)],
        env=os.environ | environment,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture(scope="module")
def played(tmp_path_factory):
    """A short demo."""
    folder = tmp_path_factory.mktemp("demo") / "results"
    done = run("demo", "--rounds", "300", "--runs", "2", "--out", folder, COLUMNS="80")
    assert done.returncode == 0, done.stderr
    return folder, done


@pytest.mark.long
def test_demo_ends_with_the_scoreboard_what_to_do_next_and_a_report(played):
    folder, done = played
    assert done.stderr == ""
    for word in ("self_loops", "nested", "stochastic world", "an adversary", "ucb-n", "worst", "next"):
        assert word in done.stdout
    shop, _, paper = done.stdout.partition("For a paper:")
    costs = [float(each.replace(",", "")) for each in re.findall(r"([\d,]+) *$", shop, re.MULTILINE)]
    assert len(costs) == 3
    assert costs[0] == min(costs)  # sl.Newsvendor knows the weekday, and the rule does not
    assert re.search(r"Tomorrow: \d+ bread, \d+ rolls, \d+ cake\.", shop)
    stochastic = paper.partition("Against")[0].splitlines()
    rule = next(k for k, line in enumerate(stochastic) if "──" in line)
    rows = [re.split(r"\s+", line.removeprefix(" exp3.g++").strip()) for line in stochastic[rule + 1 :] if line.strip()]
    worst = [float(row[-9]) for row in rows]  # and four times a regret and a ratio
    assert worst == sorted(worst)
    assert len(worst) == 8
    assert "…" not in done.stdout
    *shown, last = done.stdout.splitlines()
    assert max(map(len, shown)) <= 80
    assert last == f"report  {folder / 'report.html'}"
    assert "exp3.g++" in (folder / "report.html").read_text()


@pytest.mark.long
def test_a_second_demo_plays_nothing_again_and_prints_the_same(played, monkeypatch):
    folder, done = played
    monkeypatch.setattr("sidelong.studies.report.write", lambda *_, **_options: [folder / "report.html"])
    monkeypatch.setattr("sidelong.studies.local.Local", lambda *_: pytest.fail("nothing is to be played"))
    told = CliRunner().invoke(
        cli.app, ["demo", "--rounds", "300", "--runs", "2", "--out", str(folder)], env={"COLUMNS": "80"}
    )
    assert told.stdout == done.stdout


def test_a_demo_with_other_options_has_another_folder():
    names = {
        folder_name(rounds, runs, seed, every=every)
        for rounds in (100_000, 8)
        for runs in (8, 2)
        for seed in (0, 8)
        for every in (False, True)
    }
    assert len(names) == 16
    assert folder_name(100_000, 13, 0, every=False) == "demo"


@pytest.mark.long
def test_a_demo_in_the_folder_of_another_study_is_refused(played):
    folder, _ = played
    done = CliRunner().invoke(cli.app, ["demo", "--rounds", "400", "--runs", "2", "--out", str(folder)])
    assert done.exit_code == 2
    assert "rounds: was 300, is 400" in done.stderr


@pytest.mark.parametrize("width", [80, 120])
@pytest.mark.parametrize("command", [["learners"], ["learners", "exp3.g++"]])
def test_no_word_is_cut_at_the_width_of_a_terminal(command, width):
    shown = CliRunner().invoke(cli.app, command, env={"COLUMNS": str(width), "NO_COLOR": "1"}).output
    assert max(map(len, shown.splitlines())) <= width
    assert "…" not in shown
    assert "\x1b[3" not in shown


@pytest.mark.parametrize("width", [80, 120])
def test_learners_lists_all_of_them_with_their_papers(width):
    done = CliRunner().invoke(cli.app, ["learners"], env={"COLUMNS": str(width)})
    assert done.exit_code == 0
    for name in sl.learners.names():
        assert f"\n {name} " in done.stdout
        assert catalogue.find(name.split()[0]).about.paper.split(",")[0] in done.stdout
    assert "Erez and Koren" in done.stdout


@pytest.mark.parametrize("name", sl.learners.names())
def test_learners_tells_all_about_one(name):
    done = CliRunner().invoke(cli.app, ["learners", name], env={"COLUMNS": "120"})
    assert done.exit_code == 0
    for word in ("reference" if catalogue.find(name).about.published else "idea", "theorem", "bound", "needs"):
        assert f"\n{word} " in done.output
    for option in catalogue.option_names(catalogue.find(name)):
        assert f"\n{option} " in done.output


def test_learners_shows_the_options_of_the_epochs_too():
    shown = CliRunner().invoke(cli.app, ["learners", "exp3.g++"], env={"COLUMNS": "120"}).output
    paper, epoch = shown.split("\nexp3.g++ epoch\n")
    assert re.search(r"\nrate +'adaptive' ", paper)
    assert not re.search(r"\n(refresh|reference) ", epoch)  # they have one value there, or none
    assert "departs from the paper" in paper
    assert "departs from the paper" not in epoch
    assert re.search(r"\ngrowth +0\.05 ", epoch)


def test_version_in_a_process_of_its_own():
    done = run("--version")
    assert done.stdout.strip() == f"sidelong {sl.__version__}"


def test_without_arguments_it_helps(sidelong):
    for arguments in ([], ["--help"]):
        done = sidelong(*arguments)
        assert "demo" in done.stdout + done.stderr


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (("demo", "--rounds", "many"), "--rounds"),
        (("demo", "--rounds", "1"), "greater than or equal to 100"),
        (("dmeo",), "Did you mean 'demo'"),
        (("learners", "ucbn"), "Did you mean 'ucb-n'"),
        (("learners", "exp3.gpp"), "'exp3.g++'?"),
    ],
)
def test_a_wrong_argument_gives_one_message_and_code_2(arguments, named, sidelong):
    done = sidelong(*arguments)
    assert done.returncode == 2
    assert "Traceback" not in done.stderr
    assert named in " ".join(done.stderr.replace("│", " ").split())  # wherever its lines break


def test_where_the_packages_of_the_command_line_are_missing_it_gives_the_pip_command(monkeypatch, capsys):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None if name == "typer" else object())
    with pytest.raises(SystemExit) as stop:
        __main__.main()
    assert stop.value.code == 2
    assert "needs typer. Install with: pip install typer\n" in capsys.readouterr().err
