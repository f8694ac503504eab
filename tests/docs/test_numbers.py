"""Measured numbers that stand on several pages come from docs/numbers.json, and are typed on none of them."""

import re
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "docs" / "_ext"))

import contents  # noqa: E402
import numbers_of_pages as numbers  # noqa: E402

NUMBERS, PAGES = numbers.known(), list(numbers.pages())
#: What is not typed by a person: numbers that are marked, tables that scripts write, and code with its output.
GENERATED = (numbers.MARKED.pattern, r"<!-- ([\w-]+) -->\n.*?<!-- /\1 -->", r"<!-- the table.*?the end", r"^```.*?^```")
#: By page, numbers that mean something else there.
OTHERS = {"threshold-cascade.md": {"nightly-training saved"}}  # a margin of a test


def typed(page):
    """Return what a person has typed on a page."""
    text = contents.written(page)
    for pattern in GENERATED:
        text = re.sub(pattern, " ", text, flags=re.MULTILINE | re.DOTALL)
    return text


def literal(number):
    """Return a pattern for a number that is typed, with any kind of space before its unit."""
    return rf"(?<![\w.,]){re.escape(number)}(?!\w|[.,]\d)".replace(r"\ ", r"[\s\u00a0]?")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_a_page_shows_the_numbers_of_the_file(page):
    for _, name, shown, _ in numbers.MARKED.findall(page.read_text("utf-8")):
        assert shown == NUMBERS[name], f"{name}: run python docs/_ext/numbers_of_pages.py"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_no_number_of_the_file_is_typed_on_a_page(page):
    text = typed(page)
    found = {name for name, number in NUMBERS.items() if re.search(literal(number), text)}
    assert found == OTHERS.get(page.name, set())


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_no_line_begins_with_a_marked_number(page):
    """Markdown takes such a line for HTML, which ends the paragraph and shows `code` with its ticks."""
    assert not re.search(r"^[ >*+-]*(?:\d+\. +)?<!-- number", page.read_text("utf-8"), re.MULTILINE)


def test_each_number_stands_on_a_page():
    shown = {name for page in PAGES for _, name, _, _ in numbers.MARKED.findall(page.read_text("utf-8"))}
    assert shown == set(NUMBERS)


def test_a_typed_number_is_found_and_a_generated_one_is_not(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("It takes 276 ms.\n")
    assert re.search(literal("276 ms"), typed(page))
    page.write_text(
        "It takes <!-- number: a -->276 ms<!-- /number -->, not 1276 ms.\n<!-- t -->\n276 ms\n<!-- /t -->\n"
    )
    assert not re.search(literal("276 ms"), typed(page))


def test_a_number_is_written_into_pages_and_a_table_into_one(tmp_path, monkeypatch):
    for folder in ("examples", "notebooks"):
        (tmp_path / "docs" / folder).mkdir(parents=True)
    monkeypatch.setattr(numbers, "DOCS", tmp_path / "docs")
    monkeypatch.setattr(numbers, "FILE", tmp_path / "docs" / "numbers.json")
    numbers.FILE.write_text('{"a": "1 s", "b": "2 s"}')
    (tmp_path / "README.md").write_text("<!-- number: b -->2 s<!-- /number -->")
    page = tmp_path / "docs" / "page.md"
    page.write_text("In <!-- number: a -->1 s<!-- /number -->.\n<!-- t -->\nold\n<!-- /t -->\n")
    numbers.record(a="3 s")
    numbers.write_table("page.md", "t", "| new |\n")
    assert page.read_text() == "In <!-- number: a -->3 s<!-- /number -->.\n<!-- t -->\n\n| new |\n\n<!-- /t -->\n"
    assert numbers.known() == {"a": "3 s", "b": "2 s"}
    with pytest.raises(ValueError, match=r"page\.md has no table between <!-- u -->"):
        numbers.write_table("page.md", "u", "")
