"""The graph that says what an arm reveals when it is played."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, NoReturn, final

import numpy as np

from sidelong._packed import Packed, pack
from sidelong.checks import check_whole, short
from sidelong.display.notebook import notebook
from sidelong.errors import GraphError
from sidelong.graphs import convert, layout
from sidelong.graphs.arrays import GraphArrays, observe
from sidelong.graphs.observability import Observability, classify
from sidelong.tables import are_several

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Iterable

    import numpy.typing as npt
    from scipy import sparse

    from sidelong.graphs.numbers import GraphNumbers

_MAX_CELLS = 2**30
_MAX_LISTED = 2**28
_MAX_NETWORKX = 2**24
_SHORT, _KEPT_ROWS = 64, 4096  # of rows that are kept as they are asked for


@final
class FeedbackGraph:
    """A directed graph over the arms 0, ..., K - 1: an edge (i, j) says that playing i reveals the loss of j.

    So row i of its matrix says what playing i reveals. An arm reveals itself only if it has a self-loop, and
    none is added unless you ask for it. A graph cannot be changed. Two graphs are equal if the same arms
    reveal the same arms, whatever their names, labels and representations.

    There are two representations. *Intervals* are chosen if every arm reveals one contiguous range of arms;
    they take O(K) memory, however many edges there are. All other graphs are *arcs*, a list of edges.

    Make one with `from_edges`, `from_matrix`, `from_intervals`, `from_scipy`, `from_networkx` or `load`, or
    by name with a function of `sidelong.graphs`.

    Examples:
        >>> graph = FeedbackGraph.from_edges([(0, 1), (1, 2)], self_loops=True)
        >>> graph
        <FeedbackGraph: 3 arms, 5 edges as intervals, every arm reveals itself>
        >>> graph.out_neighbors(0)
        array([0, 1], dtype=int32)
        >>> graph.observe_probabilities([0.5, 0.25, 0.25])
        array([0.5 , 0.75, 0.5 ])

    """

    _layout: GraphArrays
    name: str | None  #: what to call it, such as "nested(24)"; not part of what it is
    labels: tuple[str, ...] | None  #: what to call its arms, if they have names; not part of what it is

    def __init__(self, layout_: GraphArrays, name: str | None = None, labels: tuple[str, ...] | None = None) -> None:
        if not isinstance(layout_, GraphArrays):
            raise GraphError(
                f"A graph is made with FeedbackGraph.from_matrix, from_edges, from_intervals, from_scipy, "
                f"from_networkx or load, not from {type(layout_).__name__} directly."
            )
        self.__dict__.update(_layout=layout_, name=name or None, labels=labels)

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise AttributeError(f"A FeedbackGraph cannot be changed; make a new one (tried to set {name!r}).")

    def __delattr__(self, name: str) -> NoReturn:
        raise AttributeError(f"A FeedbackGraph cannot be changed; make a new one (tried to delete {name!r}).")

    @classmethod
    def from_matrix(cls, matrix: npt.ArrayLike) -> FeedbackGraph:
        """Make a graph from a square matrix of 0 and 1, or bool: row i says what playing i reveals."""
        return cls(convert.from_matrix(matrix))

    @classmethod
    def from_edges(
        cls,
        edges: Iterable[tuple[int, int]] | npt.NDArray[np.integer],
        n_arms: int | None = None,
        *,
        undirected: bool = False,
        self_loops: bool = False,
    ) -> FeedbackGraph:
        """Make a graph from edges.

        Args:
            edges: pairs (i, j), or an array or a table with two columns: playing i reveals j. Repeated ones count
                once.
            n_arms: the number of arms; one more than the largest in an edge if not given.
            undirected: add the edge (j, i) for each (i, j).
            self_loops: add the edge (i, i) for each arm.

        """
        return cls(convert.from_edges(edges, n_arms, undirected=undirected, self_loops=self_loops))

    @classmethod
    def from_intervals(cls, low: npt.ArrayLike, high: npt.ArrayLike) -> FeedbackGraph:
        """Make a graph in which playing i reveals low[i], ..., high[i] - 1; nothing if the two are equal."""
        return cls(convert.from_intervals(low, high))

    @classmethod
    def from_rows(cls, degree: npt.NDArray[np.integer], targets: npt.NDArray[np.integer]) -> FeedbackGraph:
        """Make a graph as arcs in O(K + E): playing i reveals the next degree[i] arms of `targets`, ascending."""
        return cls(convert.from_rows(degree, targets))

    @classmethod
    def from_scipy(cls, matrix: Any) -> FeedbackGraph:  # SciPy's sparse types share no public base class
        """Make a graph from a square scipy.sparse matrix of 0 and 1: row i says what playing i reveals.

        An entry that is stored and 0 is no edge.
        """
        return cls(convert.from_scipy(matrix))

    @classmethod
    def from_networkx(cls, graph: Any) -> FeedbackGraph:  # networkx is optional
        """Make a graph from a networkx graph.

        If its nodes are the numbers 0, ..., n - 1, node i is arm i. Otherwise the arms are the nodes in the
        order of ``graph.nodes``, and `labels` are what they are called. An edge of an undirected graph is an edge in
        both directions. One whose weight is 0 is no edge, as in a matrix; other weights are not read.
        """
        layout_, labels = convert.from_networkx(graph)
        return cls(layout_).labelled(labels)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> FeedbackGraph:
        """Read a graph from a file; see `sidelong.graphs.files` for the formats."""
        from sidelong.graphs import files  # noqa: PLC0415  # that module makes graphs

        return files.load(path)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the graph to a file; its suffix gives the format: .txt, .edges, .tsv, .csv, .json or .npz."""
        from sidelong.graphs import files  # noqa: PLC0415  # that module makes graphs

        files.save(self, path)

    def named(self, name: str | None) -> FeedbackGraph:
        """Return the same graph under another name."""
        return FeedbackGraph(self._layout, name, self.labels)

    def labelled(self, labels: Iterable[object] | None) -> FeedbackGraph:
        """Return the same graph with a name for each arm, such as ``graph.labelled(["small", "large"])``.

        The names are made text, and must differ. None takes them away.
        """
        return FeedbackGraph(self._layout, self.name, None if labels is None else self._check_labels(labels))

    def arm_name(self, arm: int) -> str:
        """Return how a message names an arm: by its number, and by its label if it has one."""
        return str(arm) if self.labels is None else f"{arm} ({short(self.labels[arm])})"

    def as_arcs(self) -> FeedbackGraph:
        """Return the same graph with every edge listed."""
        if not self._layout.contiguous:
            return self
        return FeedbackGraph(self._expanded(), self.name, self.labels)

    def with_self_loops(self) -> FeedbackGraph:
        """Return the graph in which every arm also reveals itself."""
        if not self.arms_without_self_loop.size:
            return self
        name = self.name and f"{self.name} with self-loops"
        start, stop = self._layout.start, self._layout.stop
        arm = np.arange(self.n_arms)
        if self._layout.contiguous:
            empty = start == stop
            low = np.where(empty, arm, np.minimum(start, arm))
            high = np.where(empty, arm, stop)
            high = np.maximum(high, arm + 1)
            if (high - low <= stop - start + 1).all():  # no gap between an arm and what it reveals
                return FeedbackGraph(layout.intervals(low, high), name, self.labels)
        rows, columns = layout.pairs(self._expanded())
        looped = layout.from_pairs(np.append(rows, arm), np.append(columns, arm), self.n_arms)
        return FeedbackGraph(looped, name, self.labels)

    @property
    def n_arms(self) -> int:
        """The number of arms, K."""
        return self._layout.start.size

    @cached_property
    def n_edges(self) -> int:
        """The number of edges, self-loops included."""
        return int((self._layout.stop - self._layout.start).sum())

    @property
    def representation(self) -> Literal["arcs", "intervals"]:
        """How the graph is kept: "arcs" or "intervals"."""
        return "intervals" if self._layout.contiguous else "arcs"

    @cached_property
    def is_undirected(self) -> bool:
        """Whether i reveals j wherever j reveals i."""
        return layout.is_symmetric(self._layout)

    @cached_property
    def arms_without_self_loop(self) -> npt.NDArray[np.int64]:
        """The arms that do not reveal themselves, ascending."""
        arms = np.flatnonzero(~layout.reveals_itself(self._layout))
        arms.setflags(write=False)
        return arms

    @cached_property
    def observability(self) -> Observability:
        """Whether every arm can be learned about: strong, weak or none, and which arm is why."""
        return classify(self._layout)

    @cached_property
    def content_hash(self) -> str:
        """A SHA-256, in hexadecimal, of what reveals what: equal for equal graphs, on any machine."""
        return layout.content_hash(self._layout)

    @cached_property
    def arrays(self) -> GraphArrays:
        """The graph as kernels see it."""
        return self._layout._replace(key=int(self.content_hash[:16], 16) >> 1)

    @cached_property
    def packed(self) -> Packed:
        """The same, for kernels that are called once for each round."""
        return pack(self.arrays)

    def out_neighbors(self, i: int) -> npt.NDArray[np.int32]:
        """Return the arms that playing i reveals, ascending."""
        return self.row(self._check_arm(i))

    def row(self, arm: int) -> npt.NDArray[np.int32]:
        """Return the same, for a caller who knows that there is such an arm: short rows are at hand."""
        row = self._rows.get(arm)
        return self._new_row(arm) if row is None else row

    def row_list(self, arm: int) -> list[int]:
        """Return the row of an arm as a list, which belongs to the graph and must not be changed."""
        listed = self._row_lists.get(arm)
        if listed is None:
            row = self.row(arm)
            listed = row.tolist()
            if row.size <= _SHORT and len(self._row_lists) < _KEPT_ROWS:
                self._row_lists[arm] = listed
        return listed

    @cached_property
    def _rows(self) -> dict[int, npt.NDArray[np.int32]]:
        return {}

    @cached_property
    def _row_lists(self) -> dict[int, list[int]]:
        return {}

    def _new_row(self, arm: int) -> npt.NDArray[np.int32]:
        row = self._layout.targets[self._layout.start[arm] : self._layout.stop[arm]]
        if row.size <= _SHORT:
            row = row.copy()  # by itself, it does not keep the graph alive
            row.setflags(write=False)
            if len(self._rows) < _KEPT_ROWS:
                self._rows[arm] = row
        return row

    def in_neighbors(self, i: int) -> npt.NDArray[np.int32]:
        """Return the arms that reveal i when played, ascending."""
        i = self._check_arm(i)
        if not self._layout.contiguous:
            return self._layout.sources[self._layout.in_start[i] : self._layout.in_stop[i]]
        arms = np.flatnonzero((self._layout.start <= i) & (i < self._layout.stop)).astype(np.int32)
        arms.setflags(write=False)
        return arms

    def reveals(self, i: int, j: int) -> bool:
        """Tell whether playing i reveals j."""
        seen, j = self.out_neighbors(i), self._check_arm(j)
        at = int(np.searchsorted(seen, j))
        return at < seen.size and bool(seen[at] == j)

    def observe_probabilities(self, p: npt.ArrayLike, arms: npt.ArrayLike | None = None) -> npt.NDArray[np.float64]:
        """Return the probability that each arm is observed when one is drawn from `p`.

        Args:
            p: the probability that each arm is played.
            arms: the arms to answer for, in this order; all if not given. On arcs, a few cost less than all.

        """
        try:
            p = np.require(p, np.float64, ["C", "A", "W", "E"])  # so that the kernel is compiled for one type
        except (OverflowError, TypeError, ValueError) as error:
            raise GraphError(f"p cannot be read as numbers: {error}.") from error
        if p.shape != (self.n_arms,):
            raise GraphError(f"p has one probability for each of the {self.n_arms} arms; its shape is {p.shape}.")
        if arms is None or self._layout.contiguous:
            _check_probabilities(p)
            P = np.empty(self.n_arms)
            observe(self.arrays, p, P)
            return P if arms is None else P[[self._check_arm(i) for i in np.atleast_1d(arms)]]
        return np.array([_ordered_sum(p[self.in_neighbors(i)]) for i in np.atleast_1d(arms)], np.float64)

    def matrix(self) -> npt.NDArray[np.bool_]:
        """Return the matrix: entry (i, j) says whether playing i reveals j."""
        if self.n_arms**2 > _MAX_CELLS:
            raise GraphError(
                f"A matrix has at most {_MAX_CELLS:,} entries, and that of {self!r} would have more. "
                f"Use out_neighbors(i) or reveals(i, j)."
            )
        if self._layout.contiguous:
            arm = self._layout.targets
            return (self._layout.start[:, None] <= arm) & (arm < self._layout.stop[:, None])
        matrix = np.zeros((self.n_arms, self.n_arms), np.bool_)
        matrix[layout.pairs(self._layout)] = True
        return matrix

    def numbers(self, budget: float = 10.0) -> GraphNumbers:
        """Return the numbers on which regret depends: independence, domination and others.

        They are NP-hard in general. Each is computed when it is first asked for, in at most `budget` seconds, and comes
        as an interval with certificates.

        Examples:
            >>> numbers = FeedbackGraph.from_edges([(0, 1), (1, 2), (2, 0)], self_loops=True).numbers()
            >>> numbers.independence.value, numbers.acyclic.value, numbers.strong_independence.value
            (1, 2, 3)
            >>> numbers.acyclic.certificate
            array([0, 1])

        """
        from sidelong.graphs.numbers import GraphNumbers  # noqa: PLC0415  # SciPy's solvers take time to load

        return GraphNumbers(self, budget)

    def edges(self) -> npt.NDArray[np.int64]:
        """Return an array with a row (i, j) for each edge, ordered by i, then j."""
        self._refuse_above(_MAX_LISTED, "Listing the edges", "use out_neighbors(i)")
        return np.column_stack(layout.pairs(self._expanded()))

    def to_scipy(self) -> sparse.csr_array:
        """Return the matrix as a scipy.sparse array of bool."""
        from scipy import sparse  # noqa: PLC0415  # it takes a while to load

        graph = self._expanded()
        pointers = np.append(graph.start, graph.stop[-1])
        entries = (np.ones(graph.targets.size, np.bool_), graph.targets.copy(), pointers)
        return sparse.csr_array(entries, shape=(self.n_arms, self.n_arms))

    def to_networkx(self) -> Any:  # networkx is optional
        """Return a networkx.DiGraph with the labels as nodes, or 0, ..., K - 1 if there are none."""
        networkx = convert.import_networkx()
        graph = networkx.DiGraph(name=self.name or "")
        self._refuse_above(_MAX_NETWORKX, "Making a networkx graph", "use to_scipy()")
        nodes = self.labels or range(self.n_arms)
        graph.add_nodes_from(nodes)
        graph.add_edges_from((nodes[i], nodes[j]) for i, j in self.edges().tolist())
        return graph

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, FeedbackGraph):
            return NotImplemented
        return self.n_arms == other.n_arms and self.content_hash == other.content_hash

    def __hash__(self) -> int:
        return self.arrays.key

    def __reduce__(self) -> tuple[Callable[..., FeedbackGraph], tuple[object, ...]]:
        kept = self._layout
        return _restore, (kept.start, kept.stop, None if kept.contiguous else kept.targets, self.name, self.labels)

    def __repr__(self) -> str:
        lacking = self.arms_without_self_loop
        if not lacking.size:
            loops = "every arm reveals itself"
        elif lacking.size == 1:
            loops = f"arm {self.arm_name(int(lacking[0]))} does not reveal itself"
        else:
            loops = f"{lacking.size:,} arms do not reveal themselves, the first is {lacking[0]}"
        title = f"FeedbackGraph {self.name}" if self.name else "FeedbackGraph"
        size = f"{_count(self.n_arms, 'arm')}, {_count(self.n_edges, 'edge')}"
        return f"<{title}: {size} as {self.representation}, {loops}>"

    def _repr_html_(self) -> str:
        return notebook(self)

    def _expanded(self) -> GraphArrays:
        if not self._layout.contiguous:
            return self._layout
        self._refuse_above(layout.MAX_ARCS, "Listing the edges", "keep it as intervals")
        return layout.expand(self._layout)

    def _check_arm(self, i: int) -> int:
        return check_whole(GraphError, "An arm", i, 0, self.n_arms - 1)

    def _check_labels(self, labels: Iterable[object]) -> tuple[str, ...]:
        if not are_several(labels):
            raise GraphError(f"Labels are a list of names, one for each arm, not {labels!r}.")
        named = tuple(map(str, labels))
        if len(named) != self.n_arms:
            raise GraphError(f"There is one label for each of the {self.n_arms} arms, not {len(named)}.")
        if len(set(named)) < len(named):
            again = next(label for arm, label in enumerate(named) if label in named[:arm])
            raise GraphError(f"The labels of arms differ from each other; {again!r} stands there twice.")
        return named

    def _refuse_above(self, limit: int, what: str, instead: str) -> None:
        if self.n_edges > limit:
            raise GraphError(f"{what} of {self!r} is refused above {limit:,} edges; {instead}.")


def _restore(start: Any, stop: Any, targets: Any, name: str | None, labels: tuple[str, ...] | None) -> FeedbackGraph:
    kept = layout.intervals(start, stop) if targets is None else layout.arcs(stop - start, targets)
    return FeedbackGraph(kept, name, labels)


def _check_probabilities(p: npt.NDArray[np.float64]) -> None:
    wrong = p[~((p >= 0) & (p < np.inf))]
    if wrong.size:
        raise GraphError(f"A probability is a number from 0 to 1; p holds {wrong[0]}.")


def _ordered_sum(p: npt.NDArray[np.float64]) -> float:
    """Sum from the first to the last, as the kernel does, so that both give the same bits."""
    _check_probabilities(p)
    return float(np.add.accumulate(p)[-1]) if p.size else 0.0


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
