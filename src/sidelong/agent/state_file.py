"""The file that an agent is saved to.

::

    8 bytes   "SIDELONG"
    4 bytes   version of the format, little-endian; this program writes 1
    4 bytes   length of the header
    header    JSON: for each array its name, type and shape; and what `sidelong.agent.codec` says
    arrays    one after the other, in the order of the header, little-endian
    32 bytes  SHA-256 of everything before

Nothing in it is code, and nothing is read before the checksum holds. A file is written under a temporary name,
flushed to the disk and renamed, so that it is the old one or the new one, never half of one.
"""

from __future__ import annotations

import hashlib
import json
import math
import struct
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from sidelong._install import NEWER
from sidelong.errors import SidelongError, StateFileError
from sidelong.graphs.graph import FeedbackGraph
from sidelong.machine import replacing

if TYPE_CHECKING:
    import os
    from collections.abc import Mapping

FINITE = float(np.finfo(np.float64).max)  #: the largest number, for ranges without NaN and infinities
MAGIC = b"SIDELONG"
VERSION = 1
_START = struct.Struct("<8sII")
_CHECKSUM = 32
_TYPES = ("b1", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f4", "f8")  #: behind the order of bytes


def pack(header: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> bytes:
    """Return the content of a state file."""
    parts = _parts(header, arrays)
    return b"".join([*parts, _digest(parts)])


def checksum(header: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> bytes:
    """Return the last 32 bytes of what `pack` returns: equal for equal contents."""
    return _digest(_parts(header, arrays))


def _parts(header: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> list[Any]:
    plain = {name: np.asarray(array, array.dtype.newbyteorder("<"), order="C") for name, array in arrays.items()}
    layout = [[name, array.dtype.str, list(array.shape)] for name, array in plain.items()]
    text = json.dumps({**header, "arrays": layout}, sort_keys=True).encode()
    views = [array.reshape(-1).view(np.uint8).data for array in plain.values()]  # no copies of large ones
    return [_START.pack(MAGIC, VERSION, len(text)), text, *views]


def _digest(parts: list[Any]) -> bytes:
    digest = hashlib.sha256()
    for part in parts:
        digest.update(part)
    return digest.digest()


def write(path: str | os.PathLike[str], header: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> None:
    """Write a state file, all of it or nothing."""
    parts = _parts(header, arrays)
    try:
        with replacing(path) as file:
            file.writelines([*parts, _digest(parts)])
    except OSError as error:
        raise StateFileError(
            f"{path} cannot be written: {error.strerror}. What was there before is as it was."
        ) from error


def read(path: str | os.PathLike[str]) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """Return the header and the arrays of a state file."""
    try:
        data = Path(path).read_bytes()
    except OSError as error:
        raise StateFileError(f"{path} cannot be read: {error.strerror}.") from error
    return unpack(data, path)


def unpack(data: bytes, path: str | os.PathLike[str]) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """Return the header and the arrays of the content of a state file; `path` is what messages call it."""
    if data[: len(MAGIC)] != MAGIC:
        raise StateFileError(f"{path} is not a state file of sidelong: it does not begin with {MAGIC.decode()!r}.")
    if len(data) < _START.size + _CHECKSUM:
        raise StateFileError(f"{path} is truncated: it has {len(data)} bytes. Load an earlier copy.")
    _, version, length = _START.unpack_from(data)
    if version != VERSION:
        newer = f" It is newer. {NEWER}" if version > VERSION else ""
        raise StateFileError(f"{path} has format version {version}, and this program reads {VERSION}.{newer}")
    if hashlib.sha256(memoryview(data)[:-_CHECKSUM]).digest() != data[-_CHECKSUM:]:
        raise StateFileError(f"{path} is truncated or was altered: its checksum does not hold. Load an earlier copy.")
    try:
        return _unpacked(data, length)
    except (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError) as error:
        raise StateFileError(f"{path} cannot be read, though its checksum holds: {error}") from error


def _unpacked(data: bytes, length: int) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """Return the header, which has this length, and the arrays."""
    header = json.loads(data[_START.size : _START.size + length])
    arrays = {}
    content, offset = memoryview(data)[:-_CHECKSUM], _START.size + length
    for name, dtype, shape in header.pop("arrays"):
        if dtype[0] not in "<|" or dtype[1:] not in _TYPES:
            raise ValueError(f"{name} has the type {dtype}")
        count = math.prod(shape)
        array = np.frombuffer(content, np.dtype(dtype), count, offset).reshape(shape)
        arrays[name] = array.astype(array.dtype.newbyteorder("="))  # a copy: the caller writes into it
        offset += array.nbytes
    return header, arrays


def graph_to_arrays(graph: FeedbackGraph) -> dict[str, np.ndarray]:
    """Return what `read_graphs` makes the graph from: the same representation, so that it gives the same bits."""
    low, high, targets = graph.arrays.start, graph.arrays.stop, graph.arrays.targets
    return {"low": low, "high": high} if graph.arrays.contiguous else {"degree": high - low, "targets": targets}


def read_graphs(
    path: str | os.PathLike[str], header: Mapping[str, Any], arrays: Mapping[str, np.ndarray]
) -> list[FeedbackGraph]:
    """Return the graphs of a state file, the agent's own first. They have the same arms, and so the same labels."""
    graphs = []
    for index, name in enumerate(header["graphs"]):
        parts = {key.split(".")[-1]: array for key, array in arrays.items() if key.startswith(f"graph.{index}.")}
        try:
            if "low" in parts:
                graph = FeedbackGraph.from_intervals(parts["low"], parts["high"])
            else:
                graph = FeedbackGraph.from_rows(parts["degree"], parts["targets"])
            graphs.append(graph.named(name).labelled(header.get("labels")))
        except SidelongError as error:
            raise StateFileError(f"{path} holds a graph that cannot be built: {error}") from error
    return graphs


def read_array(
    path: str | os.PathLike[str],
    name: str,
    arrays: Mapping[str, np.ndarray],
    like: np.ndarray,
    rows: tuple[int, ...],
    range_: Any = None,
) -> np.ndarray:
    """Return an array, if it is like another one, with these rows, and within its range."""
    found = arrays.get(name)
    if found is None or found.dtype != like.dtype or found.shape != (*rows, *like.shape):
        raise StateFileError(
            f"{path} was saved by another version of its learner: its {name.partition('.')[2]} does not fit. "
            f"Load it with the version that saved it."
        )
    if range_ is not None:
        check_range(path, name, found, range_)
    return found


def check_range(path: str | os.PathLike[str], name: str, found: np.ndarray, range_: Any) -> None:
    """Refuse an array with a number that is outside of its range."""
    if found.size:
        low, high = np.broadcast_arrays(*range_, found)[:2]
        outside = ~((found >= low) & (found <= high))  # NaN is outside too
        if outside.any():
            least, most = low[outside][0], high[outside][0]
            raise StateFileError(f"{path} holds {name} outside its range, from {least:g} to {most:g}.")
