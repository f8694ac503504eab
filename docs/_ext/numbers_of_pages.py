"""Measured numbers that stand on several pages: each has a name in docs/numbers.json, which scripts write.

A page has the number between two comments, `<!-- number: NAME -->28 %<!-- /number -->`, and a whole table between
`<!-- NAME -->` and `<!-- /NAME -->`. A script that has measured calls `record` and `write_table`. After another edit of
the file or of a page, `python docs/_ext/numbers_of_pages.py` writes the numbers into all pages again.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

DOCS = Path(__file__).parent.parent
FILE = DOCS / "numbers.json"
MARKED = re.compile(r"(<!-- number: ([\w ,.+-]+) -->)(.*?)(<!-- /number -->)")


def pages() -> Iterator[Path]:
    """Return all pages that may have numbers."""
    yield DOCS.parent / "README.md"
    for folder in (DOCS, DOCS / "examples"):
        yield from sorted(folder.glob("*.md"))
    yield from sorted(DOCS.glob("notebooks/*.ipynb"))


def known() -> dict[str, str]:
    """Return each number as pages show it, by name."""
    return dict(json.loads(FILE.read_text("utf-8")))


def record(**found: str) -> None:
    """Keep numbers that were measured, and write them into the pages."""
    kept = known() | found
    FILE.write_text(json.dumps(kept, indent=1, ensure_ascii=False, sort_keys=True) + "\n", "utf-8")
    write(kept)


def write(numbers: dict[str, str]) -> None:
    """Write each number into the pages that show it."""
    for page in pages():
        text = page.read_text("utf-8")
        made = MARKED.sub(lambda mark: f"{mark[1]}{numbers[mark[2]]}{mark[4]}", text)
        if made != text:
            page.write_text(made, "utf-8")


def write_table(page: str, name: str, lines: str) -> None:
    """Replace a table of a page."""
    path = DOCS / page
    before, mark, rest = path.read_text("utf-8").partition(f"<!-- {name} -->\n")
    _, end, after = rest.partition(f"<!-- /{name} -->")
    if not end:
        raise ValueError(f"{page} has no table between <!-- {name} --> and <!-- /{name} -->.")
    path.write_text(f"{before}{mark}\n{lines.strip()}\n\n{end}{after}", "utf-8")


if __name__ == "__main__":
    write(known())
