"""What the store asks of a database. This is all that another kind of database must do.

A database holds experiments with their journals and snapshots, graphs, tokens and a clock. The tests in
``tests/service/test_backend_contract.py`` say the same as the docstrings here, and any kind of database must pass them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

from sidelong.service.store.spec import Spec

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from contextlib import AbstractContextManager

    from sidelong.service.store.journal import Event


class TakenError(Exception):
    """What was to be written once is there already: a name, the number of an event, a round, a key."""


@dataclass(frozen=True)
class Identity:
    """What an experiment is. Only its name may change."""

    id: int
    key: str  #: what the ids of its decisions begin with
    name: str
    document: str  #: its specification as it is stored, which may be damaged

    @cached_property
    def spec(self) -> Spec:
        """Its specification. If it is damaged, this refuses the experiment."""
        return Spec.from_json(self.document, self.name)


class Listed(NamedTuple):
    """A line of the list of experiments."""

    id: int
    name: str
    head: int  #: the number of its last event
    state: str = "running"
    changed_at: int | None = None  #: when it came into this state, if somebody brought it there
    changed_by: str | None = None


class Deletion(NamedTuple):
    """What is left of an experiment that was deleted."""

    experiment: int  #: its id, which is never given again
    name: str
    at: int
    by: str | None


class Snapshot(NamedTuple):
    """The state of an experiment after the event of a number."""

    seq: int
    chain: bytes  #: the hash of that event
    data: bytes


class Token(NamedTuple):
    """A token without its secret."""

    id: str
    name: str
    hash: bytes
    scopes: tuple[str, ...]
    created_at: int
    revoked_at: int | None = None
    experiment: str | None = None  #: the key of the only experiment that it is for


class Reading(ABC):
    """A transaction that reads. It sees one state of the database, whatever others write meanwhile."""

    @abstractmethod
    def find(self, of: str) -> Identity | None:
        """Return the experiment of a name, or of "#" and a key."""

    @abstractmethod
    def experiments(self) -> list[Listed]:
        """Return all experiments, by name, letter by letter; not those that were deleted."""

    @abstractmethod
    def deletions(self) -> list[Deletion]:
        """Return what was deleted, oldest first."""

    @abstractmethod
    def leftovers(self) -> list[int]:
        """Return the ids of deleted experiments of which there is something left to forget."""

    @abstractmethod
    def events(self, experiment: int, after: int, most: int, most_bytes: int | None = None) -> list[Event]:
        """Return the first events behind the one of number `after`, in their order, and not more than `most`.

        None comes behind the one with which their binary columns reach `most_bytes`.
        """

    @abstractmethod
    def rounds(self, experiment: int, first: int, last: int) -> list[Event]:
        """Return the events of some rounds, by round, and within a round by their `SLOTS`."""

    @abstractmethod
    def spanning(self, experiment: int, number: int, slot: int, before: int) -> Event | None:
        """Return the event of a slot with the largest round below `before` that spans a number, if there is one.

        An event spans the numbers from its `round` to the sum of that and its `arm`.
        """

    @abstractmethod
    def keyed(self, experiment: int, keys: Sequence[str]) -> list[Event]:
        """Return the decisions that were made under these Idempotency-Keys, in any order."""

    @abstractmethod
    def snapshot(self, experiment: int, before: int | None = None) -> Snapshot | None:
        """Return the last snapshot, or the last one before an event, with its parts joined; None if there is none."""

    @abstractmethod
    def block(self, experiment: int, number: int, before: int) -> bytes | None:
        """Return a block of keys as it was last kept, with an event whose number is `before` or smaller."""

    @abstractmethod
    def initial_state(self, experiment: int) -> bytes | None:
        """Return the state that an experiment began with, if it was kept."""

    @abstractmethod
    def graph(self, id_: str) -> bytes | None:
        """Return what was kept under the id of a graph, with its parts joined."""

    @abstractmethod
    def graph_bytes(self, experiment: int) -> int:
        """Return how many bytes the graphs have that the events of an experiment name, each counted once."""

    @abstractmethod
    def names_graph(self, experiment: int, id_: str) -> bool:
        """Tell whether an experiment names a graph, in its spec or in an event."""

    @abstractmethod
    def unused_graphs(self, before: int, most: int) -> list[str]:
        """Return the ids of at most so many graphs that were kept before a time and that nothing names.

        An event names a graph in its `graph`, and an experiment in its spec, under "graph".
        """

    @abstractmethod
    def clock(self) -> int:
        """Return the largest time that was kept, 0 if none was."""

    @abstractmethod
    def tokens(self) -> list[Token]:
        """Return all tokens, oldest first."""


class Writing(Reading):
    """A transaction that writes. It sees what it has written itself; the others see it all at once, at `commit`."""

    @abstractmethod
    def lock(self, experiment: int, *, wait: bool = True) -> int | None:
        """Return the number of the last event, and let nobody else append until the end of this transaction.

        None if another server has the lock, unless this may `wait` for it, and if the experiment was deleted. From here
        on the transaction sees what others have appended before.
        """

    @abstractmethod
    def create(self, identity: Identity) -> int:
        """Add an experiment without events, and return its id; that of `identity` is not looked at.

        Raises `TakenError` if there is one of its name.
        """

    @abstractmethod
    def relist(self, experiment: int, changes: Mapping[str, Any]) -> None:
        """Change some of `name`, `state`, `changed_at` and `changed_by` in the list of experiments.

        Raises `TakenError` if there is one of this name. Then the transaction can only be given up.
        """

    @abstractmethod
    def delete(self, experiment: int, deletion: Deletion) -> None:
        """Put a line in the place of an experiment. What it had is no longer found, and its name is free."""

    @abstractmethod
    def forget_events(self, experiment: int, most: int) -> int:
        """Forget about so many rows of a deleted experiment, and return how many; 0 if nothing is left of it."""

    @abstractmethod
    def append(self, new: Mapping[int, Sequence[Event]]) -> None:
        """Write events, at least one for each of these experiments.

        Raises `TakenError` if they do not go on where the journal ends, and for a round that is decided or settled
        twice, and for an Idempotency-Key that comes twice. Then the transaction can only be given up.
        """

    @abstractmethod
    def save(self, experiment: int, snapshot: Snapshot) -> None:
        """Keep a snapshot, in the place of one of the same number, and forget all but the last two.

        Its `data` are what comes behind its parts.
        """

    @abstractmethod
    def keep_part(self, experiment: int, seq: int, number: int, data: bytes) -> None:
        """Keep a part of a snapshot that is not there yet, in the place of one of the same number."""

    @abstractmethod
    def forget_parts(self, experiment: int, most: int) -> int:
        """Forget at most so many parts of snapshots that are not kept, and return how many."""

    @abstractmethod
    def keep_block(self, experiment: int, number: int, seq: int, data: bytes) -> None:
        """Keep a block of keys with an event, in the place of one of the same number and event."""

    @abstractmethod
    def forget_blocks(self, experiment: int, most: int) -> int:
        """Forget at most so many blocks that no snapshot needs, and return how many.

        The last one that is not behind the older snapshot is needed, and so are all that come behind it.
        """

    @abstractmethod
    def keep_initial_state(self, experiment: int, data: bytes) -> None:
        """Keep the state that an experiment begins with, for ever. Raises `TakenError` if there is one."""

    @abstractmethod
    def keep_graph(self, id_: str, data: bytes, now: int, parts: int = 0) -> bool:
        """Keep a graph, and tell whether none was kept under this id; the first one stays, as if it were kept now.

        Its `data` are what comes behind so many parts. Raises `TakenError` if one of them was forgotten.
        """

    @abstractmethod
    def keep_graph_part(self, id_: str, number: int, data: bytes, now: int) -> None:
        """Keep a part of a graph that is not there yet, in the place of one of the same number, from 0."""

    @abstractmethod
    def forget_graph_parts(self, before: int, most: int) -> int:
        """Forget at most so many parts that were kept before a time and are of no graph; return how many."""

    @abstractmethod
    def hold_graph(self, id_: str) -> bool:
        """Tell whether a graph is kept, and let nobody forget it before the end of this transaction."""

    @abstractmethod
    def forget_graphs(self, ids: Sequence[str], before: int) -> list[str]:
        """Forget those of these graphs, with their parts, that are unused still, as `unused_graphs` says.

        Returns their ids.
        """

    @abstractmethod
    def keep_clock(self, now: int) -> None:
        """Keep a time, unless a larger one is kept."""

    @abstractmethod
    def keep_token(self, token: Token) -> None:
        """Keep a token. Of one that is there, only `revoked_at` changes, and only once."""

    @abstractmethod
    def commit(self) -> None:
        """Put everything on the disk, and end the transaction. When this returns, no crash undoes it."""


class Database(ABC):
    """Where everything is kept. It is opened by `sidelong.service.store.kinds.open_database`.

    Whatever fails is a `ServiceError` with the code "disk_full", "unavailable" or, if another process held a lock for
    longer than the busy time, "busy".
    """

    name: str  #: its kind, as /ready shows it

    @abstractmethod
    def migrate(self) -> bool:
        """Bring the database to what this program writes, or refuse it; tell whether there was anything to do."""

    @abstractmethod
    def reading(self) -> AbstractContextManager[Reading]:
        """Begin a transaction that reads."""

    @abstractmethod
    def writing(self, *, aside: bool = False) -> AbstractContextManager[Writing]:
        """Begin a transaction that writes. What is not committed at its end never was.

        Where one writes after the other, those who write `aside` let all others go first.
        """

    @abstractmethod
    def close(self) -> None:
        """Close all connections."""
