"""Compiling kernels in other processes, while this one compiles others.

The first run of a learner compiles some fifty kernels. Numba compiles one at a time in a process, so that a second
core helps only through a second process. It leaves the machine code in the cache folder, where this one finds it.
"""

from __future__ import annotations

import contextlib
import json
import multiprocessing
import os
import subprocess
import sys
from typing import TYPE_CHECKING, Any

from sidelong._cache import Manners, can_keep
from sidelong._jit import entry, is_kept, signature_of
from sidelong._kernel import Kernel, begins_plain
from sidelong._recipe import describe, follow
from sidelong.machine import cores

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    Call = tuple[Callable[..., Any], tuple[object, ...]]

_PATIENCE = 60.0  # seconds; the other process may have been stopped


@contextlib.contextmanager
def compiled_ahead(*calls: Call) -> Iterator[None]:
    """Compile kernels, as parts of others, for the arguments of these calls in a second process, while the body runs.

    Only those of the package: another module may do more than define things when it is imported. This is a help and
    never a hindrance: what it does not achieve is compiled here, when it is called.
    """
    wanted = [
        words
        for kernel, arguments in calls
        if (words := describe(kernel, arguments)) is not None and not is_kept(kernel, signature_of(*arguments))
    ]
    process = _start(wanted, "parts") if wanted and has_a_core_to_spare() else None
    with _ended([process]):
        yield


def compile_side_by_side(calls: Sequence[Call]) -> None:
    """Compile kernels that Python calls, in as many processes as there are cores, unless they are kept already."""
    missing = [
        (*call, words)
        for call in calls
        if isinstance(call[0], Kernel)
        and hasattr(call[0].dispatcher, "whole")
        and not is_kept(call[0].whole, signature_of(*call[1]))
        and (words := describe(*call)) is not None
    ]
    if len(missing) < 2 or not has_a_core_to_spare():  # one is compiled on two cores when it is called
        return
    groups = [missing[k :: cores()] for k in range(cores())]
    with _ended([_start([words for *_, words in group], "wholes") for group in groups[1:] if group]):
        for kernel, arguments, _ in groups[0]:
            entry(kernel, *arguments)


@contextlib.contextmanager
def _ended(processes: Sequence[subprocess.Popen[bytes] | None]) -> Iterator[None]:
    """Wait after the body until processes have ended; if the body fails, end them."""
    patient = False
    try:
        yield
        patient = True
    finally:
        for process in filter(None, processes):
            if patient:
                with contextlib.suppress(subprocess.TimeoutExpired):
                    process.wait(_PATIENCE)
            process.kill()
            process.wait()


def has_a_core_to_spare() -> bool:
    """Tell whether another process may compile beside this one."""
    # A process of a pool has none: its siblings compile other things. A frozen program has no interpreter to start.
    alone = multiprocessing.parent_process() is None and begins_plain()
    return cores() > 1 and alone and can_keep() and not getattr(sys, "frozen", False)


def _start(wanted: list[str], how: str) -> subprocess.Popen[bytes] | None:
    program = f"import sys; sys.path[:] = {sys.path!r}; from sidelong._ahead import compile_{how}; compile_{how}()"
    try:
        process = subprocess.Popen(  # noqa: S603  # our own interpreter
            [sys.executable, "-c", program],
            env={**os.environ, "SIDELONG_BACKGROUND": "0"},
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
    except OSError:
        return None
    with contextlib.suppress(OSError), process.stdin as pipe:  # type: ignore[union-attr]  # it is a pipe
        pipe.write(json.dumps([Manners.patience, wanted]).encode())
    return process


def _asked() -> list[str]:
    """Return what the first process asks for on standard input; this one waits for others as long as that does."""
    Manners.patience, wanted = json.load(sys.stdin)
    return wanted  # type: ignore[no-any-return]


def compile_parts() -> None:
    """Compile what the first process asks for, as parts of other kernels."""
    for words in _asked():
        kernel, arguments = follow(words)
        kernel.compile(signature_of(*arguments))  # type: ignore[attr-defined]  # it is a kernel


def compile_wholes() -> None:
    """Compile what the first process asks for, for Python to call."""
    for words in _asked():
        kernel, arguments = follow(words)
        entry(kernel, *arguments)
