"""How many words people have written for each kind of reader, without code, formulas and generated tables."""

import json
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
    text = path.read_text("utf-8")
    if path.suffix == ".ipynb":
        cells = json.loads(text)["cells"]
        text = "\n".join("".join(cell["source"]) for cell in cells if cell["cell_type"] == "markdown")
    for pattern in NOT_PROSE:
        text = re.sub(pattern, " ", text, flags=re.MULTILINE | re.DOTALL)
    return sum(1 for word in text.split() if re.search(r"\w", word))


def pages():
    """Return the pages for each kind of reader."""
    captions = re.findall(r":caption: (.*)", (DOCS / "index.md").read_text("utf-8"))
    listed = [[DOCS / f"{page}.md" for page in section] for section in contents.listed()]
    sections = dict(zip(captions, listed, strict=True))
    appendix = sections.pop("Appendix")
    project = [*sections.pop("Project"), ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md"]
    users = [DOCS / "index.md", *(page for section in sections.values() for page in section)]
    return {"users": [*users, *DOCS.glob("notebooks/*.ipynb")], "project": project, "appendix": appendix}


def test_code_formulas_tables_and_addresses_do_not_count(tmp_path):
    page = tmp_path / "page.md"
    page.write_text(
        "Three [words](page.md) here\n```python\ncode = 1\n```\n$$x + y$$\n<!-- a -->\n| 1 |\n<!-- /a -->\n"
    )
    assert words(page) == 3


# Make room for a new page by shortening others, and not by a larger number.
@pytest.mark.parametrize(("reader", "most"), [("users", 25_500), ("project", 3_500), ("appendix", 12_500)])
def test_there_is_not_more_to_read_than_this(reader, most):
    counted = [(words(page), page.name) for page in pages()[reader]]
    assert sum(number for number, _ in counted) <= most, sorted(counted, reverse=True)
