"""The decision service and a long journal: how long a start takes with a snapshot, how fast a replay is without one.

One experiment has a million events, or as many as the command says: `python benchmarks/replay.py 100000`. While it is
replayed a client decides and tells at a small one. All times are by the clock on the wall.
"""

from __future__ import annotations

import asyncio
import json
import sqlite3
import sys
import tempfile
import time
from contextlib import closing
from typing import TYPE_CHECKING

from measure import Row, print_table

import service
import sidelong as sl
from service import Line
from sidelong.service.settings import Settings
from sidelong.service.store import creation
from sidelong.service.store.clock import Clock
from sidelong.service.store.feedback import ToldItem
from sidelong.service.store.kinds import open_database
from sidelong.service.store.rules import Decide, Tell
from sidelong.service.store.spec import RequestedSpec
from sidelong.service.store.store import Store

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sidelong.service.store.rules import Decided

BATCH = 500


def rows(events: int = 1_000_000) -> Iterator[Row]:
    """Measure both starts."""
    with tempfile.TemporaryDirectory() as folder:
        make(folder, events)
        with service.server(folder) as (port, _):  # compiles, if nothing was compiled yet
            asyncio.run(service.decide_and_tell(port, "small", 3))
        begun = time.perf_counter()
        with service.server(folder) as (port, _):
            asyncio.run(service.decide_and_tell(port, "large", 1))
            yield Row(f"service, {events:,} events, start with a snapshot", time.perf_counter() - begun, at_most=5.0)
        lose_snapshot(folder)
        with service.server(folder) as (port, _):
            seconds = asyncio.run(replayed(port))
            yield Row("service, replay while others decide, an event", seconds / events, at_most=1 / 20_000)


def make(folder: str, events: int) -> None:
    """Make a small experiment, and one with so many events."""
    with closing(open_database(f"{folder}/service.db")) as database:
        store = Store(database, Settings(), Clock())
        about = RequestedSpec(learner="glance", seed=1, expire_after=None)
        for name in ("small", "large"):
            creation.create(store, creation.draft(store, name, about, sl.graphs.cliques([5, 5])))
        for _ in range(events // (2 * BATCH)):
            made = store.run([Decide("large") for _ in range(BATCH)])
            store.run([tell(each) for each in made])
        store.save(least=1)


def tell(made: Decided) -> Tell:
    """Return the command that tells a decision."""
    number, _, _, arm, *_ = made.draws.row(0)
    return Tell(f"#{made.experiment}", [ToldItem(number, [0.3] * made.graph.row(arm).size)], partial=True)


def lose_snapshot(folder: str) -> None:
    """Delete the snapshots of the large experiment."""
    with closing(sqlite3.connect(f"{folder}/service.db")) as database:
        database.execute(
            "DELETE FROM blobs WHERE owner = (SELECT key FROM experiments WHERE name='large') AND kind >= 2"
        )
        database.commit()


async def replayed(port: int) -> float:
    """Return the seconds until the large experiment is in memory, while a client decides at the small one."""
    begun = time.perf_counter()
    async with Line(port) as line, Line(port) as other:
        while await is_loading(line):
            made = json.loads(await other.send("POST", "/v1/experiments/small/decisions"))
            losses = json.dumps({"losses": [0.3] * len(made["reveals"])})
            await other.send("POST", f"/v1/decisions/{made['id']}/feedback", losses)
    return time.perf_counter() - begun


async def is_loading(line: Line) -> bool:
    """Tell whether a server has not loaded all experiments yet: until then it is not ready."""
    try:
        await line.send("GET", "/ready")
    except RuntimeError:
        return True
    return False


if __name__ == "__main__":
    print_table(rows(*map(int, sys.argv[1:])))
