"""A sum tree: many numbers, none negative, of which one can change, a range be summed or one be drawn in O(log n).

A node has eight children, which lie side by side in memory, so that a million numbers are seven levels deep. The tree
is one array: the root, its children, theirs, ..., and last the numbers themselves, the *leaves*. Node k has the
children 8 k + 1 to 8 k + 8, and leaf i is node `first_leaf(n)` + i.

A node is always the sum of its eight children in a fixed order, made anew when one of them changes, and never corrected
by a difference. So no error ever builds up: after any number of changes the tree has the bits of one that was just
built, and as nothing is taken away, a sum is exact to within 3 roundings a level.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from sidelong._jit import kernel

if TYPE_CHECKING:
    from sidelong.numerics import Whole


def new_tree(n: int) -> np.ndarray:
    """Return a tree of n zeros."""
    return np.zeros(int(first_leaf(n)) + -(-n // 8) * 8)


@kernel
def first_leaf(n: Whole) -> Whole:
    """Return which node the first of n leaves is."""
    node = 0
    width = 1
    while width < n:
        node = 8 * node + 1
        width *= 8
    return node


@kernel
def resum(tree: np.ndarray, first: Whole, last: Whole) -> None:
    """Make anew all sums above the nodes from `first` to `last`, which are leaves that have changed."""
    while first > 0:
        first = (first - 1) >> 3
        last = (last - 1) >> 3
        for node in range(np.uint64(first), np.uint64(last) + np.uint64(1)):
            c = np.uint64(8) * np.uint64(node) + np.uint64(1)
            a = (tree[c] + tree[c + np.uint64(1)]) + (tree[c + np.uint64(2)] + tree[c + np.uint64(3)])
            b = (tree[c + np.uint64(4)] + tree[c + np.uint64(5)]) + (tree[c + np.uint64(6)] + tree[c + np.uint64(7)])
            tree[node] = a + b


@kernel
def plant(tree: np.ndarray, leaves: np.ndarray) -> None:
    """Give the tree these leaves."""
    base = first_leaf(leaves.size)
    for i in range(leaves.size):
        tree[base + i] = leaves[i]
    resum(tree, base, base + leaves.size - 1)


@kernel
def range_sum(tree: np.ndarray, first: Whole, after: Whole) -> float:
    """Return the sum of the nodes from `first` to `after` - 1, which are leaves."""
    s: Any = 0.0
    while after - first > 16:
        while (first - 1) & 7:
            s += tree[first]
            first += 1
        while (after - 1) & 7:
            after -= 1
            s += tree[after]
        first = (first - 1) >> 3  # whole families: their parents stand for them
        after = (after - 1) >> 3
    for node in range(first, after):
        s += tree[node]
    return s  # type: ignore[no-any-return]


@kernel
def locate(tree: np.ndarray, other: np.ndarray, scale: float, u: float, base: Whole) -> Whole:
    """Return the leaf on which u >= 0 falls when the shares scale * tree_i + other_i are laid end to end.

    Both trees are of the same size, and `base` is their first leaf. Never a leaf without a share, even where rounding
    leaves the sum of all below u.
    """
    node = 0
    while node < base:
        below = 8 * node + 1
        node = below
        for child in range(below, below + 8):
            share = scale * tree[child] + other[child]
            if share > 0.0:
                node = child
                if u < share:
                    break
                u -= share
    return node - base
