"""`sidelong verify`: its table, its JSON, and its exit code."""

import json
import math
import re
import subprocess
import sys

import pytest
from typer.testing import CliRunner

from sidelong import claims
from sidelong.claims.claim import Outcome
from sidelong.cli import app

QUICK = ["lem-2", "lem-4", "prop-5", "e7", "e13"]


def run(*arguments, columns=80):
    return CliRunner().invoke(app, ["verify", *arguments], env={"COLUMNS": str(columns)})


def test_as_a_program_it_prints_json_and_nothing_else():
    done = subprocess.run(
        [sys.executable, "-m", "sidelong", "verify", "--json", "--only", ",".join(QUICK), "--seed", "5"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0
    assert done.stderr == ""
    told = json.loads(done.stdout)
    assert told["seed"] == 5
    assert told["false_alarm"] == claims.FALSE_ALARM
    assert [each["id"] for each in told["claims"]] == ["lem-2", "lem-4", "prop-5", "e7", "e13"]
    first = told["claims"][0]
    assert first["verdict"] == "false as printed, holds as corrected"
    assert first["as_printed"] == pytest.approx([1.2020569, 0.5])
    assert first["measured"] <= first["bound"] == 1
    assert "Printed as" in first["statement"]


@pytest.mark.parametrize("columns", [80, 120])
def test_the_table_fits_and_shows_every_claim(columns):
    done = run("--only", "lem-2,lem-4", "--only", "e7", columns=columns)
    assert done.exit_code == 0
    table, _, below = done.output.partition("3 claims in")
    assert max(map(len, table.splitlines())) <= columns
    for word in ("claim", "in the paper", "measured", "at most", "verdict", "lem-2", "lem-4", "e7", "Lemma 2, App."):
        assert word in table
    assert table.count("corrected") == 2
    assert table.count("holds") == 1
    assert re.search(r"2 corrected, 1 hold|1 hold, 2 corrected", below)
    assert "at most 1e-06" in " ".join(below.split())


@pytest.mark.parametrize(
    ("fails_from", "word", "said"),
    [
        (2.0, "holds *", ""),
        (42.0, "holds †", "to fail below 42 times"),
        (math.inf, "holds †", "it could not fail"),
    ],
)
def test_a_sample_that_says_little_is_marked(fails_from, word, said, monkeypatch):
    outcome = Outcome(0.0, 0.001, "0 of 150", "0.001", fails_from=fails_from)
    held = claims.Checked(claims.choose(["lem-9"])[0], outcome, 1.0, 0.1)
    monkeypatch.setattr("sidelong.claims.verify", lambda *_, **__: iter([held]))
    shown = run("--only", "lem-9", columns=300).output
    assert word in shown
    column = " ".join(line[50:110] for line in shown.splitlines())
    assert said in " ".join(column.split())
    assert ("†: the same" in shown) == (fails_from > 10)
    monkeypatch.setattr("sidelong.claims.verify", lambda *_, **__: iter([held]))
    told = json.loads(run("--only", "lem-9", "--json").output)["claims"][0]
    assert told["fails_from"] == (fails_from if fails_from < math.inf else None)
    assert told["says_little"] == (fails_from > 10)


@pytest.mark.parametrize("form", [(), ("--json",)])
def test_a_claim_that_fails_gives_code_1(form, monkeypatch):
    failing = claims.Checked(claims.choose(["lem-4"])[0], Outcome(float("inf"), 1.0, "far too much", "1"), 1.0, 0.1)
    monkeypatch.setattr("sidelong.claims.verify", lambda *_, **__: iter([failing]))
    done = run("--only", "lem-4", *form)
    assert done.exit_code == 1
    if form:
        (told,) = json.loads(done.stdout)["claims"]
        assert told["verdict"] == "fails"
        assert told["measured"] is None  # JSON has no infinity
    else:
        assert "FAILS" in done.output
        assert "1 fail." in done.output


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (("--only", "prop-9"), "There is no claim 'prop-9'"),
        (("--only", ","), "no claim is named"),
        (("--seed", "-1"), "--seed"),
        (("--effort", "2"), "No such option"),
    ],
)
def test_a_wrong_argument_gives_code_2(arguments, named):
    done = run(*arguments)
    assert done.exit_code == 2
    assert "Traceback" not in done.output
    assert named in " ".join(re.sub(r"[│╭╰─╮╯]", " ", done.output).split())
