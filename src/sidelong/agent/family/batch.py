"""What a family answers to `ask`: a decision for each key, in columns."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from sidelong.agent.family.tables import arrow_table

if TYPE_CHECKING:
    import numpy.typing as npt

    from sidelong.agent.family.keys import Key


class Batch:
    """The decisions of some keys, in the order in which the keys were given.

    ``batch[mask]`` is a batch of some of them, for feedback that comes in parts.
    """

    def __init__(
        self,
        tag: str,
        keys: list[Key],
        rounds: npt.NDArray[np.int64],
        arms: npt.NDArray[np.int64],
        probabilities: npt.NDArray[np.float64],
        reveals: npt.NDArray[np.int32],
        offsets: npt.NDArray[np.int64],
    ) -> None:
        self._tag = tag
        self.keys = keys
        self.rounds = rounds  #: the number of the round of each key, from 1
        self.arms = arms  #: the arm to play for each key
        self.probabilities = probabilities  #: with which it was drawn; NaN if the learner draws without knowing it
        self.reveals = reveals  #: the arms whose losses are revealed, key after key: what `tell` wants to know
        self.offsets = offsets  #: decision i reveals ``reveals[offsets[i]:offsets[i + 1]]``
        for array in (rounds, arms, probabilities, reveals, offsets):
            array.setflags(write=False)

    @property
    def ids(self) -> list[str]:
        """What names each decision: pass it to `tell` of the same family, from anywhere."""
        return [f"{t}-{self._tag}-{key}" for t, key in zip(self.rounds.tolist(), self.keys, strict=True)]

    def to_arrow(self, *, reveals: bool = False) -> Any:
        """Return a table for pandas, Polars or Arrow: key, decision, arm and probability.

        Args:
            reveals: whether to return a row for each arm that is revealed instead: key, decision, arm. With a column
                ``loss`` added, it is what `tell` takes.
        """
        if not reveals:
            numbers = {"arm": self.arms, "probability": self.probabilities}
            return arrow_table({"key": self.keys, "decision": self.ids, **numbers})
        of = np.repeat(np.arange(len(self)), np.diff(self.offsets))
        names = arrow_table({"key": self.keys, "decision": self.ids}).take(of)
        return names.append_column("arm", [self.reveals])

    def __len__(self) -> int:
        return len(self.keys)

    def __getitem__(self, chosen: Any) -> Batch:
        """Return the decisions that a slice, flags or places choose."""
        if not isinstance(chosen, slice):
            chosen = np.atleast_1d(chosen) if np.size(chosen) else np.empty(0, np.int64)  # [] is of no type
        at = np.arange(len(self))[chosen]
        sizes = np.diff(self.offsets)[at]
        offsets = np.append(0, np.cumsum(sizes))
        source = np.repeat(self.offsets[at] - offsets[:-1], sizes) + np.arange(offsets[-1])
        keys = [self.keys[k] for k in at.tolist()]
        columns = self.rounds[at], self.arms[at], self.probabilities[at]
        return Batch(self._tag, keys, *columns, self.reveals[source], offsets)

    def __repr__(self) -> str:
        some = ", ".join(map(repr, self.keys[:3])) + ", ..." * (len(self) > 3)
        return f"<Batch of {len(self):,} decisions, for {some}>"
