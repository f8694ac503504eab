"""The journal: what happened to an experiment, event by event, and never changed.

Each event carries a hash of itself and of all events before it, so that a snapshot says of which journal it is one.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import math
import struct
from enum import IntEnum
from typing import TYPE_CHECKING, NamedTuple

from sqlalchemy import bindparam, insert, select, text

from sidelong.service.store.database import Statement
from sidelong.service.store.schema import events

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from sqlalchemy import Connection

__all__ = ["Event", "Kind", "append", "by_round", "chain_at", "linked", "of_keys", "of_round", "since"]


class Kind(IntEnum):
    """What happened."""

    CREATED = 0
    DECIDED = 1
    TOLD = 2
    CANCELLED = 3
    EXPIRED = 4
    LATE = 5  #: told after it had expired: kept, not learned


_SLOTS = {Kind.CREATED: 0, Kind.DECIDED: 0, Kind.TOLD: 1, Kind.CANCELLED: 1, Kind.EXPIRED: 1, Kind.LATE: 2}


class Event(NamedTuple):
    """A line of the journal."""

    kind: Kind
    round: int
    at: int
    clock: int
    arm: int | None = None
    probability: float | None = None  #: None where the learner does not know it
    graph: str | None = None  #: None for the experiment's own
    key: str | None = None
    context: str | None = None
    losses: bytes | None = None  #: float64, little-endian, in the order of the revealed arms
    observe: bytes | None = None  #: the probability that each of them would be revealed
    seq: int = 0
    chain: bytes = b""


_NUMBERS = struct.Struct("<qbqqqqd")
_COLUMNS = [events.c[name] for name in Event._fields]
_APPEND = Statement(insert(events), ["experiment", "slot", *Event._fields])
_READ = select(*_COLUMNS).where(events.c.experiment == bindparam("of"))
_SINCE = _READ.where(events.c.seq > bindparam("after")).order_by(events.c.seq).limit(bindparam("most"))
_ROUND = _READ.where(events.c.round == bindparam("number")).order_by(events.c.slot)
_SPAN = _READ.where(events.c.round.between(bindparam("first"), bindparam("last"))).order_by(
    events.c.round, events.c.slot
)
# One text for any number of keys, so that it is compiled once.
_KEYS = {
    "sqlite": Statement(_READ.where(text("events.key IN (SELECT value FROM json_each(:keys))"))),
    "postgresql": Statement(_READ.where(text("events.key = ANY(:keys)"))),
}
_CHAIN = select(events.c.chain).where(events.c.experiment == bindparam("of"), events.c.seq == bindparam("number"))


def linked(event: Event, seq: int, chain: bytes) -> Event:
    """Return the event as the one of number `seq`, behind one whose hash is `chain`."""
    arm = -1 if event.arm is None else event.arm
    probability = math.nan if event.probability is None else event.probability
    parts = [chain, _NUMBERS.pack(seq, event.kind, event.round, event.at, event.clock, arm, probability)]
    texts = [text_ and text_.encode() for text_ in (event.graph, event.key, event.context)]
    parts += [b"-" if data is None else b"%d:%s" % (len(data), data) for data in (*texts, event.losses, event.observe)]
    digest = hashlib.blake2b(b"".join(parts), digest_size=16).digest()
    return Event(*event[:11], seq, digest)


def append(connection: Connection, experiment: int, new: Iterable[Event]) -> None:
    """Write events."""
    rows = [{"experiment": experiment, "slot": _SLOTS[event.kind], **event._asdict()} for event in new]
    if rows:
        _APPEND.run(connection, *rows)


def since(connection: Connection, experiment: int, after: int, page_size: int = 1000) -> Iterator[Event]:
    """Yield the events after the one of number `after`."""
    while True:
        page = connection.execute(_SINCE, {"of": experiment, "after": after, "most": page_size}).all()
        yield from map(_event, page)
        if len(page) < page_size:
            return
        after = page[-1].seq


def by_round(connection: Connection, experiment: int, page_size: int = 200) -> Iterator[list[Event]]:
    """Yield the events of each round together, from round 1: decided, settled, told too late."""
    first = 1
    while True:
        span = {"of": experiment, "first": first, "last": first + page_size - 1}
        page = [_event(row) for row in connection.execute(_SPAN, span)]
        for _, events_ in itertools.groupby(page, lambda event: event.round):
            yield list(events_)
        if not page:  # rounds have no gaps
            return
        first += page_size


def of_round(connection: Connection, experiment: int, number: int) -> list[Event]:
    """Return the events of a round: that it was decided, how it was settled, that it was told too late."""
    return [_event(row) for row in connection.execute(_ROUND, {"of": experiment, "number": number})]


def of_keys(connection: Connection, experiment: int, keys: list[str]) -> dict[str, Event]:
    """Return the decisions that were made under these Idempotency-Keys."""
    name = connection.dialect.name
    rows = _KEYS[name].run(connection, {"of": experiment, "keys": json.dumps(keys) if name == "sqlite" else keys})
    return {str(row.key): _event(row) for row in rows}


def chain_at(connection: Connection, experiment: int, number: int) -> bytes | None:
    """Return the hash of an event."""
    return connection.execute(_CHAIN, {"of": experiment, "number": number}).scalar()


def _event(row: Iterable[object]) -> Event:
    kind, *others = row
    return Event(Kind(kind), *others)  # type: ignore[arg-type]
