"""Cutting the journal behind a snapshot, by age or size, if the operator says so.

What is cut are the first decisions of an experiment, with all events before the first decision that is left. The
creation and the changes stay. The cut never passes the older of the last two snapshots, which is read and checked
before, nor the oldest decision that was pending then: what a replay, feedback or a repetition needs is left.

A cut is one small transaction, which says where the journal begins from now on. From then on the events before count as
gone, on every server. They are erased in portions, and others write in between. A server that is killed leaves some of
them, which are erased later. Of a request that was cut, the Idempotency-Key is left for a while, so that a repetition
is refused and not decided again.
"""

from __future__ import annotations

import logging
import os
import threading
from bisect import bisect_left
from contextlib import ExitStack
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from sidelong.machine import replacing
from sidelong.service import pools
from sidelong.service.store import snapshots
from sidelong.service.store.database import LAST_SEQ, BlobKind, BlobName, Cut
from sidelong.service.store.journal import DECIDED_SLOT, lasting
from sidelong.service.store.replay import FORGOTTEN

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path
    from typing import BinaryIO

    from sidelong.service.store.database import Identity, Listed, Reading
    from sidelong.service.store.journal import Event
    from sidelong.service.store.store import Store

    Export = Callable[[Store, str, BinaryIO, int], object]

_log = logging.getLogger("sidelong.service")
_DAY = 86_400_000  # milliseconds
_LOOKS = 60  # pauses between looks for expired decisions that lie between two looks here
_PORTIONS = 32  # that are erased of an experiment at a time
#: A cut begins when there is so much more than is to be kept, so that not every look cuts and exports a little.
_SLACK = 0.1


class _Overtaken(Exception):  # noqa: N818  # no error: the next look fares better
    """Another server has cut the same journal, or is writing to it."""


class _Checked(NamedTuple):
    """A snapshot behind which the journal may be cut."""

    seq: int
    round: int  #: how many decisions there were
    first: int  #: the first one that must be left


class Retention:
    """The thread that cuts.

    Args:
        store: whose experiments.
        export: writes the log of an experiment, up to a decision, to a file.
        count: is told the name of an experiment, and how many of its decisions were cut.
    """

    def __init__(self, store: Store, export: Export, count: Callable[[str, int], None]) -> None:
        self._store = store
        self._export = export
        self._count = count
        self._erased: dict[int, int] = {}  # the cut of each experiment behind which nothing is left to erase
        self._stuck: dict[int, int] = {}  # its last event when something was due that could not be cut
        self._checked: dict[int, _Checked] = {}
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._work, name="retention", daemon=True)
        self._days, self._most = store.settings.keep_days, (store.settings.keep_megabytes or 0) * 10**6

    def start(self) -> None:
        """Begin, if the operator wants anything to be cut."""
        if self._days is not None or self._most:
            self._thread.start()

    def close(self) -> None:
        """Stop after the portion that is being erased; an export ends early."""
        self._stopping.set()
        if self._thread.is_alive():
            self._thread.join()

    def _work(self) -> None:
        pools.leave_with(self._stopping)
        while not self._stopping.wait(_LOOKS * self._store.settings.sweep_every):
            try:
                self.look()
            except Exception as error:  # noqa: BLE001  # the database is away, say: this thread must go on
                _log.warning("nothing cut", extra={"why": str(error)})

    def look(self) -> None:
        """Cut what is due of each experiment, and erase what was cut."""
        with self._store.database.reading() as reading:
            every = reading.experiments()
        for listed in every:
            if self._stopping.is_set():
                return
            try:
                while self._erase(listed) and self._stuck.get(listed.id) != listed.head and self._cut(listed):
                    pass
            except (_Overtaken, pools.LeftError):
                pass
            except Exception as error:  # noqa: BLE001  # a snapshot is damaged, the disk is full: the others must be cut
                self._stuck[listed.id] = listed.head
                _log.warning("nothing cut", extra={"experiment": listed.name, "why": str(error)})

    def _erase(self, listed: Listed) -> bool:
        """Erase what was cut before, and tell whether that was all."""
        of, database = listed.id, self._store.database
        with database.reading() as reading:
            cut = reading.cut(of).seq
        if cut == self._erased.get(of, 0):
            return True
        now = self._store.clock.now().clock
        before = now - round((self._store.settings.keep_keys_days + (self._days or 0)) * _DAY)
        for _ in range(_PORTIONS):
            if self._stopping.is_set():
                return False
            with database.writing(aside=True) as writing:
                if writing.lock(of, wait=False) is None:
                    raise _Overtaken
                erased = writing.erase_cut(of, FORGOTTEN, before)
                writing.commit()
            if not erased:
                self._erased[of] = cut
                self._release_graphs(listed)
                return True
        return False

    def _release_graphs(self, listed: Listed) -> None:
        """Charge the graphs no longer to an experiment that only erased events have named."""
        known = self._store.known(listed.name)
        if known is not None:
            with known.lock, self._store.database.reading() as reading:
                if known.live is not None:
                    known.live.graph_bytes = reading.graph_bytes(listed.id)

    def _cut(self, listed: Listed) -> bool:
        """Cut what is due of an experiment, and tell whether that was anything."""
        database = self._store.database
        with database.reading() as reading:
            identity = reading.find(listed.name)
            if identity is None or identity.id != listed.id:
                raise _Overtaken
            before = reading.cut(identity.id)
            after = self._planned(reading, identity, before)
        if after is None:
            return False
        if after == before:
            self._stuck[identity.id] = listed.head
            return False
        file = self._file(identity, before)
        with ExitStack() as until_renamed:
            if file is not None:
                draft = until_renamed.enter_context(replacing(file))
                self._export(self._store, f"#{identity.key}", draft, after.round)
                draft.flush()
                os.fsync(draft.fileno())
            with database.writing(aside=True) as writing:
                if writing.lock(identity.id, wait=False) is None or writing.cut(identity.id) != before:
                    raise _Overtaken  # which removes the draft
                writing.cut_to(identity.id, after)
                until_renamed.close()  # the file is there before its decisions are gone
                _flush(file)
                writing.commit()
        decisions = after.round - before.round
        self._count(identity.name, decisions)
        about = {"experiment": identity.name, "first_event": after.seq + 1, "decisions": decisions}
        _log.info("journal cut", extra={**about, "file": None if file is None else str(file)})
        return True

    def _file(self, identity: Identity, before: Cut) -> Path | None:
        """Return the file for the next part of the log, which is named after its first decision."""
        folder = self._store.settings.export_before_cut
        return folder and folder / f"{identity.name}-{identity.key}-{before.round + 1:012}.parquet"

    def _planned(self, reading: Reading, identity: Identity, before: Cut) -> Cut | None:
        """Return where the journal should begin, as far as that is possible, or None if nothing is due."""
        of, now = identity.id, self._store.clock.now().clock
        size, oldest = reading.journal_bytes(of), reading.events(of, max(before.seq, 1), 1)
        too_old = self._days is not None and any(
            event.clock <= now - self._days * (1 + _SLACK) * _DAY for event in oldest
        )
        too_large = 0 < self._most < size
        if not too_old and not too_large:
            return None
        checked = self._snapshot(reading, identity)
        if checked is None:
            return before
        first, most = before.round + 1, checked.first
        wanted = first
        if too_old:
            until = now - (self._days or 0) * _DAY
            numbers = range(first, max(first, most))
            wanted += bisect_left(numbers, True, key=lambda each: _decided(reading, of, each).clock > until)  # noqa: FBT003
        if too_large:  # decisions take about as many bytes each
            share = 1 - self._most / (1 + _SLACK) / size
            wanted = max(wanted, first + round((checked.round - before.round) * share))
        left = _decided(reading, of, min(wanted, most)) if min(wanted, most) > first else None
        if left is None or left.round <= first:
            return before
        (last,) = reading.events(of, left.seq - 2, 1)
        return Cut(last.seq, left.round - 1, last.chain, lasting(reading, of, last.seq))

    def _snapshot(self, reading: Reading, identity: Identity) -> _Checked | None:
        """Return the older of the last two snapshots, which was checked; None if there are no two.

        Raises:
            SidelongError: it is damaged, or of another version or journal.
        """
        name = BlobName(BlobKind.SNAPSHOT, identity.key, seq=LAST_SEQ)
        newest = reading.blob(name)
        older = newest and reading.blob(name._replace(seq=newest.seq - 1))
        if older is None:
            return None
        checked = self._checked.get(identity.id)
        if checked is None or checked.seq != older.seq:
            live = snapshots.unpack(identity, older.data, partial(self._store.graphs.find, reading))
            if [event.chain for event in reading.events(identity.id, older.seq - 1, 1)] != [live.chain]:
                raise RuntimeError(f"the snapshot behind event {older.seq} is of another journal")
            live.blocks.check(reading, identity.key)
            oldest = live.pending.oldest
            # The event of the snapshot is left, so that the two can be compared.
            first = live.round if oldest is None else min(oldest, live.round)
            checked = self._checked[identity.id] = _Checked(older.seq, live.round, first)
        return checked


def _flush(file: Path | None) -> None:
    """Let the name of a file outlive a power cut; what is in it does already."""
    if file is not None:
        folder = os.open(file.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)


def _decided(reading: Reading, experiment: int, number: int) -> Event:
    """Return the event that a decision was made with."""
    (event,) = reading.spanning(experiment, DECIDED_SLOT, 1, number, 1)
    return event
