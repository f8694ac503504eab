"""Where machine code is kept from one process to the next, and the key by which it is found.

The key of a kernel is a hash of all that is compiled: its bytecode and constants, the values that it captured, and the
functions, arrays, numbers and classes that it reaches by global names, also through modules. Docstrings, comments, line
numbers and the names of files are left out, so that an edit of them recompiles nothing. What this process has loaded is
hashed, and not the sources, which may have been edited since.

``SIDELONG_CACHE_DIR`` moves the folder. No variable of Numba does: its own cache is not used.
"""

from __future__ import annotations

import contextlib
import enum
import functools
import hashlib
import opcode
import os
import pickle
import re
import sys
import sysconfig
import time
import types
import uuid
import weakref
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from sidelong.machine import replacing

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

if TYPE_CHECKING:
    from collections.abc import Iterator

PACKAGE = Path(__file__).parent
#: Modules that the compiler knows by name; its own version is part of every key.
_KNOWN_MODULES = {"numpy", "numba", "scipy"}
_LOADS_CONSTANT = frozenset(opcode.hasconst)
#: When the files take more bytes than this, those that were used least recently go until they take half of it.
_MOST_BYTES = 1_000_000_000


# The key


class CodeKey(NamedTuple):
    """What the machine code of a kernel depends on, beside the types of its arguments."""

    key: str
    own: bool  #: whether all of it is the package's, and so stays as it is while a process runs
    kernels: dict[Any, str]  #: the kernels that are not, with their keys, each after those that it calls


#: The keys of functions of the package that reach nothing but the package.
_own_keys: weakref.WeakKeyDictionary[types.FunctionType, str] = weakref.WeakKeyDictionary()


def code_key(*functions: object) -> CodeKey:
    """Return the key of a kernel, or of several functions together."""
    reader = _CodeHasher({}, {})
    for function in functions:
        reader.add(function)
    return CodeKey(reader.key, reader.own, reader.kernels)


class _CodeHasher:
    """Hashes values with all that they reach."""

    def __init__(self, kernels: dict[Any, str], read: dict[types.FunctionType, tuple[str, bool]]) -> None:
        self._digest = hashlib.sha256()
        self._read = read  # keys of the functions that were met
        self.own = True
        self.kernels = kernels

    @property
    def key(self) -> str:
        return self._digest.hexdigest()[:32]

    def add(self, value: Any, names: frozenset[str] = frozenset()) -> None:
        """Add a value; `names` are those by which a module may be asked for more."""
        if hasattr(value, "py_func"):
            self._add_kernel(value)
        elif isinstance(value, types.FunctionType):
            key, own = self._function_key(value)
            self._digest.update(key.encode())
            self.own &= own
        elif isinstance(value, types.CodeType):
            self._add_code(value, names)
        elif isinstance(value, types.ModuleType):
            self._digest.update(value.__name__.encode())
            if not _is_known(value.__name__):
                self._add_named(vars(value), names)
        elif isinstance(value, tuple | list):
            self.add(type(value), names)
            for each in value:
                self.add(each, names)
        else:
            self._digest.update(_constant(value))

    def _add_kernel(self, kernel: Any) -> None:
        """Add what is compiled, by the package or by a user, with options."""
        inner = _CodeHasher(self.kernels, self._read)
        inner._digest.update(repr(sorted(getattr(kernel, "targetoptions", {}).items())).encode())
        inner.add(kernel.py_func)
        if not inner.own:
            self.kernels[kernel] = inner.key
        self._digest.update(inner.key.encode())
        self.own &= inner.own

    def _function_key(self, function: types.FunctionType) -> tuple[str, bool]:
        """Return the key of a function, and whether it and all that it reaches is the package's."""
        if function in _own_keys:
            return _own_keys[function], True
        if function not in self._read:
            name = f"{function.__module__}.{function.__qualname__}"
            self._read[function] = name, True  # for itself, if it calls itself
            if not _is_known(str(function.__module__)):
                inner = _CodeHasher(self.kernels, self._read)
                inner._digest.update(name.encode())
                inner._add_parts(function)
                self._read[function] = inner.key, inner.own
                if inner.own:
                    _own_keys[function] = inner.key
        return self._read[function]

    def _add_parts(self, function: types.FunctionType) -> None:
        self.own &= _is_of_package(function.__code__.co_filename)
        names = frozenset(_names(function.__code__))
        self.add(function.__code__, names)
        self.add(function.__defaults__, names)
        self.add(sorted((function.__kwdefaults__ or {}).items()), names)
        for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
            self._digest.update(name.encode())
            self.add(cell.cell_contents, names)
        self._add_named(function.__globals__, names)

    def _add_named(self, values: dict[str, Any], names: frozenset[str]) -> None:
        for name in sorted(names & values.keys()):
            self._digest.update(name.encode())
            self.add(values[name], names)

    def _add_code(self, code: types.CodeType, names: frozenset[str]) -> None:
        """Add bytecode with the constants that it loads, numbered as they come: no docstring is among them."""
        text, places, extended = bytearray(code.co_code), dict[int, int](), 0
        for k in range(0, len(text), 2):
            argument = text[k + 1] | extended << 8
            extended = argument if text[k] == opcode.EXTENDED_ARG else 0
            if text[k] in _LOADS_CONSTANT:
                text[k + 1] = places.setdefault(argument, len(places)) & 0xFF
        self._digest.update(text + repr((code.co_names, code.co_varnames, code.co_argcount)).encode())
        for place in places:
            self.add(code.co_consts[place], names)


def _constant(value: Any) -> bytes:
    if isinstance(value, type):
        described = getattr(value, "_fields", ())
        if issubclass(value, enum.Enum):
            described = [(member.name, member.value) for member in value]
        return f"{value.__module__}.{value.__qualname__}{described!r}".encode()
    if isinstance(value, enum.Enum):
        return f"{type(value).__qualname__}.{value.name}={value.value!r}".encode()
    if isinstance(value, set | frozenset):  # whose order differs from process to process
        return repr(sorted(map(repr, value))).encode()
    try:
        return pickle.dumps(value, protocol=5)
    except (pickle.PicklingError, TypeError, AttributeError):
        return uuid.uuid4().bytes  # cannot be compared, so it equals nothing


@functools.cache
def _is_of_package(file: str) -> bool:
    return PACKAGE in Path(file).parents


@functools.cache
def _is_known(module: str) -> bool:
    """Tell whether a module is one of those that the compiler knows, and not a user's of the same name."""
    top = module.partition(".")[0]
    source = getattr(sys.modules.get(module), "__file__", None)
    if top not in sys.stdlib_module_names or top == "__main__":
        return top in _KNOWN_MODULES
    return source is None or Path(sysconfig.get_path("stdlib")) in Path(source).parents


def _names(code: types.CodeType) -> set[str]:
    inner = (_names(constant) for constant in code.co_consts if isinstance(constant, types.CodeType))
    return set(code.co_names).union(*inner)


# The folder


@functools.cache
def cache_folder() -> Path | None:
    """Return the folder for machine code, or None where there is none and none can be made: then each process compiles.

    It may be one that can only be read, as in an image whose machine code was compiled ahead.
    """
    folder = Path(os.environ.get("SIDELONG_CACHE_DIR") or _user_cache()).absolute() / "kernels"
    with contextlib.suppress(OSError):
        folder.mkdir(parents=True, exist_ok=True)
    return folder if folder.is_dir() and os.access(folder, os.R_OK | os.X_OK) else None


def is_writable() -> bool:
    """Tell whether machine code can be written into the folder, and not only be read."""
    folder = cache_folder()
    return folder is not None and os.access(folder, os.W_OK)


def _user_cache() -> Path:
    """Return the folder where this system's user keeps what programs can make anew."""
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData/Local") / "sidelong" / "Cache"
    if sys.platform == "darwin":
        return Path.home() / "Library/Caches/sidelong"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "sidelong"


@functools.cache
def _remove_least_used(folder: Path) -> None:
    """Make room, once in a process."""
    with contextlib.suppress(OSError):  # another process may remove the same
        files = [(stat.st_mtime, stat.st_size, each) for each in folder.glob("*.code") for stat in [each.stat()]]
        total = sum(size for _, size, _ in files)
        if total > _MOST_BYTES:
            for _, size, file in sorted(files):
                if total > _MOST_BYTES // 2:
                    file.unlink()
                    total -= size


class LockSettings:
    """How this process and others that want the same machine code wait for each other."""

    timeout = 30.0  #: seconds; another process that compiles may have been stopped
    low_priority = False  #: whether others need not wait for this process


@functools.cache
def _lock_file(folder: Path) -> int:
    """Open the file of locks, once for each process: to close it would give up all of them."""
    return os.open(folder / "locks", os.O_RDWR | os.O_CREAT, 0o600)


class CodeFiles:
    """The files of a function in a folder: one for each key, so that none is ever written over by other code.

    A file is whole or not there, and a damaged one is not read: damaged code of LLVM crashes the process.
    """

    def __init__(self, folder: Path, function: types.FunctionType, kind: str) -> None:
        name = f"{function.__module__}.{function.__qualname__}-{kind}"
        self._folder = folder
        self._start = str(folder / re.sub(r'[<>:"/\\|?*]', "", name))
        self._lock = int.from_bytes(hashlib.sha256(self._start.encode()).digest()[:7])  # the place of a byte

    def _path(self, key: str) -> Path:
        return Path(f"{self._start}.{hashlib.sha256(key.encode()).hexdigest()[:24]}.code")

    @contextlib.contextmanager
    def locked(self) -> Iterator[None]:
        """Let no other process do inside the same with this function: what one compiles, the others then load.

        A process that ends or is killed gives its locks up. Where there are none, it goes on without. So it does after
        half a minute, and then waits no more for other functions either. Two that compile the same do no harm, since a
        file is whole or not there.
        """
        held = False
        with contextlib.suppress(OSError):
            held = fcntl is not None and self._wait(_lock_file(self._folder))
        try:
            if held and LockSettings.low_priority:
                self._release()
                held = False
            yield
        finally:
            if held:
                self._release()

    def _release(self) -> None:
        fcntl.lockf(_lock_file(self._folder), fcntl.LOCK_UN, 1, self._lock)

    def _wait(self, file: int) -> bool:
        end = time.monotonic() + LockSettings.timeout
        while True:
            try:
                fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, self._lock)
            except (BlockingIOError, PermissionError):  # it is held, as one system or another says it
                if time.monotonic() > end:
                    LockSettings.timeout = 0.0  # whoever was stopped may hold others too
                    return False
                time.sleep(0.01)
            else:
                return True

    def contains(self, key: str) -> bool:
        """Tell whether there is a file for a key."""
        return self._path(key).exists()

    def load(self, key: str) -> bytes:
        """Return what was saved under a key."""
        content = self._path(key).read_bytes()
        if hashlib.sha256(content[32:]).digest() != content[:32]:
            raise ValueError("the file is damaged")
        with contextlib.suppress(OSError):
            os.utime(self._path(key))  # it was used
        return content[32:]

    def save(self, key: str, content: bytes) -> None:
        """Write a file at once."""
        _remove_least_used(self._folder)
        with replacing(self._path(key), flushed=False) as file:  # a damaged file is noticed, and compiled anew
            file.write(hashlib.sha256(content).digest() + content)
