"""The log of an experiment with keys, row by row: the columns of its batches, brought together decision by decision.

Rows come as decisions are settled, so that only those are in memory whose feedback has not been read yet. What expired
may still be told too late, and comes at the end, with what waits.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from sidelong.service import pools
from sidelong.service.store.journal import DRAWN_BY, Kind
from sidelong.service.store.keyed import columns

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sidelong.service.store.database import Identity, Reading
    from sidelong.service.store.journal import Event
    from sidelong.service.store.store import Store

    Row = dict[str, Any]

_BYTES = 2**24  # of events that are in memory together


def rows(store: Store, reading: Reading, identity: Identity) -> Iterator[Row]:
    """Yield a row for each decision."""
    waiting: dict[int, Row] = {}
    graphs: dict[int, str | None] = {}
    after = 0
    while page := reading.events(identity.id, after, 500, _BYTES):
        after = page[-1].seq
        for event in page:
            pools.check()
            if event.kind in DRAWN_BY:
                _decided(identity, event, waiting)
                graphs |= dict.fromkeys(range(event.round, event.round + (event.arm or 0) + 1), event.graph)
            elif event.kind in {Kind.TOLD, Kind.DEFAULTED}:
                yield from _told(store, reading, identity, event, waiting, graphs)
            elif event.kind is Kind.CANCELLED:
                for number in columns.read_settled(event).numbers.tolist():
                    yield waiting.pop(number) | {"status": "cancelled"}
            elif event.kind in {Kind.EXPIRED, Kind.LATE}:
                for number in columns.read_settled(event).numbers.tolist():
                    if number in waiting:  # what was told its default stays so
                        waiting[number]["status"] = event.kind.name.lower()
    yield from waiting.values()


def _decided(identity: Identity, event: Event, waiting: dict[int, Row]) -> None:
    for number, key, round_, arm, p, by in columns.read_draws(event).listed():
        waiting[number] = {
            "timestamp": event.at,
            "action": arm,
            "reward": None,
            "pscore": None if np.isnan(p) else p,
            "position": 0,
            "context": event.context,
            "decision": f"{identity.key}-{number}",
            "round": round_,
            "status": "outstanding",
            "observed": None,
            "losses": None,
            "observe_probabilities": None,
            "key": str(key),
            "drawn_by": by,
        }


def _told(
    store: Store,
    reading: Reading,
    identity: Identity,
    event: Event,
    waiting: dict[int, Row],
    graphs: dict[int, str | None],
) -> Iterator[Row]:
    found = columns.read_settled(event)
    for place, number in enumerate(found.numbers.tolist()):
        row = waiting.pop(number)
        graph = store.graph_cache.find(reading, event.graph or graphs.pop(number) or identity.spec.graph)
        reveals, losses = graph.row(row["action"]), found.losses_of(place)
        own = losses[reveals == row["action"]]
        row["status"] = event.kind.name.lower()
        row["reward"] = 1.0 - float(own[0]) if own.size else None
        row["observed"], row["losses"] = reveals, losses
        if found.observe is not None:
            row["observe_probabilities"] = found.observe[found.offsets[place] : found.offsets[place + 1]]
        yield row
