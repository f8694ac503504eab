"""Bringing a database to the schema of this program, by one process at a time.

A database of an older version is migrated, step by step, in one transaction under a lock: a second process that starts
at the same time waits, and then finds nothing to do. A database of a newer version is refused.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from sqlalchemy import inspect, text

from sidelong._install import NEWER
from sidelong.errors import ServiceError

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from sidelong.service.store.sql.database import SqlDatabase

_FOLDER = Path(__file__).parent / "migrations"
_OURS = {"alembic_version", "blobs", "events"}  # other programs use Alembic too
LATEST = max(file.name[:4] for file in (_FOLDER / "versions").glob("[0-9]*.py"))


def migrate(database: SqlDatabase) -> bool:
    """Bring the database up to date; tell whether there was anything to do."""
    with database.reading() as reading:
        if _version(reading.connection) == LATEST:  # without loading Alembic, which takes a quarter of a second
            return False
    with database.migrating() as connection:
        if _version(connection) == LATEST:
            return False
        from alembic import command  # noqa: PLC0415
        from alembic.config import Config  # noqa: PLC0415

        config = Config(attributes={"connection": connection})
        config.set_main_option("script_location", str(_FOLDER).replace("%", "%%"))
        config.set_main_option("path_separator", "os")
        command.upgrade(config, "head")
    return True


def _version(connection: Connection) -> str:
    """Return the version of the schema, "" if there is none yet."""
    tables = set(inspect(connection).get_table_names())
    if not tables:
        return ""
    if not tables >= _OURS:
        raise ServiceError(
            f"The database holds tables of something else ({', '.join(sorted(tables)[:3])}...). "
            f"Give the service a database of its own."
        )
    version = str(connection.execute(text("SELECT version_num FROM alembic_version")).scalar() or "")
    if version > LATEST:
        raise ServiceError(
            f"The database has version {version} of the schema, and this program knows up to {LATEST}: it is "
            f"newer. {NEWER}"
        )
    return version
