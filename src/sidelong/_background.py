"""A process that compiles what agents ask for, while they decide in plain Python.

It takes what is asked for from a folder beside the machine code, one file for each kernel, and leaves a file that says
that it is done. There is at most one such process for each folder of machine code. It runs at the lowest priority, so
that no other process waits for it. It goes on if the program that started it ends. It ends itself when nothing is left,
or after ten minutes.

``SIDELONG_BACKGROUND=0`` turns it off: then an agent compiles what it needs when it is made.
"""

from __future__ import annotations

import contextlib
import functools
import os
import signal
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING

from sidelong._cache import Manners, cache_folder, can_keep
from sidelong._fingerprint import PACKAGE
from sidelong._jit import entry
from sidelong._kernel import begins_plain, jit_is_off
from sidelong._recipe import follow, name_of
from sidelong.machine import replacing

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

_LIFE = 600  # seconds


def is_possible(words: str) -> bool:
    """Tell whether machine code of this was made, or can be made by another process."""
    if not begins_plain() or jit_is_off() or _folder() is None:
        return False
    able = fcntl is not None and hasattr(os, "posix_spawn") and bool(sys.executable) and not hasattr(sys, "frozen")
    return is_done(words) or (able and can_keep())


def is_done(words: str) -> bool:
    """Tell whether what a kernel's words describe was compiled, as far as this folder knows."""
    folder = _folder()
    return folder is not None and (folder / f"{name_of(words)}.done").exists()


def note_done(words: str) -> None:
    """Write down that something was compiled here."""
    folder = _folder()
    if folder is not None:
        with contextlib.suppress(OSError):
            (folder / f"{name_of(words)}.done").touch()


def ask_for(wanted: Iterable[str]) -> None:
    """Let another process compile what these words describe; start it, unless there is one."""
    folder = _folder()
    wanted = [words for words in wanted if not is_done(words)]
    if folder is None or not wanted:
        return
    with contextlib.suppress(OSError):  # a full disk: it goes on in plain Python
        for words in wanted:
            with replacing(folder / f"{name_of(words)}.wanted", flushed=False) as file:
                file.write(words.encode())
        with _alone(folder) as free:
            pass
        if free:
            _start()


@functools.cache
def _folder() -> Path | None:
    folder = cache_folder()
    if folder is None:
        return None
    with contextlib.suppress(OSError):
        (folder / "asked").mkdir(exist_ok=True)
    return folder / "asked"


@contextlib.contextmanager
def _alone(folder: Path) -> Iterator[bool]:
    """Hold the lock of the folder, if nobody else does; a process that ends or is killed gives it up."""
    file = os.open(folder / "lock", os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield True
    except BlockingIOError:
        yield False
    finally:
        os.close(file)


def _start() -> None:
    path = [str(PACKAGE.parent), *(each for each in sys.path if Path(each).is_absolute())]
    # First of all it lets go of what it has inherited: a lock on a file would be held until it ends.
    close = f"import os; os.closerange(3, {os.sysconf('SC_OPEN_MAX')})"
    program = f"{close}; import sys; sys.path[:] = {path!r}; from sidelong._background import work; work()"
    root = cache_folder().parent.parent.resolve()  # type: ignore[union-attr]  # it was found before
    environment = {**os.environ, "SIDELONG_BACKGROUND": "0", "SIDELONG_CACHE_DIR": str(root)}
    nowhere = [(os.POSIX_SPAWN_OPEN, each, os.devnull, os.O_RDWR, 0) for each in range(3)]
    command = [sys.executable, "-c", program]
    # Not by subprocess, which complains of a child that is still there when the program ends.
    try:
        child = os.posix_spawn(sys.executable, command, environment, file_actions=nowhere, setsid=True)
    except NotImplementedError:  # this system has no way to give it a session; it gets a group
        child = os.posix_spawn(sys.executable, command, environment, file_actions=nowhere, setpgroup=0)
    threading.Thread(target=_see_the_end_of, args=(child,), daemon=True).start()


def _see_the_end_of(child: int) -> None:
    """Wait for a process: one that has ended stays in the system's list until somebody did."""
    with contextlib.suppress(ChildProcessError):  # somebody else did
        os.waitpid(child, 0)


def work() -> None:
    """Compile what is asked for, until nothing is left: the program of the other process."""
    if hasattr(signal, "alarm"):
        signal.alarm(_LIFE)  # which nothing catches
    os.nice(19)
    Manners.gives_way = True
    folder = _folder()
    # Whoever asks while the lock is held starts nobody. So it is looked again after the lock was given up.
    while folder is not None and any(folder.glob("*.wanted")):
        with _alone(folder) as free:
            if not free:
                return
            for file in sorted(folder.glob("*.wanted"), key=lambda each: each.stat().st_mtime_ns):
                _compile(file)


def _compile(file: Path) -> None:
    words = file.read_text(encoding="utf-8")
    file.unlink()  # first, so that what ends this process is not tried again by the next
    with contextlib.suppress(Exception):  # the one who asked compiles it then, and sees what is wrong
        kernel, arguments = follow(words)
        entry(kernel, *arguments)
    file.with_suffix(".done").touch()
