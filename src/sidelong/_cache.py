"""Where machine code is kept from one process to the next.

The folder is keyed by a hash of all sources of the inner rooms, so that an edited kernel never runs from old code,
whichever file the edit was in. A user's own kernels, and those of the outer rooms, are keyed by their `fingerprint` as
well.
``SIDELONG_CACHE_DIR`` moves the folder. No variable of Numba does: its own cache is not used.
"""

from __future__ import annotations

import functools
import hashlib
import inspect
import os
import re
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sidelong._fingerprint import PACKAGE, is_inner
from sidelong.machine import hash_files, replacing

if TYPE_CHECKING:
    from collections.abc import Callable

_KEPT_FOLDERS = 8


@functools.cache
def kernel_hash() -> str:
    """Return a hash of the Python sources of the inner rooms, where nearly all kernels are."""
    return hash_files(each for each in sorted(PACKAGE.rglob("*.py")) if is_inner(str(each)))


@functools.cache
def cache_folder() -> Path | None:
    """Return the folder for machine code, or None where none can be written: then each process compiles."""
    root = Path(os.environ.get("SIDELONG_CACHE_DIR") or _user_cache()) / "kernels"
    folder = root / kernel_hash()
    try:
        if not folder.is_dir():
            folder.mkdir(parents=True)
            by_age = sorted(root.iterdir(), key=lambda path: path.stat().st_mtime)
            for outdated in by_age[:-_KEPT_FOLDERS]:
                shutil.rmtree(outdated, ignore_errors=True)
    except OSError:
        return None
    return folder if os.access(folder, os.W_OK) else None


def _user_cache() -> Path:
    """Return the folder where this system's user keeps what programs can make anew."""
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData/Local") / "sidelong" / "Cache"
    if sys.platform == "darwin":
        return Path.home() / "Library/Caches/sidelong"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "sidelong"


class CodeFiles:
    """The files of a function in a folder: one for each key, so that none is ever written over by other code.

    A file is whole or not there, and a damaged one is not read: damaged code of LLVM crashes the process.
    """

    def __init__(self, folder: Path, function: Callable[..., Any], kind: str) -> None:
        source = inspect.getfile(function)
        # Two files may share a base name (graphs/kernels.py and a user's kernels.py).
        place = hashlib.sha256(source.encode()).hexdigest()[:8]
        name = f"{Path(source).stem}.{function.__qualname__}-{kind}{place}"
        self._start = str(folder / re.sub(r'[<>:"/\\|?*]', "", name))

    def _path(self, key: str) -> Path:
        return Path(f"{self._start}.{hashlib.sha256(key.encode()).hexdigest()[:24]}.code")

    def hold(self, key: str) -> bool:
        """Tell whether there is a file for a key."""
        return self._path(key).exists()

    def load(self, key: str) -> bytes:
        """Return what was saved under a key."""
        content = self._path(key).read_bytes()
        if hashlib.sha256(content[32:]).digest() != content[:32]:
            raise ValueError("the file is damaged")
        return content[32:]

    def save(self, key: str, content: bytes) -> None:
        """Write a file at once."""
        with replacing(self._path(key), flushed=False) as file:  # a damaged file is noticed, and compiled anew
            file.write(hashlib.sha256(content).digest() + content)
