"""What a snapshot of an experiment holds, and what a clone begins with, which are state files; when it is written.

::

    service      header: head and chain of the journal, counts by minute, what was changed of it and of its arms, the
                 graphs of pending decisions by their ids, and how many keys a block has
    counters.*   what is counted
    pending.*    the pending decisions: see `sidelong.service.store.pending`
    sticky.*     the reports of sticky decisions, whose subjects are in the header
    keys.*       the names of keys, in the order in which they came, and what is counted of each
    blocks       of a snapshot, the checksum of each block of keys: see `sidelong.service.store.keys`
    block.I      of what a clone begins with, the I-th block, without pending decisions

Graphs are not in it, but their ids: the database has them already, each once, and they may be large.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from sidelong.agent import state_file
from sidelong.errors import EvaluationError, StateFileError
from sidelong.keys import read_keys
from sidelong.service.pools import WorkQueue
from sidelong.service.store.counters import Counters
from sidelong.service.store.experiment import LiveExperiment
from sidelong.service.store.lifecycle import Life
from sidelong.service.store.pending import PendingTable

if TYPE_CHECKING:
    from collections.abc import Callable

    from sidelong.graphs import FeedbackGraph
    from sidelong.service.store.database import Identity, Reading
    from sidelong.service.store.replay import Replayed
    from sidelong.service.store.store import Store

#: Goes up whenever what a snapshot holds means something else, or has another shape. A snapshot of another version is
#: passed over, and the journal replayed.
SNAPSHOT_VERSION = 1
_EVENT, _DECISION = 4096, 192  # bytes that are written to save the replay of an event, and of each further decision
_PATIENCE = 6  # doublings of the pause between snapshots that cannot be written
_log = logging.getLogger("sidelong.service")


def pack(experiment: LiveExperiment) -> bytes:
    """Return all of an experiment but its blocks."""
    return state_file.pack(*_contents(experiment))


def digest(experiment: LiveExperiment) -> str:
    """Return a checksum of all of it, equal for equal states."""
    return state_file.checksum(*_contents(experiment)).hex()


def unpack(identity: Identity, data: bytes, find: Callable[[str], FeedbackGraph]) -> LiveExperiment:
    """Go on from what `pack` returned, with graphs that `find` finds by their ids."""
    place, spec = f"the snapshot of {identity.name}", identity.spec
    header, arrays = state_file.unpack(data, place)
    service = header["service"]
    if service["version"] != SNAPSHOT_VERSION:
        raise StateFileError(f"{place} has version {service['version']}, and this program reads {SNAPSHOT_VERSION}.")
    counters = Counters.from_contents(service["minutes"], arrays)
    own = find(spec.graph).named(spec.graph_name)
    experiment = LiveExperiment(identity, own, counters, service["block_size"])
    experiment.resume_arms(service["arms"], find)
    experiment.keys.resume(arrays)
    experiment.pending = PendingTable.from_contents(own, service["graphs"], arrays, find)
    experiment.sticky.resume(service["subjects"], arrays)
    experiment.blocks.resume(arrays["blocks"], service["head"])
    experiment.life = experiment.life.after(service["life"])
    experiment.advisers = tuple(service["advisers"])
    experiment.head, experiment.chain = service["head"], bytes.fromhex(service["chain"])
    return experiment


def _contents(experiment: LiveExperiment) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    minutes, counted = experiment.counters.contents()
    graphs, pending = experiment.pending.contents()
    subjects, reports = experiment.sticky.contents()
    service = {
        "version": SNAPSHOT_VERSION,
        "experiment": experiment.identity.key,
        "head": experiment.head,
        "chain": experiment.chain.hex(),
        "minutes": minutes,
        "life": Life.first(experiment.identity.spec).changed_to(experiment.life),
        "arms": experiment.own.contents(),
        "graphs": graphs,
        "subjects": subjects,
        "block_size": experiment.blocks.size,
        "advisers": list(experiment.advisers),
    }
    arrays = {**counted, **pending, **reports, **experiment.keys.contents(), "blocks": experiment.blocks.checksums()}
    return {"service": service}, arrays


def copied(experiment: LiveExperiment, reading: Reading) -> Callable[[], bytes]:
    """Return what makes the state that a clone begins with; that takes a while, and changes nothing of the original."""
    experiment.load_all(reading)
    blocks, graphs = experiment.blocks, experiment.pending.graphs
    names = experiment.keys.keys.contents()
    copies = blocks.copied()

    def make() -> bytes:
        return _packed(names, blocks.size, {at: blocks.without_pending(copies.pop(at), graphs.get) for at in [*copies]})

    return make


def learned(experiment: LiveExperiment, log: dict[str, list[Any]]) -> bytes:
    """Let a new experiment learn a log, each key its own rounds, and return what one begins with that has."""
    columns = dict(log)
    named = columns.pop("key", None)
    keys = None if named is None else read_keys(named)
    rows = experiment.keys.places(keys, len(columns["action"]))
    experiment.add_keys(experiment.keys.new_among(keys, rows))
    places: dict[int, list[int]] = {}
    for place, row in enumerate(rows.tolist()):
        places.setdefault(row, []).append(place)
    for row, some in places.items():
        try:
            experiment.blocks.learn(row, {name: [column[place] for place in some] for name, column in columns.items()})
        except EvaluationError as error:
            if keys is None:
                raise
            raise EvaluationError(f"The log of the key {keys[some[0]]!r} cannot be learned. {error}") from error
    return _packed(experiment.keys.keys.contents(), experiment.blocks.size, experiment.blocks.copied())


def _packed(names: dict[str, np.ndarray], size: int, blocks: dict[int, bytes]) -> bytes:
    """Return what an experiment begins with: the names of its keys, and blocks by number."""
    arrays = {f"block.{number}": np.frombuffer(data, np.uint8) for number, data in blocks.items()}
    return state_file.pack({"block_size": size}, {**names, **arrays})


class _Mark(NamedTuple):
    """How far an experiment had come."""

    events: int
    done: int


class Pace:
    """When the next snapshot is written: once the replay that it saves a start is worth the bytes that it takes.

    An event that stands alone takes about as long to be replayed as four kilobytes to be written. The decisions of a
    batch of keys are replayed together, in a compiled call, and each takes a twentieth of that. So a snapshot of fifty
    thousand keys, which is large, is written about every eighth night, and a start replays for a few seconds at most.
    """

    def __init__(self) -> None:
        self.failures = 0  #: in a row
        self._size = 0  # bytes of the last one, without blocks of keys
        self._tried = _Mark(0, 0)

    def is_due(self, live: LiveExperiment, least: int, most: int) -> bool:
        """Tell whether one is to be written, where at least so much must have happened since the last one.

        It is also due if keys take too much of `most` bytes of memory that only a snapshot lets go of.
        """
        if not self.failures and live.needs_saving(most):
            return True
        events = live.head - max(live.saved_at, self._tried.events)
        done = live.done - max(live.saved, self._tried.done)
        patience: int = 2 ** min(self.failures, _PATIENCE)
        worth = _EVENT * events + _DECISION * (done - events)
        return done >= least * patience and worth >= (self._size + live.blocks.unwritten_bytes) * patience

    def tried(self, events: int, done: int) -> None:
        """Note how far the experiment had come when one was last tried."""
        self._tried = _Mark(events, done)

    def failed(self) -> None:
        """Note that it could not be written."""
        self.failures += 1

    def written(self, size: int) -> None:
        """Note that it was written, with so many bytes beside blocks of keys."""
        self.failures, self._size = 0, size


class Saving:
    """The thread that writes snapshots, aside of everything else.

    A snapshot only makes the next start faster. So no request waits for it, and one that cannot be written is tried
    again after twice as many events each time.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._due = WorkQueue("saving", self._save)

    def note(self, changed: Replayed) -> None:
        """Write a snapshot of an experiment, if it had enough events."""
        if self._is_stale(changed):
            self._due.add(changed)

    def _is_stale(self, replayed: Replayed) -> bool:
        settings = self._store.settings
        return replayed.is_stale(settings.snapshot_every, settings.max_key_bytes)

    def close(self) -> None:
        """Stop after the snapshot that is being written."""
        self._due.close()

    def _save(self, replayed: Replayed) -> None:
        try:
            if self._is_stale(replayed):
                replayed.save(self._store.database)
        except Exception as error:  # noqa: BLE001  # the others are saved all the same
            _log.warning("no snapshot", extra={"experiment": replayed.identity.name, "why": str(error)})
