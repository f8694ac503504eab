"""What the machine gives: its cores, and files that are the old ones or the new ones, never half of one."""

from __future__ import annotations

import os
import secrets
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["cores", "replacing"]


def cores() -> int:
    """Return how many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


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
