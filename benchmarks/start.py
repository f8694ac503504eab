"""What a new process waits for: the import, and its first simulation, with and without machine code on disk."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from typing import TYPE_CHECKING

from measure import Row, print_table

if TYPE_CHECKING:
    from collections.abc import Iterator

REPEATS = 2
CHILD = """
import sys, time
begun = time.perf_counter()
import sidelong as sl
imported = time.perf_counter()
assert "numba" not in sys.modules
sl.simulate("exp3.g++", sl.graphs.nested(10), sl.losses.bernoulli([0.4] + [0.6] * 9), rounds=1000)
print(imported - begun, time.perf_counter() - imported)
"""


def rows() -> Iterator[Row]:
    """Measure the first simulation twice in turn: without a cache, and with the one that this left."""
    times: list[list[tuple[float, float]]] = []
    for _ in range(REPEATS):
        with tempfile.TemporaryDirectory() as folder:
            times.append([new_process(folder) for _ in range(3)])
    cold = min(first[1] for first, *_ in times)
    warm = min(each[1] for _, *later in times for each in later)
    yield Row("import sidelong", min(each[0] for turn in times for each in turn), at_most=0.3)
    yield Row("first simulate of a process", cold, "(nothing compiled yet)", at_most=8)
    yield Row("the same, compiled before", warm, "nothing compiled yet", cold, at_most=1)


def new_process(cache: str) -> tuple[float, float]:
    """Return the seconds of the import and of the first simulation."""
    environment = {**os.environ, "SIDELONG_CACHE_DIR": cache}
    child = subprocess.run([sys.executable, "-c", CHILD], env=environment, capture_output=True, text=True, check=True)
    importing, simulating = map(float, child.stdout.split())
    return importing, simulating


if __name__ == "__main__":
    print_table(rows())
