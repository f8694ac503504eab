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
        rows = {int(arm): row for arm, row in reply["reveals"].items()}
        listed = np.array(sorted(rows), np.int64)
        each = [np.array(rows[arm], np.int32) for arm in listed.tolist()]
        begin = np.append(0, np.cumsum([row.size for row in each], dtype=np.int64))
        which = np.searchsorted(listed, arms)
        sizes = np.diff(begin)[which]
        offsets = np.append(0, np.cumsum(sizes))
        places = np.repeat(begin[which] - offsets[:-1], sizes) + np.arange(offsets[-1])
        reveals = np.concatenate([np.empty(0, np.int32), *each])[places]
        known = reply["probabilities"]
        p = np.full(arms.size, np.nan) if known is None else np.array(known, np.float64)
        rounds = np.array(reply["rounds"], np.int64)
        return cls(experiment, reply["ids"], numbers, keys, rounds, arms, p, reveals, offsets)

    @classmethod
    def read_items(cls, reply: dict[str, Any], experiment: str) -> Self:
        """Make one of the decisions of an experiment without keys: each key is None."""
        items = reply["items"]
        begin = items[0]["id"].rpartition("-")[0] + "-"
        numbers = np.array([int(each["id"].removeprefix(begin)) for each in items], np.int64)
        p = [np.nan if each["probability"] is None else each["probability"] for each in items]
        rows = [np.array(each["reveals"], np.int32) for each in items]
        rounds, arms = (np.array([each[name] for each in items], np.int64) for name in ("round", "arm"))
        offsets = np.append(0, np.cumsum([row.size for row in rows]))
        keys = [None] * len(items)
        return cls(experiment, begin, numbers, keys, rounds, arms, np.array(p), np.concatenate(rows), offsets)

    @property
    def has_keys(self) -> bool:
        """Whether these are decisions for keys."""
        return not self.keys or self.keys[0] is not None

    def __repr__(self) -> str:
        return super().__repr__() if self.has_keys else f"<RemoteBatch of {len(self):,} decisions>"

    def _named(self, columns: tuple[Any, ...], parts: Sequence[tuple[Self, Any]]) -> Self:
        numbers = np.concatenate([part.numbers if at is None else part.numbers[at] for part, at in parts])
        return type(self)(self.experiment, self.begin, numbers, *columns)
