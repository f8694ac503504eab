"""The seam of `sidelong.service.store.database`, over SQLAlchemy, for SQLite and PostgreSQL."""

from __future__ import annotations

import itertools
import json
import sqlite3
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sqlalchemy import (
    and_,
    bindparam,
    delete,
    exists,
    func,
    insert,
    literal_column,
    null,
    or_,
    select,
    text,
    union_all,
    update,
)
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.exc import DatabaseError, DataError, IntegrityError, InterfaceError, ProgrammingError
from sqlalchemy.exc import TimeoutError as PoolTimeoutError
from sqlalchemy.pool import NullPool, QueuePool

from sidelong.service.store.database import (
    Blob,
    BlobKind,
    BlobName,
    Cut,
    Database,
    Identity,
    Listed,
    Reading,
    TakenError,
    Token,
    Writing,
)
from sidelong.service.store.journal import SLOTS, Event, Kind, size_of
from sidelong.service.store.locks import FairLock
from sidelong.service.store.sql import checkpoints, migrate
from sidelong.service.store.sql.engines import busy, explain, later, make_engine, parse
from sidelong.service.store.sql.schema import blobs, clock, cut_keys, events, experiments, tokens
from sidelong.service.store.sql.statements import Insertion, PreparedStatement, driver_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from sqlalchemy import ColumnElement, Connection, CursorResult, Engine, Row, Select, Table

_MIGRATION_LOCK = 0x51DE1046  # of PostgreSQL; any number, as long as it is always the same
_KINDS = {int(kind): kind for kind in Kind}  # which is quicker than to ask the enumeration, a million times
_PAGES_PER_COMMIT = 6  # of SQLite, beside large values, about
_ROW_BYTES = 300  # of an event and its places in indices, about
#: So that SQLite takes its lock now, before any other: a transaction that asked for it halfway would fail, not wait.
_LOCKED = "BEGIN IMMEDIATE"


_OF: Any = bindparam("of")
_KEPT = experiments.c.state.not_in([literal_column("'deleted'"), literal_column("'gone'")])
_FIND = select(experiments.c.id, experiments.c.key, experiments.c.name, experiments.c.spec).where(_KEPT)
_LIST = select(*[experiments.c[name] for name in Listed._fields])
_READ = select(*[events.c[name] for name in Event._fields]).where(events.c.experiment == _OF)
_EVENTS = _READ.where(events.c.seq > bindparam("after")).order_by(events.c.seq).limit(bindparam("most"))
_SIZE = func.coalesce(func.length(events.c.data), 0)
_TEXTS = func.coalesce(func.length(events.c.context), 0) + func.coalesce(func.length(events.c.key), 0)
_SIZES = (
    select(_SIZE)
    .where(events.c.experiment == _OF, events.c.seq > bindparam("after"))
    .order_by(events.c.seq)
    .limit(bindparam("most"))
)
_SPANNING = (
    _READ.where(events.c.slot == bindparam("slot"), events.c.round.between(bindparam("first"), bindparam("last")))
    .order_by(events.c.round.desc())
    .limit(bindparam("most"))
)
_ROUNDS = PreparedStatement(
    _READ.where(events.c.round.between(bindparam("first"), bindparam("last"))).order_by(events.c.round, events.c.slot)
)
_ERASED_EVENT: dict[str, Any] = {
    **dict.fromkeys(Event._fields, literal_column("0")),
    "key": cut_keys.c.key,
    "clock": cut_keys.c.clock,
}
_ERASED_EVENT |= dict.fromkeys(("graph", "context", "data", "chain"), null())
_ERASED = select(*(value.label(name) for name, value in _ERASED_EVENT.items())).where(cut_keys.c.experiment == _OF)
_KEYED = {  # one text for any number of keys
    kind: PreparedStatement(
        union_all(_READ.where(text(f"events.key {among}")), _ERASED.where(text(f"cut_keys.key {among}")))
    )
    for kind, among in {"sqlite": "IN (SELECT value FROM json_each(:keys))", "postgresql": "= ANY(:keys)"}.items()
}
#: What a cut leaves of a journal: who made the experiment, and who changed what of it.
_LASTING = events.c.kind.in_([int(Kind.CREATED), int(Kind.CHANGED)])
_CUT = PreparedStatement(select(*(experiments.c[f"cut_{name}"] for name in Cut._fields)).where(experiments.c.id == _OF))
_GRAPH, _INITIAL_STATE, _SNAPSHOT, _BLOCK = map(int, BlobKind)
_NEWER = blobs.alias()
_UNNAMED = and_(
    blobs.c.kind.in_([_GRAPH, _INITIAL_STATE]),
    blobs.c.kept_at < bindparam("before"),
    ~exists().where(_NEWER.c.owner == blobs.c.owner, _NEWER.c.kept_at >= bindparam("before")),
    ~exists().where(events.c.graph == blobs.c.owner),
    ~exists().where(experiments.c.key == blobs.c.owner),
    blobs.c.owner.not_in(select(experiments.c.graph).where(_KEPT, experiments.c.graph.is_not(None))),
)
_NAMED = select(events.c.graph).where(events.c.experiment == _OF, events.c.graph.is_not(None)).distinct()
_TOKENS = select(*[tokens.c[name] for name in Token._fields]).order_by(tokens.c.created_at, tokens.c.id)
_HEAD_OF = select(experiments.c.head).where(experiments.c.id == _OF, _KEPT)
_LOCK = PreparedStatement(_HEAD_OF.with_for_update(key_share=True))
_TRY_LOCK = PreparedStatement(_HEAD_OF.with_for_update(key_share=True, skip_locked=True))
_APPEND = Insertion(events, ["experiment", "slot", *Event._fields])
_HEAD = PreparedStatement(
    update(experiments)
    .where(experiments.c.id == _OF, experiments.c.head == bindparam("old"))
    .values(head=bindparam("new"), size=experiments.c.size + bindparam("more"))
)


class _DatabaseFile:
    """The file of SQLite. One that is deleted or replaced stays open, and takes what nobody will ever read again."""

    def __init__(self, path: str) -> None:
        database = Path(path).resolve()
        # The write-ahead log is there as long as anybody has the database open.
        self._paths = (database, database.with_name(f"{database.name}-wal"))
        self._first: list[tuple[int, int] | None] = [None, None]

    def check(self) -> None:
        """Refuse if the file, or the one with what was written ahead, is not the one that it was at first."""
        for place, path in enumerate(self._paths):
            try:
                found = path.stat()
                now = found.st_dev, found.st_ino
            except OSError:
                now = None
            if self._first[place] is None:  # which may be made only now
                self._first[place] = now
            elif now != self._first[place]:
                how = "deleted" if now is None else "replaced"
                raise later(
                    f"The database file {path.name} was {how} while the service runs. Nothing is stored. Put it "
                    f"back, with its -wal beside it, or stop the service and restore a copy.",
                    "unavailable",
                    5.0,
                )


class _Reading(Reading):
    """A transaction that reads."""

    def __init__(self, connection: Connection) -> None:
        self.connection = connection

    def find(self, of: str) -> Identity | None:
        is_called = experiments.c.key == of[1:] if of.startswith("#") else experiments.c.name == of
        row = self.connection.execute(_FIND.where(is_called)).first()
        return None if row is None else Identity(*row)

    def experiments(self, *, deleted: bool = False) -> list[Listed]:
        every = [Listed(*row) for row in self.connection.execute(_LIST.where(~_KEPT if deleted else _KEPT))]
        if deleted:
            return sorted(every, key=lambda each: (each.changed_at or 0, each.id))
        return sorted(every, key=lambda each: each.name)  # a database may sort letters by rules of its own

    def events(self, experiment: int, after: int, most: int, most_bytes: int | None = None) -> list[Event]:
        wanted = {"of": experiment, "after": after, "most": most}
        if most_bytes is None:
            return _read(self.connection.execute(_EVENTS, wanted))
        if self.connection.dialect.name == "postgresql":  # whose driver fetches all rows at once
            sizes = itertools.accumulate(self.connection.execute(_SIZES, wanted).scalars())
            wanted["most"] = sum(1 for _ in itertools.takewhile(lambda total: total < most_bytes, sizes)) + 1
        found: list[Event] = []
        total = 0
        with self.connection.execute(_EVENTS, {**wanted, "most": min(most, wanted["most"])}) as rows:
            for row in rows:
                found.append(Event(_KINDS[row[0]], *row[1:]))
                total += size_of(found[-1])
                if total >= most_bytes:
                    break
        return found

    def spanning(self, experiment: int, slot: int, first: int, last: int, most: int) -> list[Event]:
        wanted = {"of": experiment, "slot": slot, "first": first, "last": last, "most": most}
        return _read(self.connection.execute(_SPANNING, wanted))

    def rounds(self, experiment: int, first: int, last: int) -> list[Event]:
        return _events(_ROUNDS.rows(self.connection, of=experiment, first=first, last=last))

    def keyed(self, experiment: int, keys: Sequence[str]) -> list[Event]:
        kind = self.connection.dialect.name
        given = json.dumps(keys) if kind == "sqlite" else keys
        return _events(_KEYED[kind].rows(self.connection, of=experiment, keys=given))

    def cut(self, experiment: int) -> Cut:
        seq, round_, chain, kept = _CUT.first(self.connection, of=experiment) or Cut()
        return Cut(seq, round_, chain or b"", kept or b"")

    def journal_bytes(self, experiment: int) -> int:
        return int(
            self.connection.execute(select(experiments.c.size).where(experiments.c.id == experiment)).scalar_one()
        )

    def blob(self, name: BlobName) -> Blob | None:
        last = select(func.max(blobs.c.seq)).where(*_of(name), blobs.c.seq <= name.seq, blobs.c.is_last)
        wanted = select(blobs.c.seq, blobs.c.data).where(*_of(name), blobs.c.seq == last.scalar_subquery())
        found = self.connection.execute(wanted.order_by(blobs.c.chunk)).all()
        if not found:
            return None
        return Blob(found[0].seq, found[0].data if len(found) == 1 else b"".join(row.data for row in found))

    def graph_bytes(self, experiment: int) -> int:
        total = select(func.sum(func.length(blobs.c.data))).where(blobs.c.kind == _GRAPH, blobs.c.owner.in_(_NAMED))
        return int(self.connection.execute(total, {"of": experiment}).scalar() or 0)

    def names_graph(self, experiment: int, id_: str) -> bool:
        own = select(experiments.c.id).where(experiments.c.id == experiment, experiments.c.graph == id_)
        named = select(events.c.seq).where(events.c.experiment == experiment, events.c.graph == id_).limit(1)
        return any(self.connection.execute(each).first() is not None for each in (own, named))

    def clock(self) -> int:
        return self.connection.execute(select(func.max(clock.c.now))).scalar() or 0

    def tokens(self) -> list[Token]:
        rows = self.connection.execute(_TOKENS).all()
        return [Token(*row)._replace(scopes=tuple(row.scopes.split())) for row in rows]


class _Writing(_Reading, Writing):
    """A transaction that writes."""

    size = 0  #: about as many bytes were written

    def __init__(self, connection: Connection, file: _DatabaseFile | None) -> None:
        super().__init__(connection)
        self._file = file

    def lock(self, experiment: int, *, wait: bool = True) -> int | None:
        row = (_LOCK if wait else _TRY_LOCK).first(self.connection, of=experiment)
        return None if row is None else row[0]

    def create(self, identity: Identity, graph: str | None = None) -> int:
        row = {"key": identity.key, "name": identity.name, "spec": identity.document, "graph": graph, "head": 0}
        with _taken():
            made = self.connection.execute(insert(experiments).values(row)).inserted_primary_key
        return int(made[0])  # type: ignore[index]

    def relist(self, experiment: int, changes: Mapping[str, Any]) -> None:
        with _taken():
            self.connection.execute(update(experiments).where(experiments.c.id == experiment).values(**changes))

    def append(self, new: Mapping[int, Sequence[Event]]) -> None:
        rows = [(of, SLOTS[event.kind], int(event.kind), *event[1:]) for of, each in new.items() for event in each]
        with _taken():
            _APPEND.run(self.connection, rows)
        for of, each in new.items():
            more = sum(map(_stored_bytes, each))
            self.size += more
            if not _HEAD.changed(self.connection, of=of, old=each[0].seq - 1, new=each[-1].seq, more=more):
                raise TakenError("The journal has gone on.")

    def keep_chunk(self, name: BlobName, chunk: int, data: bytes, now: int, *, last: bool) -> None:
        row = {**name._asdict(), "kind": int(name.kind), "chunk": chunk, "is_last": last, "kept_at": now, "data": data}
        self.size += len(data)
        written = self._insert(blobs).values(row)
        same = ["owner", "kind", "number", "seq", "chunk"]
        self.connection.execute(written.on_conflict_do_update(index_elements=same, set_=row))
        if not last:
            return
        its_own = and_(*_of(name), blobs.c.seq == name.seq)
        self.connection.execute(delete(blobs).where(its_own, blobs.c.chunk > chunk))  # of one that was longer
        # Locked, so that nobody forgets one of those in front, and then sees that the blob is complete.
        first = select(blobs.c.chunk).where(its_own, blobs.c.chunk < chunk).with_for_update(read=True, key_share=True)
        if chunk and len(self.connection.execute(first).all()) < chunk:
            raise TakenError(f"Chunks of {name.kind.name} {name.owner} were forgotten.")

    def hold(self, name: BlobName, now: int | None = None) -> bool:
        complete = and_(*_of(name), blobs.c.seq == name.seq, blobs.c.is_last)
        if now is not None:
            return self.connection.execute(update(blobs).where(complete).values(kept_at=now)).rowcount > 0
        locked = select(blobs.c.owner).where(complete).with_for_update(read=True, key_share=True)
        return self.connection.execute(locked).first() is not None

    def forget(self, experiment: int, most_bytes: int) -> int:
        wanted = select(experiments.c.key, experiments.c.state).where(experiments.c.id == experiment)
        key, state = self.connection.execute(wanted).one()
        if state != "deleted":
            return self._forget_chunks(key, self._unneeded(key), most_bytes)
        return (
            self._forget_chunks(key, blobs.c.owner == key, most_bytes)
            or self._forget_events(experiment, most_bytes)
            or self._forget_keys(experiment, most_bytes)
            or self._forget_experiment(experiment)
        )

    def _unneeded(self, owner: str) -> ColumnElement[bool]:
        """Return which chunks of an experiment are needed by none of its last two snapshots."""
        complete = and_(blobs.c.owner == owner, blobs.c.kind == _SNAPSHOT, blobs.c.is_last)
        last = self.connection.execute(select(blobs.c.seq).where(complete).order_by(blobs.c.seq.desc()).limit(2))
        oldest = next(reversed(last.scalars().all()), 0)
        newer = exists().where(
            _NEWER.c.owner == owner,
            _NEWER.c.kind == _BLOCK,
            _NEWER.c.number == blobs.c.number,
            _NEWER.c.seq > blobs.c.seq,
            _NEWER.c.seq <= oldest,
            _NEWER.c.is_last,
        )
        of_snapshots = and_(blobs.c.kind == _SNAPSHOT, blobs.c.seq < oldest)
        return and_(blobs.c.owner == owner, or_(of_snapshots, and_(blobs.c.kind == _BLOCK, newer)))

    def _forget_chunks(self, owner: str, which: ColumnElement[bool], most_bytes: int) -> int:
        key = [blobs.c[name] for name in ("kind", "number", "seq", "chunk")]
        # The last chunk first, without which the others are no blob.
        found = select(func.length(blobs.c.data), *key).where(which).order_by(*key[:3], blobs.c.chunk.desc())
        rows = self._some(found, most_bytes)
        if rows:
            one = [column == bindparam(f"of_{column.name}") for column in key]
            names = [f"of_{column.name}" for column in key]
            given: list[dict[str, int]] = [dict(zip(names, row[1:], strict=True)) for row in rows]
            self.connection.execute(delete(blobs).where(blobs.c.owner == owner, *one), given)
        return len(rows)

    def _forget_events(self, experiment: int, most_bytes: int) -> int:
        its_own = events.c.experiment == experiment
        rows = self._some(select(_SIZE, events.c.seq).where(its_own).order_by(events.c.seq.desc()), most_bytes)
        if rows:
            self.connection.execute(delete(events).where(its_own, events.c.seq >= rows[-1].seq))
        return len(rows)

    def _forget_keys(self, experiment: int, most_bytes: int, before: int = 2**63 - 1) -> int:
        """Forget Idempotency-Keys of erased events that are older than a time, the oldest first."""
        its_own = cut_keys.c.experiment == experiment
        found = select(func.length(cut_keys.c.key), cut_keys.c.key).where(its_own, cut_keys.c.clock < before)
        rows = self._some(found.order_by(cut_keys.c.clock), most_bytes)
        if rows:
            one = cut_keys.c.key == bindparam("of_key")
            self.connection.execute(delete(cut_keys).where(its_own, one), [{"of_key": row.key} for row in rows])
        return len(rows)

    def cut_to(self, experiment: int, cut: Cut) -> None:
        values = {f"cut_{name}": value for name, value in cut._asdict().items()}
        self.connection.execute(update(experiments).where(experiments.c.id == experiment).values(**values))

    def erase_cut(self, experiment: int, most_bytes: int, before: int) -> int:
        its_own, last = events.c.experiment == experiment, self.cut(experiment).seq
        gone = and_(its_own, events.c.seq <= last, ~_LASTING)
        found = select(_SIZE + _TEXTS, events.c.seq, events.c.key, events.c.clock).where(gone).order_by(events.c.seq)
        rows = self._some(found, most_bytes)
        if not rows:
            return self._forget_keys(experiment, most_bytes, before)
        keys = [{"experiment": experiment, "key": row.key, "clock": row.clock} for row in rows if row.key is not None]
        if keys:
            self.connection.execute(insert(cut_keys), keys)
        self.connection.execute(delete(events).where(gone, events.c.seq <= rows[-1].seq))
        less = sum(row[0] + _ROW_BYTES for row in rows)
        self.connection.execute(
            update(experiments).where(experiments.c.id == experiment).values(size=experiments.c.size - less)
        )
        return len(rows)

    def _forget_experiment(self, experiment: int) -> int:
        self.relist(experiment, {"state": "gone", "spec": "", "graph": None})
        return 0

    def _some(self, found: Select[Any], most_bytes: int) -> list[Row[Any]]:
        """Return rows, the first column of which is their size, of about so many bytes."""
        rows: list[Row[Any]] = []
        total = 0
        for row in self.connection.execute(found.limit(most_bytes // _ROW_BYTES + 1)).all():
            if rows and total >= most_bytes:
                break
            rows.append(row)
            total += row[0] + _ROW_BYTES
        self.size += total
        return rows

    def forget_unused(self, before: int, most: int, owners: Sequence[str] | None = None) -> list[str]:
        given = {"before": before}
        if owners is None:
            unused = select(blobs.c.owner).where(_UNNAMED).distinct().limit(most)
            owners = self.connection.execute(unused, given).scalars().all()
        if not owners:  # as nearly always
            return []
        # Locked first: whoever holds one of them names it by now, which the next statement sees.
        wanted = blobs.c.owner.in_(owners)
        locked = select(blobs.c.owner).where(wanted).order_by(blobs.c.owner, blobs.c.chunk).with_for_update()
        self.connection.execute(locked).all()
        chunks = select(blobs.c.owner, blobs.c.chunk).where(_UNNAMED, wanted)
        chunks = chunks.order_by(blobs.c.owner, blobs.c.chunk.desc()).limit(most)
        rows = self.connection.execute(chunks, given).all()
        one = and_(blobs.c.owner == bindparam("of_owner"), blobs.c.chunk == bindparam("of_chunk"))
        if rows:
            self.connection.execute(delete(blobs).where(one), [{"of_owner": of, "of_chunk": n} for of, n in rows])
        return sorted({row.owner for row in rows})

    def keep_clock(self, now: int) -> None:
        written = self._insert(clock).values(id=1, now=now)
        later = clock.c.now < now
        self.connection.execute(written.on_conflict_do_update(index_elements=["id"], set_={"now": now}, where=later))

    def keep_token(self, token: Token) -> None:
        row = {**token._asdict(), "scopes": " ".join(token.scopes)}
        written = self._insert(tokens).values(row)
        first = func.coalesce(tokens.c.revoked_at, written.excluded.revoked_at)
        self.connection.execute(written.on_conflict_do_update(index_elements=["id"], set_={"revoked_at": first}))

    def commit(self) -> None:
        if self._file is not None:
            self._file.check()
        self.connection.commit()

    def _insert(self, table: Table) -> Any:
        """Return an insert that may say what to do if the row is there, which each kind of database has of its own."""
        return (sqlite if self.connection.dialect.name == "sqlite" else postgresql).insert(table)


class SqlDatabase(Database):
    """SQLite or PostgreSQL. The first two arguments are those of `open_database`.

    A transaction waits for a free connection for at most `pool_timeout` seconds.
    """

    def __init__(self, address: str, busy_timeout: float = 5.0, pool_timeout: float = 30.0) -> None:
        self._url = parse(address)
        self.name = self._url.get_backend_name()
        wait = round(busy_timeout * 1000)
        self._file = _DatabaseFile(str(self._url.database)) if self.name == "sqlite" else None
        check = None if self._file is None else self._file.check
        # Two pools, so that a long export never keeps a decision waiting for a connection.
        pool = {"pool_timeout": pool_timeout}
        self._reader = make_engine(self._url, "REPEATABLE READ", wait, check, pool_size=4, max_overflow=8, **pool)
        self._writer = make_engine(self._url, "READ COMMITTED", wait, check, pool_size=2, max_overflow=6, **pool)
        # SQLite lets one write at a time, and those who wait ask again after pauses. Threads can do better.
        self._turn = FairLock() if self.name == "sqlite" else None
        self._checkpoints = None if self._turn is None else checkpoints.Checkpoints(self._writer, self._turn)
        self._patience = busy_timeout

    def migrate(self) -> bool:
        """Bring the schema up to date, and tell whether there was anything to do."""
        return migrate.migrate(self)

    @contextmanager
    def reading(self) -> Iterator[_Reading]:
        """Begin a transaction that reads."""
        with _begun(self._reader, "BEGIN") as connection:
            yield _Reading(connection)

    @contextmanager
    def writing(self, *, aside: bool = False) -> Iterator[_Writing]:
        """Begin a transaction that writes."""
        if self._turn is not None and not self._turn.acquire(self._patience, first=not aside):
            raise busy()
        try:
            with _begun(self._writer, _LOCKED) as connection:
                writing = _Writing(connection, self._file)
                yield writing
                if self._checkpoints is not None:
                    self._checkpoints.pages += _PAGES_PER_COMMIT + writing.size // 4096
                    if self._checkpoints.pages >= checkpoints.MOST:
                        self._checkpoints.begin()
        finally:
            if self._turn is not None:
                self._turn.release()

    @contextmanager
    def migrating(self) -> Iterator[Connection]:
        """Open a transaction that no other process migrates during, and commit it."""
        engine = make_engine(self._url, "READ COMMITTED", 600_000, poolclass=NullPool)
        with _begun(engine, _LOCKED) as connection:
            if self.name != "sqlite":
                connection.exec_driver_sql(f"SELECT pg_advisory_xact_lock({_MIGRATION_LOCK})")
            yield connection
            connection.commit()

    def close(self) -> None:
        """Close all connections, once the transactions that other threads have begun are over."""
        if self._checkpoints is not None:
            self._checkpoints.close()
        # A connection that came back after `dispose` would stay open until it is collected as garbage.
        end = time.monotonic() + self._patience
        while (_is_used(self._reader) or _is_used(self._writer)) and time.monotonic() < end:
            time.sleep(0.01)
        self._reader.dispose()
        self._writer.dispose()


def _is_used(engine: Engine) -> bool:
    """Tell whether a transaction has a connection of this engine."""
    return isinstance(engine.pool, QueuePool) and engine.pool.checkedout() > 0


@contextmanager
def _begun(engine: Engine, how: str) -> Iterator[Connection]:
    """Begin a transaction, on SQLite in these words; what the database raises becomes what the service replies."""
    try:
        with engine.connect() as connection:
            connection.begin()
            if connection.dialect.name == "sqlite":
                driver_of(connection).execute(how).close()
            yield connection
    except (DatabaseError, InterfaceError, sqlite3.Error, PoolTimeoutError) as error:
        if isinstance(error, IntegrityError | ProgrammingError | DataError):  # mistakes of ours
            raise
        raise explain(error) from error


@contextmanager
def _taken() -> Iterator[None]:
    try:
        yield
    except IntegrityError as error:
        raise TakenError(str(error.orig)) from error


def _of(name: BlobName) -> tuple[ColumnElement[bool], ...]:
    """Return what all blobs of a kind, an owner and a number have in common."""
    return blobs.c.owner == name.owner, blobs.c.kind == int(name.kind), blobs.c.number == name.number


def _stored_bytes(event: Event) -> int:
    """Return how many bytes an event takes, about."""
    return _ROW_BYTES + size_of(event) + len(event.context or "") + len(event.key or "")


def _read(found: CursorResult[Any]) -> list[Event]:
    # As the driver has them: rows of SQLAlchemy would take as long again, and a replay reads a million.
    rows = found.cursor.fetchall()
    found.close()
    return _events(rows)


def _events(rows: Sequence[Any]) -> list[Event]:
    return [Event(_KINDS[row[0]], *row[1:]) for row in rows]
