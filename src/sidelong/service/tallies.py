"""What is counted while an experiment goes on: all that its state page shows beside what the learner itself knows.

The loss of arm j in a round is estimated by l_j / P_j if j was revealed and by 0 if not, where P_j is the probability
that it would be revealed: unbiased in any world. The sums of it, of its square and of its product with the loss of the
arm that was played give the mean cost of each arm, the regret, and their confidence intervals.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from sidelong.service.journal import Kind

if TYPE_CHECKING:
    from collections.abc import Mapping

    from sidelong.service.journal import Event

__all__ = ["BLIND", "HIDDEN", "MINUTES", "OWN_GRAPH", "UNWEIGHED", "Tallies"]

MINUTES = 1440  #: how many minutes the rates go back
#: In `Tallies.counts`, after the kinds of events: told rounds that had a graph of their own, that had no probabilities
#: of observing, whose own loss was not revealed, and that had no probabilities of playing.
OWN_GRAPH, BLIND, HIDDEN, UNWEIGHED = range(len(Kind), len(Kind) + 4)
_ARRAYS = ("plays", "expected", "sums", "own", "counts")


class Tallies:
    """The sums over the told rounds, and how many decisions became what."""

    def __init__(self, n_arms: int) -> None:
        self.plays = np.zeros(n_arms, np.int64)
        self.expected = np.zeros(n_arms)  #: sum of the probabilities of playing
        self.sums = np.zeros((5, n_arms))  #: one array, since NumPy takes as long for one row as for five
        self.own = np.zeros(2)  #: sums of the own loss and its square
        self.counts = np.zeros(len(Kind) + 4, np.int64)  #: by kind of event, then four sorts of told rounds
        self.minutes: dict[int, list[int]] = {}
        self._name_rows()

    def _name_rows(self) -> None:
        #: Of each arm: how often it was seen, its losses then, and the sums of x, x^2 and x times the own loss, where x
        #: is its loss by importance weights.
        self.observations, self.losses, self.weighted, self.squares, self.products = self.sums

    def happened(self, event: Event) -> None:
        """Count an event."""
        self.counts[event.kind] += 1
        self.minutes.setdefault(event.at // 60_000_000, [0] * len(Kind))[event.kind] += 1
        if len(self.minutes) > MINUTES:
            del self.minutes[min(self.minutes)]

    def told(
        self,
        arm: int,
        p: np.ndarray | None,
        reveals: np.ndarray,
        losses: np.ndarray,
        observe: np.ndarray | None,
        *,
        after: bool,
    ) -> None:
        """Count the losses that playing an arm revealed; `after` says that the graph came with them."""
        at = reveals.astype(np.intp)  # NumPy is five times as slow with other integers
        place = int(at.searchsorted(arm))
        own = float(losses[place]) if place < at.size and at[place] == arm else None
        if own is None:
            self.counts[HIDDEN] += 1
        else:
            self.own[0] += own
            self.own[1] += own * own
        self.plays[arm] += 1
        self.counts[OWN_GRAPH] += after
        if p is None:
            self.counts[UNWEIGHED] += 1
        else:
            self.expected += p
        new = np.zeros((5, at.size))
        new[0], new[1] = 1.0, losses
        if observe is None:
            self.counts[BLIND] += 1
        else:
            x = np.divide(losses, observe, out=new[2])
            np.multiply(x, x, out=new[3])
            np.multiply(x, own or 0.0, out=new[4])
        self.sums[:, at] += new

    def contents(self) -> tuple[list[list[int]], dict[str, np.ndarray]]:
        """Return everything, for a snapshot."""
        arrays = {f"tallies.{name}": getattr(self, name) for name in _ARRAYS}
        return [[minute, *counts] for minute, counts in self.minutes.items()], arrays

    @classmethod
    def from_contents(cls, minutes: list[list[int]], arrays: Mapping[str, Any]) -> Tallies:
        """Go on from what `contents` returned."""
        tallies = cls(0)
        for name in _ARRAYS:
            setattr(tallies, name, arrays[f"tallies.{name}"])
        tallies.minutes = {minute: counts for minute, *counts in minutes}
        tallies._name_rows()  # its own
        return tallies
