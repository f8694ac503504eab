"""Figures that others have published, beside ours in their settings: make published.

Each module beside this one has one source: `play` measures, `rows` says it for the table of docs/published.md, and
`brief` for that of README.md, wins and losses alike.
What was measured is kept in measured.json, so that a figure that changes shows in the diff, and so that
``python benchmarks/published prompts`` plays one source and leaves the others as they are. Data come from packages of
the Python index, which are downloaded once.
"""

from __future__ import annotations

import importlib
import json
import sys
import time
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
ROOT = HERE.parent.parent
MEASURED = HERE / "measured.json"
SOURCES = ("regret", "stopping_times", "prompts", "yaz")
BRIEF = ("regret", "prompts", "yaz")
BEGIN, END = "<!-- the table: make published -->\n", "<!-- the end of the table -->\n"

sys.path[:0] = [str(HERE), str(HERE.parent)]


def rounded(found: Any) -> Any:
    """Return what was measured with at most four decimals."""
    if isinstance(found, dict):
        return {name: rounded(each) for name, each in found.items()}
    if isinstance(found, list):
        return [rounded(each) for each in found]
    return round(found, 4) if isinstance(found, float) else found


def table(measured: dict[str, Any]) -> str:
    """Return the table of docs/published.md."""
    rows = [row for name in SOURCES for row in importlib.import_module(name).rows(measured[name])]
    lines = [
        "| source | setting | published | ours |",
        "|---|---|---|---|",
        *(f"| {' | '.join(row)} |" for row in rows),
    ]
    return "\n".join(lines)


def brief(measured: dict[str, Any]) -> str:
    """Return the table of README.md."""
    rows = [row for name in BRIEF for row in importlib.import_module(name).brief(measured[name])]
    return "\n".join(["| | published | sidelong |", "|---|---|---|", *(f"| {' | '.join(row)} |" for row in rows)])


def write(page: Path, lines: str) -> None:
    """Replace the table of a page."""
    before, _, rest = page.read_text("utf-8").partition(BEGIN)
    page.write_text(before + BEGIN + "\n" + lines + "\n\n" + END + rest.partition(END)[2], "utf-8")


def main(names: list[str]) -> None:
    """Play the settings of some sources, or of all, and write the tables into the page and the README."""
    measured = json.loads(MEASURED.read_text("utf-8"))
    for name in names or SOURCES:
        began = time.monotonic()
        measured[name] = rounded(importlib.import_module(name).play())
        print(f"{name}: {time.monotonic() - began:.0f} s", file=sys.stderr, flush=True)
    MEASURED.write_text(json.dumps(measured, indent=1, ensure_ascii=False) + "\n", "utf-8")
    print(table(measured))
    write(ROOT / "docs" / "published.md", table(measured))
    write(ROOT / "README.md", brief(measured))


if __name__ == "__main__":
    main(sys.argv[1:])
