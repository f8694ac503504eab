"""Other processes that compile: in the background while plain Python runs, or on other cores while this one compiles.

What they are asked for is a kernel and arguments of the same types, which are pickled without their numbers, so that
all that needs the same machine code asks for the same. It is a kernel, and not the name and the options of a learner,
because certificates, logs and solvers have kernels too and belong to no learner. Only NumPy is needed for that, not
Numba. The machine code goes into the cache folder, where the one who asked finds it.

*In the background*, requests lie in a folder beside the machine code, one file each, and a file says that one is done.
There is at most one such process for each folder. It runs at the lowest priority, so that no other process waits for
it. It goes on if the program that started it ends, and ends itself when nothing is left, or after ten minutes.
``SIDELONG_BACKGROUND=0`` turns it off.

*On other cores*, processes get their requests on standard input, and are waited for. Numba compiles one kernel at a
time in a process, so that a second core helps only through a second process.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import importlib.util
import io
import multiprocessing
import os
import pickle
import platform
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from sidelong._cache import PACKAGE, LockSettings, cache_folder, is_writable
from sidelong._packed import Packed
from sidelong.machine import cores, replacing

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

_LIFETIME = 600  # seconds, of a process in the background
_TIMEOUT = 60.0  # seconds to wait for a process on another core, which may have been stopped


class CompileRequest(NamedTuple):
    """Something to be compiled."""

    name: str  #: a hash of the content, and of all that the machine code depends on
    content: bytes


def request(kernel: Any, arguments: tuple[object, ...], key: str) -> CompileRequest | None:
    """Return the request for a kernel of the package, or None if its arguments cannot be pickled.

    Args:
        kernel: the kernel.
        arguments: what it is called with.
        key: the key of its machine code.
    """
    file = io.BytesIO()
    pickler = _Pickler(file)
    pickler.fast = True  # the same object twice is written as two equal ones
    try:
        pickler.dump((kernel, tuple(map(_without_numbers, arguments))))
    except (pickle.PicklingError, TypeError, AttributeError):
        return None
    return CompileRequest(
        hashlib.sha256(repr((_versions(), key)).encode() + file.getvalue()).hexdigest()[:24], file.getvalue()
    )


def _without_numbers(value: Any) -> Any:
    """Return an argument with zeros for its numbers; arrays are left to the pickler."""
    if isinstance(value, Packed):
        return value._replace(value=_without_numbers(value.value))
    if isinstance(value, tuple):
        parts = map(_without_numbers, value)
        return type(value)(*parts) if hasattr(value, "_fields") else tuple(parts)
    if type(value) is int:
        return 0 if value < 2**63 else value  # which is unsigned
    return type(value)() if type(value) in {bool, float} or isinstance(value, np.generic) else value


class _Pickler(pickle.Pickler):
    def reducer_override(self, value: Any) -> Any:
        if type(value) is not np.ndarray:
            return NotImplemented
        layout = "C" if value.flags.c_contiguous else "F" if value.flags.f_contiguous else "A"
        return _array, (value.dtype.str, value.ndim, layout, bool(value.flags.writeable))


def _array(dtype: str, ndim: int, layout: str, writeable: bool) -> np.ndarray:  # noqa: FBT001  # pickle passes it so
    """Return a small array of the same type."""
    array = np.zeros((4,) * ndim, dtype, order="F" if layout == "F" else "C")
    array = array[(slice(None, None, 2),) * ndim] if layout == "A" else array
    array.flags.writeable = writeable
    return array


@functools.cache
def _versions() -> list[Any]:
    """Return which processor, Python and copy of the compiler there are, without loading it."""
    found = [importlib.util.find_spec(package) for package in ("numba", "llvmlite")]
    copies = [(each.origin, Path(each.origin).stat().st_mtime_ns) for each in found if each and each.origin]
    processor = [platform.machine()]
    with contextlib.suppress(OSError), Path("/proc/cpuinfo").open(encoding="utf-8") as file:  # only Linux says more
        processor += [line for line in file.read(8192).split("\n\n")[0].split("\n") if line[:5] in {"model", "flags"}]
    return [sys.implementation.cache_tag, processor, copies]


def _start(program: str, **how: Any) -> subprocess.Popen[bytes] | None:
    """Start a process that runs a function of this module, and nothing else of the program that this is."""
    path = [str(PACKAGE.parent), *(each for each in sys.path if Path(each).is_absolute())]
    code = f"import sys; sys.path[:] = {path!r}; from sidelong import _aside, _jit; {program}"
    folder = cache_folder()
    environment = {**os.environ, "SIDELONG_BACKGROUND": "0", "SIDELONG_CACHE_DIR": str(folder and folder.parent)}
    try:
        return subprocess.Popen(  # noqa: S603  # our own interpreter
            [sys.executable, "-c", code],
            env=environment,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            **how,
        )
    except OSError:
        return None


# In the background


def can_start() -> bool:
    """Tell whether a process can compile in the background."""
    able = fcntl is not None and bool(sys.executable) and not hasattr(sys, "frozen")
    return able and is_writable() and _folder() is not None


def is_done(wanted: CompileRequest | None) -> bool:
    """Tell whether something was compiled, as far as this folder knows."""
    folder = _folder()
    return wanted is not None and folder is not None and (folder / f"{wanted.name}.done").exists()


def note_done(done: CompileRequest | None) -> None:
    """Write down that something was compiled."""
    folder = _folder()
    if done is not None and folder is not None:
        with contextlib.suppress(OSError):
            (folder / f"{done.name}.done").touch()


def ask_for(requests: Iterable[CompileRequest]) -> None:
    """Let a process in the background compile what is not done; start it, unless there is one."""
    folder = _folder()
    wanted = [each for each in requests if not is_done(each)]
    if folder is None or not wanted or not can_start():
        return
    with contextlib.suppress(OSError):  # a full disk: it goes on in plain Python
        for each in wanted:
            with replacing(folder / f"{each.name}.wanted", flushed=False) as file:
                file.write(each.content)
        with _locked(folder) as free:
            pass
        if free and (process := _start("_aside.work(_jit.compile_request)", start_new_session=True)) is not None:
            # One that has ended stays in the system's list until somebody waits for it.
            threading.Thread(target=process.wait, daemon=True).start()


@functools.cache
def _folder() -> Path | None:
    folder = cache_folder()
    if folder is not None:
        with contextlib.suppress(OSError):
            (folder / "requests").mkdir(exist_ok=True)
    return folder and folder / "requests"


@contextlib.contextmanager
def _locked(folder: Path) -> Iterator[bool]:
    """Hold the lock of the folder, if nobody else does; a process that ends or is killed gives it up."""
    file = os.open(folder / "lock", os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield True
    except BlockingIOError:
        yield False
    finally:
        os.close(file)


def work(compile_: Callable[[Any], None]) -> None:
    """Compile what is asked for, until nothing is left: the program of the process in the background."""
    signal.alarm(_LIFETIME)  # which nothing catches
    os.nice(19)
    LockSettings.low_priority = True
    folder = _folder()
    # Whoever asks while the lock is held starts nobody. So it is looked again after the lock was given up.
    while folder is not None and any(folder.glob("*.wanted")):
        with _locked(folder) as free:
            if not free:
                return
            for file in sorted(folder.glob("*.wanted"), key=lambda each: each.stat().st_mtime_ns):
                content = file.read_bytes()
                file.unlink()  # first, so that what ends this process is not tried again by the next
                with contextlib.suppress(Exception):  # the one who asked compiles it then, and sees what is wrong
                    compile_(pickle.loads(content))  # noqa: S301  # from a folder of the user's own
                file.with_suffix(".done").touch()


# On other cores


def has_free_core() -> bool:
    """Tell whether another process may compile beside this one."""
    # A process of a pool has none: its siblings compile other things. A frozen program has no interpreter to start.
    alone = multiprocessing.parent_process() is None and os.environ.get("SIDELONG_BACKGROUND") != "0"
    return cores() > 1 and alone and is_writable() and not getattr(sys, "frozen", False)


@contextlib.contextmanager
def compiling(groups: Sequence[Sequence[CompileRequest | None]]) -> Iterator[None]:
    """Let a process for each group of requests compile while the body runs; wait for them, or end them if it fails.

    What they do not achieve is compiled here, when it is called.
    """
    given = [[each.content for each in group if each is not None] for group in groups]
    processes = [_start_with(contents) for contents in given if contents]
    patient = False
    try:
        yield
        patient = True
    finally:
        for process in filter(None, processes):
            if patient:
                with contextlib.suppress(subprocess.TimeoutExpired):
                    process.wait(_TIMEOUT)
            process.kill()
            process.wait()


def _start_with(contents: list[bytes]) -> subprocess.Popen[bytes] | None:
    process = _start("_aside.work_now(_jit.compile_request)", stdin=subprocess.PIPE)
    if process is not None:
        with contextlib.suppress(OSError), process.stdin as pipe:  # type: ignore[union-attr]  # it is a pipe
            pipe.write(pickle.dumps((LockSettings.timeout, contents)))
    return process


def work_now(compile_: Callable[[Any], None]) -> None:
    """Compile what is asked for on standard input; wait for others as long as the one who asks does."""
    LockSettings.timeout, contents = pickle.load(sys.stdin.buffer)  # noqa: S301  # from the process that started this
    for content in contents:
        compile_(pickle.loads(content))  # noqa: S301
