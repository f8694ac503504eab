"""The two databases, behind one type: SQLite in a file of its own, and PostgreSQL.

SQLite writes ahead (WAL), so that readers and one writer do not wait for each other, and flushes every commit to the
disk. A transaction that writes takes the lock at once: one that asked for it halfway would fail instead of waiting.
"""

from __future__ import annotations

import sqlite3
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sqlalchemy import URL, create_engine, event, make_url
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.exc import (
    ArgumentError,
    DatabaseError,
    DataError,
    IntegrityError,
    InterfaceError,
    ProgrammingError,
)
from sqlalchemy.exc import TimeoutError as PoolTimeoutError
from sqlalchemy.pool import NullPool, QueuePool

from sidelong.errors import ServiceError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from sqlalchemy import Connection, CursorResult, Engine, Table

__all__ = ["Database", "Statement", "explain", "insert_into"]

_MIGRATION_LOCK = 0x51DE1046  # of PostgreSQL; any number, as long as it is always the same


class Statement:
    """A statement that is turned into SQL once for each kind of database, and not anew each time it is run."""

    def __init__(self, construct: Any, columns: list[str] | None = None) -> None:
        self._construct = construct
        self._columns = columns
        self._compiled: dict[str, Any] = {}

    def run(self, connection: Connection, *rows: Mapping[str, Any]) -> CursorResult[Any]:
        """Run it for each of these parameters; the values go to the driver as they are."""
        dialect = connection.dialect
        compiled = self._compiled.get(dialect.name)
        if compiled is None:
            compiled = self._construct.compile(dialect=dialect, column_keys=self._columns)
            self._compiled[dialect.name] = compiled
        given: Any = rows
        if compiled.positional:
            given = [tuple(map(row.__getitem__, compiled.positiontup)) for row in rows]
        return connection.exec_driver_sql(compiled.string, given[0] if len(rows) == 1 else list(given))


def insert_into(table: Table, connection: Connection) -> Any:
    """Return an insert that may say what to do if the row is there, which each kind of database has of its own."""
    return (sqlite if connection.dialect.name == "sqlite" else postgresql).insert(table)


class Database:
    """Where everything is kept.

    Args:
        address: ``sqlite:///path``, ``postgresql://user@host/name``, or the path of a file.
        busy_timeout: for how many seconds to wait for another process that writes.
    """

    def __init__(self, address: str, busy_timeout: float = 5.0) -> None:
        self.url = _parse(address)
        self.is_sqlite = self.url.get_backend_name() == "sqlite"
        self._wait = round(busy_timeout * 1000)
        # Two pools, so that a long export never keeps a decision waiting for a connection.
        self._reader = self._engine("BEGIN", pool_size=4, max_overflow=8)
        self._writer = self._engine("BEGIN IMMEDIATE", pool_size=2, max_overflow=2)

    @property
    def name(self) -> str:
        """The kind of the database."""
        return "sqlite" if self.is_sqlite else "postgresql"

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """Open a transaction that sees one state of the database."""
        with _explained(), self._reader.connect() as connection:
            yield connection

    @contextmanager
    def writing(self) -> Iterator[Connection]:
        """Open a transaction that writes. Nothing is kept but what `connection.commit()` has put on the disk."""
        with _explained(), self._writer.connect() as connection:
            connection.begin()  # takes the lock of SQLite now, before any other lock
            yield connection

    @contextmanager
    def migrating(self) -> Iterator[Connection]:
        """Open a transaction that no other process migrates during, and commit it."""
        engine = self._engine("BEGIN IMMEDIATE", wait=600_000, poolclass=NullPool)
        with _explained(), engine.begin() as connection:
            if not self.is_sqlite:
                connection.exec_driver_sql(f"SELECT pg_advisory_xact_lock({_MIGRATION_LOCK})")
            yield connection

    def close(self) -> None:
        """Close all connections."""
        self._reader.dispose()
        self._writer.dispose()

    def _engine(self, begin: str, wait: int = 0, **pool: Any) -> Engine:
        pool = {"poolclass": QueuePool, **pool}
        wait = wait or self._wait
        if not self.is_sqlite:
            options = f"-c lock_timeout={wait} -c statement_timeout={max(wait, 60_000)}"
            isolation = "REPEATABLE READ" if begin == "BEGIN" else "READ COMMITTED"
            return create_engine(
                self.url,
                connect_args={"options": options, "connect_timeout": 5},
                isolation_level=isolation,
                pool_pre_ping=True,
                hide_parameters=True,
                **pool,
            )
        arguments = {"timeout": wait / 1000, "check_same_thread": False}
        engine = create_engine(self.url, connect_args=arguments, hide_parameters=True, **pool)

        @event.listens_for(engine, "connect")
        def prepare(connection: sqlite3.Connection, _: object) -> None:
            connection.isolation_level = None  # Python begins no transaction of its own
            _write_ahead(connection, wait / 1000)
            for pragma in ("synchronous=FULL", "foreign_keys=ON"):
                connection.execute(f"PRAGMA {pragma}").close()

        @event.listens_for(engine, "begin")
        def start(connection: Connection) -> None:
            connection.connection.driver_connection.execute(begin)  # type: ignore[union-attr]

        return engine


def _write_ahead(connection: sqlite3.Connection, patience: float) -> None:
    """Turn on the write-ahead log; SQLite does not wait for its lock, so this does."""
    end = time.monotonic() + patience
    while connection.execute("PRAGMA journal_mode").fetchone()[0] != "wal":
        try:
            connection.execute("PRAGMA journal_mode=WAL").close()
        except sqlite3.OperationalError:
            if time.monotonic() > end:
                raise
            time.sleep(0.01)


def _parse(address: str) -> URL:
    try:
        url = make_url(address) if "://" in address else URL.create("sqlite", database=address)
    except ArgumentError:
        url = None
    names = {"sqlite": "sqlite+pysqlite", "postgresql": "postgresql+psycopg", "postgres": "postgresql+psycopg"}
    driver = url and names.get(url.drivername.partition("+")[0])
    if not url or not driver:
        shown = address.rpartition("@")[2]  # without a password
        raise ServiceError(f"The database is sqlite:///FILE or postgresql://USER@HOST/NAME, not {shown!r}.")
    if driver == "sqlite+pysqlite":
        if url.database in {None, "", ":memory:"}:
            raise ServiceError("The database must be a file, such as sqlite:///sidelong.db: memory does not last.")
        folder = Path(str(url.database)).resolve().parent
        if not folder.is_dir():
            raise ServiceError(f"The folder of the database, {folder}, does not exist. Make it first.")
    return url.set(drivername=driver)


@contextmanager
def _explained() -> Iterator[None]:
    """Turn what a database raises into what the service replies."""
    try:
        yield
    except (DatabaseError, InterfaceError, sqlite3.Error, PoolTimeoutError) as error:
        if isinstance(error, IntegrityError | ProgrammingError | DataError):  # mistakes of ours
            raise
        raise explain(error) from error


def explain(error: Exception) -> ServiceError:
    """Return what to reply to an error of the database."""
    cause = getattr(error, "orig", error)
    text = str(cause).strip().partition("\n")[0]
    state = getattr(cause, "sqlstate", None) or ""
    code = getattr(cause, "sqlite_errorcode", 0) & 0xFF
    if code == sqlite3.SQLITE_FULL or state == "53100" or "No space left" in text:
        return ServiceError(
            "The disk of the database is full. Nothing was stored; reads go on. Send the request again later.",
            status=507,
            code="disk_full",
            retry_after=5.0,
        )
    if isinstance(error, PoolTimeoutError):
        return ServiceError(
            "Too many requests read the database at once. Send the request again.",
            status=503,
            code="busy",
            retry_after=1.0,
        )
    if code in {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED} or state in {"55P03", "40001", "40P01", "57014"}:
        return ServiceError(
            "Another process holds the lock of the database. Nothing was stored. Send the request again.",
            status=503,
            code="busy",
            retry_after=1.0,
        )
    if code in {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB}:
        return ServiceError(f"The database file is damaged or is no SQLite file: {text}.", status=503, code="refused")
    return ServiceError(
        f"The database does not answer: {text}.",
        status=503,
        code="unavailable",
        retry_after=2.0,
    )
