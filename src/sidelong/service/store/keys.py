"""The keys of an experiment: what is counted of each, and what each has learned, in blocks.

An experiment without keys has one key that nobody names. Its block is an agent, and it is always in memory.

A block of named keys is a family of up to a thousand of them, in the order in which they came. A snapshot writes the
blocks that have changed since the one before, and the next start reads none of them: a block comes into memory when one
of its keys is needed. One that has not changed since the last snapshot is in the database as it is in memory, so that
it can be dropped at any time. Each block that is written has a checksum, which the snapshot keeps: what is read again
is what was written.

When the arms of an experiment change, blocks that are not in memory are left as they are. A block follows when it is
next used, which gives the same bits as if it had followed at once, because nothing has happened to it in between.
"""

from __future__ import annotations

import itertools
import sys
from collections import OrderedDict
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from sidelong.agent import Agent, Family, state_file
from sidelong.agent.rounds import longer
from sidelong.errors import StateFileError
from sidelong.keys import Keys
from sidelong.service.store.agents import AgentBlock, new_agent, resumed
from sidelong.service.store.counters import LearnedColumns
from sidelong.service.store.database import BlobKind, BlobName
from sidelong.service.store.graphs import content_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    import numpy.typing as npt

    from sidelong.agent import ContextualAgent
    from sidelong.graphs import FeedbackGraph
    from sidelong.service.store.arms import ArmChange, OwnGraphs
    from sidelong.service.store.database import Reading
    from sidelong.service.store.journal import Key
    from sidelong.service.store.spec import Spec

    Integers = npt.NDArray[np.int64]
    Floats = npt.NDArray[np.float64]
    Find = Callable[[str], FeedbackGraph | None]

#: A block has so many keys at most, and about so many bytes: a transaction writes one, and a key's first use reads one.
KEYS, _BYTES = 1024, 2**22
_CHECKSUM = 32  # bytes at the end of a state file
#: Bytes of a key beside its name that are always in memory: its counts, and its place in an index. Measured.
INDEX_BYTES = 250
_INDEX_BYTES = 200  # of a key in its family

COUNTED = ("decided", "told", "paid")


class KeyTable:
    """What is counted of each key: a row for each, in the order in which they came.

    Without names there is one row, and nothing of it is counted that the experiment does not count anyway.
    """

    def __init__(self, *, named: bool) -> None:
        self.named = named
        self.keys = Keys()
        self.name_bytes = 0  #: of the names of all keys, in memory
        self.decided = np.empty(0, np.int64)
        self.told = np.empty(0, np.int64)
        self.paid = np.empty(0)  #: sum of the losses of the arms that were played

    def __len__(self) -> int:
        return len(self.keys) if self.named else 1

    @property
    def bytes(self) -> int:
        """What the names and the counts take in memory, about."""
        return self.name_bytes + INDEX_BYTES * len(self.keys)

    def places(self, keys: list[Key] | None, count: int = 1) -> Integers:
        """Return the rows of keys, of new ones those that they will have; without names, so many times the first."""
        if keys is None:
            return np.zeros(count, np.int64)
        found = self.keys.find(keys)
        absent = np.flatnonzero(found < 0)
        if absent.size:
            new = [keys[place] for place in absent.tolist()]
            rows = dict(zip(dict.fromkeys(new), itertools.count(len(self.keys)), strict=False))
            found[absent] = [rows[key] for key in new]
        return found

    def new_among(self, keys: list[Key], rows: Integers) -> list[Key]:
        """Return the keys that are not there yet, in the order of the rows that `places` returned for them."""
        return list(dict.fromkeys(keys[place] for place in np.flatnonzero(rows >= len(self.keys)).tolist()))

    def add(self, new: list[Key]) -> None:
        """Count from now on what happens to new keys."""
        n, size = len(self.keys), len(self.keys) + len(new)
        for name in COUNTED:
            setattr(self, name, longer(getattr(self, name), n, size))
        self.keys.add(new)
        self.name_bytes += names_size(new)

    def note_decided(self, rows: Integers) -> Integers:
        """Count a decision for each row, and return which one of its key each is."""
        rounds = self.decided[rows] + _turns(rows) + 1
        np.add.at(self.decided, rows, 1)
        return np.asarray(rounds)

    def note_told(self, rows: Integers, paid: Floats) -> None:
        """Count what decisions cost that were told; NaN where that was not revealed."""
        np.add.at(self.told, rows, 1)
        known = ~np.isnan(paid)
        np.add.at(self.paid, rows[known], paid[known])

    def contents(self) -> dict[str, np.ndarray]:
        """Return names and counts as arrays of a state file."""
        if not self.named:
            return {}
        n = len(self.keys)
        return self.keys.contents() | {f"keys.{name}": getattr(self, name)[:n] for name in COUNTED}

    def resume(self, arrays: dict[str, np.ndarray]) -> None:
        """Go on from what `contents` returned; without counts, they begin with 0."""
        if not self.named:
            return
        self.keys = Keys.from_contents(arrays)
        self.name_bytes = names_size(self.keys.listed)
        for name in COUNTED:
            nothing = np.zeros(len(self.keys), getattr(self, name).dtype)
            setattr(self, name, arrays.get(f"keys.{name}", nothing))


def names_size(keys: Sequence[Key]) -> int:
    """Return how many bytes keys take in memory."""
    return sum(map(sys.getsizeof, keys))


class Block(Protocol):
    """Keys of one experiment with what they have learned, by their rows in the block."""

    arm_changes: int  #: how many changes of the experiment's arms it has followed

    @property
    def graphs(self) -> list[FeedbackGraph]:
        """The graphs in `contents`, in their order: the experiment's own, and those of pending decisions."""

    def __len__(self) -> int: ...

    def ask(self, rows: Any, graph: FeedbackGraph | None, context: str | None) -> tuple[Any, Any, Any]:
        """Draw an arm for each row; return rounds, arms and probabilities."""

    def tell(
        self, rows: Any, rounds: Any, losses: Floats, offsets: list[int], graph: FeedbackGraph | None, *, learn: bool
    ) -> LearnedColumns:
        """Learn losses, or give up the decisions, which are lost; return what was known of them before."""

    def cancel(self, rows: Any, rounds: Any, *, lost: bool) -> None:
        """Give up decisions."""

    def override(self, rows: Any, rounds: Any, arm: int) -> None:
        """Let a pending decision be carried out with another arm."""

    def outlook(self, rows: Any, graph: FeedbackGraph | None) -> Floats:
        """Return with which probabilities each row would play next; NaN where the learner has none."""

    def observe(self, rows: Any, rounds: Any) -> Floats:
        """Return with which probability each arm that pending decisions reveal is revealed; NaN if it is not known."""

    def names(self, rows: Any, rounds: Any) -> list[Any]:
        """Return what the agent or family itself calls pending decisions."""

    def change_arms(self, change: ArmChange) -> None:
        """Let an arm come or go."""

    def contents(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """Return everything, as the header and the arrays of a state file."""


class FamilyBlock:
    """Named keys: a family."""

    def __init__(self, family: Family) -> None:
        family.threads = 1  # a block is too small for several
        self.family = family
        self.contents = family.contents
        self.arm_changes = 0

    def change_arms(self, change: ArmChange) -> None:
        """Let an arm come or go, for all keys."""
        change.play(self.family)

    @property
    def graphs(self) -> list[FeedbackGraph]:
        """The graphs in `contents`."""
        return self.family.rows.graphs

    def __len__(self) -> int:
        return len(self.family)

    def ask(self, rows: Integers, graph: FeedbackGraph | None, context: str | None) -> tuple[Any, Any, Any]:  # noqa: ARG002
        """Draw an arm for each row."""
        return self.family.rows.ask(rows, graph)[:3]

    def tell(
        self,
        rows: Integers,
        rounds: Integers,
        losses: Floats,
        offsets: list[int],  # noqa: ARG002  # the graph says it
        graph: FeedbackGraph | None,
        *,
        learn: bool,
    ) -> LearnedColumns:
        """Learn losses, or give up the decisions."""
        p, delays = self.family.rows.drawn(rows, rounds)
        observe = self.family.rows.tell(rows, rounds, losses, graph, learn=learn)
        return LearnedColumns(observe, p, delays)

    def cancel(self, rows: Integers, rounds: Integers, *, lost: bool) -> None:
        """Give up decisions."""
        self.family.rows.cancel(rows, rounds, lost=lost)

    def override(self, rows: Integers, rounds: Integers, arm: int) -> None:
        """Let a pending decision be carried out with another arm."""
        self.family.rows.override(rows, rounds, np.array([arm]))

    def outlook(self, rows: Integers, graph: FeedbackGraph | None) -> Floats:
        """Return with which probabilities each row would play next."""
        return self.family.rows.outlook(rows, graph)

    def observe(self, rows: Integers, rounds: Integers) -> Floats:
        """Return with which probability each arm that pending decisions reveal is revealed."""
        return self.family.rows.observe(rows, rounds)

    def names(self, rows: Integers, rounds: Integers) -> list[Any]:
        """Return what the family calls pending decisions."""
        return self.family.rows.ids(rows, rounds)


class BlockMissing(Exception):  # noqa: N818  # no error: it is read anew
    """A block is not in the database as it was written: another server has gone on, or it is damaged."""


class KeyBlocks:
    """Blocks by their numbers, in memory or in the database.

    Args:
        spec: what every key plays.
        own: the experiment's own graph, as it is and as it was.
        find: finds a graph that a pending decision was drawn for by its `content_of`, if there is one.
        size: how many keys a block has, if that is known; else as many as fit.
    """

    def __init__(self, spec: Spec, own: OwnGraphs, find: Find, size: int | None = None) -> None:
        self._spec, self._own, self._find = spec, own, find
        self._loaded: OrderedDict[int, Any] = OrderedDict()  # the least recently used first
        self._changed: set[int] = set()  # since they were last written
        self._writing: dict[int, bytes] = {}  # that are being written, as they are
        self._checksums: dict[int, bytes] = {}
        self._saved = 0  # the event behind which all others are in the database
        first: Any = self._new()
        if spec.keyed:
            first.family.add([""])
            arrays = first.contents()[1].items()
            kept = sum(array.nbytes for name, array in arrays if name.startswith(("state.", "rows.", "observers.")))
            #: Bytes that each key takes in memory: its arrays, which have room for half as many again, and its index.
            self.key_bytes: int = kept + kept // 2 + _INDEX_BYTES
            self.size = size or max(1, min(KEYS, _BYTES // self.key_bytes))
        else:
            self.key_bytes, self.size = 0, 1
            self._loaded[0] = first
            self._changed.add(0)  # it is not written yet

    def _new(self) -> Block:
        spec, graph = self._spec, self._own.graphs[0].graph
        if not spec.keyed:
            return AgentBlock(new_agent(spec, graph), spec)
        block = FamilyBlock(Family(spec.learner, graph, seed=spec.seed, threads=1, **spec.options))
        self._follow(block)
        return block

    def change_arms(self) -> None:
        """Let an arm come or go: blocks of named keys follow when they are next used."""
        if not self._spec.keyed:
            self._used(0)

    def _follow(self, block: Block) -> bool:
        """Let a block play with the arms that there are now; tell whether there was anything to do."""
        missed = self._own.changes[block.arm_changes :]
        for change in missed:
            block.change_arms(change)
        block.arm_changes += len(missed)
        return bool(missed)

    def _used(self, number: int) -> Any:
        """Return a block in memory, which something happens to."""
        block = self._loaded[number]
        if self._follow(block):
            self._changed.add(number)
        return block

    def _looked_at(self, number: int) -> Any:
        """Return a block in memory with the arms that there are now. Looking at it changes nothing that is written."""
        block = self._loaded[number]
        if block.arm_changes < len(self._own.changes):
            block = self._unpacked(self._packed(block), f"block {number}")
            self._follow(block)
        return block

    @property
    def agent(self) -> Agent | ContextualAgent | None:
        """What decides where there are no keys."""
        return None if self._spec.keyed else self._loaded[0].agent

    @property
    def loaded_bytes(self) -> int:
        """What the keys in memory take there, about."""
        return self.key_bytes * sum(map(len, list(self._loaded.values())))  # whoever asks may not hold the lock

    @property
    def changed_bytes(self) -> int:
        """What those of them take that cannot be dropped."""
        found = map(self._loaded.get, self._changed | self._writing.keys())
        return self.key_bytes * sum(len(each) for each in found if each is not None)

    def load(self, reading: Reading, owner: str, rows: Integers, most: int | None = None) -> None:
        """Bring the blocks of some keys into memory; others leave it while all take more than `most` bytes.

        Raises:
            BlockMissing: one is not there as it was written.
        """
        if not self._spec.keyed:
            if 0 not in self._loaded:
                self._loaded[0] = self._read(reading, owner, 0)
            return
        wanted = np.unique(rows // self.size).tolist()
        for number in wanted:
            if number in self._loaded:
                self._loaded.move_to_end(number)
            elif number in self._checksums:
                self._loaded[number] = self._read(reading, owner, number)
            else:
                self._loaded[number] = self._new()
        if most is not None:
            self.drop(most, but=wanted)

    def is_loaded(self, rows: Integers) -> bool:
        """Tell whether keys are in memory, or new."""
        if not self._spec.keyed:
            return True
        return all(n in self._loaded or n not in self._checksums for n in np.unique(rows // self.size).tolist())

    def _read(self, reading: Reading, owner: str, number: int) -> Block:
        place = f"block {number}"
        kept = reading.blob(BlobName(BlobKind.BLOCK, owner, number, self._saved))
        if kept is None or kept.data[-_CHECKSUM:] != self._checksums[number]:
            raise BlockMissing(place)
        try:
            return self._unpacked(kept.data, place)
        except StateFileError as error:
            raise BlockMissing(place) from error

    def _unpacked(self, data: bytes, place: str, find: Find | None = None) -> Block:
        header, arrays = state_file.unpack(data, place)
        for at, content in enumerate(header.pop("contents", ())):
            graph = None if content is None else self._graph_like(content, find or self._find)
            if graph is not None:
                arrays |= {f"graph.{at}.{name}": each for name, each in state_file.graph_to_arrays(graph).items()}
        followed = header.pop("arm_changes")
        block: Block
        if self._spec.keyed:
            block = FamilyBlock(Family.from_contents(header, arrays, place))
        else:
            block = AgentBlock(resumed(header, arrays, place), self._spec)
        block.arm_changes = followed
        return block

    def _graph_like(self, content: str, find: Find) -> FeedbackGraph | None:
        return self._own.like(content) or find(content)

    def drop(self, most: int, but: Sequence[int] = ()) -> None:
        """Let blocks leave memory that have not changed, those first that were not used for long."""
        kept = self._changed | self._writing.keys() | set(but)
        taken = self.loaded_bytes
        for number in [each for each in self._loaded if each not in kept] if self._spec.keyed else ():
            if taken <= most:
                return
            taken -= self.key_bytes * len(self._loaded.pop(number))

    # What keys play. They were added, and are in memory.

    def add(self, keys: list[Key], rows: Integers) -> None:
        """Add new keys before they are asked for; their rows ascend."""
        for number, places in self._parts(rows):
            if number not in self._loaded:
                self._loaded[number] = self._new()
            self._used(number).family.add([keys[place] for place in places.tolist()])
            self._changed.add(number)

    def learn(self, row: int, log: dict[str, Any]) -> None:
        """Let a key learn a log before its first round."""
        block = self._loaded[row // self.size]
        self._changed.add(row // self.size)
        if not self._spec.keyed:
            block.agent.learn(log)
        else:
            block.family[block.family.keys[row % self.size]].learn(log)

    def ask(
        self, rows: Any, graph: FeedbackGraph | None, context: str | None
    ) -> tuple[list[int], list[int], list[float]]:
        """Draw an arm for each key; return rounds, arms and probabilities."""
        if not self._spec.keyed:
            self._changed.add(0)
            return self._loaded[0].ask(rows, graph, context)  # type: ignore[no-any-return]
        n = len(rows)
        rounds, arms, probabilities = np.empty(n, np.int64), np.empty(n, np.int64), np.empty(n)
        for number, places in self._parts(rows):
            self._changed.add(number)
            drawn = self._used(number).ask(rows[places] - number * self.size, graph, context)
            rounds[places], arms[places], probabilities[places] = drawn
        return rounds.tolist(), arms.tolist(), probabilities.tolist()

    def changing(self, rows: Any) -> Iterator[tuple[Any, Any, Any]]:
        """Yield each block that some keys are in and that is about to change, their places, and their rows there."""
        if not self._spec.keyed:
            self._changed.add(0)
            yield self._loaded[0], None, rows
            return
        for number, places in self._parts(rows):
            self._changed.add(number)
            yield self._used(number), places, rows[places] - number * self.size

    def outlook(self, rows: Integers, graph: FeedbackGraph | None) -> Floats:
        """Return with which probabilities each key would play next."""
        p = np.empty((len(rows), self._own.now.graph.n_arms))
        for number, places in self._parts(rows):
            p[places] = self._used(number).outlook(rows[places] - number * self.size, graph)
        return p

    def observe(self, row: int, round_: int) -> Floats:
        """Return with which probability each arm that a pending decision reveals is revealed."""
        block = self._looked_at(row // self.size)
        return block.observe(np.array([row % self.size]), np.array([round_]))  # type: ignore[no-any-return]

    def best(self, rows: Integers) -> list[int | None]:
        """Return the arm with the least mean of each named key, None where nothing was seen."""
        found: list[int | None] = [None] * rows.size
        for number, places in self._parts(rows):
            family = self._looked_at(number).family
            keys = family.keys
            some = [keys[row] for row in (rows[places] - number * self.size).tolist()]
            table = family.estimates(some).best.reshape(places.size, -1)
            for place, flags in zip(places.tolist(), table, strict=True):
                found[place] = int(flags.argmax()) if flags.any() else None
        return found

    def names(self, rows: Integers, rounds: Integers) -> list[Any]:
        """Return what the agent or family calls pending decisions."""
        found: list[Any] = [None] * rows.size
        for number, places in self._parts(rows):
            names = self._looked_at(number).names(rows[places] - number * self.size, rounds[places])
            for place, name in zip(places.tolist(), names, strict=True):
                found[place] = name
        return found

    def _parts(self, rows: Any) -> Iterator[tuple[int, Integers]]:
        """Yield the number of each block that keys are in, and their places."""
        of = np.asarray(rows) // self.size
        if not of.size:
            return
        if (of[0] == of).all():
            yield int(of[0]), np.arange(of.size)
            return
        order = np.argsort(of, kind="stable")
        numbers, first = np.unique(of[order], return_index=True)
        for number, begin, end in zip(numbers.tolist(), first.tolist(), [*first[1:].tolist(), of.size], strict=True):
            yield number, order[begin:end]

    # Blocks as a whole

    def together(self) -> Agent | ContextualAgent | Family:
        """Return the agent, or all keys as one family; they are in memory."""
        if self.agent is not None:
            return self.agent
        if not self._loaded:
            return self._new().family  # type: ignore[attr-defined,no-any-return]
        return Family.join([self._looked_at(number).family for number in sorted(self._loaded)])

    def begin_write(self) -> dict[int, bytes]:
        """Return the blocks that have changed; until `written` or `not_written` is called they are not dropped."""
        self._writing |= {number: self._packed(self._loaded[number]) for number in sorted(self._changed)}
        self._changed = set()
        return self._writing

    def written(self, blocks: Mapping[int, bytes], seq: int) -> None:
        """Note that what `begin_write` returned is in the database, in a snapshot behind an event."""
        self._checksums |= {number: data[-_CHECKSUM:] for number, data in blocks.items()}
        self._writing, self._saved = {}, seq

    def not_written(self) -> None:
        """Note that nothing was written."""
        self._changed |= self._writing.keys()
        self._writing = {}

    def checksums(self) -> np.ndarray:
        """Return the checksum of each block, as it would be written now."""
        fresh = self._writing | {number: self._packed(self._loaded[number]) for number in self._changed}
        found = self._checksums | {number: data[-_CHECKSUM:] for number, data in fresh.items()}
        return np.frombuffer(b"".join(found[number] for number in sorted(found)), np.uint8).reshape(-1, _CHECKSUM)

    def resume(self, checksums: np.ndarray, seq: int) -> None:
        """Go on from blocks that are in the database."""
        self._checksums = {number: row.tobytes() for number, row in enumerate(checksums)}
        self._saved = seq
        if self._checksums:
            self._loaded.clear()
            self._changed.clear()

    def begin(self, given: Mapping[int, bytes]) -> None:
        """Take blocks that an experiment begins with, and that are not in the database."""
        self._loaded |= {number: self._unpacked(data, "what it began with") for number, data in given.items()}
        for number in given:
            self._loaded[number].arm_changes = 0  # in this experiment
        self._changed |= given.keys()

    def copied(self) -> dict[int, bytes]:
        """Return all blocks, which are in memory, as they are now."""
        return {number: self._packed(self._looked_at(number)) for number in sorted(self._loaded)}

    def without_pending(self, data: bytes, find: Find) -> bytes:
        """Return a block that `copied` returned without its pending decisions: whoever made them tells the original."""
        block: Any = self._unpacked(data, "The clone", find)
        every = block.family if self._spec.keyed else block.agent
        for decision in every.pending:
            every.cancel([decision] if self._spec.keyed else decision)
        return self._packed(block)

    def _packed(self, block: Block) -> bytes:
        """Return a block as a file. Equal states are equal bytes: graphs, which are left out, come in one order."""
        header, arrays = block.contents()
        graphs = block.graphs
        named = [content_of(graph) for graph in graphs]
        order = [0, *sorted(range(1, len(graphs)), key=named.__getitem__)]
        kept = {name: array for name, array in arrays.items() if not name.startswith("graph.")}
        contents: list[str | None] = []
        for at, place in enumerate(order):
            known = self._graph_like(named[place], self._find) is not None
            contents.append(named[place] if known else None)
            if not known:  # the learner plays on a graph of its own making
                own = state_file.graph_to_arrays(graphs[place])
                kept |= {f"graph.{at}.{name}": array for name, array in own.items()}
        if len(graphs) > 1:
            kept["pending.graph"] = np.argsort(order)[kept["pending.graph"]]
        names = [header["graphs"][place] for place in order]
        header |= {"graphs": names, "contents": contents, "arm_changes": block.arm_changes}
        return state_file.pack(header, kept)


def _turns(rows: Integers) -> Integers:
    """Return how many decisions of the same key come before each."""
    if rows.size == 1 or (np.diff(rows) > 0).all():
        return np.zeros(rows.size, np.int64)
    order = np.argsort(rows, kind="stable")
    first = np.append(True, np.diff(rows[order]) != 0)
    begin = np.maximum.accumulate(np.where(first, np.arange(rows.size), 0))
    turns = np.empty(rows.size, np.int64)
    turns[order] = np.arange(rows.size) - begin
    return turns


def in_turns(rows: Integers) -> Iterator[Integers]:
    """Yield the places of the first decision of each key, then those of the second ones, and so on."""
    turns = _turns(rows)
    for turn in range(int(turns.max()) + 1):
        yield np.flatnonzero(turns == turn)
