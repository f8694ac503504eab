"""Edge lists: one edge a line, for people and other programs.

::

    # arms: 3
    0 0        # playing 0 reveals 0
    0, 1

Two whole numbers a line, with blanks or a comma between them; ``#`` begins a comment. The line ``# arms: N``
may stand once; without it there is one arm more than the largest that an edge names. No edge is repeated.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, BinaryIO

import numpy as np

from sidelong.errors import GraphFileError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    import numpy.typing as npt

_BLOCK = 2**24
# Possessive quantifiers (*+, ++) never go back, so that no line, however long, takes more than one pass.
_EDGE = rb"\d{1,18}+(?:[ \t]*+,[ \t]*+|[ \t]++)\d{1,18}+[ \t]*+"
_LINE = rb"^[ \t]*+(?:" + _EDGE + rb")?+(?:#[^\n]*+)?+\r?$"
_BAD_LINE = re.compile(rb"^(?!" + _LINE[1:] + rb").*", re.MULTILINE)
_EDGE_LINE = re.compile(rb"[ \t]*+" + _EDGE)
_COMMENT = re.compile(rb"#[^\n]*+")
_ARMS = re.compile(rb"^[ \t]*+#[ \t]*+arms[ \t]*+:[ \t]*+([^\r\n]*?)[ \t]*\r?$", re.MULTILINE)


def read(
    path: Path, file: BinaryIO, max_arms: int, max_edges: int, progress: Callable[[int], None]
) -> tuple[int | None, npt.NDArray[np.int64]]:
    """Return the number of arms, if the file gives it, and the edges; tell `progress` how many bytes are read."""
    n_arms: int | None = None
    parts: list[npt.NDArray[np.int64]] = []
    lines = edges = 0
    for block in _blocks(file):
        bad = _BAD_LINE.search(block)
        if bad:
            expected = "two arms such as '0 1', or a comment after '#'"
            raise _error(path, lines + _line_in(block, bad.start()), bad.group(), expected)
        for header in _ARMS.finditer(block):
            if n_arms is not None or not header[1].isdigit() or not 1 <= int(header[1][:18]) <= max_arms:
                expected = f"'# arms: N' once, with N from 1 to {max_arms:,}"
                raise _error(path, lines + _line_in(block, header.start()), header.group(), expected)
            n_arms = int(header[1])
        lines += block.count(b"\n")
        numbers = _COMMENT.sub(b"", block) if b"#" in block else block
        numbers = numbers.replace(b",", b" ").strip()
        if numbers:  # of blanks alone NumPy would make a number
            parts.append(np.fromstring(numbers, np.int64, sep=" ").reshape(-1, 2))
            edges += len(parts[-1])
        if edges > max_edges:
            raise GraphFileError(f"{path}: a graph file holds at most {max_edges:,} edges, and this one has more.")
        progress(file.tell())
    if n_arms is None and not parts:
        raise GraphFileError(f"{path}: a graph has at least one arm; here is neither an edge nor '# arms: N'.")
    pairs = np.concatenate(parts) if parts else np.empty((0, 2), np.int64)
    _check(path, file, pairs, n_arms, max_arms)
    return n_arms, pairs


def _blocks(file: BinaryIO) -> Iterator[bytes]:
    """Yield the file in blocks of whole lines."""
    first = True
    while block := file.read(_BLOCK):
        block += file.readline()
        yield block.removeprefix(b"\xef\xbb\xbf") if first else block
        first = False


def _check(path: Path, file: BinaryIO, pairs: npt.NDArray[np.int64], n_arms: int | None, max_arms: int) -> None:
    """Refuse an arm out of range or a repeated edge, with its line."""
    n = n_arms or max_arms
    wrong = np.flatnonzero((pairs >= n).any(axis=1))
    if wrong.size:
        expected = f"arms from 0 to {n - 1}, because of the line '# arms: {n}'" if n_arms else f"at most {n:,} arms"
        raise _error(path, *_locate(file, int(wrong[0])), expected)
    code = pairs[:, 0] * n + pairs[:, 1]
    order = np.argsort(code, kind="stable")
    code = code[order]
    again = order[1:][code[1:] == code[:-1]]
    if again.size:
        raise _error(path, *_locate(file, int(again.min())), "each edge once, and this one stands above already")


def _locate(file: BinaryIO, edge: int) -> tuple[int, bytes]:
    """Find an edge again, line by line; only to say where an error is."""
    file.seek(0)
    number, text = 0, b""
    while edge >= 0:
        number, text = number + 1, file.readline()
        edge -= _EDGE_LINE.match(text.removeprefix(b"\xef\xbb\xbf")) is not None
    return number, text


def _line_in(block: bytes, position: int) -> int:
    return block.count(b"\n", 0, position) + 1


def _error(path: Path, line: int, text: bytes, expected: str) -> GraphFileError:
    shown = text[:80].decode("utf-8", "replace").strip()
    return GraphFileError(f"{path}, line {line}: expected {expected}; found {shown!r}.")


def write(file: BinaryIO, n_arms: int, edges: npt.NDArray[np.int64], separator: str) -> None:
    """Write the number of arms and the edges."""
    file.write(f"# arms: {n_arms}\n".encode())
    for first in range(0, len(edges), _BLOCK // 16):
        block = edges[first : first + _BLOCK // 16]
        file.write((f"%d{separator}%d\n" * len(block) % tuple(block.ravel().tolist())).encode())
