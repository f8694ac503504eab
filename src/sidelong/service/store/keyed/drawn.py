"""Decisions for keys that wait, batch by batch, and what some of them reveal together."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt

    from sidelong.service.store.experiment import Moment
    from sidelong.service.store.graphs import KnownGraph
    from sidelong.service.store.keyed.asides import Mixed

    Integers = npt.NDArray[np.int64]
    Floats = npt.NDArray[np.float64]
    Parts = list[tuple["DrawnBatch", Integers]]  # batches, and places of decisions there


class DrawnBatch:
    """A batch of decisions, of which some still wait."""

    __slots__ = ("batch", "given", "graph", "kind", "left", "moment", "numbers", "observe", "rows", "waits")

    def __init__(
        self, numbers: Integers, made: Mixed, rows: Integers, graph: KnownGraph | None, moment: Moment
    ) -> None:
        self.numbers = numbers  #: ascending
        self.kind, self.batch, self.given, self.observe = made
        self.rows = rows  #: of the keys, among all keys
        self.graph = graph  #: None for the experiment's own
        self.moment = moment
        self.waits = np.ones(numbers.size, np.bool_)
        self.left = numbers.size

    def observed(self, places: Integers) -> Floats:
        """Return, for decisions that are not the learner's, the probability of revealing each arm that they reveal."""
        sizes = np.where(self.given, np.diff(self.batch.offsets), 0)
        ends = np.cumsum(sizes)
        return np.concatenate([np.empty(0), *(self.observe[ends[k] - sizes[k] : ends[k]] for k in places.tolist())])

    def place(self, number: int) -> int:
        """Return the place of a decision that waits, -1 if it does not."""
        at = int(np.searchsorted(self.numbers, number))
        found = at < self.numbers.size and self.numbers[at] == number and bool(self.waits[at])
        return at if found else -1

    def reveals(self, place: int) -> npt.NDArray[np.int32]:
        """Return the arms that a decision reveals."""
        return self.batch.reveals[self.batch.offsets[place] : self.batch.offsets[place + 1]]


class HeardColumns(NamedTuple):
    """What decisions have revealed."""

    arms: Integers  #: of each decision
    rows: Integers  #: and its key
    of: Integers  #: for each loss, the decision
    reveals: npt.NDArray[np.int32]  #: and the arm
    own: npt.NDArray[np.bool_]  #: and whether that was played
    paid: Floats  #: of each decision: the loss of the arm that was played; NaN if that was not revealed


def together(parts: Parts) -> tuple[Integers, Integers]:
    """Return decisions of one batch or of several by the rounds and the rows of their keys."""
    rounds = np.concatenate([drawn.batch.rounds[places] for drawn, places in parts])
    return rounds, np.concatenate([drawn.rows[places] for drawn, places in parts])


def revealed_by(parts: Parts) -> npt.NDArray[np.int32]:
    """Return the arms that decisions reveal, decision after decision."""
    found = []
    for drawn, places in parts:
        offsets = drawn.batch.offsets
        if places.size == drawn.numbers.size:  # all of them
            found.append(drawn.batch.reveals)
            continue
        sizes = offsets[places + 1] - offsets[places]
        begin = np.append(0, np.cumsum(sizes))
        found.append(drawn.batch.reveals[np.repeat(offsets[places] - begin[:-1], sizes) + np.arange(begin[-1])])
    return found[0] if len(found) == 1 else np.concatenate(found)


def is_aside(parts: Parts) -> bool:
    """Tell whether decisions, which are of one sort, are not the learner's."""
    drawn, places = parts[0]
    return bool(drawn.given[places[0]])


def observed(parts: Parts) -> Floats:
    """Return the same as `DrawnBatch.observed`, of decisions of several batches."""
    return np.concatenate([drawn.observed(places) for drawn, places in parts])
