"""When a newer version of a learner takes over an experiment.

A version of a learner decides otherwise than the one before, so that it cannot replay what that one has done. It goes
on from the last snapshot instead, and writes that into the journal, as an event with the state beside it: what comes
later follows from there, and the state stays a function of the journal.

Events behind the snapshot were made by the older version. If the newer one would have done the same, nothing is lost.
If not, feedback for decisions that are in the snapshot is learned, since these have their probabilities; feedback for
later ones is counted and not learned, and those that still wait expire. A server that was stopped with SIGTERM has left
a snapshot behind which there is nothing.
"""

from __future__ import annotations

import hashlib
import json
import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from sidelong.agent.running import revealed
from sidelong.learners import catalogue
from sidelong.service.store.agents import module_of
from sidelong.service.store.experiment import STORED, Moment
from sidelong.service.store.graphs import KnownGraph
from sidelong.service.store.journal import CHANGES, Event, Kind, since
from sidelong.service.store.life import Given

if TYPE_CHECKING:
    from sidelong.graphs import FeedbackGraph
    from sidelong.service.store.database import Identity, Reading
    from sidelong.service.store.experiment import LiveExperiment
    from sidelong.service.store.graphs import Shelf


class Versions(NamedTuple):
    """Which version of the learner the journal was made with, and which one this program has."""

    journal: int
    own: int
    event: Event | None  #: that the journal's version began with, if it was not the first one

    @property
    def first(self) -> int:
        """The number of the event that the journal's version began with."""
        return 0 if self.event is None else self.event.seq


def versions(reading: Reading, identity: Identity) -> Versions:
    """Return both versions."""
    spec = identity.spec
    own = catalogue.version(module_of(spec))
    rebased = reading.rounds(identity.id, CHANGES, -1)  # the newest first
    event = rebased[0] if rebased else None
    return Versions(spec.get("learner_version", 1) if event is None else -event.round, own, event)


def describe(versions: Versions, after: int, unlearned: int, data: bytes) -> str:
    """Return what the event says."""
    about = {"from": versions.journal, "to": versions.own, "after": after, "unlearned": unlearned}
    return json.dumps({**about, "state": hashlib.sha256(data).hexdigest()})


def is_state_of(event: Event, data: bytes | None) -> bool:
    """Tell whether a state is the one that an event speaks of."""
    said = json.loads(event.context or "{}").get("state")
    return data is not None and hashlib.sha256(data).hexdigest() == said


def carry_on(live: LiveExperiment, reading: Reading, shelf: Shelf) -> tuple[int, dict[int, int]]:
    """Take in what an older version has done behind a snapshot.

    Returns how many decisions were told and could not be learned, and of those that wait, the arm by round.
    """
    unlearned, foreign = 0, {}  # type: int, dict[int, int]
    for event in since(reading, live.identity.id, live.head):
        graph = None if event.graph is None else shelf.find(reading, event.graph)
        aside = event.round in live.outstanding and isinstance(live.outstanding[event.round][0], Given)
        if event.kind is Kind.CHANGED:
            live.change(json.loads(event.context or "{}"), Moment(event.at, event.clock))
            continue
        if event.kind is Kind.HELD:  # with probabilities that only the older version knows
            shown = graph or live.agent.graph
            moment = Moment(event.at, event.clock)
            live.hold(event.round, Given(Kind.HELD, event.arm or 0, shown, math.nan, None), moment)
            live.note(event)
            continue
        if event.kind in {Kind.PLAYED, Kind.FALLBACK}:  # by no learner
            known = None if graph is None else KnownGraph(str(event.graph), graph)
            live.decide(known, Moment(event.at, event.clock), event.key, event.context)
            continue
        if event.kind is Kind.DECIDED:
            live.agent.cancel(live.draw(graph, event.context))  # so that the rounds go on
            foreign[event.round] = event.arm or 0
        elif event.kind in {Kind.TOLD, Kind.DEFAULTED} and event.round not in foreign:
            live.learn(event.round, np.frombuffer(event.losses or b"", STORED).tolist(), graph)
        elif event.kind in {Kind.TOLD, Kind.DEFAULTED}:
            unlearned += 1
            shown = graph or _graph_of(live, reading, shelf, event.round)
            losses = np.frombuffer(event.losses or b"", STORED)
            arm = foreign.pop(event.round)
            delay, after = live.round - event.round, graph is not None
            live.tallies.told(event.round, arm, None, revealed(shown, arm), losses, None, after=after, delay=delay)
        elif event.kind in {Kind.CANCELLED, Kind.EXPIRED} and foreign.pop(event.round, None) is None:
            live.give_up(event.round, event.kind)
        live.note(event, aside=aside)
    return unlearned, foreign


def _graph_of(live: LiveExperiment, reading: Reading, shelf: Shelf, number: int) -> FeedbackGraph:
    made = reading.rounds(live.identity.id, number, number)[0]
    return live.agent.graph if made.graph is None else shelf.find(reading, made.graph)
