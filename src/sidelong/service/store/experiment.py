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
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from sidelong._at_once import begin
from sidelong.agent import Agent
from sidelong.agent.decision import SparingDecision
from sidelong.agent.running import revealed
from sidelong.errors import GraphError
from sidelong.graphs.arrays import observe
from sidelong.service.store.graphs import size
from sidelong.service.store.journal import Event, Kind
from sidelong.service.store.losses import matched
from sidelong.service.store.tallies import MINUTES, Tallies

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Self

    from sidelong.agent import Decision
    from sidelong.graphs import FeedbackGraph
    from sidelong.service.store.database import Identity
    from sidelong.service.store.graphs import KnownGraph

STORED = np.dtype("<f8")  #: how the journal keeps losses and probabilities
_KEY_BYTES = 2**22  # of keys and contexts that are found without asking the database
_NUMBERS = struct.Struct("<qbqqqqd")


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
    """The lock of one experiment. It is handed on in turn, to commands before looks.

    The thread that writes serves all experiments, so it never waits here: it asks, and is told when its turn has come.
    """

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._held = False
        self._commands: deque[Callable[[], None]] = deque()
        self._looks: deque[Callable[[], None]] = deque()

    def request(self, granted: Callable[[], None]) -> bool:
        """Take it, and return True; or False, and `granted` is called, by another thread, as soon as it is ours."""
        with self._guard:
            if self._held:
                self._commands.append(granted)
                return False
            self._held = True
            return True

    def acquire(self, timeout: float = -1) -> bool:
        """Wait for it, for so many seconds at most; tell whether it is ours."""
        handed = threading.Semaphore(0)
        with self._guard:
            if not self._held:
                self._held = True
                return True
            if timeout == 0:
                return False
            self._looks.append(handed.release)
        if handed.acquire(timeout=None if timeout < 0 else timeout):
            return True
        with self._guard:
            if handed.release not in self._looks:  # it became ours in the last moment
                return True
            self._looks.remove(handed.release)
            return False

    def release(self) -> None:
        """Hand it on."""
        with self._guard:
            waiting = self._commands or self._looks
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

    def __init__(self, identity: Identity, agent: Agent, tallies: Tallies) -> None:
        self.identity = identity
        self.agent = agent
        self.agent.remembers = 0  # the journal does
        self.tallies = tallies
        self.n_arms = agent.graph.n_arms
        unseen = np.empty(self.n_arms)
        self._observe: Callable[..., None]
        begin(self, "_observe", observe, agent.graph.arrays, unseen, unseen)
        self.outstanding: dict[int, tuple[Decision, Moment]] = {}
        self.head = 0  #: the number of the last event
        self.saved = 0  #: that of the last snapshot
        self.chain = b""
        self.keys: OrderedDict[str, Event] = OrderedDict()
        self._key_bytes = 0
        self.graph_bytes = 0  #: of graphs of rounds, in the database
        self.held = 0  #: bytes that outstanding decisions keep in memory
        self._graphs: dict[int, list[int]] = {}  # of them: how many use each graph, and its bytes

    @classmethod
    def new(cls, identity: Identity, graph: FeedbackGraph) -> Self:
        """Return an experiment to which nothing has happened."""
        spec = identity.spec
        kept = spec.get("certificate", False)
        agent = Agent(spec["learner"], graph, seed=spec["seed"], certificate=kept, **spec["options"])
        return cls(identity, agent, Tallies(graph.n_arms))

    def create(self, moment: Moment) -> Event:
        """Begin."""
        return self._record(Event(Kind.CREATED, 0, *moment))

    def decide(
        self, graph: KnownGraph | None, moment: Moment, key: str | None = None, context: str | None = None
    ) -> Event:
        """Draw an arm."""
        decision = self.agent.ask(None if graph is None else graph.graph)
        self.hold(decision, moment)
        p = decision.probability
        probability = None if np.isnan(p) else p
        if isinstance(decision, SparingDecision):
            self.tallies.spare(decision.round, revealed(decision.graph, decision.arm))
        elif probability is not None:
            self.tallies.frozen[decision.round] = self.tallies.baselines
        which = None if graph is None else graph.id
        return self._record(
            Event(Kind.DECIDED, decision.round, *moment, decision.arm, probability, which, key, context)
        )

    def tell(
        self, number: int, losses: Mapping[str, float] | list[float], graph: KnownGraph | None, moment: Moment
    ) -> Event:
        """Learn the losses that an outstanding decision revealed."""
        arm = self.outstanding[number][0].arm
        values, observe = self.learn(number, losses, None if graph is None else graph.graph)
        which = None if graph is None else graph.id
        seen = None if observe is None else observe.astype(STORED, copy=False).tobytes()
        data = values.astype(STORED, copy=False).tobytes()
        return self._record(Event(Kind.TOLD, number, *moment, arm, None, which, losses=data, observe=seen))

    def learn(
        self, number: int, losses: Mapping[str, float] | list[float], graph: FeedbackGraph | None
    ) -> tuple[np.ndarray, np.ndarray | None]:
        """Learn, and return the losses and the probabilities of observing them; the journal is another matter."""
        decision, _ = self.outstanding[number]
        shown = decision.graph if graph is None else graph
        if graph is not None and shown.n_arms != self.n_arms:
            raise GraphError(f"The graph of a round must have the experiment's {self.n_arms} arms, not {shown.n_arms}.")
        reveals = revealed(shown, decision.arm)
        values = matched(losses, reveals.tolist())
        observe = self.observe(decision, shown)
        p = None if observe is None or isinstance(decision, SparingDecision) else decision.probabilities
        self.agent.tell(decision, values, None if graph is None else shown)
        delay = self.agent.round - number
        self.tallies.told(number, decision.arm, p, reveals, values, observe, after=graph is not None, delay=delay)
        self._release(number)
        return values, observe

    def settle(self, number: int, kind: Kind, moment: Moment) -> Event:
        """Cancel an outstanding decision, or let it expire."""
        arm = self.outstanding[number][0].arm
        self.give_up(number, kind)
        return self.lose(number, arm, kind, moment)

    def give_up(self, number: int, kind: Kind) -> None:
        """Forget an outstanding decision; the journal is another matter."""
        self.agent.cancel(self.outstanding[number][0], lost=kind is Kind.EXPIRED)
        self._release(number)
        self.tallies.frozen.pop(number, None)

    def hold(self, decision: Decision, moment: Moment) -> None:
        """Keep a decision until it is settled, and charge what it keeps in memory."""
        self.outstanding[decision.round] = decision, moment
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

    def lose(self, number: int, arm: int, kind: Kind, moment: Moment) -> Event:
        """Write down that a decision, which is not in memory, was cancelled or has expired."""
        return self._record(Event(kind, number, *moment, arm))

    def due(self, clock: int) -> list[int]:
        """Return the outstanding decisions that have expired, oldest first."""
        return list(itertools.takewhile(lambda number: self.is_due(number, clock), self.outstanding))

    def is_any_due(self, clock: int) -> bool:
        """Tell whether a decision has expired: the oldest one, since all have the same time."""
        oldest = next(iter(self.outstanding), None)
        return oldest is not None and self.is_due(oldest, clock)

    def is_due(self, number: int, clock: int) -> bool:
        """Tell whether an outstanding decision has expired."""
        after = self.identity.spec["expire_after"]
        return after is not None and self.outstanding[number][1].clock + after * 1000 <= clock

    def late(self, number: int, arm: int, losses: np.ndarray, graph: str | None, moment: Moment) -> Event:
        """Keep, and do not learn, what was told about an expired decision."""
        data = losses.astype(STORED).tobytes()
        return self._record(Event(Kind.LATE, number, *moment, arm, None, graph, losses=data))

    def observe(self, decision: Decision, graph: FeedbackGraph) -> np.ndarray | None:
        """Return the probability that each arm which a decision reveals would be revealed, when it was drawn."""
        if np.isnan(decision.probability):
            return None
        if isinstance(decision, SparingDecision):
            return decision.revealed_probabilities
        p = decision.probabilities.copy()  # what a decision shows is read-only, and the kernel takes one type
        P = np.empty(p.size)
        self._observe(graph.arrays, p, P)
        return P[revealed(graph, decision.arm).astype(np.intp)]

    def rebase(self, version: int, about: str, moment: Moment) -> Event:
        """Begin to decide as a newer version of the learner does; `about` says from what."""
        return self._record(Event(Kind.REBASED, -version, *moment, context=about))

    def _record(self, event: Event) -> Event:
        event = _linked(event, self.head + 1, self.chain)
        self.note(event)
        return event

    def note(self, event: Event) -> None:
        """Count an event as the last one of the journal, whatever it has done."""
        self.head, self.chain = event.seq, event.chain
        self.tallies.counts[event.kind] += 1
        minutes = self.tallies.minutes
        minutes.setdefault(event.at // 60_000_000, [0] * len(Kind))[event.kind] += 1
        if len(minutes) > MINUTES:
            del minutes[min(minutes)]
        if event.key is not None:
            self.keys[event.key] = event
            self._key_bytes += _key_size(event)
            while len(self.keys) > self.remembers or self._key_bytes > _KEY_BYTES:
                _, oldest = self.keys.popitem(last=False)
                self._key_bytes -= _key_size(oldest)


def _key_size(event: Event) -> int:
    return len(event.key or "") + len(event.context or "")


def _linked(event: Event, seq: int, chain: bytes) -> Event:
    """Return the event as the one of number `seq`, behind one whose hash is `chain`."""
    kind, round_, at, clock, arm, probability, graph, key, context, losses, observe, _, _ = event
    arm_ = -1 if arm is None else arm
    numbers = _NUMBERS.pack(seq, kind, round_, at, clock, arm_, math.nan if probability is None else probability)
    texts = b"---"  # as most events have none of them
    if graph is not None or key is not None or context is not None:
        texts = b"".join(_part(text and text.encode()) for text in (graph, key, context))
    digest = hashlib.blake2b(chain + numbers + texts + _part(losses) + _part(observe), digest_size=16).digest()
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
