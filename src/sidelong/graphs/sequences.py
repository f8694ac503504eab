"""Graphs over time: a bank of graphs and a pure schedule from the round to the graph.

`simulate` takes a sequence wherever it takes a graph. The graph of a round depends only on the seed, the run and the
round. So every learner meets the same graphs, and any round can be asked for on its own.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from sidelong.checks import check_flag, check_number, check_whole, plain, short
from sidelong.errors import GraphError
from sidelong.graphs.bank import CYCLE, DRAWN, RESAMPLED, SHADOWS, BankArrays, lay_out, pick, redraw
from sidelong.graphs.families import complete, self_loops
from sidelong.graphs.graph import FeedbackGraph
from sidelong.graphs.makers import sequence
from sidelong.tables import are_several

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt


@dataclass(frozen=True, eq=False)
class GraphSequence:
    """A graph for every round; made by `alternating`, `drawn`, `scheduled`, `resampled` or `shadows`."""

    n_arms: int
    bank: tuple[FeedbackGraph, ...]
    shown: str  #: "before" the draw, or "after" it
    name: str
    _kind: int
    _schedule: npt.NDArray[np.int64]
    _numbers: npt.NDArray[np.float64]

    def __post_init__(self) -> None:
        if self.shown not in {"before", "after"}:
            raise GraphError(f"shown must be 'before' or 'after' the draw, not {self.shown!r}.")
        if len({graph.n_arms for graph in self.bank}) > 1:
            sizes = ", ".join(str(graph.n_arms) for graph in self.bank)
            raise GraphError(f"The graphs of a sequence must have the same number of arms, not {sizes}.")

    def __repr__(self) -> str:
        return f"<GraphSequence {self.name}: {self.n_arms} arms, shown {self.shown} the draw>"

    def graph_of_round(self, t: int, *, seed: int = 0, run: int = 0) -> FeedbackGraph:
        """Return the graph of a round: the one that `simulate` uses with this seed in this run."""
        t, run = check_whole(GraphError, "t", t, 1), check_whole(GraphError, "run", run, 0, 2**32 - 1)
        seed = check_whole(GraphError, "seed", seed, 0, 2**64 - 1)
        if self._kind == CYCLE:
            return self.bank[int(self._schedule[(t - 1) % self._schedule.size])]
        arrays = self.arrays
        if self._kind == DRAWN:
            return self.bank[pick(arrays, np.uint64(seed), run, t)]
        redraw(arrays, np.uint64(seed), run, t)
        start, stop = arrays.rows[:2]
        edges = np.column_stack([np.repeat(np.arange(self.n_arms), stop - start), arrays.lists[0, : stop[-1]]])
        return FeedbackGraph.from_edges(edges, self.n_arms).as_arcs()

    @property
    def extremes(self) -> tuple[FeedbackGraph, ...]:
        """Graphs that stand for all: a learner that may play on each of them may play on any of the sequence."""
        if self.bank:
            return self.bank
        K, (r, symmetric) = self.n_arms, self._likelihood
        if K == 1 or r == 1.0:
            return (complete(K),)
        one_arc = self_loops(K) if r == 0.0 else FeedbackGraph.from_edges([(0, 1)], K).with_self_loops()
        return (self_loops(K), self_loops(K) if symmetric else one_arc)

    @property
    def _likelihood(self) -> tuple[float, bool]:
        """The chance of an arc, and whether each comes with its opposite."""
        if self._kind == RESAMPLED:
            return float(self._numbers[0]), not self._schedule[0]
        return (0.5 if self._schedule[0] else 0.0), False  # there may be no shadow, or one arm that all others show

    @property
    def arrays(self) -> BankArrays:
        """What kernels see. Drawing a graph anew writes into these arrays, so that each run needs its own."""
        return self.arrays_with()

    def arrays_with(self, *more: FeedbackGraph) -> BankArrays:
        """Return `arrays`, with graphs behind those of the bank that no round has."""
        return lay_out(self._kind, self._schedule, self._numbers, (*self.bank, *more), self.n_arms)


def fixed(graph: FeedbackGraph) -> GraphSequence:
    """Return the sequence that is the same graph in every round."""
    return scheduled([graph], [0])


@sequence(graphs="graphs", shown="text", size=lambda graphs, **_: _size(graphs))
def alternating(graphs: Sequence[FeedbackGraph], *, shown: str = "before") -> GraphSequence:
    """Go through the graphs in turn, and again from the first."""
    return scheduled(graphs, range(len(_checked_bank(graphs))), shown=shown)


@sequence(graphs="graphs", schedule="list", shown="text", size=lambda graphs, **_: _size(graphs))
def scheduled(
    graphs: Sequence[FeedbackGraph], schedule: Sequence[int] | npt.NDArray[np.int64], *, shown: str = "before"
) -> GraphSequence:
    """Use graph ``schedule[t - 1]`` in round t; after its last entry the schedule begins again."""
    bank = _checked_bank(graphs)
    order = np.asarray(schedule)
    if order.ndim != 1 or not order.size or not np.issubdtype(order.dtype, np.integer):
        raise GraphError(
            f"A schedule is a list of whole numbers, at least one, the graph of each round; not {short(schedule)}."
        )
    if order.min() < 0 or order.max() >= len(bank):
        wrong = int(order[(order < 0) | (order >= len(bank))][0])
        raise GraphError(f"A schedule names graphs from 0 to {len(bank) - 1}, not {wrong}.")
    name = f"scheduled, {len(bank)} graphs over {order.size} rounds"
    return GraphSequence(bank[0].n_arms, bank, shown, name, CYCLE, order.astype(np.int64), np.empty(0))


@sequence(graphs="graphs", weights="list", shown="text", size=lambda graphs, **_: _size(graphs))
def drawn(
    graphs: Sequence[FeedbackGraph], weights: Sequence[float] | None = None, *, shown: str = "before"
) -> GraphSequence:
    """Draw one of the graphs in each round, all with the same chance or in proportion to the weights."""
    bank = _checked_bank(graphs)
    given: Iterable[object] = weights if isinstance(weights, Iterable) else [weights]
    numbers = [1.0] * len(bank) if weights is None else [plain(x) for x in given]
    chances = np.array(numbers, np.float64)
    if chances.shape != (len(bank),) or not (np.isfinite(chances).all() and (chances >= 0).all() and chances.any()):
        raise GraphError(f"weights must be {len(bank)} numbers, none negative and not all 0, not {weights!r}.")
    chances /= chances.max()  # the sum of large ones would not be finite
    cumulated = np.cumsum(chances / chances.sum())
    name = f"drawn from {len(bank)} graphs"
    return GraphSequence(bank[0].n_arms, bank, shown, name, DRAWN, np.zeros(1, np.int64), cumulated)


@sequence(n_arms="whole", r="number", directed="flag", shown="text", size=lambda n_arms, **_: (n_arms, n_arms**2))
def resampled(n_arms: int, r: float, *, directed: bool = False, shown: str = "before") -> GraphSequence:
    """Draw an Erdos-Renyi graph anew in each round: an edge with chance r between any two arms, and all self-loops.

    A round costs K^2 random numbers, and a run has memory for K^2 arcs, whatever r is.
    """
    directed = check_flag(GraphError, "directed", directed)
    r = check_number(GraphError, "r", r, least=0, most=1)
    name = f"resampled G({n_arms}, {r:g})"
    return GraphSequence(_checked_arms(n_arms), (), shown, name, RESAMPLED, np.array([int(directed)]), np.array([r]))


@sequence(
    n_arms="whole", capacity="whole", shown="text", size=lambda n_arms, capacity, **_: (n_arms, n_arms * (capacity + 1))
)
def shadows(n_arms: int, capacity: int, *, shown: str = "before") -> GraphSequence:
    """Let spare capacity shadow some arms in each round: from 0 to `capacity` of them, drawn anew.

    Whichever arm is played, its own loss and those of the shadowed arms are revealed.
    """
    n_arms = _checked_arms(n_arms)
    capacity = check_whole(GraphError, "capacity", capacity, 0, n_arms)
    name = f"shadows of up to {capacity} arms"
    return GraphSequence(n_arms, (), shown, name, SHADOWS, np.array([capacity]), np.empty(0))


def _checked_bank(graphs: Sequence[FeedbackGraph]) -> tuple[FeedbackGraph, ...]:
    bank = tuple(graphs) if are_several(graphs) else ()
    if not bank or not all(isinstance(graph, FeedbackGraph) for graph in bank):
        raise GraphError(f"A sequence is made from a list of FeedbackGraphs, at least one, not {short(graphs)}.")
    return bank


def _size(graphs: Sequence[FeedbackGraph]) -> tuple[int, int]:
    return graphs[0].n_arms, sum(graph.n_edges for graph in graphs if graph.representation == "arcs")


def _checked_arms(n_arms: int) -> int:
    return check_whole(GraphError, "n_arms of a graph that is drawn anew each round", n_arms, 1, 10_000)
