"""The tables. What changes here needs a migration beside the others, in ``migrations/versions``.

``events`` is the journal: it is only ever appended to, and the state of an experiment is what replaying it gives.
Each event has a number of its own within its experiment, and each decision is made once and settled once: the
database itself refuses anything else.
"""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    Column,
    Double,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    SmallInteger,
    String,
    Table,
    Text,
    UniqueConstraint,
    text,
)

metadata = MetaData()

experiments = Table(
    "experiments",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("key", String(16), nullable=False, unique=True),  # what the ids of its decisions begin with
    Column("name", String(64), nullable=False, unique=True),
    Column("spec", Text, nullable=False),  # JSON
    Column("head", BigInteger, nullable=False),  # the number of the last event
    # As the journal says, for the list. The row of a deleted one stays, so that its id is not given again, as "deleted"
    # and then, when there is nothing left to forget, as "gone"; its name is in the spec.
    Column("state", String(16), nullable=False, server_default="running"),
    Column("changed_at", BigInteger),
    Column("changed_by", String(64)),
)

graphs = Table(
    "graphs",
    metadata,
    Column("id", String(32), primary_key=True),
    Column("data", LargeBinary, nullable=False),
    Column("kept_at", BigInteger, nullable=False),  # by the service's own clock
    Column("parts", Integer, nullable=False),  # that come in front of `data`
    Index("graphs_by_age", "kept_at", "id"),  # without reading any data
)

graph_parts = Table(  # of large graphs; those of none were not finished
    "graph_parts",
    metadata,
    Column("graph", String(32), primary_key=True),
    Column("number", Integer, primary_key=True, autoincrement=False),
    Column("kept_at", BigInteger, nullable=False),
    Column("data", LargeBinary, nullable=False),
    Index("graph_parts_by_age", "kept_at", "graph", "number"),  # without reading any data
)

events = Table(
    "events",
    metadata,
    Column("experiment", ForeignKey("experiments.id"), primary_key=True),
    Column("seq", BigInteger, primary_key=True, autoincrement=False),
    Column("kind", SmallInteger, nullable=False),
    Column("round", BigInteger, nullable=False),
    Column("slot", SmallInteger, nullable=False),  # 0: decided, 1: settled, 2: told too late
    Column("at", BigInteger, nullable=False),  # microseconds since 1970, by the wall clock: for people
    Column("clock", BigInteger, nullable=False),  # milliseconds by the service's own clock: for expiry
    Column("arm", Integer),
    Column("probability", Double),
    Column("graph", ForeignKey("graphs.id")),
    Column("key", String(200)),
    Column("context", Text),
    Column("losses", LargeBinary),
    Column("observe", LargeBinary),
    Column("chain", LargeBinary(16), nullable=False),  # a hash of this event and all before
    UniqueConstraint("experiment", "round", "slot"),
    Index(
        "events_by_key",
        "experiment",
        "key",
        unique=True,
        sqlite_where=text("key IS NOT NULL"),
        postgresql_where=text("key IS NOT NULL"),
    ),
    Index(
        "events_by_graph",
        "experiment",
        "graph",
        sqlite_where=text("graph IS NOT NULL"),
        postgresql_where=text("graph IS NOT NULL"),
    ),
    Index(
        "events_naming_graph",
        "graph",
        sqlite_where=text("graph IS NOT NULL"),
        postgresql_where=text("graph IS NOT NULL"),
    ),
)

snapshots = Table(
    "snapshots",
    metadata,
    Column("experiment", ForeignKey("experiments.id"), primary_key=True),
    Column("seq", BigInteger, primary_key=True, autoincrement=False),
    Column("chain", LargeBinary(16), nullable=False),  # that of the event of this number
    Column("data", LargeBinary, nullable=False),
)

parts = Table(  # of large snapshots, in front of what `snapshots` has; those of none were not finished
    "parts",
    metadata,
    Column("experiment", ForeignKey("experiments.id"), primary_key=True),
    Column("seq", BigInteger, primary_key=True, autoincrement=False),
    Column("number", Integer, primary_key=True, autoincrement=False),
    Column("data", LargeBinary, nullable=False),
)

blocks = Table(  # of keys, as each was when it was last kept; see `sidelong.service.store.keyed.blocks`
    "blocks",
    metadata,
    Column("experiment", ForeignKey("experiments.id"), primary_key=True),
    Column("number", Integer, primary_key=True, autoincrement=False),
    Column("seq", BigInteger, primary_key=True, autoincrement=False),
    Column("data", LargeBinary, nullable=False),
)

initial_states = Table(  # part of the journal: what clones and experiments with a log began with, and never forgotten
    "initial_states",
    metadata,
    Column("experiment", ForeignKey("experiments.id"), primary_key=True),
    Column("data", LargeBinary, nullable=False),
)

clock = Table(
    "clock",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("now", BigInteger, nullable=False),
)

tokens = Table(
    "tokens",
    metadata,
    Column("id", String(8), primary_key=True),
    Column("name", String(64), nullable=False),
    Column("hash", LargeBinary(32), nullable=False),
    Column("scopes", String(64), nullable=False),
    Column("created_at", BigInteger, nullable=False),
    Column("revoked_at", BigInteger),
    Column("experiment", String(16)),  # the key of the only one that it is for
)
