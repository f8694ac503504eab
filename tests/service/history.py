"""What clients were told, connections that never give up, and the check that the journals agree.

A request that gets no reply, or one that says "send it again", is sent again, with the same key, until it is answered.
So at the end every request was acknowledged, and the journals must hold each of them once: no more, no fewer, with what
the client was told.
"""

import asyncio
import collections
import contextlib
import hashlib
import json
import re
import time

import sqlalchemy as sa

from sidelong.service.store import journal, snapshots
from sidelong.service.store.clock import Clock
from sidelong.service.store.database import Cut
from sidelong.service.store.graphs import GraphCache
from sidelong.service.store.journal import DRAWN_BY, Event, Kind
from sidelong.service.store.replay import Replayed
from sidelong.service.store.sql import schema

_LENGTH = re.compile(rb"content-length: *(\d+)", re.IGNORECASE)
_BROKEN = (OSError, asyncio.IncompleteReadError, TimeoutError)


class History:
    """What clients were told of decisions, by id. An id begins with the key of its experiment."""

    def __init__(self):
        self.decided = {}  # the Idempotency-Key, the arm and its probability
        self.told = {}  # the losses
        self.cancelled = set()
        self.learned = collections.Counter()  # how often a reply said that something was learned
        self.sent_again = 0
        self.slowest = 0.0  # seconds until a reply came


def is_passing(status, code):
    """Tell whether the same request may succeed later; an experiment whose journal is damaged is refused for good."""
    return status in {0, 429, 503, 507} and code != "refused"


class Line:
    """A connection to whichever server there is."""

    def __init__(self, ports, history, token, *, hops):
        self._ports = ports
        self._hops = hops  # whether each request takes a new connection
        self._token = token
        self._history = history
        self._streams = None

    async def send(self, path, body="", key="", method="POST"):
        """Send a request, again and again, until there is a reply."""
        while True:
            begun = time.monotonic()
            try:
                # Whoever gave up on a server that is alive could not say when it does what it was asked for.
                status, content = await self._send(path, body, key, method)
            except (OSError, asyncio.IncompleteReadError):
                self.close()
            else:
                self._history.slowest = max(self._history.slowest, time.monotonic() - begun)
                if self._hops:
                    self.close()
                if not is_passing(status, content.get("code")):
                    return status, content
            self._history.sent_again += 1
            await asyncio.sleep(0.005)

    async def _send(self, path, body, key, method):
        if self._streams is None:
            self._streams = await asyncio.open_connection("127.0.0.1", self._ports())
        reader, writer = self._streams
        more = "Content-Type: application/json\r\n" * bool(body) + f"Idempotency-Key: {key}\r\n" * bool(key)
        writer.write(_request(method, path, self._token, f"{more}Content-Length: {len(body)}\r\n") + body.encode())
        reply = await reader.readuntil(b"\r\n\r\n")
        content = await reader.readexactly(int(_LENGTH.search(reply)[1]))
        return int(reply.split()[1]), json.loads(content)

    def close(self):
        if self._streams is not None:
            self._streams[1].close()
            self._streams = None


def _request(method, path, token, more=""):
    return f"{method} {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {token}\r\n{more}\r\n".encode()


async def follow(path, ports, token, seen, stop):
    """Follow the events of an experiment, and go on after each break behind the last one that was seen."""
    while not stop():
        with contextlib.suppress(*_BROKEN):
            reader, writer = await asyncio.open_connection("127.0.0.1", ports())
            last = f"Last-Event-ID: {seen[-1] if seen else 0}\r\n"
            writer.write(_request("GET", f"{path}/events", token, last))
            with contextlib.closing(writer):
                while not stop() and (line := await asyncio.wait_for(reader.readline(), 1)):
                    if line.startswith(b"id: "):
                        seen.append(int(line[4:]))
        await asyncio.sleep(0.005)


async def export(path, ports, token, counts, stop):
    """Download the log again and again, and leave every second time before it has come."""
    while not stop():
        with contextlib.suppress(*_BROKEN):
            reader, writer = await asyncio.open_connection("127.0.0.1", ports())
            writer.write(_request("GET", f"{path}/log", token))
            with contextlib.closing(writer):
                counts["asked"] += 1
                if counts["asked"] % 2:
                    reply = await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), 20)
                    content = await reader.readexactly(int(_LENGTH.search(reply)[1]))
                    if b" 200 " in reply.partition(b"\r\n")[0]:
                        assert content[:4] == content[-4:] == b"PAR1"
                        counts["whole"] += 1
        await asyncio.sleep(0.05)


#: What makes a database keep whatever is deleted from the journals, in a table of its own.
_KEEP_ERASED = {
    "sqlite": (
        """CREATE TRIGGER keep_erased BEFORE DELETE ON events BEGIN
               INSERT INTO erased SELECT * FROM events WHERE experiment = OLD.experiment AND seq = OLD.seq;
           END""",
    ),
    "postgresql": (
        """CREATE FUNCTION keep_erased() RETURNS trigger LANGUAGE plpgsql AS
               $$ BEGIN INSERT INTO erased VALUES (OLD.*); RETURN OLD; END $$""",
        "CREATE TRIGGER keep_erased BEFORE DELETE ON events FOR EACH ROW EXECUTE FUNCTION keep_erased()",
    ),
}
_ERASED = schema.events.to_metadata(sa.MetaData(), name="erased")


def keep_erased(database):
    """Let a database keep the events that its servers erase, so that nothing escapes the check."""
    with database.writing() as writing:
        writing.connection.exec_driver_sql("CREATE TABLE erased AS SELECT * FROM events WHERE 1 = 0")
        writing.connection.exec_driver_sql("CREATE INDEX erased_by_number ON erased (experiment, seq)")
        for statement in _KEEP_ERASED[database.name]:
            writing.connection.exec_driver_sql(statement)
        writing.commit()


def _with_erased(method, experiment, after, most, *_):
    """Return the events that a database would return if none had been erased."""
    found = {}
    for table in (_ERASED, schema.events):
        wanted = sa.select(*(table.c[name] for name in Event._fields)).order_by(table.c.seq).limit(most)
        rows = method.__self__.connection.execute(wanted.where(table.c.experiment == experiment, table.c.seq > after))
        found |= {row.seq: Event(Kind(row.kind), *row[1:]) for row in rows}
    return [found[seq] for seq in sorted(found)[:most]]


class Journal:
    """The journal of an experiment, read as it grows, beside what clients were told."""

    def __init__(self, identity):
        self.identity = identity
        self.events = []
        self.decided = {}  # by id: as clients were told
        self.settled = {}  # by id: the kind of the event that settled it, and the losses

    def read(self, reading):
        """Read what is new; each decision is made once, and settled at most once."""
        for event in _with_erased(reading.events, self.identity.id, len(self.events), 2**31):
            self.events.append(event)
            assert event.seq == len(self.events)
            if event.kind in DRAWN_BY:
                draws = journal.read_draws(event)
                assert event.round == len(self.decided) + 1
                for number, arm, probability in zip(draws.numbers, draws.arms, draws.probabilities, strict=True):
                    self.decided[self._id(number)] = event.key, arm, probability
            elif event.kind in {Kind.TOLD, Kind.CANCELLED}:
                found = journal.read_settled(event)
                for place, number in enumerate(found.numbers.tolist()):
                    assert self._id(number) in self.decided
                    assert self._id(number) not in self.settled
                    self.settled[self._id(number)] = event.kind, found.losses_of(place).tolist()
        [head] = [each.head for each in reading.experiments() if each.id == self.identity.id]
        assert len(self.events) == head
        return self

    def _id(self, number):
        return f"{self.identity.key}-{number}"

    def check(self, history, *, complete=False):
        """Check that it holds what clients were told; if it is complete, no request is under way: nothing else."""
        decided = self._of(history.decided)
        settled = {id_: (Kind.TOLD, losses) for id_, losses in self._of(history.told).items()}
        settled |= {id_: (Kind.CANCELLED, []) for id_ in self._of(dict.fromkeys(history.cancelled))}
        assert {id_: self.decided[id_] for id_ in decided} == decided
        assert {id_: self.settled[id_] for id_ in settled} == settled
        assert not [id_ for id_, times in history.learned.items() if times > 1]
        if complete:
            assert self.decided.keys() == decided.keys()
            assert self.settled.keys() == settled.keys()

    def _of(self, by_id):
        return {id_: value for id_, value in by_id.items() if id_.startswith(self.identity.key)}

    def replayed(self, database, hooks, clones=()):
        """Return the digest of what replaying it gives, without a snapshot.

        `clones` are numbers of events. The state that a clone of it had begun with after each is returned beside it.
        """
        found, states = Replayed(self.identity, GraphCache(), Clock()), {}
        for last in sorted({*clones, len(self.events)}):
            hooks["events"] = lambda *given, last=last: [each for each in _with_erased(*given) if each.seq <= last]
            hooks["cut"] = lambda *_: Cut()
            with database.reading() as reading:
                found.live = found.rebuilt(reading) if found.live is None else found.catch_up(reading)
                copied = snapshots.copied(found.live, reading)
            states[last] = hashlib.sha256(copied()).hexdigest()
        hooks.clear()
        return snapshots.digest(found.live), states
