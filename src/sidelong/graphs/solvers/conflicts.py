"""Which arms may not be chosen together: an undirected graph as compressed rows, without self-loops."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from scipy import sparse

if TYPE_CHECKING:
    from sidelong.graphs.arrays import Flags, Integers
    from sidelong.graphs.graph import FeedbackGraph


class Conflicts(NamedTuple):
    """Arm i may not be chosen together with ``targets[start[i]:start[i + 1]]``, in ascending order."""

    start: np.ndarray  #: int64, (n + 1,)
    targets: np.ndarray  #: int32, (2m,)

    @property
    def n(self) -> int:
        """The number of arms."""
        return self.start.size - 1

    def to_scipy(self) -> sparse.csr_array:
        """Return the matrix, of bool."""
        ones = np.ones(self.targets.size, np.bool_)
        return sparse.csr_array((ones, self.targets, self.start), shape=(self.n, self.n))

    def compatible(self) -> Flags:
        """Return the matrix of the pairs that may be chosen together."""
        matrix = ~np.eye(self.n, dtype=np.bool_)
        matrix[np.repeat(np.arange(self.n), np.diff(self.start)), self.targets] = False
        return matrix

    def induced(self, arms: Integers) -> Conflicts:
        """Return the conflicts among some arms, ascending, which are numbered anew."""
        return from_scipy(self.to_scipy()[arms][:, arms])


def from_scipy(matrix: sparse.csr_array) -> Conflicts:
    """Return the conflicts in a symmetric matrix; what is on its diagonal does not matter."""
    matrix = sparse.coo_array(matrix)
    keep = matrix.row != matrix.col
    rows, columns = matrix.row[keep].astype(np.int64), matrix.col[keep].astype(np.int64)
    order = rows * matrix.shape[0] + columns
    order.sort()
    start = np.zeros(matrix.shape[0] + 1, np.int64)
    np.cumsum(np.bincount(rows, minlength=matrix.shape[0]), out=start[1:])
    return Conflicts(start, (order % matrix.shape[0]).astype(np.int32))


def either(graph: FeedbackGraph) -> Conflicts:
    """Return the pairs of arms of which one reveals the other."""
    matrix = graph.to_scipy()
    return from_scipy(matrix if graph.is_undirected else matrix.maximum(matrix.T))


def mutual(graph: FeedbackGraph) -> Conflicts:
    """Return the pairs of arms that reveal each other."""
    matrix = graph.to_scipy()
    return from_scipy(matrix if graph.is_undirected else matrix.minimum(matrix.T))
