"""What a family knows of each key and arm."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from sidelong.checks import short
from sidelong.errors import FamilyError
from sidelong.graphs.presence import present
from sidelong.tables import arrow_table

if TYPE_CHECKING:
    from sidelong.agent.family.store import KeyStore
    from sidelong.keys import Key

#: So many keys at a time have their next probabilities computed.
_CHUNK = 4096


class EstimatesTable:
    """What a family knows: a row for each key and arm, in columns."""

    def __init__(self, **columns: Any) -> None:
        self.keys: list[Any] = columns["key"]  #: the key of each row
        self.arms: np.ndarray = columns["arm"]
        self.means: np.ndarray = columns["mean"]  #: the mean of the losses that were told; NaN if there was none
        self.counts: np.ndarray = columns["count"]  #: how many losses that are
        self.probabilities: np.ndarray = columns["probability"]  #: that the next `ask` would play the arm
        self.best: np.ndarray = columns["best"]  #: whether it is the arm with the least mean of its key
        self.columns: dict[str, Any] = columns  #: all of them by name, as `pandas.DataFrame` takes them

    def to_arrow(self) -> Any:
        """Return a table for pandas, Polars or Arrow."""
        return arrow_table(self.columns)

    def __len__(self) -> int:
        return len(self.keys)

    def __repr__(self) -> str:
        return f"<EstimatesTable of {len(self):,} rows: {', '.join(self.columns)}>"


def outlook_of(store: KeyStore, keys: list[Key], graph: np.ndarray) -> np.ndarray:
    """Return with which probabilities each of some keys would play next, on graphs by their places.

    Raises:
        FamilyError: the family does not have one of them.
    """
    row = store.keys.find(keys)
    if (row < 0).any():
        unknown = short(keys[int(np.argmin(row))])
        raise FamilyError(f"This family has no key {unknown}: it has {len(store.keys):,} others. Ask for it first.")
    pieces = [slice(k, k + _CHUNK) for k in range(0, row.size, _CHUNK)]
    chunks = [store.outlook(row[some], graph[some])[0] for some in pieces]
    return np.concatenate([np.empty((0, store.bank.own.n_arms)), *chunks])


def known_of(store: KeyStore, keys: list[Key]) -> EstimatesTable:
    """Return what is known of some keys.

    Raises:
        FamilyError: the family does not have one of them.
    """
    p = outlook_of(store, keys, np.zeros(len(keys), np.int64))
    row, rows, K = store.keys.find(keys), store.rows, store.bank.own.n_arms
    means = np.where(rows.counts[row] > 0, rows.means[row], np.nan)
    candidates = np.where(present(store.bank.own) & ~np.isnan(means), means, np.inf)
    best = (np.arange(K) == candidates.argmin(axis=1)[:, None]) & np.isfinite(candidates)
    return EstimatesTable(
        key=[key for key in keys for _ in range(K)],
        arm=np.tile(np.arange(K), row.size),
        mean=means.reshape(-1),
        count=rows.counts[row].reshape(-1),
        probability=p.reshape(-1),
        best=best.reshape(-1),
    )
