"""`sidelong demo`: the main jobs, in small. A shop orders from its sales, and learners are compared in both worlds."""

from __future__ import annotations

import math
import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich import box
from rich.console import Console
from rich.table import Table

from sidelong.cli.playing import play, stop_unless_done
from sidelong.cli.refusal import refuse, require

if TYPE_CHECKING:
    from sidelong.studies.report.reading import StudyReading

EXAMPLES = ("sidelong demo --rounds 10000 --runs 4",)
_DAYS, _MISSING = 120, 3


def demo(
    *,
    rounds: Annotated[int, typer.Option(min=100, help="How many rounds to play.")] = 100_000,
    runs: Annotated[int, typer.Option(min=2, help="How many runs. A test of who is better needs at least 13.")] = 13,
    seed: Annotated[int, typer.Option(min=0, max=2**64 - 1, help="The same seed gives the same table.")] = 0,
    every: Annotated[bool, typer.Option("--all", help="Let all learners play, not only the main ones.")] = False,
    out: Annotated[
        Path | None, typer.Option(help="The folder for results and report.", show_default="results/demo")
    ] = None,
) -> None:
    """Order for a made-up shop from its sales; then compare learners in two worlds on four graphs, with a report.

    You can stop it and start it again: what is done already is not played again. If you change options, the name of the
    folder says which.
    """
    require("demo", "pydantic", "pyarrow", "matplotlib")
    from sidelong.errors import StudyError  # noqa: PLC0415
    from sidelong.studies import reference, report, spec  # noqa: PLC0415  # the compiler takes long to load
    from sidelong.studies.report.reading import read  # noqa: PLC0415

    folder = out or Path("results") / folder_name(rounds, runs, seed, every=every)
    _shop(seed)
    changes: dict[str, Any] = {"rounds": rounds, "runs": runs, "seed": seed}
    if every:
        changes["learner"] = [{"name": "tsallis-inf", "estimator": "rv"}, {"name": "all"}]
    try:
        study = spec.load(reference.find("demo"), **changes)
        stop_unless_done(play(study, folder))
        _print(read(folder), rounds, runs, {str(cell.spec["learner"]["name"]) for cell, _ in study.unplayable})
        page, *_ = report.write(folder, folder / "report.html", files=False)
    except (StudyError, OSError) as error:
        refuse("demo", str(error))
    print(f"report  {page}")  # noqa: T201


def _shop(seed: int) -> None:
    """Print what a shop pays that sees its sales alone, with sl.Newsvendor and with rules."""
    import numpy as np  # noqa: PLC0415

    from sidelong.agent.newsvendor import Newsvendor  # noqa: PLC0415  # takes a while to load

    level, week = np.array([40, 120, 5]), np.array([1.0, 0.9, 0.9, 1.0, 1.2, 1.6, 0.6])
    wanted = np.random.default_rng(seed).poisson(week[np.arange(_DAYS) % 7][:, None] * level)
    shop, products = Newsvendor(holding=1, shortage=_MISSING, seed=seed), ["bread", "rolls", "cake"]
    first = np.array([50, 100, 10])
    ordered, by_rule, sales = np.empty_like(wanted), np.empty_like(wanted), np.empty_like(wanted)
    for day, demand in enumerate(wanted):
        ordered[day] = shop.order(day, products, first=first.tolist())
        shop.sold(day, np.minimum(ordered[day], demand).tolist())
        past = sales[max(0, day - 28) : day]
        by_rule[day] = np.ceil(np.quantile(past, _MISSING / (1 + _MISSING), axis=0)) if day else first
        sales[day] = np.minimum(by_rule[day], demand)
    fixed = np.array([min(range(400), key=lambda q: _cost(q, each)) for each in wanted.T])
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 0))
    table.add_column("orders of", min_width=58)
    table.add_column("cost", justify="right")
    for name, orders in (
        ("sl.Newsvendor", ordered),
        ("a rule: the 75 % quantile of the sales of 28 days", by_rule),
        ("the best fixed order of each product, known afterwards", fixed),
    ):
        table.add_row(name, f"{_cost(orders, wanted):,.0f}")
    console = Console(highlight=False)
    console.print(
        f"For a shop: three products, {_DAYS} days. It sees sales, and not demand.\n"
        f"A unit left over costs 1, and a missing one {_MISSING}."
    )
    console.print(table)
    tomorrow = zip(products, shop.order(_DAYS, products).tolist(), strict=True)
    console.print(f"Tomorrow: {', '.join(f'{number} {name}' for name, number in tomorrow)}.\n\nFor a paper:")


def _cost(ordered: Any, wanted: Any) -> float:  # numbers or arrays
    over = ordered - wanted
    return float((over * (over > 0) - _MISSING * over * (over < 0)).sum())


def folder_name(rounds: int, runs: int, seed: int, *, every: bool) -> str:
    """Return a name for a folder that no other options have."""
    changed = [("", rounds, 100_000), ("x", runs, 13), ("seed", seed, 0)]
    parts = [f"{word}{value}" for word, value, default in changed if value != default]
    return "-".join(["demo", *["all"] * every, *parts])


def _print(reading: StudyReading, rounds: int, runs: int, unplayable: set[str]) -> None:
    from sidelong.studies.report import headlines  # noqa: PLC0415  # it loads Matplotlib

    console = Console(highlight=False)
    console.print(f"Regret after {rounds:,} rounds, mean of {runs} runs, and its ratio to the best\n")
    for world, title in {"bernoulli": "In a stochastic world", "constrained": "Against an adversary"}.items():
        console.print(_table(reading, title, world))
    console.print(f"{headlines.contest(reading.instances)}\n")
    nowhere = sorted(unplayable - {str(curve.spec["learner"]["name"]) for curve in reading.curves})
    if nowhere:
        console.print(f"{', '.join(nowhere)}: cannot play on any of these graphs.")
    console.print(_legend())


def _table(reading: StudyReading, title: str, world: str) -> Table:
    """Lay out the instances of one world: 80 columns are enough."""
    board = reading.board
    specs = [next(iter(each.curves.values())).spec for each in reading.instances]
    columns = [column for column, spec in enumerate(specs) if spec["world"]["name"] == world]
    names = {reading.label("learner", curve): curve.learner for curve in reading.curves}
    table = Table(
        title=title, title_justify="left", title_style="bold", box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 0)
    )
    table.add_column("learner", no_wrap=True, min_width=19)
    table.add_column("worst", justify="right", no_wrap=True)
    for column in columns:
        table.add_column(specs[column]["graph"]["name"], justify="right", no_wrap=True, min_width=12)
    for row in board.standing:
        plays_all = not any(math.isnan(regret) for regret in board.regret[row])
        cells = [
            "-" if math.isnan(regret) else f"{regret:,.0f} {_painted(ratio)}"
            for regret, ratio in zip(board.regret[row, columns], board.ratio[row, columns], strict=True)
        ]
        # tsallis-inf(estimator=rv) is tsallis-inf rv
        name = re.sub(r"\(\w+=(.*)\)", r" \1", names[board.contestants[row]])
        table.add_row(name, _painted(board.worst[row]) if plays_all else "-", *cells)
    return table


def _painted(ratio: float) -> str:
    colour = "green" if ratio <= 3 else "yellow" if ratio <= 10 else "red"
    return f"[{colour}]{ratio:>5{'.1f' if ratio < 999 else ',.0f'}}[/]"


def _legend() -> Table:
    table = Table.grid(padding=(0, 2, 0, 0))
    for word, meaning in _LEGEND.items():
        table.add_row(f"[bold]{word}[/]", meaning)
    return table


_LEGEND = {
    "regret": "what was lost beyond the best arm. The ratio is to the smallest in the column, with 10, the price of "
    "playing each arm once, added to both.",
    "worst": "the largest ratio of the row in both tables: best first.",
    "wins": "two learners are compared on every graph, run by run, by Wilcoxon's signed rank test with Holm's "
    "correction, p < 0.01. What is neither won nor lost may be chance.",
    "-": "the learner cannot play on this graph. It has no worst ratio then, and comes last.",
    "graphs": "self_loops: a play reveals its own loss, as in a bandit. nested: those of all smaller arms. star: arm 0 "
    "reveals all, and each other arm itself and arm 0. cliques: those of its five.",
    "worlds": "arm 3 is best by 0.2: in the stochastic one on average; against the adversary in every round, while the "
    "level of all losses jumps between low and high, in phases that grow.",
    "next": "a shop: docs/newsvendor.md; `sidelong learners` for what each is; `sidelong demo --all`.",
}
