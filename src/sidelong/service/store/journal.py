"""The journal: what happened to an experiment, event by event, and never changed.

An event is about one decision or several. Decisions are numbered from 1, whichever key they are for, and an event says
in `round` and `last` which numbers it is about. What it says of each of them are columns with names, one after the
other in `data`, little-endian. A column that is not needed is left out, so that a new kind of column is no new format::

    decided, played,     arm (int32), probability (float64) and, where the experiment has keys, key (JSON) and key_round
    held, fallback       (uint32), which counts the decisions of each key; held (uint8) if only some are the holdout's;
                         subject (JSON), if it is sticky; absent (JSON): of each decision, the arms that did not fit
                         under the ceiling, if there are any
    told, defaulted,     number (uint32): the numbers less `round`, ascending, unless they are `round` to `last`; size
    late                 (uint32): how many losses each has, unless there is one decision; loss (float64); observe
                         (float64): the probability of observing each loss, where it is known; cost (float64): of
                         each arm that has a loss, under a ceiling
    cancelled, expired   number
    overridden           arm: the one that was carried out
    reported, repeated   decision (int64): its number; loss and cost, if it is reported
    changed              of its arms: arm and, if it is new, reveals and revealed_by (int32), and cost, its bound
    any of these         arm, if it is about one decision: the one that was carried out

A decision is settled by one event, and each number is the `round` of at most one event that settles it. No event spans
more than `SPAN` numbers, so that what settled a decision is found without reading the whole journal.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import math
import struct
from enum import IntEnum
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np

from sidelong.graphs.presence import only

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    import numpy.typing as npt

    from sidelong.graphs import FeedbackGraph
    from sidelong.service.store.database import Identity, Reading

    Key = str | int
    Integers = npt.NDArray[np.int64]
    Floats = npt.NDArray[np.float64]

DrawnBy = Literal["learner", "frozen", "holdout", "fallback"]

#: How far apart the least and the largest number of an event may be.
SPAN = 2**14
#: Below the `round` of any change.
REPORTS = -(2**62)
_NEAR, _SPARSE = 64, 16  # an event spans so many numbers, or so many for each that it is about


class Kind(IntEnum):
    """What happened."""

    CREATED = 0
    DECIDED = 1
    TOLD = 2
    CANCELLED = 3
    EXPIRED = 4
    LATE = 5  #: told after it had expired: kept, not learned
    CHANGED = 6  #: somebody froze, stopped, renamed ... it: see `sidelong.service.store.lifecycle`
    PLAYED = 7  #: decided while frozen, by what is to be played then
    HELD = 8  #: decided by the holdout
    FALLBACK = 9  #: decided while stopped, by the fallback arm
    DEFAULTED = 10  #: expired, and told the loss that was named for this
    OVERRIDDEN = 11  #: carried out with another arm than the one that was drawn
    REPORTED = 12  #: losses of a sticky decision, which are learned when it ends
    REPEATED = 13  #: a sticky decision was asked for again, with another Idempotency-Key


#: The place of an event in its round: decided, settled, told too late, overridden. Each place is taken once.
SLOTS = {
    Kind.CREATED: 0,
    Kind.DECIDED: 0,
    Kind.TOLD: 1,
    Kind.CANCELLED: 1,
    Kind.EXPIRED: 1,
    Kind.LATE: 2,
    Kind.CHANGED: 0,
    Kind.PLAYED: 0,
    Kind.HELD: 0,
    Kind.FALLBACK: 0,
    Kind.DEFAULTED: 1,
    Kind.OVERRIDDEN: 3,
    Kind.REPORTED: 0,
    Kind.REPEATED: 0,
}
DECIDED_SLOT, SETTLED_SLOT, LATE_SLOT = range(3)
#: What an arm was drawn by, for each kind of event that draws one.
DRAWN_BY: dict[Kind, DrawnBy] = {
    Kind.DECIDED: "learner",
    Kind.PLAYED: "frozen",
    Kind.HELD: "holdout",
    Kind.FALLBACK: "fallback",
}
#: What ends a round whose time is over.
EXPIRED = frozenset({Kind.EXPIRED, Kind.DEFAULTED})

_NUMBERS = struct.Struct("<qbqqqq")
_LONG = 2**16  # bytes of columns that are not copied to be hashed


class Event(NamedTuple):
    """A line of the journal."""

    kind: Kind
    #: The least number of a decision, from 1; 0 for the first event; for a change, minus its own number; for a report
    #: or a repetition, of which a decision has several, `REPORTS` less its own number.
    round: int
    last: int  #: the largest number
    at: int
    clock: int
    graph: str | None = None  #: None for the experiment's own
    key: str | None = None  #: the Idempotency-Key
    context: str | None = None
    data: bytes | None = None  #: the columns
    seq: int = 0
    chain: bytes = b""  #: a hash of this event and of all before it


def linked(event: Event, seq: int, chain: bytes) -> Event:
    """Return the event as the one of number `seq`, behind one whose hash is `chain`."""
    kind, round_, last, at, clock, graph, key, context, data, _, _ = event
    numbers = _NUMBERS.pack(seq, kind, round_, last, at, clock)
    texts = b"---"  # as many events have none of them
    if graph is not None or key is not None or context is not None:
        texts = _part(graph and graph.encode()) + _part(key and key.encode()) + _part(context and context.encode())
    if data is None or len(data) < _LONG:
        made = hashlib.blake2b(chain + numbers + texts + _part(data), digest_size=16)
    else:  # the same, but nothing is copied
        made = hashlib.blake2b(chain + numbers + texts + b"%d:" % len(data), digest_size=16)
        made.update(data)
    return Event(kind, round_, last, at, clock, graph, key, context, data, seq, made.digest())


def _part(data: Any) -> bytes:
    return b"-" if data is None else b"%d:%s" % (len(data), data)


def size_of(event: Event) -> int:
    """Return how many bytes the columns of an event have."""
    return len(event.data or b"")


def since(reading: Reading, experiment: int, after: int, page_size: int = 1000) -> Iterator[Event]:
    """Yield the events after the one of number `after`."""
    while True:
        page = reading.events(experiment, after, page_size)
        yield from page
        if len(page) < page_size:
            return
        after = page[-1].seq


def changes(reading: Reading, experiment: int) -> list[Event]:
    """Return who changed what, oldest first."""
    return reading.rounds(experiment, REPORTS + 1, -1)[::-1]


def lasting(reading: Reading, experiment: int, last: int) -> bytes:
    """Return a hash of the events that a cut behind an event leaves: the creation, and the changes before it.

    They do not follow each other, so that the hashes that they carry cannot be checked.
    """
    chain = b""
    for event in [*reading.events(experiment, 0, 1), *changes(reading, experiment)]:
        if event.seq <= last:
            chain = linked(event, event.seq, chain).chain
    return chain


def labels_at(
    reading: Reading, identity: Identity, before: int | None = None, fresh: Sequence[Event] = ()
) -> list[str] | None:
    """Return what the arms of an experiment were called before an event, or are called now.

    `fresh` has events that are not written yet.
    """
    labels: list[str] | None = identity.spec.labels
    for event in [*changes(reading, identity.id), *(each for each in fresh if each.kind is Kind.CHANGED)]:
        if before is None or event.seq < before:
            labels = json.loads(event.context or "{}").get("labels", labels)
    return labels


def graph_now(reading: Reading, identity: Identity) -> str:
    """Return the id of an experiment's own graph: that of the last change of its arms, or of its specification."""
    changed = [event.graph for event in changes(reading, identity.id) if event.graph is not None]
    return changed[-1] if changed else identity.spec.graph


# Columns

#: The letter of a type stands before the values of a column.
_TYPES: dict[bytes, Any] = {b"i": np.dtype("<i4"), b"u": np.dtype("<u4"), b"b": np.dtype("u1"), b"d": np.dtype("<f8")}
_TYPES[b"l"] = np.dtype("<i8")
_LETTERS = {b"i": "i", b"u": "I", b"b": "B", b"d": "d", b"l": "q"}  # of `struct`
_JSON = b"j"
_OF = {"arm": b"i", "probability": b"d", "key": _JSON, "key_round": b"u", "held": b"b"}
_OF |= {"number": b"u", "size": b"u", "loss": b"d", "observe": b"d", "reveals": b"i", "revealed_by": b"i"}
_OF |= {"subject": _JSON, "decision": b"l", "advice": _JSON, "cost": b"d", "absent": _JSON}
_SIZE = struct.Struct("<I")
_HEADS = {name: bytes([len(name)]) + name.encode() + type_ for name, type_ in _OF.items()}
_ARM_HEAD, _PROBABILITY_HEAD = _HEADS["arm"] + _SIZE.pack(4), _HEADS["probability"] + _SIZE.pack(8)  # of one decision
_LOSS_HEAD, _OBSERVE_HEAD = _HEADS["loss"], _HEADS["observe"]
_ARM, _REAL = struct.Struct("<i"), struct.Struct("<d")


def write_columns(columns: dict[str, Any]) -> bytes:
    """Return columns as an event holds them: lists or arrays by name, or JSON that is written already."""
    parts: list[bytes] = []
    for name, values in columns.items():
        type_ = _OF[name]
        if type_ is _JSON:
            data = values
        elif type(values) is list:  # quicker than an array, where there are few
            data = struct.pack(f"<{len(values)}{_LETTERS[type_]}", *values)
        else:
            data = np.ascontiguousarray(values, _TYPES[type_]).tobytes()
        parts += (_HEADS[name], _SIZE.pack(len(data)), data)
    return b"".join(parts)


def read_columns(event: Event) -> dict[str, Any]:
    """Return the columns of an event by name: arrays, or what JSON holds. Unknown ones are read like all others."""
    data, at = event.data or b"", 0
    found: dict[str, Any] = {}
    while at < len(data):
        end = at + 1 + data[at]
        name, type_ = data[at + 1 : end].decode(), data[end : end + 1]
        (size,) = _SIZE.unpack_from(data, end + 1)
        begin = end + 5
        at = begin + size
        if type_ == _JSON:
            found[name] = json.loads(data[begin:at].decode("utf-8", "surrogatepass"))
        else:
            found[name] = np.frombuffer(data, _TYPES[type_], size // _TYPES[type_].itemsize, begin)
    return found


def write_json(value: Any) -> bytes:
    """Return keys, subjects or advice as a column holds them."""
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode("utf-8", "surrogatepass")


def without(graph: FeedbackGraph, arms: tuple[int, ...]) -> FeedbackGraph:
    """Return a graph without some arms."""
    if not arms:
        return graph
    mask = np.ones(graph.n_arms, np.bool_)
    mask[list(arms)] = False
    return only(graph, mask)


class Draws(NamedTuple):
    """Decisions in columns: a list for each."""

    numbers: range
    keys: list[Key] | None  #: None where the experiment has no keys
    rounds: list[int]  #: of each key; without keys, the numbers
    arms: list[int]
    probabilities: list[float]  #: NaN where the learner does not know them
    drawn_by: list[DrawnBy]
    absent: list[list[int]] | None = None  #: the arms that did not fit under the ceiling; None if all did

    def graph(self, place: int, asked: FeedbackGraph) -> FeedbackGraph:
        """Return the graph that a decision was drawn for, where `asked` is that of all."""
        return asked if self.absent is None else without(asked, tuple(self.absent[place]))

    def row(self, place: int) -> tuple[int, Key | None, int, int, float, DrawnBy]:
        """Return number, key, round, arm and probability of one decision, and what it was drawn by."""
        key = None if self.keys is None else self.keys[place]
        arm, p = self.arms[place], self.probabilities[place]
        return self.numbers[place], key, self.rounds[place], arm, p, self.drawn_by[place]

    def listed(self) -> Iterator[tuple[int, Key | None, int, int, float, DrawnBy]]:
        """Yield the same of each decision."""
        keys = [None] * len(self.arms) if self.keys is None else self.keys
        return zip(self.numbers, keys, self.rounds, self.arms, self.probabilities, self.drawn_by, strict=True)


def read_draws(event: Event) -> Draws:
    """Return what an event has decided."""
    columns = read_columns(event)
    numbers = range(event.round, event.last + 1)
    rounds = columns["key_round"].tolist() if "key_round" in columns else list(numbers)
    drawn_by: list[DrawnBy] = [DRAWN_BY[event.kind]] * len(numbers)
    for place in np.flatnonzero(columns["held"]).tolist() if "held" in columns else ():
        drawn_by[place] = "holdout"
    arms, probabilities = columns["arm"].tolist(), columns["probability"].tolist()
    return Draws(numbers, columns.get("key"), rounds, arms, probabilities, drawn_by, columns.get("absent"))


def write_draws(
    arms: list[int], probabilities: list[float], keys: bytes | None, rounds: Any, held: list[bool] | None
) -> bytes:
    """Return what was drawn: arms and probabilities, keys with the round of each, and which ones the holdout drew."""
    if keys is None and len(arms) == 1:  # the same as below, but quicker
        p = probabilities[0]
        known = _REAL.pack(p if p == p else math.nan)  # noqa: PLR0124
        return b"".join((_ARM_HEAD, _ARM.pack(arms[0]), _PROBABILITY_HEAD, known))
    columns: dict[str, Any] = {"arm": arms}
    columns["probability"] = [p if p == p else math.nan for p in probabilities]  # one NaN for all processors  # noqa: PLR0124
    if keys is not None:
        columns |= {"key": keys, "key_round": rounds}
    if held is not None:
        columns["held"] = held
    return write_columns(columns)


class Settlement(NamedTuple):
    """The columns of what settles decisions."""

    numbers: Integers
    offsets: Integers  #: the losses of decision i lie from offsets[i] to offsets[i + 1]
    losses: Floats
    observe: Floats | None
    arm: int | None  #: of the decision, if there is one alone: the arm that was carried out
    costs: Floats | None = None  #: as losses, under a ceiling

    def losses_of(self, place: int) -> Floats:
        """Return the losses of the decision at a place."""
        return self.losses[self.offsets[place] : self.offsets[place + 1]]

    def observe_of(self, place: int) -> Floats | None:
        """Return the probabilities of observing them, if they are known."""
        return None if self.observe is None else self.observe[self.offsets[place] : self.offsets[place + 1]]

    def costs_of(self, place: int) -> Floats | None:
        """Return the costs of the decision at a place, if costs were told."""
        return None if self.costs is None else self.costs[self.offsets[place] : self.offsets[place + 1]]


def read_settled(event: Event) -> Settlement:
    """Return what an event has settled."""
    columns = read_columns(event)
    if "number" in columns:
        numbers = columns["number"].astype(np.int64) + event.round
    else:
        numbers = np.arange(event.round, event.last + 1)
    arm = int(columns["arm"][0]) if "arm" in columns else None
    if "loss" not in columns:
        return Settlement(numbers, np.zeros(numbers.size + 1, np.int64), np.empty(0), None, arm)
    losses = columns["loss"].astype(np.float64)
    sizes = columns.get("size", [losses.size])
    observe = columns["observe"].astype(np.float64) if "observe" in columns else None
    costs = columns["cost"].astype(np.float64) if "cost" in columns else None
    return Settlement(numbers, np.append(0, np.cumsum(sizes, dtype=np.int64)), losses, observe, arm, costs)


def write_settled(
    numbers: list[int], arm: int, sizes: Any = None, losses: Any = None, observe: Any = None, costs: Any = None
) -> bytes | None:
    """Return numbers that ascend and, if there are any, the losses of each, the chances of observing them, and costs.

    The `arm` is that of the first one, which is kept if it is the only one.
    """
    n, first = len(numbers), numbers[0]
    if n == 1 and losses is not None:  # the same as below, but quicker
        parts = [
            _ARM_HEAD,
            _ARM.pack(arm),
            _LOSS_HEAD,
            _SIZE.pack(8 * losses.size),
            losses.astype(_TYPES[b"d"], copy=False).tobytes(),
        ]
        if observe is not None:
            parts += (_OBSERVE_HEAD, _SIZE.pack(8 * observe.size), observe.astype(_TYPES[b"d"], copy=False).tobytes())
        if costs is not None:
            parts.append(write_columns({"cost": costs}))
        return b"".join(parts)
    columns: dict[str, Any] = {"arm": [arm]} if n == 1 else {}
    if numbers[-1] - first != n - 1:
        columns["number"] = np.array(numbers, np.int64) - first
    if losses is not None:
        if n > 1:
            columns["size"] = sizes
        columns["loss"] = losses
        if observe is not None:
            columns["observe"] = observe
        if costs is not None:
            columns["cost"] = costs
    return write_columns(columns) if columns else None


def within_span(numbers: list[int]) -> Iterator[list[int]]:
    """Yield numbers that ascend in groups that an event may span.

    An event spans few numbers that it is not about, so that few events have to be read to find one.
    """
    if numbers and numbers[-1] - numbers[0] == len(numbers) - 1 < SPAN:  # there is none between them
        yield numbers
        return
    first = 0
    for place, number in enumerate(numbers):
        if number - numbers[first] >= min(SPAN, max(_NEAR, _SPARSE * (place - first + 1))):
            yield numbers[first:place]
            first = place
    if numbers:
        yield numbers[first:]


def count_of(event: Event) -> int:
    """Return how many decisions an event is about."""
    n = event.last - event.round + 1
    if n == 1 or event.kind in DRAWN_BY:
        return n
    columns = read_columns(event)
    return columns["number"].size if "number" in columns else n


def advice_of(columns: dict[str, Any], place: int) -> Any:
    """Return the advice for one of the decisions of an event with these columns; None if there was none."""
    given = columns.get("advice")
    if given is None or "key" not in columns:
        return given
    by_name = given if isinstance(given, dict) else {"": given}
    found = {name: None if each is None else each[place] for name, each in by_name.items()}
    return found if isinstance(given, dict) else found[""]


def contexts(event: Event) -> Iterable[str | None]:
    """Return the context of each decision of an event as JSON: the event has one for all, or a list."""
    if event.context is None or not event.context.startswith("["):
        return itertools.repeat(event.context, event.last - event.round + 1)
    return [json.dumps(each, separators=(",", ":")) for each in json.loads(event.context)]


def subject_of(columns: dict[str, Any]) -> str | None:
    """Return the subject that an event with these columns has made a sticky decision for."""
    return columns.get("subject", [None])[0]  # type: ignore[no-any-return]


def arms_of(event: Event) -> list[int]:
    """Return the arms that an event has drawn; they are its first column."""
    if event.kind not in DRAWN_BY or event.data is None:
        return []
    return list(struct.unpack_from(f"<{event.last - event.round + 1}i", event.data, len(_HEADS["arm"]) + _SIZE.size))


def arm_of(event: Event) -> int | None:
    """Return the arm of the decision that an event is about, if it is about one."""
    if event.data is None or event.last > event.round:
        return None
    columns = read_columns(event)
    return int(columns["arm"][0]) if "arm" in columns else None
