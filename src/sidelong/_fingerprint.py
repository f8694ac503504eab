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
from typing import Any

__all__ = ["PACKAGE", "fingerprint", "is_inner", "is_own"]

PACKAGE = Path(__file__).parent
#: An edit of these leaves all machine code as it is. A kernel in one of them has a fingerprint, like a user's.
_OUTER_ROOMS = ("claims", "cli", "evaluation", "integrations", "outcomes", "service", "studies")
#: The compiler knows these by name, and its own version is part of every key.
_KNOWN = {"numpy", "numba", "scipy", "sidelong"}


def fingerprint(*values: object) -> str:
    """Return a hash of functions: equal ones mean equal code, constants, closures and globals."""
    digest = hashlib.sha256()
    seen: set[object] = set()
    for value in values:
        _add(digest, value, frozenset(), seen)
    return digest.hexdigest()[:32]


def is_own(function: types.FunctionType) -> bool:
    """Tell whether a function is of an inner room of the package, with no name bound to anything else."""
    module = sys.modules.get(function.__module__)
    return is_inner(function.__code__.co_filename) and function.__globals__ is getattr(module, "__dict__", None)


@functools.cache
def is_inner(file: str) -> bool:
    """Tell whether a file is of the package, and of none of its outer rooms."""
    path = Path(file)
    return PACKAGE in path.parents and path.relative_to(PACKAGE).parts[0] not in _OUTER_ROOMS


def _add(digest: hashlib._Hash, value: Any, names: frozenset[str], seen: set[object]) -> None:
    """Add a value to a hash; `names` are those by which a module may be asked for more."""
    if hasattr(value, "py_func"):  # compiled, by the package or by a user, with options
        digest.update(repr(sorted(getattr(value, "targetoptions", {}).items())).encode())
        value = value.py_func
    if isinstance(value, types.FunctionType):
        digest.update(f"{value.__module__}.{value.__qualname__}".encode())
        if value not in seen and not is_own(value):
            seen.add(value)
            _add_function(digest, value, seen)
    elif isinstance(value, types.CodeType):
        digest.update(value.co_code + repr((value.co_names, value.co_varnames, value.co_argcount)).encode())
        for constant in value.co_consts:
            _add(digest, constant, names, seen)
    elif isinstance(value, types.ModuleType):
        digest.update(value.__name__.encode())
        if not _is_known(value) and (value, names) not in seen:
            seen.add((value, names))
            _add_named(digest, vars(value), names, seen)
    elif isinstance(value, tuple | list):
        _add(digest, type(value), names, seen)
        for each in value:
            _add(digest, each, names, seen)
    else:
        _add_constant(digest, value)


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


def _add_function(digest: hashlib._Hash, function: types.FunctionType, seen: set[object]) -> None:
    names = frozenset(_names(function.__code__))
    _add(digest, function.__code__, names, seen)
    _add(digest, function.__defaults__, names, seen)
    _add(digest, sorted((function.__kwdefaults__ or {}).items()), names, seen)
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        digest.update(name.encode())
        _add(digest, cell.cell_contents, names, seen)
    _add_named(digest, function.__globals__, names, seen)


def _add_named(digest: hashlib._Hash, values: dict[str, Any], names: frozenset[str], seen: set[object]) -> None:
    for name in sorted(names & values.keys()):
        digest.update(name.encode())
        _add(digest, values[name], names, seen)


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
