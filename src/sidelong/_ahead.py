"""Compiling kernels in a second process, while this one compiles others.

The first run of a learner compiles some fifty kernels. Numba compiles one at a time in a process, so that a second
core helps only through a second process. It leaves the machine code in the cache folder, where this one finds it.
"""

from __future__ import annotations

import contextlib
import importlib
import multiprocessing
import os
import pickle
import subprocess
import sys
from typing import TYPE_CHECKING, Any

from sidelong._cache import cache_folder
from sidelong._jit import is_kept, signature_of
from sidelong._kernel import begins_plain
from sidelong.machine import cores

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_PATIENCE = 60.0  # seconds; the other process may have been stopped


@contextlib.contextmanager
def compiled_ahead(*calls: tuple[Callable[..., Any], tuple[object, ...]]) -> Iterator[None]:
    """Compile kernels for the arguments of these calls in a second process, while the body runs.

    Only those of the package: another module may do more than define things when it is imported. This is a help and
    never a hindrance: what it does not achieve is compiled here, when it is called.
    """
    wanted = [
        (kernel.__module__, kernel.__name__, signature_of(*arguments))
        for kernel, arguments in calls
        if _is_own(kernel, signature_of(*arguments)) and not is_kept(kernel, signature_of(*arguments))
    ]
    process = _start(wanted) if wanted and cache_folder() is not None and _has_a_core_to_spare() else None
    try:
        yield
        if process is not None:
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(_PATIENCE)
    finally:
        if process is not None:
            process.kill()
            process.wait()


def _is_own(kernel: Any, signature: tuple[Any, ...]) -> bool:
    """Tell whether the other process finds a kernel and all types of its arguments in the package."""
    classes = [getattr(each, "instance_class", int) for each in signature]  # of a NamedTuple
    places = [kernel.__module__, *(each.__module__ for each in classes if each is not int)]
    named = getattr(sys.modules.get(kernel.__module__), kernel.__name__, None)
    return named is kernel and all(place.startswith("sidelong.") for place in places)


def _has_a_core_to_spare() -> bool:
    # A process of a pool has none: its siblings compile other things. A frozen program has no interpreter to start.
    alone = multiprocessing.parent_process() is None and begins_plain()
    return cores() > 1 and alone and not getattr(sys, "frozen", False)


def _start(wanted: list[tuple[str, str, tuple[Any, ...]]]) -> subprocess.Popen[bytes] | None:
    program = f"import sys; sys.path[:] = {sys.path!r}; from sidelong._ahead import compile_all; compile_all()"
    try:
        task = pickle.dumps(wanted)
        process = subprocess.Popen(  # noqa: S603  # our own interpreter
            [sys.executable, "-c", program],
            env={**os.environ, "SIDELONG_BACKGROUND": "0"},
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
    except (OSError, TypeError, AttributeError, pickle.PicklingError):
        return None
    with contextlib.suppress(OSError), process.stdin as pipe:  # type: ignore[union-attr]  # it is a pipe
        pipe.write(task)
    return process


def compile_all() -> None:
    """Do what the other process asks for on standard input."""
    for module, name, signature in pickle.load(sys.stdin.buffer):  # noqa: S301  # from our own process
        getattr(importlib.import_module(module), name).compile(signature)
