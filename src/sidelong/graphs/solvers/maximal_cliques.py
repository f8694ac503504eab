"""All cliques of conflicts that cannot be extended, if they are few.

E. Tomita, A. Tanaka, H. Takahashi, "The worst-case time complexity for generating all maximal cliques and computational
experiments", Theoretical Computer Science 363 (2006).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from sidelong._jit import kernel, rare_kernel
from sidelong.graphs.solvers import bits
from sidelong.graphs.solvers.budget import call
from sidelong.graphs.solvers.groups import Groups

if TYPE_CHECKING:
    from sidelong.graphs.solvers.conflicts import Conflicts
    from sidelong.numerics import Whole

_STEPS = 100_000_000  # words looked at, at most


class CliquePath(NamedTuple):
    """A clique, and at each depth what can extend it: not tried yet, tried before, and to be tried from here."""

    adjacency: np.ndarray  #: uint64, (n, words)
    fresh: np.ndarray  #: uint64, (depths, words)
    tried: np.ndarray  #: uint64, (depths, words)
    branches: np.ndarray  #: uint64, (depths, words)
    clique: np.ndarray  #: int64, (depths,)


@rare_kernel
def list_all(path: CliquePath, start: np.ndarray, arms: np.ndarray, steps: int) -> Whole:
    """Write the cliques and return how many; -1 if room or steps do not suffice."""
    count = 0
    size = 0
    depth = np.int64(0)
    _set_out(path, depth)
    while depth >= 0:
        steps -= 1
        if steps < 0 or count + 1 == start.size or size + depth + 1 > arms.size:
            return -1
        v = bits.following(path.branches[depth], np.int64(0))
        if v < 0:
            depth -= 1
            continue
        _follow(path, depth, v)
        if not bits.is_empty(path.fresh[depth + 1]):
            depth += 1
            _set_out(path, depth)
        elif bits.is_empty(path.tried[depth + 1]):
            for k in range(depth + 1):
                arms[size] = path.clique[k]
                size += 1
            count += 1
            start[count] = size
    return count


@kernel
def _follow(path: CliquePath, depth: Whole, v: Whole) -> None:
    """Extend the clique by v, and note that this was tried."""
    path.clique[depth] = v
    for w in range(path.adjacency.shape[1]):
        path.fresh[depth + 1, w] = path.fresh[depth, w] & path.adjacency[v, w]
        path.tried[depth + 1, w] = path.tried[depth, w] & path.adjacency[v, w]
    bits.discard(path.branches[depth], v)
    bits.discard(path.fresh[depth], v)
    bits.add(path.tried[depth], v)


@kernel
def _set_out(path: CliquePath, depth: Whole) -> None:
    """Of what extends the clique, try only what the arm that is joined with the most of it is not joined with."""
    words = path.adjacency.shape[1]
    for w in range(words):
        path.branches[depth, w] = path.fresh[depth, w] | path.tried[depth, w]
    pivot = np.int64(-1)
    most = np.int64(-1)
    v = bits.following(path.branches[depth], np.int64(0))
    while v >= 0:
        joined = np.int64(0)
        for w in range(words):
            joined += bits.count_bits(path.fresh[depth, w] & path.adjacency[v, w])
        if joined > most:
            most = joined
            pivot = np.int64(v)
        v = bits.following(path.branches[depth], v + 1)
    for w in range(words):
        path.branches[depth, w] = path.fresh[depth, w] & ~path.adjacency[pivot, w]


def list_maximal_cliques(conflicts: Conflicts, most: int) -> Groups | None:
    """Return all maximal cliques, or None if there are more than `most`, or too many arms in them."""
    n = conflicts.n
    depths = int(np.diff(conflicts.start).max()) + 2
    words = bits.words_for(n)
    fresh, tried, branches = np.zeros((3, depths, words), np.uint64)
    path = CliquePath(bits.pack(conflicts.joined()), fresh, tried, branches, np.zeros(depths, np.int64))
    fresh[0] = bits.all_of(n)
    start, arms = np.zeros(most + 1, np.int64), np.zeros(20 * most, np.int64)
    count = int(call(list_all, path, start, arms, min(20 * most, _STEPS // (n * words))))
    return None if count < 0 else Groups(start[: count + 1].copy(), arms[: start[count]].copy())
