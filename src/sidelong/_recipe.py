"""A kernel and the types of its arguments in words, from which another process makes the same machine code.

Only what the package has is described: another module may do more than define things when it is imported. And only
NumPy is needed, not Numba.
"""

from __future__ import annotations

import functools
import hashlib
import importlib
import importlib.util
import json
import platform
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from sidelong._jit import specialise
from sidelong._kernel import Kernel

if TYPE_CHECKING:
    from collections.abc import Callable

_NUMBERS: dict[str, Any] = {"int": 1, "float": 1.0, "bool": True}


def describe(kernel: Callable[..., Any], arguments: tuple[object, ...]) -> str | None:
    """Return a kernel for arguments of these types in words, or None if some of it is not the package's."""
    try:
        return json.dumps([_kernel(kernel), [_type(each) for each in arguments]])
    except TypeError:
        return None


def follow(words: str) -> tuple[Callable[..., Any], tuple[object, ...]]:
    """Return the kernel, and arguments of the same types."""
    kernel, arguments = json.loads(words)
    return _made(kernel), tuple(map(_example, arguments))


@functools.cache
def name_of(words: str) -> str:
    """Return what names it in a folder, together with the versions that its machine code depends on."""
    versions = [sys.implementation.cache_tag, platform.machine(), *map(_installed, ("numba", "llvmlite"))]
    return hashlib.sha256(json.dumps([words, versions]).encode()).hexdigest()[:24]


@functools.cache
def _installed(package: str) -> list[Any]:
    """Return which copy of a package there is, without loading it."""
    found = importlib.util.find_spec(package)
    place = found.origin if found is not None else None
    return [place, Path(place).stat().st_mtime_ns] if place else [None]


def _kernel(value: Any) -> Any:
    if isinstance(value, int):  # or a flag
        return value
    if isinstance(value, Kernel) and value.template is not None:
        template, bindings = value.template
        return [*_place(template), value.__name__, {name: _kernel(each) for name, each in bindings.items()}]
    return _place(value)


def _made(words: Any) -> Any:
    if isinstance(words, int):
        return words
    module, name, *bound = words
    found = getattr(importlib.import_module(module), name)
    return specialise(found, bound[0], **{key: _made(each) for key, each in bound[1].items()}) if bound else found


def _place(value: Any) -> list[str]:
    """Return where the package has a function or a class."""
    module, name = value.__module__, value.__qualname__
    if not module.startswith("sidelong.") or getattr(sys.modules.get(module), name, None) is not value:
        raise TypeError(f"{value!r} is not the package's")
    return [module, name]


def _type(value: Any) -> Any:
    if type(value) is np.ndarray:
        layout = "C" if value.flags.c_contiguous else "F" if value.flags.f_contiguous else "A"
        return ["array", value.dtype.str, value.ndim, layout, bool(value.flags.writeable)]
    if isinstance(value, np.generic):
        return ["number", value.dtype.str]
    if isinstance(value, tuple):
        return ["tuple", *([] if type(value) is tuple else _place(type(value))), [_type(each) for each in value]]
    if type(value).__name__ not in _NUMBERS:
        raise TypeError(f"{value!r} is not a number, an array or a tuple of them")
    return [type(value).__name__]


def _example(words: Any) -> Any:
    kind, *rest = words
    if kind == "array":
        dtype, ndim, layout, writeable = rest
        array = np.zeros((4,) * ndim, dtype, order="F" if layout == "F" else "C")
        array = array[(slice(None, None, 2),) * ndim] if layout == "A" else array
        array.flags.writeable = writeable
        return array
    if kind == "number":
        return np.dtype(rest[0]).type(1)
    if kind == "tuple":
        *place, parts = rest
        examples = map(_example, parts)
        return getattr(importlib.import_module(place[0]), place[1])(*examples) if place else tuple(examples)
    return _NUMBERS[kind]
