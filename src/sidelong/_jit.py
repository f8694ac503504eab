"""The one compile policy: how a plain Python function becomes machine code.

A *kernel* is a function over floats, integers and NamedTuples of arrays. `kernel` lets it be compiled on its first
call, without fastmath, so that it gives the bits that plain Python gives. With ``NUMBA_DISABLE_JIT=1`` it stays
plain Python. What a kernel is made of says `sidelong._kernel`.

A *template* is a kernel that calls others by names that are bound later: the simulation loop calls
``distribution`` and ``update``, which every learner has. `specialise` binds them.
"""

from __future__ import annotations

import threading
import time
import types
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from sidelong._fingerprint import fingerprint, kernels_within
from sidelong._kernel import Kernel, begins_plain, compiled_as, jit_is_off, new_kernel, numba_is_loaded

if TYPE_CHECKING:
    from collections.abc import Callable

F = TypeVar("F", bound="Callable[..., Any]")

#: So many numbers among the arguments of a kernel are little to do: those of a thousand arms, or of ten thousand edges.
#: At 1,000 arms a round of the slowest learner takes 55 ms in plain Python (of glance 9 to 41, of exp3.g++ 1 to 15). So
#: a hundred rounds take no longer than to compile.
LITTLE = 30_000
_PATIENCE = 0.4  # seconds
#: Numba compiles in one thread at a time, but looks for what is compiled in many, and fails there.
_lock = threading.RLock()


def compilation_error() -> type[Exception]:
    """Return what the compiler raises if it cannot make machine code of a function."""
    import numba  # noqa: PLC0415  # takes a third of a second

    return numba.errors.NumbaError  # type: ignore[no-any-return]


def load_compiler() -> None:
    """Load Numba now, so that nothing waits for it later."""
    if not jit_is_off():
        with _lock:
            new_kernel()


def _forget_old_code(function: Any) -> None:
    """Compile public kernels anew if a number or a function that went into them has been changed since."""
    for each in kernels_within(function):  # those that others call come first
        made = each.dispatcher if isinstance(each, Kernel) else each
        if made in compiled_as and compiled_as[made] != (now := fingerprint(each)):
            made.recompile()
            compiled_as[made] = now


def kernel(function: F) -> F:
    """Compile a function that allocates nothing, when it is first called; it is copied into its callers."""
    return function if jit_is_off() else Kernel(function, inline=True)  # type: ignore[return-value]


def rare_kernel(function: F) -> F:
    """Do the same for a large function that runs rarely: it stays apart from its callers, which compile faster."""
    return function if jit_is_off() else Kernel(function, inline=False)  # type: ignore[return-value]


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
    made = rebind(template, name, **bindings)
    return made if jit_is_off() else Kernel(made, inline=False, template=(template, bindings))  # type: ignore[return-value]


def signature_of(*arguments: object) -> tuple[Any, ...]:
    """Return the types of arguments, by which machine code is found."""
    import numba  # noqa: PLC0415  # takes a third of a second

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
    if not hasattr(function, "py_func"):  # the JIT is off
        return function
    with _lock:
        return _entry(function, arguments, before)  # type: ignore[no-any-return]


def _entry(function: Any, arguments: tuple[object, ...], before: Callable[[], None] | None) -> Any:
    made: Any = function.dispatcher if isinstance(function, Kernel) else function
    if not hasattr(made, "whole"):  # it is a public kernel
        _forget_old_code(made)
        made.compile(signature_of(*arguments))
        return made
    made.forget_old_code()
    shape = _shape(arguments)
    if shape not in made.entries:
        if before is not None:
            before()
        made.entries[shape] = made.whole.machine_code(signature_of(*arguments))
    return made.entries[shape]


def at_hand(function: F, *arguments: object) -> F | None:
    """Return the machine code of a kernel for arguments of these types, if nothing needs to be compiled for it.

    It is in memory, or on disk. None also if Numba is not loaded, which takes longer than a hundred small decisions.
    """
    if not isinstance(function, Kernel):
        return entry(function, *arguments)
    if not numba_is_loaded():
        return None
    with _lock:
        made = function.dispatcher
        if not hasattr(made, "whole"):
            return None
        kept = _shape(arguments) in made.entries or is_kept(made.whole, signature_of(*arguments))
        return entry(function, *arguments) if kept else None


def lightly(function: Callable[..., Any], *arguments: object) -> Any:
    """Call a kernel, in plain Python if there is little to do and machine code is not at hand."""
    if is_light(function, arguments):
        return plainly(function, *arguments)
    return entry(function, *arguments)(*arguments)


def is_light(function: Callable[..., Any], arguments: tuple[object, ...], most: int = LITTLE) -> bool:
    """Tell whether plain Python is to run a kernel.

    It is if no machine code is at hand, there are few numbers among the arguments, and plain Python has not yet taken
    as long with this kernel as to compile it takes.
    """
    if not isinstance(function, Kernel) or not begins_plain() or function.seconds > _PATIENCE:
        return False
    return how_many(arguments) <= most and at_hand(function, *arguments) is None


def plainly(function: Callable[..., Any], *arguments: object) -> Any:
    """Run a kernel in plain Python, and count how long it takes."""
    begun = time.perf_counter()
    try:
        return plain(function)(*arguments)
    finally:
        function.seconds += time.perf_counter() - begun  # type: ignore[attr-defined]  # it is a kernel


def how_many(value: object) -> int:
    """Return how many numbers there are in arrays and tuples of them."""
    return sum(map(how_many, value)) if isinstance(value, tuple) else getattr(value, "size", 1)


def plain(function: F) -> F:
    """Return a kernel as plain Python, with all that it calls."""
    return function.plain if isinstance(function, Kernel) else function  # type: ignore[return-value]


def _shape(value: object) -> Any:
    """Return what the type of a value depends on, in a tenth of the time that Numba takes to find the type."""
    if type(value) is np.ndarray:
        return value.dtype, value.ndim, value.flags.num
    return (type(value), *map(_shape, value)) if isinstance(value, tuple) else type(value)
