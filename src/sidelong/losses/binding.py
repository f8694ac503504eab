"""A user's functions as kernels.

A world's kernels take its arrays first. A compiled function is therefore called from a small template that
drops them; a plain one, from a closure.
"""

from __future__ import annotations

import hashlib
import inspect
import pickle
import types
import uuid
from typing import TYPE_CHECKING, Any, NamedTuple

import numba
import numpy as np

from sidelong._jit import specialise
from sidelong.losses.kernels import WorldArrays, mean

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["Functions", "bind", "code_of", "is_compiled"]


class Functions(NamedTuple):
    """What a user gave: each takes (seed, run, t, arm)."""

    loss: Callable[[int, int, int, int], float]
    mean: Callable[[int, int, int, int], float] | None


def is_compiled(function: Callable[..., float]) -> bool:
    """Return whether a function was decorated with `sidelong.losses.compiled`, or with numba.njit."""
    # With the JIT off a decorated function cannot be told from a plain one, and either runs everywhere.
    without_jit = bool(numba.config.DISABLE_JIT) and isinstance(function, types.FunctionType)
    return hasattr(function, "py_func") or without_jit


user: Any = None  # the user's function


def _call(world: WorldArrays, seed: int, run: int, t: int, arm: int) -> float:  # noqa: ARG001  # the loop passes it
    # Signed numbers all: in compiled code, a sum of a signed and an unsigned one is a float.
    return float(user(np.int64(seed), np.int64(run), np.int64(t), np.int64(arm)))


def bind(functions: Functions) -> tuple[Callable[..., float], Callable[..., float]]:
    """Return the kernels loss and mean."""
    if is_compiled(functions.loss):
        # Both names tell of both functions, so that a loop that binds the two can be named after either.
        name = code_of(*functions)
        loss = specialise(_call, f"loss_{name}", user=functions.loss)
        return loss, specialise(_call, f"mean_{name}", user=functions.mean) if functions.mean else mean
    slow_mean: Callable[..., float] = getattr(mean, "py_func", mean)
    return _plain(functions.loss), _plain(functions.mean) if functions.mean else slow_mean


def _plain(function: Callable[..., float]) -> Callable[..., float]:
    # Python's own integers, which do not overflow.
    def call(world: WorldArrays, seed: int, run: int, t: int, arm: int) -> float:  # noqa: ARG001
        return float(function(int(seed), int(run), int(t), int(arm)))

    return call


def code_of(*functions: Callable[..., Any] | None) -> str:
    """Return a name for what the functions do: equal names mean equal code, constants, closures and globals.

    Machine code is found by name. Two functions made by one factory have one file, one line and one bytecode,
    and differ only in the values they captured.
    """
    digest = hashlib.sha256()
    seen: set[int] = set()
    for function in functions:
        _add(digest, function, seen)
    return digest.hexdigest()[:16]


def _add(digest: hashlib._Hash, value: object, seen: set[int]) -> None:
    value = getattr(value, "py_func", value)
    if isinstance(value, types.FunctionType):
        if id(value) in seen:
            return
        seen.add(id(value))
        captured = inspect.getclosurevars(value)
        for named in (captured.nonlocals, captured.globals):
            for name in sorted(named):
                digest.update(name.encode())
                _add(digest, named[name], seen)
        _add(digest, value.__defaults__, seen)
        _add(digest, value.__code__, seen)
    elif isinstance(value, types.CodeType):
        digest.update(value.co_code + repr(value.co_names).encode())
        for constant in value.co_consts:
            _add(digest, constant, seen)
    elif isinstance(value, types.ModuleType):
        digest.update(value.__name__.encode())
    else:
        try:
            digest.update(pickle.dumps(value))
        except (pickle.PicklingError, TypeError, AttributeError):
            digest.update(uuid.uuid4().bytes)  # cannot be compared, so it equals nothing
