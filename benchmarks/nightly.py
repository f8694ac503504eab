"""Fifty thousand products behind the service: nights on SQLite, who else decides meanwhile, a restart, and the client.

The server runs in a process of its own, on SQLite in a temporary folder, with every commit flushed to the disk. All
times are by the clock on the wall.
"""

from __future__ import annotations

import multiprocessing
import statistics
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from measure import Row, print_table

import sidelong as sl
from service import server

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Callable, Iterator
    from multiprocessing.synchronize import Event

    from sidelong.service.client import Experiment, Service

KEYS, FEW, ARMS, NIGHTS, DECISIONS = 50_000, 10_000, 24, 4, 500
GRAPH = sl.graphs.nested(ARMS)


def rows() -> Iterator[Row]:
    """Measure nights, the memory of the server, its restart, and the client."""
    keys = list(map("sku-{}".format, range(KEYS)))
    with tempfile.TemporaryDirectory() as folder:
        with server(folder) as (port, process), sl.connect(f"http://127.0.0.1:{port}", timeout=120.0) as service:
            shop = service.create("shop", "glance", GRAPH, seed=7, keyed=True, expire_after=None)
            small = service.create("small", "glance", sl.graphs.nested(4), seed=7)
            a_night(shop, keys[:10])  # compiled
            small.ask()
            nights = [seconds(lambda: a_night(shop, keys)) for _ in range(NIGHTS)]
            used = memory(process)
            warning = "" if used < 1 else "more than 1 GB"
            yield Row(f"{KEYS:,} keys, the first night, when all are new", nights[0], at_most=2)
            yield Row(f"{KEYS:,} keys, a night, {used:.2f} GB of memory", max(nights[1:]), at_most=2, warning=warning)
            yield others(port, small, keys)
            yield from beside_a_family(service, small)
        begun = time.perf_counter()
        with server(folder) as (port, _), sl.connect(f"http://127.0.0.1:{port}", timeout=120.0) as service:
            service["shop"].ask_many(keys[:1])
            yield Row(f"{KEYS:,} keys, from start to first decision", time.perf_counter() - begun, at_most=10)


def others(port: int, small: Experiment, keys: list[str]) -> Row:
    """Compare how long a decision of a small experiment takes alone, and during nights of the large one."""
    alone = sorted(seconds(lambda: small.cancel(small.ask())) for _ in range(DECISIONS))
    processes = multiprocessing.get_context("spawn")  # two clients of one process would wait for each other
    begun, done = processes.Event(), processes.Event()
    night = processes.Process(target=nights, args=(port, keys, begun, done))
    night.start()
    begun.wait()
    beside = sorted(seconds(lambda: small.cancel(small.ask())) for _ in range(DECISIONS))
    done.set()
    night.join()
    at = int(0.99 * DECISIONS)
    return Row("p99 of a decision during nights", beside[at], "five times that of before", 5 * alone[at], at_least=1)


def nights(port: int, keys: list[str], begun: Event, done: Event) -> None:
    """Play nights of the large experiment until it is enough."""
    with sl.connect(f"http://127.0.0.1:{port}", timeout=120.0) as service:
        begun.set()
        while not done.is_set():
            a_night(service["shop"], keys)


def beside_a_family(service: Service, small: Experiment) -> Iterator[Row]:
    """Compare the client with a family in this process, plus two lone requests."""
    keys = list(map("sku-{}".format, range(FEW)))
    family, shop = sl.Family("glance", GRAPH, seed=7), service.create("few", "glance", GRAPH, seed=7, keyed=True)
    for _ in range(2):
        a_round(family, keys)
        a_night(shop, keys)
    ours, theirs, one = [], [], []
    for _ in range(7):  # side by side, so that what else the machine does is the same for all
        theirs.append(seconds(lambda: a_round(family, keys)))
        ours.append(seconds(lambda: a_night(shop, keys)))
        one.append(seconds(lambda: small.cancel(small.ask())))
    limit = 2 * statistics.median(theirs) + statistics.median(one)
    yield Row(f"{FEW:,} keys, client", statistics.median(ours), "twice a family and a request", limit, at_least=1)


def seconds(work: Callable[[], object]) -> float:
    """Return how long something takes by the clock on the wall, of which the server has its part."""
    begun = time.perf_counter()
    work()
    return time.perf_counter() - begun


def a_night(shop: Experiment, keys: list[str]) -> None:
    """Ask for all keys, and tell what was revealed."""
    plan = shop.ask_many(keys)
    shop.tell_many(plan, losses(plan.reveals, plan.rounds[0]))


def a_round(family: sl.Family, keys: list[str]) -> None:
    """Do the same with a family."""
    plan = family.ask(keys)
    family.tell(plan, losses(plan.reveals, plan.rounds[0]))


def losses(reveals: np.ndarray, round_: int) -> np.ndarray:
    """Return some losses."""
    return np.asarray((reveals + round_) % 7 / 6)


def memory(process: subprocess.Popen[bytes]) -> float:
    """Return the most memory that a process has used, in GB."""
    status = Path(f"/proc/{process.pid}/status").read_text("utf-8")
    return int(next(line for line in status.splitlines() if line.startswith("VmHWM")).split()[1]) / 2**20


if __name__ == "__main__":
    print_table(rows())
