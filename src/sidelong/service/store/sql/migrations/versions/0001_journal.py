"""The journal: experiments, their graphs, events and snapshots."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None


def upgrade() -> None:
    """Make the tables."""
    op.create_table(
        "experiments",
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("key", sa.String(16), nullable=False, unique=True),
        sa.Column("name", sa.String(64), nullable=False, unique=True),
        sa.Column("spec", sa.Text, nullable=False),
        sa.Column("head", sa.BigInteger, nullable=False),
    )
    op.create_table(
        "graphs",
        sa.Column("id", sa.String(32), primary_key=True),
        sa.Column("data", sa.LargeBinary, nullable=False),
    )
    op.create_table(
        "events",
        sa.Column("experiment", sa.Integer, sa.ForeignKey("experiments.id"), primary_key=True),
        sa.Column("seq", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column("kind", sa.SmallInteger, nullable=False),
        sa.Column("round", sa.BigInteger, nullable=False),
        sa.Column("slot", sa.SmallInteger, nullable=False),
        sa.Column("at", sa.BigInteger, nullable=False),
        sa.Column("clock", sa.BigInteger, nullable=False),
        sa.Column("arm", sa.Integer),
        sa.Column("probability", sa.Double),
        sa.Column("graph", sa.String(32), sa.ForeignKey("graphs.id")),
        sa.Column("key", sa.String(200)),
        sa.Column("context", sa.Text),
        sa.Column("losses", sa.LargeBinary),
        sa.Column("observe", sa.LargeBinary),
        sa.Column("chain", sa.LargeBinary(16), nullable=False),
        sa.UniqueConstraint("experiment", "round", "slot"),
    )
    given = sa.text("key IS NOT NULL")
    op.create_index(
        "events_by_key", "events", ["experiment", "key"], unique=True, sqlite_where=given, postgresql_where=given
    )
    op.create_table(
        "snapshots",
        sa.Column("experiment", sa.Integer, sa.ForeignKey("experiments.id"), primary_key=True),
        sa.Column("seq", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column("chain", sa.LargeBinary(16), nullable=False),
        sa.Column("data", sa.LargeBinary, nullable=False),
    )
