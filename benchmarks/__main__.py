"""Run all benchmarks but the long one (cap.py): `python benchmarks`."""

from __future__ import annotations

import argparse
import itertools
import re
import sys
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

sys.path.append(str(Path(__file__).parents[1] / "docs" / "_ext"))

import numbers_of_pages as numbers

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
    parser.add_argument(
        "--write",
        nargs="?",
        const=PAGE,
        type=Path,
        metavar="PAGE",
        help=f"put the table into docs/{PAGE.name}, or PAGE",
    )
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
        text = write.read_text(encoding="utf-8")
        text = _between(text, "shown", f"{place}.\n\n{shown(table)}")
        write.write_text(_between(text, "measured", f"\n{table}\n"), encoding="utf-8")
        if write == PAGE:
            numbers.record(**repeated(table))


def shown(table: str) -> str:
    """Return the rows of a table that a reader sees first."""
    head, rule, *rows = table.splitlines()
    cells = {line: [cell.strip() for cell in line.split("|")] for line in rows}
    first = [
        next((line for line in rows if cells[line][1] == what and other in {"", cells[line][3]}), "")
        for what, other in SHOWN
    ]
    return "\n".join([head, rule, *filter(None, first)]) + "\n"


def repeated(table: str) -> dict[str, str]:
    """Return what pages say about rows of a table: one number, wherever it stands."""
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in table.splitlines()[2:]]
    ratio = {(row[0], row[2]): float(row[4].removesuffix(" x").replace(",", "")) for row in rows if row[4]}
    [(keys, a_round)] = [row[:2] for row in rows if re.fullmatch("100,000 keys, .* each, a round", row[0])]
    found = {"round_of_100_000_keys": a_round, "memory_of_a_key": keys.split(",")[2].removesuffix(" each").strip()}
    rivers = sorted(1 / each for (what, other), each in ratio.items() if what[:10] == "ask + tell" and "river" in other)
    found["share_of_the_time_of_river"] = (
        " to ".join(f"{each:.2f}" for each in (rivers[0], rivers[-1])) if rivers else "?"
    )
    for name, what in (
        ("vowpal_wabbit_with_features", "ask + tell, 16 features, nested, K = 10"),
        ("vowpal_wabbit", "simulate, cliques of 5, K = 10"),
    ):
        times = ratio.get((what, "Vowpal Wabbit graph_feedback"))
        found[name] = "? times" if times is None else f"{float(f'{times:.2g}'):,.0f} times"
    return found


def _between(text: str, name: str, inside: str) -> str:
    return re.sub(rf"(?<=<!-- {name} -->\n).*?(?=<!-- /{name} -->)", lambda _: inside, text, flags=re.DOTALL)


if __name__ == "__main__":
    main()
