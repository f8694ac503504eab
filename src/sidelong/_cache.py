"""Where machine code is kept from one process to the next.

The folder is keyed by a hash of all sources of the inner rooms, so that an edited kernel never runs from old code,
whichever file the edit was in. A user's own kernels, and those of the outer rooms, are keyed by their `fingerprint` as
well.
``SIDELONG_CACHE_DIR`` moves the folder.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import inspect
import os
import pickle
import shutil
import types
import uuid
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numba
from numba.core import caching, serialize
from numba.misc.appdirs import AppDirs

from sidelong._fingerprint import PACKAGE, fingerprint, is_inner, is_own
from sidelong.machine import replacing

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["cache_folder", "kernel_hash", "new_cache"]

_KEPT_FOLDERS = 8


@functools.cache
def kernel_hash() -> str:
    """Return a hash of the Python sources of the inner rooms, where nearly all kernels are."""
    digest = hashlib.sha256()
    for file in (each for each in sorted(PACKAGE.rglob("*.py")) if is_inner(str(each))):
        digest.update(file.name.encode() + b"\0" + file.read_bytes() + b"\0")
    return digest.hexdigest()[:16]


@functools.cache
def cache_folder() -> Path | None:
    """Return the folder for machine code, or None where none can be written: then each process compiles."""
    chosen = os.environ.get("SIDELONG_CACHE_DIR")
    root = Path(chosen or AppDirs(appname="sidelong", appauthor=False).user_cache_dir) / "kernels"
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


class _Locator(caching._CacheLocator):  # type: ignore[misc]  # noqa: SLF001  # Numba has no public hook for the folder
    """Tells Numba where a function's machine code lies."""

    def __init__(self, function: Callable[..., Any], kind: str) -> None:
        self._py_file = inspect.getfile(function)
        self._kind = kind

    def get_cache_path(self) -> str:
        return str(cache_folder())

    def get_source_stamp(self) -> str:
        return ""  # `_Files` knows it

    def get_disambiguator(self) -> str:
        # Two files may share a base name (graphs/kernels.py and a user's kernels.py).
        return self._kind + hashlib.sha256(self._py_file.encode()).hexdigest()[:8]


class _Files:
    """A file for each signature and fingerprint of a function, so that none is ever written over by other code.

    Numba has an index file, which may name a file that is not written yet, and does not notice a damaged one. A
    damaged file of LLVM's code crashes the process.
    """

    def __init__(self, folder: str, base: str) -> None:
        self._start = Path(folder) / base
        self.stamp = ""

    def _path(self, key: Any) -> Path:
        name = hashlib.sha256(repr((numba.__version__, self.stamp, key)).encode()).hexdigest()[:24]
        return self._start.with_name(f"{self._start.name}.{name}.code")

    def holds(self, key: Any) -> bool:
        return self._path(key).exists()

    def load(self, key: Any) -> Any:
        content = self._path(key).read_bytes()
        checksum, payload = content[:32], content[32:]
        if hashlib.sha256(payload).digest() != checksum:
            return None
        # Types of different classes may be written alike, so that the key itself has the last word.
        saved, data = pickle.loads(payload)  # noqa: S301  # as Numba does, from a folder of the user's own
        return data if saved == key else None

    def save(self, key: Any, data: Any) -> None:
        payload = serialize.dumps((key, data))
        with replacing(self._path(key), flushed=False) as file:  # a damaged file is noticed, and compiled anew
            file.write(hashlib.sha256(payload).digest() + payload)


def new_cache(function: Any, kind: str, implementation: type[caching.CacheImpl]) -> Any:
    """Return what keeps the machine code of a function, of one kind: it is a help and never a hindrance.

    What cannot be read or written is compiled anew.
    """
    locator = _Locator(function, kind)

    class Implementation(implementation):  # type: ignore[misc]
        _locator_classes = (types.SimpleNamespace(from_function=lambda *_: locator),)

    class Cache(caching.FunctionCache):  # type: ignore[misc]
        _impl_class = Implementation

        def __init__(self, function: Any) -> None:
            super().__init__(function)
            self._cache_file = _Files(self._cache_path, self._impl.filename_base)

        def load_overload(self, signature: Any, target: Any) -> Any:
            with contextlib.suppress(Exception):  # a file that was made by something else raises anything
                self._stamp()
                return super().load_overload(signature, target)
            return None

        def holds(self, signature: Any, target: Any) -> bool:
            with contextlib.suppress(Exception):
                self._stamp()
                target.refresh()
                return self._cache_file.holds(self._index_key(signature, target.codegen()))
            return False

        def save_overload(self, signature: Any, data: Any) -> None:
            with contextlib.suppress(Exception):  # a full disk
                super().save_overload(signature, data)

        def _stamp(self) -> None:
            # A stamp that fails is like no other: nothing will be found under it.
            self._cache_file.stamp = uuid.uuid4().hex
            self._cache_file.stamp = "" if is_own(function) else fingerprint(function)

    return Cache(function)
