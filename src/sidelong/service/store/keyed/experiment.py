"""An experiment with keys, in memory: the family, the decisions that wait, and what is counted of each key."""

from __future__ import annotations

import bisect
from typing import TYPE_CHECKING, Any

import numpy as np

from sidelong.agent import Agent
from sidelong.agent.family import Batch, Family
from sidelong.agent.family.keys import Keys
from sidelong.agent.family.memory import longer
from sidelong.errors import DecisionError, GraphError, LearnerError
from sidelong.learners import catalogue
from sidelong.learners.interface import is_sparing
from sidelong.service.store.experiment import STORED, LiveExperiment, Moment
from sidelong.service.store.journal import Event, Kind
from sidelong.service.store.keyed import columns
from sidelong.service.store.tallies import Tallies

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from typing import Self

    import numpy.typing as npt

    from sidelong.graphs import FeedbackGraph
    from sidelong.service.store.database import Identity
    from sidelong.service.store.graphs import KnownGraph
    from sidelong.service.store.keyed.columns import Key

    Integers = npt.NDArray[np.int64]
    Floats = npt.NDArray[np.float64]

#: Bytes that a key and a decision that waits take, beside arrays of as many numbers as there are arms.
_KEY_BYTES, _WAITING_BYTES = 500, 250
_AT_ONCE = 10_000  # decisions that expire in one event


class DrawnBatch:
    """A batch of decisions, of which some still wait."""

    __slots__ = ("batch", "graph", "left", "moment", "numbers", "rows", "waits")

    def __init__(
        self, numbers: Integers, batch: Batch, rows: Integers, graph: KnownGraph | None, moment: Moment
    ) -> None:
        self.numbers = numbers  #: ascending
        self.batch = batch
        self.rows = rows  #: of the keys, among all keys
        self.graph = graph  #: None for the experiment's own
        self.moment = moment
        self.waits = np.ones(numbers.size, np.bool_)
        self.left = numbers.size

    def place(self, number: int) -> int:
        """Return the place of a decision that waits, -1 if it does not."""
        at = int(np.searchsorted(self.numbers, number))
        found = at < self.numbers.size and self.numbers[at] == number and bool(self.waits[at])
        return at if found else -1

    def reveals(self, place: int) -> npt.NDArray[np.int32]:
        """Return the arms that a decision reveals."""
        return self.batch.reveals[self.batch.offsets[place] : self.batch.offsets[place + 1]]


class KeyTallies:
    """What is counted of each key: a row for each, in the order in which they came."""

    def __init__(self) -> None:
        self.keys = Keys()
        self.decided = np.empty(0, np.int64)
        self.told = np.empty(0, np.int64)
        self.paid = np.empty(0)  #: sum of the losses of the arms that were played

    def rows(self, keys: list[Key]) -> Integers:
        """Return the rows of keys; new ones are added."""
        found = self.keys.find(keys)
        new = self.keys.new_among(keys, found)
        if new:
            n, size = len(self.keys), len(self.keys) + len(new)
            for name in ("decided", "told", "paid"):
                setattr(self, name, longer(getattr(self, name), n, size))
            self.keys.add(new)
            found = self.keys.find(keys)
        return found


class KeyedExperiment(LiveExperiment):
    """The state of an experiment with keys after some event of its journal. Its agent is never asked.

    What a `LiveExperiment` does with one decision, this does with many; `outstanding` stays empty.
    """

    def __init__(self, identity: Identity, family: Family, tallies: Tallies) -> None:
        agent = Agent(family.learner, family.graph, seed=family.seed, **family.options)
        super().__init__(identity, agent, tallies)
        self.family = family
        self.by_key = KeyTallies()
        self.waiting_count = 0
        self.drawn: dict[int, DrawnBatch] = {}  #: by the least number of each batch, ascending
        self._first: list[int] = []
        self._sparing = is_sparing(catalogue.choose(family.learner, family.options))
        first = sum(array.nbytes for name, array in family.contents()[1].items() if name.startswith("first."))
        self.key_bytes = first + 24 * self.n_arms + _KEY_BYTES  #: that each key takes in memory, about

    @classmethod
    def new(
        cls, identity: Identity, graph: FeedbackGraph, learned: bytes | None = None, *, older: bool = False
    ) -> Self:
        """Return an experiment to which nothing has happened."""
        spec = identity.spec
        if learned is not None or older:
            raise LearnerError("An experiment with keys cannot begin with what another has learned.")
        family = Family(spec["learner"], graph, seed=spec["seed"], **spec["options"])
        return cls(identity, family, Tallies(graph.n_arms))

    @property
    def waiting(self) -> int:
        """How many decisions wait."""
        return self.waiting_count

    @property
    def done(self) -> int:
        """How much has happened: decisions, not batches."""
        return int(self.tallies.counts[: len(Kind)].sum())

    @property
    def decision_bytes(self) -> int:
        """What a decision that waits takes in memory, about."""
        return 8 * self.n_arms + _WAITING_BYTES

    def amount(self, event: Event) -> int:
        """Return how many decisions an event is about."""
        if event.kind is Kind.DECIDED:
            return (event.arm or 0) + 1
        return columns.count_of(event) if event.losses is not None else 1

    def decide_for(
        self, keys: list[Key], graph: KnownGraph | None, moment: Moment, key: str | None, context: str | None
    ) -> Event:
        """Draw an arm for each key."""
        batch = self.family.ask(keys, None if graph is None else graph.graph)
        rows = self.by_key.rows(keys)
        np.add.at(self.by_key.decided, rows, 1)
        first = self.round + 1
        self.keep(DrawnBatch(np.arange(first, first + len(keys)), batch, rows, graph, moment))
        drawn = columns.write_draws(batch.rounds, batch.arms, batch.probabilities)
        which = None if graph is None else graph.id
        span = len(keys) - 1
        return self._record(
            Event(Kind.DECIDED, first, *moment, span, None, which, key, context, columns.write_keys(keys), drawn)
        )

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

    def check_graph(self, drawn: DrawnBatch, graph: FeedbackGraph) -> None:
        """Refuse a graph that decisions cannot be told with."""
        self.agent.graph_of_round(graph)
        asked = self.family.graph if drawn.graph is None else drawn.graph.graph
        if self._sparing and graph != asked:
            raise DecisionError(
                "A learner that does not look at every arm must know at the decision what it reveals: tell it without "
                "a graph."
            )

    @property
    def is_binary(self) -> bool:
        """Whether losses are 0 or 1 alone."""
        return bool(self.binary)

    def fits(self, numbers: Integers, sizes: Integers, graph: KnownGraph | None, named: Integers | None = None) -> bool:
        """Tell whether decisions wait, play the arms that are named, and have so many losses; the numbers ascend.

        With a graph, one of a round with absent arms never does.
        """
        try:
            parts = list(self._parts(numbers))
            for drawn, _ in parts if graph is not None else ():
                asked = self.family.graph if drawn.graph is None else drawn.graph.graph
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

    def hear(
        self, numbers: Integers, sizes: Integers, losses: Floats, graph: KnownGraph | None, moment: Moment
    ) -> Event:
        """Learn the losses that decisions which wait have revealed; the numbers ascend, and the losses were checked."""
        parts = list(self._parts(numbers))
        decisions = _together(parts)
        shown = None if graph is None else graph.graph
        observe = self.family.observe_probabilities(decisions, shown)
        self.family.tell(decisions, losses, shown)
        self._count(parts, sizes, losses, shown)
        self._settle(parts)
        seen = None if np.isnan(observe).all() else observe.astype(STORED).tobytes()
        which = None if graph is None else graph.id
        data = columns.write_settled(numbers, sizes, losses)
        span = int(numbers[-1] - numbers[0])
        return self._record(Event(Kind.TOLD, int(numbers[0]), *moment, span, None, which, losses=data, observe=seen))

    def give_up_many(self, numbers: Integers, kind: Kind, moment: Moment) -> Event:
        """Cancel decisions that wait, or let them expire; the numbers ascend."""
        parts = list(self._parts(numbers))
        self.family.cancel(_together(parts))
        self._settle(parts)
        data = columns.write_settled(numbers)
        span = int(numbers[-1] - numbers[0])
        return self._record(Event(kind, int(numbers[0]), *moment, span, losses=data))

    def hear_late(self, numbers: Integers, sizes: Integers, losses: Floats, graph: str | None, moment: Moment) -> Event:
        """Keep, and do not learn, what was told about expired decisions; the numbers ascend."""
        data = columns.write_settled(numbers, sizes, losses)
        span = int(numbers[-1] - numbers[0])
        return self._record(Event(Kind.LATE, int(numbers[0]), *moment, span, None, graph, losses=data))

    def expire_due(self, moment: Moment) -> list[Event]:
        """Let decisions expire that are older than they may be."""
        due: list[Integers] = []
        for drawn in self.drawn.values():
            if not self._is_over(drawn, moment.clock):
                break
            due.append(drawn.numbers[drawn.waits])
        if not due:
            return []
        numbers = np.concatenate(due)
        pieces = [numbers[k : k + _AT_ONCE] for k in range(0, numbers.size, _AT_ONCE)]
        return [self.give_up_many(each, Kind.EXPIRED, moment) for each in pieces]

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

    def again(self, event: Event, graph: KnownGraph | None) -> Event:
        """Do again what the journal says, and return what that gives."""
        moment = Moment(event.at, event.clock)
        if event.kind is Kind.DECIDED:
            return self.decide_for(columns.read_draws(event).keys, graph, moment, event.key, event.context)
        found = columns.read_settled(event)
        sizes = np.diff(found.offsets)
        if event.kind is Kind.TOLD:
            return self.hear(found.numbers, sizes, found.losses, graph, moment)
        if event.kind is Kind.LATE:
            return self.hear_late(found.numbers, sizes, found.losses, event.graph, moment)
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

    def _settle(self, parts: Iterable[tuple[DrawnBatch, Integers]]) -> None:
        for drawn, places in parts:
            drawn.waits[places] = False
            drawn.left -= places.size
            self.waiting_count -= places.size
            if not drawn.left:
                first = int(drawn.numbers[0])
                del self.drawn[first]
                del self._first[bisect.bisect_left(self._first, first)]
        self.held = self.waiting_count * self.decision_bytes

    def _count(
        self, parts: Sequence[tuple[DrawnBatch, Integers]], sizes: Integers, losses: Floats, graph: FeedbackGraph | None
    ) -> None:
        """Count what was told: of each key what it paid, and of each arm what was seen."""
        arms = np.concatenate([drawn.batch.arms[places] for drawn, places in parts])
        rows = np.concatenate([drawn.rows[places] for drawn, places in parts])
        if graph is None:
            reveals = np.concatenate([drawn.batch[places].reveals for drawn, places in parts])
        else:
            reveals = np.concatenate([graph.row(arm) for arm in arms.tolist()])
        own = reveals == np.repeat(arms, sizes)
        of = np.repeat(np.arange(arms.size), sizes)[own]
        np.add.at(self.by_key.told, rows, 1)
        np.add.at(self.by_key.paid, rows[of], losses[own])
        tallies, K = self.tallies, self.n_arms
        seen = own if graph is not None else np.ones(losses.size, np.bool_)
        tallies.plays += np.bincount(arms, minlength=K)
        tallies.sums[0] += np.bincount(reveals[seen], minlength=K)
        tallies.sums[1] += np.bincount(reveals[seen], losses[seen], minlength=K)
        tallies.paid[0] += losses[own].sum()


def kind_of(identity: Identity) -> type[LiveExperiment]:
    """Return what an experiment is in memory."""
    return KeyedExperiment if identity.spec.get("keyed") else LiveExperiment


def _together(parts: list[tuple[DrawnBatch, Integers]]) -> Any:
    """Return decisions of one batch or of several, as a family takes them."""
    if len(parts) == 1:
        drawn, places = parts[0]
        return drawn.batch[places]
    return [name for drawn, places in parts for name in drawn.batch[places].ids]
