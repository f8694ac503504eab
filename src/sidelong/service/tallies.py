"""What is counted while an experiment goes on: all that its state page shows beside what the learner itself knows.

The loss of arm j in a round is estimated by l_j / P_j if j was revealed and by 0 if not, where P_j is the probability
that it would be revealed: unbiased in any world. The sums of it, of its square and of its product with the loss of the
arm that was played give the mean cost of each arm, the regret, and their confidence intervals.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Mapping

    from sidelong.service.journal import Event

__all__ = ["MINUTES", "Tallies"]

MINUTES = 1440  #: how many minutes the rates go back
_ARRAYS = ("plays", "observations", "losses", "weighted", "squares", "products", "expected", "own", "counts")


class Tallies:
    """The sums over the told rounds, and how many decisions became what."""

    def __init__(self, n_arms: int) -> None:
        self.plays = np.zeros(n_arms, np.int64)
        self.observations = np.zeros(n_arms, np.int64)
        self.losses = np.zeros(n_arms)  #: that were seen
        self.weighted = np.zeros(n_arms)  #: sum of x, the losses by importance weights
        self.squares = np.zeros(n_arms)  #: sum of x^2
        self.products = np.zeros(n_arms)  #: sum of x times the own loss
        self.expected = np.zeros(n_arms)  #: sum of the probabilities of playing
        self.own = np.zeros(2)  #: sums of the own loss and its square
        #: By kind of event, then the told rounds that had a graph of their own, that had no probabilities of observing,
        #: whose own loss was not revealed, and that had no probabilities of playing.
        self.counts = np.zeros(10, np.int64)
        self.minutes: dict[int, list[int]] = {}

    def happened(self, event: Event) -> None:
        """Count an event."""
        self.counts[event.kind] += 1
        self.minutes.setdefault(event.at // 60_000_000, [0] * 6)[event.kind] += 1
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
        self.plays[arm] += 1
        self.observations[at] += 1
        self.losses[at] += losses
        self.counts[6] += after
        own = next((float(losses[place]) for place in np.flatnonzero(at == arm)), None)
        if own is None:
            self.counts[8] += 1
        else:
            self.own[0] += own
            self.own[1] += own * own
        if p is None:
            self.counts[9] += 1
        else:
            self.expected += p
        if observe is None:
            self.counts[7] += 1
            return
        x = losses / observe
        self.weighted[at] += x
        self.squares[at] += x * x
        if own is not None:
            self.products[at] += x * own

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
        return tallies
