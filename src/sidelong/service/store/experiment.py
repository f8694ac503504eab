"""An experiment in memory: the agent, what is counted beside it, how far in the journal it is, and the clock.

Whatever happens is first done here, which gives the event to be written. A replay does the same again, and must give
the same event, to the bit. Each event carries a hash of itself and of all events before it, so that a snapshot says of
which journal it is one.

Decisions expire by a clock of the service's own. The wall clock may jump: by an hour, when a machine wakes up, or when
someone sets it. Decisions must not expire for that. So age is counted by a clock that only ever runs while a server
does: each server moves it on by its own monotonic clock, writes it beside what it stores, and never falls behind what
it reads there. An hour in which no server runs does not count.
"""

from __future__ import annotations

import datetime as dt
import hashlib
import itertools
import math
import struct
import threading
import time
from collections import OrderedDict, deque
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from sidelong._jit import bind
from sidelong.agent import ContextualAgent, state_file
from sidelong.agent.decision import SparingDecision
from sidelong.agent.rules import check_losses
from sidelong.errors import DecisionError, GraphError
from sidelong.graphs.arrays import observe
from sidelong.service.store import agents, life
from sidelong.service.store.graphs import size
from sidelong.service.store.journal import DRAWN_BY, Event, Kind
from sidelong.service.store.life import Given, Holdout, Life
from sidelong.service.store.losses import as_losses, by_number, matched, number_of
from sidelong.service.store.tallies import HIDDEN, MINUTES, UNLEARNED, Tallies

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Self

    from sidelong.agent import Decision
    from sidelong.graphs import FeedbackGraph
    from sidelong.service.store.agents import Decider
    from sidelong.service.store.database import Identity
    from sidelong.service.store.graphs import KnownGraph
    from sidelong.service.store.losses import Told

STORED = np.dtype("<f8")  #: how the journal keeps losses and probabilities
_KEY_BYTES = 2**22  # of keys and contexts that are found without asking the database
_NUMBERS = struct.Struct("<qbqqqqd")
_LONG = 2**16  # bytes of columns that are not copied to be hashed


class Moment(NamedTuple):
    """When something happened."""

    at: int  #: microseconds since 1970, by the wall clock: what people are shown
    clock: int  #: milliseconds, by the service's own clock: what expiry is counted by


class Clock:
    """A clock that goes on where the last one was seen.

    Args:
        wall: seconds since 1970, as `time.time`.
        steady: seconds that never go back or jump, as `time.monotonic`.
    """

    def __init__(self, wall: Callable[[], float] = time.time, steady: Callable[[], float] = time.monotonic) -> None:
        self._wall = wall
        self._steady = steady
        self._lock = threading.Lock()
        self._ahead = -round(steady() * 1000)

    def now(self) -> Moment:
        """Return the moment."""
        return Moment(round(self._wall() * 1e6), round(self._steady() * 1000) + self._ahead)

    def saw(self, clock: int) -> None:
        """Take notice of a time that was written down: this clock is not behind it."""
        with self._lock:
            self._ahead = max(self._ahead, clock - round(self._steady() * 1000))


class Turnstile:
    """A lock that is handed on in turn, to commands before all others.

    The thread that writes serves all experiments, so it never waits for one of them: it asks for the lock of an
    experiment, and is told when its turn has come.
    """

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._held = False
        self._commands: deque[Callable[[], None]] = deque()
        self._others: deque[Callable[[], None]] = deque()

    def request(self, granted: Callable[[], None]) -> bool:
        """Take it, and return True; or False, and `granted` is called, by another thread, as soon as it is ours."""
        with self._guard:
            if self._held:
                self._commands.append(granted)
                return False
            self._held = True
            return True

    def acquire(self, timeout: float = -1, *, first: bool = False) -> bool:
        """Wait for it, for so many seconds at most, as a command if `first`; tell whether it is ours."""
        with self._guard:
            if not self._held:
                self._held = True
                return True
            if timeout == 0:
                return False
            handed = threading.Semaphore(0)
            waiting = self._commands if first else self._others
            waiting.append(handed.release)
        if handed.acquire(timeout=None if timeout < 0 else timeout):
            return True
        with self._guard:
            if handed.release not in waiting:  # it became ours in the last moment
                return True
            waiting.remove(handed.release)
            return False

    def release(self) -> None:
        """Hand it on."""
        with self._guard:
            waiting = self._commands or self._others
            first = waiting.popleft() if waiting else None
            self._held = first is not None
        if first is not None:
            first()

    def __enter__(self) -> None:
        self.acquire()

    def __exit__(self, *_: object) -> None:
        self.release()


class LiveExperiment:
    """The state of an experiment after some event of its journal."""

    #: How many Idempotency-Keys are found without asking the database.
    remembers = 10_000

    def __init__(self, identity: Identity, agent: Decider, tallies: Tallies) -> None:
        self.identity = identity
        self.agent = agent
        self.agent.remembers = 0  # the journal does
        self.tallies = tallies
        self.n_arms = agent.graph.n_arms
        module = agents.module_of(identity.spec)
        self._is_sparing = module.is_sparing
        self.module = module
        self.life = Life.first(identity.spec)
        self.scale = agents.scale_of(identity.spec)
        held = identity.spec.holdout
        self.holdout = None if held is None else Holdout(int(held.arm), held.share)
        unseen = np.empty(self.n_arms)
        self._observe: Callable[..., None]
        bind(self, "_observe", observe, agent.graph.arrays, unseen, unseen)
        self.outstanding: dict[int, tuple[Decision | Given, Moment]] = {}
        self.round = tallies.drawn  #: how many decisions were made, by the learner or without it
        self.head = 0  #: the number of the last event
        self.saved = 0  #: how much had happened at the last snapshot
        self.saved_at = 0  #: and the number of its event
        self.chain = b""
        self.keys: OrderedDict[str, Event] = OrderedDict()
        self._key_bytes = 0
        self.graph_bytes = 0  #: of graphs of rounds, in the database
        self.held = 0  #: bytes that outstanding decisions keep in memory
        self._graphs: dict[int, list[int]] = {}  # of them: how many use each graph, and its bytes

    @classmethod
    def new(cls, identity: Identity, graph: FeedbackGraph, learned: bytes | None = None) -> Self:
        """Return an experiment to which nothing has happened; `learned` is the state that it begins with."""
        if learned is None:
            return cls(identity, agents.new(identity.spec, graph), Tallies(graph.n_arms))
        place = f"what {identity.name} began with"
        agent = agents.resumed(*state_file.unpack(learned, place), place)
        return cls(identity, agent, Tallies(graph.n_arms))

    @property
    def waiting(self) -> int:
        """How many decisions are outstanding."""
        return len(self.outstanding)

    @property
    def done(self) -> int:
        """How much has happened."""
        return self.head

    def wants_saving(self, every: int, most: int) -> bool:  # noqa: ARG002  # as keys may
        """Tell whether enough has happened for a snapshot; `most` are the bytes that keys may take in memory."""
        return self.done - self.saved >= every

    def needs_saving(self, most: int) -> bool:  # noqa: ARG002
        """Tell whether only a snapshot lets keys leave memory that take more than `most` bytes of it."""
        return False

    @property
    def changed_bytes(self) -> int:
        """What a snapshot takes that depends on how much has changed, about."""
        return 0

    def amount(self, event: Event) -> int:  # noqa: ARG002  # an experiment with keys has batches
        """Return how many things an event is about."""
        return 1

    def played(self, event: Event) -> list[int]:
        """Return the arms that an event has drawn."""
        return [] if event.arm is None or event.kind not in DRAWN_BY else [event.arm]

    def paid(self) -> tuple[int, float]:
        """Return how many decisions were told what their own arm cost, and how much that was."""
        return int(self.tallies.plays.sum() - self.tallies.counts[HIDDEN]), float(self.tallies.paid[0])

    def create(self, moment: Moment, about: str | None = None) -> Event:
        """Begin; `about` says who made it, and of what."""
        return self._record(Event(Kind.CREATED, 0, *moment, context=about))

    def change(self, change: Mapping[str, Any], moment: Moment) -> Event:
        """Let it be what somebody has made of it."""
        self.life = self.life.after(change)
        if "name" in change:
            self.identity = replace(self.identity, name=change["name"])
        return self._record(Event(Kind.CHANGED, -self.head - 1, *moment, context=life.written(change)))

    def decide(
        self, graph: KnownGraph | None, moment: Moment, key: str | None = None, context: str | None = None
    ) -> Event:
        """Draw an arm, as its state says."""
        number, shown = self.round + 1, None if graph is None else graph.graph
        tossed = self._is_tossed(shown or self.agent.graph)
        given = self._given(number, shown or self.agent.graph, tossed=tossed)
        kind = Kind.DECIDED if given is None else given.kind
        made = given or self._draw(shown, context)
        if isinstance(made, SparingDecision):
            self.tallies.spare(number, made.graph.row(made.arm))
        elif given is None and not math.isnan(made.probability):
            self.tallies.frozen[number] = self.tallies.baselines
        self.hold(number, made, moment)
        p = made.probability
        if tossed is not None:
            self.tallies.toss(number, tossed.share)
            p = p if given is not None else float(tossed.mixed(np.asarray(p), made.arm == tossed.arm))
        probability = None if math.isnan(p) else p
        which = None if graph is None else graph.id
        return self._record(Event(kind, number, *moment, made.arm, probability, which, key, context))

    def _is_tossed(self, graph: FeedbackGraph) -> Holdout | None:
        """Return the holdout, if a coin decides whether a round follows it."""
        if self.holdout is None or self.life.state != "running" or graph.n_arms != self.n_arms:
            return None
        return self.holdout if life.playable(graph)[self.holdout.arm] else None

    def _given(self, number: int, graph: FeedbackGraph, *, tossed: Holdout | None) -> Given | None:
        """Draw a round that is not the learner's, or return None."""
        seed = self.identity.spec.seed
        if tossed is not None and not isinstance(self.agent, ContextualAgent) and tossed.is_held(seed, number):
            made = tossed.held(graph, self.agent.outlook(graph))
            if not self._is_sparing:
                return made
            reveals = graph.row(made.arm)
            return Given(Kind.HELD, made.arm, graph, made.probability, None, self._observed(made, graph)[reveals])
        if self.life.play is not None:
            return life.played(seed, number, self._checked(graph), self.life.play)
        if self.life.fallback is not None:
            return life.fallen_back(self._checked(graph), self.life.fallback)
        return None

    def _draw(self, graph: FeedbackGraph | None, context: str | None) -> Decision:
        """Ask the agent, which sees the context if the experiment says so."""
        if isinstance(self.agent, ContextualAgent):
            return self.agent.ask(agents.seen(self.identity.spec, context), graph)
        return self.agent.ask(graph)

    def tell(
        self,
        number: int,
        losses: Told,
        graph: KnownGraph | None,
        moment: Moment,
        kind: Kind = Kind.TOLD,
    ) -> Event:
        """Learn the losses that an outstanding decision revealed."""
        made = self.outstanding[number][0]
        arm, aside = made.arm, isinstance(made, Given)  # the holdout is one of these
        values, observe, own = self._learn(number, losses, None if graph is None else graph.graph)
        if not isinstance(made, Given) or made.kind is Kind.HELD:
            self.tallies.paid_in(moment.at // 60_000_000, own, held=aside)
        which = None if graph is None else graph.id
        seen = None if observe is None else observe.astype(STORED, copy=False).tobytes()
        data = values.astype(STORED, copy=False).tobytes()
        return self._record(Event(kind, number, *moment, arm, None, which, losses=data, observe=seen), aside)

    def teaches(self, number: int) -> bool:
        """Tell whether the learner would learn what an outstanding decision is told."""
        return self.life.state != "frozen" and not isinstance(self.outstanding[number][0], Given)

    def check(self, number: int, losses: Told, graph: FeedbackGraph | None) -> None:
        """Refuse what `tell` would refuse, and change nothing."""
        decision, _ = self.outstanding[number]
        shown = decision.graph if graph is None else self._checked(graph)
        reveals = shown.row(decision.arm)
        values = matched(losses, reveals.tolist())
        check_losses(self.module, values, shown, decision.arm)
        if graph is not None:
            self.agent.graph_of_round(graph)
            if isinstance(decision, SparingDecision) and graph != decision.graph:
                raise DecisionError(
                    "A learner that does not look at every arm must know at the decision what it reveals: tell it "
                    "without a graph."
                )

    def _checked(self, graph: FeedbackGraph) -> FeedbackGraph:
        if graph.n_arms != self.n_arms:
            raise GraphError(f"The graph of a round must have the experiment's {self.n_arms} arms, not {graph.n_arms}.")
        return graph

    def _learn(
        self, number: int, losses: Told, graph: FeedbackGraph | None
    ) -> tuple[np.ndarray, np.ndarray | None, float | None]:
        """Learn; return the losses, the probabilities of observing them before the draw, and the loss of the arm.

        Nothing is learned of a round that was not the learner's, and nothing while the
        experiment is frozen.
        """
        decision, _ = self.outstanding[number]
        shown = decision.graph if graph is None else self._checked(graph)
        teaches = self.teaches(number)
        if not teaches:
            self.check(number, losses, graph)
        reveals = shown.row(decision.arm)
        values = matched(losses, reveals.tolist())
        observe = self.observe(decision, shown)
        if not isinstance(decision, Given):
            p = None if observe is None or isinstance(decision, SparingDecision) else decision.probabilities
            delay = self.agent.round - decision.round
            if teaches:
                self.agent.tell(decision, values, None if graph is None else shown)
            else:
                self.agent.cancel(decision, lost=True)
                self.tallies.counts[UNLEARNED] += 1
            self.tallies.told(number, decision.arm, p, reveals, values, observe, after=graph is not None, delay=delay)
        place = int(reveals.searchsorted(decision.arm))
        loss = float(values[place]) if place < reveals.size and reveals[place] == decision.arm else None
        if number in self.tallies.tossed and self.holdout is not None:
            self.tallies.compare(number, loss, self.holdout.share, held=isinstance(decision, Given))
            if observe is not None and not isinstance(decision, Given):
                observe = self.holdout.mixed(observe, np.isin(reveals, shown.row(self.holdout.arm)))
        self._release(number)
        return values, observe, loss

    def expire(self, number: int, moment: Moment) -> Event:
        """Let an outstanding decision expire, or learn the loss that is named for this."""
        told = self.identity.spec.default_loss
        if told is None:
            return self.settle(number, Kind.EXPIRED, moment)
        made = self.outstanding[number][0]
        losses = self.losses_of([told] * made.graph.row(made.arm).size)
        return self.tell(number, losses, None, moment, Kind.DEFAULTED)

    def losses_of(self, told: Told, *, plain: bool = False) -> Told:
        """Return what is told as losses, if it is in the experiment's scale; `plain` is for one that has none."""
        return as_losses(by_number(told, self.life.labels), self.scale, plain=plain)

    def arm_called(self, told: int | str | None) -> int | None:
        """Return the number of an arm that feedback names, if it names one."""
        return number_of(told, self.life.labels, "arm") if isinstance(told, str) else told

    def settle(self, number: int, kind: Kind, moment: Moment) -> Event:
        """Cancel an outstanding decision, or let it expire."""
        made = self.outstanding[number][0]
        aside = isinstance(made, Given)
        if not isinstance(made, Given):
            self.agent.cancel(made, lost=kind is Kind.EXPIRED)
        self._release(number)
        self.tallies.frozen.pop(number, None)
        self.tallies.tossed.pop(number, None)
        return self._record(Event(kind, number, *moment, made.arm), aside)

    def hold(self, number: int, decision: Decision | Given, moment: Moment) -> None:
        """Keep a decision until it is settled, and charge what it keeps in memory."""
        self.outstanding[number] = decision, moment
        self.held += decision.kept_bytes
        if decision.graph is not self.agent.graph:
            users = self._graphs.setdefault(id(decision.graph), [0, size(decision.graph)])
            self.held += 0 if users[0] else users[1]
            users[0] += 1

    def _release(self, number: int) -> None:
        decision, _ = self.outstanding.pop(number)
        self.held -= decision.kept_bytes
        if decision.graph is not self.agent.graph:
            users = self._graphs[id(decision.graph)]
            users[0] -= 1
            if not users[0]:
                self.held -= self._graphs.pop(id(decision.graph))[1]

    def expire_due(self, moment: Moment) -> list[Event]:
        """Let decisions expire that are older than they may be, oldest first."""
        return [self.expire(number, moment) for number in self.due(moment.clock)]

    def due(self, clock: int) -> list[int]:
        """Return the outstanding decisions that have expired, oldest first."""
        return list(itertools.takewhile(lambda number: self.is_due(number, clock), self.outstanding))

    def names_of_waiting(self) -> dict[str, Any]:
        """Return how the agent calls the decisions that it has made and that wait, by their ids: by their rounds."""
        made = {number: each for number, (each, _) in self.outstanding.items() if not isinstance(each, Given)}
        return {f"{self.identity.key}-{number}": each.round for number, each in made.items()}

    def moments(self) -> list[Moment]:
        """Return when the decisions were made that wait."""
        return [moment for _, moment in self.outstanding.values()]

    def is_any_due(self, clock: int) -> bool:
        """Tell whether a decision has expired: the oldest one, since all have the same time."""
        oldest = next(iter(self.outstanding), None)
        return oldest is not None and self.is_due(oldest, clock)

    def is_due(self, number: int, clock: int) -> bool:
        """Tell whether an outstanding decision has expired."""
        after = self.life.expire_after
        return after is not None and self.outstanding[number][1].clock + after * 1000 <= clock

    def late(self, number: int, arm: int, losses: np.ndarray, graph: str | None, moment: Moment) -> Event:
        """Keep, and do not learn, what was told about an expired decision."""
        data = losses.astype(STORED).tobytes()
        return self._record(Event(Kind.LATE, number, *moment, arm, None, graph, losses=data))

    def observe(self, decision: Decision | Given, graph: FeedbackGraph) -> np.ndarray | None:
        """Return the probability that each arm which a decision reveals would be revealed, when it was drawn."""
        if math.isnan(decision.probability):
            return None
        if isinstance(decision, SparingDecision):
            return decision.revealed_probabilities
        if isinstance(decision, Given) and decision.P is not None:
            return decision.P
        return self._observed(decision, graph)[graph.row(decision.arm).astype(np.intp)]

    def _observed(self, decision: Decision | Given, graph: FeedbackGraph) -> np.ndarray:
        p = decision.probabilities.copy()  # what a decision shows is read-only, and the kernel takes one type
        P = np.empty(p.size)
        self._observe(graph.arrays, p, P)
        return P

    def _record(self, event: Event, aside: bool = False) -> Event:  # noqa: FBT001, FBT002
        event = linked(event, self.head + 1, self.chain)
        self.note(event, aside=aside)
        return event

    def note(self, event: Event, *, aside: bool = False) -> None:
        """Count an event as the last one of the journal, whatever it has done; `aside`: of a round without learner."""
        self.head, self.chain = event.seq, event.chain
        kind, counts, amount = event.kind, self.tallies.aside if aside else self.tallies.counts, self.amount(event)
        counts[kind] += amount
        if kind is Kind.DEFAULTED:  # that is told, too
            counts[Kind.TOLD] += amount
        elif kind in DRAWN_BY:
            self.round += amount
        minutes, minute = self.tallies.minutes, event.at // 60_000_000
        if minute not in minutes:
            minutes[minute] = [0] * len(Kind)
            if len(minutes) > MINUTES:
                del minutes[min(minutes)]
        if minute in minutes:  # it may be the oldest one, where the wall clock went back
            minutes[minute][kind] += amount
        if event.key is not None:
            self.keys[event.key] = event
            self._key_bytes += _key_size(event)
            while len(self.keys) > self.remembers or self._key_bytes > _KEY_BYTES:
                _, oldest = self.keys.popitem(last=False)
                self._key_bytes -= _key_size(oldest)


def _key_size(event: Event) -> int:
    return len(event.key or "") + len(event.context or "") + len(event.losses or b"") + len(event.observe or b"")


def linked(event: Event, seq: int, chain: bytes) -> Event:
    """Return the event as the one of number `seq`, behind one whose hash is `chain`."""
    kind, round_, at, clock, arm, probability, graph, key, context, losses, observe, _, _ = event
    arm_ = -1 if arm is None else arm
    numbers = _NUMBERS.pack(seq, kind, round_, at, clock, arm_, math.nan if probability is None else probability)
    texts = b"---"  # as many events have none of them
    if graph is not None or key is not None or context is not None:
        texts = _part(graph and graph.encode()) + _part(key and key.encode()) + _part(context and context.encode())
    if len(losses or b"") + len(observe or b"") < _LONG:
        made = hashlib.blake2b(chain + numbers + texts + _part(losses) + _part(observe), digest_size=16)
    else:  # the same, but nothing is copied
        made = hashlib.blake2b(chain + numbers + texts, digest_size=16)
        for each in (losses, observe):
            made.update(b"-" if each is None else b"%d:" % len(each))
            made.update(each or b"")
    digest = made.digest()
    return Event(kind, round_, at, clock, arm, probability, graph, key, context, losses, observe, seq, digest)


def _part(data: Any) -> bytes:
    return b"-" if data is None else b"%d:%s" % (len(data), data)


def timestamp(microseconds: int) -> str:
    """Return a moment as RFC 3339, in UTC, to the millisecond."""
    moment = dt.datetime.fromtimestamp(microseconds // 1_000_000, dt.UTC)
    return f"{moment.isoformat()[:19]}.{microseconds // 1000 % 1000:03}Z"


def expires_at(at: int, after: float | None) -> str | None:
    """Return when a decision of this moment expires, if it does."""
    return None if after is None else timestamp(at + round(after * 1e6))
