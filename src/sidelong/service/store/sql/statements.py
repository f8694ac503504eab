"""Statements that run again and again: turned into SQL once, and given to the driver itself.

What SQLAlchemy does around a statement takes several times as long as a short one takes. A batch of one request runs
five of them, and its client waits for all.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from sqlalchemy.exc import DBAPIError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from sqlalchemy import Connection, Dialect, Table

#: Rows of one insertion, a power of two. Each has 13 values, and old SQLite takes 999 of them.
_MOST = 64


class PreparedStatement:
    """A statement that is turned into SQL once for each kind of database, and not anew each time it is run.

    The values go to the driver, and come from there, as they are.
    """

    def __init__(self, construct: Any) -> None:
        self._construct = construct
        self._compiled: dict[str, Any] = {}

    def rows(self, connection: Connection, **values: Any) -> list[tuple[Any, ...]]:
        """Return all rows that it finds."""
        cursor = self._run(connection, values)
        found: list[tuple[Any, ...]] = cursor.fetchall()
        cursor.close()
        return found

    def first(self, connection: Connection, **values: Any) -> tuple[Any, ...] | None:
        """Return the first row that it finds."""
        cursor = self._run(connection, values)
        found: tuple[Any, ...] | None = cursor.fetchone()
        cursor.close()
        return found

    def changed(self, connection: Connection, **values: Any) -> int:
        """Return how many rows it has changed."""
        cursor = self._run(connection, values)
        count: int = cursor.rowcount
        cursor.close()
        return count

    def _run(self, connection: Connection, values: dict[str, Any]) -> Any:
        dialect = connection.dialect
        compiled = self._compiled.get(dialect.name)
        if compiled is None:
            compiled = self._compiled[dialect.name] = self._construct.compile(dialect=dialect)
        given = [values[name] for name in compiled.positiontup] if compiled.positional else values
        return _execute(connection, compiled.string, given)


class Insertion:
    """Rows of a table, written at once, as far as the driver lets them.

    SQLite's lets go of Python at each statement, and may wait to go on while other threads have it: several rows are
    one statement. PostgreSQL's sends rows without waiting in between, and would read a long statement anew each time.
    """

    def __init__(self, table: Table, columns: Sequence[str]) -> None:
        self._table = table
        self._columns = columns
        self._texts: dict[tuple[str, int], str] = {}

    def run(self, connection: Connection, rows: Sequence[tuple[Any, ...]]) -> None:
        """Write rows that have a value for each column."""
        if connection.dialect.name != "sqlite":
            with _explained(connection):
                driver_of(connection).cursor().executemany(self._text(connection.dialect, 1), rows)
            return
        first = 0
        while first < len(rows):
            # Powers of two, so that few texts are ever made, by us and by whoever remembers what they mean.
            size = min(1 << ((len(rows) - first).bit_length() - 1), _MOST)
            values = [value for row in rows[first : first + size] for value in row]
            _execute(connection, self._text(connection.dialect, size), values).close()
            first += size

    def _text(self, dialect: Dialect, size: int) -> str:
        text = self._texts.get((dialect.name, size))
        if text is None:
            quoted = dialect.identifier_preparer.quote
            mark = "?" if dialect.paramstyle == "qmark" else "%s"
            row = f"({', '.join([mark] * len(self._columns))})"
            columns = ", ".join(map(quoted, self._columns))
            text = f"INSERT INTO {quoted(self._table.name)} ({columns}) VALUES {', '.join([row] * size)}"  # noqa: S608
            self._texts[dialect.name, size] = text
        return text


def driver_of(connection: Connection) -> Any:
    """Return the driver's own connection."""
    return connection.connection.driver_connection


def _execute(connection: Connection, text: str, values: Any) -> Any:
    """Run SQL, and return the driver's cursor."""
    with _explained(connection):
        return driver_of(connection).execute(text, values)


@contextmanager
def _explained(connection: Connection) -> Iterator[None]:
    """Let errors of the driver become those of SQLAlchemy, which forgets a connection that was lost.

    The values that were sent are left out.
    """
    dialect = connection.dialect
    driver = dialect.loaded_dbapi
    try:
        yield
    except driver.Error as error:
        if dialect.is_disconnect(error, driver_of(connection), None):
            connection.invalidate(error)
        raise DBAPIError.instance(None, None, error, driver.Error, hide_parameters=True) from error
