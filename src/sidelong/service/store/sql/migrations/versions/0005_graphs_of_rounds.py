"""The graphs of an experiment's rounds are found without reading its journal."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"


def upgrade() -> None:
    """Add an index."""
    named = sa.text("graph IS NOT NULL")
    op.create_index("events_by_graph", "events", ["experiment", "graph"], sqlite_where=named, postgresql_where=named)
