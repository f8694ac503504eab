"""Large graphs are written in parts."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"


def upgrade() -> None:
    """Add a table, and how many parts each graph has; those that are there have none."""
    op.add_column("graphs", sa.Column("parts", sa.Integer, nullable=False, server_default="0"))
    op.create_table(
        "graph_parts",
        sa.Column("graph", sa.String(32), primary_key=True),
        sa.Column("number", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("kept_at", sa.BigInteger, nullable=False),
        sa.Column("data", sa.LargeBinary, nullable=False),
    )
    op.create_index("graph_parts_by_age", "graph_parts", ["kept_at", "graph", "number"])
