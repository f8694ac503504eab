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

import contextlib
import functools
import hashlib
import inspect
import os
import shutil
import sys
import types
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numba
from numba.core import caching
from numba.misc.appdirs import AppDirs

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

__all__ = [
    "cache_folder",
    "entry",
    "is_kept",
    "kernel",
    "rare_kernel",
    "rebind",
    "signature_of",
    "source_hash",
    "specialise",
]

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


def _stamp(function: Any) -> str:
    """Return a hash of what machine code depends on outside of the package, whose own sources key the folder."""
    if _is_own(function):
        return ""
    digest = hashlib.sha256()
    waiting, seen = [function], set()
    while waiting:
        each = waiting.pop()
        file = Path(inspect.getfile(each))
        if each in seen or _is_own(each):
            continue
        seen.add(each)
        if _PACKAGE not in file.parents:
            digest.update(file.read_bytes())
        used = inspect.getclosurevars(each)
        for name, value in sorted({**used.globals, **used.nonlocals}.items()):
            inner = getattr(value, "py_func", value)
            if isinstance(inner, types.FunctionType):
                waiting.append(inner)
            elif isinstance(value, types.ModuleType):
                source = Path(getattr(value, "__file__", None) or "")
                digest.update(source.read_bytes() if source.parent == file.parent else name.encode())
            else:  # a constant, which is compiled in
                digest.update(f"{name}={value!r}".encode())
    return digest.hexdigest()


def _is_own(function: Any) -> bool:
    """Tell whether a function is of the package, with no name bound to anything else."""
    module = sys.modules.get(function.__module__)
    return _PACKAGE in Path(inspect.getfile(function)).parents and function.__globals__ is getattr(
        module, "__dict__", 0
    )


class _Locator(caching._CacheLocator):  # type: ignore[misc]  # noqa: SLF001  # Numba has no public hook for the folder
    """Tells Numba where a function's machine code lies."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self._py_file = inspect.getfile(function)

    def get_cache_path(self) -> str:
        return str(cache_folder())

    def get_source_stamp(self) -> str:
        return ""  # not yet: when a kernel is decorated, the names that it uses need not exist

    def get_disambiguator(self) -> str:
        # Two files may share a base name (graphs/kernels.py and a user's kernels.py).
        return hashlib.sha256(self._py_file.encode()).hexdigest()[:8]


def _cache(function: Callable[..., Any]) -> caching.FunctionCache:
    locator = _Locator(function)

    class Implementation(caching.CompileResultCacheImpl):  # type: ignore[misc]
        _locator_classes = (types.SimpleNamespace(from_function=lambda *_: locator),)

    class Cache(caching.FunctionCache):  # type: ignore[misc]
        """A cache that is a help and never a hindrance: what cannot be read or written is compiled anew."""

        _impl_class = Implementation

        def load_overload(self, signature: Any, target: Any) -> Any:
            self._cache_file._source_stamp = _stamp(function)  # noqa: SLF001
            try:
                return super().load_overload(signature, target)
            except Exception:  # noqa: BLE001  # a damaged file raises anything
                return None

        def holds(self, signature: Any, target: Any) -> bool:
            self._cache_file._source_stamp = _stamp(function)  # noqa: SLF001
            try:
                target.refresh()
                return self._index_key(signature, target.codegen()) in self._cache_file._load_index()  # noqa: SLF001
            except Exception:  # noqa: BLE001  # a damaged file raises anything
                return False

        def save_overload(self, signature: Any, data: Any) -> None:
            try:
                super().save_overload(signature, data)
            except Exception:  # noqa: BLE001
                with contextlib.suppress(Exception):  # a full disk
                    self.flush()
                    super().save_overload(signature, data)

    return Cache(function)


def _compile(function: F, *, inline: bool) -> F:
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
    if not numba.config.DISABLE_JIT and cache_folder() is not None and Path(inspect.getfile(function)).exists():
        dispatcher._cache = _cache(function)  # noqa: SLF001
    return dispatcher  # type: ignore[no-any-return]


def kernel(function: F) -> F:
    """Compile a function that allocates nothing; it is compiled when it is first called, and copied into its callers.

    A function whose name begins with an underscore can be called by other kernels only.
    """
    return _compile(function, inline=True)


def rare_kernel(function: F) -> F:
    """Do the same for a large function that runs rarely: it stays apart from its callers, which compile faster."""
    return _compile(function, inline=False)


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
    return _compile(rebind(template, name, **bindings), inline=False)


def signature_of(*arguments: object) -> tuple[Any, ...]:
    """Return the types of arguments, by which machine code is found."""
    return tuple(numba.typeof(argument) for argument in arguments)


def is_kept(function: Any, signature: tuple[Any, ...]) -> bool:
    """Tell whether a kernel need not be compiled for this signature, since its machine code is in memory or on disk."""
    holds = getattr(function._cache, "holds", None)  # noqa: SLF001
    return signature in function.overloads or (holds is not None and holds(signature, function.targetctx))


def entry(function: F, *arguments: object) -> F:
    """Return the machine code of a kernel for arguments of these types, compiling it if need be.

    A call through it does not look at the types again, which for two dozen arrays takes longer than most kernels run.
    Every later call must pass the same types.
    """
    if not hasattr(function, "py_func"):  # the JIT is off
        return function
    signature = signature_of(*arguments)
    function.compile(signature)  # type: ignore[attr-defined]
    return function.overloads[signature].entry_point  # type: ignore[attr-defined, no-any-return]
