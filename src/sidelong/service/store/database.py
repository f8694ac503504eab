"""What the store asks of a database. This is all that another kind of database must do.

A database holds experiments with their journals, blobs (graphs, snapshots and what belongs to them), tokens and a
clock. The tests in ``tests/service/test_backend_contract.py`` say the same as the docstrings here, and any kind of
database must pass them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from enum import IntEnum
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

from sidelong.service.store.spec import Spec

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from contextlib import AbstractContextManager

    from sidelong.service.store.journal import Event


#: Bytes of a blob that are written at once: whoever wants to write in between waits for these.
CHUNK = 2**18
#: Behind any event.
LAST_SEQ = 2**63 - 1


class TakenError(Exception):
    """What was to be written once is there already: a name, the number of an event, a round, a key.

    Or another server has forgotten what was to be completed.
    """


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
    state: str = "running"  #: of a deleted one "deleted", and "gone" when there is nothing left of it to forget
    changed_at: int | None = None  #: when it came into this state, if somebody brought it there
    changed_by: str | None = None


class Cut(NamedTuple):
    """Where what is left of a journal begins: see `sidelong.service.store.retention`."""

    seq: int = 0  #: the last event that was cut, 0 if none was
    round: int = 0  #: the largest number of a decision that was cut
    chain: bytes = b""  #: the hash of that event, which the next one goes on from
    kept: bytes = b""  #: a hash of the events before it that were not cut: see `sidelong.service.store.journal.lasting`


class BlobKind(IntEnum):
    """What a blob is."""

    GRAPH = 0
    INITIAL_STATE = 1  #: that a clone or an experiment with a log began with: part of its journal, and never forgotten
    SNAPSHOT = 2
    BLOCK = 3  #: of keys, as it was at a snapshot


class BlobName(NamedTuple):
    """What a blob is found by."""

    kind: BlobKind
    owner: str  #: the id of a graph, or the key of an experiment
    number: int = 0  #: of a block
    seq: int = 0  #: the event that a snapshot or a block was written after


class Blob(NamedTuple):
    """A blob that was found."""

    seq: int
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
    def experiments(self, *, deleted: bool = False) -> list[Listed]:
        """Return all experiments, by name, letter by letter; or those that were deleted, oldest deletion first."""

    @abstractmethod
    def events(self, experiment: int, after: int, most: int, most_bytes: int | None = None) -> list[Event]:
        """Return the first events behind the one of number `after`, in their order, and not more than `most`.

        None comes behind the one with which their binary columns reach `most_bytes`.
        """

    @abstractmethod
    def rounds(self, experiment: int, first: int, last: int) -> list[Event]:
        """Return the events of some rounds, by round, and within a round by their `SLOTS`."""

    @abstractmethod
    def spanning(self, experiment: int, slot: int, first: int, last: int, most: int) -> list[Event]:
        """Return at most so many events of a slot whose `round` is from `first` to `last`, the largest round first.

        A decision is settled, or made, by one of those whose rounds are not far below its number: see `journal.SPAN`.
        """

    @abstractmethod
    def keyed(self, experiment: int, keys: Sequence[str]) -> list[Event]:
        """Return what was written under these Idempotency-Keys, in any order.

        Of an event that was erased behind a cut, the key alone is left: its `seq` is 0.
        """

    @abstractmethod
    def cut(self, experiment: int) -> Cut:
        """Return where what is left of a journal begins."""

    @abstractmethod
    def journal_bytes(self, experiment: int) -> int:
        """Return how many bytes the events of an experiment take, about."""

    @abstractmethod
    def blob(self, name: BlobName) -> Blob | None:
        """Return the last complete blob of this kind, owner and number whose event is not behind that of the name."""

    @abstractmethod
    def graph_bytes(self, experiment: int) -> int:
        """Return how many bytes the graphs have that the events of an experiment name, each counted once."""

    @abstractmethod
    def names_graph(self, experiment: int, id_: str) -> bool:
        """Tell whether an experiment names a graph: its own, or that of an event."""

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
    def create(self, identity: Identity, graph: str | None = None) -> int:
        """Add an experiment without events, whose own graph has this id, and return the id of the experiment.

        The id of `identity` is not looked at. Raises `TakenError` if there is an experiment of its name.
        """

    @abstractmethod
    def relist(self, experiment: int, changes: Mapping[str, Any]) -> None:
        """Change some of `name`, `state`, `changed_at` and `changed_by` in the list of experiments.

        The state "deleted" deletes an experiment: it is no longer found, its name is free, and `forget` removes what it
        had. Its line stays, so that its id is not given again. Raises `TakenError` if there is one of this name. Then
        the transaction can only be given up.
        """

    @abstractmethod
    def append(self, new: Mapping[int, Sequence[Event]]) -> None:
        """Write events, at least one for each of these experiments.

        Raises `TakenError` if they do not go on where the journal ends, and for a round that is decided or settled
        twice, and for an Idempotency-Key that comes twice. Then the transaction can only be given up.
        """

    @abstractmethod
    def keep_chunk(self, name: BlobName, chunk: int, data: bytes, now: int, *, last: bool) -> None:
        """Keep a chunk of a blob, in the place of one of the same number, from 0.

        A blob is complete with its last chunk. Raises `TakenError` if one in front of it was forgotten meanwhile; then
        the transaction can only be given up.
        """

    @abstractmethod
    def hold(self, name: BlobName, now: int | None = None) -> bool:
        """Tell whether a blob is complete, and let nobody forget it before the end of this transaction.

        If there is a time, the blob is from now on as if it were kept then.
        """

    @abstractmethod
    def forget(self, experiment: int, most_bytes: int) -> int:
        """Forget rows of an experiment that nobody needs, of about so many bytes, and return how many rows.

        Nobody needs anything of a deleted experiment; once nothing is left, its state is "gone". Of another one, these
        are chunks of snapshots before the last two complete ones, and of blocks of which there is a newer one that is
        not behind the older of these two.
        """

    @abstractmethod
    def cut_to(self, experiment: int, cut: Cut) -> None:
        """Let what is left of a journal begin behind an event. Nothing is erased yet."""

    @abstractmethod
    def erase_cut(self, experiment: int, most_bytes: int, before: int) -> int:
        """Erase rows behind the cut, of about so many bytes, and return how many.

        These are events that were cut, but for the creation and the changes. Their Idempotency-Keys stay, with the time
        of the event, and are erased too once that is `before` a time of the service's own clock.
        """

    @abstractmethod
    def forget_unused(self, before: int, most: int, owners: Sequence[str] | None = None) -> list[str]:
        """Forget chunks of graphs and initial states that were kept before a time and that nothing names.

        They are named by an experiment that has such a key or such a graph of its own, and by an event in its `graph`.
        Returns the owners, of which at most `most` chunks are forgotten; only of some `owners` if there are any.
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


def chunks_of(data: bytes) -> list[bytes]:
    """Return the chunks of a blob, of which there is at least one."""
    return [data[first : first + CHUNK] for first in range(0, max(len(data), 1), CHUNK)]


def keep_chunks(writing: Writing, name: BlobName, data: bytes, now: int) -> None:
    """Keep a small blob in a transaction."""
    chunks = chunks_of(data)
    for number, chunk in enumerate(chunks, 1):
        writing.keep_chunk(name, number - 1, chunk, now, last=number == len(chunks))


def keep_blob(database: Database, name: BlobName, data: bytes, now: int) -> None:
    """Keep a blob aside of all commands, with a transaction for each chunk, so that others write in between."""
    chunks = chunks_of(data)
    for number, chunk in enumerate(chunks, 1):
        with database.writing(aside=True) as writing:
            writing.keep_chunk(name, number - 1, chunk, now, last=number == len(chunks))
            writing.commit()
