"""The decision service while somebody disturbs it: the 99th percentile of a decision on a small experiment.

A client decides and tells, one request after the other, while others do what they should not. Each disturbance is a row
beside the same client alone, in turns, on the same server. The goal is that it takes at most five times as long.
All times are by the clock on the wall, so that other programs on the machine blur them. Run it alone:
`python benchmarks/isolation.py [NAME ...]`.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import json
import sys
import tempfile
import time
from typing import TYPE_CHECKING

import replay
from measure import Row, print_table

import service
from service import Line

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator
    from contextlib import AbstractAsyncContextManager

    Disturbance = Callable[[int], AbstractAsyncContextManager[None]]

TURNS = 4
SECONDS = 3.0
REPLAYED = 100_000  # events
_numbers = itertools.count()


@contextlib.asynccontextmanager
async def nothing(_: int) -> AsyncIterator[None]:
    """Disturb nobody."""
    yield


@contextlib.asynccontextmanager
async def graphs_of_rounds(port: int) -> AsyncIterator[None]:
    """Decide with a graph of its own each time, of a thousand arms and a million edges."""
    name = f"graphs-{next(_numbers)}"
    await service.create(port, name, {"name": "complete", "n": 1000})

    async def ask() -> None:
        graph = {"name": "erdos_renyi", "n": 1000, "r": 0.99}
        with contextlib.suppress(RuntimeError):  # until there is no room for them
            async with Line(port) as line:
                while True:
                    body = json.dumps({"graph": {**graph, "seed": next(_numbers)}})
                    await line.send("POST", f"/v1/experiments/{name}/decisions", body)

    async with running(ask(), ask()):
        yield


@contextlib.asynccontextmanager
async def large_creates(port: int) -> AsyncIterator[None]:
    """Make six experiments that take long, and leave after a second, again and again."""

    async def make() -> None:
        about = {"learner": "ucb-lp", "options": {"horizon": 1000}, "graph": {"name": "hypercube", "d": 12}}
        while True:
            body = json.dumps({"name": f"large-{next(_numbers)}", **about})
            async with Line(port) as line:
                with contextlib.suppress(TimeoutError, RuntimeError):
                    async with asyncio.timeout(1.0):
                        await line.send("POST", "/v1/experiments", body)

    async with running(*(make() for _ in range(6))):
        yield


@contextlib.asynccontextmanager
async def streams(port: int) -> AsyncIterator[None]:
    """Follow the small experiment with a thousand event streams."""

    async def follow() -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"GET /v1/experiments/small/events HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
        with contextlib.closing(writer):
            while await reader.read(2**16):
                pass

    async with running(*(follow() for _ in range(1000))):
        await asyncio.sleep(1.0)  # until all are there
        yield


@contextlib.asynccontextmanager
async def outstanding(port: int) -> AsyncIterator[None]:
    """Ask for 20,000 decisions between a thousand arms, and tell none: snapshots have to hold them."""
    name = f"outstanding-{next(_numbers)}"
    await service.create(port, name, {"name": "complete", "n": 1000})

    async def ask() -> None:
        with contextlib.suppress(RuntimeError):  # until there is no room for them
            async with Line(port) as line:
                for _ in range(5000):
                    await line.send("POST", f"/v1/experiments/{name}/decisions")

    asking = [asyncio.ensure_future(ask()) for _ in range(4)]
    await asyncio.wait(asking[:1], timeout=4 * SECONDS)  # so that there are many
    yield
    for each in asking:
        each.cancel()
    await asyncio.wait(asking, timeout=SECONDS)


@contextlib.asynccontextmanager
async def aborted_downloads(port: int) -> AsyncIterator[None]:
    """Ask for the log six times, and leave, again and again."""

    async def download() -> None:
        while True:
            _, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(b"GET /v1/experiments/small/log HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
            await asyncio.sleep(0.2)
            writer.close()

    async with running(*(download() for _ in range(6))):
        yield


@contextlib.asynccontextmanager
async def running(*work: object) -> AsyncIterator[None]:
    """Do something beside the block, and stop at its end."""
    tasks = [asyncio.ensure_future(each) for each in work]  # type: ignore[arg-type]
    try:
        yield
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks, timeout=SECONDS)


DISTURBANCES: dict[str, Disturbance] = {
    "graphs": graphs_of_rounds,
    "creates": large_creates,
    "streams": streams,
    "outstanding": outstanding,
    "downloads": aborted_downloads,
}


async def times(port: int, disturbance: Disturbance, *, while_loading: bool = False) -> list[float]:
    """Return the seconds of each decision while somebody disturbs, or an experiment is brought into memory."""
    found = []
    async with disturbance(port), Line(port) as line:
        end = time.perf_counter() + SECONDS
        while time.perf_counter() < end:
            if while_loading and not await replay.is_loading(line):
                break
            begun = time.perf_counter()
            made = json.loads(await line.send("POST", "/v1/experiments/small/decisions"))
            found.append(time.perf_counter() - begun)
            losses = json.dumps({"losses": [0.3] * len(made["reveals"])})
            await line.send("POST", f"/v1/decisions/{made['id']}/feedback", losses)
    return found


def percentile(values: list[float], share: float) -> float:
    """Return the value that so large a share of them does not exceed."""
    return sorted(values)[min(int(share * len(values)), len(values) - 1)]


def beside_a_replay() -> tuple[list[float], list[float]]:
    """Return the seconds of decisions while another experiment is replayed, and after that."""
    disturbed: list[float] = []
    alone: list[float] = []
    with tempfile.TemporaryDirectory() as folder:
        replay.make(folder, REPLAYED)
        for _ in range(TURNS):
            replay.lose_snapshot(folder)
            with service.server(folder) as (port, _):
                asyncio.run(service.decide_and_tell(port, "small", 1))  # which must come into memory itself
                disturbed += asyncio.run(times(port, nothing, while_loading=True))
                asyncio.run(replay.replayed(port))
                alone += asyncio.run(times(port, nothing))
    return disturbed, alone


def beside(disturbance: Disturbance) -> tuple[list[float], list[float]]:
    """Return the seconds of decisions while somebody disturbs, and those of the same client alone, in turns."""
    disturbed: list[float] = []
    alone: list[float] = []
    with tempfile.TemporaryDirectory() as folder, service.server(folder) as (port, _):
        asyncio.run(service.create(port, "small", {"name": "cliques", "sizes": [5, 5]}))
        asyncio.run(service.decide_and_tell(port, "small", 50))
        for _ in range(TURNS):
            alone += asyncio.run(times(port, nothing))
            disturbed += asyncio.run(times(port, disturbance))
    return disturbed, alone


def rows(*names: str) -> Iterator[Row]:
    """Measure each disturbance, with a server of its own."""
    for name in names or ["replay", *DISTURBANCES]:
        disturbed, alone = beside_a_replay() if name == "replay" else beside(DISTURBANCES[name])
        ours, theirs = percentile(disturbed, 0.99), percentile(alone, 0.99)
        yield Row(f"service, p99 of a decision, {name}", ours, "alone", theirs, at_least=0.2)


if __name__ == "__main__":
    print_table(rows(*sys.argv[1:]))
