"""The store: experiments in memory, the journal behind them, and the one place where both change.

Commands come in batches. A batch is one transaction: lock the experiments, catch up with what other servers wrote, run
the commands in memory, write their events, commit. So one flush of the disk serves all requests of a batch, and nothing
is acknowledged that is not on the disk. If anything fails, the experiments are forgotten, and read again from the
journal when they are next needed.
"""

from __future__ import annotations

import contextlib
import json
import logging
import secrets
import threading
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from sqlalchemy import bindparam, func, insert, select, update

from sidelong.errors import ServiceError
from sidelong.service import journal, replay, views
from sidelong.service.commands import Turn
from sidelong.service.database import Statement
from sidelong.service.experiment import Experiment, Identity
from sidelong.service.graphs import KnownGraph, Shelf, identify
from sidelong.service.messages import ExperimentList
from sidelong.service.schema import clock as clock_table
from sidelong.service.schema import experiments

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from sqlalchemy import Connection

    from sidelong.graphs import FeedbackGraph
    from sidelong.service.clock import Clock
    from sidelong.service.commands import Command
    from sidelong.service.database import Database
    from sidelong.service.messages import DecisionState
    from sidelong.service.settings import Settings

    T = TypeVar("T")

__all__ = ["Draft", "Store"]

_log = logging.getLogger("sidelong.service")
_BY_NAME = select(experiments).where(experiments.c.name == bindparam("of"))
_BY_KEY = select(experiments).where(experiments.c.key == bindparam("of"))
_LOCK = Statement(select(experiments.c.head).where(experiments.c.id == bindparam("of")).with_for_update(key_share=True))
_HEAD = Statement(update(experiments).where(experiments.c.id == bindparam("of")).values(head=bindparam("new")))


class Draft(NamedTuple):
    """An experiment that is not stored yet; or one that is, without its state."""

    identity: Identity
    graph: KnownGraph
    experiment: Experiment | None = None


class Store:
    """All experiments of a database."""

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

    def run(self, commands: Sequence[Command]) -> list[Any]:
        """Run commands, all in one transaction, and return for each its reply or the error that refuses it."""
        try:
            return self._run(commands)
        except ServiceError as error:
            return [error] * len(commands)
        except Exception as error:  # noqa: BLE001  # a mistake of ours: find whose command it is, let the others pass
            if len(commands) > 1:
                return [outcome for command in commands for outcome in self.run([command])]
            _log.exception("command failed", extra={"command": type(commands[0]).__name__})
            wrong = ServiceError("The service has made a mistake. It is in its log.", status=500, code="internal")
            wrong.__cause__ = error
            return [wrong]

    def _run(self, commands: Sequence[Command]) -> list[Any]:
        turns: dict[int, Turn] = {}
        with self.database.writing() as connection:
            found = [self._identify(connection, command.of) for command in commands]
            ids = sorted(
                {each.id for each in found if each is not None}
            )  # in one order, so that none waits in a circle
            heads = {of: _LOCK.run(connection, {"of": of}).scalar_one() for of in ids}
            with self._memory:
                try:
                    outcomes = []
                    for command, identity in zip(commands, found, strict=True):
                        try:
                            if identity is None:
                                raise _unknown(command.of)
                            if identity.id not in turns:
                                turns[identity.id] = self._turn(connection, identity, heads, commands)
                            outcomes.append(command.run(turns[identity.id]))
                        except ServiceError as error:
                            outcomes.append(error)
                    changed = [turn for turn in turns.values() if turn.events]
                    for turn in changed:
                        turn.write()
                    if changed:
                        new = [{"of": each.experiment.identity.id, "new": each.experiment.head} for each in changed]
                        _HEAD.run(connection, *new)
                    connection.commit()
                except BaseException:
                    for of in turns:
                        self._open.pop(of, None)
                    self._shelf.forget()
                    raise
        return outcomes

    def draft(self, name: str, spec: dict[str, Any], graph: FeedbackGraph | str) -> Draft:
        """Make the agent of an experiment, which may take some seconds of compilation, or refuse; nothing is stored."""
        with self.database.reading() as connection:
            before = self._identify(connection, name)
            if isinstance(graph, str):
                with self._memory:
                    graph = self._shelf.find(connection, graph)
        known = identify(graph)
        spec = {**spec, "graph": known.id, "graph_name": graph.name}
        if before is not None:
            return Draft(_same(before, spec), known)
        spec = {**spec, "created_at": self.clock.now().at}
        spec["seed"] = secrets.randbelow(2**53) if spec["seed"] is None else spec["seed"]
        identity = Identity(0, secrets.token_hex(8), name, spec)
        return Draft(identity, known, Experiment(identity, graph))

    def create(self, draft: Draft) -> tuple[Identity, bool]:
        """Store a new experiment; return it, and whether it is new."""
        identity, known, experiment = draft
        if experiment is None:
            return identity, False
        with self.database.writing() as connection, self._memory:
            before = self._identify(connection, identity.name)
            if before is not None:  # another was faster
                wanted = {key: value for key, value in identity.spec.items() if key not in {"seed", "created_at"}}
                return _same(before, wanted), False
            count = connection.execute(select(func.count()).select_from(experiments)).scalar() or 0
            if count >= self.settings.max_experiments:
                raise ServiceError(f"There are {count:,} experiments, the most there may be.", status=409, code="full")
            row = {"key": identity.key, "name": identity.name, "spec": json.dumps(identity.spec), "head": 1}
            try:
                self._shelf.put(connection, known)
                id_ = connection.execute(insert(experiments).values(row)).inserted_primary_key[0]  # type: ignore[index]
                event = experiment.create(self.clock.now())
                journal.append(connection, id_, [event])
                connection.commit()
            except BaseException:
                self._shelf.forget()
                raise
            experiment.identity = identity._replace(id=id_)
            self._open[id_] = experiment
            return self._remember(experiment.identity), True

    def keep_graph(self, graph: FeedbackGraph) -> tuple[KnownGraph, bool]:
        """Keep a graph; return it with its id, and tell whether it is new."""
        known = identify(graph)
        with self.database.writing() as connection, self._memory:
            try:
                new = self._shelf.put(connection, known)
                connection.commit()
            except BaseException:
                self._shelf.forget()
                raise
        return known, new

    def view(self, of: str, look: Callable[[Experiment, Connection], T]) -> T:
        """Return what `look` sees of an experiment, as all servers have made it; it must not change anything."""
        with self.database.reading() as connection:
            identity = self._identify(connection, of)
            if identity is None:
                raise _unknown(of)
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
            raise _unknown(name)
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

    def due(self) -> list[str]:
        """Return the experiments in memory that have decisions to expire, by key."""
        with self._memory:
            clock = self.clock.now().clock
            return [f"#{each.identity.key}" for each in self._open.values() if each.due(clock)]

    def save(self, *, least: int) -> None:
        """Write snapshots of the experiments in memory that had `least` events since their last one."""
        with self._memory:
            moved = [each for each in self._open.values() if each.head - each.saved >= least]
            packed = [(each, each.head, each.chain, each.contents()) for each in moved]
        for experiment, head, chain, data in packed:
            with self.database.writing() as connection:
                replay.save_snapshot(connection, experiment.identity, head, chain, data)
                connection.commit()
            experiment.saved = head

    def save_clock(self) -> None:
        """Write the service's clock, so that decisions do not become younger when a server stops."""
        with self.database.writing() as connection:
            now = self.clock.now().clock
            moved = connection.execute(
                update(clock_table).values(now=now).where(clock_table.c.id == 1, clock_table.c.now < now)
            )
            if not moved.rowcount and not connection.execute(select(clock_table.c.id)).first():
                connection.execute(insert(clock_table).values(id=1, now=now))
            connection.commit()

    def _turn(
        self, connection: Connection, identity: Identity, heads: dict[int, int], commands: Iterable[Command]
    ) -> Turn:
        experiment = self._current(connection, identity, heads[identity.id])
        wanted = {command.key for command in commands if command.of == identity.name} - {None}
        keys = [key for key in wanted if key not in experiment.keys]
        before = journal.of_keys(connection, identity.id, keys) if keys else {}  # type: ignore[arg-type]
        return Turn(experiment, connection, self._shelf, self.settings, self.clock.now(), before)

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


def _same(before: Identity, spec: dict[str, Any]) -> Identity:
    """Return the experiment of a name, if it is what `spec` says."""
    other = [key for key, value in spec.items() if value is not None and before.spec.get(key) != value]
    if other:
        raise ServiceError(
            f"There is an experiment {before.name!r} already, with another {other[0]}. Choose another name.",
            status=409,
            code="exists",
            path="body.name",
            value=before.name,
        )
    return before


def _unknown(of: str) -> ServiceError:
    what = "decision" if of.startswith("#") else f"experiment {of!r}"
    return ServiceError(f"There is no such {what}.", status=404, code="not_found", path="path")
