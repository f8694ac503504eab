"""What is counted while an experiment goes on: all that its state page shows beside what the learner itself knows.

For the costs of arms and the regret it keeps the sums of `sidelong.evaluation.weighing`, and for each outstanding
decision the baselines that its draw froze. Where every round is told before the next one is drawn, the costs are those
that an evaluation of the log would find.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from sidelong.evaluation import lift
from sidelong.evaluation.weighing import ROWS, baselines, weigh
from sidelong.service.store.arm_delays import ArmDelays
from sidelong.service.store.journal import Kind

if TYPE_CHECKING:
    from collections.abc import Mapping

MINUTES = 1440  #: how many minutes the rates go back
#: In `Tallies.counts`, after the kinds of events: told rounds that had a graph of their own, that had no probabilities
#: of observing, whose own loss was not revealed, that had no probabilities of playing, that were told after a later one
#: was drawn, and that were told while the experiment was frozen.
_SORTS = 6
OWN_GRAPH, BLIND, HIDDEN, UNWEIGHED, DELAYED, UNLEARNED = range(len(Kind), len(Kind) + _SORTS)
_ARRAYS = ("plays", "expected", "sums", "paid", "counts", "aside", "lift")
_BETS = ("wealth", "seen", "peak")


class Tallies:
    """The sums over the told rounds, and how many decisions became what."""

    def __init__(self, n_arms: int) -> None:
        self.plays = np.zeros(n_arms, np.int64)
        self.expected = np.zeros(n_arms)  #: sum of the probabilities of playing
        self.sums = np.zeros((ROWS, n_arms))  #: of each arm: see `weigh`
        self.paid = np.zeros(1)  #: sum of the losses of the arms that were played
        self.counts = np.zeros(len(Kind) + _SORTS, np.int64)  #: by kind of event, then some sorts of told rounds
        #: By kind of event: rounds that the learner did not decide. They are in no other count or sum.
        self.aside = np.zeros(len(Kind), np.int64)
        self.minutes: dict[int, list[int]] = {}  #: the events of the last ones, by kind
        self.arm_delays = ArmDelays(n_arms)  #: whether some arms report later than others
        self.lift = np.zeros(lift.ROWS)  #: of rounds for which a coin was tossed: see `sidelong.evaluation.lift`
        self.tossed: dict[int, float] = {}  #: by round, of those of them that are outstanding: b
        self.costs: dict[int, list[float]] = {}  #: by minute, as the first four of `lift`; without a coin, too
        #: By round, of outstanding decisions: the first two rows of the sums when it was drawn, which its baselines are
        #: made of; of all arms, or of those that it reveals where no others can be told.
        self.frozen: dict[int, np.ndarray] = {}
        self._name_rows()
        nothing = np.empty(0)
        weigh(self.sums, nothing.astype(np.intp), nothing, nothing, nothing, 1)  # compiled now: nobody waits for it

    def _name_rows(self) -> None:
        #: Of each arm: how often it was seen, and its losses then.
        self.observations, self.losses = self.sums[:2]
        #: Of each arm, for a round that is drawn now; another array as soon as they change, so that draws share one.
        self.baselines = baselines(self.sums)

    def spare(self, number: int, reveals: np.ndarray) -> None:
        """Freeze the baselines of a round of which no other arms than these can be told; `baselines` are not kept."""
        self.frozen[number] = baselines(self.sums[:, reveals.astype(np.intp)])

    def told(
        self,
        number: int,
        arm: int,
        p: np.ndarray | None,
        reveals: np.ndarray,
        losses: np.ndarray,
        observe: np.ndarray | None,
        *,
        after: bool,
        delay: int,
    ) -> None:
        """Count the losses that playing an arm revealed.

        `after` says that the graph came with them, `delay` how many later decisions were drawn before they came.
        """
        at = reveals.astype(np.intp)  # NumPy is five times as slow with other integers
        place = int(at.searchsorted(arm))
        if place < at.size and at[place] == arm:
            self.paid[0] += losses[place]
        else:
            self.counts[HIDDEN] += 1
        self.plays[arm] += 1
        self.counts[OWN_GRAPH] += after
        self.counts[DELAYED] += delay > 0
        if p is None:
            self.counts[UNWEIGHED] += 1
        else:
            self.expected += p
            self.arm_delays.told(arm, p, delay)
        if observe is None:
            self.counts[BLIND] += 1
            self.sums[:2, at] += np.stack([np.ones(at.size), losses])
        else:
            b = self.frozen.pop(number)
            b = b[at] if b.size == self.plays.size else b
            weigh(self.sums, at, losses, observe, b, int(self.counts[Kind.DECIDED]))
            if p is not None:
                self.baselines = baselines(self.sums)

    def toss(self, number: int, share: float) -> None:
        """Note that a coin decided whether a round is the learner's."""
        self.tossed[number] = lift.baseline(self.lift, share)

    def compare(self, number: int, loss: float | None, share: float, *, held: bool) -> None:
        """Count what a round cost of which a coin decided; None if that was not revealed."""
        b = self.tossed.pop(number)
        if loss is not None:
            lift.add(self.lift, share, loss, b, held=held)

    def paid_in(self, minute: int, loss: float | None, *, held: bool, count: int = 1) -> None:
        """Count what a round cost that was told in a minute, or several together."""
        if loss is not None and count:
            row = self.costs.setdefault(minute, [0.0] * 4)
            row[2 * (not held)] += count
            row[2 * (not held) + 1] += loss
            if len(self.costs) > MINUTES:
                del self.costs[min(self.costs)]

    @property
    def drawn(self) -> int:
        """How many decisions were made, by the learner or without it."""
        counts = self.counts
        return int(counts[Kind.DECIDED] + counts[Kind.PLAYED] + counts[Kind.HELD] + counts[Kind.FALLBACK])

    @property
    def rounds(self) -> int:
        """How many told rounds the sums are over: those whose probabilities of observing are known."""
        return int(self.counts[Kind.TOLD] - self.counts[BLIND])

    def contents(self) -> tuple[list[list[int]], dict[str, np.ndarray]]:
        """Return everything, for a snapshot."""
        arrays = {f"tallies.{name}": getattr(self, name) for name in _ARRAYS}
        arrays |= {f"arm_delays.{name}": getattr(self.arm_delays, name) for name in _BETS}
        arrays["lift.tossed"] = np.array(list(self.tossed.items()), np.float64).reshape(-1, 2)
        arrays["lift.costs"] = np.array([[minute, *row] for minute, row in self.costs.items()], np.float64).reshape(
            -1, 5
        )
        arrays["frozen.round"] = np.array(list(self.frozen), np.int64)
        arrays["frozen.size"] = np.array([b.size for b in self.frozen.values()], np.int64)
        arrays["frozen.baselines"] = np.concatenate([np.empty(0), *self.frozen.values()])
        return [[minute, *counts] for minute, counts in self.minutes.items()], arrays

    @classmethod
    def from_contents(cls, minutes: list[list[int]], arrays: Mapping[str, Any]) -> Tallies:
        """Go on from what `contents` returned."""
        tallies = cls(0)
        for name in _ARRAYS:
            setattr(tallies, name, arrays[f"tallies.{name}"])
        for name in _BETS:
            setattr(tallies.arm_delays, name, arrays[f"arm_delays.{name}"])
        tallies.minutes = {minute: counts for minute, *counts in minutes}
        tallies.tossed = {int(number): b for number, b in arrays["lift.tossed"].tolist()}
        tallies.costs = {int(minute): row for minute, *row in arrays["lift.costs"].tolist()}
        rows = np.split(arrays["frozen.baselines"], np.cumsum(arrays["frozen.size"]))[:-1]
        tallies.frozen = dict(zip(arrays["frozen.round"].tolist(), rows, strict=True))
        tallies._name_rows()  # its own
        return tallies
