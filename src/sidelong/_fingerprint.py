"""What the machine code of a function depends on, as one hash.

That is its bytecode and constants, the values that it captured, and the functions, arrays and numbers that it reaches
by global names, also through modules. The functions of the package's inner rooms stand for themselves: a hash of their
sources keys the folder of machine code.
"""

from __future__ import annotations

import enum
import functools
import hashlib
import pickle
import sys
import sysconfig
import types
import uuid
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable

PACKAGE = Path(__file__).parent
#: An edit of these leaves all machine code as it is. A kernel in one of them has a fingerprint, like a user's.
_OUTER_ROOMS = ("claims", "cli", "display", "evaluation", "integrations", "outcomes", "service", "studies")
#: The compiler knows these by name, and its own version is part of every key.
_KNOWN = {"numpy", "numba", "scipy", "sidelong"}


def fingerprint(*values: object) -> str:
    """Return a hash of functions: equal ones mean equal code, constants, closures and globals."""
    return _Walk(values).digest.hexdigest()[:32]


def kernels_within(function: object) -> list[Any]:
    """Return the compiled functions that a function is made of, itself among them, each after those that it calls."""
    return _Walk([function]).kernels


def is_own(function: types.FunctionType) -> bool:
    """Tell whether a function is of an inner room of the package, with no name bound to anything else."""
    module = sys.modules.get(function.__module__)
    unbound = function.__closure__ is None and function.__globals__ is getattr(module, "__dict__", None)
    return unbound and is_inner(function.__code__.co_filename)


def is_of_package(function: types.FunctionType) -> bool:
    """Tell whether a function and all kernels that it is made of are of the package, in whichever room."""
    made_of = (function, *(each.py_func for each in kernels_within(function)))
    return all(PACKAGE in Path(each.__code__.co_filename).parents for each in made_of)


@functools.cache
def is_inner(file: str) -> bool:
    """Tell whether a file is of the package, and of none of its outer rooms."""
    path = Path(file)
    return PACKAGE in path.parents and path.relative_to(PACKAGE).parts[0] not in _OUTER_ROOMS


class _Walk:
    """A walk over values and all that they reach."""

    def __init__(self, values: Iterable[object]) -> None:
        self.digest = hashlib.sha256()
        self.kernels: list[Any] = []
        self._seen: set[object] = set()
        for value in values:
            self._add(value, frozenset())

    def _add(self, value: Any, names: frozenset[str]) -> None:
        """Add a value; `names` are those by which a module may be asked for more."""
        if hasattr(value, "py_func"):
            self._add_kernel(value)
        elif isinstance(value, types.FunctionType):
            self.digest.update(f"{value.__module__}.{value.__qualname__}".encode())
            if value not in self._seen and not is_own(value):
                self._seen.add(value)
                self._add_function(value)
        elif isinstance(value, types.CodeType):
            self.digest.update(value.co_code + repr((value.co_names, value.co_varnames, value.co_argcount)).encode())
            for constant in value.co_consts:
                self._add(constant, names)
        elif isinstance(value, types.ModuleType):
            self.digest.update(value.__name__.encode())
            if not _is_known(value) and (value, names) not in self._seen:
                self._seen.add((value, names))
                self._add_named(vars(value), names)
        elif isinstance(value, tuple | list):
            self._add(type(value), names)
            for each in value:
                self._add(each, names)
        else:
            _add_constant(self.digest, value)

    def _add_kernel(self, kernel: Any) -> None:
        """Add what was compiled, by the package or by a user, with options."""
        self.digest.update(repr(sorted(getattr(kernel, "targetoptions", {}).items())).encode())
        self._add(kernel.py_func, frozenset())
        if kernel not in self.kernels:
            self.kernels.append(kernel)

    def _add_function(self, function: types.FunctionType) -> None:
        names = frozenset(_names(function.__code__))
        self._add(function.__code__, names)
        self._add(function.__defaults__, names)
        self._add(sorted((function.__kwdefaults__ or {}).items()), names)
        for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
            self.digest.update(name.encode())
            self._add(cell.cell_contents, names)
        self._add_named(function.__globals__, names)

    def _add_named(self, values: dict[str, Any], names: frozenset[str]) -> None:
        for name in sorted(names & values.keys()):
            self.digest.update(name.encode())
            self._add(values[name], names)


def _add_constant(digest: hashlib._Hash, value: Any) -> None:
    if isinstance(value, type):
        described = getattr(value, "_fields", ())
        if issubclass(value, enum.Enum):
            described = [(member.name, member.value) for member in value]
        digest.update(f"{value.__module__}.{value.__qualname__}{described!r}".encode())
    elif isinstance(value, enum.Enum):
        digest.update(f"{type(value).__qualname__}.{value.name}={value.value!r}".encode())
    elif isinstance(value, set | frozenset):  # whose order differs from process to process
        digest.update(repr(sorted(map(repr, value))).encode())
    else:
        try:
            digest.update(pickle.dumps(value, protocol=5))
        except (pickle.PicklingError, TypeError, AttributeError):
            digest.update(uuid.uuid4().bytes)  # cannot be compared, so it equals nothing


def _is_known(module: types.ModuleType) -> bool:
    """Tell whether a module is one of those that the compiler knows, and not a user's of the same name."""
    top = module.__name__.partition(".")[0]
    source = getattr(module, "__file__", None)
    if top not in sys.stdlib_module_names:
        return top in _KNOWN
    return source is None or Path(sysconfig.get_path("stdlib")) in Path(source).parents


def _names(code: types.CodeType) -> set[str]:
    inner = (_names(constant) for constant in code.co_consts if isinstance(constant, types.CodeType))
    return set(code.co_names).union(*inner)
