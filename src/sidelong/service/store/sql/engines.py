"""Connections to SQLite and to PostgreSQL, and what their errors mean.

SQLite writes ahead (WAL), so that readers and one writer do not wait for each other, and flushes every commit to the
disk.
"""

from __future__ import annotations

import sqlite3
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sqlalchemy import URL, create_engine, event, make_url
from sqlalchemy.exc import ArgumentError
from sqlalchemy.exc import TimeoutError as PoolTimeoutError
from sqlalchemy.pool import QueuePool

from sidelong.errors import ServiceError

if TYPE_CHECKING:
    from collections.abc import Callable

    from sqlalchemy import Engine

#: What an address begins with, and what SQLAlchemy reaches such a database with.
DRIVERS = {"sqlite": "sqlite+pysqlite", "postgresql": "postgresql+psycopg", "postgres": "postgresql+psycopg"}


def make_engine(url: URL, isolation: str, wait: int, check: Callable[[], None] | None = None, **pool: Any) -> Engine:
    """Return what makes connections, isolated so on PostgreSQL, that wait for a lock as many milliseconds.

    `check` is called before each new connection to SQLite.
    """
    pool = {"poolclass": QueuePool, **pool}
    if url.get_backend_name() != "sqlite":
        limits = {
            "lock_timeout": wait,
            "statement_timeout": max(wait, 60_000),
            # A server that stands still, or has lost its network, gives its locks back.
            "idle_in_transaction_session_timeout": max(2 * wait, 10_000),
            "tcp_keepalives_idle": 10,
            "tcp_keepalives_interval": 5,
            "tcp_keepalives_count": 3,
        }
        keep_alive = {"keepalives": 1, "keepalives_idle": 10, "keepalives_interval": 5, "keepalives_count": 3}
        return create_engine(
            url,
            connect_args={
                "options": " ".join(f"-c {name}={value}" for name, value in limits.items()),
                "connect_timeout": 5,
                **keep_alive,
                **({"tcp_user_timeout": 30_000} if sys.platform == "linux" else {}),
            },
            isolation_level=isolation,
            pool_pre_ping=True,
            hide_parameters=True,
            **pool,
        )
    arguments = {"timeout": wait / 1000, "check_same_thread": False}
    engine = create_engine(url, connect_args=arguments, hide_parameters=True, **pool)

    @event.listens_for(engine, "connect")
    def prepare(connection: sqlite3.Connection, _: object) -> None:
        if check is not None:
            check()
        connection.isolation_level = None  # Python begins no transaction of its own: `SqlDatabase` does
        _write_ahead(connection, wait / 1000)
        # `Checkpoints` does what SQLite would do by itself within a commit, unless that falls far behind.
        for pragma in ("synchronous=FULL", "foreign_keys=ON", "wal_autocheckpoint=16000"):
            connection.execute(f"PRAGMA {pragma}").close()

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


def parse(address: str) -> URL:
    """Return an address with the driver that it is reached with."""
    try:
        url = make_url(address) if "://" in address else URL.create("sqlite", database=address)
    except ArgumentError:
        raise unknown(address) from None
    driver = DRIVERS[url.drivername.partition("+")[0]]
    if driver == DRIVERS["sqlite"]:
        if url.database in {None, "", ":memory:"}:
            raise ServiceError("The database must be a file, such as sqlite:///sidelong.db: memory does not last.")
        folder = Path(str(url.database)).resolve().parent
        if not folder.is_dir():
            raise ServiceError(f"The folder of the database, {folder}, does not exist. Make it first.")
    return url.set(drivername=driver)


def unknown(address: str) -> ServiceError:
    """Return the error for an address that means nothing."""
    shown = address.rpartition("@")[2]  # without a password
    return ServiceError(f"The database is sqlite:///FILE or postgresql://USER@HOST/NAME, not {shown!r}.")


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
        return later("Too many requests read the database at once. Send the request again.")
    if code in {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED} or state in {"55P03", "40001", "40P01", "57014"}:
        return busy()
    if code in {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB}:
        return ServiceError(f"The database file is damaged or is no SQLite file: {text}.", status=503, code="refused")
    return later(f"The database does not answer: {text}.", "unavailable", 2.0)


def busy() -> ServiceError:
    """Return what to reply where another one writes for too long."""
    return later("Another process holds the lock of the database. Nothing was stored. Send the request again.")


def later(text: str, code: str = "busy", after: float = 1.0) -> ServiceError:
    """Return what to reply to a request that may be sent again."""
    return ServiceError(text, status=503, code=code, retry_after=after)
