"""The store: the experiments of a database, in memory, and the one place where they change.

Commands come in batches. A batch is one transaction: lock the experiments, catch up with what other servers wrote, run
the commands in memory, write their events, commit. So one flush of the disk serves all requests of a batch, and nothing
is acknowledged that is not on the disk. If anything fails, the experiments are forgotten, and read again from the
journal when they are next needed.
"""

from __future__ import annotations

import logging
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any, TypeVar

from sidelong.errors import ServiceError
from sidelong.service.store.commands import Turn
from sidelong.service.store.graphs import Shelf
from sidelong.service.store.replay import Replayed

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from sidelong.service.settings import Settings
    from sidelong.service.store.commands import Command
    from sidelong.service.store.database import Database, Identity, Reading, Writing
    from sidelong.service.store.experiment import Clock, LiveExperiment

    T = TypeVar("T")

_log = logging.getLogger("sidelong.service")


class Store:
    """The experiments of a database. Any thread reads them, and one changes them."""

    def __init__(self, database: Database, settings: Settings, clock: Clock) -> None:
        self.database = database
        self.settings = settings
        self.clock = clock
        self.shelf = Shelf()
        self._known: dict[str, Replayed] = {}  # by "#" and key, and by name
        with database.reading() as reading:
            clock.saw(reading.clock())

    def view(self, of: str, look: Callable[[LiveExperiment, Reading], T]) -> T:
        """Return what `look` sees of an experiment, as all servers have made it; it must not change anything."""
        with self.database.reading() as reading:
            found = self._find(reading, of)
            with found.lock:
                return look(found.catch_up(reading), reading)

    def identity(self, of: str) -> Identity:
        """Return what an experiment is."""
        with self.database.reading() as reading:
            return self._find(reading, of).identity

    def names(self, offset: int, limit: int) -> tuple[int, list[str]]:
        """Return how many experiments there are, and the names of some of them."""
        with self.database.reading() as reading:
            every = reading.experiments()
        return len(every), [each.name for each in every[offset : offset + limit]]

    def counts(self) -> list[tuple[str, Any, int]]:
        """Return, for each experiment in memory, its name, its events by kind, and how many are outstanding."""
        return self._each(lambda live: (live.identity.name, live.tallies.counts.copy(), len(live.outstanding)))

    def due(self) -> list[str]:
        """Return the experiments in memory that have decisions to expire, by key."""
        clock = self.clock.now().clock
        return [key for key, due in self._each(lambda live: (f"#{live.identity.key}", live.due(clock))) if due]

    def behind(self) -> list[str]:
        """Return the experiments that are not in memory as the database has them, by name."""
        with self.database.reading() as reading:
            every = reading.experiments()
        return [each.name for each in every if _is_behind(self._known.get(each.name), each.head)]

    def find(self, reading: Reading, of: str) -> Replayed | None:
        """Return the experiment of a name, or of "#" and a key."""
        if of not in self._known:
            identity = reading.find(of)
            if identity is None:
                return None
            self.adopt(Replayed(identity, self.shelf, self.clock))
        return self._known[of]

    def adopt(self, replayed: Replayed) -> None:
        """Take an experiment among those that are known, unless another thread was faster."""
        identity = replayed.identity
        self._known[identity.name] = self._known.setdefault(f"#{identity.key}", replayed)

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

    def save(self, *, least: int) -> None:
        """Write snapshots of the experiments in memory that had `least` events since their last one."""
        for replayed in self._in_memory():
            live = replayed.live
            if live is not None and live.head - live.saved >= least:
                replayed.save(self.database)

    def save_clock(self) -> None:
        """Write the service's clock, so that decisions do not become younger when a server stops."""
        with self.database.writing() as writing:
            writing.keep_clock(self.clock.now().clock)
            writing.commit()

    def _run(self, commands: Sequence[Command]) -> list[Any]:
        with self.database.writing() as writing, ExitStack() as locks:
            found = [self.find(writing, command.of) for command in commands]
            # In one order, so that no two servers wait for each other.
            wanted = {each.identity.id: each for each in found if each is not None}
            heads = {of: writing.lock(of) for of in sorted(wanted)}
            turns: dict[int, Turn] = {}
            for of in heads:
                locks.enter_context(wanted[of].lock)
            try:
                outcomes = []
                for command, replayed in zip(commands, found, strict=True):
                    try:
                        if replayed is None:
                            raise _unknown(command.of)
                        of = replayed.identity.id
                        if of not in turns:
                            turns[of] = self._turn(writing, replayed, heads[of], commands)
                        outcomes.append(command.run(turns[of]))
                    except ServiceError as error:
                        outcomes.append(error)
                changed = {of: turn.events for of, turn in turns.items() if turn.events}
                for of in changed:
                    turns[of].keep_graphs()
                if changed:
                    writing.append(changed)
                writing.commit()
            except BaseException:
                for of in turns:
                    wanted[of].live = None
                self.shelf.forget()
                raise
        return outcomes

    def _turn(self, writing: Writing, replayed: Replayed, head: int, commands: Sequence[Command]) -> Turn:
        live = replayed.live
        if live is None or live.head != head:
            live = replayed.catch_up(writing, head)
        wanted = {command.key for command in commands if command.of == live.identity.name}
        keys = [key for key in wanted if key is not None and key not in live.keys]
        before = {str(event.key): event for event in writing.keyed(live.identity.id, keys)} if keys else {}
        return Turn(live, writing, self.shelf, self.settings, self.clock.now(), before)

    def _find(self, reading: Reading, of: str) -> Replayed:
        found = self.find(reading, of)
        if found is None:
            raise _unknown(of)
        return found

    def _in_memory(self) -> list[Replayed]:
        every = self._known.copy().items()
        return [each for name, each in every if name.startswith("#") and each.live is not None]

    def _each(self, look: Callable[[LiveExperiment], T]) -> list[T]:
        found = []
        for replayed in self._in_memory():
            with replayed.lock:
                if replayed.live is not None:
                    found.append(look(replayed.live))
        return found


def _is_behind(known: Replayed | None, head: int) -> bool:
    if known is None:
        return True
    live = known.live
    return known.refused is None and (live is None or live.head < head)


def _unknown(of: str) -> ServiceError:
    what = "decision" if of.startswith("#") else f"experiment {of!r}"
    return ServiceError(f"There is no such {what}.", status=404, code="not_found", path="path")
