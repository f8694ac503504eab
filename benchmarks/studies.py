"""What studies cost beside their rounds: a thousand tiny cells, and long ones on two cores."""

from __future__ import annotations

import functools
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

import threads
from measure import Row, best_within, print_table

if TYPE_CHECKING:
    from collections.abc import Iterator

#: One cell a seed. The first argument is how many rounds it has.
STUDY = """\
rounds = {rounds}
seed = {seeds}
checkpoints = 5

[learner]
name = "exp3.g++"

[graph]
name = "star"
n = 4

[world]
name = "bernoulli"
means = {{ gap = 0.2 }}
"""
TINY, LONG = 1_000, 8_000_000  # rounds: well below a millisecond, and some seconds


def rows() -> Iterator[Row]:
    """Measure a whole command, start and all, and then the running of cells alone."""
    run(1, 1, 2)  # compiles
    (tiny,) = best_within(5.0, lambda: run(1_000, TINY, 2)[0])
    yield Row("study of 1,000 tiny cells, two workers", tiny, at_most=10.0)
    two, one = best_within(5.0, functools.partial(played, workers=2), functools.partial(played, workers=1))
    yield Row("study of 6 long cells, two workers", two, "one worker", one, at_least=1.8, warning=threads.doubt(10))


def played(workers: int) -> float:
    """Return how long long cells took, as the command says it."""
    return run(6, LONG, workers)[1]


def run(cells: int, rounds: int, workers: int) -> tuple[float, float]:
    """Run a study; return the seconds of the command, and of the running of its cells."""
    with tempfile.TemporaryDirectory() as folder:
        study = Path(folder) / "study.toml"
        study.write_text(STUDY.format(rounds=rounds, seeds=list(range(cells))), encoding="utf-8")
        begun = time.perf_counter()
        command = [sys.executable, "-m", "sidelong", "run", study, "--out", Path(folder) / "r", "--workers", workers]
        done = subprocess.run([*map(str, command)], capture_output=True, text=True, check=True)
        taken = time.perf_counter() - begun
    return taken, float(re.findall(r"rounds in ([\d.]+) s", done.stdout)[0])


if __name__ == "__main__":
    print_table(rows())
