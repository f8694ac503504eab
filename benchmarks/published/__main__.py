"""Figures that others have published, beside ours in their settings: make published.

Each module beside this one has one source. The table is written into docs/published.md, so that a figure that changes
shows in the diff. Data come from packages of the Python index, which are downloaded once.
"""

from __future__ import annotations

import importlib
import sys
import time
from pathlib import Path

HERE = Path(__file__).parent
PAGE = HERE.parent.parent / "docs" / "published.md"
SOURCES = ("regret", "stopping_times", "prompts", "yaz")
BEGIN, END = "<!-- the table: make published -->\n", "<!-- the end of the table -->\n"

sys.path[:0] = [str(HERE), str(HERE.parent)]


def main() -> None:
    """Play all settings, print the table, and write it into the page."""
    lines = ["| source | setting | published | ours |", "|---|---|---|---|"]
    for name in SOURCES:
        began = time.monotonic()
        lines += [f"| {' | '.join(row)} |" for row in importlib.import_module(name).rows()]
        print(f"{name}: {time.monotonic() - began:.0f} s", file=sys.stderr, flush=True)
    print("\n".join(lines))
    before, _, rest = PAGE.read_text("utf-8").partition(BEGIN)
    PAGE.write_text(before + BEGIN + "\n" + "\n".join(lines) + "\n\n" + END + rest.partition(END)[2], "utf-8")


if __name__ == "__main__":
    main()
