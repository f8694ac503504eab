"""The one compile policy: how a plain Python function becomes machine code.

A *kernel* is a function over floats, integers and NamedTuples of arrays. `kernel` compiles it on its first
call, without fastmath, so that it gives the bits that plain Python gives. With ``NUMBA_DISABLE_JIT=1`` it stays
plain Python.

A *template* is a kernel that calls others by names that are bound later: the simulation loop calls
``distribution`` and ``update``, which every learner has. `specialise` binds them.

What kernels call is a part of them (`sidelong._parts`), and what Python calls is machine code, which is kept in a
folder (`sidelong._cache`).
"""

from __future__ import annotations

import types
from typing import TYPE_CHECKING, Any, TypeVar

import numba
import numpy as np
from numba.core.errors import NumbaError as CompilationError

from sidelong._parts import PartDispatcher

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["CompilationError", "entry", "is_kept", "kernel", "rare_kernel", "rebind", "signature_of", "specialise"]

F = TypeVar("F", bound="Callable[..., Any]")


def _compile(function: F, *, inline: bool) -> F:
    if numba.config.DISABLE_JIT:
        return function
    options = {
        "nopython": True,
        "nogil": True,
        # A division gives what IEEE says, as in NumPy, and keeps its loop free of branches.
        "error_model": "numpy",
        # A kernel allocates nothing, so that it needs no reference counts, which cost 190 ns a round at ten arms.
        "_nrt": False,
        # A state is a hundred machine words or more. To pass them takes longer than most kernels run.
        "forceinline": inline,
        "no_cfunc_wrapper": True,
    }
    return PartDispatcher(function, None, options)


def kernel(function: F) -> F:
    """Compile a function that allocates nothing, when it is first called; it is copied into its callers."""
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
    """Tell whether a kernel need not be compiled for this signature, since it is in memory or on disk."""
    holds = getattr(function._cache, "holds", None)  # noqa: SLF001
    return signature in function.overloads or (holds is not None and holds(signature, function.targetctx))


def entry(function: F, *arguments: object, before: Callable[[], None] | None = None) -> F:
    """Return the machine code of a kernel for arguments of these types, compiling it if need be.

    A call through it does not look at the types again, which for two dozen arrays takes longer than most kernels run.
    Every later call must pass the same types.

    Args:
        function: the kernel.
        *arguments: what it will be called with, or things of the same types.
        before: is called before it is compiled, or loaded from disk.

    """
    if not hasattr(function, "whole"):  # the JIT is off
        return function
    function.forget_old_code()  # type: ignore[attr-defined]
    entries, shape = function.entries, _shape(arguments)  # type: ignore[attr-defined]
    if shape not in entries:
        if before is not None:
            before()
        signature = signature_of(*arguments)
        function.whole.compile(signature)
        entries[shape] = function.whole.overloads[signature].entry_point
    return entries[shape]  # type: ignore[no-any-return]


def _shape(value: object) -> Any:
    """Return what the type of a value depends on, in a tenth of the time that Numba takes to find the type."""
    if type(value) is np.ndarray:
        return value.dtype, value.ndim, value.flags.num
    return (type(value), *map(_shape, value)) if isinstance(value, tuple) else numba.typeof(value)
