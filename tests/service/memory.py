"""A database in memory, written against the seam alone: it shows that the seam is enough.

As SQLite, it lets one write at a time. What is written is a copy, which takes the place of what was there at `commit`.
"""

import collections
import contextlib
import threading
from dataclasses import dataclass, field, fields, replace

from sidelong.errors import ServiceError
from sidelong.service.store.database import Database, Listed, Reading, TakenError, Writing
from sidelong.service.store.journal import SLOTS


@dataclass
class Contents:
    """All that is kept. What the dictionaries hold is never changed, but replaced."""

    experiments: dict = field(default_factory=dict)  # the identity, by id
    events: dict = field(default_factory=dict)  # a tuple, by experiment
    snapshots: dict = field(default_factory=dict)  # a tuple, oldest first, by experiment
    parts: dict = field(default_factory=dict)  # by experiment, event and number
    bases: dict = field(default_factory=dict)  # by experiment and event
    graphs: dict = field(default_factory=dict)
    tokens: dict = field(default_factory=dict)
    singles: dict = field(default_factory=lambda: {"clock": 0})

    def copy(self):
        return replace(self, **{each.name: getattr(self, each.name).copy() for each in fields(self)})


class Place:
    """What all servers of an address share."""

    def __init__(self):
        self.contents = Contents()
        self.lock = threading.Lock()


PLACES = collections.defaultdict(Place)


class MemoryReading(Reading):
    def __init__(self, contents):
        self._kept = contents

    def find(self, of):
        every = self._kept.experiments.values()
        return next((each for each in every if of in {each.name, f"#{each.key}"}), None)

    def experiments(self):
        listed = [Listed(of, each.name, len(self._kept.events[of])) for of, each in self._kept.experiments.items()]
        return sorted(listed, key=lambda each: each.name)

    def events(self, experiment, after, most):
        return list(self._kept.events.get(experiment, ())[after:][:most])

    def rounds(self, experiment, first, last):
        found = [each for each in self._kept.events.get(experiment, ()) if first <= each.round <= last]
        return sorted(found, key=lambda each: (each.round, SLOTS[each.kind]))

    def keyed(self, experiment, keys):
        wanted = set(keys)
        return [each for each in self._kept.events.get(experiment, ()) if each.key in wanted]

    def snapshot(self, experiment, before=None):
        every = reversed(self._kept.snapshots.get(experiment, ()))
        found = next((each for each in every if before is None or each.seq < before), None)
        if found is None:
            return None
        numbers = sorted(key for key in self._kept.parts if key[:2] == (experiment, found.seq))
        return found._replace(data=b"".join([*map(self._kept.parts.get, numbers), found.data]))

    def base(self, experiment, seq):
        return self._kept.bases.get((experiment, seq))

    def graph(self, id_):
        return self._kept.graphs.get(id_, (None,))[0]

    def graph_bytes(self, experiment):
        named = {each.graph for each in self._kept.events.get(experiment, ()) if each.graph is not None}
        return sum(len(self._kept.graphs[id_][0]) for id_ in named)

    def unused_graphs(self, before, most):
        used = {each.spec.get("graph") for each in self._kept.experiments.values()}
        used |= {event.graph for events in self._kept.events.values() for event in events}
        old = [id_ for id_, (_, at) in self._kept.graphs.items() if at < before]
        return [id_ for id_ in old if id_ not in used][:most]

    def clock(self):
        return self._kept.singles["clock"]

    def tokens(self):
        return sorted(self._kept.tokens.values(), key=lambda each: (each.created_at, each.id))


class MemoryWriting(MemoryReading, Writing):
    ended = False

    def __init__(self, place):
        super().__init__(place.contents.copy())
        self._place = place

    def lock(self, experiment, *, wait=True):  # noqa: ARG002  # as on SQLite, nobody else writes
        return len(self._kept.events[experiment])

    def create(self, identity):
        if self.find(identity.name) is not None:
            raise TakenError(identity.name)
        of = len(self._kept.experiments) + 1
        self._kept.experiments[of] = identity._replace(id=of)
        self._kept.events[of] = ()
        return of

    def append(self, new):
        for of, events in new.items():
            every = self._kept.events[of] + tuple(events)
            keys = [each.key for each in every if each.key is not None]
            places = {(each.round, SLOTS[each.kind]) for each in every}
            numbers = [each.seq for each in every]
            if numbers != list(range(1, len(every) + 1)) or len(places) < len(every) or len(set(keys)) < len(keys):
                raise TakenError(of)
            self._kept.events[of] = every

    def save(self, experiment, snapshot):
        kept = {each.seq: each for each in self._kept.snapshots.get(experiment, ())} | {snapshot.seq: snapshot}
        self._kept.snapshots[experiment] = tuple(kept[seq] for seq in sorted(kept)[-2:])

    def keep_part(self, experiment, seq, number, data):
        self._kept.parts[experiment, seq, number] = data

    def forget_parts(self, experiment, most):
        kept = {each.seq for each in self._kept.snapshots.get(experiment, ())}
        left_over = [key for key in self._kept.parts if key[0] == experiment and key[1] not in kept][:most]
        for key in left_over:
            del self._kept.parts[key]
        return len(left_over)

    def keep_base(self, experiment, seq, data):
        if (experiment, seq) in self._kept.bases:
            raise TakenError(seq)
        self._kept.bases[experiment, seq] = data

    def keep_graph(self, id_, data, now):
        before = self._kept.graphs.get(id_)
        self._kept.graphs[id_] = (data if before is None else before[0], now)
        return before is None

    def hold_graph(self, id_):
        return id_ in self._kept.graphs

    def forget_graphs(self, ids, before):
        unused = sorted(set(self.unused_graphs(before, 2**31)) & set(ids))
        for id_ in unused:
            del self._kept.graphs[id_]
        return unused

    def keep_clock(self, now):
        self._kept.singles["clock"] = max(self.clock(), now)

    def keep_token(self, token):
        before = self._kept.tokens.get(token.id, token)
        first = token.revoked_at if before.revoked_at is None else before.revoked_at
        self._kept.tokens[token.id] = before._replace(revoked_at=first)

    def commit(self):
        self._place.contents = self._kept
        self.end()

    def end(self):
        if not self.ended:
            self.ended = True
            self._place.lock.release()


class MemoryDatabase(Database):
    name = "memory"

    def __init__(self, address, busy_timeout=5.0):
        self.place = PLACES[address]
        self._busy_timeout = busy_timeout

    def migrate(self):
        return False

    @contextlib.contextmanager
    def reading(self):
        yield MemoryReading(self.place.contents)

    @contextlib.contextmanager
    def writing(self):
        if not self.place.lock.acquire(timeout=self._busy_timeout):
            raise ServiceError("Another server writes. Nothing was stored.", status=503, code="busy", retry_after=1.0)
        writing = MemoryWriting(self.place)
        try:
            yield writing
        finally:
            writing.end()

    def close(self):
        pass
