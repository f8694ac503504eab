"""Sets of small numbers as words of 64 bits: number v is bit v % 64 of word v // 64."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from sidelong._jit import kernel

if TYPE_CHECKING:
    import numpy.typing as npt

    from sidelong.graphs.arrays import Flags
    from sidelong.numerics import Whole

_ZERO = np.uint64(0)
_ONE = np.uint64(1)
_ALL = np.uint64(0xFFFFFFFFFFFFFFFF)


def words_for(n: int) -> int:
    """Return how many words hold the numbers 0, ..., n - 1; at least one."""
    return max(1, -(-n // 64))


def pack(rows: Flags) -> npt.NDArray[np.uint64]:
    """Turn each row of a matrix of bool into words."""
    padded = np.zeros((rows.shape[0], 64 * words_for(rows.shape[1])), np.bool_)
    padded[:, : rows.shape[1]] = rows
    return np.packbits(padded, axis=1, bitorder="little").view("<u8").astype(np.uint64)


def all_of(n: int) -> npt.NDArray[np.uint64]:
    """Return the set of the numbers 0, ..., n - 1."""
    return pack(np.ones((1, n), np.bool_))[0]  # type: ignore[no-any-return]


@kernel
def count_bits(word: np.uint64) -> Whole:
    """Return how many bits of a word are set."""
    number = 0
    while word != _ZERO:  # LLVM knows this loop, and makes one instruction of it
        word &= word - _ONE
        number += 1
    return number


@kernel
def lowest_bit(word: np.uint64) -> Whole:
    """Return the place of the lowest bit that is set."""
    return count_bits(~word & (word - _ONE))


@kernel
def add(words: np.ndarray, v: Whole) -> None:
    """Put a number into a set."""
    words[v >> 6] |= _ONE << np.uint64(v & 63)


@kernel
def discard(words: np.ndarray, v: Whole) -> None:
    """Take a number out of a set."""
    words[v >> 6] &= ~(_ONE << np.uint64(v & 63))


@kernel
def following(words: np.ndarray, v: Whole) -> Whole:
    """Return the lowest number from v on that is in the set; -1 if there is none."""
    w = v >> 6
    if w >= words.size:
        return -1
    word = words[w] & (_ALL << np.uint64(v & 63))
    while word == _ZERO:
        w += 1
        if w == words.size:
            return -1
        word = words[w]
    return 64 * w + lowest_bit(word)


@kernel
def meet(a: np.ndarray, b: np.ndarray) -> bool:
    """Tell whether two sets have something in common."""
    for w in range(a.size):
        if a[w] & b[w] != _ZERO:
            break
    else:
        return False
    return True


@kernel
def is_empty(words: np.ndarray) -> bool:
    """Tell whether a set is empty."""
    some = _ZERO
    for w in range(words.size):
        some |= words[w]
    return some == _ZERO  # type: ignore[no-any-return]


@kernel
def assign(source: np.ndarray, into: np.ndarray) -> None:
    """Make one set what another is."""
    for w in range(source.size):
        into[w] = source[w]


@kernel
def clear(words: np.ndarray) -> None:
    """Take all out of a set."""
    for w in range(words.size):
        words[w] = _ZERO
