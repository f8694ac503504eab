"""Tables as text, HTML and LaTeX: nothing that comes in as text is taken for markup."""

import sys

import pytest

from sidelong.display.tables import data_frame, html_table, latex_table, latex_text, text_table
from sidelong.errors import SidelongError

pytestmark = pytest.mark.interpreted
HEAD, ROWS = ["learner", "regret"], [["a_b", "1,234.5"], ["<script>", "7"]]


def test_numbers_end_at_the_right_and_names_begin_at_the_left():
    assert text_table(HEAD, ROWS).splitlines() == [
        "learner    regret",
        "--------  -------",
        "a_b       1,234.5",
        "<script>        7",
    ]


def test_html_is_escaped_everywhere():
    made = html_table(["<a>"], [["<b>"]], "<c>", ["<d>"])
    for letter in "abcd":
        assert f"&lt;{letter}&gt;" in made
        assert f"<{letter}>" not in made


def test_latex_is_a_booktabs_table_whose_text_is_escaped():
    made = latex_table(HEAD, ROWS, comment="two\nlines")
    assert made.startswith("% two\n% lines\n")
    for part in (r"\begin{tabular}{lr}", r"\toprule", r"\midrule", r"\bottomrule", r"\end{tabular}"):
        assert made.count(part) == 1
    assert r"a\_b & 1,234.5 \\" in made
    assert r"\ensuremath{<}script\ensuremath{>} & 7 \\" in made


def test_every_sign_that_latex_takes_for_a_command_is_escaped():
    assert latex_text("50% & $1 #2 {x}_^~") == r"50\% \& \$1 \#2 \{x\}\_\textasciicircum{}\textasciitilde{}"
    assert latex_text("\\input") == r"\textbackslash{}input"
    assert all(ord(letter) < 128 for letter in latex_text("± √T · log² θ \N{MINUS SIGN}1 …"))


def test_without_pandas_the_error_names_the_command_that_installs_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(SidelongError, match="pip install pandas"):
        data_frame({})
