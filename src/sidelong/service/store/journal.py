"""The journal: what happened to an experiment, event by event, and never changed."""

from __future__ import annotations

import itertools
import json
from enum import IntEnum
from typing import TYPE_CHECKING, Literal, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from sidelong.service.store.database import Identity, Reading

DrawnBy = Literal["learner", "frozen", "holdout", "fallback"]


class Kind(IntEnum):
    """What happened."""

    CREATED = 0
    DECIDED = 1
    TOLD = 2
    CANCELLED = 3
    EXPIRED = 4
    LATE = 5  #: told after it had expired: kept, not learned
    CHANGED = 6  #: somebody froze, stopped, renamed ... it: see `sidelong.service.store.life`
    PLAYED = 7  #: decided while frozen, by what is to be played then
    HELD = 8  #: decided by the holdout
    FALLBACK = 9  #: decided while stopped, by the fallback arm
    DEFAULTED = 10  #: expired, and told the loss that was named for this


#: The place of an event in its round: decided, settled, told too late. Each place is taken once.
SLOTS = {
    Kind.CREATED: 0,
    Kind.DECIDED: 0,
    Kind.TOLD: 1,
    Kind.CANCELLED: 1,
    Kind.EXPIRED: 1,
    Kind.LATE: 2,
    Kind.CHANGED: 0,
    Kind.PLAYED: 0,
    Kind.HELD: 0,
    Kind.FALLBACK: 0,
    Kind.DEFAULTED: 1,
}
#: What an arm was drawn by, for each kind of event that draws one.
DRAWN_BY: dict[Kind, DrawnBy] = {
    Kind.DECIDED: "learner",
    Kind.PLAYED: "frozen",
    Kind.HELD: "holdout",
    Kind.FALLBACK: "fallback",
}
#: What ends a round whose time is over.
EXPIRED = frozenset({Kind.EXPIRED, Kind.DEFAULTED})


class Event(NamedTuple):
    """A line of the journal."""

    kind: Kind
    round: int  #: from 1; 0 for the first event; for a change, minus the number of its event
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


def size_of(event: Event) -> int:
    """Return how many bytes the binary columns of an event have."""
    return len(event.losses or b"") + len(event.observe or b"")


def since(reading: Reading, experiment: int, after: int, page_size: int = 1000) -> Iterator[Event]:
    """Yield the events after the one of number `after`."""
    while True:
        page = reading.events(experiment, after, page_size)
        yield from page
        if len(page) < page_size:
            return
        after = page[-1].seq


def changes(reading: Reading, experiment: int) -> list[Event]:
    """Return who changed what, oldest first."""
    return reading.rounds(experiment, -(2**63), -1)[::-1]


def labels_at(
    reading: Reading, identity: Identity, before: int | None = None, fresh: Sequence[Event] = ()
) -> list[str] | None:
    """Return what the arms of an experiment were called before an event, or are called now.

    `fresh` has events that are not written yet.
    """
    labels: list[str] | None = identity.spec.labels
    for event in [*changes(reading, identity.id), *(each for each in fresh if each.kind is Kind.CHANGED)]:
        if before is None or event.seq < before:
            labels = json.loads(event.context or "{}").get("labels", labels)
    return labels


def by_round(reading: Reading, experiment: int, page_size: int = 200) -> Iterator[list[Event]]:
    """Yield the events of each round together, from round 1: decided, settled, told too late."""
    for first in itertools.count(1, page_size):
        page = reading.rounds(experiment, first, first + page_size - 1)
        for _, events in itertools.groupby(page, lambda event: event.round):
            yield list(events)
        if not page:  # rounds have no gaps
            return
