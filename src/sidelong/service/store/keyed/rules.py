"""The rules of an experiment with keys: what is a repetition, what is a conflict, and what is refused.

They are those of `sidelong.service.store.commands`, for many decisions at once: everything is looked at before anything
changes. What was settled before is not in memory. It is found in the journal, an event at a time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from sidelong.agent.rules import check_losses, fit
from sidelong.errors import DecisionError, GraphError, LearnerError, LossError, ServiceError
from sidelong.service.store.absent import as_decided
from sidelong.service.store.graphs import size
from sidelong.service.store.journal import EXPIRED, SLOTS, Kind
from sidelong.service.store.keyed import columns
from sidelong.service.store.keyed.experiment import INDEX_BYTES, KeyedExperiment
from sidelong.service.store.losses import matched
from sidelong.service.store.settled import Settled, ToldItem, check_arm, placed

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from sidelong.graphs import FeedbackGraph
    from sidelong.service.store.commands import Turn
    from sidelong.service.store.database import Reading
    from sidelong.service.store.experiment import LiveExperiment
    from sidelong.service.store.graphs import KnownGraph
    from sidelong.service.store.journal import Event
    from sidelong.service.store.keyed.columns import Draws, Key, Settlement


class DrawnKeys(NamedTuple):
    """Decisions for keys, made now or before."""

    experiment: str  #: what the ids of its decisions begin with
    at: int
    expire_after: float | None
    draws: Draws
    graph: FeedbackGraph
    duplicate: bool
    labels: list[str] | None  #: of all arms


def decide(turn: Turn, keys: list[Key], graph: KnownGraph | None, key: str | None, context: str | None) -> DrawnKeys:
    """Draw an arm for each key, or find what was drawn under the same Idempotency-Key.

    Raises:
        GraphError: the graph of the round, or what is available in it, does not fit.
    """
    experiment = _keyed(turn)
    before = turn.made_under(key)
    if before is not None:
        same = before.losses == columns.write_keys(keys) and before.graph == (graph and graph.id)
        if not same or before.context != context:
            text = "This Idempotency-Key was used before, with another request."
            raise ServiceError(text, status=409, code="key_reused", path="header.idempotency-key", value=key)
        return _drawn(turn, before, duplicate=True)
    _check_kind(experiment, keys)
    _check_room(turn, experiment, keys, graph)
    turn.charge(graph)
    if graph is not None:
        experiment.agent.graph_of_round(graph.graph)
    rows = experiment.by_key.places(keys)
    experiment.wake(turn.writing, rows, turn.settings.max_key_bytes)
    event = experiment.decide_for(keys, rows, graph, turn.moment, key, context)
    turn.events.append(event)
    return _drawn(turn, event, duplicate=False)


def tell(turn: Turn, items: Sequence[ToldItem], *, partial: bool) -> list[Settled | ServiceError]:
    """Learn, and return for each item what became of it; unless `partial`, raise what is wrong with the first one."""
    experiment = _keyed(turn)
    _wake(turn, experiment, np.array([item.number for item in items], np.int64))
    telling = _Telling(turn, experiment, keep_late=partial)
    outcomes: list[Settled | ServiceError] = []
    charged = turn.charged.copy()
    for place, item in enumerate(items):
        try:
            outcomes.append(telling.hear(item))
        except ServiceError as error:
            if not partial:
                turn.charged = charged
                raise placed(error, place, f"{experiment.identity.key}-{item.number}") from error
            outcomes.append(error)
    telling.learn()
    return outcomes


def tell_at_once(
    turn: Turn,
    numbers: list[int],
    sizes: np.ndarray,
    losses: np.ndarray,
    graphs: Sequence[KnownGraph | None],
    graph_of: list[int] | None,
    arms: list[int] | None,
) -> list[Settled] | None:
    """Learn losses in [0, 1] in columns, if all decisions wait and nothing is wrong; or return None, and do nothing."""
    experiment = _keyed(turn)
    listed = np.array(numbers, np.int64)
    _wake(turn, experiment, listed)
    order = np.argsort(listed, kind="stable")
    which = np.zeros(listed.size, np.int64) if graph_of is None else np.array(graph_of, np.int64)[order]
    played = None if arms is None else np.array(arms, np.int64)[order]
    listed, sizes = listed[order], sizes[order]
    if (order != np.arange(order.size)).any():
        begin = np.append(0, np.cumsum(sizes[np.argsort(order)]))[:-1][order]
        ends = np.cumsum(sizes)
        losses = losses[np.repeat(begin - (ends - sizes), sizes) + np.arange(losses.size)]
    if (np.diff(listed) == 0).any() or not fit(experiment.module, losses, sizes):
        return None
    groups = [(graphs[g] if graph_of is not None else None, which == g) for g in np.unique(which).tolist()]
    for graph, some in groups:
        named = None if played is None else played[some]
        if not experiment.fits(listed[some], sizes[some], graph, named):
            return None
    for graph, _ in groups:
        turn.charge(graph)
    learned: set[int] = set()
    for graph, some in groups:
        learned |= hear(turn, experiment, listed[some], sizes[some], _of(losses, some, sizes), graph)
    both = [Settled(0, duplicate=False, learned=each) for each in (False, True)]
    return [both[number in learned] for number in numbers]


def hear(
    turn: Turn,
    experiment: KeyedExperiment,
    numbers: np.ndarray,
    sizes: np.ndarray,
    losses: np.ndarray,
    graph: KnownGraph | None,
) -> set[int]:
    """Learn, an event for each sort of decisions; return the numbers that were learned."""
    learned: set[int] = set()
    for sort in experiment.sorts(numbers):
        some, heard = numbers[sort], _of(losses, sort, sizes)
        if experiment.teaches(int(some[0])):
            learned.update(some.tolist())
        turn.events.append(experiment.hear(some, sizes[sort], heard, graph, turn.moment))
    return learned


def _of(losses: np.ndarray, some: np.ndarray, sizes: np.ndarray) -> np.ndarray:
    """Return the losses of some decisions; most often those of all, which are not copied."""
    return losses if some.all() else losses[np.repeat(some, sizes)]


def tell_one(turn: Turn, item: ToldItem) -> Settled:
    """Learn what one decision revealed, or recognise it; what comes too late is kept."""
    (outcome,) = tell(turn, [item], partial=True)
    if isinstance(outcome, ServiceError):
        raise outcome
    return outcome


def cancel(turn: Turn, number: int) -> Settled:
    """Cancel, or find that it was cancelled."""
    experiment = _keyed(turn)
    _wake(turn, experiment, np.array([number]))
    history = History(turn.writing, experiment, turn.events)
    if experiment.find(number) is not None:
        turn.events.append(experiment.give_up_many(np.array([number]), Kind.CANCELLED, turn.moment))
        return Settled(history.round_of(number), duplicate=False)
    kind = history.settled(number)[0].kind
    if kind is Kind.TOLD:
        raise _refusal(409, "told", "The decision was told. What was learned cannot be taken back.", number, turn)
    if kind in EXPIRED:
        raise _refusal(410, "expired", "The decision has expired.", number, turn)
    return Settled(history.round_of(number), duplicate=True)


def is_asleep(experiment: LiveExperiment, numbers: Sequence[int] = (), keys: list[Key] | None = None) -> bool:
    """Tell whether decisions, or keys, are of blocks that have to be read first."""
    if not isinstance(experiment, KeyedExperiment):
        return False
    rows = experiment.rows_of(np.sort(np.array(numbers, np.int64))) if keys is None else experiment.by_key.places(keys)
    return not experiment.blocks.is_awake(rows)


def expire(turn: Turn, experiment: KeyedExperiment) -> list[Event]:
    """Let decisions expire that are older than they may be."""
    due = experiment.overdue(turn.moment.clock)
    return _expire(turn, experiment, due) if due.size else []


def _expire(turn: Turn, experiment: KeyedExperiment, due: np.ndarray) -> list[Event]:
    experiment.wake(turn.writing, experiment.rows_of(due), turn.settings.max_key_bytes)
    expired = experiment.expire_many(due, turn.moment)
    turn.events += expired
    return expired


def _wake(turn: Turn, experiment: KeyedExperiment, numbers: np.ndarray) -> None:
    """Bring the keys of decisions into memory; those whose time is over expire now, not at the next sweep."""
    if experiment.is_any_due(turn.moment.clock):
        due = experiment.overdue(turn.moment.clock)
        due = due[np.isin(due, numbers)]  # a whole night may be over, and is not for this turn
        if due.size:
            _expire(turn, experiment, due)
    experiment.wake(turn.writing, experiment.rows_of(np.sort(numbers)), turn.settings.max_key_bytes)


class _Telling:
    """One batch of feedback: what is to be learned, and what was settled before."""

    def __init__(self, turn: Turn, experiment: KeyedExperiment, *, keep_late: bool) -> None:
        self._turn = turn
        self._experiment = experiment
        self._keep_late = keep_late
        self._history = History(turn.writing, experiment, turn.events)
        self._heard: dict[int, tuple[str | None, np.ndarray]] = {}  # by number: the graph that came, and losses
        self._late: dict[int, tuple[str | None, np.ndarray]] = {}
        self._graphs: dict[str | None, KnownGraph | None] = {None: None}

    def hear(self, item: ToldItem) -> Settled:
        """Take an item in, or raise what is wrong with it; nothing changes yet."""
        item = item._replace(losses=self._experiment.losses_of(item.losses, plain=item.plain))
        graph = self._turn.graph(item.graph)
        found = self._experiment.find(item.number)
        if found is None:
            return self._repeated(item, graph)
        drawn, place = found
        arm = int(drawn.batch.arms[place])
        check_arm(self._experiment.arm_called(item.arm), arm)
        graph, losses = as_decided(self._turn, graph, item.losses, self._experiment.graph_of(drawn), arm)
        if graph is None:
            reveals = drawn.reveals(place)
        else:
            try:
                self._experiment.check_graph(drawn, graph.graph)
            except (GraphError, DecisionError, LearnerError) as error:
                raise ServiceError(str(error), status=422, code="invalid", path="body.graph") from error
            self._turn.charge(graph)
            self._graphs[graph.id] = graph
            reveals = graph.graph.row(arm)
        values = matched(losses, reveals.tolist())
        shown = self._experiment.graph_of(drawn) if graph is None else graph.graph
        self._check(values, shown, arm)
        which = None if graph is None else graph.id
        before = self._heard.get(item.number)
        if before is None:
            self._heard[item.number] = which, values
            learned = self._experiment.teaches(item.number)
            return Settled(self._history.round_of(item.number), duplicate=False, learned=learned)
        if not self._keep_late:
            raise _refusal(422, "invalid", "A decision stands twice in this batch.", item.number, self._turn)
        return self._same(item, before[0] == which and np.array_equal(before[1], values))

    def learn(self) -> None:
        """Learn what was taken in: an event for each graph, and one for what came too late."""
        for which, numbers, sizes, losses in _by_graph(self._heard):
            hear(self._turn, self._experiment, numbers, sizes, losses, self._graphs[which])
        for which, numbers, sizes, losses in _by_graph(self._late):
            self._turn.events.append(self._experiment.hear_late(numbers, sizes, losses, which, self._turn.moment))

    def _check(self, values: np.ndarray, graph: FeedbackGraph, arm: int) -> None:
        try:
            check_losses(self._experiment.module, values, graph, arm)
        except LossError as error:
            raise ServiceError(str(error), status=422, code="invalid", path="body.losses") from error

    def _repeated(self, item: ToldItem, graph: KnownGraph | None) -> Settled:
        """Compare an item with what was told before, or keep it as late."""
        number = item.number
        event, settlement, place = self._history.settled(number)
        if event.kind is Kind.CANCELLED:
            text = "The decision was cancelled. Nothing was learned."
            raise _refusal(409, "cancelled", text, number, self._turn)
        arm, asked = self._history.decided(number)
        check_arm(self._experiment.arm_called(item.arm), arm)
        known, losses = None if asked is None else self._turn.graph(asked), item.losses
        if known is not None:
            graph, losses = as_decided(self._turn, graph, losses, known.graph, arm)
        shown = graph or known
        revealing = self._experiment.agent.graph if shown is None else shown.graph
        which = None if graph is None else graph.id
        if event.kind in EXPIRED:
            if self._keep_late and number not in self._late and not self._history.is_late(number):
                self._turn.charge(graph)
                self._late[number] = which, matched(losses, revealing.row(arm).tolist())
            text = "The decision has expired. What was told is kept as late, and not learned."
            if not self._keep_late:
                text = "The decision has expired, and nothing of this batch is kept."
            raise _refusal(410, "expired", text, number, self._turn)
        try:
            values = matched(losses, revealing.row(arm).tolist())
        except ServiceError:
            return self._same(item, same=False)
        return self._same(item, event.graph == which and np.array_equal(values, settlement.losses_of(place)))

    def _same(self, item: ToldItem, same: bool) -> Settled:  # noqa: FBT001
        if not same:
            text = "The decision was told before, with other losses or another graph. The first ones stay."
            raise _refusal(409, "conflict", text, item.number, self._turn)
        return Settled(self._history.round_of(item.number), duplicate=True)


class History:
    """What the journal says of decisions that do not wait: each event is read once, however many are looked for."""

    def __init__(self, reading: Reading, experiment: KeyedExperiment, fresh: list[Event]) -> None:
        self._reading = reading
        self._experiment = experiment
        self._fresh = fresh  # what is not written yet
        self._settled: list[tuple[Event, Settlement]] = []
        self._made: list[Event] = []
        self._draws: dict[int, Draws] = {}  # by the first number of each event

    def settled(self, number: int) -> tuple[Event, Settlement, int]:
        """Return the event that settled a decision, its columns, and the place of the decision there."""
        if not 1 <= number <= self._experiment.round:
            text, id_ = "There is no such decision.", f"{self._experiment.identity.key}-{number}"
            raise ServiceError(text, status=404, code="not_found", path="path.id", value=id_)
        found = self.found(number, SLOTS[Kind.TOLD])
        if found is None:
            raise RuntimeError(f"decision {number} neither waits nor was settled")
        return found

    def is_late(self, number: int) -> bool:
        """Tell whether something was told of a decision after it had expired."""
        return self.found(number, SLOTS[Kind.LATE]) is not None

    def decided(self, number: int) -> tuple[int, str | None]:
        """Return the arm of a decision, and the graph that it was drawn for, if it was not the experiment's own."""
        event, draws = self.draws(number)
        return int(draws.arms[number - event.round]), event.graph

    def round_of(self, number: int) -> int:
        """Return which round of its key a decision was."""
        event = self._made_with(number)
        return columns.round_at(event, number - event.round)

    def draws(self, number: int) -> tuple[Event, Draws]:
        """Return the event that a decision was made with, and its columns."""
        event = self._made_with(number)
        if event.round not in self._draws:
            self._draws[event.round] = columns.read_draws(event)
        return event, self._draws[event.round]

    def _made_with(self, number: int) -> Event:
        for event in self._made:
            if event.round <= number <= event.round + (event.arm or 0):
                return event
        self._made.append(next(_events(self._reading, self._experiment.identity.id, number, 0, self._fresh)))
        return self._made[-1]

    def found(self, number: int, slot: int) -> tuple[Event, Settlement, int] | None:
        """Return the event of a slot that is about a decision, its columns, and the place of the decision there."""
        for event, settlement in self._settled:
            if SLOTS[event.kind] == slot and (place := settlement.place(number)) >= 0:
                return event, settlement, place
        for event in _events(self._reading, self._experiment.identity.id, number, slot, self._fresh):
            settlement = columns.read_settled(event)
            place = settlement.place(number)
            if place >= 0:
                self._settled.append((event, settlement))
                return event, settlement, place
        return None


def _events(reading: Reading, experiment: int, number: int, slot: int, fresh: Sequence[Event]) -> Iterator[Event]:
    """Yield the events of a slot between whose least and largest number a decision lies, the nearest first."""
    for event in fresh:
        if SLOTS[event.kind] == slot and event.round <= number <= event.round + (event.arm or 0):
            yield event
    found = reading.spanning(experiment, number, slot, number + 1)
    while found is not None:
        yield found
        found = reading.spanning(experiment, number, slot, found.round)


def _by_graph(
    heard: dict[int, tuple[str | None, np.ndarray]],
) -> Iterator[tuple[str | None, np.ndarray, np.ndarray, np.ndarray]]:
    """Yield, for each graph, the numbers that came with it, ascending, how many losses each has, and the losses."""
    groups: dict[str | None, list[int]] = {}
    for number, (which, _) in heard.items():
        groups.setdefault(which, []).append(number)
    for which, numbers in groups.items():
        numbers.sort()
        values = [heard[number][1] for number in numbers]
        sizes = np.fromiter(map(len, values), np.int64, len(values))
        yield which, np.array(numbers, np.int64), sizes, np.concatenate(values)


def _keyed(turn: Turn) -> KeyedExperiment:
    if not isinstance(turn.experiment, KeyedExperiment):
        name = turn.experiment.identity.name
        text = f'{name!r} has no keys: it was made without "keyed": true. Ask without a key.'
        raise ServiceError(text, status=422, code="invalid", path="body.keys")
    return turn.experiment


def _check_kind(experiment: KeyedExperiment, keys: list[Key]) -> None:
    """Refuse text among numbers, or numbers among text: they would begin everything anew."""
    first = next(iter(experiment.by_key.keys.listed), keys[0])
    if set(map(type, keys)) == {type(first)}:
        return
    for place, key in enumerate(keys):
        if type(key) is not type(first):
            text = "The keys of an experiment are all text or all whole numbers, and this one is not like the others."
            raise ServiceError(text, status=422, code="invalid", path=f"body.keys.{place}", value=key)


def _check_room(turn: Turn, experiment: KeyedExperiment, keys: list[Key], graph: KnownGraph | None) -> None:
    """Refuse where decisions that wait, or keys, would take too much memory."""
    settings = turn.settings
    wanted = len(keys) * experiment.decision_bytes + (0 if graph is None else size(graph.graph))
    if experiment.held and experiment.held + wanted > settings.max_outstanding_bytes:
        raise ServiceError(
            f"{experiment.waiting:,} decisions of this experiment are outstanding, with {experiment.held:,} bytes of "
            f"probabilities, and at most {settings.max_outstanding_bytes:,} bytes may be. Tell or cancel some, or let "
            f"them expire sooner.",
            status=429,
            code="too_many_outstanding",
            retry_after=1.0,
        )
    known = experiment.by_key.keys
    most = settings.max_key_bytes // INDEX_BYTES
    if len(known) + len(keys) > most and len(known) + len(set(keys) - set(known.listed)) > most:
        raise ServiceError(
            f"This experiment has {len(known):,} keys, whose names and counts are always in memory, and at most "
            f"{most:,} fit into {settings.max_key_bytes:,} bytes. Make another experiment for further keys, or raise "
            f"SIDELONG_MAX_KEY_BYTES.",
            status=409,
            code="full",
            path="body.keys",
        )


def _drawn(turn: Turn, event: Event, *, duplicate: bool) -> DrawnKeys:
    experiment = turn.experiment
    graph = experiment.agent.graph if event.graph is None else turn.find(event.graph)
    identity = experiment.identity
    after = experiment.life.expire_after
    return DrawnKeys(identity.key, event.at, after, columns.read_draws(event), graph, duplicate, experiment.life.labels)


def _refusal(status: int, code: str, message: str, number: int, turn: Turn) -> ServiceError:
    id_ = f"{turn.experiment.identity.key}-{number}"
    return ServiceError(message, status=status, code=code, path="path.id", value=id_)
