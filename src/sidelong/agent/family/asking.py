"""One call of `Family.ask`: from keys, graphs and available arms to decisions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from sidelong.agent.family.batch import Batch
from sidelong.agent.family.kernels import AskBatch
from sidelong.keys import read_keys
from sidelong.learners.interface import refusal

if TYPE_CHECKING:
    import numpy.typing as npt

    from sidelong.agent.family.store import KeyStore

    Integers = npt.NDArray[np.int64]


class DrawnColumns(NamedTuple):
    """What was drawn for some rows: the columns of a batch behind its keys."""

    rounds: Integers
    arms: Integers
    probabilities: npt.NDArray[np.float64]
    reveals: npt.NDArray[np.int32]
    offsets: Integers


def ask(store: KeyStore, tag: str, keys: Any, graph: Any, available: Any, threads: int) -> Batch:
    """Draw an arm for each key; everything is checked before anything changes."""
    listed = read_keys(keys)
    n = len(listed)
    places = store.bank.asked(graph, available, n)
    row = store.keys.find(listed)
    new = store.keys.new_among(listed, row)
    if new:
        added = store.add(new)
        row = added if len(new) == n else store.keys.find(listed)
    return Batch(tag, listed, *ask_rows(store, row, places, threads))


def ask_rows(store: KeyStore, row: Integers, places: Integers, threads: int) -> DrawnColumns:
    """Draw an arm for each row, on graphs by their places."""
    n = row.size
    slot = store.take(n)
    order = np.argsort(row, kind="stable")
    asked = AskBatch(row[order], places[order], slot, np.full(n, -1), np.empty(n, np.int64), np.empty(n))
    store.ask(asked, threads)
    wrong = np.flatnonzero((asked.arm < 0) | (asked.arm >= store.bank.own.n_arms))
    if wrong.size:
        place = wrong[0]
        t, arm = int(store.rows.round[asked.row[place]]) + 1, int(asked.arm[place])
        raise refusal(store.learner, t, store.waiting.p[slot[place]], arm, store.bank.own.n_arms)
    back = np.empty(n, np.int64)
    back[order] = np.arange(n)
    arms = asked.arm[back]
    reveals, offsets = store.reveals(places, arms)
    rounds = store.waiting.round[slot][back]
    return DrawnColumns(rounds, arms, asked.probability[back], reveals, offsets)
