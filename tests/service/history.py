"""Clients that never give up, what they were told, and the check that the journal agrees.

Each client decides and tells in turn. A request that gets no reply, or one that says "send it again", is sent again,
with the same key, until it is answered. So at the end every request was acknowledged, and the journal must hold each of
them once: no more, no fewer, with what the client was told.
"""

import asyncio
import collections
import contextlib
import json
import random
import re

from sidelong.service.store import journal, snapshots
from sidelong.service.store.clock import Clock
from sidelong.service.store.graphs import GraphCache
from sidelong.service.store.journal import Kind
from sidelong.service.store.kinds import open_database
from sidelong.service.store.replay import Replayed

_LENGTH = re.compile(rb"content-length: *(\d+)", re.IGNORECASE)
_AGAIN = (429, 503, 507)


class History:
    """What clients were told."""

    def __init__(self):
        self.decided = {}  # by key
        self.told = {}  # by id: the losses
        self.learned = collections.Counter()  # by id: how often a reply said that something was learned
        self.cancelled = set()
        self.sent_again = 0


class Line:
    """A connection to whichever server there is."""

    def __init__(self, ports, history, *, hops, token=""):
        self._ports = ports
        self._hops = hops  # whether each request takes a new connection
        self._token = token
        self._history = history
        self._streams = None

    async def send(self, path, body="", key="", method="POST"):
        """Send a request, again and again, until there is a reply."""
        first = True
        while True:
            if not first:
                self._history.sent_again += 1
                await asyncio.sleep(0.005)
            first = False
            try:
                status, content = await asyncio.wait_for(self._send(path, body, key, method), 20)
            except (OSError, asyncio.IncompleteReadError, TimeoutError):
                self.close()
                continue
            if self._hops:
                self.close()
            if status not in _AGAIN:
                return status, content

    async def _send(self, path, body, key, method):
        if self._streams is None:
            self._streams = await asyncio.open_connection("127.0.0.1", self._ports())
        reader, writer = self._streams
        head = f"{method} {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: {len(body)}\r\n"
        head += f"Authorization: Bearer {self._token}\r\n" * bool(self._token)
        head += "Content-Type: application/json\r\n" * bool(body) + f"Idempotency-Key: {key}\r\n" * bool(key)
        writer.write(f"{head}\r\n{body}".encode())
        reply = await reader.readuntil(b"\r\n\r\n")
        content = await reader.readexactly(int(_LENGTH.search(reply)[1]))
        return int(reply.split()[1]), json.loads(content)

    def close(self):
        if self._streams is not None:
            self._streams[1].close()
            self._streams = None


async def follow(experiment, ports, seen, stop):
    """Follow the events of an experiment, and go on after each break behind the last one that was seen."""
    while not stop():
        with contextlib.suppress(OSError, asyncio.IncompleteReadError, TimeoutError):
            reader, writer = await asyncio.open_connection("127.0.0.1", ports())
            last = f"Last-Event-ID: {seen[-1] if seen else 0}"
            writer.write(
                f"GET /v1/experiments/{experiment}/events HTTP/1.1\r\nHost: 127.0.0.1\r\n{last}\r\n\r\n".encode()
            )
            with contextlib.closing(writer):
                while not stop() and (line := await asyncio.wait_for(reader.readline(), 1)):
                    if line.startswith(b"id: "):
                        seen.append(int(line[4:]))
        await asyncio.sleep(0.005)


async def export(experiment, ports, counts, stop):
    """Download the log again and again, and leave every second time before it has come."""
    while not stop():
        with contextlib.suppress(OSError, asyncio.IncompleteReadError, TimeoutError):
            reader, writer = await asyncio.open_connection("127.0.0.1", ports())
            writer.write(f"GET /v1/experiments/{experiment}/log HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n".encode())
            with contextlib.closing(writer):
                counts["asked"] += 1
                if counts["asked"] % 2:
                    reply = await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), 20)
                    content = await reader.readexactly(int(_LENGTH.search(reply)[1]))
                    if b" 200 " in reply.partition(b"\r\n")[0]:
                        assert content[:4] == content[-4:] == b"PAR1"
                        counts["whole"] += 1
        await asyncio.sleep(0.05)


async def client(name, experiment, ports, history, seed, stop, *, hops=False, content=lambda _: {}):
    """Decide and tell until told to stop; cancel one in ten, repeat one in ten, and send what `content` draws."""
    draws, line = random.Random(f"{seed} {name}"), Line(ports, history, hops=hops)
    number = 0
    while not stop():
        number += 1
        key = f"{name}-{number}"
        sent = content(draws)
        body = json.dumps(sent) if sent else ""
        status, made = await line.send(f"/v1/experiments/{experiment}/decisions", body, key)
        assert status in {200, 201}, made
        history.decided[key] = made
        if draws.random() < 0.1:
            status, reply = await line.send(f"/v1/decisions/{made['id']}/cancel")
            assert status == 200, reply
            history.cancelled.add(made["id"])
            continue
        losses = {str(arm): draws.random() for arm in made["reveals"]}
        for _ in range(2 if draws.random() < 0.1 else 1):
            status, reply = await line.send(f"/v1/decisions/{made['id']}/feedback", json.dumps({"losses": losses}))
            assert status == 200, reply
            assert reply["learned"] is not reply["duplicate"]
            history.learned[made["id"]] += reply["learned"]
        history.told[made["id"]] = losses
    line.close()


def check(address, experiment, history):
    """Compare the journal with what clients were told; return the digest of what replaying it gives."""
    database = open_database(address)
    with database.reading() as reading:
        identity = reading.find(experiment)
        [head] = [each.head for each in reading.experiments() if each.id == identity.id]
        events = list(journal.since(reading, identity.id, 0))
        rebuilt = Replayed(identity, GraphCache(), Clock()).rebuilt(reading)
    database.close()
    assert [event.seq for event in events] == list(range(1, head + 1))
    by_kind = {kind: [event for event in events if event.kind is kind] for kind in Kind}
    rounds = [event.round for event in by_kind[Kind.DECIDED]]
    assert rounds == list(range(1, len(rounds) + 1))
    decided = {event.key: event for event in by_kind[Kind.DECIDED]}
    for key, made in history.decided.items():
        event = decided[key]
        drawn = journal.read_draws(event)
        assert (made["id"], [made["arm"]]) == (f"{identity.key}-{event.round}", drawn.arms)
        assert [made["probability"]] == drawn.probabilities
    told = {f"{identity.key}-{event.round}": event for event in by_kind[Kind.TOLD]}
    assert len(told) == len(by_kind[Kind.TOLD])
    for id_, losses in history.told.items():
        assert journal.read_settled(told[id_]).losses.tolist() == list(losses.values())
    assert not [id_ for id_, times in history.learned.items() if times > 1]
    cancelled = {f"{identity.key}-{event.round}" for event in by_kind[Kind.CANCELLED]}
    assert history.cancelled <= cancelled
    return snapshots.digest(rebuilt), by_kind


def check_complete(history, by_kind):
    """Check that the journal holds nothing but what was acknowledged: to be called when no request is under way."""
    assert len(by_kind[Kind.DECIDED]) == len(history.decided)
    assert len(by_kind[Kind.TOLD]) == len(history.told)
    assert len(by_kind[Kind.CANCELLED]) == len(history.cancelled)
