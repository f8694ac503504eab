"""What an older version of a learner has done for keys behind a snapshot, taken in by a newer one.

It is done as `sidelong.service.store.rebasing` says of experiments without keys. Feedback for decisions that are in the
snapshot is learned. Later decisions are drawn by the newer version, too, and given up, so that the rounds of each key
go on. What they were told is counted and not learned.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from sidelong.service.store.experiment import Moment
from sidelong.service.store.graphs import KnownGraph
from sidelong.service.store.journal import DRAWN_BY, Kind, since
from sidelong.service.store.keyed import columns

if TYPE_CHECKING:
    from sidelong.graphs import FeedbackGraph
    from sidelong.service.store.database import Reading
    from sidelong.service.store.graphs import Shelf
    from sidelong.service.store.journal import Event
    from sidelong.service.store.keyed.experiment import KeyedExperiment

_TOLD = {Kind.TOLD, Kind.DEFAULTED}


class _Foreign(NamedTuple):
    """A decision that only the older version knows the probabilities of."""

    row: int
    arm: int
    graph: FeedbackGraph
    held: bool


class CarryingOn:
    """One experiment that is carried on."""

    def __init__(self, live: KeyedExperiment, reading: Reading, shelf: Shelf) -> None:
        self._live = live
        self._reading = reading
        self._shelf = shelf
        self._foreign: dict[int, _Foreign] = {}  # those that wait, by number
        self._unlearned = 0

    def run(self) -> tuple[int, dict[int, int]]:
        """Return how many decisions were told and not learned, and of those that wait, the arm by number."""
        live = self._live
        for event in since(self._reading, live.identity.id, live.head):
            if event.kind is Kind.CHANGED:
                live.change(json.loads(event.context or "{}"), Moment(event.at, event.clock))
            elif event.kind is Kind.DECIDED:
                self._decided(event)
            elif event.kind in DRAWN_BY:  # by no learner
                live.again(event, self._graph(event), self._reading)
            elif event.kind is Kind.LATE:
                live.note(event)
            else:
                self._settled(event)
        return self._unlearned, {number: each.arm for number, each in self._foreign.items()}

    def _graph(self, event: Event) -> KnownGraph | None:
        return None if event.graph is None else KnownGraph(event.graph, self._shelf.find(self._reading, event.graph))

    def _decided(self, event: Event) -> None:
        live, draws, graph = self._live, columns.read_draws(event), self._graph(event)
        shown = live.agent.graph if graph is None else graph.graph
        held = np.array([by == "holdout" for by in draws.drawn_by], np.bool_)
        live.pass_over(draws.keys, held, None if graph is None else graph.graph, self._reading)
        rows = live.by_key.places(draws.keys).tolist()
        for number, row, arm, aside in zip(
            draws.numbers.tolist(), rows, draws.arms.tolist(), held.tolist(), strict=True
        ):
            self._foreign[number] = _Foreign(row, arm, shown, aside)
        live.note(event)

    def _settled(self, event: Event) -> None:
        live, found, graph = self._live, columns.read_settled(event), self._graph(event)
        known = np.array([number not in self._foreign for number in found.numbers.tolist()], np.bool_)
        sizes, aside = np.diff(found.offsets), False
        if known.any():
            numbers, losses = found.numbers[known], found.losses[np.repeat(known, sizes)]
            live.wake(self._reading, live.rows_of(numbers))
            if event.kind in _TOLD:
                moment, shown = Moment(event.at, event.clock), None if graph is None else graph.graph
                aside = live.learn_all(numbers, sizes[known], losses, shown, moment)[1]
            else:
                aside = live.give_up_all(numbers)
        for place in np.flatnonzero(~known).tolist():
            was = self._foreign.pop(int(found.numbers[place]))
            aside = was.held
            if event.kind in _TOLD and not was.held:
                self._unlearned += 1
                shown = was.graph if graph is None else graph.graph
                live.count_unlearned(was.row, was.arm, shown, found.losses_of(place))
        live.note(event, aside=aside)
