"""What a new process waits for: the import, its first decision and its first simulation, with and without machine code.

All goes by the clock, and decisions from the start of Python on, so that an idle machine is needed. The process that
compiles aside for them has low priority. It is left out where all learners are tried, one after the other.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from typing import TYPE_CHECKING

from measure import Row, print_table

import sidelong as sl

if TYPE_CHECKING:
    from collections.abc import Iterator

ARMS = 24
REPEATS = 2
SIMULATION = """
import sys, time
begun = time.perf_counter()
import sidelong as sl
imported = time.perf_counter()
assert "numba" not in sys.modules
sl.simulate("exp3.g++", sl.graphs.nested(10), sl.losses.bernoulli([0.4] + [0.6] * 9), rounds=1000)
print(imported - begun, time.perf_counter() - imported)
"""
DECISIONS = """
import sys, time
import sidelong as sl
from sidelong import _jit
from sidelong.learners import catalogue
from sidelong.learners.interface import Need

begun, name, n_arms, aside = float(sys.argv[1]), sys.argv[2], int(sys.argv[3]), sys.argv[4] == "aside"
if not aside:
    _jit.ask_for = lambda _: None
needs = catalogue.find(name).needs
graph = sl.graphs.nested(n_arms)
if {Need.UNDIRECTED, Need.FULL_INFORMATION} & needs:
    graph = sl.graphs.complete(n_arms)
agent = sl.Agent(name, graph, **{"horizon": 1000} if Need.HORIZON in needs else {})

for t in range(1, 101):
    decision = agent.ask()
    if t == 1:
        first = time.monotonic() - begun
    agent.tell(decision, dict.fromkeys(decision.reveals.tolist(), 1.0))
print(first, time.monotonic() - begun)
"""

FAMILY = """
import sys, time
import sidelong as sl

begun, n_arms, n_keys = float(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
family = sl.Family("glance", sl.graphs.nested(n_arms))
plan = family.ask(range(n_keys))
asked = time.monotonic() - begun
family.tell(plan, [1.0] * plan.reveals.size)
print(asked, time.monotonic() - begun)
"""
KEYS = 1_000


def rows() -> Iterator[Row]:
    """Measure in turn without a cache, and with the one that this left."""
    yield from decisions()
    times: list[list[list[float]]] = []
    for _ in range(REPEATS):
        with tempfile.TemporaryDirectory() as folder:
            times.append([new_process(folder, SIMULATION) for _ in range(3)])
    cold = min(first[1] for first, *_ in times)
    warm = min(each[1] for _, *later in times for each in later)
    yield Row("import sidelong", min(each[0] for turn in times for each in turn), at_most=0.3)
    yield Row("first simulate of a process", cold, "(nothing compiled yet)", at_most=8)
    yield Row("the same, compiled before", warm, "nothing compiled yet", cold, at_most=1)


def decisions() -> Iterator[Row]:
    """Measure the first decision and the hundredth, of one learner and of the slowest of all."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:  # somebody compiles there for a while
        cold = new_process(folder, DECISIONS, "exp3.g++", str(ARMS), "aside")
    each: list[tuple[float, float, str]] = []
    with tempfile.TemporaryDirectory() as folder:
        for name in sl.learners.names():
            turns = [new_process(folder, DECISIONS, name, str(ARMS), "alone") for _ in range(REPEATS)]
            each.append((*map(min, zip(*turns, strict=True)), name))
    first, _, who = max(each)
    last, whose = max((hundredth, name) for _, hundredth, name in each)
    with tempfile.TemporaryDirectory() as folder:
        new_process(folder, DECISIONS, "exp3.g++", str(ARMS), "alone", SIDELONG_BACKGROUND="0")
        warm = new_process(folder, DECISIONS, "exp3.g++", str(ARMS), "alone")
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        batch = new_process(folder, FAMILY, str(ARMS), str(KEYS))
    yield Row(f"first decision of a process, K = {ARMS}", cold[0], "(nothing compiled yet)", at_most=0.5)
    yield Row(f"first batch of a family, {KEYS:,} keys", batch[0], "(nothing compiled yet)", at_most=1)
    yield Row("the same, asked and told", batch[1], "(nothing compiled yet)")
    yield Row(f"first decision of {who}, the slowest", first, "(nothing compiled yet)", at_most=1)
    yield Row("hundredth decision", cold[1], "(nothing compiled yet)", at_most=2)
    yield Row(f"hundredth decision of {whose}", last, "(nothing compiled yet)", at_most=2)
    yield Row("first decision, compiled before", warm[0], "nothing compiled yet", cold[0], at_most=0.6)


def new_process(cache: str, program: str, *arguments: str, **environment: str) -> list[float]:
    """Return the seconds that a program prints."""
    known = {**os.environ, "SIDELONG_CACHE_DIR": cache, "SIDELONG_BACKGROUND": "1", **environment}
    command = [sys.executable, "-c", program, str(time.monotonic()), *arguments]
    child = subprocess.run(command, env=known, capture_output=True, text=True, check=True)
    return [float(each) for each in child.stdout.split()]


if __name__ == "__main__":
    print_table(rows())
