"""One call of `Family.ask`: from keys, graphs and available arms to decisions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from sidelong.agent.family.batch import Batch
from sidelong.agent.family.kernels import Asked
from sidelong.agent.family.keys import read_keys

if TYPE_CHECKING:
    from sidelong.agent.family.store import KeyStore


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
    slot = store.take(n)
    order = np.argsort(row, kind="stable")
    asked = Asked(row[order], places[order], slot, np.full(n, -1), np.empty(n, np.int64), np.empty(n))
    store.ask(asked, threads)
    back = np.empty(n, np.int64)
    back[order] = np.arange(n)
    arms = asked.arm[back]
    reveals, offsets = store.reveals(places, arms)
    rounds = store.waiting.round[slot][back]
    return Batch(tag, listed, rounds, arms, asked.probability[back], reveals, offsets)
