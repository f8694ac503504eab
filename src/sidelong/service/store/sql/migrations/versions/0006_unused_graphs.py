"""Graphs that nothing names are found, and forgotten once they are old."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"


def upgrade() -> None:
    """Add a time and two indices; graphs that are there count as kept now."""
    op.add_column("graphs", sa.Column("kept_at", sa.BigInteger, nullable=False, server_default="0"))
    op.execute("UPDATE graphs SET kept_at = (SELECT coalesce(max(now), 0) FROM clock)")
    op.create_index("graphs_by_age", "graphs", ["kept_at", "id"])
    named = sa.text("graph IS NOT NULL")
    op.create_index("events_naming_graph", "events", ["graph"], sqlite_where=named, postgresql_where=named)
