"""The migrations make the tables that the program uses."""

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext

from service.stores import opened
from sidelong.service.store.sql.schema import metadata


@pytest.mark.postgresql
def test_the_migrations_make_the_tables_of_the_schema(database):
    with opened(database) as bench, bench.database.reading() as reading:
        context = MigrationContext.configure(reading.connection, opts={"compare_server_default": True})
        assert compare_metadata(context, metadata) == []
