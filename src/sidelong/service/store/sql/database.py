"""The seam of `sidelong.service.store.database`, over SQLAlchemy, for SQLite and PostgreSQL."""

from __future__ import annotations

import itertools
import json
import sqlite3
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sqlalchemy import and_, bindparam, delete, exists, func, insert, literal_column, select, text, update
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.exc import DatabaseError, DataError, IntegrityError, InterfaceError, ProgrammingError
from sqlalchemy.exc import TimeoutError as PoolTimeoutError
from sqlalchemy.pool import NullPool

from sidelong.service.store.database import (
    Database,
    Deletion,
    Identity,
    Listed,
    Reading,
    Snapshot,
    TakenError,
    Token,
    Writing,
)
from sidelong.service.store.experiment import Turnstile
from sidelong.service.store.journal import SLOTS, Event, Kind, size_of
from sidelong.service.store.sql import checkpoints, migrate
from sidelong.service.store.sql.engines import busy, explain, later, make_engine, parse
from sidelong.service.store.sql.schema import (
    blocks,
    clock,
    events,
    experiments,
    graph_parts,
    graphs,
    initial_states,
    parts,
    snapshots,
    tokens,
)
from sidelong.service.store.sql.statements import Insertion, PreparedStatement, driver_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from sqlalchemy import Connection, CursorResult, Engine, Table

_MIGRATION_LOCK = 0x51DE1046  # of PostgreSQL; any number, as long as it is always the same
_KINDS = {int(kind): kind for kind in Kind}  # which is quicker than to ask the enumeration, a million times
_KEPT = 2  # snapshots of an experiment
_PAGES_PER_COMMIT = 6  # of SQLite, beside large values, about
_ROW_BYTES = 300  # of an event and its places in indices, about
#: So that SQLite takes its lock now, before any other: a transaction that asked for it halfway would fail, not wait.
_LOCKED = "BEGIN IMMEDIATE"


_OF: Any = bindparam("of")
_DELETED, _GONE = "deleted", "gone"
_KEPT_ONES = experiments.c.state.not_in([literal_column(f"'{state}'") for state in (_DELETED, _GONE)])
_FIND = {
    "name": PreparedStatement(select(experiments).where(experiments.c.name == _OF)),  # which deleted ones have not
    "key": PreparedStatement(select(experiments).where(experiments.c.key == _OF, _KEPT_ONES)),
}
_LIST = PreparedStatement(select(*[experiments.c[name] for name in Listed._fields]).where(_KEPT_ONES))
_DELETIONS = (
    select(experiments.c.id, experiments.c.spec, experiments.c.changed_at, experiments.c.changed_by)
    .where(~_KEPT_ONES)
    .order_by(experiments.c.changed_at, experiments.c.id)
)
_LEFT = select(experiments.c.id).where(experiments.c.state == _DELETED)
_READ = select(*[events.c[name] for name in Event._fields]).where(events.c.experiment == _OF)
_EVENTS = _READ.where(events.c.seq > bindparam("after")).order_by(events.c.seq).limit(bindparam("most"))
_SIZES = (
    select(func.coalesce(func.length(events.c.losses), 0) + func.coalesce(func.length(events.c.observe), 0))
    .where(events.c.experiment == _OF, events.c.seq > bindparam("after"))
    .order_by(events.c.seq)
    .limit(bindparam("most"))
)
_SPANNING = (
    _READ.where(
        events.c.slot == bindparam("slot"),
        events.c.round < bindparam("before"),
        events.c.round <= bindparam("number"),
        events.c.round + events.c.arm >= bindparam("number"),
    )
    .order_by(events.c.round.desc())
    .limit(1)
)
_ROUNDS = PreparedStatement(
    _READ.where(events.c.round.between(bindparam("first"), bindparam("last"))).order_by(events.c.round, events.c.slot)
)
_KEYED = {  # one text for any number of keys
    "sqlite": PreparedStatement(_READ.where(text("events.key IN (SELECT value FROM json_each(:keys))"))),
    "postgresql": PreparedStatement(_READ.where(text("events.key = ANY(:keys)"))),
}
_SNAPSHOT = (
    select(snapshots.c.seq, snapshots.c.chain, snapshots.c.data)
    .where(snapshots.c.experiment == _OF, snapshots.c.seq < bindparam("before"))
    .order_by(snapshots.c.seq.desc())
    .limit(1)
)
_SAVED = select(snapshots.c.seq).where(snapshots.c.experiment == _OF).order_by(snapshots.c.seq.desc())
_FORGET = delete(snapshots).where(snapshots.c.experiment == _OF, snapshots.c.seq < bindparam("oldest"))
_PARTS = select(parts.c.data).where(parts.c.experiment == _OF, parts.c.seq == bindparam("seq")).order_by(parts.c.number)
_LEFT_OVER = (
    select(parts.c.seq, parts.c.number)
    .where(parts.c.experiment == _OF, parts.c.seq.not_in(select(snapshots.c.seq).where(snapshots.c.experiment == _OF)))
    .limit(bindparam("most"))
)
_FORGET_PART = delete(parts).where(
    parts.c.experiment == _OF, parts.c.seq == bindparam("of_seq"), parts.c.number == bindparam("of_number")
)
_BLOCK = (
    select(blocks.c.data)
    .where(blocks.c.experiment == _OF, blocks.c.number == bindparam("number"), blocks.c.seq <= bindparam("before"))
    .order_by(blocks.c.seq.desc())
    .limit(1)
)
_NEWER = blocks.alias()
_OLDEST = select(func.min(snapshots.c.seq)).where(snapshots.c.experiment == _OF).scalar_subquery()
_UNNEEDED = (
    select(blocks.c.number, blocks.c.seq)
    .where(
        blocks.c.experiment == _OF,
        exists().where(
            _NEWER.c.experiment == blocks.c.experiment,
            _NEWER.c.number == blocks.c.number,
            _NEWER.c.seq > blocks.c.seq,
            _NEWER.c.seq <= _OLDEST,
        ),
    )
    .limit(bindparam("most"))
)
_FORGET_BLOCK = delete(blocks).where(
    blocks.c.experiment == _OF, blocks.c.number == bindparam("of_number"), blocks.c.seq == bindparam("of_seq")
)
_GRAPH = PreparedStatement(select(graphs.c.data, graphs.c.parts).where(graphs.c.id == _OF))
_GRAPH_PARTS = PreparedStatement(
    select(graph_parts.c.data)
    .where(graph_parts.c.graph == _OF, graph_parts.c.number < bindparam("parts"))
    .order_by(graph_parts.c.number)
)
_COUNT_PARTS = PreparedStatement(
    select(func.count()).where(graph_parts.c.graph == _OF, graph_parts.c.number < bindparam("parts"))
)
_IS_PART = and_(graphs.c.id == graph_parts.c.graph, graphs.c.parts > graph_parts.c.number)
_OLD_PART = graph_parts.c.kept_at < bindparam("before")
_LEFT_OVER_OF_GRAPHS = (
    select(graph_parts.c.graph, graph_parts.c.number)
    .where(_OLD_PART, ~exists().where(_IS_PART))
    .order_by(graph_parts.c.kept_at)
    .limit(bindparam("most"))
)
_FORGET_GRAPH_PART = delete(graph_parts).where(  # unless it was written anew in the meantime
    graph_parts.c.graph == bindparam("of_graph"), graph_parts.c.number == bindparam("of_number"), _OLD_PART
)
_UNUSED = (
    select(graphs.c.id)
    .where(graphs.c.kept_at < bindparam("before"), ~exists().where(events.c.graph == graphs.c.id))
    .order_by(graphs.c.kept_at)
    .limit(bindparam("most"))
)
_HOLD = PreparedStatement(select(graphs.c.id).where(graphs.c.id == _OF).with_for_update(read=True, key_share=True))
_SPECS = select(experiments.c.spec)
_NAMED = select(events.c.graph).where(events.c.experiment == _OF, events.c.graph.is_not(None)).distinct()
_GRAPH_BYTES = [
    select(func.sum(func.length(graphs.c.data))).where(graphs.c.id.in_(_NAMED)),
    select(func.sum(func.length(graph_parts.c.data))).where(graphs.c.id.in_(_NAMED), _IS_PART),
]
_TOKENS = select(*[tokens.c[name] for name in Token._fields]).order_by(tokens.c.created_at, tokens.c.id)
_HEAD_OF = select(experiments.c.head).where(experiments.c.id == _OF, _KEPT_ONES)
_LOCK = PreparedStatement(_HEAD_OF.with_for_update(key_share=True))
_TRY_LOCK = PreparedStatement(_HEAD_OF.with_for_update(key_share=True, skip_locked=True))
_APPEND = Insertion(events, ["experiment", "slot", *Event._fields])
_HEAD = PreparedStatement(
    update(experiments)
    .where(experiments.c.id == _OF, experiments.c.head == bindparam("old"))
    .values(head=bindparam("new"))
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
        by = _FIND["key" if of.startswith("#") else "name"]
        row = by.first(self.connection, of=of.removeprefix("#"))
        if row is None:
            return None
        return Identity(*row[:4])

    def experiments(self) -> list[Listed]:
        every = [Listed._make(row) for row in _LIST.rows(self.connection)]
        return sorted(every, key=lambda each: each.name)  # a database may sort letters by rules of its own

    def deletions(self) -> list[Deletion]:
        found = self.connection.execute(_DELETIONS)
        return [Deletion(of, json.loads(spec)["name"], at, by) for of, spec, at, by in found]

    def leftovers(self) -> list[int]:
        return list(self.connection.execute(_LEFT).scalars())

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

    def spanning(self, experiment: int, number: int, slot: int, before: int) -> Event | None:
        wanted = {"of": experiment, "number": number, "slot": slot, "before": before}
        return next(iter(_read(self.connection.execute(_SPANNING, wanted))), None)

    def rounds(self, experiment: int, first: int, last: int) -> list[Event]:
        return _events(_ROUNDS.rows(self.connection, of=experiment, first=first, last=last))

    def keyed(self, experiment: int, keys: Sequence[str]) -> list[Event]:
        kind = self.connection.dialect.name
        given = json.dumps(keys) if kind == "sqlite" else keys
        return _events(_KEYED[kind].rows(self.connection, of=experiment, keys=given))

    def snapshot(self, experiment: int, before: int | None = None) -> Snapshot | None:
        wanted = {"of": experiment, "before": 2**63 - 1 if before is None else before}
        row = self.connection.execute(_SNAPSHOT, wanted).first()
        if row is None:
            return None
        first: list[bytes] = list(self.connection.execute(_PARTS, {"of": experiment, "seq": row.seq}).scalars())
        return Snapshot(row.seq, row.chain, b"".join([*first, row.data]) if first else row.data)

    def block(self, experiment: int, number: int, before: int) -> bytes | None:
        wanted = {"of": experiment, "number": number, "before": before}
        data: bytes | None = self.connection.execute(_BLOCK, wanted).scalar()
        return data

    def initial_state(self, experiment: int) -> bytes | None:
        wanted = select(initial_states.c.data).where(initial_states.c.experiment == experiment)
        data: bytes | None = self.connection.execute(wanted).scalar()
        return data

    def graph(self, id_: str) -> bytes | None:
        row = _GRAPH.first(self.connection, of=id_)
        if row is None:
            return None
        data, count = row
        first = _GRAPH_PARTS.rows(self.connection, of=id_, parts=count) if count else []
        return b"".join([*(part for (part,) in first), data]) if first else data

    def graph_bytes(self, experiment: int) -> int:
        return sum(int(self.connection.execute(each, {"of": experiment}).scalar() or 0) for each in _GRAPH_BYTES)

    def names_graph(self, experiment: int, id_: str) -> bool:
        spec = self.connection.execute(select(experiments.c.spec).where(experiments.c.id == experiment)).scalar()
        if json.loads(spec or "{}").get("graph") == id_:
            return True
        named = select(events.c.seq).where(events.c.experiment == experiment, events.c.graph == id_).limit(1)
        return self.connection.execute(named).first() is not None

    def unused_graphs(self, before: int, most: int) -> list[str]:
        try:
            used = self._graphs_of_experiments()
        except ValueError:  # the spec of an experiment is damaged, and it may need any of them
            return []
        found = self.connection.execute(_UNUSED, {"before": before, "most": most + len(used)}).scalars()
        return [id_ for id_ in found if id_ not in used][:most]

    def _graphs_of_experiments(self) -> set[str]:
        return {json.loads(spec).get("graph") for spec in self.connection.execute(_SPECS).scalars()}

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

    def create(self, identity: Identity) -> int:
        row = {"key": identity.key, "name": identity.name, "spec": identity.document, "head": 0}
        with _taken():
            made = self.connection.execute(insert(experiments).values(row)).inserted_primary_key
        return int(made[0])  # type: ignore[index]

    def relist(self, experiment: int, changes: Mapping[str, Any]) -> None:
        with _taken():
            self.connection.execute(update(experiments).where(experiments.c.id == experiment).values(**changes))

    def delete(self, experiment: int, deletion: Deletion) -> None:
        key = self.connection.execute(select(experiments.c.key).where(experiments.c.id == experiment)).scalar_one()
        about = {"state": _DELETED, "changed_at": deletion.at, "changed_by": deletion.by}
        self.relist(experiment, {"name": f"#{key}", "spec": json.dumps({"name": deletion.name}), **about})

    def forget_events(self, experiment: int, most: int) -> int:
        for table in (parts, blocks, snapshots, initial_states):
            gone = self.connection.execute(delete(table).where(table.c.experiment == experiment)).rowcount
            if gone:
                return gone
        last = select(events.c.seq).where(events.c.experiment == experiment).order_by(events.c.seq.desc()).limit(most)
        some = events.c.seq.in_(last.scalar_subquery())
        gone = self.connection.execute(delete(events).where(events.c.experiment == experiment, some)).rowcount
        if not gone:
            self.relist(experiment, {"state": _GONE})
        return gone

    def append(self, new: Mapping[int, Sequence[Event]]) -> None:
        rows = [(of, SLOTS[event.kind], int(event.kind), *event[1:]) for of, each in new.items() for event in each]
        self.size += _ROW_BYTES * len(rows)
        self.size += sum(len(value) for row in rows for value in row if isinstance(value, bytes))
        with _taken():
            _APPEND.run(self.connection, rows)
        for of, each in new.items():
            if not _HEAD.changed(self.connection, of=of, old=each[0].seq - 1, new=each[-1].seq):
                raise TakenError("The journal has gone on.")

    def save(self, experiment: int, snapshot: Snapshot) -> None:
        row = {"experiment": experiment, **snapshot._asdict()}
        self.size += len(snapshot.data)
        # Over one that was not used, or that another server has written.
        written = self._insert(snapshots).values(row)
        self.connection.execute(written.on_conflict_do_update(index_elements=["experiment", "seq"], set_=row))
        kept = self.connection.execute(_SAVED, {"of": experiment}).scalars().all()
        self.connection.execute(_FORGET, {"of": experiment, "oldest": kept[:_KEPT][-1]})

    def keep_part(self, experiment: int, seq: int, number: int, data: bytes) -> None:
        row = {"experiment": experiment, "seq": seq, "number": number, "data": data}
        self.size += len(data)
        written = self._insert(parts).values(row)
        same = ["experiment", "seq", "number"]
        self.connection.execute(written.on_conflict_do_update(index_elements=same, set_=row))

    def forget_parts(self, experiment: int, most: int) -> int:
        found = self.connection.execute(_LEFT_OVER, {"of": experiment, "most": most}).all()
        for seq, number in found:
            self.connection.execute(_FORGET_PART, {"of": experiment, "of_seq": seq, "of_number": number})
        return len(found)

    def keep_block(self, experiment: int, number: int, seq: int, data: bytes) -> None:
        row = {"experiment": experiment, "number": number, "seq": seq, "data": data}
        self.size += len(data)
        written = self._insert(blocks).values(row)
        same = ["experiment", "number", "seq"]
        self.connection.execute(written.on_conflict_do_update(index_elements=same, set_=row))

    def forget_blocks(self, experiment: int, most: int) -> int:
        found = self.connection.execute(_UNNEEDED, {"of": experiment, "most": most}).all()
        for number, seq in found:
            self.connection.execute(_FORGET_BLOCK, {"of": experiment, "of_number": number, "of_seq": seq})
        return len(found)

    def keep_initial_state(self, experiment: int, data: bytes) -> None:
        with _taken():
            self.connection.execute(insert(initial_states).values(experiment=experiment, data=data))

    def keep_graph(self, id_: str, data: bytes, now: int, parts: int = 0) -> bool:
        again = update(graphs).where(graphs.c.id == id_).values(kept_at=now)
        if self.connection.execute(again).rowcount:
            return False
        row = {"id": id_, "data": data, "kept_at": now, "parts": parts}
        self.size += len(data)
        written = self._insert(graphs).values(row).on_conflict_do_nothing()
        new = self.connection.execute(written.returning(graphs.c.id)).first() is not None
        # Counted behind the insertion: from here on nobody forgets one of them.
        if new and parts and _COUNT_PARTS.first(self.connection, of=id_, parts=parts) != (parts,):
            raise TakenError(f"Parts of graph {id_} were forgotten.")
        return new

    def keep_graph_part(self, id_: str, number: int, data: bytes, now: int) -> None:
        row = {"graph": id_, "number": number, "data": data, "kept_at": now}
        self.size += len(data)
        written = self._insert(graph_parts).values(row)
        self.connection.execute(written.on_conflict_do_update(index_elements=["graph", "number"], set_=row))

    def forget_graph_parts(self, before: int, most: int) -> int:
        found = self.connection.execute(_LEFT_OVER_OF_GRAPHS, {"before": before, "most": most}).all()
        for graph, number in found:
            self.connection.execute(_FORGET_GRAPH_PART, {"of_graph": graph, "of_number": number, "before": before})
        return len(found)

    def hold_graph(self, id_: str) -> bool:
        return _HOLD.first(self.connection, of=id_) is not None

    def forget_graphs(self, ids: Sequence[str], before: int) -> list[str]:
        wanted = graphs.c.id.in_(ids)
        # Locked first: whoever holds one of them names it by now, which the next statement sees.
        self.connection.execute(select(graphs.c.id).where(wanted).order_by(graphs.c.id).with_for_update()).all()
        found = self.connection.execute(_UNUSED.where(wanted), {"before": before, "most": len(ids)}).scalars()
        unused = set(found) - self._graphs_of_experiments()
        self.connection.execute(delete(graphs).where(graphs.c.id.in_(unused)))
        self.connection.execute(delete(graph_parts).where(graph_parts.c.graph.in_(unused)))
        return sorted(unused)

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
        self._turn = Turnstile() if self.name == "sqlite" else None
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
        """Close all connections."""
        if self._checkpoints is not None:
            self._checkpoints.close()
        self._reader.dispose()
        self._writer.dispose()


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


def _read(found: CursorResult[Any]) -> list[Event]:
    # As the driver has them: rows of SQLAlchemy would take as long again, and a replay reads a million.
    rows = found.cursor.fetchall()
    found.close()
    return _events(rows)


def _events(rows: Sequence[Any]) -> list[Event]:
    return [Event(_KINDS[row[0]], *row[1:]) for row in rows]
