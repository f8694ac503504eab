"""The folder of a study's results.

::

    study.json           what the study says, and its cells in order
    cells/NAME.parquet   the results of a cell
    files/HASH/...       the files that the study names
    damaged/             result files whose checksum did not hold
    claims               empty; processes lock a byte of it for each cell that they run

A process that dies loses its locks, and leaves at most a hidden temporary file, which whoever runs the cell next
removes.
"""

from __future__ import annotations

import errno
import fcntl
import json
import os
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Self

from sidelong._version import __version__
from sidelong.errors import ResultFileError, StudyError
from sidelong.machine import replacing
from sidelong.studies.files import Files, read_regular
from sidelong.studies.results import read_provenance

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from sidelong.studies.cell import Cell
    from sidelong.studies.spec import Study

_open_here: set[Path] = set()  # the folders in which this process runs a study


class StoppedError(StudyError):
    """A study cannot go on now, but will when it is run again: the disk is full, say."""


class ResultFolder:
    """A folder of results that this process may write to. Use it in a `with` statement."""

    def __init__(self, path: Path, study: Study) -> None:
        self.path = path.resolve()
        self.set_aside: list[Path] = []  #: the damaged files that were found
        self._left_over: dict[str, list[Path]] = {}  # temporary files of processes that died, by cell
        self._study = study
        self._claims = -1

    def __enter__(self) -> Self:
        if self.path in _open_here:  # locks are between processes
            raise StudyError(f"{self.path}: this process is running a study in this folder already.")
        with self._writing():
            (self.path / "cells").mkdir(parents=True, exist_ok=True)
            self._claims = os.open(self.path / "claims", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
        _open_here.add(self.path)
        try:
            self._begin()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        _open_here.discard(self.path)
        os.close(self._claims)

    def _begin(self) -> None:
        """Write what the study is; or refuse, if another one is here."""
        with self._writing():
            fcntl.lockf(self._claims, fcntl.LOCK_EX, 1, 0)
            try:
                refuse_another(self.path, self._study)
                content = {
                    "format": "sidelong-study",
                    "version": 1,
                    "sidelong": __version__,
                    "name": self._study.name,
                    "study": self._study.content,
                    "cells": [cell.name for cell in self._study.cells],
                }
                with replacing(self.path / "study.json") as file:
                    file.write(json.dumps(content, indent=1).encode())
                self._study.files.save(self.path / "files")
                for draft in (self.path / "cells").glob(".*.tmp"):
                    self._left_over.setdefault(draft.name.split(".")[1], []).append(draft)
            finally:
                fcntl.lockf(self._claims, fcntl.LOCK_UN, 1, 0)

    @property
    def files(self) -> Files:
        """The files of the study, for other processes."""
        return Files(folder=self.path / "files")

    def claim(self, cell: Cell) -> bool:
        """Try to be the one that runs a cell. False if another process is."""
        try:
            fcntl.lockf(self._claims, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, _place(cell))
        except OSError as error:
            if error.errno in {errno.EACCES, errno.EAGAIN}:
                return False
            raise StoppedError(f"{self.path}: files cannot be locked here: {error.strerror}.") from error
        for draft in self._left_over.pop(cell.name, ()):
            draft.unlink(missing_ok=True)
        return True

    def release(self, cell: Cell) -> None:
        """Let others run a cell."""
        fcntl.lockf(self._claims, fcntl.LOCK_UN, 1, _place(cell))

    def read(self, cell: Cell) -> dict[str, Any] | None:
        """Return what is known of a cell that is done, or None. A damaged file is set aside; claim the cell first."""
        try:
            return read_cell(self.path, cell)
        except ResultFileError:
            path = self.path / "cells" / f"{cell.name}.parquet"
        with self._writing():
            folder = self.path / "damaged"
            folder.mkdir(exist_ok=True)
            number = len([*folder.glob(f"{cell.name}*")])
            self.set_aside.append(path.rename(folder / f"{cell.name}{f'.{number}' * bool(number)}.parquet"))
        return None

    def write(self, cell: Cell, content: bytes) -> None:
        """Keep the results of a cell that this process has claimed."""
        path = self.path / "cells" / f"{cell.name}.parquet"
        with self._writing(), replacing(path, remove_leftovers=False) as file:  # claim() has removed them
            file.write(content)

    @contextmanager
    def _writing(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise StoppedError(f"{self.path}: cannot be written: {error.strerror or error}.") from error


def _place(cell: Cell) -> int:
    """Return the byte of `claims` that stands for a cell; byte 0 stands for the folder."""
    return 1 + int(cell.name[:15], 16)


def read_cell(folder: Path, cell: Cell) -> dict[str, Any] | None:
    """Return what is known of a cell whose results are in a folder, or None; a damaged file is an error."""
    path = folder / "cells" / f"{cell.name}.parquet"
    try:
        provenance = read_provenance(read_regular(path))
    except FileNotFoundError:
        return None
    except OSError as error:
        raise StudyError(f"{path}: cannot be read: {error.strerror or error}.") from error
    if provenance["cell"] != cell.spec:
        raise ResultFileError(f"{path}: this is the file of another cell.")
    return provenance


def refuse_another(folder: Path, study: Study) -> None:
    """Refuse a folder that holds the results of another study, and print the difference."""
    before = read_study(folder)
    cells = {cell.name for cell in study.cells}
    # Of cells that were not checked, it is not known whether they were left out because nobody can play them.
    if before is None or cells - study.unchecked <= set(before["cells"]) <= cells:
        return
    changes = difference(before["study"], study.content)
    if not changes:  # this version leaves out a cell that it knows nobody can play, say
        raise StudyError(
            f"{folder}: these results were begun by sidelong {before['sidelong']}, which made other cells of the same "
            f"study file. Go on with that version, or give a new folder with --out: the cells of this one are played "
            f"anew there."
        )
    raise StudyError(
        f"{folder}: these are the results of another study, or the study was changed. What differs:\n  "
        + "\n  ".join(changes)
        + "\nPut the study back as it was to go on, or give a new folder with --out."
    )


def read_study(folder: Path) -> dict[str, Any] | None:
    """Return what study a folder holds the results of, or None."""
    try:
        content: dict[str, Any] = json.loads(read_regular(folder / "study.json"))
    except FileNotFoundError:
        return None
    except ValueError as error:
        raise StudyError(
            f"{folder / 'study.json'}: this file was altered: {error}. Remove it and run again."
        ) from error
    return content


def difference(before: Any, now: Any, place: str = "") -> list[str]:
    """Return what differs between two studies, a line for each key."""
    if before == now:
        return []
    if isinstance(before, dict) and isinstance(now, dict):
        keys = [*before, *(key for key in now if key not in before)]
        parts = [(f"{place}.{key}" if place else key, before.get(key), now.get(key)) for key in keys]
    elif isinstance(before, list) and isinstance(now, list) and any(isinstance(each, dict) for each in before + now):
        length = max(len(before), len(now))
        pairs = zip(*(each + [None] * (length - len(each)) for each in (before, now)), strict=True)
        parts = [(f"{place}[{number}]", *pair) for number, pair in enumerate(pairs)]
    else:
        shown = ["nothing" if each is None else json.dumps(each) for each in (before, now)]
        return [f"{place}: was {shown[0]}, is {shown[1]}"]
    return [line for part in parts for line in difference(part[1], part[2], part[0])]
