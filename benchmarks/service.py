"""The decision service: what durability costs, one client against Optuna, many arms, and PostgreSQL against SQLite.

The server runs in a process of its own, on SQLite in a temporary folder, with every commit flushed to the disk. Clients
are plain sockets in this process. All times are by the clock on the wall, but for the row that is named after the
processor time of the server, which other programs on the machine blur less. PostgreSQL is measured if the command names
an empty database: `python benchmarks/service.py postgresql://user@localhost/name`.
"""

from __future__ import annotations

import asyncio
import importlib.util
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Self

from measure import Row, print_table

if TYPE_CHECKING:
    from collections.abc import Iterator

CLIENTS = 64
SECONDS = 1.5
TURNS = 6
_LENGTH = re.compile(rb"content-length: *(\d+)", re.IGNORECASE)


def rows(postgresql: str = "") -> Iterator[Row]:
    """Measure all of it; the last only with the address of a database."""
    with tempfile.TemporaryDirectory() as folder, server(folder) as (port, _):
        prepare(port)  # compiles, if nothing was compiled yet, which leaves its traces in memory
    with tempfile.TemporaryDirectory() as folder, server(folder) as (port, process):
        prepare(port)
        turns = [[costs(port, process, client) for client in (idle, work)] for _ in range(TURNS)]
        (noop, noop_busy), (pair, pair_busy) = (map(min, zip(*each, strict=True)) for each in zip(*turns, strict=True))
        rival = "a route that does nothing"
        yield Row(f"service, {CLIENTS} clients, a request", pair, rival, noop, at_least=0.7)
        yield Row(f"service, {CLIENTS} clients, processor time", pair_busy, rival, noop_busy)
        yield from against_optuna(port, folder)
        yield from many_arms(port, process)
        if postgresql:
            yield from on_postgresql(port, postgresql)


def on_postgresql(port: int, address: str) -> Iterator[Row]:
    """Let many clients decide and tell, in turns with those of a server on SQLite."""
    with server(address) as (other, _):
        asyncio.run(create(other, "small", {"name": "cliques", "sizes": [5, 5]}))
        turns = [(concurrently(port, work), concurrently(other, work)) for _ in range(TURNS)]
    sqlite, ours = max(rate for rate, _ in turns), max(rate for _, rate in turns)
    yield Row(f"service, {CLIENTS} clients, on PostgreSQL", 1 / ours, "on SQLite", 1 / sqlite, at_least=0.7)


def prepare(port: int) -> None:
    """Make a small experiment and a large one."""
    asyncio.run(create(port, "small", {"name": "cliques", "sizes": [5, 5]}))
    options = {"refresh": "epoch", "start": "cover"}
    asyncio.run(create(port, "large", {"name": "nested", "n": 100_000}, learner="exp3.g++", options=options))
    asyncio.run(decide_and_tell(port, "large", 3))


def against_optuna(port: int, folder: str) -> Iterator[Row]:
    """Let one client decide and tell, one after the other."""
    ours = 2 / asyncio.run(rate(port, work, clients=1))
    what = "service, one client, decide + tell"
    if importlib.util.find_spec("optuna") is None:
        yield Row(what, ours, "Optuna: not installed")
        return
    yield Row(what, ours, "Optuna ask + tell on SQLite", optuna_pair(folder), at_least=6.0)


def optuna_pair(folder: str) -> float:
    """Return the seconds of an ask and a tell of Optuna, with a parameter of ten values, as many as our arms."""
    import optuna  # noqa: PLC0415  # takes seconds to load

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    sampler = optuna.samplers.RandomSampler(seed=1)  # the fastest one
    study = optuna.create_study(storage=f"sqlite:///{folder}/optuna.db", sampler=sampler)
    begun, pairs = time.perf_counter(), 0
    while time.perf_counter() - begun < SECONDS:
        trial = study.ask()
        trial.suggest_int("arm", 0, 9)
        study.tell(trial, 0.5)
        pairs += 1
    return (time.perf_counter() - begun) / pairs


def many_arms(port: int, process: subprocess.Popen[str]) -> Iterator[Row]:
    """Decide between 100,000 arms on a nested graph, where playing one reveals all below it."""
    times = asyncio.run(decide_and_tell(port, "large", 200))
    memory = resident(process.pid)
    yield Row("service, 100,000 arms, p99 of a decision", sorted(times)[int(0.99 * len(times))], at_most=0.05)
    print(f"  ... in {memory / 1e6:.0f} MB, at most 300{': missed' * (memory > 3e8)}")


def costs(port: int, process: subprocess.Popen[str], client: object) -> tuple[float, float]:
    """Return the seconds of a request where many clients send some, by the clock and of the server's processor time."""
    before = processor_time(process.pid)
    found = concurrently(port, client)
    return 1 / found, (processor_time(process.pid) - before) / (found * SECONDS)


def concurrently(port: int, client: object) -> float:
    """Return the requests a second of all clients together."""
    return asyncio.run(rate(port, client, CLIENTS))


async def rate(port: int, client: object, clients: int) -> float:
    """Return the requests a second."""
    end = time.perf_counter() + SECONDS
    counts = await asyncio.gather(*(client(port, end) for _ in range(clients)))  # type: ignore[operator]
    return sum(counts) / SECONDS


async def idle(port: int, end: float) -> int:
    """Ask for nothing, until the end."""
    async with Line(port) as line:
        count = 0
        while time.perf_counter() < end:
            await line.send("GET", "/health")
            count += 1
    return count


async def work(port: int, end: float) -> int:
    """Decide and tell, until the end."""
    async with Line(port) as line:
        count = 0
        while time.perf_counter() < end:
            made = json.loads(await line.send("POST", "/v1/experiments/small/decisions", key=os.urandom(12).hex()))
            losses = json.dumps({"losses": {str(arm): 0.3 for arm in made["reveals"]}})
            await line.send("POST", f"/v1/decisions/{made['id']}/feedback", losses)
            count += 2
    return count


async def create(port: int, name: str, graph: dict[str, object], **about: object) -> None:
    """Make an experiment."""
    async with Line(port) as line:
        body = {"name": name, "graph": graph, "seed": 1, **about}
        await line.send("POST", "/v1/experiments", json.dumps(body))


async def decide_and_tell(port: int, name: str, count: int) -> list[float]:
    """Return the seconds of each decision."""
    times = []
    async with Line(port) as line:
        for _ in range(count):
            begun = time.perf_counter()
            reply = await line.send("POST", f"/v1/experiments/{name}/decisions")
            times.append(time.perf_counter() - begun)
            made = json.loads(reply)
            losses = json.dumps({"losses": [0.3] * len(made["reveals"])})
            await line.send("POST", f"/v1/decisions/{made['id']}/feedback", losses)
    return times


class Line:
    """A connection that sends one request after the other, and costs little itself."""

    def __init__(self, port: int) -> None:
        self._port = port

    async def __aenter__(self) -> Self:
        self._reader, self._writer = await asyncio.open_connection("127.0.0.1", self._port, limit=2**24)
        return self

    async def __aexit__(self, *_: object) -> None:
        self._writer.close()

    async def send(self, method: str, address: str, body: str = "", key: str = "") -> bytes:
        """Send a request and return the body of the reply."""
        head = f"{method} {address} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: {len(body)}\r\n"
        head += "Content-Type: application/json\r\n" * bool(body) + f"Idempotency-Key: {key}\r\n" * bool(key)
        self._writer.write(f"{head}\r\n{body}".encode())
        reply = await self._reader.readuntil(b"\r\n\r\n")
        found = _LENGTH.search(reply)
        content = await self._reader.readexactly(int(found[1]) if found else 0)
        if not reply.startswith((b"HTTP/1.1 200", b"HTTP/1.1 201")):
            raise RuntimeError(content.decode())
        return content


@contextmanager
def server(place: str) -> Iterator[tuple[int, subprocess.Popen[str]]]:
    """Start a server on a port of its own, with a database in a folder or at an address."""
    database = place if "://" in place else f"{place}/service.db"
    environment = {
        **os.environ,
        "SIDELONG_DECIDE_RATE": "1e9",
        "SIDELONG_FEEDBACK_RATE": "1e9",
        "SIDELONG_READ_RATE": "1e9",
    }
    process = subprocess.Popen(
        [sys.executable, "-m", "sidelong", "serve", "--database", database, "--port", "0"],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        env=environment,
    )
    try:
        line = process.stdout.readline()  # type: ignore[union-attr]
        yield int(line.rpartition(":")[2]), process
    finally:
        process.terminate()
        process.wait()


def processor_time(pid: int) -> float:
    """Return the seconds that a process was at work."""
    after_name = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    return sum(map(int, after_name[11:13])) / os.sysconf("SC_CLK_TCK")


def resident(pid: int) -> int:
    """Return the bytes that a process holds in memory."""
    pages = Path(f"/proc/{pid}/statm").read_text(encoding="ascii").split()[1]
    return int(pages) * os.sysconf("SC_PAGE_SIZE")


if __name__ == "__main__":
    print_table(rows(*sys.argv[1:]))
