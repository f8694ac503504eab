"""docs/paper.md names things that exist, and leaves out no claim and no erratum."""

import importlib
import inspect
import re
from pathlib import Path

import pytest

from sidelong import claims

ROOT = Path(__file__).parent.parent.parent
PAGE = (ROOT / "docs" / "paper.md").read_text()
REFERENCES = sorted(set(re.findall(r"`([\w/]+)\.py::(\w+)(?: # ([\d, ]+))?`", PAGE)))


def test_the_page_refers_to_code():
    assert len(REFERENCES) > 40
    assert PAGE.count(".py::") == len(re.findall(r"`[\w/]+\.py::\w+(?: # [\d, ]+)?`", PAGE))


@pytest.mark.parametrize(("file", "name", "lines"), REFERENCES)
def test_every_name_exists_and_has_its_lines_of_pseudo_code(file, name, lines):
    module = importlib.import_module("sidelong." + file.replace("/", "."))
    assert Path(module.__file__) == ROOT / "src" / "sidelong" / f"{file}.py"
    thing = getattr(module, name)
    source = inspect.getsource(getattr(thing, "py_func", thing)) if lines else ""
    for number in re.findall(r"\d+", lines):
        assert re.search(rf"# (\d+, )*{number}\b", source), f"no line {number} in {name}"


def test_every_claim_is_on_the_page_and_no_other():
    kinds = "absent|alg|certificate|delay|eq|exp3g|glance|lem|prop|seen|squarecb|stop|thm|track"
    named = set(re.findall(rf"`((?:{kinds})-[\w-]+|e\d+|unbiased)`", PAGE))
    assert named == {claim.id for claim in claims.CLAIMS}


def test_all_errata_are_on_the_page_each_with_a_claim():
    rows = re.findall(r"^\| E(\d+) \|.*\| (`.*`) \|$", PAGE, re.MULTILINE)
    assert [int(number) for number, _ in rows] == list(range(1, 32))


@pytest.mark.parametrize(("kind", "last"), [("Theorems", 6), ("Propositions, lemmas", 10), ("Equations", 24)])
def test_every_number_of_the_paper_is_on_the_page(kind, last):
    section = PAGE.split(f"## {kind}")[1].split("\n## ")[0]
    names = {"Theorems": "{}", "Equations": "({})", "Propositions, lemmas": "Lemma {}"}[kind]
    cells = " ".join(re.findall(r"^\| ([^|]*) \|", section, re.MULTILINE))
    spans = [range(int(a), int(b) + 1) for a, b in re.findall(r"\((\d+)\) to \((\d+)\)", cells)]
    for number in range(1, last + 1):
        within = any(number in span for span in spans)
        assert within or re.search(rf"(^|\W){re.escape(names.format(number))}(\W|$)", cells), number
    if kind == "Propositions, lemmas":
        assert all(f"Proposition {n}" in cells for n in range(1, 9))
