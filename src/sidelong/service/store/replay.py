"""An experiment as a replay of its journal: the last good snapshot, and the events from there on.

A snapshot only saves time: the journal is what counts. One that is damaged, or that another version of the program has
written, is passed over, and written anew. One that is whole, but is of another journal than the one beside it, means
that one of the two was altered: the experiment is refused, because nobody can say which.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import logging
import struct
import threading
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from sidelong.errors import LearnerError, ServiceError, SidelongError
from sidelong.service.pools import WorkQueue
from sidelong.service.store import snapshots
from sidelong.service.store.agents import module_of
from sidelong.service.store.arms import ArmChange
from sidelong.service.store.clock import Moment
from sidelong.service.store.database import LAST_SEQ, Blob, BlobKind, BlobName, keep_blob
from sidelong.service.store.experiment import LiveExperiment
from sidelong.service.store.graphs import KnownGraph, identify
from sidelong.service.store.journal import DRAWN_BY, Kind, lasting, linked, read_columns, read_settled, size_of
from sidelong.service.store.keys import BlockMissing
from sidelong.service.store.locks import FairLock
from sidelong.service.store.pending import CLOCK
from sidelong.service.store.snapshots import Pace

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from sidelong.agent.ceiling import Spending
    from sidelong.service.store.clock import Clock
    from sidelong.service.store.database import Database, Identity, Reading
    from sidelong.service.store.graphs import GraphCache
    from sidelong.service.store.journal import Event
    from sidelong.service.store.store import Store

    Then = Callable[[Exception | None], None]

_log = logging.getLogger("sidelong.service")
_PAGE = 500  # events that are replayed before another experiment has its turn
_PAGE_BYTES = 2**24  # of their columns
#: About as many bytes are forgotten at once, of old snapshots and of deleted experiments, while others wait.
FORGOTTEN = 2**20


class Progress(NamedTuple):
    """How far a replay has come."""

    done: int
    head: int


class Measured(NamedTuple):
    """Numbers of an experiment, for those who watch it: the same on every server."""

    pending: int
    told: int  #: decisions
    paid: float  #: the losses of the arms that they played, together
    lift: np.ndarray  #: sums of rounds for which a coin was tossed: see `sidelong.evaluation.lift`
    share: float | None  #: of the holdout, if there is one
    spending: Spending | None  #: if there is a ceiling

    @classmethod
    def of(cls, live: LiveExperiment) -> Measured:
        """Return those of an experiment in memory, of which somebody holds the lock."""
        share = None if live.holdout is None else live.holdout.share
        return cls(len(live.pending), *live.paid(), live.counters.lift.copy(), share, live.spending())


class _BehindCut(Exception):  # noqa: N818  # no error: it begins anew
    """The events that are to be replayed next were cut, because another server had long done so."""


class Replayed:
    """An experiment of the database, brought into memory when it is first needed.

    Whoever looks at it or changes it holds its lock. It is changed in memory before it is changed on the disk, and the
    lock is held until both agree: nobody sees what is not on the disk. A replay from the beginning, which may take
    minutes, happens aside and without the lock: nobody waits for it who does not want to.
    """

    def __init__(
        self, identity: Identity, graphs: GraphCache, clock: Clock, live: LiveExperiment | None = None
    ) -> None:
        self.identity = identity
        self.lock = FairLock()
        self.live = live  #: None until it is needed
        self.refused: ServiceError | None = None
        self.progress: Progress | None = None  #: while it is replayed
        self.measured: Measured | None = None  #: when last looked at
        self._pace = Pace()
        self._doubted: set[int] = set()  # the events of snapshots of which a block was missing
        self._aside: LiveExperiment | None = None  # what is replayed, until it is complete
        self._loading = threading.Lock()
        self._graphs = graphs
        self._clock = clock

    @property
    def state(self) -> str:
        """Whether it is in memory ("live"), "loading" or "refused"."""
        return "refused" if self.refused is not None else "loading" if self.live is None else "live"

    @property
    def is_settled(self) -> bool:
        """Whether it is in memory or refused, so that nobody has to wait for a replay."""
        return self.live is not None or self.refused is not None

    def step(self, database: Database, pause: Callable[[], None] | None = None) -> bool:
        """Replay one page of its journal, and tell whether that was the last one; call `pause` between its events."""
        with self._loading, database.reading() as reading:
            if self.refused is not None:
                raise self.refused
            if self.live is not None:  # and behind what other servers have done
                with self.lock:
                    return self.live is None or (self._guarded(reading, self.live) and self._is_complete(reading))
            live = self._aside
            if live is None:
                try:
                    self._check_version()
                    live = self._from_snapshot(reading) or self._beginning(reading)
                except ServiceError as error:
                    self._give_up(error)
                    raise
                self._aside, self.progress = live, Progress(live.head, self._head(reading))
            if not self._guarded(reading, live, pause):
                return False
            live.graph_bytes = reading.graph_bytes(self.identity.id)
            with self.lock:
                self._aside, self.progress, self.live = None, None, live
                return self._is_complete(reading)

    def load(self, database: Database) -> None:
        """Bring it into memory, all at once."""
        while not self.step(database):
            pass

    def catch_up(self, reading: Reading, head: int | None = None) -> LiveExperiment:
        """Return it as all servers have made it; `head` is its last event, if that is known. It must be in memory."""
        live = self.live
        if self.refused is not None:
            raise self.refused
        if live is None:
            raise self.loading()
        while not self._guarded(reading, live):
            if self.live is None:  # a block is gone
                raise BlockMissing(self.identity.name)
        if head is not None:
            self._check_end(live, head)
        return live

    def loading(self) -> ServiceError:
        """Return the error for whoever wants it at once, and cannot have it."""
        done, head = self.progress or Progress(0, 0)
        text = f"The journal of {self.identity.name!r} is being replayed: {done:,} of {head:,} events are done."
        return ServiceError(f"{text} Send the request again.", status=503, code="busy", retry_after=1.0)

    def _head(self, reading: Reading) -> int:
        return next((each.head for each in reading.experiments() if each.id == self.identity.id), 0)

    def _is_complete(self, reading: Reading) -> bool:
        """Return True, or refuse a journal that has lost its end."""
        if self.live is not None:
            self._check_end(self.live, max(self.live.head, self._head(reading)))
        return True

    def _check_end(self, live: LiveExperiment, head: int) -> None:
        if live.head != head:
            error = self._incomplete(live.head, head)
            self._give_up(error)
            raise error

    def _guarded(self, reading: Reading, live: LiveExperiment, pause: Callable[[], None] | None = None) -> bool:
        try:
            done = self._replay(reading, live, _PAGE, pause)
        except ServiceError as error:
            self._give_up(error)
            raise
        except BlockMissing:
            self.doubt(live)
            return False
        except _BehindCut:
            self.live = self._aside = self.progress = None  # a newer snapshot is behind the cut
            return False
        except BaseException:
            self.live = self._aside = self.progress = None  # it may have done half of an event
            raise
        if self.progress is not None:
            self.progress = Progress(live.head, max(live.head, self.progress.head))
        return done

    def doubt(self, live: LiveExperiment) -> None:
        """Begin anew without the snapshot that a block was missing of; another server may have written a newer one."""
        self._doubted.add(live.saved_at)
        self.live = self._aside = self.progress = None
        about = {"experiment": self.identity.name, "sequence": live.saved_at, "why": "a block is gone or damaged"}
        _log.warning("snapshot not used", extra=about)

    def _give_up(self, error: ServiceError) -> None:
        self.live = self._aside = self.progress = None
        if error.code == "refused":
            self.refused = error
            _log.error("experiment refused", extra={"experiment": self.identity.name, "why": str(error)})

    def rebuilt(self, reading: Reading) -> LiveExperiment:
        """Return it as the journal alone makes it, beside what is in memory."""
        live = self._beginning(reading)
        while not self._replay(reading, live, _PAGE):
            pass
        return live

    def is_stale(self, least: int, most: int) -> bool:
        """Tell whether a snapshot is to be written, as `Pace.is_due` does."""
        live = self.live
        return live is not None and self._pace.is_due(live, least, most)

    def save(self, database: Database) -> None:
        """Write a snapshot."""
        with self.lock:
            live = self.live
            if live is None:
                return
            blocks = live.blocks.begin_write()
            snapshot, done = Blob(live.head, snapshots.pack(live)), live.done
        self._pace.tried(snapshot.seq, done)
        try:
            self._write(database, snapshot, blocks)
        except BaseException:
            self._pace.failed()
            with self.lock:
                live.blocks.not_written()
            raise
        self._pace.written(len(snapshot.data))
        with self.lock:
            live.saved, live.saved_at = done, snapshot.seq
            live.blocks.written(blocks, snapshot.seq)

    def _write(self, database: Database, snapshot: Blob, blocks: Mapping[int, bytes]) -> None:
        """Write a snapshot behind its blocks, and forget what no snapshot needs any more."""
        owner, now = self.identity.key, self._clock.now().clock
        for number, block in blocks.items():
            keep_blob(database, BlobName(BlobKind.BLOCK, owner, number, snapshot.seq), block, now)
        keep_blob(database, BlobName(BlobKind.SNAPSHOT, owner, seq=snapshot.seq), snapshot.data, now)
        more = True
        while more:
            with database.writing(aside=True) as writing:
                more = writing.forget(self.identity.id, FORGOTTEN) > 0
                if more:
                    writing.commit()

    def _check_version(self) -> None:
        """Refuse an experiment of another version of its learner: this one cannot replay what that one decided."""
        made = self.identity.spec.learner_version
        try:
            own = module_of(self.identity.spec).version
        except LearnerError as error:
            raise self._unplayable(error) from error
        if made != own:
            raise self._other_version(made, own)

    def _beginning(self, reading: Reading) -> LiveExperiment:
        """Return it as it was created: with nothing, or with what a clone or a log had learned."""
        spec, cut = self.identity.spec, reading.cut(self.identity.id)
        if cut.seq:
            raise self._beheaded(cut.seq)
        graph = self._graphs.find(reading, spec.graph).named(spec.graph_name)
        learned = None
        if spec.initial_state is not None:
            kept = reading.blob(BlobName(BlobKind.INITIAL_STATE, self.identity.key))
            learned = None if kept is None else kept.data
            if learned is None or hashlib.sha256(learned).hexdigest() != spec.initial_state:
                first = reading.events(self.identity.id, 0, 1)[0]
                raise self._differs(first, "what it began with is another or is gone")
        try:
            return LiveExperiment.new(self.identity, graph, learned)
        except LearnerError as error:
            raise self._unplayable(error) from error

    def _replay(
        self, reading: Reading, live: LiveExperiment, most: int, pause: Callable[[], None] | None = None
    ) -> bool:
        """Do again what the journal says next, and tell whether that was all of it."""
        page = reading.events(self.identity.id, live.head, most, _PAGE_BYTES)
        for event in page:
            if event.seq > live.head + 1 and reading.cut(self.identity.id).seq > live.head:
                raise _BehindCut
            graph = None if event.graph is None else KnownGraph(event.graph, self._graphs.find(reading, event.graph))
            try:
                made = _again(live, event, graph, reading)
            except (SidelongError, LookupError, TypeError, ValueError, struct.error) as error:
                raise self._differs(event, f"it cannot be done again: {error}") from error
            if made != event:
                raise self._differs(event, f"it says {_shown(event)}, and doing it again gives {_shown(made)}")
            if pause is not None:  # nobody waits for this experiment's lock meanwhile
                pause()
        if page:
            self.identity = live.identity  # which may have another name by now
            self._clock.saw(max(event.clock for event in page))
        return len(page) < most and sum(map(size_of, page)) < _PAGE_BYTES

    def _from_snapshot(self, reading: Reading) -> LiveExperiment | None:
        """Return it from the last good snapshot, if there is one."""
        last = BlobName(BlobKind.SNAPSHOT, self.identity.key, seq=LAST_SEQ)
        cut = reading.cut(self.identity.id)
        while (snapshot := reading.blob(last)) is not None and snapshot.seq > cut.seq:
            if snapshot.seq in self._doubted:
                last = last._replace(seq=snapshot.seq - 1)
                continue
            try:
                live = snapshots.unpack(self.identity, snapshot.data, partial(self._graphs.find, reading))
                same = [event.chain for event in reading.events(self.identity.id, live.head - 1, 1)] == [live.chain]
                if same and len(live.keys) <= live.blocks.size:  # whoever asks for anything needs this block
                    live.load_all(reading)
            except Exception as error:  # noqa: BLE001  # whatever it is, the journal is there
                about = {"experiment": self.identity.name, "sequence": snapshot.seq, "why": str(error)}
                _log.warning("snapshot not used", extra=about)
                last = last._replace(seq=snapshot.seq - 1)
                continue
            if not same:
                raise self._altered(snapshot.seq)
            if len(live.pending):  # whose events are not replayed
                self._clock.saw(int(live.pending.table[:, CLOCK].max()))
            live.saved, live.saved_at = live.done, snapshot.seq
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

    def _other_version(self, made: int, own: int) -> ServiceError:
        learner = self.identity.spec.learner
        return _refused(
            f"{self.identity.name!r} was created with version {made} of {learner}, and this server has version {own}, "
            f"which decides differently. Nothing is decided or learned here. To continue it, start a sidelong that has "
            f"version {made} of {learner}; or export its log, and create an experiment that begins with this log."
        )

    def _altered(self, seq: int) -> ServiceError:
        return _refused(
            f"The snapshot of {self.identity.name!r} after event {seq} is whole, but not of the journal beside it: "
            f"one of the two was altered. Restore the database from a copy, or delete the snapshot if the journal "
            f"is right, and start the service again. Until then nothing is learned or decided."
        )

    def _beheaded(self, cut: int) -> ServiceError:
        """Return the error for a journal that cannot be replayed, because its first events were cut."""
        return _refused(
            f"No snapshot of {self.identity.name!r} can be used, and its journal was cut behind event {cut:,}, so that "
            f"nothing else can rebuild it. Restore the database from a copy, or start the version that has written the "
            f"snapshots. Until then nothing is learned or decided; what is left of its log can still be exported."
        )

    def _incomplete(self, found: int, head: int) -> ServiceError:
        """Return the error for a journal that ends too early: what was acknowledged would be made again."""
        return _refused(
            f"The journal of {self.identity.name!r} ends with event {found}, and {head} were written: it was altered. "
            f"Restore the database from a copy, and start the service again. Until then nothing is learned or decided."
        )


def _again(live: LiveExperiment, event: Event, graph: KnownGraph | None, reading: Reading) -> Event:  # noqa: PLR0911
    """Do again what the journal says, and return what that gives."""
    moment, kind = Moment(event.at, event.clock), event.kind
    if kind is Kind.CREATED:
        return live.create(moment, event.context)
    if kind is Kind.CHANGED:
        said = json.loads(event.context or "{}")
        if graph is None:
            return live.change(said, moment)
        change = ArmChange.read(event)
        made = identify(change.graph(live.graph))
        return live.change_arms(change, graph if made.id == graph.id else made, said, moment, event.key)
    if kind in DRAWN_BY:
        columns = read_columns(event)
        keys = columns.get("key")
        subject = columns["subject"][0] if "subject" in columns else None
        rows = live.keys.places(keys, event.last - event.round + 1)
        live.load(reading, rows)
        return live.decide(keys, rows, graph, moment, event.key, event.context, subject, columns.get("advice"))[0]
    if kind in {Kind.REPORTED, Kind.REPEATED}:
        return _noted(live, event, moment)
    found = read_settled(event)
    numbers, sizes = found.numbers.tolist(), np.diff(found.offsets).tolist()
    if kind is Kind.LATE:
        return live.late(numbers, found.arm or 0, sizes, found.losses, event.graph, moment, found.costs)
    live.load_pending(reading, numbers)
    if kind is Kind.OVERRIDDEN:
        return live.override(event.round, int(read_columns(event)["arm"][0]), moment)
    if kind is Kind.TOLD and live.identity.spec.sticky is None:
        return live.tell(numbers, sizes, found.losses, graph, moment, costs=found.costs)
    if kind in {Kind.TOLD, Kind.DEFAULTED}:  # the mean of what was reported, or the loss that is named for this
        return live.expire(numbers, moment)
    return live.give_up(numbers, kind, moment)


def _noted(live: LiveExperiment, event: Event, moment: Moment) -> Event:
    """Do again what happened to a sticky decision before it ended."""
    columns, key = read_columns(event), str(event.key)
    number, (loss, cost) = int(columns["decision"][0]), map(columns.get, ("loss", "cost"))
    if loss is None:
        return live.repeat(number, moment, key)
    return live.report(number, loss.astype(float), cost if cost is None else cost.astype(float), moment, key)


def _shown(event: Event) -> str:
    few = {name: list(values[:3]) for name, values in read_columns(event).items()}
    return f"{event.kind.name.lower()} {event.round} to {event.last}, {few}"


def check_chain(reading: Reading, identity: Identity) -> Iterator[None]:
    """Check that the journal of an experiment is as it was written, page by page; refuse it with the place where not.

    What is behind a snapshot is not replayed, so that nobody else would notice.
    """
    cut, more = reading.cut(identity.id), True
    if cut.seq and lasting(reading, identity.id, cut.seq) != cut.kept:
        raise _refused(
            f"The journal of {identity.name!r} was cut behind event {cut.seq:,}, and an event before it that was kept "
            f"was altered or is gone. Restore the database from a copy, and start the service again."
        )
    seq, chain = cut.seq, cut.chain
    while more:
        page = reading.events(identity.id, seq, _PAGE, _PAGE_BYTES)
        for event in page:
            seq += 1
            if event.seq != seq or linked(event, seq, chain).chain != event.chain:
                raise _refused(
                    f"Event {seq} of the journal of {identity.name!r} was altered or is gone. Restore the database "
                    f"from a copy, and start the service again."
                )
            chain = event.chain
        more = bool(page)
        yield
    head = next((each.head for each in reading.experiments() if each.id == identity.id), 0)
    if seq < head:
        raise _refused(
            f"Event {seq + 1} of the journal of {identity.name!r} is gone, and {head:,} were written. Restore the "
            f"database from a copy, and start the service again."
        )


def _refused(text: str) -> ServiceError:
    return ServiceError(text, status=503, code="refused")


class Loading:
    """The thread that brings experiments into memory, aside of everything else.

    It replays a page of each in turn: an experiment with few events does not wait for one with a million, and nobody
    who decides or looks waits for either. Each page is read in a transaction of its own, so that no replay keeps a
    database from tidying up.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._guard = threading.Lock()
        self._then: dict[str, list[Then]] = {}
        self._turns = WorkQueue("loading", self._take_turn)

    def want(self, of: str, then: Then) -> None:
        """Load an experiment, or let it catch up; `then` is told, in another thread, why it cannot be, or None."""
        with self._guard:
            is_wanted = of in self._then
            self._then.setdefault(of, []).append(then)
        if not is_wanted and not self._turns.add(of):
            self._tell(of, _stopping())

    async def wait(self, of: str, seconds: float) -> None:
        """Wait until an experiment is in memory, or raise why it is not."""
        known = self._store.known(of)
        if known is not None and known.live is not None:
            return
        loop = asyncio.get_running_loop()
        done: asyncio.Future[None] = loop.create_future()

        def resolve(error: Exception | None) -> None:
            if not done.done():
                done.set_result(None) if error is None else done.set_exception(error)

        def tell(error: Exception | None) -> None:
            loop.call_soon_threadsafe(resolve, error)

        self.want(of, tell)
        try:
            async with asyncio.timeout(seconds):
                await done
        except TimeoutError:
            raise self._store.named(of).loading() from None

    async def wait_for_all(self, every: Sequence[str], seconds: float) -> None:
        """Wait until experiments are in memory or refused, for so many seconds at most."""
        known = {of: self._store.known(of) for of in every}
        wanted = [of for of, found in known.items() if found is None or not found.is_settled]
        await asyncio.gather(*(self.wait(of, seconds) for of in wanted), return_exceptions=True)

    def close(self) -> None:
        """Stop after the page that is being replayed."""
        self._turns.close()
        for of in list(self._then):
            self._tell(of, _stopping())

    def _take_turn(self, of: str) -> None:
        error: Exception | None = None
        try:
            done = self._store.named(of).step(self._store.database, self._store.priority.pause)
        except Exception as caught:  # noqa: BLE001  # the others must not wait for this one
            done, error = True, caught
            if not isinstance(caught, ServiceError):
                _log.exception("experiment not opened", extra={"experiment": of})
        if done:
            self._tell(of, error)
        else:
            self._turns.add(of)

    def _tell(self, of: str, error: Exception | None) -> None:
        with self._guard:
            waiting = self._then.pop(of, [])
        for then in waiting:
            then(error)


def _stopping() -> ServiceError:
    return ServiceError("The service is stopping.", status=503, code="unavailable", retry_after=2.0)
