"""Many decisions that came over the network, in columns."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    Key = str | int


class RemoteBatch:
    """What a service answers to `ask_many`, with the names of a family's `Batch`.

    ``batch[mask]`` is a batch of some of them, for feedback that comes in parts.
    """

    def __init__(
        self,
        experiment: str,
        keys: list[Key],
        ids: list[str],
        rounds: npt.NDArray[np.int64],
        arms: npt.NDArray[np.int64],
        probabilities: npt.NDArray[np.float64],
        reveals: npt.NDArray[np.int32],
        offsets: npt.NDArray[np.int64],
    ) -> None:
        self.experiment = experiment  #: the name of the experiment that made them
        self.keys = keys
        self.ids = ids  #: what names each decision: pass it to `tell_many`, from anywhere
        self.rounds = rounds  #: the number of the round of each key, from 1
        self.arms = arms  #: the arm to play for each key
        self.probabilities = probabilities  #: with which it was drawn; NaN if the learner draws without knowing it
        self.reveals = reveals  #: the arms whose losses are revealed, key after key: what `tell_many` wants to know
        self.offsets = offsets  #: decision i reveals ``reveals[offsets[i]:offsets[i + 1]]``
        for array in (rounds, arms, probabilities, reveals, offsets):
            array.setflags(write=False)

    @classmethod
    def read(cls, reply: dict[str, Any], experiment: str, keys: list[Key]) -> Self:
        """Make one of a reply in columns."""
        arms = np.array(reply["arms"], np.int64)
        begin, first = reply["ids"], reply["first"]
        ids = [f"{begin}{number}" for number in range(first, first + arms.size)]
        rows = {int(arm): np.array(row, np.int32) for arm, row in reply["reveals"].items()}
        offsets = np.append(0, np.cumsum(np.array([rows[arm].size for arm in arms.tolist()], np.int64)))
        reveals = np.concatenate([rows[arm] for arm in arms.tolist()])
        known = reply["probabilities"]
        p = np.full(arms.size, np.nan) if known is None else np.array(known, np.float64)
        return cls(experiment, keys, ids, np.array(reply["rounds"], np.int64), arms, p, reveals, offsets)

    @classmethod
    def join(cls, parts: Sequence[Self], order: npt.NDArray[np.int64] | None = None) -> Self:
        """Return the decisions of several batches; those of place k come from place order[k] of all together."""
        if len(parts) == 1 and order is None:
            return parts[0]
        sizes = np.concatenate([np.diff(part.offsets) for part in parts])
        together = cls(
            parts[0].experiment,
            [key for part in parts for key in part.keys],
            [id_ for part in parts for id_ in part.ids],
            np.concatenate([part.rounds for part in parts]),
            np.concatenate([part.arms for part in parts]),
            np.concatenate([part.probabilities for part in parts]),
            np.concatenate([part.reveals for part in parts]),
            np.append(0, np.cumsum(sizes)),
        )
        return together if order is None else together[order]

    def to_arrow(self, *, reveals: bool = False) -> Any:
        """Return a table for pandas, Polars or Arrow: key, decision, arm and probability.

        Args:
            reveals: whether to return a row for each arm that is revealed instead: key, decision, arm. With a column
                ``loss`` added, it is what `tell_many` takes.
        """
        from sidelong.agent.family.tables import arrow_table  # noqa: PLC0415  # takes the compiler along

        if not reveals:
            numbers = {"arm": self.arms, "probability": self.probabilities}
            return arrow_table({"key": self.keys, "decision": self.ids, **numbers})
        of = np.repeat(np.arange(len(self)), np.diff(self.offsets))
        names = arrow_table({"key": self.keys, "decision": self.ids}).take(of)
        return names.append_column("arm", [self.reveals])

    def __len__(self) -> int:
        return len(self.ids)

    def __getitem__(self, chosen: Any) -> Self:
        """Return the decisions that a slice, flags or places choose."""
        at = np.arange(len(self))[np.atleast_1d(chosen) if not isinstance(chosen, slice) else chosen]
        sizes = np.diff(self.offsets)[at]
        offsets = np.append(0, np.cumsum(sizes))
        source = np.repeat(self.offsets[at] - offsets[:-1], sizes) + np.arange(offsets[-1])
        keys, ids = ([column[k] for k in at.tolist()] for column in (self.keys, self.ids))
        columns = self.rounds[at], self.arms[at], self.probabilities[at]
        return type(self)(self.experiment, keys, ids, *columns, self.reveals[source], offsets)

    def __repr__(self) -> str:
        some = ", ".join(map(repr, self.keys[:3])) + ", ..." * (len(self) > 3)
        return f"<RemoteBatch of {len(self):,} decisions, for {some}>"
