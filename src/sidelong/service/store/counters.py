"""What is counted while an experiment goes on: all that its state page shows beside what its learners know.

For the costs of arms and the regret it keeps the sums of `sidelong.evaluation.weighing`; the baselines of a round are
frozen when it is drawn, and kept with the pending decision. Where every round is told before the next one is drawn, the
costs are those that an evaluation of the log would find. Where there are keys, they are sums over all of them.
"""

from __future__ import annotations

import bisect
import itertools
import math
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from sidelong._jit import bind
from sidelong.agent.advice import MOST
from sidelong.evaluation import lift
from sidelong.evaluation.arm_delays import ArmDelays
from sidelong.evaluation.weighing import ROWS, add_losses, baselines
from sidelong.service.store.journal import Kind

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    import numpy.typing as npt

    Integers = npt.NDArray[np.int64]
    Floats = npt.NDArray[np.float64]

MINUTES = 1440  #: how many minutes the rates go back
#: In `Counters.counts`, after the kinds of events: told rounds that had a graph of their own, that had no probabilities
#: of observing, whose own loss was not revealed, that had no probabilities of playing, that were told after a later one
#: was drawn, and that were told while the experiment was frozen.
_SORTS = 6
OWN_GRAPH, BLIND, HIDDEN, UNWEIGHED, DELAYED, UNLEARNED = range(len(Kind), len(Kind) + _SORTS)
_ARRAYS = ("plays", "expected", "sums", "since", "paid", "counts", "aside", "lift", "spent_aside")
_BETS = ("wealth", "seen", "peak")


class ToldColumns(NamedTuple):
    """What decisions of one event have revealed, in columns."""

    arms: list[int]  #: of each decision
    reveals: Integers  #: the arms that were revealed, decision after decision
    offsets: list[int]  #: where those of each begin, and the end
    losses: Floats  #: of each of them
    paid: Floats  #: the loss of the arm that each decision played; NaN if that was not revealed
    costs: Floats | None = None  #: under a ceiling, of each arm that was revealed
    spent: Floats | None = None  #: and of the arm that each decision was carried out with, which was revealed

    @classmethod
    def of(
        cls, arms: list[int], reveals: np.ndarray, offsets: list[int], losses: Floats, costs: Floats | None = None
    ) -> ToldColumns:
        """Return what decisions have revealed."""
        reveals = reveals.astype(np.intp)  # NumPy is five times as slow with other integers
        if len(arms) == 1:  # the same as below, but quicker
            place = bisect.bisect_left(reveals, arms[0])
            known = place < reveals.size and reveals[place] == arms[0]
            own: Any = slice(place, place + known)
            paid = losses[own] if known else np.full(1, np.nan)
        else:
            of = np.repeat(np.arange(len(arms)), np.diff(offsets))
            own = reveals == np.array(arms)[of]
            paid = np.full(len(arms), np.nan)
            paid[of[own]] = losses[own]
        return cls(arms, reveals, offsets, losses, paid, costs, None if costs is None else costs[own])

    def at(self, places: Integers) -> tuple[ToldColumns, Integers]:
        """Return what some of the decisions have revealed, and where that is among all."""
        offsets = np.array(self.offsets)
        sizes = np.diff(offsets)[places]
        ends = np.append(0, np.cumsum(sizes))
        at = np.repeat(offsets[places] - ends[:-1], sizes) + np.arange(ends[-1])
        arms = [self.arms[place] for place in places.tolist()]
        costs, spent = (
            (None, None) if self.costs is None or self.spent is None else (self.costs[at], self.spent[places])
        )
        return ToldColumns(arms, self.reveals[at], ends.tolist(), self.losses[at], self.paid[places], costs, spent), at


class LearnedColumns(NamedTuple):
    """What the learners knew of these decisions before they learned them."""

    observe: Floats  #: the probability of observing each loss; NaN where it is not known
    p: Any  #: the probabilities of all arms, a row for each decision; None where the learner does not tell them
    delays: list[int]  #: how many later decisions of the same key were drawn before


class Counters:
    """The sums over the told rounds, and how many decisions became what."""

    def __init__(self, n_arms: int) -> None:
        self.plays = np.zeros(n_arms, np.int64)
        self.expected = np.zeros(n_arms)  #: sum of the probabilities of playing
        self.sums = np.zeros((ROWS, n_arms))  #: of each arm: see `add_losses`
        self.since = np.zeros((2, n_arms), np.int64)  #: how many rounds were drawn, and told, before each arm came
        self.paid = np.zeros(1)  #: sum of the losses of the arms that were played
        self.counts = np.zeros(len(Kind) + _SORTS, np.int64)  #: by kind of event, then some sorts of told rounds
        #: By kind of event: rounds that the learner did not decide. They are in no other count or sum.
        self.aside = np.zeros(len(Kind), np.int64)
        self.minutes: dict[int, list[int]] = {}  #: the events of the last ones, by kind
        self.arm_delays = ArmDelays(n_arms)  #: whether some arms report later than others
        self.lift = np.zeros(lift.ROWS)  #: of rounds for which a coin was tossed: see `sidelong.evaluation.lift`
        #: Under a ceiling, how many rounds that the learner did not decide were told what they cost, and how much.
        self.spent_aside = np.zeros(2)
        self.costs: dict[int, list[float]] = {}  #: by minute, as the first four of `lift`; without a coin, too
        self.trust: dict[int, list[float]] = {}  #: by minute, how far each adviser was followed at its end
        self._name_rows()
        nothing = np.empty(0)
        self._add_losses: Callable[..., None]
        bind(self, "_add_losses", add_losses, self.sums, nothing.astype(np.intp), nothing, nothing, nothing, 1)

    def _name_rows(self) -> None:
        #: Of each arm: how often it was seen, and its losses then.
        self.observations, self.losses = self.sums[:2]
        #: Of each arm, for a round that is drawn now; another array as soon as they change, so that draws share one.
        self.baselines = baselines(self.sums)

    def add_arm(self) -> None:
        """Count one more arm from now on. What it costs is counted over the rounds since it came."""
        self.plays, self.expected = np.append(self.plays, 0), np.append(self.expected, 0.0)
        self.sums = np.pad(self.sums, ((0, 0), (0, 1)))
        came = [self.counts[Kind.DECIDED], self.rounds]
        self.since = np.concatenate([self.since, np.reshape(came, (2, 1))], axis=1)
        self.arm_delays.add_arm()
        self._name_rows()

    def baselines_of(self, reveals: np.ndarray) -> Floats:
        """Return the baselines of a round of which no other arms than these can be told; `baselines` are not kept."""
        return baselines(self.sums[:, reveals.astype(np.intp)])

    def told(self, told: ToldColumns, learned: LearnedColumns, frozen: list[Any], *, after: bool) -> None:
        """Count what playing arms revealed; `frozen` are the baselines of each decision.

        `after` says that the graph came with the losses.
        """
        n = len(told.arms)
        if n == 1:
            self._told_one(told, learned, frozen[0], after=after)
            return
        blind = np.isnan(learned.observe).any() or learned.p is None
        if blind or any(each is None for each in frozen):  # one by one, as some of them may be known
            for k, (first, last) in enumerate(itertools.pairwise(told.offsets)):
                one, _ = told.at(np.array([k]))
                p = None if learned.p is None else learned.p[k : k + 1]
                known = LearnedColumns(learned.observe[first:last], p, [learned.delays[k]])
                self._told_one(one, known, frozen[k], after=after)
            return
        arms, at = np.array(told.arms, np.int64), told.reveals
        paid = told.paid[~np.isnan(told.paid)]
        self.paid[0] += paid.sum()
        self.counts[HIDDEN] += n - paid.size
        self.plays += np.bincount(arms, minlength=self.plays.size)
        self.counts[OWN_GRAPH] += n if after else 0
        delays = np.array(learned.delays)
        self.counts[DELAYED] += np.count_nonzero(delays)
        p = np.asarray(learned.p)
        self.expected += np.add.reduce(p, axis=0)
        self.arm_delays.told_many(arms, p, np.frexp(delays)[1].astype(np.int64))  # bit lengths
        b, first = np.empty(at.size), 0
        # Decisions that were drawn together have the same baselines, and stand side by side.
        for _, run in itertools.groupby(range(n), list(map(id, frozen)).__getitem__):
            places = list(run)
            last = told.offsets[places[-1] + 1]
            b[first:last] = self._of(frozen[places[0]], at[first:last])
            first = last
        self._add_losses(self.sums, at, told.losses, learned.observe, b, int(self.counts[Kind.DECIDED]))
        self.baselines = baselines(self.sums)

    def _told_one(self, told: ToldColumns, learned: LearnedColumns, frozen: Any, *, after: bool) -> None:
        (arm,), losses = told.arms, told.losses
        at, paid = told.reveals, told.paid.item()
        if paid == paid:  # no NaN  # noqa: PLR0124
            self.paid[0] += paid
        else:
            self.counts[HIDDEN] += 1
        self.plays[arm] += 1
        self.counts[OWN_GRAPH] += after
        delay = learned.delays[0]
        self.counts[DELAYED] += delay > 0
        p = None if learned.p is None else learned.p[0]
        if p is None:
            self.counts[UNWEIGHED] += 1
        else:
            self.expected += p
            self.arm_delays.told(arm, p, delay)
        if frozen is None:
            self.counts[BLIND] += 1
            self.sums[:2, at] += np.stack([np.ones(at.size), losses])
        else:
            self._add_losses(
                self.sums, at, losses, learned.observe, self._of(frozen, at), int(self.counts[Kind.DECIDED])
            )
            if p is not None:
                self.baselines = baselines(self.sums)

    def _of(self, frozen: Floats, at: np.ndarray) -> Floats:
        return frozen[at] if frozen.size == self.plays.size else frozen

    def toss(self, share: float) -> float:
        """Return the baseline of a round for which a coin decides whether it is the learner's."""
        return lift.baseline(self.lift, share)

    def compare(self, b: float, loss: float | None, share: float, *, held: bool) -> None:
        """Count what a round cost of which a coin decided; None if that was not revealed."""
        if loss is not None:
            lift.add(self.lift, share, loss, b, held=held)

    def paid_in(self, minute: int, loss: float, count: int, *, held: bool) -> None:
        """Count what rounds cost together that were told in a minute."""
        if count:
            row = self.costs.setdefault(minute, [0.0] * 4)
            row[2 * (not held)] += count
            row[2 * (not held) + 1] += loss
            if len(self.costs) > MINUTES:
                del self.costs[min(self.costs)]

    def trusted(self, minute: int, shares: list[float]) -> None:
        """Note how far each adviser is followed, after what was told in a minute."""
        self.trust[minute] = shares
        if len(self.trust) > MINUTES:
            del self.trust[min(self.trust)]

    def note(self, kind: Kind, count: int, at: int, *, aside: bool, held: int = 0) -> None:
        """Count an event that is about so many decisions, of which the holdout drew `held`."""
        counts = self.aside if aside else self.counts
        counts[kind] += count - held
        if held:
            counts[Kind.HELD] += held
        if kind is Kind.DEFAULTED:  # that is told, too
            counts[Kind.TOLD] += count
        minute = at // 60_000_000
        if minute not in self.minutes:
            self.minutes[minute] = [0] * len(Kind)
            if len(self.minutes) > MINUTES:
                del self.minutes[min(self.minutes)]
        if minute in self.minutes:  # it may be the oldest one, where the wall clock went back
            self.minutes[minute][kind] += count - held
            self.minutes[minute][Kind.HELD] += held

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
        arrays = {f"counters.{name}": getattr(self, name) for name in _ARRAYS}
        arrays |= {f"arm_delays.{name}": getattr(self.arm_delays, name) for name in _BETS}
        costs = [[minute, *row] for minute, row in self.costs.items()]
        arrays["counters.costs"] = np.array(costs, np.float64).reshape(-1, 5)
        rows = [[minute, *shares, *[math.nan] * (MOST - len(shares))] for minute, shares in self.trust.items()]
        arrays["counters.trust"] = np.array(rows, np.float64).reshape(-1, MOST + 1)
        return [[minute, *counts] for minute, counts in self.minutes.items()], arrays

    @classmethod
    def from_contents(cls, minutes: list[list[int]], arrays: Mapping[str, Any]) -> Counters:
        """Go on from what `contents` returned."""
        counters = cls(0)
        for name in _ARRAYS:
            setattr(counters, name, arrays[f"counters.{name}"])
        for name in _BETS:
            setattr(counters.arm_delays, name, arrays[f"arm_delays.{name}"])
        counters.minutes = {minute: counts for minute, *counts in minutes}
        counters.costs = {int(minute): row for minute, *row in arrays["counters.costs"].tolist()}
        rows = arrays["counters.trust"].tolist()
        counters.trust = {int(minute): [each for each in row if not math.isnan(each)] for minute, *row in rows}
        counters._name_rows()  # its own
        return counters
