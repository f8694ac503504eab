"""`sidelong check FILE`: the learner of the page, whole and broken, in the words that its writer reads."""

import doctest
import re
from pathlib import Path

import pytest

pytestmark = pytest.mark.interpreted

PAGE = (Path(__file__).parents[2] / "docs" / "own-learner.md").read_text()
LEARNER = re.search(r"```python my_greedy.py\n(.*?)```", PAGE, re.DOTALL)[1]


@pytest.fixture
def check(sidelong, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    def run(text, *arguments):
        (tmp_path / "mine.py").write_text(text)
        return sidelong("check", "mine.py", "--rounds", "20", *arguments)

    return run


def test_a_learner_that_keeps_the_contract_has_code_0(check):
    done = check(LEARNER, "--option", "share=0.05", "--graph", "nested:4")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("my-greedy keeps the contract, in 20 rounds:\n")


def test_what_it_breaks_is_said_with_round_and_line_and_has_code_1(check):
    done = check(LEARNER.replace("p[leader] +=", "p[leadr] +="))
    line = LEARNER[: LEARNER.index("p[leader] +=")].count("\n") + 1
    assert (done.returncode, done.stderr) == (1, "")
    assert done.stdout.startswith(
        "my-greedy breaks the contract, in 20 rounds:\n"
        "  kernels raise no error: round 1: `distribution` raises NameError: name 'leadr' is not defined\n"
        f"    mine.py, line {line}: p[leadr] += 1.0 - params.share\n"
    )
    done = check(LEARNER.replace("p[leader] += 1.0", "p[leader] += 0.9"))
    assert "probabilities: round 1: the probabilities sum to 0.9, and not to 1" in done.stdout


def test_the_page_shows_what_a_typo_gives(sidelong, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "my_greedy.py").write_text(LEARNER.replace("p[leader] +=", "p[leadr] +="))
    shown = re.search(r"```text\n(my-greedy breaks .*?)```", PAGE, re.DOTALL)[1]
    done = sidelong("check", "my_greedy.py")
    assert doctest.OutputChecker().check_output(shown, done.stdout, doctest.ELLIPSIS), done.stdout


@pytest.mark.parametrize(
    ("text", "arguments", "said"),
    [
        ("x = (", (), "mine.py cannot be imported: SyntaxError: '(' was never closed, at mine.py, line 1: x = ("),
        ("\nimport nothing_there", (), "No module named 'nothing_there', at mine.py, line 2: import nothing_there"),
        ("x = 1", (), "The module mine has no LEARNER."),
        (LEARNER, ("--option", "shaer=0.1"), "my-greedy has no option 'shaer'. Did you mean 'share'?"),
        (LEARNER, ("--option", "share"), "an option is KEY=VALUE, such as share=0.05, not 'share'."),
        (LEARNER, ("--graph", "nested:no"), "nested"),
    ],
)
def test_what_cannot_be_checked_is_one_message_and_code_2(check, text, arguments, said):
    done = check(text, *arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert said in " ".join(re.sub(r"[│╭╮╰╯─]", " ", done.stderr).split())
    assert "Traceback" not in done.stderr


def test_a_file_that_is_not_there_is_named(sidelong):
    done = sidelong("check", "nowhere.py")
    assert (done.returncode, done.stderr) == (2, "sidelong check: nowhere.py: there is no such file.\n")
