"""What Alembic runs: the steps, in the transaction that `migrate` has opened under its lock."""

from __future__ import annotations

from alembic import context

from sidelong.service.store.sql.schema import metadata

context.configure(connection=context.config.attributes["connection"], target_metadata=metadata)
context.run_migrations()
