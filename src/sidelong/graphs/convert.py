"""Graphs from matrices, edges, ranges, scipy.sparse and networkx: what is checked, and what is said then."""

from __future__ import annotations

import operator
import sys
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np

from sidelong._install import pip_install
from sidelong.checks import check_whole
from sidelong.errors import GraphError
from sidelong.graphs import layout

if TYPE_CHECKING:
    from types import ModuleType

    import numpy.typing as npt

    from sidelong.graphs.arrays import GraphArrays

MAX_ARMS = 2**31 - 1


def from_matrix(matrix: npt.ArrayLike) -> GraphArrays:
    """Lay out a square matrix of 0 and 1."""
    if _is_sparse(matrix):
        raise GraphError("A matrix is a dense array, not a sparse one; use FeedbackGraph.from_scipy.")
    try:
        array = np.asarray(matrix)
    except ValueError as error:
        raise GraphError(f"A matrix has rows of equal length; these cannot be made one: {error}.") from error
    _check_square(array.shape)
    _check_values(array)
    rows, columns = np.nonzero(array)
    return layout.from_pairs(rows, columns, array.shape[0])


def from_scipy(matrix: Any) -> GraphArrays:  # SciPy's sparse types share no public base class
    """Lay out a square scipy.sparse matrix or array of 0 and 1."""
    if not _is_sparse(matrix):
        raise GraphError(
            f"from_scipy takes a scipy.sparse matrix or array, not {type(matrix).__name__}; "
            f"use FeedbackGraph.from_matrix for a dense one."
        )
    _check_square(matrix.shape)
    rows = matrix.tocsr(copy=True)
    rows.sum_duplicates()
    entries = rows.tocoo()
    _check_values(entries.data)
    ends = np.column_stack([entries.row, entries.col])[entries.data != 0]
    return from_edges(ends, matrix.shape[0])


def _check_square(shape: tuple[int, ...]) -> None:
    if len(shape) != 2 or shape[0] != shape[1]:
        raise GraphError(
            f"A matrix has one row and one column for each arm, so it is square; this one has shape {shape}."
        )
    _check_arms(shape[0])


def _check_values(values: npt.NDArray[Any]) -> None:
    if values.dtype == np.bool_:
        return
    if values.dtype.kind not in "iuf":
        raise GraphError(f"A matrix holds 0 and 1, or False and True; this one has dtype {values.dtype}.")
    wrong = values[(values != 0) & (values != 1)]
    if wrong.size:
        hint = "replace it" if np.isnan(wrong[0]) else "if it is a weight, compare: matrix > 0"
        raise GraphError(f"A matrix holds 0 and 1, or False and True; this one holds {wrong.flat[0]}. ({hint})")


def from_edges(
    edges: Iterable[Any], n_arms: int | None = None, *, undirected: bool = False, self_loops: bool = False
) -> GraphArrays:
    """Lay out pairs (i, j): playing i reveals j."""
    if hasattr(edges, "__array__"):  # an array, or a table: Arrow's, pandas' and Polars' all iterate in other ways
        pairs = np.asarray(edges)
    elif isinstance(edges, Iterable):
        pairs = _array(list(edges))
    else:
        raise GraphError(f"Edges are a list of pairs (i, j), not {edges!r}.")
    if pairs.shape[:1] == (0,):
        pairs = np.empty((0, 2), np.int64)
    if not _are_pairs(pairs):
        raise GraphError(
            f"Edges are an array of whole numbers with two columns; this one has shape {pairs.shape} and "
            f"dtype {pairs.dtype}."
        )
    n = _check_arms(int(pairs.max()) + 1 if n_arms is None and pairs.size else n_arms)
    wrong = np.flatnonzero(((pairs < 0) | (pairs >= n)).any(axis=1))
    if wrong.size:
        i, j = pairs[wrong[0]].tolist()
        raise GraphError(
            f"An edge joins two of the arms 0 to {n - 1}; edge number {wrong[0]} is ({i}, {j}). "
            f"Correct it, or pass a larger n_arms."
        )
    rows, columns = np.ascontiguousarray(pairs.T, np.int64)
    if undirected:
        rows, columns = np.concatenate([rows, columns]), np.concatenate([columns, rows])
    if self_loops:
        rows, columns = np.append(rows, np.arange(n)), np.append(columns, np.arange(n))
    return layout.from_pairs(rows, columns, n)


def _are_pairs(array: npt.NDArray[Any]) -> bool:
    return array.ndim == 2 and array.shape[1] == 2 and array.dtype.kind in "iu"


def _array(edges: list[Any]) -> npt.NDArray[Any]:
    try:
        array = np.array(edges)
    except ValueError:  # of unequal length
        array = np.empty(len(edges), np.object_)
    if not edges or _are_pairs(array):
        return array
    for number, edge in enumerate(edges):
        try:
            i, j = map(operator.index, edge)
        except (TypeError, ValueError):
            raise GraphError(
                f"An edge is a pair (i, j) of whole numbers, arms counted from 0; edge number {number} is {edge!r}."
            ) from None
        if not (0 <= i < MAX_ARMS and 0 <= j < MAX_ARMS):
            raise GraphError(
                f"Arms are counted from 0, and there are at most {MAX_ARMS:,}; edge number {number} is {edge!r}."
            )
    raise GraphError(f"An edge is a pair (i, j) of whole numbers, arms counted from 0; the first is {edges[0]!r}.")


def _check_arms(n_arms: Any) -> int:  # whatever a caller passes
    if n_arms is None:
        raise GraphError("A graph has at least one arm; there is no edge that says how many, so pass n_arms.")
    return check_whole(GraphError, "A graph has at least one arm: n_arms", n_arms, 1, MAX_ARMS)


def from_intervals(low: npt.ArrayLike, high: npt.ArrayLike) -> GraphArrays:
    """Lay out ranges: arm i reveals low[i], ..., high[i] - 1."""
    ends = [np.asarray(low), np.asarray(high)]
    if ends[0].ndim != 1 or ends[0].shape != ends[1].shape:
        raise GraphError(
            f"low and high are two lists with one number for each arm; "
            f"these have the shapes {ends[0].shape} and {ends[1].shape}."
        )
    n = _check_arms(ends[0].size)
    for name, end in zip(("low", "high"), ends, strict=True):
        if end.dtype.kind not in "iu":
            raise GraphError(f"low and high are whole numbers; {name} has dtype {end.dtype}.")
    wrong = np.flatnonzero((ends[0] < 0) | (ends[0] > ends[1]) | (ends[1] > n))
    if wrong.size:
        arm = wrong[0]
        raise GraphError(
            f"A range [low, high) has 0 <= low <= high <= {n}, the number of arms; "
            f"that of arm {arm} is [{ends[0][arm]}, {ends[1][arm]})."
        )
    return layout.intervals(ends[0].astype(np.int64), ends[1].astype(np.int64))


def from_rows(degree: npt.NDArray[np.integer], targets: npt.NDArray[np.integer]) -> GraphArrays:
    """Lay out rows as arcs: arm i reveals the next degree[i] arms of `targets`, ascending."""
    n = _check_arms(degree.size)
    if degree.min() < 0 or degree.sum() != targets.size:
        raise GraphError(f"The lengths of rows are 0 or more, and {targets.size} in all; these are {degree.sum()}.")
    if targets.size and not 0 <= targets.min() <= targets.max() < n:
        raise GraphError(f"An edge joins two of the arms 0 to {n - 1}, not {targets.min()} or {targets.max()}.")
    rising = np.ones(targets.size + 1, np.bool_)
    np.greater(targets[1:], targets[:-1], out=rising[1:-1])
    rising[np.cumsum(degree)] = True  # where a row ends, the next one begins with any arm
    if not rising.all():
        raise GraphError("The arms in each row of a graph ascend, each once.")
    return layout.arcs(degree, targets)


def from_networkx(graph: Any) -> tuple[GraphArrays, list[str] | None]:  # networkx is optional
    """Lay out a networkx graph; the arms are its nodes in their order, and named so, unless those are 0, ..., n - 1."""
    nx = import_networkx()
    if not isinstance(graph, nx.Graph):
        raise GraphError(f"from_networkx takes a networkx graph, not {type(graph).__name__}.")
    n = graph.number_of_nodes()
    numbered = all(i in graph for i in range(n))
    arm = {node: number for number, node in enumerate(range(n) if numbered else graph.nodes)}
    edges = [(arm[i], arm[j]) for i, j, weight in graph.edges(data="weight", default=1) if weight != 0]
    labels = [str(node) for node in arm]
    if len(set(labels)) < n:  # such as 1 and "1"
        labels = [repr(node) for node in arm]
    return from_edges(edges, n, undirected=not graph.is_directed()), None if numbered else labels


def import_networkx() -> ModuleType:
    """Return the module networkx, which is an optional dependency."""
    try:
        import networkx as nx  # noqa: PLC0415  # optional
    except ImportError as error:
        raise GraphError(f"This needs networkx. {pip_install('networkx')}") from error
    return nx  # type: ignore[no-any-return]


def _is_sparse(matrix: object) -> bool:
    sparse = sys.modules.get("scipy.sparse")  # nobody has such a matrix who has not loaded it
    return sparse is not None and bool(sparse.issparse(matrix))
