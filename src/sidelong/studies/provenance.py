"""What made a result: versions, sources and platform. It is kept beside results, which do not depend on it."""

from __future__ import annotations

import datetime as dt
import platform
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numba
import numpy as np

from sidelong._version import __version__
from sidelong.learners import catalogue
from sidelong.machine import hash_files
from sidelong.studies.cell import options_of

if TYPE_CHECKING:
    from sidelong.studies.cell import Cell

FORMAT = 1  #: of result files


def provenance(cell: Cell, seconds: float) -> dict[str, Any]:
    """Return what a result file tells beside its columns."""
    return {
        "format": FORMAT,
        "cell": cell.spec,
        "seed": cell.spec["seed"],
        "learner_version": learner_version(cell),
        "version": __version__,
        "source": source_hash(),
        "platform": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        "numpy": np.__version__,
        "numba": numba.__version__,
        "seconds": seconds,
        "finished": dt.datetime.now(dt.UTC).isoformat(timespec="seconds"),
    }


def learner_version(cell: Cell) -> int:
    """Return the version of the learner of a cell; 1 for one's own, since the spec has a hash of its file."""
    table = cell.spec["learner"]
    return 1 if "file" in table else catalogue.choose(table["name"], options_of(table)).version


@cache
def source_hash() -> str:
    """Return a hash of all Python sources of the package."""
    return hash_files(sorted(Path(__file__).parents[1].rglob("*.py")))
