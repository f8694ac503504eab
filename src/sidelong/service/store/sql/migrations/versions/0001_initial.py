"""The first schema: experiments with their journals, blobs, tokens and the service's own clock."""

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
        sa.Column("name", sa.String(64), nullable=False),
        sa.Column("spec", sa.Text, nullable=False),
        sa.Column("graph", sa.String(32)),
        sa.Column("head", sa.BigInteger, nullable=False),
        sa.Column("size", sa.BigInteger, nullable=False, server_default="0"),
        sa.Column("cut_seq", sa.BigInteger, nullable=False, server_default="0"),
        sa.Column("cut_round", sa.BigInteger, nullable=False, server_default="0"),
        sa.Column("cut_chain", sa.LargeBinary(16)),
        sa.Column("cut_kept", sa.LargeBinary(16)),
        sa.Column("state", sa.String(16), nullable=False, server_default="running"),
        sa.Column("changed_at", sa.BigInteger),
        sa.Column("changed_by", sa.String(64)),
    )
    kept = sa.text("state NOT IN ('deleted', 'gone')")
    op.create_index(
        "experiments_by_name", "experiments", ["name"], unique=True, sqlite_where=kept, postgresql_where=kept
    )
    op.create_table(
        "blobs",
        sa.Column("owner", sa.String(32), primary_key=True),
        sa.Column("kind", sa.SmallInteger, primary_key=True, autoincrement=False),
        sa.Column("number", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("seq", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column("chunk", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("is_last", sa.Boolean, nullable=False),
        sa.Column("kept_at", sa.BigInteger, nullable=False),
        sa.Column("data", sa.LargeBinary, nullable=False),
    )
    op.create_index("blobs_by_age", "blobs", ["kind", "kept_at", "owner"])
    _create_events()
    op.create_table(
        "cut_keys",
        sa.Column("experiment", sa.Integer, sa.ForeignKey("experiments.id"), primary_key=True),
        sa.Column("key", sa.String(200), primary_key=True),
        sa.Column("clock", sa.BigInteger, nullable=False),
    )
    op.create_index("cut_keys_by_age", "cut_keys", ["experiment", "clock"])
    op.create_table(
        "clock",
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("now", sa.BigInteger, nullable=False),
    )
    op.create_table(
        "tokens",
        sa.Column("id", sa.String(8), primary_key=True),
        sa.Column("name", sa.String(64), nullable=False),
        sa.Column("hash", sa.LargeBinary(32), nullable=False),
        sa.Column("scopes", sa.String(64), nullable=False),
        sa.Column("created_at", sa.BigInteger, nullable=False),
        sa.Column("revoked_at", sa.BigInteger),
        sa.Column("experiment", sa.String(16)),
    )


def _create_events() -> None:
    op.create_table(
        "events",
        sa.Column("experiment", sa.Integer, sa.ForeignKey("experiments.id"), primary_key=True),
        sa.Column("seq", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column("kind", sa.SmallInteger, nullable=False),
        sa.Column("round", sa.BigInteger, nullable=False),
        sa.Column("last", sa.BigInteger, nullable=False),
        sa.Column("slot", sa.SmallInteger, nullable=False),
        sa.Column("at", sa.BigInteger, nullable=False),
        sa.Column("clock", sa.BigInteger, nullable=False),
        sa.Column("graph", sa.String(32)),
        sa.Column("key", sa.String(200)),
        sa.Column("context", sa.Text),
        sa.Column("data", sa.LargeBinary),
        sa.Column("chain", sa.LargeBinary(16), nullable=False),
        sa.UniqueConstraint("experiment", "round", "slot"),
    )
    for name, columns, where, unique in (
        ("events_by_key", ["experiment", "key"], "key IS NOT NULL", True),
        ("events_by_graph", ["experiment", "graph"], "graph IS NOT NULL", False),
        ("events_naming_graph", ["graph"], "graph IS NOT NULL", False),
    ):
        given = sa.text(where)
        op.create_index(name, "events", columns, unique=unique, sqlite_where=given, postgresql_where=given)
