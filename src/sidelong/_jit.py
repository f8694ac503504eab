"""The one compile policy: how a plain Python function becomes machine code, and where that is kept.

A *kernel* is a function over floats, integers and NamedTuples of arrays. `kernel` compiles it on its first
call, without fastmath, so that it gives the bits that plain Python gives. With ``NUMBA_DISABLE_JIT=1`` it stays
plain Python.

A *template* is a kernel that calls others by names that are bound later: the simulation loop calls
``distribution`` and ``update``, which every learner has. `specialise` binds them.

Machine code is kept in a folder that is keyed by a hash of all sources of the package, so that an edited kernel
never runs from old code, whichever file the edit was in. ``SIDELONG_CACHE_DIR`` moves that folder.
"""

from __future__ import annotations

import functools
import hashlib
import inspect
import os
import shutil
import types
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numba
from numba.core import caching
from numba.misc.appdirs import AppDirs

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

__all__ = ["cache_folder", "entry", "kernel", "rare_kernel", "rebind", "source_hash", "specialise"]

F = TypeVar("F", bound="Callable[..., Any]")

_PACKAGE = Path(__file__).parent
_KEPT_FOLDERS = 8


@functools.cache
def source_hash() -> str:
    """Return a hash of all Python sources of the package."""
    return _hash_files(sorted(_PACKAGE.rglob("*.py")))


def _hash_files(files: Iterable[Path]) -> str:
    digest = hashlib.sha256()
    for file in files:
        digest.update(file.name.encode() + b"\0" + file.read_bytes() + b"\0")
    return digest.hexdigest()[:16]


@functools.cache
def cache_folder() -> Path | None:
    """Return the folder for machine code, or None where none can be written: then each process compiles."""
    chosen = os.environ.get("SIDELONG_CACHE_DIR")
    root = Path(chosen or AppDirs(appname="sidelong", appauthor=False).user_cache_dir) / "kernels"
    folder = root / source_hash()
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
    """Tells Numba where a function's machine code lies, and what it depends on."""

    def __init__(self, function: Callable[..., Any], files: tuple[Path, ...]) -> None:
        self._py_file = inspect.getfile(function)
        self._stamp = _hash_files(file for file in files if _PACKAGE not in file.parents)

    def get_cache_path(self) -> str:
        return str(cache_folder())

    def get_source_stamp(self) -> str:
        # The folder is keyed by the package's sources already; this covers files outside of it.
        return self._stamp

    def get_disambiguator(self) -> str:
        # Two files may share a base name (graphs/kernels.py and a user's kernels.py).
        return hashlib.sha256(self._py_file.encode()).hexdigest()[:8]


def _cache(function: Callable[..., Any], files: tuple[Path, ...]) -> caching.FunctionCache:
    locator = _Locator(function, files)

    class Implementation(caching.CompileResultCacheImpl):  # type: ignore[misc]
        _locator_classes = (types.SimpleNamespace(from_function=lambda *_: locator),)

    class Cache(caching.FunctionCache):  # type: ignore[misc]
        _impl_class = Implementation

    return Cache(function)


def _compile(function: F, files: tuple[Path, ...], *, inline: bool) -> F:
    dispatcher = numba.njit(
        nogil=True,
        # A division gives what IEEE says, as in NumPy, and keeps its loop free of branches.
        error_model="numpy",
        # A kernel allocates nothing, so that it needs no reference counts, which cost 190 ns a round at ten arms.
        _nrt=False,
        # A state is a hundred machine words or more. To pass them takes longer than most kernels run.
        forceinline=inline,
        # An underscore says that only kernels call it; a third of all compilation was wrappers for Python.
        no_cpython_wrapper=function.__name__.startswith("_"),
        no_cfunc_wrapper=True,
    )(function)
    if not numba.config.DISABLE_JIT and cache_folder() is not None and all(file.exists() for file in files):
        dispatcher._cache = _cache(function, files)  # noqa: SLF001
    return dispatcher  # type: ignore[no-any-return]


def kernel(function: F) -> F:
    """Compile a function that allocates nothing; it is compiled when it is first called, and copied into its callers.

    A function whose name begins with an underscore can be called by other kernels only.
    """
    return _compile(function, (Path(inspect.getfile(function)),), inline=True)


def rare_kernel(function: F) -> F:
    """Do the same for a large function that runs rarely: it stays apart from its callers, which compile faster."""
    return _compile(function, (Path(inspect.getfile(function)),), inline=False)


def rebind(template: F, name: str, **bindings: object) -> F:
    """Return `template` as plain Python, with some of its global names bound to other things."""
    source: Any = getattr(template, "py_func", template)
    code = source.__code__.replace(co_name=name, co_qualname=name)
    function = types.FunctionType(code, {**source.__globals__, **bindings}, name, source.__defaults__)
    function.__module__ = source.__module__
    function.__qualname__ = name
    return function  # type: ignore[return-value]


def specialise(template: F, name: str, **bindings: object) -> F:
    """Compile `template` with some of its global names bound to other kernels.

    `name` must differ between any two specialisations of one template: Numba finds machine code by it.
    """
    kernels: list[Any] = [getattr(each, "py_func", each) for each in (template, *bindings.values())]
    files = tuple(sorted({Path(inspect.getfile(each)) for each in kernels}))
    return _compile(rebind(template, name, **bindings), files, inline=False)


def entry(function: F, *arguments: object) -> F:
    """Return the machine code of a kernel for arguments of these types, compiling it if need be.

    A call through it does not look at the types again, which for two dozen arrays takes longer than most kernels run.
    Every later call must pass the same types.
    """
    if not hasattr(function, "py_func"):  # the JIT is off
        return function
    signature = tuple(numba.typeof(argument) for argument in arguments)
    function.compile(signature)  # type: ignore[attr-defined]
    return function.overloads[signature].entry_point  # type: ignore[attr-defined, no-any-return]
