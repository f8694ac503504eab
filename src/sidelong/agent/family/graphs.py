"""The graphs of a family: its own, and those that decisions wait on, each by its place in one bank."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from sidelong.agent import arms
from sidelong.checks import short
from sidelong.errors import GraphError
from sidelong.graphs.bank import CYCLE, BankArrays, lay_out
from sidelong.graphs.columns import each_of
from sidelong.graphs.presence import present

if TYPE_CHECKING:
    from collections.abc import Iterable

    import numpy.typing as npt

    from sidelong.graphs.graph import FeedbackGraph
    from sidelong.learners.interface import Learner

    Places = npt.NDArray[np.int64]

#: So many graphs are kept before those that no decision waits on are forgotten.
_MANY = 256


class Bank:
    """Graphs by their places; the family's own is the first."""

    def __init__(self, learner: Learner, options: dict[str, Any], graphs: Iterable[FeedbackGraph]) -> None:
        self._learner = learner
        self.options = options
        self._places: dict[tuple[str, str], int] = {}
        self._arrays: BankArrays | None = None
        self.graphs: list[FeedbackGraph] = []
        for graph in graphs:
            self.place(graph)

    @property
    def own(self) -> FeedbackGraph:
        """The graph of every round that `ask` is not given another one for."""
        return self.graphs[0]

    @property
    def arrays(self) -> BankArrays:
        """All of them, as kernels see them."""
        if self._arrays is None:
            bank = tuple(self.graphs)
            self._arrays = lay_out(CYCLE, np.zeros(1, np.int64), np.empty(0), bank, self.own.n_arms)
        return self._arrays

    def degrees(self, graph: Places, arm: Places) -> Places:
        """Return how many arms each arm reveals in its graph."""
        return np.asarray(self.arrays.stop[graph, arm] - self.arrays.start[graph, arm])

    def asked(self, graph: Any, available: Any, n: int) -> Places:
        """Return the graph of each of n decisions, from what `ask` was given."""
        if graph is None and available is None:
            return np.zeros(n, np.int64)
        shown, which = ([self.own], np.zeros(n, np.int64)) if graph is None else each_of(graph, n)
        shown = [each if each is self.own else self._checked(each) for each in shown]
        if available is None:
            round_ = [arms.graph_of_round(self._learner, self.own, each, None) for each in shown]
            return np.array([self.place(each) for each in round_], np.int64)[which]
        masks, there = _masks(available, n)
        pairs, index = np.unique(np.stack([which, there]), axis=1, return_inverse=True)
        made = [
            self.place(arms.graph_of_round(self._learner, self.own, shown[g], masks[m])) for g, m in pairs.T.tolist()
        ]
        return np.array(made, np.int64)[index.reshape(-1)]

    def told(self, graph: Any, asked: Places) -> Places:
        """Return the graph of each decision, from what `tell` was given and the one that it was asked with."""
        shown, which = each_of(graph, asked.size)
        shown = [self._checked(each) for each in shown]
        pairs, index = np.unique(np.stack([which, asked]), axis=1, return_inverse=True)
        made = []
        for g, a in pairs.T.tolist():
            there = arms.as_present(shown[g], self.graphs[a])
            made.append(a if there == self.graphs[a] else self.place(there))  # an equal one may be kept in another form
        return np.array(made, np.int64)[index.reshape(-1)]

    def keys(self, graph: Any, n: int) -> Places:
        """Return what `tell` knows each graph by that it was given."""
        shown, which = each_of(graph, n)
        return np.array([each.arrays.key for each in shown], np.int64)[which]

    def hides(self, graph: Places, of: Places, arm: Places) -> npt.NDArray[np.bool_]:
        """Tell of arms whether each is absent in the graph that its decision, one of `of`, was asked with."""
        if not any(self.graphs[g].arms_without_self_loop.size for g in np.unique(graph).tolist()):
            return np.zeros(arm.size, np.bool_)
        there = np.stack([present(each) for each in self.graphs])
        return np.asarray(~there[graph[of], arm])

    def forget(self, used: Places) -> Places | None:
        """Forget graphs that nothing waits on, if there are many; return the new place of each of `used`."""
        if len(self.graphs) <= _MANY:
            return None
        kept, places = np.unique(np.append(0, used), return_inverse=True)
        if len(self.graphs) < 2 * kept.size:
            return None
        graphs = [self.graphs[g] for g in kept.tolist()]
        self.__init__(self._learner, self.options, graphs)  # type: ignore[misc]  # all of it anew
        return np.asarray(places.reshape(-1)[1:])

    def _checked(self, graph: FeedbackGraph) -> FeedbackGraph:
        return arms.checked(self._learner, self.options, self.own, graph, "family")

    def place(self, graph: FeedbackGraph) -> int:
        """Return the place of a graph, which is added if it is new."""
        # By representation too: arcs and intervals of one graph may differ in the last bit of a probability.
        identity = graph.content_hash, graph.representation
        if identity not in self._places:
            self._places[identity] = len(self.graphs)
            self.graphs.append(graph)
            self._arrays = None
        return self._places[identity]


def _masks(available: Any, n: int) -> tuple[list[Any], Places]:
    """Return the different sets of arms that are available, and which of them each decision has."""
    available = available.to_numpy() if hasattr(available, "to_numpy") else available  # a table
    if isinstance(available, np.ndarray) and available.ndim == 2:
        if len(available) != n or available.dtype != np.bool_:
            raise GraphError(f"available by key has a row of flags for each of the {n} keys, not {short(available)}.")
        rows, index = np.unique(available, axis=0, return_inverse=True)
        return list(rows), index.reshape(-1)
    listed = list(available) if _is_list(available) else available
    by_key = isinstance(listed, list) and any(map(_is_list, listed))
    if not by_key:
        return [listed], np.zeros(n, np.int64)
    if len(listed) != n:
        raise GraphError(f"available by key names the arms of each of the {n} keys, and {len(listed)} were given.")
    return listed, np.arange(n)


def _is_list(value: Any) -> bool:
    return hasattr(value, "__iter__") and not isinstance(value, str)
