"""Arrays of integers from a .npz file of unknown origin: what it declares is compared before it is read."""

from __future__ import annotations

import struct
import tokenize
import zlib
from typing import TYPE_CHECKING, Any
from zipfile import ZIP_DEFLATED, ZIP_STORED, BadZipFile

import numpy as np

from sidelong.errors import GraphError

if TYPE_CHECKING:
    from zipfile import ZipFile

#: What reading an archive raises if it is damaged or encrypted.
ERRORS = (BadZipFile, EOFError, OverflowError, RuntimeError, ValueError, struct.error, zlib.error)

_HEADERS = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}


def read_array(archive: ZipFile, name: str, most: tuple[int, ...]) -> Any:  # see below
    """Return an array of integers of at most the given shape; an int if that is ()."""
    if f"{name}.npy" not in archive.namelist():
        raise GraphError(f'this is not a graph: it has no array "{name}".')
    if archive.getinfo(f"{name}.npy").compress_type not in {ZIP_STORED, ZIP_DEFLATED}:
        raise GraphError(f'the array "{name}" is compressed in a way that NumPy does not write.')
    with archive.open(f"{name}.npy") as member:
        try:
            read_header = _HEADERS[np.lib.format.read_magic(member)]
            shape, fortran, dtype = read_header(member)
        except (ValueError, KeyError, SyntaxError, tokenize.TokenError) as error:
            raise GraphError(f'the array "{name}" cannot be read: {error}.') from error
        fits = len(shape) == len(most) and all(0 <= a <= b for a, b in zip(shape, most, strict=True))
        if dtype.kind not in "iu" or not fits:
            raise GraphError(
                f'the array "{name}" must hold integers and have at most the shape {most}; '
                f"it has dtype {dtype} and shape {shape}."
            )
        size = int(np.prod(shape, dtype=np.int64)) * dtype.itemsize
        data = member.read(size)
    if len(data) != size:
        raise GraphError(f'the array "{name}" is cut short.')
    array = np.frombuffer(data, dtype).reshape(shape, order="F" if fortran else "C")
    return array if shape else int(array)
