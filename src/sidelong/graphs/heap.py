"""A heap of arms for kernels: the one with the most on top and, of several, the lowest. It is an array of int64."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sidelong._jit import kernel

if TYPE_CHECKING:
    import numpy as np

    from sidelong.numerics import Whole

_INDEX = 0xFFFFFFFF  # an item is a count, and below it how far the arm is from this


@kernel
def push(heap: np.ndarray, size: Whole, count: Whole, arm: Whole) -> Whole:
    """Add an arm with a count; return the new size."""
    item = count << 32 | (_INDEX - arm)
    k = size
    while k > 0 and heap[(k - 1) // 2] < item:
        heap[k] = heap[(k - 1) // 2]
        k = (k - 1) // 2
    heap[k] = item
    return size + 1


@kernel
def top(heap: np.ndarray) -> Whole:
    """Return the arm on top."""
    return _INDEX - (heap[0] & _INDEX)  # type: ignore[no-any-return]


@kernel
def top_count(heap: np.ndarray) -> Whole:
    """Return the count of the arm on top."""
    return heap[0] >> 32  # type: ignore[no-any-return]


@kernel
def pop(heap: np.ndarray, size: Whole) -> Whole:
    """Take the arm on top off; return the new size."""
    size -= 1
    item = heap[size]
    k = 0
    while 2 * k + 1 < size:
        child = 2 * k + 1
        if child + 1 < size and heap[child + 1] > heap[child]:
            child += 1
        if heap[child] <= item:
            break
        heap[k] = heap[child]
        k = child
    heap[k] = item
    return size
