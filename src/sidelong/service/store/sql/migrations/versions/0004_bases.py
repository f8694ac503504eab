"""The states that newer versions of learners went on from."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"


def upgrade() -> None:
    """Add a table."""
    op.create_table(
        "bases",
        sa.Column("experiment", sa.Integer, sa.ForeignKey("experiments.id"), primary_key=True),
        sa.Column("seq", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column("data", sa.LargeBinary, nullable=False),
    )
