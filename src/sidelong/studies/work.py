"""What a worker does, in a process of this machine or of a cluster: play a cell and return its result file.

A worker writes nothing and knows nothing of the study, so that it can be killed at any moment.
"""

from __future__ import annotations

import traceback
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from sidelong._cache import source_hash
from sidelong.errors import SidelongError
from sidelong.learners import catalogue
from sidelong.simulation import simulate
from sidelong.studies.build import build
from sidelong.studies.cell import Cell
from sidelong.studies.files import Files
from sidelong.studies.results import to_parquet

if TYPE_CHECKING:
    from collections.abc import Callable

    from sidelong.simulation import Result

__all__ = ["Outcome", "Task", "play", "probe", "warm"]


_OTHER = (
    "The worker has another version of sidelong. Install the same one on all workers; if they are processes of this "
    "machine, its files were changed while the study ran: run again."
)


class Task(NamedTuple):
    """A cell to play."""

    spec: dict[str, object]
    threads: int
    source: str  #: the hash of the package's sources, which must be the worker's too


class Outcome(NamedTuple):
    """What became of a cell."""

    content: bytes  #: the result file; empty if the cell failed
    error: str  #: why it failed
    seconds: float


def play(task: Task, files: Files, progress: Callable[[int, int], None] | None = None) -> Outcome:
    """Play a cell. What goes wrong inside of it is its outcome; others go on."""
    if task.source != source_hash():
        return Outcome(b"", _OTHER, 0.0)
    cell = Cell(task.spec)
    try:
        game = build(cell.spec, files.locate)
        result = simulate(
            game.learner,
            game.graph,
            game.world,
            rounds=cell.spec["rounds"],
            runs=cell.spec["runs"],
            seed=cell.spec["seed"],
            checkpoints=cell.spec["checkpoints"],
            threads=task.threads,
            progress=progress or False,
            delay=cell.delay,
            **game.options,
        )
        return Outcome(to_parquet(cell, game.graph.n_arms, result), "", result.seconds)
    except SidelongError as error:
        return Outcome(b"", str(error), 0.0)
    except Exception as error:  # noqa: BLE001  # a user's world may raise anything
        place = traceback.extract_tb(error.__traceback__)[-1]
        where = f"{place.filename.rpartition('/')[2]}:{place.lineno}"
        return Outcome(b"", f"{type(error).__name__}: {error} ({where})", 0.0)


def probe(task: Task, files: Files, rounds: int = 1) -> Result:
    """Play the first rounds of a cell, of one run."""
    cell = Cell(task.spec)
    spec = cell.spec
    rounds = min(rounds, spec["rounds"])
    game = build({**spec, "rounds": rounds}, files.locate)
    options = dict(game.options)
    if "horizon" in catalogue.option_names(catalogue.choose(game.learner, options)):
        options.setdefault("horizon", spec["rounds"])
    return simulate(
        game.learner,
        game.graph,
        game.world,
        rounds,
        seed=spec["seed"],
        checkpoints=[rounds],
        threads=1,
        progress=False,
        delay=cell.delay,
        **options,
    )


def warm(task: Task, files: Files) -> None:
    """Compile what a cell needs, or load it. What fails here will fail again when the cell is played."""
    try:
        probe(task, files)
    except Exception:  # noqa: BLE001
        return


@lru_cache(maxsize=8)
def unpacked(names: tuple[str, ...], contents: tuple[bytes, ...]) -> Files:
    """Return files that came over the network."""
    return Files(dict(zip(names, contents, strict=True)))
