"""The tables. From the first release on, what changes here needs a step in `sidelong.service.store.sql.migrate`.

``events`` is the journal: it is only ever appended to, and cut behind a snapshot if the operator says so. The state of
an experiment is what replaying it gives.
Each event has a number of its own within its experiment, and each decision is made once and settled once: the
database itself refuses anything else.
"""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
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

schema = Table("schema_version", metadata, Column("version", Integer, nullable=False))  # of these tables: one row

experiments = Table(
    "experiments",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("key", String(16), nullable=False, unique=True),  # what the ids of its decisions begin with
    Column("name", String(64), nullable=False),
    Column("spec", Text, nullable=False),  # JSON
    Column("graph", String(32)),  # the id of its own graph, which its specification has too
    Column("head", BigInteger, nullable=False),  # the number of the last event
    Column("size", BigInteger, nullable=False, server_default="0"),  # bytes that its events take, about
    # Where what is left of its journal begins: see `sidelong.service.store.database.Cut`.
    Column("cut_seq", BigInteger, nullable=False, server_default="0"),
    Column("cut_round", BigInteger, nullable=False, server_default="0"),
    Column("cut_chain", LargeBinary(16)),
    Column("cut_kept", LargeBinary(16)),
    # As the journal says, for the list. The row of a deleted one stays, so that its id is not given again, as "deleted"
    # and then, when there is nothing left to forget, as "gone".
    Column("state", String(16), nullable=False, server_default="running"),
    Column("changed_at", BigInteger),
    Column("changed_by", String(64)),
    Index(
        "experiments_by_name",
        "name",
        unique=True,
        sqlite_where=text("state NOT IN ('deleted', 'gone')"),
        postgresql_where=text("state NOT IN ('deleted', 'gone')"),
    ),
)

blobs = Table(  # graphs, snapshots and what belongs to them: see `sidelong.service.store.database.BlobKind`
    "blobs",
    metadata,
    Column("owner", String(32), primary_key=True),  # the id of a graph, or the key of an experiment
    Column("kind", SmallInteger, primary_key=True, autoincrement=False),
    Column("number", Integer, primary_key=True, autoincrement=False),
    Column("seq", BigInteger, primary_key=True, autoincrement=False),
    Column("chunk", Integer, primary_key=True, autoincrement=False),
    Column("is_last", Boolean, nullable=False),  # a blob without such a chunk is not complete
    Column("kept_at", BigInteger, nullable=False),  # by the service's own clock
    Column("data", LargeBinary, nullable=False),
    Index("blobs_by_age", "kind", "kept_at", "owner"),  # without reading any data
)

events = Table(
    "events",
    metadata,
    Column("experiment", ForeignKey("experiments.id"), primary_key=True),
    Column("seq", BigInteger, primary_key=True, autoincrement=False),
    Column("kind", SmallInteger, nullable=False),
    Column("round", BigInteger, nullable=False),  # the least number of a decision that it is about
    Column("last", BigInteger, nullable=False),  # and the largest
    Column("slot", SmallInteger, nullable=False),  # 0: decided, 1: settled, 2: told too late, 3: overridden
    Column("at", BigInteger, nullable=False),  # microseconds since 1970, by the wall clock: for people
    Column("clock", BigInteger, nullable=False),  # milliseconds by the service's own clock: for expiry
    Column("graph", String(32)),
    Column("key", String(200)),
    Column("context", Text),
    Column("data", LargeBinary),  # columns: see `sidelong.service.store.journal`
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

cut_keys = Table(  # the Idempotency-Keys of events that were erased
    "cut_keys",
    metadata,
    Column("experiment", ForeignKey("experiments.id"), primary_key=True),
    Column("key", String(200), primary_key=True),
    Column("clock", BigInteger, nullable=False),  # of the event
    Index("cut_keys_by_age", "experiment", "clock"),
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
