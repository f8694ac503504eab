"""What changes an experiment, and the rules: what is a repetition, what is a conflict, and what is refused.

A command runs in a `Turn`: while no other server changes the experiment. It does all of what it is asked, or refuses
and changes nothing. Decisions and feedback come in batches, and everything in a batch is checked before anything
changes. What was settled before is not in memory: `History` finds it in the journal.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from sidelong.agent.ceiling import in_order
from sidelong.agent.feedback import LossColumns
from sidelong.agent.rules import carried_arm, losses_of_many
from sidelong.errors import (
    AdviceError,
    CostError,
    DecisionError,
    FeatureError,
    GraphError,
    LearnerError,
    LossError,
    ServiceError,
)
from sidelong.graphs.presence import mask_of
from sidelong.service.store import sticky
from sidelong.service.store.arms import of_outcome
from sidelong.service.store.database import Writing
from sidelong.service.store.feedback import (
    Settled,
    ToldItem,
    ToldItems,
    check_arm,
    check_plain,
    checked_costs,
    placed,
    refused,
    without_absent,
)
from sidelong.service.store.graphs import KnownGraph, blob_of, identify, size, stored_size
from sidelong.service.store.history import History
from sidelong.service.store.journal import (
    DRAWN_BY,
    EXPIRED,
    LATE_SLOT,
    Kind,
    labels_at,
    read_columns,
    read_draws,
    within_span,
)
from sidelong.service.store.keys import INDEX_BYTES, names_size
from sidelong.service.store.pending import ARM, GRAPH, KEY_ROUND, KIND

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from sidelong.graphs import FeedbackGraph
    from sidelong.service.settings import Settings
    from sidelong.service.store.clock import Moment
    from sidelong.service.store.database import Listed, Reading
    from sidelong.service.store.experiment import LiveExperiment
    from sidelong.service.store.feedback import NumberedLosses
    from sidelong.service.store.graphs import GraphCache
    from sidelong.service.store.journal import Draws, Event, Key

    GivenGraph = FeedbackGraph | KnownGraph | str | None

#: So many decisions at once are so much work that nobody else should wait for it.
MANY = 64
_BACKLOG = 2**24  # bytes of keys that are never too many to wait for a snapshot


@dataclass
class Turn:
    """The turn of some commands at an experiment."""

    experiment: LiveExperiment
    writing: Reading  #: one that writes, unless this turn is ahead of it
    graph_cache: GraphCache
    settings: Settings
    moment: Moment
    answered: Mapping[str, Event]  #: decisions that were made before under the Idempotency-Keys of this batch
    events: list[Event] = field(default_factory=list)  #: what happened, to be written
    graphs: dict[str, FeedbackGraph] = field(default_factory=dict)  #: that came with requests
    charged: dict[str, int] = field(default_factory=dict)  #: bytes of those of them that are new to the database
    deletion: Listed | None = None  #: what is to be left of it
    listed: dict[str, Any] = field(default_factory=dict)  #: what is to be changed in the list of experiments
    held: set[str] = field(default_factory=set)  #: graphs that must not be forgotten before this is written

    def graph(self, given: GivenGraph) -> KnownGraph | None:
        """Return a graph of a request, or the id of one, with both."""
        if given is None:
            return None
        if isinstance(given, str):
            if given not in self.graphs and not self.holds(given):
                self.graph_cache.forget([given])
            return KnownGraph(given, self.graphs.get(given) or self.graph_cache.find(self.writing, given))
        known = self.graph_cache.same(given if isinstance(given, KnownGraph) else identify(given))
        self.graphs[known.id] = known.graph
        return known

    def charge(self, graph: KnownGraph | None) -> None:
        """Refuse a graph of a round for which this experiment has no room in the database."""
        if graph is None or graph.id not in self.graphs:
            return
        if not graph.new and self.holds(graph.id):
            return
        self.charged[graph.id] = stored_size(graph.graph)
        kept, most = self.experiment.graph_bytes, self.settings.max_graph_bytes
        if kept + sum(self.charged.values()) > most:
            wanted = self.charged.pop(graph.id)
            raise ServiceError(
                f"The graphs of this experiment's rounds have {kept:,} bytes, this one has {wanted:,}, and at most "
                f"{most:,} are kept. Use graphs that were sent before, or raise SIDELONG_MAX_GRAPH_BYTES.",
                status=409,
                code="full",
                path="body.graph",
            )

    def holds(self, id_: str) -> bool:
        """Tell whether a graph is kept, and is not forgotten before what happens here is written."""
        if not isinstance(self.writing, Writing):
            found = self.writing.blob(blob_of(id_)) is not None
            self.held |= {id_} if found else set()
            return found
        return self.writing.hold(blob_of(id_))

    def find(self, id_: str | None) -> FeedbackGraph:
        """Return a graph by its id, or that of the specification."""
        own = self.experiment.own
        if id_ is None:
            return own.graphs[0].graph
        if id_ == own.now.id:
            return own.now.graph
        return self.graphs[id_] if id_ in self.graphs else self.graph_cache.find(self.writing, id_)

    def keep_graphs(self, writing: Writing) -> None:
        """Write the graphs of requests that the events name."""
        for id_ in {event.graph for event in self.events if event.graph in self.graphs}:
            self.graph_cache.put(writing, KnownGraph(str(id_), self.graphs[str(id_)]), self.moment.clock)
            self.experiment.graph_bytes += self.charged.get(str(id_), 0)

    def made_under(self, key: str | None) -> Event | None:
        """Return what was written before under an Idempotency-Key; refuse one whose event was cut."""
        found = None if key is None else self.experiment.answered.get(key) or self.answered.get(key)
        if found is None or found.kind is Kind.CHANGED:  # which no cut takes away
            return found
        if found.seq <= self.writing.cut(self.experiment.identity.id).seq:
            raise ServiceError(
                "A request with this Idempotency-Key was answered before the journal was cut, and the reply is not "
                "known any more. Nothing was done now.",
                status=410,
                code="cut",
                path="header.idempotency-key",
                value=key,
            )
        return found

    def prepare(self, numbers: Sequence[int]) -> None:
        """Bring the keys of decisions into memory; those whose time is over expire now, not at the next sweep."""
        experiment = self.experiment
        if experiment.is_any_due(self.moment.clock):
            pending = sorted({number for number in numbers if number in experiment.pending})
            due = [number for number in pending if experiment.is_due(number, self.moment.clock)]
            if due:
                self.expire(due)
        experiment.load_pending(self.writing, numbers, self.settings.max_key_bytes)

    def expire(self, due: list[int]) -> list[Event]:
        """Let decisions expire; the numbers ascend."""
        experiment = self.experiment
        experiment.load_pending(self.writing, due, self.settings.max_key_bytes)
        expired = experiment.expire_all(due, self.moment)
        self.events += expired
        return expired

    def refusal(self, status: int, code: str, message: str, number: int) -> ServiceError:
        """Return the error of a decision."""
        id_ = f"{self.experiment.identity.key}-{number}"
        return ServiceError(message, status=status, code=code, path="path.id", value=id_)


class Command:
    """What changes an experiment."""

    of: str  #: the name of the experiment, or "#" and the key that the ids of its decisions begin with
    key: str | None = None

    def run(self, turn: Turn) -> Any:
        """Do it, and return what to reply."""
        raise NotImplementedError

    def takes_long(self, experiment: LiveExperiment) -> bool:  # noqa: ARG002  # as most do not
        """Tell whether others would notice if they waited for it: then it has a turn ahead of what is written."""
        return False


class Decided(NamedTuple):
    """Decisions, made now or before."""

    experiment: str  #: what the ids of its decisions begin with
    at: int
    expire_after: float | None
    draws: Draws
    graph: FeedbackGraph
    duplicate: bool
    labels: list[str] | None  #: of all arms


@dataclass
class Decide(Command):
    """Draw an arm for each of some keys or, where there are no keys, for each of several rounds."""

    of: str
    graph: GivenGraph = None
    context: str | None = None
    key: str | None = None  #: the Idempotency-Key
    available: list[Any] | None = None
    count: int = 1  #: of an experiment without keys
    keys: list[Key] | None = None
    subject: str | None = None  #: of a sticky experiment
    advice: Any = None  #: as JSON has it; with keys, for each of them

    def run(self, turn: Turn) -> Decided:
        """Draw, or find what was drawn under the same Idempotency-Key."""
        experiment, keys = turn.experiment, self.keys
        self._check_kind(experiment)
        count = self.count if keys is None else len(keys)
        if self.subject is not None or experiment.identity.spec.sticky is not None:
            sticky.check_subject(turn, self.subject, single=count == 1)
        before = turn.made_under(self.key)
        is_subjects = before is not None and before.kind is Kind.REPEATED  # whatever else was asked with it
        if before is not None and is_subjects:
            before = sticky.asked_before(turn, before)
        graph = turn.graph(self.graph)
        if self.available is not None:
            graph = restricted(turn, graph, self.available, before)
        if before is not None:
            if not (self._is_for(before) if is_subjects else self._repeats(experiment, before, graph)):
                text = "This Idempotency-Key was used before, with another request."
                raise ServiceError(text, status=409, code="key_reused", path="header.idempotency-key", value=self.key)
            return self._reply(turn, before, read_draws(before), duplicate=True)
        if self.subject is not None:
            check_present(experiment)
            number = sticky.found(turn, int(experiment.keys.places(keys)[0]), self.subject)
            if number is not None:
                made = History(turn.writing, experiment, turn.events).draws(number)
                if self.key is not None:
                    turn.events.append(experiment.repeat(number, turn.moment, self.key))
                return self._reply(turn, *made, duplicate=True)
        check_deciding(experiment)
        check_room(experiment, turn.settings, graph, count)
        event, draws = self._draw(turn, graph, count)
        turn.events.append(event)
        return self._reply(turn, event, draws, duplicate=False)

    def _draw(self, turn: Turn, graph: KnownGraph | None, count: int) -> tuple[Event, Draws]:
        """Draw, if there is room for the keys and the graph."""
        experiment, keys = turn.experiment, self.keys
        rows = experiment.keys.places(keys, count)
        if keys is not None:
            self._check_new_keys(experiment, turn.settings, keys)
            self._check_backlog(experiment, turn.settings.max_key_bytes, rows)
        turn.charge(graph)
        try:
            if graph is not None:
                experiment.graph_of_round(graph.graph)
            experiment.load(turn.writing, rows, turn.settings.max_key_bytes)
            return experiment.decide(keys, rows, graph, turn.moment, self.key, self.context, self.subject, self.advice)
        except GraphError as error:  # as it was given, or of the arms that are there
            path = "body.graph" if self.available is None else "body.available"
            raise ServiceError(str(error), status=422, code="invalid", path=path) from error
        except FeatureError as error:
            raise ServiceError(str(error), status=422, code="invalid", path="body.context") from error
        except AdviceError as error:
            raise ServiceError(str(error), status=422, code="invalid", path="body.advice") from error
        except CostError as error:
            raise ServiceError(str(error), status=409, code="over_ceiling", path="path.name") from error

    def takes_long(self, experiment: LiveExperiment) -> bool:
        """Tell whether there are many, or some keys have to be read first."""
        count = self.count if self.keys is None else len(self.keys)
        return count >= MANY or not experiment.blocks.is_loaded(experiment.keys.places(self.keys))

    def _check_kind(self, experiment: LiveExperiment) -> None:
        """Refuse keys where there are none, and the other way round."""
        name = experiment.identity.name
        if self.keys is None and experiment.keys.named:
            text = f"{name!r} has keys: send the key that a decision is for, or several as keys."
            raise ServiceError(text, status=422, code="invalid", path="body.key")
        if self.keys is not None and not experiment.keys.named:
            text = f'{name!r} has no keys: it was made without "keyed": true. Ask without a key.'
            raise ServiceError(text, status=422, code="invalid", path="body.keys")

    def _repeats(self, experiment: LiveExperiment, before: Event, graph: KnownGraph | None) -> bool:
        asked = experiment.own.written_before(before.seq) if graph is None else graph.id
        if before.kind not in DRAWN_BY or before.graph != asked or before.context != self.context:
            return False
        if read_columns(before).get("advice") != self.advice or not self._is_for(before):
            return False
        return self.keys is not None or before.last - before.round + 1 == self.count

    def _is_for(self, before: Event) -> bool:
        """Tell whether an event has decided for the same subject and keys."""
        columns = read_columns(before)
        return bool(columns.get("subject", [None]) == [self.subject] and columns.get("key") == self.keys)

    @staticmethod
    def _check_new_keys(experiment: LiveExperiment, settings: Settings, keys: list[Key]) -> None:
        """Refuse text among numbers, which would begin everything anew, and more keys than there is memory for."""
        known = experiment.keys
        first = next(iter(known.keys.listed), keys[0])
        if set(map(type, keys)) != {type(first)}:
            place = next(place for place, key in enumerate(keys) if type(key) is not type(first))
            text = "The keys of an experiment are all text or all whole numbers, and this one is not like the others."
            raise ServiceError(text, status=422, code="invalid", path=f"body.keys.{place}", value=keys[place])
        most = settings.max_key_bytes
        if known.bytes + len(keys) * INDEX_BYTES + names_size(keys) <= most:
            return
        new = [key for key in dict.fromkeys(keys) if known.keys.row(key) < 0]
        if known.bytes + len(new) * INDEX_BYTES + names_size(new) > most and new:
            raise ServiceError(
                f"This experiment has {len(known):,} keys, whose names and counts are always in memory and take "
                f"{known.bytes:,} bytes, and at most {most:,} bytes are for keys. Make another experiment for further "
                f"keys, or raise SIDELONG_MAX_KEY_BYTES.",
                status=409,
                code="full",
                path="body.keys",
            )

    @staticmethod
    def _check_backlog(experiment: LiveExperiment, most: int, rows: np.ndarray) -> None:
        """Refuse keys that are not in memory while those that cannot leave it before a snapshot take too much."""
        changed, known = experiment.changed_bytes, len(experiment.keys)
        new = int((rows >= known).sum()) * experiment.blocks.key_bytes
        if not new and experiment.blocks.is_loaded(rows):
            return
        if changed > max(most // 2, _BACKLOG) and experiment.keys.bytes + changed + new > most:
            raise ServiceError(
                f"Keys of this experiment that have changed take {changed:,} bytes of memory, of {most:,} that are for "
                f"keys, until they are written. Send the request again, or raise SIDELONG_MAX_KEY_BYTES.",
                status=503,
                code="busy",
                retry_after=1.0,
            )

    @staticmethod
    def _reply(turn: Turn, event: Event, draws: Draws, *, duplicate: bool) -> Decided:
        experiment = turn.experiment
        life, graph = experiment.life, turn.find(event.graph)
        key = experiment.identity.key
        return Decided(key, event.at, life.expire_after, draws, graph, duplicate, life.labels)


def check_deciding(experiment: LiveExperiment) -> None:
    """Refuse where the experiment decides nothing."""
    name, life = experiment.identity.name, experiment.life
    if life.state == "stopped" and life.fallback is None:
        text = f"The experiment {name!r} is stopped, and has no fallback arm. It takes feedback, and decides no more."
        raise ServiceError(text, status=409, code="stopped", path="path.name", value=name)
    check_present(experiment)


def check_room(experiment: LiveExperiment, settings: Settings, graph: KnownGraph | None, count: int = 1) -> None:
    """Refuse where too many decisions are pending, with `count` more, or where they keep too much in memory."""
    pending, kept = len(experiment.pending), experiment.pending_bytes
    wanted = experiment.decision_bytes * count + (0 if graph is None else size(graph.graph))
    most, others = settings.max_outstanding_bytes, pending + count - 1
    if others >= settings.max_outstanding or (others and kept + wanted > most):
        raise ServiceError(
            f"{pending:,} decisions of this experiment are outstanding, with {kept:,} bytes of probabilities and "
            f"graphs, and at most {settings.max_outstanding:,} with {most:,} bytes may be. Tell or cancel some, or let "
            f"them expire sooner.",
            status=429,
            code="too_many_outstanding",
            retry_after=1.0,
        )


def check_present(experiment: LiveExperiment) -> None:
    """Refuse where the experiment is archived."""
    name = experiment.identity.name
    if experiment.life.state == "archived":
        text = f"The experiment {name!r} is archived. Bring it back first, with another state."
        raise ServiceError(text, status=409, code="archived", path="path", value=name)


def check_settling(turn: Turn, numbers: list[int]) -> None:
    """Refuse where the experiment is archived, unless all of these decisions were told or cancelled before.

    Nothing more is written then: a repetition is answered as it was, since its first reply may have got lost.
    """
    experiment = turn.experiment
    if experiment.life.state == "archived":
        history = History(turn.writing, experiment, turn.events)
        pending = (experiment.pending.slot(number) is not None for number in numbers)
        if any(pending) or any(history.settled(number)[0].kind in EXPIRED for number in numbers):
            check_present(experiment)


def restricted(turn: Turn, graph: KnownGraph | None, available: list[Any], before: Event | None) -> KnownGraph | None:
    """Return the graph of the round without the arms that are not available, to be kept like any other.

    The arms of a repetition, and their labels, are those that there were when `before` was decided.
    """
    experiment = turn.experiment
    own = experiment.own.before(before and before.seq).graph
    shown, labels = None if graph is None else graph.graph, experiment.life.labels
    if before is not None:
        labels = labels_at(turn.writing, experiment.identity, before.seq, turn.events)
    try:
        named = own if labels is None else own.labelled(labels)
        found = experiment.graph_of_round(shown, mask_of(named, available), own)
    except (GraphError, LearnerError) as error:
        raise ServiceError(str(error), status=422, code="invalid", path="body.available") from error
    return graph if found is (shown or own) else turn.graph(found)


@dataclass
class Tell(Command):
    """Tell the losses that decisions revealed: all of them, or none; or if `partial`, those that are right."""

    of: str
    told: list[ToldItem] | ToldItems
    partial: bool = False
    alone: bool = False  #: whether it is what a request says of a single decision, which may be sticky
    key: str | None = None  #: the Idempotency-Key, which matters where losses may come several times

    @property
    def _numbers(self) -> list[int]:
        return self.told.numbers if isinstance(self.told, ToldItems) else [item.number for item in self.told]

    def run(self, turn: Turn) -> Sequence[Settled | ServiceError]:
        """Learn, and return for each decision what became of it.

        Unless `partial`, raise what is wrong with the first one. The path of the error is the column and the place.
        """
        check_settling(turn, self._numbers)
        if not self.alone:
            sticky.refuse_batch(turn)
        if not isinstance(self.told, ToldItems):
            if turn.experiment.identity.spec.sticky is not None:
                reported = sticky.report(turn, self.told[0], self.key)
                if reported is not None:
                    return [reported]
            turn.prepare(self._numbers)
            return self._one_by_one(turn, self.told)
        if self.told.plain:
            check_plain(turn.experiment.scale)
        turn.prepare(self._numbers)
        return _learn_at_once(turn, self.told) or self._one_by_one(turn, self.told.items())

    def _one_by_one(self, turn: Turn, items: list[ToldItem]) -> list[Settled | ServiceError]:
        reading = _FeedbackReader(turn, keep_late=self.partial)
        outcomes: list[Settled | ServiceError] = []
        charged = turn.charged.copy()
        for place, item in enumerate(items):
            try:
                outcomes.append(reading.read(item))
            except ServiceError as error:
                if not self.partial:
                    turn.charged = charged
                    batch = self.told if isinstance(self.told, ToldItems) else None
                    first = 0 if batch is None else sum(batch.sizes[:place])
                    id_ = f"{turn.experiment.identity.key}-{item.number}"
                    raise placed(error, place, batch, first, id_) from error
                outcomes.append(error)
        reading.learn()
        return outcomes

    def takes_long(self, experiment: LiveExperiment) -> bool:
        """Tell whether there are many, or some keys have to be read first."""
        numbers = self._numbers
        return len(numbers) >= MANY or is_unloaded(experiment, numbers)


def _learn_at_once(turn: Turn, told: ToldItems) -> list[Settled] | None:
    """Learn if all decisions are pending and nothing is wrong; or return None, and do nothing."""
    if told.reveals is not None:
        return None
    experiment = turn.experiment
    losses = losses_of_many(experiment.module, told.losses, np.array(told.sizes), experiment.ends)
    if (told.costs is None) != (experiment.ceiling is None):
        return None
    slots = list(map(experiment.pending.slot, told.numbers))
    if losses is None or None in slots or len(set(slots)) < len(slots):
        return None
    graphs = [turn.graph(each) for each in told.graphs]
    which = None if told.graph_of is None else [graphs[k] for k in told.graph_of]
    if not _fits(experiment, told, slots, which):
        return None
    try:
        costs = None if told.costs is None else _costs_at_once(experiment, told.costs, slots, which)
    except CostError:
        return None
    for graph in graphs:
        turn.charge(graph)
    learned = learn(turn, CheckedLosses(told.numbers, told.sizes, losses, which, costs))
    both = [Settled(0, duplicate=False, learned=each) for each in (False, True)]
    return [both[number in learned] for number in told.numbers]


def _costs_at_once(
    experiment: LiveExperiment, costs: np.ndarray, slots: list[Any], graphs: list[KnownGraph | None] | None
) -> np.ndarray:
    """Return the costs of decisions which have as many losses as they reveal.

    Raises:
        CostError: some cannot be told.
    """
    pending = experiment.pending
    arms = pending.table[slots, ARM]
    shown = [pending.graph_of(slot) for slot in slots] if graphs is None else [each.graph for each in graphs if each]
    reveals = [graph.row(arm).astype(np.int64) for graph, arm in zip(shown, arms.tolist(), strict=True)]
    due, told = np.array([row.size for row in reveals]), LossColumns(costs, costs)
    return in_order(experiment.ceiling, told, due, np.concatenate(reveals), arms, lambda _: "")  # type: ignore[arg-type]


def _fits(
    experiment: LiveExperiment, told: ToldItems, slots: list[Any], graphs: list[KnownGraph | None] | None
) -> bool:
    """Tell whether decisions play the arms that are named, and have so many losses.

    With a graph, one of a round with absent arms never does.
    """
    pending = experiment.pending
    arms, places = pending.table[slots, ARM].tolist(), pending.table[slots, GRAPH].tolist()
    try:
        if told.arms is not None and list(map(experiment.arm_called, told.arms)) != arms:
            return False
        if graphs is not None:
            for (place, graph), slot in dict(zip(zip(places, graphs, strict=True), slots, strict=True)).items():
                decided = pending.graph_at(place)
                if graph is None or decided.arms_without_self_loop.size or decided.n_arms < experiment.n_arms:
                    return False
                experiment.check_graph(slot, graph.graph)
    except (DecisionError, GraphError, LearnerError, ServiceError):  # whoever looks at each item says where
        return False
    kinds = zip(places if graphs is None else graphs, arms, strict=True)
    degrees: dict[Any, int] = {}
    for wanted, kind in zip(told.sizes, kinds, strict=True):
        if kind not in degrees:
            of, arm = kind
            shown = pending.graph_at(of) if isinstance(of, int) else of.graph
            degrees[kind] = shown.row(arm).size
        if degrees[kind] != wanted:
            return False
    return True


class Taken(NamedTuple):
    """What was told of a decision, and can be learned."""

    graph: KnownGraph | None  #: that came
    losses: np.ndarray
    costs: np.ndarray | None

    def is_same(self, graph: str | None, losses: np.ndarray, costs: np.ndarray | None) -> bool:
        """Tell whether the same was told before, with a graph of this id."""
        same = np.array_equal(self.losses, losses) and np.array_equal(self.costs, costs)  # type: ignore[arg-type]  # None
        return same and _id_of(self.graph) == graph


class Group(NamedTuple):
    """Decisions that are settled by one event."""

    numbers: list[int]
    sizes: list[int]  #: how many losses each has
    losses: Any
    graph: KnownGraph | None
    costs: Any


class CheckedLosses(NamedTuple):
    """Losses of decisions in columns, one after the other, with the graph that came with each, if any came."""

    numbers: list[int]
    sizes: list[int]
    losses: np.ndarray
    graphs: list[KnownGraph | None] | None
    costs: np.ndarray | None = None  #: as losses, under a ceiling

    @classmethod
    def of(cls, told: Mapping[int, Taken]) -> CheckedLosses:
        """Return what was taken in by number."""
        graphs, losses, costs = (list(column) for column in zip(*told.values(), strict=True))
        sizes = [each.size for each in losses]
        spent = None if costs[0] is None else np.concatenate(costs)
        return cls(list(told), sizes, losses[0] if len(losses) == 1 else np.concatenate(losses), graphs, spent)

    def _whole(self) -> Group:
        graph = None if self.graphs is None else self.graphs[0]
        return Group(self.numbers, self.sizes, self.losses, graph, self.costs)

    def groups(self, split: Callable[[list[int]], Iterable[list[int]]]) -> Iterator[Group]:
        """Yield the decisions of each graph in parts whose numbers ascend, as `split` parts them.

        Each group is settled by one event.
        """
        if len(self.numbers) == 1:
            yield self._whole()
            return
        by_graph: dict[str | None, list[int]] = {}
        if self.graphs is None:
            by_graph[None] = self.numbers
        else:
            for number, graph in zip(self.numbers, self.graphs, strict=True):
                by_graph.setdefault(graph and graph.id, []).append(number)
        place_of: dict[int, int] = {}
        for numbers in by_graph.values():
            for group in split(sorted(numbers)):
                if group == self.numbers:
                    yield self._whole()
                    return
                if not place_of:
                    place_of = dict(zip(self.numbers, range(len(self.numbers)), strict=True))
                    ends = np.cumsum(self.sizes)[:-1]
                    parts = [None if each is None else np.split(each, ends) for each in (self.losses, self.costs)]
                places = [place_of[number] for number in group]
                losses, costs = (
                    None if part is None else np.concatenate([part[place] for place in places]) for part in parts
                )
                graph = None if self.graphs is None else self.graphs[places[0]]
                yield Group(group, [self.sizes[place] for place in places], losses, graph, costs)


def learn(turn: Turn, told: CheckedLosses) -> set[int]:
    """Learn losses, with an event for each graph and sort of decisions; return the numbers that were learned."""
    experiment, learned = turn.experiment, set()
    for group, sizes, losses, graph, costs in told.groups(experiment.sorts):
        if experiment.teaches(experiment.pending.slots(group[:1])[0]):
            learned.update(group)
        turn.events.append(experiment.tell(group, sizes, losses, graph, turn.moment, costs=costs))
    return learned


def _id_of(graph: KnownGraph | None) -> str | None:
    return None if graph is None else graph.id


class _FeedbackReader:
    """One batch of feedback: what is to be learned, and what was settled before."""

    def __init__(self, turn: Turn, *, keep_late: bool) -> None:
        self._turn = turn
        self._experiment = turn.experiment
        self._keep_late = keep_late
        self._told: dict[int, Taken] = {}  # by number
        self._late: dict[int, Taken] = {}

    @cached_property
    def _history(self) -> History:
        return History(self._turn.writing, self._experiment, self._turn.events)

    def read(self, item: ToldItem) -> Settled:
        """Take an item in, or raise what is wrong with it; nothing changes yet."""
        experiment = self._experiment
        told = losses = experiment.by_number(item)
        costs = experiment.costs_by_number(item)
        graph = self._turn.graph(item.graph)
        slot = experiment.pending.slot(item.number)
        if slot is None:
            return self._settled_before(item, losses, costs, graph)
        arm = int(experiment.pending.table[slot, ARM])
        check_arm(experiment.arm_called(item.arm), arm)
        shown = experiment.pending.graph_of(slot)
        whole = shown if graph is None else graph.graph
        if graph is not None:
            graph, losses, costs = self._without_absent(graph, losses, costs, shown, arm, experiment.n_arms)
            self._check_graph(slot, graph)
            shown = graph.graph
        taken = Taken(
            graph, self._checked(told, whole, losses, shown, arm), checked_costs(experiment, costs, shown, arm)
        )
        before = self._told.get(item.number)
        if before is None:
            self._told[item.number] = taken
            learned = bool(experiment.teaches(slot))
            round_ = int(experiment.pending.table[slot, KEY_ROUND])
            return Settled(round_, duplicate=False, learned=learned)
        if not self._keep_late:
            text = "A decision stands twice in this batch. Tell it once."
            raise self._turn.refusal(422, "invalid", text, item.number)
        return self._repeated(item.number, same=taken.is_same(_id_of(before.graph), before.losses, before.costs))

    def _checked(
        self, told: NumberedLosses, whole: FeedbackGraph, losses: NumberedLosses, shown: FeedbackGraph, arm: int
    ) -> np.ndarray:
        """Return losses that can be told; before absent arms were left out, they were `told`, of the `whole` graph."""
        try:
            return self._experiment.losses_of(losses, shown, arm)
        except LossError as error:
            of = shown if len(losses) == len(told) else whole
            raise refused(error, told, of.row(arm).tolist()) from error

    def _check_graph(self, slot: int, graph: KnownGraph) -> None:
        try:
            self._experiment.check_graph(slot, graph.graph)
        except (GraphError, DecisionError, LearnerError) as error:
            raise ServiceError(str(error), status=422, code="invalid", path="body.graph") from error
        self._turn.charge(graph)

    def _without_absent(
        self,
        graph: KnownGraph,
        losses: NumberedLosses,
        costs: NumberedLosses | None,
        decided: FeedbackGraph,
        arm: int,
        n_arms: int,
    ) -> tuple[KnownGraph, NumberedLosses, NumberedLosses | None]:
        """Return the graph of an outcome, losses and costs without the arms that were absent at the decision.

        Whoever tells an outcome may not know which arms were there. There were `n_arms` when it was told first.
        """
        shown = of_outcome(graph.graph, decided, n_arms)
        if shown is graph.graph:
            return graph, losses, costs
        arms, there = graph.graph.row(arm).tolist(), set(shown.row(arm).tolist())
        spent = None if costs is None else without_absent(costs, arms, there)
        return self._turn.graph(shown) or graph, without_absent(losses, arms, there), spent

    def learn(self) -> None:
        """Learn what was taken in, and keep what came too late."""
        if len(self._told) == 1:  # the same as below, but quicker
            ((number, (graph, losses, costs)),) = self._told.items()
            known = [number], [losses.size], losses, graph, self._turn.moment
            self._turn.events.append(self._experiment.tell(*known, costs=costs))
        elif self._told:
            learn(self._turn, CheckedLosses.of(self._told))
        late = CheckedLosses.of(self._late).groups(within_span) if self._late else ()
        for group, sizes, losses, graph, costs in late:
            arm = self._history.carried_out(group[0])
            kept = self._experiment.late(group, arm, sizes, losses, _id_of(graph), self._turn.moment, costs)
            self._turn.events.append(kept)

    def _settled_before(
        self, item: ToldItem, told: NumberedLosses, costs: NumberedLosses | None, graph: KnownGraph | None
    ) -> Settled:
        """Compare an item with what was told before, or keep it as late."""
        number, turn = item.number, self._turn
        event, settlement, place = self._history.settled(number)
        if event.kind is Kind.CANCELLED:
            raise turn.refusal(409, "cancelled", "The decision was cancelled. Nothing was learned.", number)
        arm = self._history.carried_out(number)
        check_arm(self._experiment.arm_called(item.arm), arm)
        losses, shown = told, self._history.graph(number, turn.find)
        whole = shown if graph is None else graph.graph
        if graph is not None:
            n_arms = self._experiment.n_arms if event.graph is None else turn.find(event.graph).n_arms
            graph, losses, costs = self._without_absent(graph, losses, costs, shown, arm, n_arms)
            shown = graph.graph
        if event.kind in EXPIRED:
            if self._keep_late and number not in self._late and self._history.found(number, LATE_SLOT) is None:
                turn.charge(graph)
                spent = checked_costs(self._experiment, costs, shown, arm)
                self._late[number] = Taken(graph, self._checked(told, whole, losses, shown, arm), spent)
            text = "The decision has expired. What was told is kept as late, and not learned."
            if not self._keep_late:
                text = "The decision has expired, and nothing of this batch is kept."
            raise turn.refusal(410, "expired", text, number)
        try:
            values = self._experiment.losses_of(losses, shown, arm)
            taken = Taken(graph, values, self._experiment.costs_of(costs, shown, arm))
        except (LossError, CostError):
            return self._repeated(number, same=False)
        same = taken.is_same(event.graph, settlement.losses_of(place), settlement.costs_of(place))
        return self._repeated(number, same=same)

    def _repeated(self, number: int, *, same: bool) -> Settled:
        if not same:
            text = "The decision was told before, with other losses or another graph. The first ones stay."
            raise self._turn.refusal(409, "conflict", text, number)
        return Settled(self._history.round_of(number), duplicate=True)


@dataclass
class Cancel(Command):
    """Give up a decision that was never carried out."""

    of: str
    number: int

    def run(self, turn: Turn) -> Settled:
        """Cancel, or find that it was cancelled."""
        experiment, number = turn.experiment, self.number
        check_settling(turn, [number])
        turn.prepare([number])
        history = History(turn.writing, experiment, turn.events)
        slot = experiment.pending.slot(number)
        sticky.refuse_reported(turn, number, "cancelled")
        if slot is not None:
            if experiment.pending.table[slot, KIND] == Kind.OVERRIDDEN:
                text = "The decision was carried out with another arm. Tell what that has revealed, or let it expire."
                raise turn.refusal(409, "conflict", text, number)
            round_ = int(experiment.pending.table[slot, KEY_ROUND])
            turn.events.append(experiment.give_up([number], Kind.CANCELLED, turn.moment))
            return Settled(round_, duplicate=False)
        kind = history.settled(number)[0].kind
        if kind is Kind.TOLD:
            raise turn.refusal(409, "told", "The decision was told. What was learned cannot be taken back.", number)
        if kind in EXPIRED:
            raise turn.refusal(410, "expired", "The decision has expired.", number)
        return Settled(history.round_of(number), duplicate=True)

    def takes_long(self, experiment: LiveExperiment) -> bool:
        """Tell whether its key has to be read first."""
        return is_unloaded(experiment, [self.number])


class Overridden(NamedTuple):
    """A decision that was carried out with another arm."""

    decided: Decided
    place: int  #: of the decision among those that were made with it
    carried_out: int


@dataclass
class Override(Command):
    """Say that a decision was carried out with another arm, before its outcome is told."""

    of: str
    number: int
    arm: int | str

    def run(self, turn: Turn) -> Overridden:
        """Note it, or find that it is known."""
        experiment, number = turn.experiment, self.number
        check_present(experiment)
        turn.prepare([number])
        history = History(turn.writing, experiment, turn.events)
        history.check(number)
        made, draws = history.draws(number)
        drawn = draws.arms[number - made.round]
        asked = turn.find(made.graph)
        shown = draws.graph(number - made.round, asked)
        wanted = self._arm(turn, shown)
        slot = experiment.pending.slot(number)
        if slot is None:
            before = history.carried_out(number)
            if before != wanted:
                raise self._too_late(turn, history.settled(number)[0].kind)
        else:
            before = int(experiment.pending.table[slot, ARM])
            if before != wanted:
                sticky.refuse_reported(turn, number, "carried out with another arm")
                if before != drawn:
                    text = f"The decision was carried out with arm {before}, as was said before. That stays."
                    raise turn.refusal(409, "conflict", text, number)
                turn.events.append(experiment.override(number, wanted, turn.moment))
        life, key = experiment.life, experiment.identity.key
        decided = Decided(key, made.at, life.expire_after, draws, asked, before == wanted, life.labels)
        return Overridden(decided, number - made.round, wanted)

    def _arm(self, turn: Turn, graph: FeedbackGraph) -> int:
        """Return the number of the arm, if it could be carried out."""
        labels = turn.experiment.life.labels
        try:
            named = graph if labels is None else graph.labelled(labels[: graph.n_arms])  # others came later
            return carried_arm(named, self.arm, f"{turn.experiment.identity.key}-{self.number}")
        except (GraphError, DecisionError) as error:
            raise ServiceError(str(error), status=422, code="invalid", path="body.arm", value=self.arm) from error

    def _too_late(self, turn: Turn, kind: Kind) -> ServiceError:
        if kind is Kind.CANCELLED:
            return turn.refusal(409, "cancelled", "The decision was cancelled. Nothing was learned.", self.number)
        if kind in EXPIRED:
            return turn.refusal(410, "expired", "The decision has expired.", self.number)
        text = "The decision was told. Say that it was carried out with another arm before its outcome is told."
        return turn.refusal(409, "told", text, self.number)

    def takes_long(self, experiment: LiveExperiment) -> bool:
        """Tell whether its key has to be read first."""
        return is_unloaded(experiment, [self.number])


@dataclass
class Expire(Command):
    """Let decisions expire that are older than they may be."""

    of: str

    def run(self, turn: Turn) -> int:
        """Expire what is due, oldest first."""
        experiment = turn.experiment
        if experiment.life.state == "archived":
            return 0
        due = experiment.overdue(turn.moment.clock)
        if due:
            turn.expire(due)
        return len(due)

    def takes_long(self, experiment: LiveExperiment) -> bool:
        """Tell whether there may be many, or keys that have to be read first."""
        return len(experiment.pending) >= MANY or is_unloaded(experiment, list(experiment.pending.numbers))


def is_unloaded(experiment: LiveExperiment, numbers: Sequence[int]) -> bool:
    """Tell whether decisions are of keys that have to be read first."""
    return not experiment.blocks.all_stay and not experiment.blocks.is_loaded(experiment.pending.rows_of(numbers))


def taken(name: str) -> ServiceError:
    """Return the error for a name that another experiment has."""
    text = f"There is an experiment {name!r} already. Choose another name."
    return ServiceError(text, status=409, code="exists", path="body.name", value=name)
