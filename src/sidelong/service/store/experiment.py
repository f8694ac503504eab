"""An experiment in memory: the agent, what is counted beside it, and how far in the journal it is.

Whatever happens is first done here, which gives the event to be written. A replay does the same again, and must give
the same event, to the bit. Each event carries a hash of itself and of all events before it, so that a snapshot says of
which journal it is one.
"""

from __future__ import annotations

import hashlib
import itertools
import math
import struct
from collections import OrderedDict
from typing import TYPE_CHECKING, Any

import numpy as np

from sidelong._jit import entry
from sidelong.agent import Agent, state_file
from sidelong.agent.decision import SparingDecision
from sidelong.errors import GraphError, ServiceError, SidelongError, StateFileError
from sidelong.graphs.arrays import observe
from sidelong.service.store.clock import Moment
from sidelong.service.store.graphs import KnownGraph
from sidelong.service.store.journal import Event, Kind
from sidelong.service.store.losses import matched
from sidelong.service.store.tallies import Tallies

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from sidelong.agent import Decision
    from sidelong.graphs import FeedbackGraph
    from sidelong.service.store.database import Identity

    Find = Callable[[str], FeedbackGraph]

__all__ = ["SNAPSHOT_VERSION", "LiveExperiment"]

#: Goes up whenever what a snapshot holds beside the agent means something else, or has another shape. One of another
#: version is passed over, and the journal replayed.
SNAPSHOT_VERSION = 2

_STORED = np.dtype("<f8")  # how the journal keeps losses and probabilities
_NUMBERS = struct.Struct("<qbqqqqd")


class LiveExperiment:
    """The state of an experiment after some event of its journal."""

    #: How many Idempotency-Keys are found without asking the database.
    remembers = 10_000

    def __init__(self, identity: Identity, graph: FeedbackGraph) -> None:
        spec = identity.spec
        agent = Agent(spec["learner"], graph, seed=spec["seed"], **spec["options"])
        self._begin(identity, agent, Tallies(graph.n_arms))

    def _begin(self, identity: Identity, agent: Agent, tallies: Tallies) -> None:
        self.identity = identity
        self.agent = agent
        self.agent.remembers = 0  # the journal does
        self.tallies = tallies
        unseen = np.empty(agent.graph.n_arms)
        self._observe = entry(observe, agent.graph.arrays, unseen, unseen)
        self.outstanding: dict[int, tuple[Decision, Moment]] = {}
        self.head = 0  #: the number of the last event
        self.saved = 0  #: that of the last snapshot
        self.chain = b""
        self.keys: OrderedDict[str, Event] = OrderedDict()

    def create(self, moment: Moment) -> Event:
        """Begin."""
        return self._record(Event(Kind.CREATED, 0, *moment))

    def decide(
        self, graph: KnownGraph | None, moment: Moment, key: str | None = None, context: str | None = None
    ) -> Event:
        """Draw an arm."""
        decision = self.agent.ask(None if graph is None else graph.graph)
        self.outstanding[decision.round] = decision, moment
        p = decision.probability
        probability = None if np.isnan(p) else p
        which = None if graph is None else graph.id
        return self._record(
            Event(Kind.DECIDED, decision.round, *moment, decision.arm, probability, which, key, context)
        )

    def tell(
        self, number: int, losses: Mapping[str, float] | list[float], graph: KnownGraph | None, moment: Moment
    ) -> Event:
        """Learn the losses that an outstanding decision revealed."""
        decision, _ = self.outstanding[number]
        shown = decision.graph if graph is None else graph.graph
        self._check_size(shown)
        reveals = shown.out_neighbors(decision.arm)
        values = matched(losses, reveals.tolist())
        observe = self.observe(decision, shown)
        p = None if observe is None or isinstance(decision, SparingDecision) else decision.probabilities
        self.agent.tell(decision, values, None if graph is None else shown)
        delayed = number < self.agent.round
        self.tallies.told(decision.arm, p, reveals, values, observe, after=graph is not None, delayed=delayed)
        del self.outstanding[number]
        which = None if graph is None else graph.id
        seen = None if observe is None else observe.astype(_STORED, copy=False).tobytes()
        return self._record(
            Event(
                Kind.TOLD,
                number,
                *moment,
                decision.arm,
                None,
                which,
                losses=values.astype(_STORED, copy=False).tobytes(),
                observe=seen,
            )
        )

    def settle(self, number: int, kind: Kind, moment: Moment) -> Event:
        """Cancel an outstanding decision, or let it expire."""
        decision, _ = self.outstanding[number]
        self.agent.cancel(decision)
        del self.outstanding[number]
        return self._record(Event(kind, number, *moment, decision.arm))

    def due(self, clock: int) -> list[int]:
        """Return the outstanding decisions that have expired, oldest first."""
        return list(itertools.takewhile(lambda number: self.is_due(number, clock), self.outstanding))

    def is_due(self, number: int, clock: int) -> bool:
        """Tell whether an outstanding decision has expired."""
        after = self.identity.spec["expire_after"]
        return after is not None and self.outstanding[number][1].clock + after * 1000 <= clock

    def late(self, number: int, arm: int, losses: np.ndarray, graph: str | None, moment: Moment) -> Event:
        """Keep, and do not learn, what was told about an expired decision."""
        data = losses.astype(_STORED).tobytes()
        return self._record(Event(Kind.LATE, number, *moment, arm, None, graph, losses=data))

    def replay(self, event: Event, find: Find) -> None:
        """Do again what the journal says, and compare."""
        moment, number = Moment(event.at, event.clock), event.round
        graph = None if event.graph is None else KnownGraph(event.graph, find(event.graph))
        losses = [] if event.losses is None else np.frombuffer(event.losses, _STORED).tolist()
        try:
            if event.kind is Kind.CREATED:
                made = self.create(moment)
            elif event.kind is Kind.DECIDED:
                made = self.decide(graph, moment, event.key, event.context)
            elif event.kind is Kind.TOLD:
                made = self.tell(number, losses, graph, moment)
            elif event.kind is Kind.LATE:
                made = self.late(number, event.arm or 0, np.array(losses), event.graph, moment)
            else:
                made = self.settle(number, event.kind, moment)
        except (SidelongError, KeyError) as error:
            raise self._differs(event, f"it cannot be done again: {error}") from error
        if made != event:
            raise self._differs(event, f"it says {_shown(event)}, and doing it again gives {_shown(made)}")

    def observe(self, decision: Decision, graph: FeedbackGraph) -> np.ndarray | None:
        """Return the probability that each arm which a decision reveals would be revealed, when it was drawn."""
        if np.isnan(decision.probability):
            return None
        if isinstance(decision, SparingDecision):
            return decision.revealed_probabilities
        p = decision.probabilities.copy()  # what a decision shows is read-only, and the kernel takes one type
        P = np.empty(p.size)
        self._observe(graph.arrays, p, P)
        return P[graph.out_neighbors(decision.arm).astype(np.intp)]

    def contents(self) -> bytes:
        """Return everything, for a snapshot."""
        return state_file.pack(*self._contents())

    def digest(self) -> str:
        """Return a checksum of everything, equal for equal states."""
        return state_file.checksum(*self._contents()).hex()

    def _contents(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        header, arrays = self.agent.contents()
        minutes, counted = self.tallies.contents()
        moments = np.array([moment for _, moment in self.outstanding.values()], np.int64).reshape(-1, 2)
        service = {"experiment": self.identity.key, "head": self.head, "chain": self.chain.hex(), "minutes": minutes}
        service["version"] = SNAPSHOT_VERSION
        return {**header, "service": service}, {**arrays, **counted, "outstanding": moments}

    @classmethod
    def from_contents(cls, identity: Identity, data: bytes) -> LiveExperiment:
        """Go on from a snapshot."""
        place = f"the snapshot of {identity.name}"
        header, arrays = state_file.unpack(data, place)
        service = header.pop("service")
        version = service.get("version")
        if version != SNAPSHOT_VERSION:
            raise StateFileError(f"{place} has version {version}, and this program reads {SNAPSHOT_VERSION}.")
        experiment = cls.__new__(cls)
        agent = Agent.from_contents(header, arrays, place)
        experiment._begin(identity, agent, Tallies.from_contents(service["minutes"], arrays))  # noqa: SLF001  # its own
        moments = arrays["outstanding"].tolist()
        experiment.outstanding = {
            decision.round: (decision, Moment(*moment)) for decision, moment in zip(agent.pending, moments, strict=True)
        }
        experiment.head, experiment.chain = service["head"], bytes.fromhex(service["chain"])
        return experiment

    def _record(self, event: Event) -> Event:
        event = _linked(event, self.head + 1, self.chain)
        self.head, self.chain = event.seq, event.chain
        self.tallies.happened(event)
        if event.key is not None:
            self.keys[event.key] = event
            if len(self.keys) > self.remembers:
                self.keys.popitem(last=False)
        return event

    def _check_size(self, graph: FeedbackGraph) -> None:
        if graph.n_arms != self.agent.graph.n_arms:
            raise GraphError(
                f"The graph of a round must have the experiment's {self.agent.graph.n_arms} arms, not {graph.n_arms}."
            )

    def _differs(self, event: Event, how: str) -> ServiceError:
        return ServiceError(
            f"Event {event.seq} of the journal of {self.identity.name!r} does not follow from those before it: {how}. "
            f"The journal or a snapshot was altered, or was written by a version that computes otherwise. "
            f"Nothing is learned or decided until it is restored and the service started again.",
            status=503,
            code="refused",
        )


def _shown(event: Event) -> str:
    return f"{event.kind.name.lower()} round {event.round}, arm {event.arm}, probability {event.probability!r}"


def _linked(event: Event, seq: int, chain: bytes) -> Event:
    """Return the event as the one of number `seq`, behind one whose hash is `chain`."""
    arm = -1 if event.arm is None else event.arm
    probability = math.nan if event.probability is None else event.probability
    parts = [chain, _NUMBERS.pack(seq, event.kind, event.round, event.at, event.clock, arm, probability)]
    texts = [text and text.encode() for text in (event.graph, event.key, event.context)]
    parts += [b"-" if data is None else b"%d:%s" % (len(data), data) for data in (*texts, event.losses, event.observe)]
    digest = hashlib.blake2b(b"".join(parts), digest_size=16).digest()
    return Event(*event[:11], seq, digest)
