"""The files that a study names, by content.

A file is read once, when the study is. Cells know its name and the hash of its content, never where it lay, so that
a study can be moved, and a file that is edited in the middle of a study changes nothing.
"""

from __future__ import annotations

import atexit
import hashlib
import os
import re
import shutil
import stat
import tempfile
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from sidelong.errors import StudyError
from sidelong.machine import replacing

if TYPE_CHECKING:
    from collections.abc import Mapping

    Reference = Mapping[str, str]  #: {"name": ..., "sha256": ...}


class Files:
    """Files by content: in memory as they were read, and on disk where processes want a path."""

    def __init__(self, contents: Mapping[str, bytes] | None = None, folder: Path | None = None) -> None:
        self.contents = dict(contents or {})  #: by hash and name, "HASH/NAME"
        self._folder = folder

    def read(self, path: Path, within: Path | None = None) -> dict[str, str]:
        """Read a file, which must lie in the folder `within` if that is given; return what a cell knows of it."""
        try:
            if within is not None and not path.resolve().is_relative_to(within.resolve()):
                raise StudyError(
                    f"{path}: this is outside of the study's folder. Copy it there, or run the study with "
                    f"--allow-outside if you trust it."
                )
            content = read_regular(path)
        except OSError as error:
            raise StudyError(f"{path}: cannot be read: {error.strerror or error}.") from error
        digest = hashlib.sha256(content).hexdigest()
        self.contents[f"{digest}/{path.name}"] = content
        return {"name": path.name, "sha256": digest}

    def take(self, folder: Path, reference: Reference) -> Reference:
        """Read a file of a folder of results, by what a cell knows of it."""
        path = Files(folder=folder).locate(reference)
        self.contents[f"{reference['sha256']}/{path.name}"] = read_regular(path)
        return reference

    def save(self, folder: Path) -> None:
        """Write all of them to a folder."""
        for name, content in self.contents.items():
            if not _is_whole(folder / name, content):
                (folder / name).parent.mkdir(parents=True, exist_ok=True)
                with replacing(folder / name) as file:
                    file.write(content)

    def locate(self, reference: Reference) -> Path:
        """Return a path under which the content of a file lies, with the file's own name."""
        if self._folder is None:
            folder = _own_folder()
            self.save(folder)
            self._folder = folder  # only now: threads share this
        if not _is_reference(reference):  # of a stranger's results, say: its path could lead anywhere
            raise StudyError(f"A file is known by its name and its SHA-256, not as {dict(reference)}.")
        path = self._folder / reference["sha256"] / reference["name"]
        if not _has_hash(path, reference["sha256"]):
            raise StudyError(f"{path}: this copy of a file of the study is not as it was. Run again to replace it.")
        return path

    def locate_data(self, reference: Reference) -> Path:
        """Do as `locate`, but refuse code: what only reads a study runs none of it."""
        if is_code(reference):
            raise StudyError(f"{reference['name']} is code, which is loaded only when the study is run.")
        return self.locate(reference)


def is_code(reference: Reference) -> bool:
    """Tell whether a file is code, which nothing but a file .py can be."""
    return Path(str(reference.get("name"))).suffix == ".py"


def read_regular(path: Path) -> bytes:
    """Return the content of a file that is neither a device nor a pipe, which may never end."""
    # Opening a pipe waits for who writes to it, unless that is forbidden here.
    with os.fdopen(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise OSError(None, "it is not a regular file")
        return file.read()


def _is_reference(reference: Reference) -> bool:
    name, digest = reference.get("name"), reference.get("sha256")
    return isinstance(name, str) and Path(name).name == name and bool(re.fullmatch("[0-9a-f]{64}", str(digest)))


def _is_whole(path: Path, content: bytes) -> bool:
    return path.exists() and path.read_bytes() == content


@cache
def _has_hash(path: Path, digest: str) -> bool:
    return path.exists() and hashlib.sha256(read_regular(path)).hexdigest() == digest


@cache
def _own_folder() -> Path:
    folder = tempfile.mkdtemp(prefix="sidelong-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return Path(folder)
