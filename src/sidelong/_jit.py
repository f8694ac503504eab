"""The one compile policy: how a plain Python function becomes machine code.

A *kernel* is a function over floats, integers and NamedTuples of arrays. `kernel` compiles it on its first
call, without fastmath, so that it gives the bits that plain Python gives. With ``NUMBA_DISABLE_JIT=1`` it stays
plain Python.

A *template* is a kernel that calls others by names that are bound later: the simulation loop calls
``distribution`` and ``update``, which every learner has. `specialise` binds them.

What kernels call is a part of them, and what Python calls is machine code, which is kept in a folder
(`sidelong._cache`). Both need parts of Numba that are not public, and are in `sidelong._numba`. Where this Numba has
others, a kernel is what `numba.njit` makes of it: the same bits, but slower, and compiled in each process anew. Nothing
is kept on disk then, so that no old machine code can be run.
"""

from __future__ import annotations

import functools
import multiprocessing
import types
import warnings
import weakref
from typing import TYPE_CHECKING, Any, TypeVar

import numba
import numpy as np

from sidelong._fingerprint import fingerprint, kernels_within
from sidelong._install import pip_install

if TYPE_CHECKING:
    from collections.abc import Callable

F = TypeVar("F", bound="Callable[..., Any]")
CompilationError = numba.errors.NumbaError

#: The oldest Numba that is allowed, and the newest that the tests were run with.
TESTED = ("0.65", "0.68")


@functools.cache
def _new_kernel() -> Callable[..., Any] | None:
    """Return what makes kernels of the private parts of Numba, or None if this Numba has others than expected."""
    try:
        from sidelong._numba import check, new_kernel  # noqa: PLC0415  # importing it is a part of the check

        check()
    except Exception as error:  # noqa: BLE001  # other parts may fail in any way
        if multiprocessing.parent_process() is None:  # once, and not in each process of a pool
            oldest, newest = TESTED
            known = pip_install(f"'numba>={oldest},<={newest}.99'")
            warnings.warn(
                f"Numba {numba.__version__} has other private parts than this version of sidelong knows "
                f"({type(error).__name__}: {error}). Results are the same, but each process compiles anew what it "
                f"needs, and simulations take up to eight times as long. {known}",
                RuntimeWarning,
                stacklevel=4,
            )
        return None
    return new_kernel


def _compile(function: F, *, inline: bool) -> F:
    if numba.config.DISABLE_JIT:
        return function
    if (new_kernel := _new_kernel()) is not None:
        return new_kernel(function, inline=inline)  # type: ignore[no-any-return]
    # A division gives what IEEE says, as in NumPy, and keeps its loop free of branches.
    made = numba.njit(function, nogil=True, error_model="numpy")
    _compiled_as[made] = fingerprint(made)
    return made  # type: ignore[no-any-return]


_compiled_as: weakref.WeakKeyDictionary[Any, str] = weakref.WeakKeyDictionary()


def _forget_old_code(function: Any) -> None:
    """Compile public kernels anew if a number or a function that went into them has been changed since."""
    for each in kernels_within(function):  # those that others call come first
        if each in _compiled_as and _compiled_as[each] != (now := fingerprint(each)):
            each.recompile()
            _compiled_as[each] = now


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
    return bool(function.is_kept(signature))


def entry(function: F, *arguments: object, before: Callable[[], None] | None = None) -> F:
    """Return the machine code of a kernel for arguments of these types, compiling it if need be.

    A call through it does not look at the types again, which for two dozen arrays takes longer than most kernels run.
    Every later call must pass the same types.

    Args:
        function: the kernel.
        *arguments: what it will be called with, or things of the same types.
        before: is called before it is compiled, or loaded from disk.

    """
    made: Any = function
    if not hasattr(made, "py_func"):  # the JIT is off
        return function
    if not hasattr(made, "whole"):  # it is a public kernel
        _forget_old_code(made)
        made.compile(signature_of(*arguments))
        return function
    made.forget_old_code()
    shape = _shape(arguments)
    if shape not in made.entries:
        if before is not None:
            before()
        made.entries[shape] = made.whole.machine_code(signature_of(*arguments))
    return made.entries[shape]  # type: ignore[no-any-return]


def _shape(value: object) -> Any:
    """Return what the type of a value depends on, in a tenth of the time that Numba takes to find the type."""
    if type(value) is np.ndarray:
        return value.dtype, value.ndim, value.flags.num
    return (type(value), *map(_shape, value)) if isinstance(value, tuple) else numba.typeof(value)
