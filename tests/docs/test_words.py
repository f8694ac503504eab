"""How many words people have written for each kind of reader, without code, formulas and generated tables."""

import re
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent
DOCS = ROOT / "docs"
sys.path.insert(0, str(DOCS / "_ext"))

import contents  # noqa: E402

NOT_PROSE = (r"^ *```.*?^ *```", r"<!-- \w.*?<!-- (?:/|the end).*?-->", r"\$\$.*?\$\$", r"\$[^$\n]*\$", r"\]\([^)]*\)")


def words(path):
    text = contents.written(path)
    for pattern in NOT_PROSE:
        text = re.sub(pattern, " ", text, flags=re.MULTILINE | re.DOTALL)
    return sum(1 for word in text.split() if re.search(r"\w", word))


#: At most so many words for each list of the first page; notebooks are tutorials. The HTTP API, which repeats a part of
#: the OpenAPI document, has a number of its own.
SECTIONS = {
    "Home": 250,
    "Start": 2_500,
    "Tutorials": 2_300,
    "How-to: Python": 4_500,
    "How-to: service": 3_500,
    "How-to: research": 2_800,
    "Examples": 2_300,
    "Explanation": 3_300,
    "Reference": 2_500,
    "HTTP": 2_500,
    "Project": 3_500,
    "Appendix": 12_000,
}


def pages():
    """Return the pages of each section."""
    captions = re.findall(r":caption: (.*)", (DOCS / "index.md").read_text("utf-8"))
    listed = [[DOCS / f"{page}.md" for page in section] for section in contents.listed()]
    sections = {"Home": [DOCS / "index.md"], **dict(zip(captions, listed, strict=True))}
    sections["Tutorials"] += DOCS.glob("notebooks/*.ipynb")
    sections["Project"] += [ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md"]
    sections["HTTP"] = [page for page in sections["Reference"] if page.stem in {"http", "http-messages"}]
    sections["Reference"] = [page for page in sections["Reference"] if page not in sections["HTTP"]]
    return sections


def test_code_formulas_tables_and_addresses_do_not_count(tmp_path):
    page = tmp_path / "page.md"
    page.write_text(
        "Three [words](page.md) here\n```python\ncode = 1\n```\n$$x + y$$\n<!-- a -->\n| 1 |\n<!-- /a -->\n"
    )
    assert words(page) == 3


# A new page makes others shorter, and not the numbers larger.
@pytest.mark.parametrize("section", SECTIONS)
def test_no_section_has_more_to_read_than_this(section):
    counted = [(words(page), page.name) for page in pages()[section]]
    assert sum(number for number, _ in counted) <= SECTIONS[section], sorted(counted, reverse=True)


def test_every_section_has_a_number_and_readers_have_at_most_24000_words():
    sections = pages()
    assert sections.keys() == SECTIONS.keys()
    counted = {name: sum(map(words, each)) for name, each in sections.items() if name not in {"Project", "Appendix"}}
    assert sum(counted.values()) <= 24_000, counted


@pytest.mark.parametrize(("name", "most"), [("README.md", 600), ("CONTRIBUTING.md", 1_500), ("CHANGELOG.md", 600)])
def test_a_file_beside_the_pages_is_short(name, most):
    assert words(ROOT / name) <= most
