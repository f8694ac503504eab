"""An experiment as a replay of its journal: the last good snapshot, and the events from there on.

A snapshot only saves time: the journal is what counts. One that is damaged, or that another version of the program has
written, is passed over, and written anew. One that is whole, but is of another journal than the one beside it, means
that one of the two was altered: the experiment is refused, because nobody can say which.
"""

from __future__ import annotations

import logging
import threading
from typing import TYPE_CHECKING

import numpy as np

from sidelong.errors import LearnerError, ServiceError, SidelongError
from sidelong.service.store import journal, snapshots
from sidelong.service.store.database import Snapshot
from sidelong.service.store.experiment import STORED, LiveExperiment, Moment
from sidelong.service.store.graphs import KnownGraph
from sidelong.service.store.journal import Kind

if TYPE_CHECKING:
    from sidelong.service.store.database import Database, Identity, Reading
    from sidelong.service.store.experiment import Clock
    from sidelong.service.store.graphs import Shelf
    from sidelong.service.store.journal import Event

_log = logging.getLogger("sidelong.service")


class Replayed:
    """An experiment of the database, brought into memory when it is first needed.

    Whoever looks at it or changes it holds its lock. It is changed in memory before it is changed on the disk, and the
    lock is held until both agree: nobody sees what is not on the disk.
    """

    def __init__(self, identity: Identity, shelf: Shelf, clock: Clock, live: LiveExperiment | None = None) -> None:
        self.identity = identity
        self.lock = threading.RLock()
        self.live = live  #: None until it is needed
        self.refused: ServiceError | None = None
        self._shelf = shelf
        self._clock = clock

    def catch_up(self, reading: Reading, head: int | None = None) -> LiveExperiment:
        """Return it as all servers have made it; `head` is its last event, if that is known."""
        if self.refused is not None:
            raise self.refused
        try:
            live = self.live or self._from_snapshot(reading) or self._new(reading)
            self._replay(reading, live)
            if head is not None and live.head != head:
                raise self._incomplete(live.head, head)
        except ServiceError as error:
            self.live = None
            if error.code == "refused":
                self.refused = error
                _log.error("experiment refused", extra={"experiment": self.identity.name, "why": str(error)})
            raise
        self.live = live
        return live

    def rebuilt(self, reading: Reading) -> LiveExperiment:
        """Return it as the journal alone makes it, beside what is in memory."""
        live = self._new(reading)
        self._replay(reading, live)
        return live

    def save(self, database: Database) -> None:
        """Write a snapshot."""
        with self.lock:
            live = self.live
            if live is None:
                return
            snapshot = Snapshot(live.head, live.chain, snapshots.pack(live))
        with database.writing() as writing:
            writing.save(self.identity.id, snapshot)
            writing.commit()
        live.saved = snapshot.seq

    def _new(self, reading: Reading) -> LiveExperiment:
        spec = self.identity.spec
        graph = self._shelf.find(reading, spec["graph"]).named(spec["graph_name"])
        try:
            return LiveExperiment.new(self.identity, graph)
        except LearnerError as error:
            raise self._unplayable(error) from error

    def _replay(self, reading: Reading, live: LiveExperiment) -> None:
        for event in journal.since(reading, self.identity.id, live.head):
            graph = None if event.graph is None else KnownGraph(event.graph, self._shelf.find(reading, event.graph))
            try:
                made = _again(live, event, graph)
            except (SidelongError, KeyError) as error:
                raise self._differs(event, f"it cannot be done again: {error}") from error
            if made != event:
                raise self._differs(event, f"it says {_shown(event)}, and doing it again gives {_shown(made)}")
            self._clock.saw(event.clock)

    def _from_snapshot(self, reading: Reading) -> LiveExperiment | None:
        snapshot = reading.snapshot(self.identity.id)
        while snapshot is not None:
            try:
                live = snapshots.unpack(self.identity, snapshot.data)
            except Exception as error:  # noqa: BLE001  # whatever it is, the journal is there
                about = {"experiment": self.identity.name, "sequence": snapshot.seq, "why": str(error)}
                _log.warning("snapshot not used", extra=about)
                snapshot = reading.snapshot(self.identity.id, before=snapshot.seq)
                continue
            if [event.chain for event in reading.events(self.identity.id, live.head - 1, 1)] != [live.chain]:
                raise self._altered(snapshot.seq)
            for _, moment in live.outstanding.values():  # whose events are not replayed
                self._clock.saw(moment.clock)
            live.saved = live.head
            return live
        return None

    def _differs(self, event: Event, how: str) -> ServiceError:
        return _refused(
            f"Event {event.seq} of the journal of {self.identity.name!r} does not follow from those before it: {how}. "
            f"The journal or a snapshot was altered, or was written by a version that computes otherwise. "
            f"Nothing is learned or decided until it is restored and the service started again."
        )

    def _unplayable(self, error: LearnerError) -> ServiceError:
        """Return the error for a learner or an option that this version does not have."""
        return _refused(
            f"{self.identity.name!r} cannot go on in this version: {error} Nothing is learned or decided; its log can "
            f"still be exported."
        )

    def _altered(self, seq: int) -> ServiceError:
        return _refused(
            f"The snapshot of {self.identity.name!r} after event {seq} is whole, but not of the journal beside it: "
            f"one of the two was altered. Restore the database from a copy, or delete the snapshot if the journal "
            f"is right, and start the service again. Until then nothing is learned or decided."
        )

    def _incomplete(self, found: int, head: int) -> ServiceError:
        """Return the error for a journal that ends too early: what was acknowledged would be made again."""
        return _refused(
            f"The journal of {self.identity.name!r} ends with event {found}, and {head} were written: it was altered. "
            f"Restore the database from a copy, and start the service again. Until then nothing is learned or decided."
        )


def _again(live: LiveExperiment, event: Event, graph: KnownGraph | None) -> Event:
    """Do again what the journal says, and return what that gives."""
    moment, number = Moment(event.at, event.clock), event.round
    losses = [] if event.losses is None else np.frombuffer(event.losses, STORED).tolist()
    if event.kind is Kind.CREATED:
        return live.create(moment)
    if event.kind is Kind.DECIDED:
        return live.decide(graph, moment, event.key, event.context)
    if event.kind is Kind.TOLD:
        return live.tell(number, losses, graph, moment)
    if event.kind is Kind.LATE:
        return live.late(number, event.arm or 0, np.array(losses), event.graph, moment)
    return live.settle(number, event.kind, moment)


def _shown(event: Event) -> str:
    return f"{event.kind.name.lower()} round {event.round}, arm {event.arm}, probability {event.probability!r}"


def _refused(text: str) -> ServiceError:
    return ServiceError(text, status=503, code="refused")
