"""What Alembic runs: the steps, in the transaction that `sidelong.service.store.migrate` has opened under its lock."""

from __future__ import annotations

from alembic import context

from sidelong.service.store.schema import metadata

context.configure(connection=context.config.attributes["connection"], target_metadata=metadata)
context.run_migrations()
