"""A user's functions as kernels.

A world's kernels take its arrays first. A compiled function is therefore called from a small template that
drops them; a plain one, from a closure.
"""

from __future__ import annotations

import types
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from sidelong._cache import code_key
from sidelong._jit import jit_is_off, specialise
from sidelong.errors import WorldError
from sidelong.losses.world_kernels import WorldArrays, mean

if TYPE_CHECKING:
    from collections.abc import Callable


class Functions(NamedTuple):
    """What a user gave: each takes (seed, run, t, arm)."""

    loss: Callable[[int, int, int, int], float]
    mean: Callable[[int, int, int, int], float] | None


def is_compiled(function: Callable[..., float]) -> bool:
    """Return whether a function was decorated with `sidelong.losses.compiled`, or with numba.njit."""
    # With the JIT off a decorated function cannot be told from a plain one, and either runs everywhere.
    without_jit = jit_is_off() and isinstance(function, types.FunctionType)
    return hasattr(function, "py_func") or without_jit


user: Any = None  # the user's function


def _call(world: WorldArrays, seed: int, run: int, t: int, arm: int) -> float:  # noqa: ARG001  # the loop passes it
    # Signed numbers all: in compiled code, a sum of a signed and an unsigned one is a float.
    return float(user(np.int64(seed), np.int64(run), np.int64(t), np.int64(arm)))


def bind(functions: Functions) -> tuple[Callable[..., float], Callable[..., float]]:
    """Return the kernels loss and mean."""
    if is_compiled(functions.loss):
        # Both names tell of both functions, so that a loop that binds the two can be named after either.
        name = code_key(*functions).key
        loss = specialise(_call, f"loss_{name}", user=functions.loss)
        return loss, specialise(_call, f"mean_{name}", user=functions.mean) if functions.mean else mean
    slow_mean: Callable[..., float] = getattr(mean, "py_func", mean)
    return _plain(functions.loss), _plain(functions.mean) if functions.mean else slow_mean


def _plain(function: Callable[..., float]) -> Callable[..., float]:
    # Python's own integers, which do not overflow.
    def call(world: WorldArrays, seed: int, run: int, t: int, arm: int) -> float:  # noqa: ARG001
        value = function(int(seed), int(run), int(t), int(arm))
        try:
            return float(value)
        except (TypeError, ValueError):
            raise WorldError(
                f"{function!r} must return a number; for run {run}, round {t}, arm {arm} it returned {value!r}."
            ) from None

    return call
