"""Experiments that are frozen, stopped, archived or deleted, and tokens for a single one."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"


def upgrade() -> None:
    """Add what the list of experiments shows, and whose a token is."""
    op.add_column("experiments", sa.Column("state", sa.String(16), nullable=False, server_default="running"))
    op.add_column("experiments", sa.Column("changed_at", sa.BigInteger))
    op.add_column("experiments", sa.Column("changed_by", sa.String(64)))
    op.add_column("tokens", sa.Column("experiment", sa.String(16)))
