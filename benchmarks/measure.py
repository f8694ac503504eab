"""How the benchmarks measure, and the one table that they print."""

from __future__ import annotations

import gc
import itertools
import os
import platform
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

os.environ["SIDELONG_BACKGROUND"] = "0"  # machine code is measured, and nothing compiles aside meanwhile

__all__ = ["Row", "best_within", "machine", "means", "print_table", "seconds"]


@dataclass(frozen=True)
class Row:
    """One line of the table. All times are in seconds."""

    what: str
    ours: float
    rival: str = ""
    theirs: float | None = None  #: None if there was nothing to measure
    at_least: float | None = None  #: the goal for theirs / ours
    at_most: float | None = None  #: the goal for ours
    warning: str = ""

    def cells(self) -> tuple[str, ...]:
        """Return the texts of the columns."""
        theirs, ratio = ("", "") if self.theirs is None else (_time(self.theirs), f"{_number(self.ratio)} x")
        return self.what, _time(self.ours), self.rival, theirs, ratio, self._verdict()

    @property
    def ratio(self) -> float:
        """How many times as long the other takes."""
        return float("nan") if self.theirs is None else self.theirs / self.ours

    def _verdict(self) -> str:
        goals = []
        if self.at_least is not None and self.theirs is not None:
            goals.append(f">= {round(self.at_least, 2):g} x" + ": missed" * (self.ratio < self.at_least))
        if self.at_most is not None:
            goals.append(f"<= {_time(self.at_most)}" + ": missed" * (self.ours > self.at_most))
        return "; ".join([*goals, *([f"WARNING: {self.warning}"] if self.warning else [])])


def _time(seconds: float) -> str:
    unit, factor = next((unit, 10.0**power) for unit, power in _UNITS if seconds * 10**power >= 1 or unit == "ns")
    return f"{_number(seconds * factor)} {unit}"


_UNITS = (("s", 0), ("ms", 3), ("us", 6), ("ns", 9))


def _number(value: float) -> str:
    """Write three digits, since more would be noise."""
    return f"{value:,.0f}" if value >= 99.95 else f"{value:.3g}"


_TITLES = ("what", "sidelong", "compared with", "takes", "ratio", "goal")
_WIDTHS = (39, 8, 30, 8, 11, 17)


def print_table(rows: Iterable[Row]) -> str:
    """Print each row as soon as it is measured, in Markdown, and return the whole table."""
    table = ""
    head = (_TITLES, tuple("-" * width for width in _WIDTHS))
    for cells in itertools.chain(head, (row.cells() for row in rows)):
        line = "| " + " | ".join(cell.ljust(width) for cell, width in zip(cells, _WIDTHS, strict=True)) + " |"
        print(line, flush=True)
        table += line + "\n"
    return table


def seconds(work: Callable[[], object]) -> float:
    """Return the processor time of one call, in which the waiting for other programs does not count."""
    gc.disable()
    begun = time.process_time()
    work()
    taken = time.process_time() - begun
    gc.enable()
    return taken


def best_within(budget: float, *measures: Callable[[], float]) -> list[float]:
    """Return the least time of each, over as many turns as fit into `budget` seconds, and at least two.

    All are measured in each turn, so that a slow moment of the machine falls on all.
    """
    turns: list[list[float]] = []
    begun = time.perf_counter()
    while len(turns) < 2 or time.perf_counter() - begun < budget:
        turns.append([measure() for measure in measures])
    return [min(times) for times in zip(*turns, strict=True)]


def means(n_arms: int, gap: float = 0.2) -> list[float]:
    """Return the mean losses of the world that all play in: the arm in the middle is the best, by `gap`."""
    return [0.5 + (-gap if arm == n_arms // 2 else gap) / 2 for arm in range(n_arms)]


def machine() -> str:
    """Tell where the numbers come from, and how busy that machine is with other things."""
    info = Path("/proc/cpuinfo")
    lines = info.read_text(encoding="utf-8").splitlines() if info.exists() else []
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    processor = f"{len(names)} cores of {names[0]}" if names else platform.machine()
    load = f"; load {os.getloadavg()[0]:.1f} before the run" if hasattr(os, "getloadavg") else ""
    return f"{processor}; {platform.system()}, Python {platform.python_version()}{load}"
