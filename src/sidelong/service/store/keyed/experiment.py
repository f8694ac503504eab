"""An experiment with keys, in memory: the family, the decisions that wait, and what is counted of each key."""

from __future__ import annotations

import bisect
import itertools
from typing import TYPE_CHECKING, Any

import numpy as np

from sidelong.agent import Agent, state_file
from sidelong.errors import DecisionError, GraphError, LearnerError
from sidelong.service.store import agents
from sidelong.service.store.experiment import STORED, LiveExperiment, Moment
from sidelong.service.store.journal import DRAWN_BY, Event, Kind
from sidelong.service.store.keyed import cloning, columns
from sidelong.service.store.keyed.asides import Drawer, Mixed, turn_of
from sidelong.service.store.keyed.blocks import Blocks
from sidelong.service.store.keyed.counting import KeyTallies
from sidelong.service.store.keyed.drawn import DrawnBatch, HeardColumns, is_aside, observed, revealed_by, together
from sidelong.service.store.tallies import UNLEARNED, Tallies

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Self

    import numpy.typing as npt

    from sidelong.graphs import FeedbackGraph
    from sidelong.service.store.database import Identity, Reading
    from sidelong.service.store.graphs import KnownGraph
    from sidelong.service.store.keyed.columns import Key
    from sidelong.service.store.keyed.drawn import Parts

    Integers = npt.NDArray[np.int64]
    Floats = npt.NDArray[np.float64]

#: Bytes that a decision that waits takes, beside arrays of as many numbers as there are arms.
_WAITING_BYTES = 250
#: Bytes that a key takes whose block is not in memory, about: its name, and what is counted of it.
INDEX_BYTES = 250
_AT_ONCE = 10_000  # decisions that expire in one event


class KeyedExperiment(LiveExperiment):
    """The state of an experiment with keys after some event of its journal. Its agent is never asked.

    What a `LiveExperiment` does with one decision, this does with many; `outstanding` stays empty.
    """

    def __init__(self, identity: Identity, graph: FeedbackGraph, tallies: Tallies, size: int | None = None) -> None:
        spec = identity.spec
        given = spec.learner, graph, spec.seed, spec.options
        super().__init__(identity, Agent(given[0], graph, seed=given[2], **given[3]), tallies)
        self.blocks = Blocks(*given, size)
        self.by_key = KeyTallies()
        self.waiting_count = 0
        self.drawn: dict[int, DrawnBatch] = {}  #: by the least number of each batch, ascending
        self._first: list[int] = []
        self._sparing = agents.module_of(spec).is_sparing

    @classmethod
    def new(cls, identity: Identity, graph: FeedbackGraph, learned: bytes | None = None) -> Self:
        """Return an experiment to which nothing has happened; `learned` are the keys that it begins with."""
        if learned is None:
            return cls(identity, graph, Tallies(graph.n_arms))
        header, arrays = state_file.unpack(learned, f"what {identity.name} began with")
        made = cls(identity, graph, Tallies(graph.n_arms), header["block_size"])
        cloning.begin(made, arrays)
        return made

    @property
    def waiting(self) -> int:
        """How many decisions wait."""
        return self.waiting_count

    @property
    def done(self) -> int:
        """How much has happened: decisions, not batches."""
        return int(self.tallies.counts[: len(Kind)].sum() + self.tallies.aside.sum())

    @property
    def decision_bytes(self) -> int:
        """What a decision that waits takes in memory, about."""
        return 8 * self.n_arms + _WAITING_BYTES

    def amount(self, event: Event) -> int:
        """Return how many decisions an event is about."""
        if event.kind in DRAWN_BY:
            return (event.arm or 0) + 1
        return columns.count_of(event) if event.losses is not None else 1

    def played(self, event: Event) -> list[int]:
        """Return the arms that an event has drawn."""
        return columns.read_draws(event).arms.tolist() if event.kind in DRAWN_BY else []

    def paid(self) -> tuple[int, float]:
        """Return how many decisions were told what their own arm cost, and how much that was."""
        known, n = self.by_key, len(self.by_key.keys)
        return int(known.told[:n].sum()), float(known.paid[:n].sum())

    def wants_saving(self, every: int, most: int) -> bool:
        """Tell whether enough has happened for a snapshot, or it takes one to let keys leave memory."""
        return super().wants_saving(every, most) or self.needs_saving(most)

    def needs_saving(self, most: int) -> bool:
        """Tell whether keys should leave memory, and too many of them have changed since the last snapshot."""
        return self.blocks.awake_bytes > most and 2 * self.changed_bytes > most

    @property
    def changed_bytes(self) -> int:
        """What the blocks take that a snapshot writes, about."""
        return self.blocks.changed_bytes

    def wake(self, reading: Reading, rows: Integers, most: int | None = None) -> None:
        """Bring keys into memory."""
        self.blocks.wake(reading, self.identity.key, rows, most)

    def wake_all(self, reading: Reading) -> None:
        """Bring all keys into memory."""
        self.wake(reading, np.arange(len(self.by_key.keys)))

    def rows_of(self, numbers: Integers) -> Integers:
        """Return the keys of decisions, by their rows; those that do not wait have none."""
        at = np.searchsorted(np.array(self._first, np.int64), numbers, "right") - 1
        found = []
        for first in np.unique(at[at >= 0]).tolist():
            drawn = self.drawn[self._first[first]]
            found.append(drawn.rows[np.isin(drawn.numbers, numbers[at == first])])
        return np.concatenate([np.empty(0, np.int64), *found])

    def overdue(self, clock: int) -> Integers:
        """Return the numbers of the decisions whose time is over, ascending."""
        over = itertools.takewhile(lambda drawn: self._is_over(drawn, clock), self.drawn.values())
        return np.concatenate([np.empty(0, np.int64), *(drawn.numbers[drawn.waits] for drawn in over)])

    def decide_for(
        self,
        keys: list[Key],
        rows: Integers,
        graph: KnownGraph | None,
        moment: Moment,
        key: str | None,
        context: str | None,
    ) -> Event:
        """Draw an arm for each key, as its state says; the rows are what `by_key.places` returned."""
        n, first = len(keys), self.round + 1
        numbers = np.arange(first, first + n)
        made = self._drawn(keys, rows, numbers, None if graph is None else graph.graph)
        self.by_key.add(keys, rows)
        rounds = self.by_key.decided[rows] + turn_of(rows) + 1
        np.add.at(self.by_key.decided, rows, 1)
        self.keep(DrawnBatch(numbers, made, rows, graph, moment))
        batch, which = made.batch, None if graph is None else graph.id
        held = made.given if made.kind is Kind.DECIDED and made.given.any() else None
        drawn = columns.write_draws(rounds, batch.arms, batch.probabilities, held)
        return self._record(
            Event(made.kind, first, *moment, n - 1, None, which, key, context, columns.write_keys(keys), drawn)
        )

    def _drawn(self, keys: list[Key], rows: Integers, numbers: Integers, graph: FeedbackGraph | None) -> Mixed:
        own, now = self.agent.graph, self.life
        drawer = Drawer(self.identity.spec.seed, None if graph is None else self._checked(graph), own, self._observed)
        if now.play is not None or now.fallback is not None:
            made = drawer.play(self.blocks.tag, keys, numbers, now)
            self._add_new(keys, rows)
            return made
        tossed = self._is_tossed(own if graph is None else graph)
        self._add_new(keys, rows)
        if tossed is None:
            return Mixed(Kind.DECIDED, self.blocks.ask(keys, rows, graph), np.zeros(len(keys), np.bool_), np.empty(0))
        for number in numbers.tolist():
            self.tallies.toss(number, tossed.share)
        return drawer.toss(self.blocks, keys, rows, numbers, tossed)

    def _add_new(self, keys: list[Key], rows: Integers) -> None:
        """Let keys be there, whether or not the learner is asked for them in this round."""
        new = self.by_key.new_among(keys, rows)
        if new:
            known = len(self.by_key.keys)
            self.blocks.add(new, np.arange(known, known + len(new)))

    def keep(self, drawn: DrawnBatch) -> None:
        """Keep a batch of decisions until all of them are settled."""
        first = int(drawn.numbers[0])
        self.drawn[first] = drawn
        self._first.append(first)
        self.waiting_count += drawn.left
        self.held = self.waiting_count * self.decision_bytes

    def find(self, number: int) -> tuple[DrawnBatch, int] | None:
        """Return the batch of a decision that waits, and its place there."""
        at = bisect.bisect_right(self._first, number) - 1
        if at < 0:
            return None
        drawn = self.drawn[self._first[at]]
        place = drawn.place(number)
        return None if place < 0 else (drawn, place)

    def observe_waiting(self, drawn: DrawnBatch, place: int, reading: Reading) -> Floats:
        """Return with which probability each arm that a decision which waits reveals would be revealed."""
        at = np.array([place])
        if drawn.given[place]:
            return drawn.observed(at)
        self.wake(reading, drawn.rows[at])
        observe = self.blocks.observe(drawn.batch[at], int(drawn.rows[place]))
        if self.holdout is None or int(drawn.numbers[place]) not in self.tallies.tossed:
            return observe
        shown = self.graph_of(drawn).row(self.holdout.arm)
        return self.holdout.mixed(observe, np.isin(drawn.reveals(place), shown))

    def graph_of(self, drawn: DrawnBatch) -> FeedbackGraph:
        """Return the graph that decisions were drawn for."""
        return self.agent.graph if drawn.graph is None else drawn.graph.graph

    def check_graph(self, drawn: DrawnBatch, graph: FeedbackGraph) -> None:
        """Refuse a graph that decisions cannot be told with."""
        self.agent.graph_of_round(graph)
        asked = self.graph_of(drawn)
        if self._sparing and graph != asked:
            raise DecisionError(
                "A learner that does not look at every arm must know at the decision what it reveals: tell it without "
                "a graph."
            )

    def fits(self, numbers: Integers, sizes: Integers, graph: KnownGraph | None, named: Integers | None = None) -> bool:
        """Tell whether decisions wait, play the arms that are named, and have so many losses; the numbers ascend.

        With a graph, one of a round with absent arms never does.
        """
        try:
            parts = list(self._parts(numbers))
            for drawn, _ in parts if graph is not None else ():
                asked = self.graph_of(drawn)
                if graph is None or asked.arms_without_self_loop.size:
                    return False
                self.check_graph(drawn, graph.graph)
        except (DecisionError, GraphError, LearnerError):
            return False
        arms = np.concatenate([drawn.batch.arms[places] for drawn, places in parts])
        if named is not None and (named != arms).any():
            return False
        if graph is None:
            degrees = np.concatenate([np.diff(drawn.batch.offsets)[places] for drawn, places in parts])
        else:
            degrees = graph.graph.arrays.stop[arms] - graph.graph.arrays.start[arms]
        return bool((degrees == sizes).all())

    def teaches(self, number: int) -> bool:
        """Tell whether the learner would learn what a decision that waits is told."""
        found = self.find(number)
        return self.life.state != "frozen" and found is not None and not found[0].given[found[1]]

    def sorts(self, numbers: Integers) -> list[npt.NDArray[np.bool_]]:
        """Return which of some decisions that wait are the learner's, and which are not; the numbers ascend.

        What settles both is an event for each sort.
        """
        given = np.concatenate([drawn.given[places] for drawn, places in self._parts(numbers)])
        return [sort for sort in (~given, given) if sort.any()]

    def hear(
        self,
        numbers: Integers,
        sizes: Integers,
        losses: Floats,
        graph: KnownGraph | None,
        moment: Moment,
        kind: Kind = Kind.TOLD,
    ) -> Event:
        """Learn the losses that decisions of one sort revealed; the numbers ascend, and the losses were checked."""
        observe, aside = self._learn_all(numbers, sizes, losses, None if graph is None else graph.graph, moment)
        seen = None if np.isnan(observe).all() else observe.astype(STORED, copy=False).tobytes()
        which = None if graph is None else graph.id
        data = columns.write_settled(numbers, sizes, losses)
        span = int(numbers[-1] - numbers[0])
        event = Event(kind, int(numbers[0]), *moment, span, None, which, losses=data, observe=seen)
        return self._record(event, aside)

    def _learn_all(
        self, numbers: Integers, sizes: Integers, losses: Floats, shown: FeedbackGraph | None, moment: Moment
    ) -> tuple[Floats, bool]:
        """Learn, and settle the decisions.

        Returns the probabilities of observing the losses, and whether the learner did not decide these rounds.
        """
        parts = list(self._parts(numbers))
        aside = is_aside(parts)
        told = self._told(parts, sizes, losses, shown)
        if aside:
            observe = observed(parts) if shown is None else np.full(losses.size, np.nan)
        else:
            learn = self.life.state != "frozen"
            observe = self.blocks.tell(*together(parts), sizes, losses, shown, learn=learn)
            self.tallies.counts[UNLEARNED] += 0 if learn else numbers.size
            self._count(told, losses, seen=slice(None) if shown is None else told.own)
        observe = self._compare(parts, told, observe, shown)
        if not aside or parts[0][0].kind is Kind.DECIDED:
            own = losses[told.own]
            self.tallies.paid_in(moment.at // 60_000_000, float(own.sum()), held=aside, count=own.size)
        self._settle(parts)
        return observe, aside

    def give_up_many(self, numbers: Integers, kind: Kind, moment: Moment) -> Event:
        """Cancel decisions of one sort that wait, or let them expire; the numbers ascend."""
        parts = list(self._parts(numbers))
        aside = is_aside(parts)
        if not aside:
            self.blocks.cancel(*together(parts))
        for number in numbers.tolist() if self.holdout is not None else ():
            self.tallies.tossed.pop(number, None)
        self._settle(parts)
        data = columns.write_settled(numbers)
        span = int(numbers[-1] - numbers[0])
        return self._record(Event(kind, int(numbers[0]), *moment, span, losses=data), aside)

    def hear_late(self, numbers: Integers, sizes: Integers, losses: Floats, graph: str | None, moment: Moment) -> Event:
        """Keep, and do not learn, what was told about expired decisions; the numbers ascend."""
        data = columns.write_settled(numbers, sizes, losses)
        span = int(numbers[-1] - numbers[0])
        return self._record(Event(Kind.LATE, int(numbers[0]), *moment, span, None, graph, losses=data))

    def expire_many(self, numbers: Integers, moment: Moment) -> list[Event]:
        """Let decisions expire; the numbers ascend."""
        pieces = [numbers[k : k + _AT_ONCE] for k in range(0, numbers.size, _AT_ONCE)]
        return [self.expire_sort(each[sort], moment) for each in pieces for sort in self.sorts(each)]

    def names_of_waiting(self) -> dict[str, Any]:
        """Return how the family calls the decisions that it has made and that wait, by their ids."""
        names: dict[str, str] = {}
        for drawn in self.drawn.values():
            own = np.flatnonzero(drawn.waits & ~drawn.given)
            ids = (f"{self.identity.key}-{number}" for number in drawn.numbers[own].tolist())
            names |= zip(ids, drawn.batch[own].ids, strict=True)
        return names

    def expire_sort(self, numbers: Integers, moment: Moment) -> Event:
        """Let decisions of one sort expire, or learn the loss that is named for this; the numbers ascend."""
        told = self.identity.spec.default_loss
        if told is None:
            return self.give_up_many(numbers, Kind.EXPIRED, moment)
        sizes = np.concatenate([np.diff(drawn.batch.offsets)[places] for drawn, places in self._parts(numbers)])
        losses = np.repeat(np.array(self.losses_of([told])), int(sizes.sum()))
        return self.hear(numbers, sizes, losses, None, moment, Kind.DEFAULTED)

    def moments(self) -> list[Moment]:
        """Return when the decisions were made that wait."""
        return [drawn.moment for drawn in self.drawn.values()]

    def is_any_due(self, clock: int) -> bool:
        """Tell whether a decision has expired: the oldest one, since all have the same time."""
        oldest = next(iter(self.drawn.values()), None)
        return oldest is not None and self._is_over(oldest, clock)

    def _is_over(self, drawn: DrawnBatch, clock: int) -> bool:
        after = self.life.expire_after
        return after is not None and drawn.moment.clock + after * 1000 <= clock

    def again(self, event: Event, graph: KnownGraph | None, reading: Reading) -> Event:
        """Do again what the journal says, and return what that gives."""
        moment = Moment(event.at, event.clock)
        if event.kind in DRAWN_BY:
            keys = columns.read_draws(event).keys
            rows = self.by_key.places(keys)
            self.wake(reading, rows)
            return self.decide_for(keys, rows, graph, moment, event.key, event.context)
        found = columns.read_settled(event)
        self.wake(reading, self.rows_of(found.numbers))
        sizes = np.diff(found.offsets)
        if event.kind is Kind.TOLD:
            return self.hear(found.numbers, sizes, found.losses, graph, moment)
        if event.kind is Kind.LATE:
            return self.hear_late(found.numbers, sizes, found.losses, event.graph, moment)
        if event.kind is Kind.DEFAULTED:
            return self.expire_sort(found.numbers, moment)
        return self.give_up_many(found.numbers, event.kind, moment)

    def _parts(self, numbers: Integers) -> Iterator[tuple[DrawnBatch, Integers]]:
        """Yield the batches that decisions which wait are in, with their places there."""
        ends = np.searchsorted(np.array(self._first, np.int64), numbers, "right") - 1
        if numbers.size and ends[0] < 0:
            raise DecisionError("A decision does not wait.")
        for at in np.unique(ends).tolist():
            drawn = self.drawn[self._first[at]]
            some = numbers[ends == at]
            places = np.minimum(np.searchsorted(drawn.numbers, some), drawn.numbers.size - 1)
            if not (drawn.numbers[places] == some).all() or not drawn.waits[places].all():
                raise DecisionError("A decision does not wait.")
            yield drawn, places

    def _settle(self, parts: Parts) -> None:
        for drawn, places in parts:
            drawn.waits[places] = False
            drawn.left -= places.size
            self.waiting_count -= places.size
            if not drawn.left:
                first = int(drawn.numbers[0])
                del self.drawn[first]
                del self._first[bisect.bisect_left(self._first, first)]
        self.held = self.waiting_count * self.decision_bytes

    def _told(self, parts: Parts, sizes: Integers, losses: Floats, graph: FeedbackGraph | None) -> HeardColumns:
        """Return what decisions have revealed, in columns."""
        arms = np.concatenate([drawn.batch.arms[places] for drawn, places in parts])
        rows = np.concatenate([drawn.rows[places] for drawn, places in parts])
        reveals = revealed_by(parts) if graph is None else np.concatenate([graph.row(arm) for arm in arms.tolist()])
        own = reveals == np.repeat(arms, sizes)
        of = np.repeat(np.arange(arms.size), sizes)
        paid = np.full(arms.size, np.nan)
        paid[of[own]] = losses[own]
        return HeardColumns(arms, rows, of, reveals, own, paid)

    def _count(self, told: HeardColumns, losses: Floats, seen: slice | npt.NDArray[np.bool_]) -> None:
        """Count what was told: of each key what it paid, and of each arm what was seen."""
        tallies, K = self.tallies, self.n_arms
        np.add.at(self.by_key.told, told.rows, 1)
        np.add.at(self.by_key.paid, told.rows[told.of[told.own]], losses[told.own])
        tallies.plays += np.bincount(told.arms, minlength=K)
        tallies.sums[0] += np.bincount(told.reveals[seen], minlength=K)
        tallies.sums[1] += np.bincount(told.reveals[seen], losses[seen], minlength=K)
        tallies.paid[0] += losses[told.own].sum()

    def _compare(
        self,
        parts: Parts,
        told: HeardColumns,
        observe: Floats,
        graph: FeedbackGraph | None,
    ) -> Floats:
        """Count what decisions cost for which a coin was tossed; return the probabilities of before the coin."""
        if self.holdout is None:
            return observe
        first = 0
        for drawn, places in parts:
            shown = (self.graph_of(drawn) if graph is None else graph).row(self.holdout.arm)
            for number, held in zip(drawn.numbers[places].tolist(), drawn.given[places].tolist(), strict=True):
                if number in self.tallies.tossed:
                    loss = None if np.isnan(told.paid[first]) else float(told.paid[first])
                    self.tallies.compare(number, loss, self.holdout.share, held=held)
                    if not held:
                        of = told.of == first
                        observe[of] = self.holdout.mixed(observe[of], np.isin(told.reveals[of], shown))
                first += 1
        return observe

    def note(self, event: Event, *, aside: bool = False) -> None:
        """Count an event as the last one of the journal; the decisions of the holdout are in those of others."""
        super().note(event, aside=aside)
        held = int(columns.held_in(event).sum()) if event.kind is Kind.DECIDED else 0
        for counts in (self.tallies.counts, self.tallies.minutes[event.at // 60_000_000]) if held else ():
            counts[Kind.DECIDED] -= held
            counts[Kind.HELD] += held


def kind_of(identity: Identity) -> type[LiveExperiment]:
    """Return what an experiment is in memory."""
    return KeyedExperiment if identity.spec.keyed else LiveExperiment
