"""What the machine gives: its cores, and files, which are hashed, and are the old one or the new one, never half."""

from __future__ import annotations

import hashlib
import os
import re
import secrets
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

try:
    import fcntl
except ImportError:  # Windows, which does not remove a file that is open
    fcntl = None  # type: ignore[assignment]

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

_TOKEN = 4  # bytes in the name of a draft, so that no two writers have the same


def cores() -> int:
    """Return how many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def hash_files(files: Iterable[Path]) -> str:
    """Return a hash of the names and contents of files, in this order."""
    digest = hashlib.sha256()
    for file in files:
        digest.update(file.name.encode() + b"\0" + file.read_bytes() + b"\0")
    return digest.hexdigest()[:16]


@contextmanager
def replacing(
    path: str | os.PathLike[str], *, flushed: bool = True, remove_leftovers: bool = True
) -> Iterator[BinaryIO]:
    """Open a file that takes the place of `path` once it is complete, whoever else writes there or is killed.

    A writer holds a lock on its temporary file, which ends with its process. So what a killed process left can be told
    from what another one is writing.

    Args:
        path: the file.
        flushed: whether it is on the disk before it takes its place, so that it outlives a power cut too.
        remove_leftovers: whether to remove temporary files of the same name that killed processes left, for which the
            whole folder is listed.
    """
    path = Path(path)
    draft, file = _new_draft(path)
    try:
        with file:
            yield file
            file.flush()
            if flushed:
                os.fsync(file.fileno())
            if fcntl is not None:  # while the lock is held
                draft.replace(path)
        if fcntl is None:
            draft.replace(path)
        if remove_leftovers:
            _remove_leftovers(path)
    finally:
        with suppress(OSError):
            draft.unlink()


def _new_draft(path: Path) -> tuple[Path, BinaryIO]:
    """Open a new temporary file for `path`, and lock it where the file system has locks."""
    while True:
        draft = path.with_name(f".{path.name}.{secrets.token_hex(_TOKEN)}.tmp")
        file = draft.open("xb")
        try:
            if fcntl is not None:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            pass  # another process has taken it for a leftover, before it was locked here
        except OSError:
            return draft, file
        else:
            if draft.exists():
                return draft, file
        file.close()


def _remove_leftovers(path: Path) -> None:
    """Remove temporary files for `path` that no process is writing any more."""
    name = re.compile(rf"\.{re.escape(path.name)}\.[0-9a-f]{{{2 * _TOKEN}}}\.tmp")
    with suppress(OSError):
        for draft in [each for each in path.parent.iterdir() if name.fullmatch(each.name)]:
            with suppress(OSError):
                if fcntl is None:
                    draft.unlink()
                    continue
                with draft.open("r+b") as file:
                    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    draft.unlink()
