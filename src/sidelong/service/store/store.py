"""The store: experiments in memory, the journal behind them, and the one place where both change.

Commands come in batches. A batch is one transaction: lock the experiments, catch up with what other servers wrote, run
the commands in memory, write their events, commit. So one flush of the disk serves all requests of a batch, and nothing
is acknowledged that is not on the disk. If anything fails, the experiments are forgotten, and read again from the
journal when they are next needed.
"""

from __future__ import annotations

import json
import logging
import secrets
from typing import TYPE_CHECKING, Any, NamedTuple

from sqlalchemy import bindparam, func, insert, select, update
from sqlalchemy.exc import IntegrityError

from sidelong.errors import GraphError, LearnerError, ServiceError
from sidelong.service.store import journal, replay
from sidelong.service.store.commands import Turn
from sidelong.service.store.database import Statement
from sidelong.service.store.experiment import Experiment, Identity
from sidelong.service.store.graphs import KnownGraph, identify
from sidelong.service.store.library import Library, unknown
from sidelong.service.store.schema import clock as clock_table
from sidelong.service.store.schema import experiments

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from sqlalchemy import Connection

    from sidelong.graphs import FeedbackGraph
    from sidelong.service.store.commands import Command

__all__ = ["Draft", "Store"]

_log = logging.getLogger("sidelong.service")
_LOCK = Statement(select(experiments.c.head).where(experiments.c.id == bindparam("of")).with_for_update(key_share=True))
_HEAD = Statement(update(experiments).where(experiments.c.id == bindparam("of")).values(head=bindparam("new")))


class Draft(NamedTuple):
    """An experiment that is not stored yet; or one that is, without its state."""

    identity: Identity
    graph: KnownGraph
    experiment: Experiment | None = None


class Store(Library):
    """The experiments of a database, to be read and changed. One thread changes them."""

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
            # In one order, so that no two servers wait for each other.
            ids = sorted({each.id for each in found if each is not None})
            heads = {of: _LOCK.run(connection, {"of": of}).scalar_one() for of in ids}
            with self._memory:
                try:
                    outcomes = []
                    for command, identity in zip(commands, found, strict=True):
                        try:
                            if identity is None:
                                raise unknown(command.of)
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
        if spec["labels"] is not None and len(spec["labels"]) != graph.n_arms:
            raise _invalid(f"labels has one for each of the {graph.n_arms} arms, not {len(spec['labels'])}.", "labels")
        spec = {**spec, "graph": known.id, "graph_name": graph.name}
        if before is not None:
            return Draft(_same(before, spec), known)
        spec = {**spec, "created_at": self.clock.now().at}
        spec["seed"] = secrets.randbelow(2**53) if spec["seed"] is None else spec["seed"]
        identity = Identity(0, secrets.token_hex(8), name, spec)
        try:
            json.dumps(spec, allow_nan=False)
            return Draft(identity, known, Experiment(identity, graph))
        except LearnerError as error:
            raise _invalid(str(error), "learner", spec["learner"]) from error
        except GraphError as error:
            raise _invalid(str(error), "graph") from error
        except (TypeError, ValueError, ArithmeticError) as error:  # of values that no learner thought of
            raise _invalid(f"These options cannot be used: {error}.", "options") from error

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
            except IntegrityError as error:
                self._shelf.forget()
                raise ServiceError(
                    "Another server is making an experiment of this name. Send the request again.",
                    status=503,
                    code="busy",
                    retry_after=1.0,
                ) from error
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


def _invalid(message: str, part: str, value: object = None) -> ServiceError:
    return ServiceError(message, status=422, code="invalid", path=f"body.{part}", value=value)
