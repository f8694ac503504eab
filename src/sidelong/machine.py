"""What the machine gives: its cores, and files, which are hashed, and are the old one or the new one, never half."""

from __future__ import annotations

import hashlib
import os
import secrets
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator


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
def replacing(path: str | os.PathLike[str], *, flushed: bool = True) -> Iterator[BinaryIO]:
    """Open a file that takes the place of `path` once it is complete, whoever else writes there or is killed.

    Args:
        path: the file.
        flushed: whether it is on the disk before it takes its place, so that it outlives a power cut too.
    """
    path = Path(path)
    draft = path.with_name(f".{path.name}.{secrets.token_hex(4)}.tmp")
    try:
        with draft.open("xb") as file:
            yield file
            if flushed:
                file.flush()
                os.fsync(file.fileno())
        draft.replace(path)
    finally:
        with suppress(OSError):
            draft.unlink()
