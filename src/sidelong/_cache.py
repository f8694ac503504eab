"""Where machine code is kept from one process to the next.

The folder is keyed by a hash of all sources of the inner rooms, so that an edited kernel never runs from old code,
whichever file the edit was in. A user's own kernels, and those of the outer rooms, are keyed by their `fingerprint` as
well. Sources that are edited while a process runs are not what it has loaded: it then neither reads nor writes here.
``SIDELONG_CACHE_DIR`` moves the folder. No variable of Numba does: its own cache is not used.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import inspect
import os
import re
import shutil
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sidelong._fingerprint import PACKAGE, is_inner
from sidelong.machine import hash_files, replacing

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

_KEPT_FOLDERS = 8
_LOADED = time.time_ns()  # no kernel was read from its source before


class Manners:
    """How this process and others that want the same code wait for each other."""

    patience = 30.0  # seconds; another process that compiles may have been stopped
    gives_way = False  # whether others need not wait for this one, as it has a low priority


def kernel_hash() -> str:
    """Return a hash of the Python sources of the inner rooms, where nearly all kernels are."""
    return _sources()[0]


@functools.cache
def _sources() -> tuple[str, dict[Path, tuple[int, int]]]:
    """Return the hash of the sources, and of each what changes when it is written."""
    stamps = _stamps([each for each in sorted(PACKAGE.rglob("*.py")) if is_inner(str(each))])
    return hash_files(stamps), stamps


def _stamps(files: Iterable[Path]) -> dict[Path, tuple[int, int]]:
    stats = ((file, file.stat()) for file in files)
    return {file: (stat.st_mtime_ns, stat.st_size) for file, stat in stats}


def sources_stand() -> bool:
    """Tell whether no source was written since this process began to load them.

    If one was, their hash may be that of code which is not the one that runs here.
    """
    try:
        hashed = _sources()[1]
        now, stamps = time.time_ns(), _stamps(hashed)
    except OSError:  # one was removed
        return False
    # A date in the future is that of a wrong clock, and says nothing.
    return stamps == hashed and not any(_LOADED < written <= now for written, _ in stamps.values())


def can_keep() -> bool:
    """Tell whether machine code can be written into the folder, and not only be read."""
    folder = cache_folder()
    return folder is not None and os.access(folder, os.W_OK)


@functools.cache
def cache_folder() -> Path | None:
    """Return the folder for machine code, or None where there is none and none can be made: then each process compiles.

    It may be one that can only be read, as in an image whose machine code was compiled ahead.
    """
    root = Path(os.environ.get("SIDELONG_CACHE_DIR") or _user_cache()) / "kernels"
    try:
        folder = root / kernel_hash()
        if not sources_stand():
            return None
        if not folder.is_dir():
            folder.mkdir(parents=True, exist_ok=True)  # another process may have been faster
            with contextlib.suppress(OSError):  # or may remove the same
                by_age = sorted(root.iterdir(), key=lambda path: path.stat().st_mtime)
                for outdated in by_age[:-_KEPT_FOLDERS]:
                    shutil.rmtree(outdated, ignore_errors=True)
    except OSError:
        return None
    return folder if os.access(folder, os.R_OK | os.X_OK) else None


def _user_cache() -> Path:
    """Return the folder where this system's user keeps what programs can make anew."""
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData/Local") / "sidelong" / "Cache"
    if sys.platform == "darwin":
        return Path.home() / "Library/Caches/sidelong"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "sidelong"


@functools.cache
def _locks(folder: Path) -> int:
    """Open the file of locks, once for each process: to close it would give up all of them."""
    return os.open(folder / "locks", os.O_RDWR | os.O_CREAT, 0o600)


class CodeFiles:
    """The files of a function in a folder: one for each key, so that none is ever written over by other code.

    A file is whole or not there, and a damaged one is not read: damaged code of LLVM crashes the process.
    """

    def __init__(self, folder: Path, function: Callable[..., Any], kind: str) -> None:
        source = inspect.getfile(function)
        # Two files may share a base name (graphs/kernels.py and a user's kernels.py).
        place = hashlib.sha256(source.encode()).hexdigest()[:8]
        name = f"{Path(source).stem}.{function.__qualname__}-{kind}{place}"
        self._folder = folder
        self._start = str(folder / re.sub(r'[<>:"/\\|?*]', "", name))
        self._lock = int.from_bytes(hashlib.sha256(self._start.encode()).digest()[:7])  # the place of a byte

    def _path(self, key: str) -> Path:
        return Path(f"{self._start}.{hashlib.sha256(key.encode()).hexdigest()[:24]}.code")

    @contextlib.contextmanager
    def alone(self) -> Iterator[None]:
        """Let no other process do inside the same with this function: what one compiles, the others then load.

        A process that ends or is killed gives its locks up. They are a help and never a hindrance: where there are
        none, it goes on without. So it does after half a minute, and then waits no more for other functions either. Two
        that compile the same do no harm, since a file is whole or not there.
        """
        held = False
        with contextlib.suppress(OSError):
            held = fcntl is not None and self._wait(_locks(self._folder))
        try:
            if held and Manners.gives_way:
                self._release()
                held = False
            yield
        finally:
            if held:
                self._release()

    def _release(self) -> None:
        fcntl.lockf(_locks(self._folder), fcntl.LOCK_UN, 1, self._lock)

    def _wait(self, file: int) -> bool:
        end = time.monotonic() + Manners.patience
        while True:
            try:
                fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, self._lock)
            except (BlockingIOError, PermissionError):  # it is held, as one system or another says it
                if time.monotonic() > end:
                    Manners.patience = 0.0  # whoever was stopped may hold others too
                    return False
                time.sleep(0.01)
            else:
                return True

    def hold(self, key: str) -> bool:
        """Tell whether there is a file for a key."""
        return self._path(key).exists() and sources_stand()

    def load(self, key: str) -> bytes:
        """Return what was saved under a key."""
        if not sources_stand():
            raise ValueError("the file may be of other sources than those that were loaded")
        content = self._path(key).read_bytes()
        if hashlib.sha256(content[32:]).digest() != content[:32]:
            raise ValueError("the file is damaged")
        return content[32:]

    def save(self, key: str, content: bytes) -> None:
        """Write a file at once."""
        if not sources_stand():
            return
        with replacing(self._path(key), flushed=False) as file:  # a damaged file is noticed, and compiled anew
            file.write(hashlib.sha256(content).digest() + content)
