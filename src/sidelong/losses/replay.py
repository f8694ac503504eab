"""Recorded losses."""

from __future__ import annotations

import mmap
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from sidelong.errors import WorldError
from sidelong.losses.csv_file import read_csv
from sidelong.losses.world import World, arrays
from sidelong.losses.world_kernels import TABLE
from sidelong.losses.world_makers import world

if TYPE_CHECKING:
    import numpy.typing as npt

_CHECKED_AT_A_TIME = 2**20


@world(array="list", stochastic=False)
def table(array: npt.ArrayLike | str | PathLike[str]) -> World:
    """Replay recorded losses: row t - 1 of a table holds the losses of all arms in round t.

    A file is read by its name: ``table("losses.csv")``, with or without a header, or ``table("losses.npy")``.

    A table of float64 that is mapped into memory (`numpy.load(file, mmap_mode="r")`) is read from its file and may be
    larger than memory. Any other table is copied. All seeds and runs have the same losses. There are no means: regret
    is against the arm that was best in the table. A pickle of the world holds the whole table.

    Args:
        array: one row for each round, one column for each arm, every loss from 0 to 1; or the name of a file.

    Raises:
        WorldError: the shape is wrong, or a loss is not a number from 0 to 1. The message names round and arm, or
            line and column of the file.

    Example:
        >>> table([[0.0, 1.0], [0.5, 0.25]])
        <World table: 2 arms, 2 rounds>

    """
    if isinstance(array, str | PathLike):
        array = _read(Path(array))
    losses = array if isinstance(array, np.ndarray) and _is_mapped(array) else _copy(array)
    if losses.ndim != 2 or losses.size == 0:
        raise WorldError(
            f"a table must have a row for each round and a column for each arm; its shape is {losses.shape}."
        )
    if losses.dtype != np.float64 or not losses.flags.c_contiguous or not losses.flags.aligned:
        raise WorldError(
            f"a table that is mapped into memory must be float64, in C order and aligned; this one has type "
            f"{losses.dtype.str}, shape {losses.shape} and strides {losses.strides}. Save it as such with "
            f"numpy.save, or pass numpy.array(table) if it fits into memory."
        )
    binary = _check(losses)
    T, K = losses.shape
    return World("table", K, arrays(TABLE, table=losses), f"{K} arms, {T} rounds", binary, rounds=T)


def _read(path: Path) -> npt.NDArray[np.float64]:
    if path.suffix.lower() == ".csv":
        return read_csv(path)
    if path.suffix.lower() != ".npy":
        raise WorldError(f"a table is read from a file .csv or .npy, not {str(path)!r}.")
    try:
        losses: npt.NDArray[np.float64] = np.load(path, mmap_mode="r", allow_pickle=False)
    except OSError as error:
        raise WorldError(f"{path}: cannot be read: {error.strerror or error}.") from error
    except ValueError as error:
        raise WorldError(f"{path}: is not an array of NumPy: {error}.") from error
    return losses


def _is_mapped(array: object) -> bool:
    while isinstance(array, np.ndarray):
        if isinstance(array, np.memmap):
            return True
        array = array.base
    return isinstance(array, mmap.mmap)


def _copy(array: npt.ArrayLike) -> npt.NDArray[np.float64]:
    try:
        return np.array(array, np.float64, order="C")
    except (OverflowError, TypeError, ValueError) as error:
        raise WorldError(f"a table must hold numbers: {error}.") from None


def _check(losses: npt.NDArray[np.float64]) -> bool:
    """Refuse what is no loss; tell whether all are 0 or 1."""
    binary = True
    step = max(1, _CHECKED_AT_A_TIME // losses.shape[1])
    for first in range(0, len(losses), step):
        part = losses[first : first + step]
        good = (part >= 0.0) & (part <= 1.0)  # false for NaN
        if not good.all():
            row, arm = np.argwhere(~good)[0]
            raise WorldError(
                f"losses must lie from 0 to 1; round {first + row + 1}, arm {arm} has "
                f"{float(part[row, arm])!r}. Rescale or repair the table."
            )
        binary = binary and bool(((part == 0.0) | (part == 1.0)).all())
    return binary
