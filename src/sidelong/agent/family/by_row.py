"""A family by the rows of its keys, for whoever keeps these: no key is looked up, and nothing is checked twice."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from sidelong.agent.family.asking import ask_rows
from sidelong.agent.family.hearing import Heard, Meant
from sidelong.agent.family.settling import Settling
from sidelong.errors import DecisionError

if TYPE_CHECKING:
    import numpy.typing as npt

    from sidelong.agent.family.asking import DrawnColumns
    from sidelong.agent.family.store import KeyStore
    from sidelong.graphs.graph import FeedbackGraph

    Integers = npt.NDArray[np.int64]
    Floats = npt.NDArray[np.float64]


class ByRow:
    """The keys of a family by their rows, which count from 0 in the order in which keys came. It keeps nothing."""

    def __init__(self, store: KeyStore, tag: str, threads: int) -> None:
        self._store = store
        self._tag = tag
        self._threads = threads

    def ask(self, row: Integers, graph: FeedbackGraph | None = None) -> DrawnColumns:
        """Draw an arm for each of some rows, as `Family.ask` does for their keys."""
        return ask_rows(self._store, row, self._store.bank.asked(graph, None, row.size), self._threads)

    def tell(
        self, row: Integers, round_: Integers, losses: Floats, graph: FeedbackGraph | None = None, *, learn: bool = True
    ) -> Floats:
        """Learn what pending decisions revealed, as `Family.tell` does, or give them up.

        Returns:
            What `Family.observe_probabilities` returns of them before that.
        """
        store, settling = self._store, Settling(self._store, Heard(Meant(row, round_), losses, losses), self._tag)
        slot = _pending(settling.slot, row, round_)
        asked = store.waiting.graph[slot]
        observed = store.observe(slot, asked if graph is None else store.bank.told(graph, asked))
        if learn:
            store.tell(settling.settle(graph), self._threads)
        else:
            store.drop(slot)
        return observed

    def cancel(self, row: Integers, round_: Integers) -> None:
        """Give up pending decisions."""
        self._store.drop(_pending(self._store.find(row, round_), row, round_))


def _pending(slot: Integers, row: Integers, round_: Integers) -> Integers:
    if (slot < 0).any():
        at = int(np.argmin(slot))
        raise DecisionError(f"Decision {round_[at]} of the key in row {row[at]} does not wait.")
    return slot
