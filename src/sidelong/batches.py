"""Decisions in columns: what a family and a service answer to whoever asks for many keys at once.

Nothing here takes the compiler along, since a client needs none.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import numpy as np

from sidelong.tables import arrow_table

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    Key = str | int
    Integers = npt.NDArray[np.int64]


class BatchColumns:
    """The decisions of some keys, in the order in which the keys were given.

    ``batch[mask]`` is a batch of some of them, for feedback that comes in parts.
    """

    def __init__(
        self,
        keys: list[Key],
        rounds: Integers,
        arms: Integers,
        probabilities: npt.NDArray[np.float64],
        reveals: npt.NDArray[np.int32],
        offsets: Integers,
    ) -> None:
        self.keys = keys
        self.rounds = rounds  #: the number of the round of each key, from 1
        self.arms = arms  #: the arm to play for each key
        self.probabilities = probabilities  #: with which it was drawn; NaN if the learner draws without knowing it
        self.reveals = reveals  #: the arms whose losses are revealed, key after key: those to be told
        self.offsets = offsets  #: decision i reveals ``reveals[offsets[i]:offsets[i + 1]]``
        for array in (rounds, arms, probabilities, reveals, offsets):
            array.setflags(write=False)

    @property
    def ids(self) -> list[str]:
        """What names each decision: whoever was asked takes it back, from anywhere."""
        raise NotImplementedError

    def _named(self, columns: tuple[Any, ...], parts: Sequence[tuple[Self, Integers | None]]) -> Self:
        """Return a batch of these columns, of these places of some batches; of all places where there are none."""
        raise NotImplementedError

    @classmethod
    def join(cls, parts: Sequence[Self], order: Integers | None = None) -> Self:
        """Return the decisions of several batches; those of place k come from place order[k] of all together."""
        together = parts[0]
        if len(parts) > 1:
            sizes = np.concatenate([np.diff(part.offsets) for part in parts])
            names = ("rounds", "arms", "probabilities", "reveals")
            columns = [np.concatenate([getattr(part, name) for part in parts]) for name in names]
            keys = [key for part in parts for key in part.keys]
            made = (keys, *columns, np.append(0, np.cumsum(sizes)))
            together = parts[0]._named(made, [(part, None) for part in parts])  # noqa: SLF001  # its own
        return together if order is None else together[order]

    def to_arrow(self, *, reveals: bool = False) -> Any:
        """Return a table for pandas, Polars or Arrow: key, decision, arm and probability.

        Args:
            reveals: whether to return a row for each arm that is revealed instead: key, decision, arm. With a column
                ``loss`` added, it is what can be told.
        """
        if not reveals:
            numbers = {"arm": self.arms, "probability": self.probabilities}
            return arrow_table({"key": self.keys, "decision": self.ids, **numbers})
        of = np.repeat(np.arange(len(self)), np.diff(self.offsets))
        names = arrow_table({"key": self.keys, "decision": self.ids}).take(of)
        return names.append_column("arm", [self.reveals])

    def __len__(self) -> int:
        return len(self.keys)

    def __getitem__(self, chosen: Any) -> Self:
        """Return the decisions that a slice, flags or places choose."""
        if not isinstance(chosen, slice):
            chosen = np.atleast_1d(chosen) if np.size(chosen) else np.empty(0, np.int64)  # [] is of no type
        at = np.arange(len(self))[chosen]
        sizes = np.diff(self.offsets)[at]
        offsets = np.append(0, np.cumsum(sizes))
        source = np.repeat(self.offsets[at] - offsets[:-1], sizes) + np.arange(offsets[-1])
        columns = self.rounds[at], self.arms[at], self.probabilities[at], self.reveals[source], offsets
        return self._named(([self.keys[k] for k in at.tolist()], *columns), [(self, at)])

    def __repr__(self) -> str:
        some = ", ".join(map(repr, self.keys[:3])) + ", ..." * (len(self) > 3)
        return f"<{type(self).__name__} of {len(self):,} decisions, for {some}>"
