"""Arms that come and go: what the own graph of an experiment is, and what it was.

A change is an event of the journal: its columns say which arm came or went, and its `graph` is the own graph from then
on. An event without a graph means the graph of the specification, at any time. Decisions that are made after a change
name the own graph, so that whoever reads the journal later needs nothing else to know what a decision revealed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from sidelong.graphs.presence import only, present, with_absent_arm, with_arm
from sidelong.service.store.graphs import content_of
from sidelong.service.store.journal import read_columns, write_columns

if TYPE_CHECKING:
    from sidelong.graphs import FeedbackGraph
    from sidelong.service.store.graphs import KnownGraph
    from sidelong.service.store.journal import Event


class ArmChange(NamedTuple):
    """An arm that came, or one that went."""

    arm: int
    reveals: list[int] | None = None  #: what a new arm reveals beside itself; None if the arm was retired
    revealed_by: list[int] | None = None
    cost_bound: float | None = None  #: the most that a new arm can cost, if the others have bounds

    def columns(self) -> bytes:
        """Return it as an event holds it."""
        more: dict[str, Any] = {}
        if self.reveals is not None:
            more = {"reveals": self.reveals, "revealed_by": self.revealed_by}
            more |= {} if self.cost_bound is None else {"cost": [self.cost_bound]}
        return write_columns({"arm": [self.arm], **more})

    @classmethod
    def read(cls, event: Event) -> ArmChange:
        """Return what `columns` wrote."""
        arm, *more = (values.tolist() for values in read_columns(event).values())
        return cls(arm[0], *more[:2], *(more[2] if len(more) > 2 else ()))

    def graph(self, before: FeedbackGraph) -> FeedbackGraph:
        """Return the own graph after it."""
        if self.reveals is None:
            mask = present(before)
            mask[self.arm] = False
            return only(before, mask).named(None)
        seen, seen_by = np.zeros((2, before.n_arms), np.bool_)
        seen[self.reveals] = seen_by[self.revealed_by] = True
        return with_arm(before, seen, seen_by, None)

    def play(self, player: Any) -> None:
        """Let an agent or a family, which knew nothing of it, play with these arms."""
        if self.reveals is None:
            player.retire(self.arm)
        else:
            player.add_arm(reveals=self.reveals, revealed_by=self.revealed_by, cost_bound=self.cost_bound)


class OwnGraphs:
    """The own graph of an experiment, as it is and as it was. All of them are charged to the experiment.

    Args:
        first: the graph of the specification.
    """

    def __init__(self, first: KnownGraph) -> None:
        self.graphs = [first]
        self.changes: list[ArmChange] = []
        self._behind = [0]  # the event from which on each is the own graph
        self._like = {content_of(first.graph): first.graph}

    @property
    def now(self) -> KnownGraph:
        """The own graph."""
        return self.graphs[-1]

    def before(self, seq: int | None) -> KnownGraph:
        """Return the own graph as it was before an event, or as it is."""
        if seq is None:
            return self.now
        return next(graph for graph, behind in zip(self.graphs[::-1], self._behind[::-1], strict=True) if behind < seq)

    def to_write(self, given: KnownGraph | None) -> KnownGraph | None:
        """Return the graph that a decision is written with, which was asked for with the given one or with none."""
        return self.now if given is None and self.changes else given

    def written_before(self, seq: int) -> str | None:
        """Return the graph that a decision which was asked for without one was written with, before an event."""
        found = self.before(seq)
        return None if found is self.graphs[0] else found.id

    def asked(self, given: KnownGraph | None) -> FeedbackGraph | None:
        """Return the graph that a learner is asked with: None for its own."""
        return None if given is None or (self.changes and given.id == self.now.id) else given.graph

    def like(self, content: str) -> FeedbackGraph | None:
        """Return one of them by its `content_of`."""
        return self._like.get(content)

    def add(self, change: ArmChange, graph: KnownGraph, seq: int) -> None:
        """Let another one be the own graph from behind an event on."""
        self.changes.append(change)
        self.graphs.append(graph)
        self._behind.append(seq)
        self._like.setdefault(content_of(graph.graph), graph.graph)

    def contents(self) -> list[list[Any]]:
        """Return all changes, for a snapshot."""
        every = zip(self.changes, self.graphs[1:], self._behind[1:], strict=True)
        return [[*change, graph.id, behind] for change, graph, behind in every]


def of_outcome(graph: FeedbackGraph, decided: FeedbackGraph, n_arms: int) -> FeedbackGraph:
    """Return the graph that came with an outcome, of the arms alone that were there at the decision, with `n_arms`.

    It may have come with as many arms as there were then, or with those that have come since. One that fits neither is
    returned as it is.
    """
    if not decided.n_arms <= graph.n_arms <= n_arms:
        return graph
    if decided.n_arms == n_arms and not decided.arms_without_self_loop.size:
        return graph
    while graph.n_arms < n_arms:
        graph = with_absent_arm(graph, None)
    mask = np.zeros(n_arms, np.bool_)
    mask[: decided.n_arms] = present(decided)
    return only(graph, mask)
