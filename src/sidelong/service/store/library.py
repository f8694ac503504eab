"""The experiments of a database, in memory, as all servers have made them: what reads them.

An experiment is brought into memory when it is first needed, and catches up with the journal whenever it is looked at.
It is changed in memory before it is changed on the disk, under a lock that is held until both agree: nobody sees what
is not on the disk.
"""

from __future__ import annotations

import contextlib
import json
import logging
import threading
from typing import TYPE_CHECKING, Any, TypeVar

from sqlalchemy import bindparam, func, select

from sidelong.errors import ServiceError
from sidelong.service.http import views
from sidelong.service.http.messages import ExperimentList
from sidelong.service.store import replay
from sidelong.service.store.experiment import Identity
from sidelong.service.store.graphs import Shelf
from sidelong.service.store.schema import clock as clock_table
from sidelong.service.store.schema import experiments

if TYPE_CHECKING:
    from collections.abc import Callable

    from sqlalchemy import Connection

    from sidelong.graphs import FeedbackGraph
    from sidelong.service.http.messages import DecisionState
    from sidelong.service.settings import Settings
    from sidelong.service.store.clock import Clock
    from sidelong.service.store.database import Database
    from sidelong.service.store.experiment import Experiment

    T = TypeVar("T")

__all__ = ["Library", "unknown"]

_log = logging.getLogger("sidelong.service")
_BY_NAME = select(experiments).where(experiments.c.name == bindparam("of"))
_BY_KEY = select(experiments).where(experiments.c.key == bindparam("of"))


class Library:
    """The experiments of a database, to be read."""

    def __init__(self, database: Database, settings: Settings, clock: Clock) -> None:
        self.database = database
        self.settings = settings
        self.clock = clock
        self._shelf = Shelf()
        self._memory = threading.RLock()  # held from the first change in memory until the commit
        self._open: dict[int, Experiment] = {}
        self._refused: dict[int, ServiceError] = {}
        self._known: dict[str, Identity] = {}  # by name, and by "#" and key
        with database.reading() as connection:
            clock.saw(connection.execute(select(clock_table.c.now)).scalar() or 0)

    def view(self, of: str, look: Callable[[Experiment, Connection], T]) -> T:
        """Return what `look` sees of an experiment, as all servers have made it; it must not change anything."""
        with self.database.reading() as connection:
            identity = self._identify(connection, of)
            if identity is None:
                raise unknown(of)
            with self._memory:
                return look(self._current(connection, identity), connection)

    def names(self, offset: int, limit: int) -> tuple[int, list[str]]:
        """Return how many experiments there are, and the names of some of them."""
        with self.database.reading() as connection:
            total = connection.execute(select(func.count()).select_from(experiments)).scalar() or 0
            rows = connection.execute(
                select(experiments.c.name).order_by(experiments.c.name).offset(offset).limit(limit)
            )
            return total, [row.name for row in rows]

    def summaries(self, offset: int, limit: int) -> ExperimentList:
        """Return a page of the list of experiments."""
        total, names = self.names(offset, limit)
        items = []
        for name in names:
            with contextlib.suppress(ServiceError):  # one that is refused is in the log, and on its own page
                items.append(self.view(name, lambda each, _: views.summary(each)))
        return ExperimentList(total=total, items=items)

    def decision(self, of: str, number: int) -> DecisionState:
        """Return a decision, whatever became of it."""
        return self.view(of, lambda each, connection: views.decision(each, number, connection, self._shelf))

    def identity(self, name: str) -> Identity:
        """Return what an experiment is."""
        with self.database.reading() as connection:
            found = self._identify(connection, name)
        if found is None:
            raise unknown(name)
        return found

    def find_graph(self, connection: Connection, id_: str) -> FeedbackGraph:
        """Return a graph by its id."""
        with self._memory:
            return self._shelf.find(connection, id_)

    def counts(self) -> list[tuple[str, Any, int]]:
        """Return, for each experiment in memory, its name, its events by kind, and how many are outstanding."""
        with self._memory:
            every = self._open.values()
            return [(each.identity.name, each.tallies.counts.copy(), len(each.outstanding)) for each in every]

    def behind(self) -> list[str]:
        """Return the experiments that are not in memory as the database has them, by name."""
        with self.database.reading() as connection:
            rows = connection.execute(select(experiments.c.id, experiments.c.name, experiments.c.head)).all()
        with self._memory:
            heads = {of: experiment.head for of, experiment in self._open.items()}
            return [row.name for row in rows if row.id not in self._refused and heads.get(row.id, 0) < row.head]

    def due(self) -> list[str]:
        """Return the experiments in memory that have decisions to expire, by key."""
        with self._memory:
            clock = self.clock.now().clock
            return [f"#{each.identity.key}" for each in self._open.values() if each.due(clock)]

    def _current(self, connection: Connection, identity: Identity, head: int | None = None) -> Experiment:
        """Return an experiment that has caught up with the journal; `head` is its last event, if that is known."""
        if identity.id in self._refused:
            raise self._refused[identity.id]
        experiment = self._open.get(identity.id)
        try:
            if experiment is None:
                experiment = replay.open_experiment(connection, identity, self._shelf, self.clock)
                self._open[identity.id] = experiment
            elif experiment.head != head:
                replay.catch_up(connection, experiment, self._shelf, self.clock)
            if head is not None and experiment.head != head:
                raise replay.incomplete(identity, experiment.head, head)
        except ServiceError as error:
            self._open.pop(identity.id, None)
            if error.code == "refused":
                self._refused[identity.id] = error
                _log.error("experiment refused", extra={"experiment": identity.name, "why": str(error)})
            raise
        return experiment

    def _identify(self, connection: Connection, of: str) -> Identity | None:
        if of not in self._known:
            row = connection.execute(_BY_KEY if of.startswith("#") else _BY_NAME, {"of": of.removeprefix("#")}).first()
            if row is None:
                return None
            self._remember(Identity(row.id, row.key, row.name, json.loads(row.spec)))
        return self._known[of]

    def _remember(self, identity: Identity) -> Identity:
        self._known[identity.name] = self._known[f"#{identity.key}"] = identity
        return identity


def unknown(of: str) -> ServiceError:
    """Return the error for an experiment, or a decision of one, that is not there."""
    what = "decision" if of.startswith("#") else f"experiment {of!r}"
    return ServiceError(f"There is no such {what}.", status=404, code="not_found", path="path")
