"""The lists of pages on the first page: a pattern may match nothing yet, and no page is left out."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sphinx.application import Sphinx

DOCS = Path(__file__).parent.parent
_LIST = re.compile(r"^(```\{toctree\}\n)(.*?)^(```)", re.MULTILINE | re.DOTALL)


def listed() -> list[list[str]]:
    """Return the pages of each list, in order. An entry ``...`` is all pages that no other entry names."""
    lists = [match[2].splitlines() for match in _LIST.finditer((DOCS / "index.md").read_text("utf-8"))]
    entries = [[line.strip() for line in lines if line.strip() and not line.startswith(":")] for lines in lists]
    seen = {"index"}
    found = [[name for entry in each for name in _matching(entry, seen)] for each in entries]
    rest = sorted(path.stem for path in DOCS.glob("*.md") if path.stem not in seen)
    return [[*pages, *(rest if "..." in each else [])] for pages, each in zip(found, entries, strict=True)]


def _matching(entry: str, seen: set[str]) -> list[str]:
    paths = sorted(DOCS.glob(f"{entry}.md")) if entry != "..." else []
    names = [path.relative_to(DOCS).with_suffix("").as_posix() for path in paths]
    new = [name for name in names if name not in seen]
    seen.update(new)
    return new


def _read(_app: Sphinx, page: str, source: list[str]) -> None:
    if page != "index":
        return
    lists = iter(listed())

    def write(match: re.Match[str]) -> str:
        names = next(lists)
        options = [line for line in match[2].splitlines() if line.startswith(":")]
        return "\n".join([match[1].rstrip(), *options, *names, match[3]]) if names else ""

    source[0] = _LIST.sub(write, source[0])


def setup(app: Sphinx) -> dict[str, Any]:
    """Register with Sphinx."""
    app.connect("source-read", _read)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def written(page: Path) -> str:
    """Return the text of a page, and of a notebook that of its Markdown cells."""
    text = page.read_text("utf-8")
    if page.suffix != ".ipynb":
        return text
    cells = json.loads(text)["cells"]
    return "\n".join("".join(cell["source"]) for cell in cells if cell["cell_type"] == "markdown")
