"""The kinds of databases, by what their addresses begin with."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sidelong.service.store.sql.database import SqlDatabase
from sidelong.service.store.sql.engines import DRIVERS, unknown

if TYPE_CHECKING:
    from collections.abc import Callable

    from sidelong.service.store.database import Database

#: Makes a database of its address and of the seconds to wait for another process that writes.
KINDS: dict[str, Callable[[str, float], Database]] = dict.fromkeys(DRIVERS, SqlDatabase)


def open_database(address: str, busy_timeout: float = 5.0) -> Database:
    """Open a database, and bring it to what this program writes.

    Args:
        address: ``sqlite:///path``, ``postgresql://user@host/name``, or the path of a file.
        busy_timeout: for how many seconds to wait for another process that writes.
    """
    scheme = address.partition("://")[0].partition("+")[0] if "://" in address else "sqlite"
    if scheme not in KINDS:
        raise unknown(address)
    database = KINDS[scheme](address, busy_timeout)
    try:
        database.migrate()
    except BaseException:
        database.close()
        raise
    return database
