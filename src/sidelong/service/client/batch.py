"""Many decisions that came over the network, in columns."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import numpy as np

from sidelong.batches import BatchColumns

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    Key = str | int


class RemoteBatch(BatchColumns):
    """What a service answers to `ask_many`, with the names of a family's `Batch`.

    ``batch[mask]`` is a batch of some of them, for feedback that comes in parts.
    """

    def __init__(self, experiment: str, begin: str, numbers: npt.NDArray[np.int64], *columns: Any) -> None:
        super().__init__(*columns)
        self.experiment = experiment  #: the name of the experiment that made them
        self.begin = begin  #: what all ids begin with
        self.numbers = numbers  #: and what each ends with

    @property
    def ids(self) -> list[str]:
        """What names each decision: pass it to `tell_many`, from anywhere."""
        return [f"{self.begin}{number}" for number in self.numbers.tolist()]

    @classmethod
    def read(cls, reply: dict[str, Any], experiment: str, keys: list[Key]) -> Self:
        """Make one of a reply in columns."""
        arms = np.array(reply["arms"], np.int64)
        numbers = np.arange(reply["first"], reply["first"] + arms.size)
        rows = {int(arm): np.array(row, np.int32) for arm, row in reply["reveals"].items()}
        offsets = np.append(0, np.cumsum(np.array([rows[arm].size for arm in arms.tolist()], np.int64)))
        reveals = np.concatenate([np.empty(0, np.int32), *(rows[arm] for arm in arms.tolist())])
        known = reply["probabilities"]
        p = np.full(arms.size, np.nan) if known is None else np.array(known, np.float64)
        rounds = np.array(reply["rounds"], np.int64)
        return cls(experiment, reply["ids"], numbers, keys, rounds, arms, p, reveals, offsets)

    def _named(self, columns: tuple[Any, ...], parts: Sequence[tuple[Self, Any]]) -> Self:
        numbers = np.concatenate([part.numbers if at is None else part.numbers[at] for part, at in parts])
        return type(self)(self.experiment, self.begin, numbers, *columns)
