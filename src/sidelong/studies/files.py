"""The files that a study names, by content.

A file is read once, when the study is. Cells know its name and the hash of its content, never where it lay, so that
a study can be moved, and a file that is edited in the middle of a study changes nothing.
"""

from __future__ import annotations

import atexit
import hashlib
import shutil
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

    def read(self, path: Path) -> dict[str, str]:
        """Read a file and return what a cell knows of it."""
        try:
            content = path.read_bytes()
        except OSError as error:
            raise StudyError(f"{path}: cannot be read: {error.strerror or error}.") from error
        digest = hashlib.sha256(content).hexdigest()
        self.contents[f"{digest}/{path.name}"] = content
        return {"name": path.name, "sha256": digest}

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
        path = self._folder / reference["sha256"] / reference["name"]
        if not _has_hash(path, reference["sha256"]):
            raise StudyError(f"{path}: this copy of a file of the study is not as it was. Run again to replace it.")
        return path


def _is_whole(path: Path, content: bytes) -> bool:
    return path.exists() and path.read_bytes() == content


@cache
def _has_hash(path: Path, digest: str) -> bool:
    return path.exists() and hashlib.sha256(path.read_bytes()).hexdigest() == digest


@cache
def _own_folder() -> Path:
    folder = tempfile.mkdtemp(prefix="sidelong-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return Path(folder)
