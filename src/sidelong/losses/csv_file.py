"""Losses from a CSV file: one row for each round, one column for each arm, and a header if there is one.

NumPy reads what is right, at its own speed. Only a file that is wrong is read again, to find the line and the column.
"""

from __future__ import annotations

import csv
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

import numpy as np

from sidelong.errors import WorldError

if TYPE_CHECKING:
    from os import PathLike

    import numpy.typing as npt


def read_csv(path: str | PathLike[str]) -> npt.NDArray[np.float64]:
    """Return the losses in a file, one row for each round.

    Raises:
        WorldError: the file cannot be read, or holds something that is not a loss; the message names line and column.

    """
    file = Path(path)
    try:
        with file.open(encoding="utf-8-sig", newline="") as lines:
            header = bool(_header(next(csv.reader(lines), [])))
        with warnings.catch_warnings(action="ignore"):  # of an empty file, which is an error below
            losses = np.loadtxt(
                file, np.float64, comments=None, delimiter=",", skiprows=int(header), ndmin=2, encoding="utf-8-sig"
            )
    except OSError as error:
        raise WorldError(f"{file}: cannot be read: {error.strerror or error}.") from error
    except (UnicodeDecodeError, csv.Error) as error:
        raise WorldError(f"{file}: is not a CSV file in UTF-8: {error}.") from error
    except ValueError as error:  # of NumPy, whose message has neither the line of the file nor the column's name
        _find_fault(file)
        raise WorldError(f"{file}: is not a table of numbers: {error}.") from error
    if not losses.size or not ((losses >= 0.0) & (losses <= 1.0)).all():
        _find_fault(file)
    return losses


def _header(first: list[str]) -> list[str]:
    """Return the first line if it names the columns: if some cell is not a number."""
    return first if any(_number(cell) is None for cell in first) else []


def _number(cell: str) -> float | None:
    try:
        return float(cell)
    except ValueError:
        return None


def _find_fault(file: Path) -> NoReturn:
    """Raise the error that names the first line and column that is wrong."""
    with file.open(encoding="utf-8-sig", newline="") as lines:
        reader = csv.reader(lines)
        header, width = [], 0
        for number, row in enumerate(reader):
            if number == 0:
                header, width = _header(row), len(row)
                if len(row) == 1 and ";" in row[0]:
                    raise WorldError(f"{file}, line 1: columns are separated by commas, not by semicolons.")
                if header:
                    continue
            if row:  # NumPy leaves empty lines out too
                _check_row(f"{file}, line {reader.line_num}", row, width, header)
    raise WorldError(f"{file}: has no losses: there is one row for each round and one column for each arm.")


def _check_row(where: str, row: list[str], width: int, header: list[str]) -> None:
    if len(row) != width:
        raise WorldError(f"{where}: has {len(row)} columns, and the first line has {width}.")
    for column, cell in enumerate(row):
        value = _number(cell)
        if value is not None and 0.0 <= value <= 1.0:
            continue
        name = f" ({header[column]!r})" if header else ""
        index = " If this column numbers the rounds, leave it out." if column == 0 else ""
        rule = "a loss is a number from 0 to 1"
        raise WorldError(f"{where}, column {column + 1}{name}: {rule}, not {cell.strip()!r}.{index}")
