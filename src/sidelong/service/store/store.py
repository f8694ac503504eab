"""The store: the experiments of a database, in memory, and the one place where they change.

Commands come in batches. A batch is one transaction: lock the experiments, catch up with what other servers wrote, run
the commands in memory, write their events, commit. So one flush of the disk serves all requests of a batch, and nothing
is acknowledged that is not on the disk. If anything fails, the experiments are forgotten, and read again from the
journal when they are next needed.

An experiment that is not in memory is loaded before, outside of any batch (`sidelong.service.store.replay`), and its
lock is taken before the transaction begins: a batch waits for nothing but the disk.
"""

from __future__ import annotations

import collections
import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from sidelong.errors import ServiceError, SidelongError
from sidelong.service.store.database import CHUNK, TakenError
from sidelong.service.store.graphs import GraphCache, KnownGraph, blob_of, identify, stored_size, unknown_graph
from sidelong.service.store.keys import BlockMissing
from sidelong.service.store.locks import RequestPriority
from sidelong.service.store.replay import FORGOTTEN, Measured, Replayed
from sidelong.service.store.rules import Command, Turn, check_room, taken

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from sidelong.graphs import FeedbackGraph
    from sidelong.service.settings import Settings
    from sidelong.service.store.clock import Clock
    from sidelong.service.store.database import Database, Identity, Listed, Reading, Writing
    from sidelong.service.store.experiment import LiveExperiment
    from sidelong.service.store.journal import Event

    T = TypeVar("T")

_log = logging.getLogger("sidelong.service")
#: How many events of other servers a batch replays itself.
_FEW = 200
#: How many portions of each deleted experiment are forgotten at a time; others write between any two.
_PORTIONS = 32
#: How many chunks of graphs are forgotten at once.
_FORGOTTEN_CHUNKS = 8


class Behind(Exception):  # noqa: N818  # no error: it is done again
    """The outcome of a command whose experiment must be loaded first."""


class Locked(Exception):  # noqa: N818
    """The outcome of a command whose experiment another server has locked."""


class _Gone(Exception):  # noqa: N818
    """The experiment of a command was deleted."""


class _NameTaken(Exception):  # noqa: N818
    """Another server was faster to give this name."""


class Overtaken(Exception):  # noqa: N818  # no error: it is done again
    """The outcome of a turn ahead during which another server has written to the same experiment."""


@dataclass
class Ahead(Command):
    """What commands did in a turn of their own, ahead of the transaction that writes it.

    A batch of ten thousand keys takes longer than a flush of the disk. If it ran in the transaction, all others would
    wait for it. So it runs before, in a thread of its own, while the lock of its experiment is held: the experiment
    changes in memory, and the thread that writes gets the events. If another server has written to the same experiment
    meanwhile, the turn is taken again, in the transaction.
    """

    of: str
    turn: Turn
    head: int  #: the last event before it
    outcomes: list[Any]  #: of the commands, one for each

    def meets(self, writing: Writing, live: LiveExperiment | None, head: int) -> Turn:
        """Return the turn, to be written behind an event, if that is what it was ahead of; or raise `Overtaken`."""
        met = live is self.turn.experiment and head == self.head
        if not met or not all(writing.hold(blob_of(id_)) for id_ in sorted(self.turn.held)):
            raise Overtaken
        self.turn.writing = writing
        return self.turn

    def is_at(self, experiment: int) -> bool:
        """Tell whether it was a turn at an experiment."""
        return self.turn.experiment.identity.id == experiment


class Store:
    """The experiments of a database. Any thread reads them, and one changes them."""

    def __init__(self, database: Database, settings: Settings, clock: Clock) -> None:
        self.database = database
        self.settings = settings
        self.clock = clock
        self.graphs = GraphCache()
        self.priority = RequestPriority()
        #: Told of what this server has written of an experiment, once it is on the disk.
        self.on_written: Callable[[LiveExperiment, Sequence[Event]], None] = lambda _, __: None
        self._known: dict[str, Replayed] = {}  # by "#" and key, and by name
        with database.reading() as reading:
            clock.saw(reading.clock())

    def view(self, of: str, look: Callable[[LiveExperiment, Reading], T]) -> T:
        """Return what `look` sees of an experiment, as all servers have made it; it must not change anything."""
        while True:
            found = self.load(of)
            with self.database.reading() as reading, found.lock:
                if not found.is_settled:  # it is archived, and was taken out of memory meanwhile
                    continue
                identity = reading.find(f"#{found.identity.key}")
                if identity is not None and is_called(identity, of):
                    try:
                        return look(found.catch_up(reading), reading)
                    except BlockMissing:
                        _read_anew(found)
                        continue
            if identity is None:
                self.drop(found)
            self.forget(of)  # another server has renamed or deleted it

    def identity(self, of: str) -> Identity:
        """Return what an experiment is, by what it is called now: another server may have renamed or deleted it."""
        with self.database.reading() as reading:
            found = reading.find(of)
        if found is None:
            raise unknown(of)
        return found

    def position(self, of: str) -> tuple[int, int]:
        """Return the id of an experiment, and the number of its last event; it need not be in memory."""
        with self.database.reading() as reading:
            identity = reading.find(of)
            heads = [each.head for each in reading.experiments() if identity is not None and each.id == identity.id]
        if identity is None or not heads:
            raise unknown(of)
        return identity.id, heads[0]

    def names(self, offset: int, limit: int, only: str | None = None) -> tuple[int, list[str]]:
        """Return how many experiments there are, and the names of some of them; `only` is the key of a single one."""
        every = [each for each in self.listed(only) if each.state != "archived"]
        return len(every), [each.name for each in every[offset : offset + limit]]

    def listed(self, only: str | None = None) -> list[Listed]:
        """Return the list of experiments, with those that are archived; `only` is the key of a single one."""
        with self.database.reading() as reading:
            single = None if only is None else reading.find(f"#{only}")
            return [
                each for each in reading.experiments() if only is None or (single is not None and each.id == single.id)
            ]

    def measured(self) -> list[tuple[str, Measured]]:
        """Return, for each experiment in memory, its name and its numbers.

        This waits for nobody: of one that is busy, it returns what was last seen.
        """
        found = []
        for replayed in self.every():
            live = replayed.live
            if live is not None and replayed.lock.acquire(timeout=0):
                replayed.measured = Measured.of(live)
                replayed.lock.release()
            if replayed.measured is not None:
                found.append((replayed.identity.name, replayed.measured))
        return found

    def due(self) -> list[str]:
        """Return the experiments in memory that have decisions to expire, by key. One that is busy comes later."""
        clock, found = self.clock.now().clock, []
        for replayed in self.every():
            if replayed.live is None or not replayed.lock.acquire(timeout=0):
                continue
            try:
                if replayed.live is not None and replayed.live.is_any_due(clock):
                    found.append(f"#{replayed.identity.key}")
            finally:
                replayed.lock.release()
        return found

    def every(self) -> list[Replayed]:
        """Return the experiments that are known here: in memory, being replayed, or refused."""
        return [each for name, each in self._known.copy().items() if name.startswith("#")]

    def behind(self) -> list[str]:
        """Return the experiments that are not in memory as the database has them, by name."""
        with self.database.reading() as reading:
            every = reading.experiments()
        awake = [each for each in every if each.state != "archived"]
        return [each.name for each in awake if _is_behind(self._known.get(each.name), each.head)]

    def states(self) -> dict[str, int]:
        """Return how many experiments of the database are in memory ("live"), "loading" and "refused"."""
        with self.database.reading() as reading:
            every = [self._known.get(each.name) for each in reading.experiments() if each.state != "archived"]
        found = collections.Counter("loading" if each is None else each.state for each in every)
        return {state: found[state] for state in ("live", "loading", "refused")}

    def add(self, replayed: Replayed) -> Replayed:
        """Take an experiment among those that are known, unless another thread was faster; return the one it is."""
        identity = replayed.identity
        found = self._known[identity.name] = self._known.setdefault(f"#{identity.key}", replayed)
        found.identity = identity  # whose name is that of the database
        return found

    def known(self, of: str) -> Replayed | None:
        """Return the experiment of a name, or of "#" and a key, without asking the database."""
        found = self._known.get(of)
        return found if found is None or is_called(found.identity, of) else None

    def forget(self, of: str) -> None:
        """Ask the database anew what has this name."""
        self._known.pop(of, None)

    def drop(self, replayed: Replayed) -> None:
        """Take a deleted experiment out of memory."""
        replayed.live = None
        for of in [name for name, each in self._known.copy().items() if each is replayed]:
            self._known.pop(of, None)

    def drop_idle(self) -> None:
        """Take archived experiments and idle keys out of memory, and erase a part of what was deleted."""
        with self.database.reading() as reading:
            archived = {each.id for each in reading.experiments() if each.state == "archived"}
            deleted = [each.id for each in reading.experiments(deleted=True) if each.state == "deleted"]
        for replayed in self.every():
            if replayed.identity.id in archived and replayed.live is not None and replayed.lock.acquire(timeout=0):
                replayed.live = None
                replayed.lock.release()
            self._drop_idle_keys(replayed)
        for of in deleted:
            for _ in range(_PORTIONS):
                with self.database.writing(aside=True) as writing:
                    more = writing.forget(of, FORGOTTEN)
                    writing.commit()
                if not more:
                    break

    def _drop_idle_keys(self, replayed: Replayed) -> None:
        if replayed.live is not None and replayed.lock.acquire(timeout=0):
            if replayed.live is not None:
                replayed.live.drop_idle(self.settings.max_key_bytes)
            replayed.lock.release()

    def named(self, of: str) -> Replayed:
        """Return the experiment of a name, or of "#" and a key, or refuse."""
        return self.known(of) or self.add(Replayed(self.identity(of), self.graphs, self.clock))

    def load(self, of: str) -> Replayed:
        """Return an experiment that is in memory, or refuse; whoever asks first replays it."""
        found = self.named(of)
        if found.live is None:
            found.load(self.database)
        return found

    def run(self, commands: Sequence[Command]) -> list[Any]:
        """Run commands, all in one transaction, and return for each its reply or the error that refuses it.

        What is not in memory is loaded. A server has `Commits` for that, so that no experiment waits for another.
        """
        held: dict[str, Replayed] = {}
        errors: dict[str, ServiceError] = {}
        for of in {command.of for command in commands}:
            try:
                held[of] = self.load(of)
            except ServiceError as error:
                errors[of] = error
        locks = {each.identity.id: each.lock for each in held.values()}
        for of_ in sorted(locks):
            locks[of_].acquire()
        try:
            ready = [command for command in commands if command.of in held]
            outcomes = iter(self.run_held(ready, held, wait=True))
            found = [next(outcomes) if command.of in held else errors[command.of] for command in commands]
        finally:
            for lock in locks.values():
                lock.release()
        # What another server has renamed meanwhile is looked up anew.
        return [
            self.run([each])[0] if isinstance(was, Behind) else was for each, was in zip(commands, found, strict=True)
        ]

    def run_held(self, commands: Sequence[Command], held: Mapping[str, Replayed], *, wait: bool) -> list[Any]:
        """Run commands at experiments whose locks are held.

        The outcome of a command is its reply or an error, or if it may not `wait` for others, `Behind` or `Locked`.
        """
        try:
            outcomes = self._run(commands, held, wait=wait)
        except ServiceError as error:
            outcomes = [error] * len(commands)
        except Exception as error:  # noqa: BLE001  # a mistake of ours: find whose command it is, let the others pass
            if len(commands) > 1:
                return [outcome for command in commands for outcome in self.run_held([command], held, wait=wait)]
            # Of several that were done ahead, it is found when they are done again.
            outcomes = [Overtaken() if isinstance(commands[0], Ahead) else _mistake(error, commands[0])]
        for command, outcome in zip(commands, outcomes, strict=True):
            if isinstance(command, Ahead) and outcome is not command.outcomes and not isinstance(outcome, Locked):
                held[command.of].live = None  # what is in memory was never written
        return outcomes

    def run_ahead(self, commands: Sequence[Command], replayed: Replayed) -> Ahead:
        """Run commands at an experiment whose lock is held, and write nothing yet; `Ahead` is the command that does."""
        with self.database.reading() as reading:
            live = replayed.catch_up(reading)
            head, turn = live.head, self._begun(reading, live, commands)
            outcomes = [_outcome(replayed, turn, command) for command in commands]
            return Ahead(f"#{live.identity.key}", turn, head, outcomes)

    def made_ready(self, of: str, given: FeedbackGraph | str) -> FeedbackGraph | KnownGraph | str:
        """Return the graph of a round as commands take it; what takes long of a large one is done here, not in a turn.

        A large one is on the disk then, unless it is clear by now that it will be refused.
        """
        if isinstance(given, str):
            with self.database.reading() as reading:
                known = KnownGraph(given, self.graphs.find(reading, given))
        elif stored_size(given) <= CHUNK:
            return given
        else:
            known = self.graphs.same(identify(given))
        found = self._known.get(of)
        live = None if found is None else found.live
        if live is None:
            return known
        try:
            check_room(live, self.settings, known)
            live.graph_of_round(known.graph)  # looks for loops and more, once for each graph
        except SidelongError:
            return known
        full = live.graph_bytes + stored_size(known.graph) > self.settings.max_graph_bytes
        if isinstance(given, str) or full:
            return known
        return known._replace(new=self.graphs.keep(self.database, known, self.clock.now().clock))

    def withdraw(self, known: KnownGraph) -> None:
        """Forget a graph that was kept for a request which was refused, unless something uses it."""
        gone = [known.id]
        while gone:
            with self.database.writing(aside=True) as writing:
                gone = writing.forget_unused(self.clock.now().clock + 1, _FORGOTTEN_CHUNKS, [known.id])
                writing.commit()
            self.graphs.forget(gone)

    def save(self, *, least: int) -> None:
        """Write snapshots of the experiments in memory that had `least` events since their last one."""
        for replayed in self.every():
            live = replayed.live
            if live is not None and live.done - live.saved >= least:
                replayed.save(self.database)

    def check_own_graph(self, key: str, graph: str) -> None:
        """Refuse a graph, as if it were not known, that no round of an experiment has had and that is not its own."""
        with self.database.reading() as reading:
            identity = reading.find(f"#{key}")
            if identity is None or not reading.names_graph(identity.id, graph):
                raise unknown_graph(graph)

    def collect(self) -> int:
        """Forget graphs that were uploaded long ago and that nothing uses, a few of them; return how many."""
        before = self.clock.now().clock - round(self.settings.keep_graphs * 1000)
        with self.database.writing(aside=True) as writing:
            gone = writing.forget_unused(before, _FORGOTTEN_CHUNKS)
            if gone:
                writing.commit()
        self.graphs.forget(gone)
        return len(gone)

    def save_clock(self) -> None:
        """Write the service's clock, so that decisions do not become younger when a server stops."""
        with self.database.writing() as writing:
            writing.keep_clock(self.clock.now().clock)
            writing.commit()

    def _run(self, commands: Sequence[Command], held: Mapping[str, Replayed], *, wait: bool) -> list[Any]:
        if not commands:
            return []
        wanted = {each.identity.id: each for each in held.values()}
        with self.database.writing() as writing:
            # In one order, so that no two servers wait for each other.
            heads = {of: writing.lock(of, wait=wait) for of in sorted(wanted)}
            turns: dict[int, Turn] = {}
            try:
                outcomes: list[Any] = []
                for command in commands:
                    replayed = held[command.of]
                    of = replayed.identity.id
                    try:
                        if of not in turns:
                            turns[of] = self._turn(writing, replayed, heads[of], commands, wait=wait)
                    except _Gone:
                        outcomes.append(unknown(command.of))
                    except (ServiceError, Behind, Locked, Overtaken, BlockMissing) as outcome:
                        outcomes.append(outcome)
                    else:
                        outcomes.append(_outcome(replayed, turns[of], command))
                _write(writing, turns)
            except BaseException:
                for of in turns:
                    wanted[of].live = None
                self.graphs.forget()
                raise
        for of, turn in turns.items():
            self.on_written(turn.experiment, turn.events)
            self._notice(wanted[of], turn)
        return [_or_again(held[each.of], was) for each, was in zip(commands, outcomes, strict=True)]

    def _notice(self, replayed: Replayed, turn: Turn) -> None:
        """Take notice of what was written about an experiment as a whole."""
        if turn.deletion is not None:
            self.drop(replayed)
        elif "name" in turn.listed:
            self.forget(replayed.identity.name)
            replayed.identity = turn.experiment.identity
            self.add(replayed)

    def _turn(
        self, writing: Writing, replayed: Replayed, head: int | None, commands: Sequence[Command], *, wait: bool
    ) -> Turn:
        live = replayed.live
        if head is None and wait:
            self.drop(replayed)
            raise Behind  # another experiment may have the name by now
        if head is None:
            raise Locked
        for each in commands:
            if isinstance(each, Ahead) and each.is_at(replayed.identity.id):
                return each.meets(writing, live, head)
        if not wait and replayed.refused is None and (live is None or head - live.head > _FEW):
            raise Behind
        if live is None or live.head != head:
            live = replayed.catch_up(writing, head)
        return self._begun(writing, live, commands)

    def _begun(self, reading: Reading, live: LiveExperiment, commands: Sequence[Command]) -> Turn:
        called = {live.identity.name, f"#{live.identity.key}"}
        wanted = {command.key for command in commands if command.of in called}
        keys = [key for key in wanted if key is not None and key not in live.answered]
        before = {str(event.key): event for event in reading.keyed(live.identity.id, keys)} if keys else {}
        return Turn(live, reading, self.graphs, self.settings, self.clock.now(), before)


def _outcome(replayed: Replayed, turn: Turn, command: Command) -> Any:
    """Return what a command replies in its turn, or why it does not."""
    if isinstance(command, Ahead):
        return command.outcomes
    try:
        _check_address(replayed, turn, command.of)
        return command.run(turn)
    except _Gone:
        return unknown(command.of)
    except (ServiceError, Behind, BlockMissing) as outcome:
        return outcome


def _mistake(error: Exception, command: Command) -> ServiceError:
    if isinstance(error, _NameTaken):
        return taken(str(error))
    _log.exception("command failed", extra={"command": type(command).__name__})
    wrong = ServiceError("The service has made a mistake. It is in its log.", status=500, code="internal")
    wrong.__cause__ = error
    return wrong


def _write(writing: Writing, turns: Mapping[int, Turn]) -> None:
    """Write what has happened in these turns."""
    changed = {of: turn.events for of, turn in turns.items() if turn.events}
    for of in changed:
        turns[of].keep_graphs(writing)
    if changed:
        writing.append(changed)
    for of, turn in turns.items():
        if turn.listed:
            try:
                writing.relist(of, turn.listed)
            except TakenError as error:
                raise _NameTaken(turn.listed["name"]) from error
        if turn.deletion is not None:
            gone = turn.deletion
            writing.relist(of, {"state": gone.state, "changed_at": gone.changed_at, "changed_by": gone.changed_by})
    writing.commit()


def _or_again(replayed: Replayed, outcome: Any) -> Any:
    """Return an outcome; where a block of keys was missing before a command had changed anything, it is done again."""
    if isinstance(outcome, list) and any(isinstance(each, BlockMissing) for each in outcome):  # of a turn ahead
        outcome[:] = [_or_again(replayed, each) for each in outcome]
    if not isinstance(outcome, BlockMissing):
        return outcome
    _read_anew(replayed)
    return Behind()


def _read_anew(replayed: Replayed) -> None:
    """Let an experiment begin anew, from a newer snapshot or from the journal."""
    if replayed.live is not None:
        replayed.doubt(replayed.live)


def _check_address(replayed: Replayed, turn: Turn, of: str) -> None:
    """Refuse a command to an experiment that is gone, or that has another name by now."""
    if turn.deletion is not None:
        raise _Gone
    if not is_called(turn.experiment.identity, of):
        replayed.identity = turn.experiment.identity
        raise Behind  # so that it is looked up anew


def is_called(identity: Identity, of: str) -> bool:
    """Tell whether an experiment has a name, or "#" and a key."""
    return of == identity.name or of.startswith("#")


def _is_behind(known: Replayed | None, head: int) -> bool:
    if known is None:
        return True
    live = known.live
    return known.refused is None and (live is None or live.head < head)


def unknown(of: str) -> ServiceError:
    """Return the error for an experiment that there is not, by name, or for a decision, where it begins with "#"."""
    what, part = ("decision", "id") if of.startswith("#") else (f"experiment {of!r}", "name")
    return ServiceError(f"There is no such {what}.", status=404, code="not_found", path=f"path.{part}")
