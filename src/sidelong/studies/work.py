"""What a worker does, in a process of this machine or of a cluster: play a cell and return its result file.

A worker writes nothing and knows nothing of the study, so that it can be killed at any moment.
"""

from __future__ import annotations

import traceback
from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

from sidelong.errors import SidelongError
from sidelong.simulation.simulate import play_game
from sidelong.studies.build import build
from sidelong.studies.cell import Cell
from sidelong.studies.files import Files
from sidelong.studies.provenance import source_hash
from sidelong.studies.results import to_parquet

if TYPE_CHECKING:
    from collections.abc import Callable
    from concurrent.futures import Future

    from sidelong.simulation import Result

_OTHER = (
    "The worker has another version of sidelong. Install the same one on all workers; if they are processes of this "
    "machine, its files were changed while the study ran: run again."
)


class Task(NamedTuple):
    """A cell to play."""

    spec: dict[str, Any]
    threads: int
    source: str  #: the hash of the package's sources, which must be the worker's too


class TaskResult(NamedTuple):
    """What became of a cell."""

    content: bytes  #: the result file; empty if the cell failed
    error: str  #: why it failed
    seconds: float
    wasted: int = 0  #: rounds that were played before it failed, if the engine counts those of unfinished cells


class WorkerDiedError(Exception):
    """The process that played a cell, or compiled for it, is gone. Only engines whose cells are given up raise it."""


class Engine:
    """What plays cells: `local` on this machine, `cluster` on many."""

    slots: int  #: how many cells are played at once

    def warm(self, cell: Cell) -> Future[None]:
        """Compile what a cell needs."""
        raise NotImplementedError

    def play(self, cell: Cell) -> Future[TaskResult]:
        """Play a cell."""
        raise NotImplementedError

    def close(self) -> None:
        """Stop all workers at once, whatever they do."""
        raise NotImplementedError

    def rounds(self) -> int:
        """Return how many rounds were played, those of unfinished cells too; 0 if it does not know."""
        return 0

    def check(self) -> None:
        """Raise `StoppedError` if the engine itself is gone: then all cells end in errors, and none of them failed."""


def play(task: Task, files: Files, progress: Callable[[int, int], None] | None = None) -> TaskResult:
    """Play a cell. What goes wrong inside of it is its outcome; others go on."""
    if task.source != source_hash():
        return TaskResult(b"", _OTHER, 0.0)
    spec = task.spec
    try:
        game = build(spec, files.locate)
        result = play_game(
            game, spec["runs"], spec["seed"], spec["checkpoints"], task.threads, progress=progress or False
        )
        return TaskResult(to_parquet(Cell(spec), game.sequence.n_arms, result), "", result.seconds)
    except SidelongError as error:
        return TaskResult(b"", str(error), 0.0)
    except Exception as error:  # noqa: BLE001  # a user's world may raise anything
        place = traceback.extract_tb(error.__traceback__)[-1]
        where = f"{place.filename.rpartition('/')[2]}:{place.lineno}"
        return TaskResult(b"", f"{type(error).__name__}: {error} ({where})", 0.0)


def probe(spec: dict[str, Any], files: Files, rounds: int = 1) -> Result:
    """Play the first rounds of a cell, of one run."""
    game = build(spec, files.locate)
    first = replace(game, rounds=min(rounds, game.rounds))
    return play_game(first, seed=spec["seed"], checkpoints=1, threads=1, progress=False)


def warm(spec: dict[str, Any], files: Files) -> None:
    """Compile what a cell needs, or load it. What fails here will fail again when the cell is played."""
    try:
        probe(spec, files)
    except Exception:  # noqa: BLE001
        return


@lru_cache(maxsize=8)
def unpacked(names: tuple[str, ...], contents: tuple[bytes, ...]) -> Files:
    """Return files that came over the network."""
    return Files(dict(zip(names, contents, strict=True)))
