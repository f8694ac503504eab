"""What changes an experiment, and the rules: what is a repetition, what is a conflict, and what is refused.

A command runs in a `Turn`: while no other server changes the experiment. It does all of what it is asked, or refuses
and changes nothing.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from sidelong.errors import DecisionError, FeatureError, GraphError, LearnerError, LossError, ServiceError
from sidelong.graphs.presence import mask_of
from sidelong.service.store.absent import as_decided
from sidelong.service.store.database import Reading, Writing
from sidelong.service.store.graphs import KnownGraph, blob_of, identify, size, stored_size
from sidelong.service.store.journal import EXPIRED, Kind, labels_at
from sidelong.service.store.keyed import rules as keyed
from sidelong.service.store.keyed.experiment import KeyedExperiment
from sidelong.service.store.losses import matched
from sidelong.service.store.settled import Settled, ToldItem, check_arm

if TYPE_CHECKING:
    from collections.abc import Mapping

    from sidelong.graphs import FeedbackGraph
    from sidelong.service.settings import Settings
    from sidelong.service.store.database import Listed
    from sidelong.service.store.experiment import LiveExperiment, Moment
    from sidelong.service.store.graphs import GraphCache
    from sidelong.service.store.journal import Event
    from sidelong.service.store.losses import Told


#: So many decisions at once are so much work that nobody else should wait for it.
MANY = 64


@dataclass
class Turn:
    """The turn of some commands at an experiment."""

    experiment: LiveExperiment
    writing: Reading  #: one that writes, unless this turn is ahead of it
    graph_cache: GraphCache
    settings: Settings
    moment: Moment
    keys: Mapping[str, Event]  #: decisions that were made before under the keys of this batch
    events: list[Event] = field(default_factory=list)  #: what happened, to be written
    graphs: dict[str, FeedbackGraph] = field(default_factory=dict)  #: that came with requests
    charged: dict[str, int] = field(default_factory=dict)  #: bytes of those of them that are new to the database
    deletion: Listed | None = None  #: what is to be left of it
    listed: dict[str, Any] = field(default_factory=dict)  #: what is to be changed in the list of experiments
    held: set[str] = field(default_factory=set)  #: graphs that must not be forgotten before this is written

    def graph(self, given: FeedbackGraph | KnownGraph | str | None) -> KnownGraph | None:
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

    def find(self, id_: str) -> FeedbackGraph:
        """Return a graph by its id."""
        return self.graphs[id_] if id_ in self.graphs else self.graph_cache.find(self.writing, id_)

    def is_outstanding(self, number: int) -> bool:
        """Tell whether a decision can be settled; one whose time is over expires now, not at the next sweep."""
        if number not in self.experiment.outstanding:
            return False
        if not self.experiment.is_due(number, self.moment.clock):
            return True
        self.events.append(self.experiment.expire(number, self.moment))
        return False

    def keep_graphs(self, writing: Writing) -> None:
        """Write the graphs of requests that the events name."""
        for id_ in {event.graph for event in self.events if event.graph in self.graphs}:
            self.graph_cache.put(writing, KnownGraph(str(id_), self.graphs[str(id_)]), self.moment.clock)
            self.experiment.graph_bytes += self.charged.get(str(id_), 0)

    def made_under(self, key: str | None) -> Event | None:
        """Return the decision that was made before under a key, or under the mark of a batch."""
        return None if key is None else self.experiment.keys.get(key) or self.keys.get(key)

    def batch_size(self, first: Event) -> int:
        """Return how many decisions were asked for together, of which this is the first."""
        mark = str(mark_of(first.key))
        last = self.experiment.keys.get(mark)
        if last is None:
            last = next(iter(self.writing.keyed(self.experiment.identity.id, [mark])), None)
        return 1 if last is None else last.round - first.round + 1

    def outcome(self, number: int) -> list[Event]:
        """Return what is written about a round that is not outstanding: decided, settled, told too late."""
        found = self.writing.rounds(self.experiment.identity.id, number, number)
        fresh = [event for event in self.events if event.round == number]
        return found + fresh


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
    """A decision, made now or before."""

    event: Event
    experiment: str
    reveals: list[int]
    expire_after: float | None
    duplicate: bool
    label: str | None  #: of the arm


@dataclass
class Decide(Command):
    """Draw an arm."""

    of: str
    graph: FeedbackGraph | KnownGraph | str | None = None
    context: str | None = None
    key: str | None = None
    available: list[Any] | None = None
    count: int = 1  #: of how many decisions it is the first that are asked for together

    def run(self, turn: Turn) -> Decided:
        """Draw, or find what was drawn under the same key."""
        experiment = turn.experiment
        if isinstance(experiment, KeyedExperiment):
            text = f"{experiment.identity.name!r} has keys: send the key that a decision is for, or several as keys."
            raise ServiceError(text, status=422, code="invalid", path="body.key")
        before = turn.made_under(self.key)
        graph = turn.graph(self.graph)
        if self.available is not None:
            graph = restricted(turn, graph, self.available, before)
        if before is not None:
            same = before.graph == (graph and graph.id) and before.context == self.context
            if not same or turn.batch_size(before) != self.count:
                raise _refusal(409, "key_reused", "This Idempotency-Key was used before, with another request.", self)
            return self.reply(turn, before, duplicate=True)
        self.check_state(experiment)
        self.check_room(experiment, turn.settings, graph, self.count)
        turn.charge(graph)
        try:
            event = experiment.decide(graph, turn.moment, self.key, self.context)
        except GraphError as error:
            raise _unplayable(error, self.available) from error
        except FeatureError as error:
            raise ServiceError(str(error), status=422, code="invalid", path="body.context") from error
        turn.events.append(event)
        return self.reply(turn, event, duplicate=False)

    @staticmethod
    def check_state(experiment: LiveExperiment) -> None:
        """Refuse where the experiment decides nothing."""
        name, life = experiment.identity.name, experiment.life
        if life.state == "stopped" and life.fallback is None:
            text = (
                f"The experiment {name!r} is stopped, and has no fallback arm. It takes feedback, and decides no more."
            )
            raise ServiceError(text, status=409, code="stopped", path="path.name", value=name)
        check_present(experiment)

    @staticmethod
    def check_room(experiment: LiveExperiment, settings: Settings, graph: KnownGraph | None, count: int = 1) -> None:
        """Refuse where decisions wait that are too many, with `count` more, or that keep too much in memory."""
        outstanding, held = len(experiment.outstanding), experiment.held
        wanted = 8 * experiment.n_arms * count + (0 if graph is None else size(graph.graph))
        most, others = settings.max_outstanding_bytes, outstanding + count - 1
        if others >= settings.max_outstanding or (others and held + wanted > most):
            raise ServiceError(
                f"{outstanding:,} decisions of this experiment are outstanding, with {held:,} bytes of probabilities "
                f"and graphs, and at most {settings.max_outstanding:,} with {most:,} bytes may be. Tell or cancel "
                f"some, or let them expire sooner.",
                status=429,
                code="too_many_outstanding",
                retry_after=1.0,
            )

    @staticmethod
    def reply(turn: Turn, event: Event, *, duplicate: bool) -> Decided:
        """Return a decision with what it reveals."""
        experiment = turn.experiment
        graph = experiment.agent.graph if event.graph is None else turn.find(event.graph)
        reveals = graph.row(event.arm or 0).tolist()
        life = experiment.life
        label = None if life.labels is None else life.labels[event.arm or 0]
        return Decided(event, experiment.identity.key, reveals, life.expire_after, duplicate, label)


@dataclass
class Tell(Command):
    """Tell the losses that a decision revealed."""

    of: str
    number: int
    losses: Told
    graph: FeedbackGraph | KnownGraph | str | None = None
    arm: int | str | None = None  #: that was played, by number or label, if whoever tells it says so
    plain: bool = False  #: as in `ToldItem`

    def run(self, turn: Turn) -> Settled:
        """Learn, or recognise what was learned."""
        check_present(turn.experiment)
        if isinstance(turn.experiment, KeyedExperiment):
            return keyed.tell_one(turn, ToldItem(self.number, self.losses, self.graph, self.arm, self.plain))
        graph = turn.graph(self.graph)
        losses = turn.experiment.losses_of(self.losses, plain=self.plain)
        if turn.is_outstanding(self.number):
            learned = turn.experiment.teaches(self.number)
            made, _ = turn.experiment.outstanding[self.number]
            check_arm(turn.experiment.arm_called(self.arm), made.arm)
            graph, losses = as_decided(turn, graph, losses, made.graph, made.arm)
            turn.charge(graph)
            try:
                turn.events.append(turn.experiment.tell(self.number, losses, graph, turn.moment))
            except LossError as error:
                raise ServiceError(str(error), status=422, code="invalid", path="body.losses") from error
            except (GraphError, DecisionError) as error:
                raise ServiceError(str(error), status=422, code="invalid", path="body.graph") from error
            return Settled(self.number, duplicate=False, learned=learned)
        decided, settled, *late = settled_before(turn, self)
        arm = decided.arm or 0
        check_arm(turn.experiment.arm_called(self.arm), arm)
        if decided.graph is not None:
            graph, losses = as_decided(turn, graph, losses, turn.find(decided.graph), arm)
        if settled.kind is Kind.CANCELLED:
            raise _refusal(409, "cancelled", "The decision was cancelled. Nothing was learned.", self)
        if settled.kind in EXPIRED:
            self._keep(turn, decided, losses, graph, late)
        if not self._repeats(turn, decided, settled, losses, graph):
            text = "The decision was told before, with other losses or another graph. The first ones stay."
            raise _refusal(409, "conflict", text, self)
        return Settled(self.number, duplicate=True)

    def takes_long(self, experiment: LiveExperiment) -> bool:
        """Tell whether its key has to be read first."""
        return keyed.is_asleep(experiment, [self.number])

    def _keep(self, turn: Turn, decided: Event, losses: Told, graph: KnownGraph | None, late: list[Event]) -> None:
        """Write down what came too late, once, and say so."""
        if not late:
            turn.charge(graph)
            values = self._values(turn, decided, losses, graph)
            which = None if graph is None else graph.id
            turn.events.append(turn.experiment.late(self.number, decided.arm or 0, values, which, turn.moment))
        raise _refusal(
            410, "expired", "The decision has expired. What was told is kept as late, and not learned.", self
        )

    def _repeats(self, turn: Turn, decided: Event, told: Event, losses: Told, graph: KnownGraph | None) -> bool:
        if told.graph != (graph and graph.id):
            return False
        try:
            values = self._values(turn, decided, losses, graph)
        except ServiceError:
            return False
        return np.array_equal(values, np.frombuffer(told.losses or b"", "<f8"))

    @staticmethod
    def _values(turn: Turn, decided: Event, losses: Told, graph: KnownGraph | None) -> np.ndarray:
        shown = graph or turn.graph(decided.graph)
        revealing = turn.experiment.agent.graph if shown is None else shown.graph
        return matched(losses, revealing.row(decided.arm or 0).tolist())


@dataclass
class Cancel(Command):
    """Give up a decision that was never carried out."""

    of: str
    number: int

    def run(self, turn: Turn) -> Settled:
        """Cancel, or find that it was cancelled."""
        check_present(turn.experiment)
        if isinstance(turn.experiment, KeyedExperiment):
            return keyed.cancel(turn, self.number)
        if turn.is_outstanding(self.number):
            turn.events.append(turn.experiment.settle(self.number, Kind.CANCELLED, turn.moment))
            return Settled(self.number, duplicate=False)
        _, settled, *_ = settled_before(turn, self)
        if settled.kind is Kind.TOLD:
            raise _refusal(409, "told", "The decision was told. What was learned cannot be taken back.", self)
        if settled.kind in EXPIRED:
            raise _refusal(410, "expired", "The decision has expired.", self)
        return Settled(self.number, duplicate=True)

    def takes_long(self, experiment: LiveExperiment) -> bool:
        """Tell whether its key has to be read first."""
        return keyed.is_asleep(experiment, [self.number])


@dataclass
class DecideKeys(Command):
    """Draw an arm for each of some keys."""

    of: str
    keys: list[str | int]
    graph: FeedbackGraph | KnownGraph | str | None = None
    context: str | None = None
    key: str | None = None
    available: list[Any] | None = None

    def run(self, turn: Turn) -> keyed.DrawnKeys:
        """Draw, or find what was drawn under the same key."""
        Decide.check_state(turn.experiment)
        graph = turn.graph(self.graph)
        if self.available is not None:
            graph = restricted(turn, graph, self.available, turn.made_under(self.key))
        try:
            return keyed.decide(turn, self.keys, graph, self.key, self.context)
        except GraphError as error:
            raise _unplayable(error, self.available) from error

    def takes_long(self, experiment: LiveExperiment) -> bool:
        """Tell whether there are many keys, or some have to be read first."""
        return len(self.keys) >= MANY or keyed.is_asleep(experiment, keys=self.keys)


@dataclass
class Expire(Command):
    """Let decisions expire that are older than they may be."""

    of: str

    def run(self, turn: Turn) -> int:
        """Expire what is due, oldest first."""
        if turn.experiment.life.state == "archived":
            return 0
        if isinstance(turn.experiment, KeyedExperiment):
            return sum(map(turn.experiment.amount, keyed.expire(turn, turn.experiment)))
        expired = turn.experiment.expire_due(turn.moment)
        turn.events += expired
        return sum(map(turn.experiment.amount, expired))

    def takes_long(self, experiment: LiveExperiment) -> bool:
        """Tell whether it may be a whole night of keys, which may have to be read first."""
        return isinstance(experiment, KeyedExperiment)


def _unplayable(error: GraphError, available: list[Any] | None) -> ServiceError:
    """Return the error of a round whose graph is not to be played: as it was given, or of the arms that are there."""
    path = "body.graph" if available is None else "body.available"
    return ServiceError(str(error), status=422, code="invalid", path=path)


def restricted(turn: Turn, graph: KnownGraph | None, available: list[Any], before: Event | None) -> KnownGraph | None:
    """Return the graph of the round without the arms that are not available, to be kept like any other.

    The labels of a repetition are those that the arms had when `before` was decided.
    """
    experiment = turn.experiment
    shown, labels = None if graph is None else graph.graph, experiment.life.labels
    if before is not None:
        labels = labels_at(turn.writing, experiment.identity, before.seq, turn.events)
    try:
        named = experiment.agent.graph if labels is None else experiment.agent.graph.labelled(labels)
        found = experiment.agent.graph_of_round(shown, mask_of(named, available))
    except (GraphError, LearnerError) as error:
        raise ServiceError(str(error), status=422, code="invalid", path="body.available") from error
    return graph if found is (shown or experiment.agent.graph) else turn.graph(found)


def taken(name: str) -> ServiceError:
    """Return the error for a name that another experiment has."""
    text = f"There is an experiment {name!r} already. Choose another name."
    return ServiceError(text, status=409, code="exists", path="body.name", value=name)


def check_present(experiment: LiveExperiment) -> None:
    """Refuse where the experiment is archived."""
    name = experiment.identity.name
    if experiment.life.state == "archived":
        text = f"The experiment {name!r} is archived. Bring it back first, with another state."
        raise ServiceError(text, status=409, code="archived", path="path", value=name)


def mark_of(key: str | None) -> str | None:
    """Return what the last decision of a batch has in the place of a key; it begins with a blank, as no key does."""
    return None if key is None else f" {hashlib.blake2b(key.encode(), digest_size=16).hexdigest()}"


def settled_before(turn: Turn, command: Tell | Cancel) -> list[Event]:
    """Return what is written about a decision that is not outstanding, or refuse one that never was."""
    events = turn.outcome(command.number)
    if len(events) < 2:
        raise _refusal(404, "not_found", "There is no such decision.", command)
    return events


def _refusal(status: int, code: str, message: str, command: Command) -> ServiceError:
    number = getattr(command, "number", None)
    value = command.key if number is None else f"{command.of[1:]}-{number}"
    path = "header.idempotency-key" if number is None else "path.id"
    return ServiceError(message, status=status, code=code, path=path, value=value)
