"""The graphs of an agent or a family: its own, those of pending decisions, and what arms are there in each.

An arm is there if the graph lets it reveal anything; an absent or retired one is a row and a column without edges.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from sidelong._jit import kernel
from sidelong.checks import short
from sidelong.errors import GraphError, LearnerError
from sidelong.graphs.bank import CYCLE, BankArrays, lay_out, select
from sidelong.graphs.columns import each_of
from sidelong.graphs.graph import FeedbackGraph
from sidelong.graphs.presence import arm_of, mask_of, only, present, with_absent_arm, with_arm
from sidelong.learners import catalogue
from sidelong.tables import are_several

if TYPE_CHECKING:
    from collections.abc import Iterable

    import numpy.typing as npt

    from sidelong.learners.interface import Learner

    Places = npt.NDArray[np.int64]

#: So many graphs, and so many edges that they list, are kept before those that no pending decision needs are forgotten.
_MANY, _MANY_EDGES = 256, 2**23
#: For so few decisions no kernel is called.
_FEW = 8


class Bank:
    """Graphs by their places; the own graph of an agent or a family is the first.

    Args:
        learner: what plays on them, with its options.
        graphs: some to begin with, the own one first.
        whose: whose graph the own one is, in messages: "agent" or "family".
    """

    def __init__(
        self, learner: Learner, options: dict[str, Any], graphs: Iterable[FeedbackGraph], whose: str = "family"
    ) -> None:
        self._learner = learner
        self.options = options
        self._whose = whose
        self._places: dict[tuple[str, str], int] = {}
        self._arrays: BankArrays | None = None
        self._many, self._many_edges = _MANY, _MANY_EDGES
        self._edges = 0
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

    def reveals(self, graph: Places, arm: Places) -> tuple[npt.NDArray[np.int32], Places]:
        """Return the arms that each arm reveals in its graph, one after the other, and where those of each begin."""
        if arm.size <= _FEW:
            rows = [self.graphs[g].row(i) for g, i in zip(graph.tolist(), arm.tolist(), strict=True)]
            sizes = np.array([row.size for row in rows], np.int64)
            return np.concatenate([np.empty(0, np.int32), *rows]), np.append(0, np.cumsum(sizes))
        offsets = np.append(0, np.cumsum(self.degrees(graph, arm)))
        reveals = np.empty(int(offsets[-1]), np.int32)
        reveal_many(self.arrays, graph, arm, offsets, reveals)
        return reveals, offsets

    def degrees(self, graph: Places, arm: Places) -> Places:
        """Return how many arms each arm reveals in its graph."""
        return np.asarray(self.arrays.stop[graph, arm] - self.arrays.start[graph, arm])

    def asked(self, graph: Any, available: Any, n: int) -> Places:
        """Return the graph of each of n decisions, from what `ask` was given."""
        if graph is None and available is None:
            return np.zeros(n, np.int64)
        shown, which = ([self.own], np.zeros(n, np.int64)) if graph is None else each_of(graph, n)
        masks, there = _masks(available, n)
        pairs, index = np.unique(np.stack([which, there]), axis=1, return_inverse=True)
        made = [self.place(self.of_round(shown[g], masks[m])) for g, m in pairs.T.tolist()]
        return np.array(made, np.int64)[index.reshape(-1)]

    def of_round(self, graph: FeedbackGraph | None, available: Iterable[Any] | None) -> FeedbackGraph:
        """Return the graph of a round, of those arms alone that are available and not retired in the own graph."""
        own = self.own
        shown = own if graph is None or graph is own else self._checked(graph)
        if available is None:
            return shown if shown is own or not self._learner.sleeps else _some(as_present(shown, own))
        catalogue.check_absence(self._learner, "available=...")
        mask = named_arms(own, available, "available")
        if not mask.any():
            raise GraphError(
                "available names no arm, and one must be played. Skip the round, or name the arms there are."
            )
        return only(own, mask) if shown is own else _some(only(shown, mask))

    def told(self, graph: Any, asked: Places, pending: npt.NDArray[np.bool_] | None = None) -> Places:
        """Return the graph of each decision, from what `tell` was given and the one that it was asked with.

        Those that are not pending keep the latter: nothing is learned of them.
        """
        shown, which = each_of(graph, asked.size)
        some = np.ones(asked.size, np.bool_) if pending is None else pending
        pairs, index = np.unique(np.stack([which, asked])[:, some], axis=1, return_inverse=True)
        made = [self.place(self.of_outcome(shown[g], self.graphs[a])) for g, a in pairs.T.tolist()]
        found = asked.copy()
        found[some] = np.array(made, np.int64)[index.reshape(-1)]
        return found

    def of_outcome(self, graph: FeedbackGraph, asked: FeedbackGraph) -> FeedbackGraph:
        """Return the graph that came with an outcome, with those arms alone that were there at `ask`.

        An equal one may be kept in another form, which would give other bits: then it is `asked` itself.
        """
        there = as_present(self._checked(self._widened(graph, asked)), asked)
        return asked if there == asked else there

    def _widened(self, graph: Any, asked: FeedbackGraph) -> Any:
        """Return a graph with the arms that have come since, as absent; another one as it is."""
        n, own = getattr(graph, "n_arms", 0), self.own
        if not isinstance(graph, FeedbackGraph) or n >= own.n_arms or not self._learner.sleeps:
            return graph
        if present(asked)[n:].any():
            return graph  # which has too few arms
        while graph.n_arms < own.n_arms:
            graph = with_absent_arm(graph, None)
        return graph.labelled(own.labels)

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

    @property
    def has_many(self) -> bool:
        """Whether there are so many that it is worth looking for those that nothing needs."""
        return len(self.graphs) > self._many or self._edges > self._many_edges

    def forget(self, used: Places) -> Places:
        """Forget all graphs but the own one and those that are `used`; return the new place of each of these."""
        kept, places = np.unique(np.append(0, used), return_inverse=True)
        graphs = [self.graphs[g] for g in kept.tolist()]
        self.__init__(self._learner, self.options, graphs, self._whose)  # type: ignore[misc]  # all of it anew
        self._many, self._many_edges = max(_MANY, 2 * len(graphs)), max(_MANY_EDGES, 2 * self._edges)
        return np.asarray(places.reshape(-1)[1:])

    def _checked(self, graph: FeedbackGraph) -> FeedbackGraph:
        """Return the graph of a round, if the learner can play on it."""
        own, whose = self.own, self._whose
        if not isinstance(graph, FeedbackGraph):
            raise GraphError(f"graph must be a FeedbackGraph, not {type(graph).__name__}.")
        if graph.n_arms != own.n_arms:
            raise GraphError(f"The graph of a round must have the {whose}'s {own.n_arms} arms, and {graph!r} does not.")
        if graph != own:
            found = f"The {whose} began on {own!r}, and this round has {graph!r}."
            catalogue.check_fixed(self._learner, self.options, found)
        catalogue.check_graph(self._learner, graph, self.options)
        return graph

    def place(self, graph: FeedbackGraph) -> int:
        """Return the place of a graph, which is added if it is new."""
        # By representation too: arcs and intervals of one graph may differ in the last bit of a probability.
        identity = graph.content_hash, graph.representation
        if identity not in self._places:
            self._places[identity] = len(self.graphs)
            self.graphs.append(graph)
            self._edges += graph.arrays.targets.size
            self._arrays = None
        return self._places[identity]


@kernel
def reveal_many(bank: BankArrays, graph: np.ndarray, arm: np.ndarray, offsets: np.ndarray, reveals: np.ndarray) -> None:
    """Write into `reveals`, one after the other, the arms that each arm reveals in its graph."""
    for i in range(arm.size):
        shown = select(bank, graph[i])
        first = shown.start[arm[i]]
        for k in range(shown.stop[arm[i]] - first):
            reveals[offsets[i] + k] = shown.targets[first + k]


def as_present(graph: FeedbackGraph, like: FeedbackGraph) -> FeedbackGraph:
    """Return a graph with those arms alone that are there in another one."""
    return only(graph, present(like)) if like.arms_without_self_loop.size else graph


def _some(graph: FeedbackGraph) -> FeedbackGraph:
    """Return a graph if some arm is there: that of a round may lack the very arms that could be played."""
    if not present(graph).any():
        raise GraphError(
            "Of the arms that can be played, none is in the graph of this round, and one must be played. Give a graph "
            "in which each of them reveals itself, or skip the round."
        )
    return graph


def without_arm(learner: Learner, graph: FeedbackGraph, arm: int | str) -> FeedbackGraph:
    """Return the own graph of an agent without an arm, which is retired."""
    catalogue.check_absence(learner, "retire")
    number = arm_of(graph, arm)
    mask = present(graph) & ~named_arms(graph, [number], "arm")
    if not mask.any():
        raise GraphError(f"Arm {graph.arm_name(number)} is the last one, and one must be played.")
    return only(graph, mask)


def with_new_arm(
    learner: Learner,
    graph: FeedbackGraph,
    reveals: Iterable[int | str],
    revealed_by: Iterable[int | str],
    label: str | None,
) -> FeedbackGraph:
    """Return the own graph of an agent with one more arm."""
    catalogue.check_absence(learner, "add_arm")
    if learner.grow is None:
        able = catalogue.names_where(lambda each: each.sleeps and each.grow is not None)
        raise LearnerError(
            f"add_arm needs a learner that can take in a new arm, and {learner.title} cannot. "
            f"Use {able}, with default options."
        )
    seen, seen_by = named_arms(graph, reveals, "reveals"), named_arms(graph, revealed_by, "revealed_by")
    return with_arm(graph, seen, seen_by, label)


def named_arms(graph: FeedbackGraph, arms: Iterable[Any], name: str) -> npt.NDArray[np.bool_]:
    """Return a flag for each arm: whether it is among `arms`, none of which may be retired."""
    mask = mask_of(graph, arms, name)
    gone = np.flatnonzero(mask & ~present(graph))
    if gone.size:
        raise GraphError(f"{name} names arm {graph.arm_name(int(gone[0]))}, which is retired.")
    return mask


def _masks(available: Any, n: int) -> tuple[list[Any], Places]:
    """Return the different sets of arms that are available, and which of them each decision has."""
    if available is None:
        return [None], np.zeros(n, np.int64)
    available = available.to_numpy() if hasattr(available, "to_numpy") else available  # a table
    if isinstance(available, np.ndarray) and available.ndim == 2:
        if len(available) != n or available.dtype != np.bool_:
            raise GraphError(f"available by key has a row of flags for each of the {n} keys, not {short(available)}.")
        rows, index = np.unique(available, axis=0, return_inverse=True)
        return list(rows), index.reshape(-1)
    listed = list(available) if are_several(available) else available
    by_key = isinstance(listed, list) and any(map(are_several, listed))
    if not by_key:
        return [listed], np.zeros(n, np.int64)
    if len(listed) != n:
        raise GraphError(f"available by key names the arms of each of the {n} keys, and {len(listed)} were given.")
    return listed, np.arange(n)
