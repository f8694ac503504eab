"""A database in memory, written against the seam alone: it shows that the seam is enough.

As SQLite, it lets one write at a time. What is written is a copy, which takes the place of what was there at `commit`.
"""

import collections
import contextlib
import json
import threading
from dataclasses import dataclass, field, fields, replace

from sidelong.errors import ServiceError
from sidelong.service.store.database import Database, Listed, Reading, TakenError, Writing
from sidelong.service.store.journal import SLOTS, size_of


def graph_of(identity):
    """Return the graph that an experiment has in its specification."""
    return json.loads(identity.document).get("graph")


@dataclass
class Contents:
    """All that is kept. What the dictionaries hold is never changed, but replaced."""

    experiments: dict = field(default_factory=dict)  # the identity, by id
    listed: dict = field(default_factory=dict)  # state, changed_at, changed_by, by id
    deletions: dict = field(default_factory=dict)  # by id
    events: dict = field(default_factory=dict)  # a tuple, by experiment
    snapshots: dict = field(default_factory=dict)  # a tuple, oldest first, by experiment
    parts: dict = field(default_factory=dict)  # by experiment, event and number
    blocks: dict = field(default_factory=dict)  # by experiment, number and event
    initial_states: dict = field(default_factory=dict)  # by experiment
    graphs: dict = field(default_factory=dict)  # the data, when they were kept, and how many parts are in front
    graph_parts: dict = field(default_factory=dict)  # the data and when they were kept, by id and number
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
        kept = self._kept
        listed = [
            Listed(of, each.name, len(kept.events[of]), **kept.listed[of]) for of, each in kept.experiments.items()
        ]
        return sorted(listed, key=lambda each: each.name)

    def deletions(self):
        return sorted(self._kept.deletions.values(), key=lambda each: each.at)

    def leftovers(self):
        return sorted(self._kept.events.keys() - self._kept.experiments.keys())

    def events(self, experiment, after, most, most_bytes=None):
        found, total = [], 0
        for each in self._kept.events.get(experiment, ())[after:][:most]:
            found.append(each)
            total += size_of(each)
            if most_bytes is not None and total >= most_bytes:
                break
        return found

    def spanning(self, experiment, number, slot, before):
        every = [each for each in self._kept.events.get(experiment, ()) if SLOTS[each.kind] == slot]
        found = [each for each in every if each.round <= number <= each.round + (each.arm or 0)]
        return max((each for each in found if each.round < before), key=lambda each: each.round, default=None)

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

    def block(self, experiment, number, before):
        kept = [key for key in self._kept.blocks if key[:2] == (experiment, number) and key[2] <= before]
        return self._kept.blocks[max(kept)] if kept else None

    def initial_state(self, experiment):
        return self._kept.initial_states.get(experiment)

    def graph(self, id_):
        if id_ not in self._kept.graphs:
            return None
        data, _, parts = self._kept.graphs[id_]
        return b"".join([*(self._kept.graph_parts[id_, number][0] for number in range(parts)), data])

    def graph_bytes(self, experiment):
        named = {each.graph for each in self._kept.events.get(experiment, ()) if each.graph is not None}
        return sum(len(self.graph(id_)) for id_ in named)

    def names_graph(self, experiment, id_):
        own = graph_of(self._kept.experiments[experiment]) == id_
        return own or any(each.graph == id_ for each in self._kept.events[experiment])

    def unused_graphs(self, before, most):
        used = set(map(graph_of, self._kept.experiments.values()))
        used |= {event.graph for events in self._kept.events.values() for event in events}
        old = [id_ for id_, (_, at, _) in self._kept.graphs.items() if at < before]
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
        return len(self._kept.events[experiment]) if experiment in self._kept.experiments else None

    def create(self, identity):
        if self.find(identity.name) is not None:
            raise TakenError(identity.name)
        of = len(self._kept.listed) + 1
        self._kept.experiments[of] = replace(identity, id=of)
        self._kept.listed[of] = {}
        self._kept.events[of] = ()
        return of

    def relist(self, experiment, changes):
        changes = dict(changes)
        name = changes.pop("name", None)
        if name is not None:
            if self.find(name) is not None:
                raise TakenError(name)
            self._kept.experiments[experiment] = replace(self._kept.experiments[experiment], name=name)
        self._kept.listed[experiment] = self._kept.listed[experiment] | changes

    def delete(self, experiment, deletion):
        del self._kept.experiments[experiment]
        self._kept.deletions[experiment] = deletion

    def forget_events(self, experiment, most):
        left = self._kept.events.get(experiment, ())
        if left:
            self._kept.events[experiment] = left[:-most]
        elif experiment in self._kept.events:
            self._kept.snapshots.pop(experiment, None)
            del self._kept.events[experiment]
            self._kept.initial_states.pop(experiment, None)
            for kept in (self._kept.parts, self._kept.blocks):
                for key in [key for key in kept if key[0] == experiment]:
                    del kept[key]
        return min(len(left), most)

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

    def keep_block(self, experiment, number, seq, data):
        self._kept.blocks[experiment, number, seq] = data

    def forget_blocks(self, experiment, most):
        oldest = min((each.seq for each in self._kept.snapshots.get(experiment, ())), default=0)
        needed = {number: seq for of, number, seq in sorted(self._kept.blocks) if of == experiment and seq <= oldest}
        unneeded = [key for key in self._kept.blocks if key[0] == experiment and key[2] < needed.get(key[1], 0)][:most]
        for key in unneeded:
            del self._kept.blocks[key]
        return len(unneeded)

    def keep_initial_state(self, experiment, data):
        if experiment in self._kept.initial_states:
            raise TakenError(experiment)
        self._kept.initial_states[experiment] = data

    def keep_graph(self, id_, data, now, parts=0):
        before = self._kept.graphs.get(id_, (data, now, parts))
        new = id_ not in self._kept.graphs
        if new and not all((id_, number) in self._kept.graph_parts for number in range(parts)):
            raise TakenError(id_)
        self._kept.graphs[id_] = before[0], now, before[2]
        return new

    def keep_graph_part(self, id_, number, data, now):
        self._kept.graph_parts[id_, number] = data, now

    def forget_graph_parts(self, before, most):
        used = {(id_, number) for id_, (_, _, parts) in self._kept.graphs.items() for number in range(parts)}
        left_over = [key for key, (_, at) in self._kept.graph_parts.items() if at < before and key not in used][:most]
        for key in left_over:
            del self._kept.graph_parts[key]
        return len(left_over)

    def hold_graph(self, id_):
        return id_ in self._kept.graphs

    def forget_graphs(self, ids, before):
        unused = sorted(set(self.unused_graphs(before, 2**31)) & set(ids))
        for id_ in unused:
            for number in range(self._kept.graphs.pop(id_)[2]):
                del self._kept.graph_parts[id_, number]
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
    def writing(self, *, aside=False):  # noqa: ARG002  # no test has so many who wait
        if not self.place.lock.acquire(timeout=self._busy_timeout):
            raise ServiceError("Another server writes. Nothing was stored.", status=503, code="busy", retry_after=1.0)
        writing = MemoryWriting(self.place)
        try:
            yield writing
        finally:
            writing.end()

    def close(self):
        pass
