"""A store without a server around it, with clocks that tests move."""

import contextlib

import sidelong as sl
from sidelong.service.settings import Settings
from sidelong.service.store.clock import Clock
from sidelong.service.store.commands import Cancel, Decide, Expire, Tell
from sidelong.service.store.database import Database
from sidelong.service.store.migrate import migrate
from sidelong.service.store.store import Store


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
        self.database = Database(address, busy_timeout=settings.pop("busy_timeout", 5.0))
        migrate(self.database)
        clock = Clock(lambda: self.hands.wall, lambda: self.hands.steady)
        self.store = Store(self.database, Settings(**settings), clock)

    def create(self, name="e", graph=None, learner="exp3.g++", seed=3, expire_after=None, **options):
        spec = {"learner": learner, "options": options, "seed": seed, "expire_after": expire_after}
        spec |= {"description": "", "labels": None}
        return self.store.create(self.store.draft(name, spec, graph or sl.graphs.nested(4)))

    def decide(self, name="e", **how):
        return self._run(Decide(name, **how))

    def tell(self, made, losses=0.25, graph=None):
        given = losses if isinstance(losses, list | dict) else [losses] * len(made.reveals)
        return self._run(Tell(f"#{made.experiment}", made.event.round, given, graph))

    def cancel(self, made):
        return self._run(Cancel(f"#{made.experiment}", made.event.round))

    def expire(self, name="e"):
        return self._run(Expire(name))

    def digest(self, name="e"):
        return self.store.view(name, lambda experiment, _: experiment.digest())

    def counts(self, name="e"):
        return self.store.view(name, lambda experiment, _: experiment.tallies.counts.tolist())

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
