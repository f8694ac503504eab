"""A small study, how tests run it, and what it must give."""

import subprocess
import sys

import pyarrow.parquet as pq

STUDY = """\
rounds = [200, 300]
runs = 2
seed = {seeds}
checkpoints = 5

[learner]
name = "uniform"

[[graph]]
name = ["nested", "star"]
n = 4

[[world]]
name = "bernoulli"
means = {{ gap = [0.1, 0.2] }}
"""


def write(folder, seeds=3, text=STUDY):
    """Write a study of 8 cells a seed."""
    path = folder / "study.toml"
    path.write_text(text.format(seeds=list(range(seeds))))
    return path


def command(*arguments):
    return [sys.executable, "-m", "sidelong", "run", *map(str, arguments)]


def run(*arguments, code=0):
    done = subprocess.run(command(*arguments), capture_output=True, text=True, check=False)
    assert done.returncode == code, done.stdout + done.stderr
    assert "Traceback" not in done.stderr
    return done


def columns(folder):
    """Return the bytes of every column of every result file."""
    found = {}
    for path in sorted((folder / "cells").glob("*.parquet")):
        table = pq.read_table(path)
        for name in table.column_names:
            buffers = [b.to_pybytes() for chunk in table[name].chunks for b in chunk.buffers() if b is not None]
            words = (
                table[name].chunk(0).dictionary.to_pylist() if str(table[name].type).startswith("dictionary") else []
            )
            found[path.stem, name] = (str(table[name].type), buffers, words)
    return found


def hidden(folder):
    return [path.name for path in folder.rglob(".*")]
