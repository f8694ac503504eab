"""A bank of graphs as kernels see it, and the graph of a round."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from sidelong._jit import kernel, rare_kernel
from sidelong.graphs.arrays import GraphArrays
from sidelong.numerics import GRAPHS, uniform, uniform_pair

if TYPE_CHECKING:
    import numpy.typing as npt

    from sidelong.graphs.graph import FeedbackGraph
    from sidelong.numerics import Whole

CYCLE, DRAWN, RESAMPLED, SHADOWS = range(4)


class BankArrays(NamedTuple):
    """The arrays of all graphs of a bank, one after the other; read-only, as those of a graph are.

    A graph that is drawn anew each round is written into `rows`, `lists` and `spare`, which lie under the others.
    """

    kind: int
    schedule: np.ndarray  #: int64; the graph of each round, repeated for ever; or what a drawn graph needs to know
    numbers: np.ndarray  #: float64; the cumulated weights of the graphs, or the chance of an arc
    keys: np.ndarray  #: int64, (n,)
    contiguous: np.ndarray  #: bool, (n,)
    direction: np.ndarray  #: int64, (n,)
    ends: np.ndarray  #: int64, (4, n + 1): where each graph's targets, sources, leaving and fresh lie
    start: np.ndarray  #: int64, (n, K)
    stop: np.ndarray
    targets: np.ndarray
    in_start: np.ndarray
    in_stop: np.ndarray
    sources: np.ndarray
    leaving: np.ndarray
    fresh: np.ndarray
    rows: np.ndarray  #: int64, (4, K): start, stop, in_start, in_stop
    lists: np.ndarray  #: int32, (2, edges): targets, sources
    spare: np.ndarray  #: int32, (K,)


def lay_out(
    kind: int,
    schedule: npt.NDArray[np.int64],
    numbers: npt.NDArray[np.float64],
    bank: tuple[FeedbackGraph, ...],
    n_arms: int,
) -> BankArrays:
    """Return the arrays of a bank, or memory for one graph that is drawn anew each round."""
    graphs = [graph.arrays for graph in bank]
    if graphs:
        rows, lists, spare = np.empty((4, 0), np.int64), np.empty((2, 0), np.int32), np.empty(0, np.int32)
        tables = {name: _stack([getattr(graph, name) for graph in graphs]) for name in _ROWS}
        tables |= {name: _join([getattr(graph, name) for graph in graphs]) for name in _LISTS}
        sizes = [[getattr(graph, name).size for graph in graphs] for name in _LISTS]
    else:
        most = n_arms * n_arms if kind == RESAMPLED else n_arms * (int(schedule[0]) + 1)
        rows, lists = np.zeros((4, n_arms), np.int64), np.zeros((2, most), np.int32)
        spare = np.zeros(n_arms, np.int32)
        tables = {name: rows[k : k + 1] for k, name in enumerate(_ROWS)}
        tables |= {"targets": lists[0], "sources": lists[1], "leaving": spare[:0], "fresh": np.empty(0, np.bool_)}
        sizes = [[most], [most], [0], [0]]
    ends = np.zeros((4, len(sizes[0]) + 1), np.int64)
    ends[:, 1:] = np.cumsum(sizes, axis=1)
    return BankArrays(
        kind=kind,
        schedule=schedule,
        numbers=numbers,
        keys=np.array([graph.key for graph in graphs] or [0], np.int64),
        contiguous=np.array([graph.contiguous for graph in graphs] or [False], np.bool_),
        direction=np.array([graph.direction for graph in graphs] or [0], np.int64),
        ends=ends,
        **{name: _read_only(table) for name, table in tables.items()},
        rows=rows,
        lists=lists,
        spare=spare,
    )


_ROWS = ("start", "stop", "in_start", "in_stop")
_LISTS = ("targets", "sources", "leaving", "fresh")


def _stack(arrays: list[np.ndarray]) -> np.ndarray:
    return arrays[0][None] if len(arrays) == 1 else np.stack(arrays)  # one graph is not copied


def _join(arrays: list[np.ndarray]) -> np.ndarray:
    return arrays[0] if len(arrays) == 1 else np.concatenate(arrays)


def _read_only(array: np.ndarray) -> np.ndarray:
    view = array.view()
    view.flags.writeable = False
    return view


@kernel
def pick(bank: BankArrays, seed: Whole, run: Whole, t: Whole) -> int:
    """Return which graph of the bank round t has; -1 - t if it is drawn anew."""
    if bank.schedule.size == 1 and bank.kind == CYCLE:
        return bank.schedule[0]  # type: ignore[no-any-return]  # a division saved, and most banks are one graph
    if bank.kind == CYCLE:
        return bank.schedule[(t - 1) % bank.schedule.size]  # type: ignore[no-any-return]
    if bank.kind == DRAWN:
        u = uniform(seed, GRAPHS, run, t, np.int64(0))
        g = 0
        while g + 1 < bank.numbers.size and bank.numbers[g] <= u:
            g += 1
        return g
    return -1 - t


@kernel
def select(bank: BankArrays, index: Whole) -> GraphArrays:
    """Return the graph that `pick` named; one that is drawn anew must have been redrawn."""
    g = max(index, 0)
    ends = bank.ends
    return GraphArrays(
        bank.keys[g] if index >= 0 else index - 1,  # a drawn graph has a key of its own; those of others are positive
        bank.contiguous[g],
        bank.direction[g],
        bank.start[g],
        bank.stop[g],
        bank.targets[ends[0, g] : ends[0, g + 1]],
        bank.in_start[g],
        bank.in_stop[g],
        bank.sources[ends[1, g] : ends[1, g + 1]],
        bank.leaving[ends[2, g] : ends[2, g + 1]],
        bank.fresh[ends[3, g] : ends[3, g + 1]],
    )


@kernel
def keep(bank: BankArrays, seed: Whole, run: Whole, t: Whole) -> None:
    """Stand for `redraw` in a loop over graphs none of which is drawn anew: it compiles two seconds faster."""


@rare_kernel
def redraw(bank: BankArrays, seed: Whole, run: Whole, t: Whole) -> None:
    """Draw the graph of round t into `rows` and `lists`."""
    if bank.kind == RESAMPLED:
        _resample(bank, seed, run, t)
    else:
        _shadow(bank, seed, run, t)


@kernel
def _resample(bank: BankArrays, seed: Whole, run: Whole, t: Whole) -> None:
    K = bank.rows.shape[1]
    directed = bank.schedule[0] == 1
    edges = 0
    block, even, odd = -1, 0.0, 0.0  # the random numbers at hand, two at a time
    for i in range(K):
        bank.rows[0, i] = edges
        for j in range(K):
            arc = i * K + j if directed or i < j else j * K + i
            if arc // 2 != block:
                block = arc // 2
                even, odd = uniform_pair(seed, GRAPHS, run, t, block)
            if i == j or (odd if arc % 2 == 1 else even) < bank.numbers[0]:
                bank.lists[0, edges] = j
                edges += 1
        bank.rows[1, i] = edges
    _reverse(bank)


@kernel
def _shadow(bank: BankArrays, seed: Whole, run: Whole, t: Whole) -> None:
    K = bank.rows.shape[1]
    capacity = bank.schedule[0]
    even, odd = uniform_pair(seed, GRAPHS, run, t, np.int64(0))
    count = int(even * (capacity + 1))
    # Selection sampling: arm j is shadowed with the chance that leaves every subset of `count` arms equally likely.
    shadowed = bank.spare
    found = 0
    for j in range(K):
        if j % 2 == 1:
            even, odd = uniform_pair(seed, GRAPHS, run, t, (1 + j) // 2)
        if (odd if j % 2 == 0 else even) * (K - j) < count - found:  # the number 1 + j
            shadowed[found] = j
            found += 1
    edges = 0
    for i in range(K):
        bank.rows[0, i] = edges
        own = True
        for k in range(found):
            if own and shadowed[k] >= i:
                own = False
                if shadowed[k] > i:
                    bank.lists[0, edges] = i
                    edges += 1
            bank.lists[0, edges] = shadowed[k]
            edges += 1
        if own:
            bank.lists[0, edges] = i
            edges += 1
        bank.rows[1, i] = edges
    _reverse(bank)


@kernel
def _reverse(bank: BankArrays) -> None:
    """Fill in who reveals each arm from whom each arm reveals."""
    K = bank.rows.shape[1]
    first, after = bank.rows[2], bank.rows[3]
    for i in range(K):
        after[i] = 0
    for e in range(bank.rows[1, K - 1]):
        after[bank.lists[0, e]] += 1
    position = 0
    for i in range(K):
        count = after[i]
        first[i] = position
        after[i] = position
        position += count
    for i in range(K):
        for e in range(bank.rows[0, i], bank.rows[1, i]):
            j = bank.lists[0, e]
            bank.lists[1, after[j]] = i
            after[j] += 1
