"""Sets of small numbers as words of 64 bits: number v is bit v % 64 of word v // 64."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from sidelong._jit import kernel

if TYPE_CHECKING:
    import numpy.typing as npt

    from sidelong.numerics import Whole

__all__ = ["all_of", "pack", "words_for"]

_ZERO = np.uint64(0)
_ONE = np.uint64(1)
_ALL = np.uint64(0xFFFFFFFFFFFFFFFF)


def words_for(n: int) -> int:
    """Return how many words hold the numbers 0, ..., n - 1; at least one."""
    return max(1, -(-n // 64))


def pack(rows: npt.NDArray[np.bool_]) -> npt.NDArray[np.uint64]:
    """Turn each row of a matrix of bool into words."""
    padded = np.zeros((rows.shape[0], 64 * words_for(rows.shape[1])), np.bool_)
    padded[:, : rows.shape[1]] = rows
    return np.packbits(padded, axis=1, bitorder="little").view("<u8").astype(np.uint64)


def all_of(n: int) -> npt.NDArray[np.uint64]:
    """Return the set of the numbers 0, ..., n - 1."""
    return pack(np.ones((1, n), np.bool_))[0]  # type: ignore[no-any-return]


@kernel
def _count_bits(word: np.uint64) -> Whole:
    count = 0
    while word != _ZERO:  # LLVM knows this loop, and makes one instruction of it
        word &= word - _ONE
        count += 1
    return count


@kernel
def _lowest_bit(word: np.uint64) -> Whole:
    return _count_bits(~word & (word - _ONE))


@kernel
def _has(words: np.ndarray, v: Whole) -> bool:
    return (words[v >> 6] >> np.uint64(v & 63)) & _ONE != _ZERO  # type: ignore[no-any-return]


@kernel
def _add(words: np.ndarray, v: Whole) -> None:
    words[v >> 6] |= _ONE << np.uint64(v & 63)


@kernel
def _discard(words: np.ndarray, v: Whole) -> None:
    words[v >> 6] &= ~(_ONE << np.uint64(v & 63))


@kernel
def _next(words: np.ndarray, v: Whole) -> Whole:
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
    return 64 * w + _lowest_bit(word)


@kernel
def _meet(a: np.ndarray, b: np.ndarray) -> bool:
    """Tell whether two sets have something in common."""
    for w in range(a.size):
        if a[w] & b[w] != _ZERO:
            break
    else:
        return False
    return True


@kernel
def _is_empty(words: np.ndarray) -> bool:
    some = _ZERO
    for w in range(words.size):
        some |= words[w]
    return some == _ZERO  # type: ignore[no-any-return]


@kernel
def _copy(source: np.ndarray, into: np.ndarray) -> None:
    for w in range(source.size):
        into[w] = source[w]


@kernel
def _clear(words: np.ndarray) -> None:
    for w in range(words.size):
        words[w] = _ZERO


@kernel
def _size(words: np.ndarray) -> Whole:
    count = 0
    for w in range(words.size):
        count += _count_bits(words[w])
    return count
