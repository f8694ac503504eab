"""Run all benchmarks but the long one (cap.py): `python benchmarks`."""

from __future__ import annotations

import argparse
import itertools
import re
from pathlib import Path

import ask_tell
import contexts
import families
import graph_numbers
import growth
import loop
import start
import threads
from measure import machine, print_table

import service
import studies

#: What the page shows before the whole table is unfolded: the task, and whom it is compared with.
SHOWN = (
    ("simulate, cliques of 5, K = 10", "C, -O3 -ffast-math"),
    ("simulate, nested, K = 1,000", "C, -O3 -ffast-math"),
    ("simulate, cliques of 5, K = 10", "NumPy, whole arrays"),
    ("simulate, self-loops, K = 10", "river Exp3"),
    ("simulate, self-loops, K = 10", "MABWiser UCB1"),
    ("simulate, cliques of 5, K = 10", "Vowpal Wabbit graph_feedback"),
    ("ask + tell, cliques of 5, K = 10", "river Exp3"),
    ("first simulate of a process", ""),
    ("independence of G(120, 0.1)", "networkx"),
    ("service, one client, decide + tell", "Optuna ask + tell on SQLite"),
)
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
            part.rows()
            for part in (loop, threads, start, studies, ask_tell, families, contexts, growth, graph_numbers, service)
        )
    )
    if write:
        text = PAGE.read_text(encoding="utf-8")
        text = _between(text, "shown", f"{place}.\n\n{shown(table)}")
        PAGE.write_text(_between(text, "measured", f"\n{table}\n"), encoding="utf-8")


def shown(table: str) -> str:
    """Return the rows of a table that a reader sees first."""
    head, rule, *rows = table.splitlines()
    cells = {line: [cell.strip() for cell in line.split("|")] for line in rows}
    first = [
        next((line for line in rows if cells[line][1] == what and other in {"", cells[line][3]}), "")
        for what, other in SHOWN
    ]
    return "\n".join([head, rule, *filter(None, first)]) + "\n"


def _between(text: str, name: str, inside: str) -> str:
    return re.sub(rf"(?<=<!-- {name} -->\n).*?(?=<!-- /{name} -->)", lambda _: inside, text, flags=re.DOTALL)


if __name__ == "__main__":
    main()
