"""Arguments of kernels that stay the same from call to call.

To hand arrays over to machine code takes about 30 ns each, and an agent has sixty: longer than its kernels run. So they
are packed once, and machine code gets one address in their place.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterator


class Packed(NamedTuple):
    """An argument that stays the same from call to call: machine code reads it at an address.

    A kernel that is given one takes `value` from it, in plain Python as in machine code. Numbers in it must not change,
    and arrays must stay where they are; what they hold may change. Where this Numba has other private parts than
    expected, it is handed over as any other NamedTuple is.
    """

    value: Any  #: a NamedTuple of numbers, arrays and NamedTuples
    address: int  #: of `words`
    words: np.ndarray  #: uint64: of a number its bits, of an array its address, its shape and its strides

    def __reduce__(self) -> Any:
        return pack, (self.value,)  # elsewhere, arrays have other addresses


def pack(value: Any) -> Packed:
    """Return a NamedTuple of numbers, arrays and NamedTuples of them, as kernels take one that stays the same."""
    words = np.array(list(_words(value)), np.uint64)
    return Packed(value, words.ctypes.data, words)


def _words(value: Any) -> Iterator[int]:
    if isinstance(value, tuple):
        for each in value:
            yield from _words(each)
    elif isinstance(value, np.ndarray):
        yield value.__array_interface__["data"][0]
        yield from value.shape
        yield from (stride % 2**64 for stride in value.strides)
    elif isinstance(value, float | np.floating):
        yield int(np.float64(value).view(np.uint64))
    elif isinstance(value, int | np.integer | np.bool_):
        yield int(value) % 2**64
    else:
        raise TypeError(f"A kernel takes numbers, arrays and NamedTuples of them, not {type(value).__name__}.")
