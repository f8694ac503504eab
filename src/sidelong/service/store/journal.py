"""The journal: what happened to an experiment, event by event, and never changed."""

from __future__ import annotations

import itertools
from enum import IntEnum
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sidelong.service.store.database import Reading


class Kind(IntEnum):
    """What happened."""

    CREATED = 0
    DECIDED = 1
    TOLD = 2
    CANCELLED = 3
    EXPIRED = 4
    LATE = 5  #: told after it had expired: kept, not learned
    REBASED = 6  #: a newer version of the learner goes on from a kept state: see `sidelong.service.store.rebasing`


#: The place of an event in its round: decided, settled, told too late. Each place is taken once.
SLOTS = {
    Kind.CREATED: 0,
    Kind.DECIDED: 0,
    Kind.TOLD: 1,
    Kind.CANCELLED: 1,
    Kind.EXPIRED: 1,
    Kind.LATE: 2,
    Kind.REBASED: 0,
}


class Event(NamedTuple):
    """A line of the journal."""

    kind: Kind
    round: int  #: from 1; 0 for the first event, and less a version for the one that version began with
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
    chain: bytes = b""  #: a hash of this event and of all before it


def since(reading: Reading, experiment: int, after: int, page_size: int = 1000) -> Iterator[Event]:
    """Yield the events after the one of number `after`."""
    while True:
        page = reading.events(experiment, after, page_size)
        yield from page
        if len(page) < page_size:
            return
        after = page[-1].seq


def by_round(reading: Reading, experiment: int, page_size: int = 200) -> Iterator[list[Event]]:
    """Yield the events of each round together, from round 1: decided, settled, told too late."""
    for first in itertools.count(1, page_size):
        page = reading.rounds(experiment, first, first + page_size - 1)
        for _, events in itertools.groupby(page, lambda event: event.round):
            yield list(events)
        if not page:  # rounds have no gaps
            return
