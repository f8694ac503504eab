"""The command line: what it prints, and what it says where it cannot."""

import subprocess
import sys

import pytest

import sidelong as sl
from sidelong import __main__


def run(*arguments):
    return subprocess.run([sys.executable, "-m", "sidelong", *arguments], capture_output=True, text=True, check=False)


def test_demo_ends_with_the_scoreboard_and_what_to_do_next():
    done = run("demo", "--rounds", "300", "--runs", "2")
    assert done.returncode == 0
    assert done.stderr == ""
    for word in ("bandit", "nested", "stoch", "advers", "exp3.g++ practical", "ucb-n", "worst", "Next:"):
        assert word in done.stdout
    lines = done.stdout.splitlines()
    ratios = [float(line.split()[0]) for line in (each.split("│")[2] for each in lines if "│" in each) if line.strip()]
    assert ratios == sorted(ratios)
    assert len(ratios) == 8


def test_the_same_seed_prints_the_same_scoreboard():
    one, other, another = (run("demo", "--rounds", "150", "--runs", "2", "--seed", s).stdout for s in ("1", "1", "2"))
    assert one == other != another


def test_learners_lists_all_of_them_with_their_papers():
    done = run("learners")
    assert done.returncode == 0
    for name in sl.learners.names():
        assert f"│ {name} " in done.stdout
    assert "Erez and Koren" in done.stdout


def test_version():
    done = run("--version")
    assert done.stdout.strip() == f"sidelong {sl.__version__}"


def test_without_arguments_it_helps():
    assert "demo" in run().stdout + run("--help").stdout


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (("demo", "--rounds", "many"), "--rounds"),
        (("demo", "--rounds", "1"), "greater than or equal to 100"),
        (("dmeo",), "Did you mean 'demo'"),
    ],
)
def test_a_wrong_argument_gives_one_message_and_code_2(arguments, named):
    done = run(*arguments)
    assert done.returncode == 2
    assert "Traceback" not in done.stderr
    assert named in done.stderr


def test_where_the_packages_of_the_command_line_are_missing_it_gives_the_pip_command(monkeypatch, capsys):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None if name == "typer" else object())
    with pytest.raises(SystemExit) as stop:
        __main__.main()
    assert stop.value.code == 2
    assert "needs typer. Install with: pip install 'sidelong[cli]'" in capsys.readouterr().err
