"""The loop in C: compiled on the spot, and called with the arrays of a graph."""

from __future__ import annotations

import ctypes
import functools
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt

    import sidelong as sl

__all__ = ["FAST", "STRICT", "available", "play"]

FAST = ("-O3", "-march=native", "-ffast-math")
#: Without leave to reorder sums or to fuse operations: the rules that sidelong keeps, for the same bits everywhere.
STRICT = ("-O3", "-march=native", "-ffp-contract=off")


def available() -> bool:
    """Tell whether there is a compiler."""
    return _compiler() is not None


def play(
    graph: sl.FeedbackGraph, means: list[float], rounds: int, seed: int, flags: tuple[str, ...] = FAST
) -> npt.NDArray[np.int64]:
    """Play run 0 of a simulation, and return how often each arm was played."""
    arrays = graph.arrays
    if arrays.contiguous and not (np.diff(arrays.sources) == 1).all():
        raise ValueError("The loop in C takes intervals only if they begin in the order of their arms.")
    inputs = [
        np.ascontiguousarray(part, kind)
        for part, kind in (
            (arrays.start, np.int64),
            (arrays.stop, np.int64),
            (arrays.targets, np.int32),
            (arrays.in_start, np.int64),
            (arrays.in_stop, np.int64),
            (arrays.sources, np.int32),
            (means, np.float64),
        )
    ]
    plays = np.zeros(graph.n_arms, np.int64)
    _library(flags).exp3gpp(
        ctypes.c_int64(graph.n_arms),
        ctypes.c_int64(arrays.contiguous),
        *(part.ctypes.data_as(ctypes.c_void_p) for part in inputs),
        ctypes.c_int64(rounds),
        ctypes.c_uint64(seed),
        ctypes.c_uint32(0),
        plays.ctypes.data_as(ctypes.c_void_p),
    )
    return plays


def _compiler() -> str | None:
    return next((path for path in map(shutil.which, ("cc", "gcc", "clang")) if path), None)


@functools.cache
def _library(flags: tuple[str, ...]) -> ctypes.CDLL:
    source = Path(__file__).with_name("reference.c")
    with tempfile.TemporaryDirectory() as folder:
        machine_code, library = Path(folder, "reference.o"), Path(folder, "reference.so")
        # Two steps, since a library that is linked with -ffast-math makes the whole process round small numbers to 0.
        subprocess.run([_compiler(), *flags, "-Wall", "-fPIC", "-c", source, "-o", machine_code], check=True)
        subprocess.run([_compiler(), "-shared", machine_code, "-lm", "-o", library], check=True)
        return ctypes.CDLL(str(library))
