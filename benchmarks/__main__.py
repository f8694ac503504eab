"""Run all benchmarks but the long one (cap.py): `python benchmarks`."""

from __future__ import annotations

import argparse
import itertools
import re
from pathlib import Path

import ask_tell
import contexts
import graph_numbers
import growth
import loop
import start
import threads
from measure import machine, print_table

import service
import studies

PAGE = Path(__file__).parents[1] / "docs" / "benchmarks.md"


def main() -> None:
    """Print one table, and keep it if told so."""
    parser = argparse.ArgumentParser(prog="python benchmarks", description="Measure sidelong side by side with others.")
    parser.add_argument("--write", action="store_true", help=f"also put the table into docs/{PAGE.name}")
    write = parser.parse_args().write
    place = machine()
    print(place)
    table = print_table(
        itertools.chain.from_iterable(
            part.rows() for part in (loop, threads, start, studies, ask_tell, contexts, growth, graph_numbers, service)
        )
    )
    if write:
        text = PAGE.read_text(encoding="utf-8")
        measured = f"{place}.\n\n{table}"
        page = re.sub(r"(?<=<!-- measured -->\n).*?(?=<!-- /measured -->)", lambda _: measured, text, flags=re.DOTALL)
        PAGE.write_text(page, encoding="utf-8")


if __name__ == "__main__":
    main()
