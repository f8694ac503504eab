"""Bringing a database to the schema of this program, by one process at a time.

A database of an older version is migrated, step by step, in one transaction under a lock: a second process that starts
at the same time waits, and then finds nothing to do. A database of a newer version is refused.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlalchemy import inspect, select

from sidelong._install import NEWER
from sidelong.errors import ServiceError
from sidelong.service.store.sql.schema import metadata, schema

if TYPE_CHECKING:
    from collections.abc import Callable

    from sqlalchemy import Connection

    from sidelong.service.store.sql.database import SqlDatabase

_OURS = {"schema_version", "blobs", "events"}
#: What makes of the tables of each version those of the next one, from version 1 on. A new database has the last.
STEPS: list[Callable[[Connection], None]] = []


def migrate(database: SqlDatabase) -> bool:
    """Bring the database up to date; tell whether there was anything to do."""
    latest = len(STEPS) + 1
    with database.reading() as reading:
        if _version(reading.connection, latest) == latest:
            return False
    with database.migrating() as connection:
        version = _version(connection, latest)
        if version == latest:
            return False
        if version:
            for step in STEPS[version - 1 :]:
                step(connection)
            connection.execute(schema.update().values(version=latest))
        else:
            metadata.create_all(connection)
            connection.execute(schema.insert().values(version=latest))
    return True


def _version(connection: Connection, latest: int) -> int:
    """Return the version of the schema, 0 if there is none yet."""
    tables = set(inspect(connection).get_table_names())
    if not tables:
        return 0
    if not tables >= _OURS:
        raise ServiceError(
            f"The database holds tables of something else ({', '.join(sorted(tables)[:3])}...). "
            f"Give the service a database of its own."
        )
    version: int = connection.execute(select(schema.c.version)).scalar_one()
    if version > latest:
        raise ServiceError(
            f"The database has version {version} of the schema, and this program knows up to {latest}: it is newer. "
            f"{NEWER}"
        )
    return version
