"""A store without a server around it, with clocks that tests move."""

import contextlib
import itertools
from typing import NamedTuple

import psycopg

import sidelong as sl
from sidelong.errors import ServiceError
from sidelong.service.settings import Settings
from sidelong.service.store import creation, snapshots
from sidelong.service.store.clock import Clock
from sidelong.service.store.database import LAST_SEQ, BlobKind, BlobName, keep_chunks
from sidelong.service.store.feedback import ToldItem
from sidelong.service.store.kinds import open_database
from sidelong.service.store.lifecycle_commands import Change, Delete
from sidelong.service.store.rules import Cancel, Decide, Expire, Tell
from sidelong.service.store.spec import RequestedSpec
from sidelong.service.store.store import Store

_numbers = itertools.count(1)


class One(NamedTuple):
    """A single decision."""

    experiment: str
    number: int
    arm: int
    probability: float
    drawn_by: str
    reveals: list
    duplicate: bool
    at: int


def one_of(made, place=0):
    """Return one of the decisions of a batch."""
    number, _, _, arm, probability, drawn_by = made.draws.row(place)
    reveals = made.graph.row(arm).tolist()
    return One(made.experiment, number, arm, probability, drawn_by, reveals, made.duplicate, made.at)


class TellOne(Tell):
    """Tell one decision: what is refused is raised."""

    def run(self, turn):
        (outcome,) = super().run(turn)
        if isinstance(outcome, ServiceError):
            raise outcome
        return outcome


def tell_one(of, *item):
    """Return the command that tells one decision."""
    return TellOne(of, [ToldItem(*item)], partial=True, alone=True)


class Hands:
    """The hands of both clocks."""

    def __init__(self):
        self.wall = 1_700_000_000.0
        self.steady = 50.0

    def move(self, seconds):
        self.wall += seconds
        self.steady += seconds


class Bench:
    """A store, and how tests use it: what is refused is raised."""

    def __init__(self, address, hands=None, **settings):
        self.hands = hands or Hands()
        self.database = open_database(address, busy_timeout=settings.pop("busy_timeout", 120.0))
        clock = Clock(lambda: self.hands.wall, lambda: self.hands.steady)
        self.store = Store(self.database, Settings(**settings), clock)

    def create(self, name="e", graph=None, learner="exp3.g++", seed=3, expire_after=None, **options):
        spec = {name: options.pop(name) for name in list(options) if name in RequestedSpec.model_fields}
        spec |= {"learner": learner, "options": options, "seed": seed, "expire_after": expire_after}
        request = RequestedSpec(**spec)
        return creation.create(self.store, creation.draft(self.store, name, request, graph or sl.graphs.nested(4)))

    def decide(self, name="e", **how):
        return one_of(self._run(Decide(name, **how)))

    def tell(self, made, losses=0.25, graph=None):
        given = losses if isinstance(losses, list | dict) else [losses] * len(made.reveals)
        return self._run(tell_one(f"#{made.experiment}", made.number, given, graph))

    def cancel(self, made):
        return self._run(Cancel(f"#{made.experiment}", made.number))

    def expire(self, name="e"):
        return self._run(Expire(name))

    def change(self, of="e", by=None, **wanted):
        return self._run(Change(of, wanted, by))

    def clone(self, of, name, *, learned=True, by=None, wanted=None):
        draft = creation.clone(self.store, of, name, wanted or {}, learned=learned)
        return creation.create(self.store, draft, by)

    def delete(self, name="e", by=None):
        return self._run(Delete(name, by))

    def digest(self, name="e"):
        return self.store.view(name, lambda experiment, _: snapshots.digest(experiment))

    def counts(self, name="e"):
        return self.store.view(name, lambda experiment, _: experiment.counters.counts.tolist())

    def _run(self, command):
        (outcome,) = self.store.run([command])
        if isinstance(outcome, Exception):
            raise outcome
        return outcome


@contextlib.contextmanager
def opened(address, hands=None, **settings):
    """Open a store, and close its database at the end."""
    bench = Bench(address, hands, **settings)
    try:
        yield bench
    finally:
        bench.database.close()


def new_database(kind, request, folder):
    """Return the address of an empty database; `request` starts a PostgreSQL if one is needed."""
    number = next(_numbers)
    if kind == "sqlite":
        return f"sqlite:///{folder}/service-{number}.db"
    address = request.getfixturevalue("postgresql")
    with psycopg.connect(address, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE test{number}")
    return address.removesuffix("postgres") + f"test{number}"


def last_snapshot(reading, key, before=LAST_SEQ):
    """Return the last snapshot of an experiment, given by its key."""
    return reading.blob(BlobName(BlobKind.SNAPSHOT, key, seq=before))


def alter_snapshots(database, name, change):
    """Change the bytes of all snapshots of an experiment."""
    with database.writing() as writing:
        key, before = writing.find(name).key, LAST_SEQ
        while (found := last_snapshot(writing, key, before)) is not None:
            keep_chunks(writing, BlobName(BlobKind.SNAPSHOT, key, seq=found.seq), change(found.data), 0)
            before = found.seq - 1
        writing.commit()


def lose_snapshots(database):
    """Make all snapshots unusable, so that only the journals are left."""
    with database.reading() as reading:
        every = [each.name for each in reading.experiments()]
    for name in every:
        alter_snapshots(database, name, lambda _: b"")


def small_blocks(monkeypatch, keys):
    """Let a block have so many keys, so that a test needs few keys to have several blocks."""
    monkeypatch.setattr("sidelong.service.store.keys.KEYS", keys)
