"""Two runs on two threads, against the same on one, by the clock on the wall."""

from __future__ import annotations

import concurrent.futures
import functools
import time
from typing import TYPE_CHECKING

import reference
from measure import Row, best_within, means, print_table

import sidelong as sl

if TYPE_CHECKING:
    from collections.abc import Iterator

RUNS = 2
ROUNDS = {10: 100_000, 1_000: 5_000}


def rows() -> Iterator[Row]:
    """Measure short rounds, where starting a thread might count, and long ones, where memory might."""
    for K in ROUNDS:
        two, one = best_within(5.0, functools.partial(a_round, K, threads=2), functools.partial(a_round, K, threads=1))
        yield Row(f"two threads, cliques of 5, K = {K:,}", two, "one thread", one, at_least=1.8, warning=doubt(K))


def a_round(K: int, threads: int) -> float:
    """Return the seconds of a round."""
    graph, world = sl.graphs.cliques([5] * (K // 5)), sl.losses.bernoulli(means(K))
    result = sl.simulate("exp3.g++", graph, world, ROUNDS[K], RUNS, checkpoints=1, threads=threads)
    return result.seconds / (RUNS * ROUNDS[K])


def doubt(K: int) -> str:
    """Let C do the same: if it gains little either, the second core was busy with something else."""
    if not reference.available():
        return ""
    two, one = best_within(2.0, functools.partial(in_c, K, threads=2), functools.partial(in_c, K, threads=1))
    return f"busy machine, C gains {one / two:.2f} x" if one / two < 1.8 else ""


def in_c(K: int, threads: int) -> float:
    """Return the seconds of all rounds in C."""
    graph = sl.graphs.cliques([5] * (K // 5))
    begun = time.perf_counter()
    with concurrent.futures.ThreadPoolExecutor(threads) as pool:
        list(pool.map(lambda seed: reference.play(graph, means(K), ROUNDS[K], seed), range(RUNS)))
    return time.perf_counter() - begun


if __name__ == "__main__":
    print_table(rows())
