"""A database in memory, written against the seam alone: it shows that the seam is enough.

As SQLite, it lets one write at a time. What is written is a copy, which takes the place of what was there at `commit`.
"""

import collections
import contextlib
import threading
from dataclasses import dataclass, field, fields, replace

from sidelong.errors import ServiceError
from sidelong.service.store.database import Blob, BlobKind, Database, Listed, Reading, TakenError, Writing
from sidelong.service.store.journal import SLOTS, size_of


@dataclass
class Contents:
    """All that is kept. What the dictionaries hold is never changed, but replaced."""

    experiments: dict = field(default_factory=dict)  # the identity, by id
    listed: dict = field(default_factory=dict)  # state, changed_at, changed_by, by id
    own_graphs: dict = field(default_factory=dict)  # by id
    events: dict = field(default_factory=dict)  # a tuple, by experiment
    heads: dict = field(default_factory=dict)  # of experiments whose events are forgotten
    chunks: dict = field(default_factory=dict)  # data, when they were kept, and whether they are the last, by name
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
        every = [each for of, each in self._kept.experiments.items() if self._is_kept(of)]
        return next((each for each in every if of in {each.name, f"#{each.key}"}), None)

    def _is_kept(self, of):
        return self._kept.listed[of].get("state") not in {"deleted", "gone"}

    def experiments(self, *, deleted=False):
        listed = [
            Listed(of, each.name, self._head(of), **self._kept.listed[of])
            for of, each in self._kept.experiments.items()
            if self._is_kept(of) != deleted
        ]
        return sorted(listed, key=lambda each: (each.changed_at, each.id) if deleted else each.name)

    def _head(self, of):
        return self._kept.heads.get(of, len(self._kept.events[of]))

    def events(self, experiment, after, most, most_bytes=None):
        found, total = [], 0
        for each in self._kept.events.get(experiment, ())[after:][:most]:
            found.append(each)
            total += size_of(each)
            if most_bytes is not None and total >= most_bytes:
                break
        return found

    def spanning(self, experiment, slot, first, last, most):
        every = [each for each in self._kept.events.get(experiment, ()) if SLOTS[each.kind] == slot]
        found = [each for each in every if first <= each.round <= last]
        return sorted(found, key=lambda each: -each.round)[:most]

    def rounds(self, experiment, first, last):
        found = [each for each in self._kept.events.get(experiment, ()) if first <= each.round <= last]
        return sorted(found, key=lambda each: (each.round, SLOTS[each.kind]))

    def keyed(self, experiment, keys):
        wanted = set(keys)
        return [each for each in self._kept.events.get(experiment, ()) if each.key in wanted]

    def blob(self, name):
        complete = [key[0] for key, (_, _, last) in self._kept.chunks.items() if last and key[0][:3] == name[:3]]
        seq = max((each.seq for each in complete if each.seq <= name.seq), default=None)
        if seq is None:
            return None
        chunks = sorted(key for key in self._kept.chunks if key[0] == name._replace(seq=seq))
        return Blob(seq, b"".join(self._kept.chunks[key][0] for key in chunks))

    def graph_bytes(self, experiment):
        named = {each.graph for each in self._kept.events.get(experiment, ()) if each.graph is not None}
        return sum(len(data) for (name, _), (data, *_) in self._kept.chunks.items() if name.owner in named)

    def names_graph(self, experiment, id_):
        own = self._kept.own_graphs[experiment] == id_
        return own or any(each.graph == id_ for each in self._kept.events[experiment])

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
        return self._head(experiment) if self._is_kept(experiment) else None

    def create(self, identity, graph=None):
        if self.find(identity.name) is not None:
            raise TakenError(identity.name)
        of = len(self._kept.listed) + 1
        self._kept.experiments[of] = replace(identity, id=of)
        self._kept.listed[of] = {}
        self._kept.own_graphs[of] = graph
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

    def append(self, new):
        for of, events in new.items():
            every = self._kept.events[of] + tuple(events)
            keys = [each.key for each in every if each.key is not None]
            places = {(each.round, SLOTS[each.kind]) for each in every}
            numbers = [each.seq for each in every]
            if numbers != list(range(1, len(every) + 1)) or len(places) < len(every) or len(set(keys)) < len(keys):
                raise TakenError(of)
            self._kept.events[of] = every

    def keep_chunk(self, name, chunk, data, now, *, last):
        self._kept.chunks[name, chunk] = data, now, last
        if last:
            for key in [key for key in self._kept.chunks if key[0] == name and key[1] > chunk]:
                del self._kept.chunks[key]
            if not all((name, number) in self._kept.chunks for number in range(chunk)):
                raise TakenError(name)

    def hold(self, name, now=None):
        found = next((key for key, (*_, last) in self._kept.chunks.items() if key[0] == name and last), None)
        if found is not None and now is not None:
            data, _, last = self._kept.chunks[found]
            self._kept.chunks[found] = data, now, last
        return found is not None

    def forget(self, experiment, most_bytes):
        owner, forgotten, total = self._kept.experiments[experiment].key, 0, 0
        own = sorted((key for key in self._kept.chunks if key[0].owner == owner), key=lambda key: (key[0], -key[1]))
        deleted = not self._is_kept(experiment)
        if not deleted:
            own = [key for key in own if not self._is_needed(key[0])]
        while own and total < most_bytes:
            total += len(self._kept.chunks.pop(own.pop(0))[0]) + 300
            forgotten += 1
        if forgotten or not deleted:
            return forgotten
        left = list(self._kept.events[experiment])
        self._kept.heads.setdefault(experiment, len(left))
        while left and total < most_bytes:
            total += size_of(left.pop()) + 300
            forgotten += 1
        self._kept.events[experiment] = tuple(left)
        if not forgotten:
            self._kept.listed[experiment] = self._kept.listed[experiment] | {"state": "gone"}
        return forgotten

    def _is_needed(self, name):
        complete = {key[0] for key, (*_, last) in self._kept.chunks.items() if last and key[0].owner == name.owner}
        saved = sorted(each.seq for each in complete if each.kind is BlobKind.SNAPSHOT)
        oldest = saved[-2:][0] if saved else 0
        if name.kind is BlobKind.SNAPSHOT:
            return name.seq >= oldest
        newer = [each for each in complete if each[:3] == name[:3] and name.seq < each.seq <= oldest]
        return name.kind is not BlobKind.BLOCK or not newer

    def forget_unused(self, before, most, owners=None):
        named = {each.key for each in self._kept.experiments.values()}
        named |= {graph for of, graph in self._kept.own_graphs.items() if self._is_kept(of)}
        named |= {event.graph for events in self._kept.events.values() for event in events}
        kept = collections.defaultdict(int)
        for (name, _), (_, at, _) in self._kept.chunks.items():
            kept[name.owner] = max(kept[name.owner], at)
        unused = {of for of, at in kept.items() if at < before and of not in named and of in (owners or kept)}
        found = sorted((key for key in self._kept.chunks if key[0].owner in unused), key=lambda key: (key[0], -key[1]))
        for key in found[:most]:
            del self._kept.chunks[key]
        return sorted({key[0].owner for key in found[:most]})

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
