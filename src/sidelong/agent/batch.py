"""What a family answers to `ask`: a decision for each key, in columns."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

from sidelong.batches import BatchColumns

if TYPE_CHECKING:
    from collections.abc import Sequence


class Batch(BatchColumns):
    """The decisions of some keys, in the order in which the keys were given.

    ``batch[mask]`` is a batch of some of them, for feedback that comes in parts.
    """

    def __init__(self, tag: str, *columns: Any) -> None:
        super().__init__(*columns)
        self.tag = tag  #: what the ids have in them: the same for all decisions of a family

    @property
    def ids(self) -> list[str]:
        """What names each decision: pass it to `tell` of the same family, from anywhere."""
        return [f"{t}-{self.tag}-{key}" for t, key in zip(self.rounds.tolist(), self.keys, strict=True)]

    def _named(self, columns: tuple[Any, ...], parts: Sequence[tuple[Self, Any]]) -> Self:  # noqa: ARG002  # the keys name them
        return type(self)(self.tag, *columns)
