"""The keys of an experiment: what is counted of each, and what each has learned, in blocks.

An experiment without keys has one key that nobody names, and which is there from the start.

A block has up to a thousand keys, in the order in which they came. A snapshot writes the blocks that have changed since
the one before, and the next start reads none of them, unless there is one alone: a block comes into memory when one of
its keys is needed. One that has not changed since the last snapshot is in the database as it is in memory, so that it
can be dropped at any time. Each block that is written has a checksum, which the snapshot keeps: what is read again is
what was written.

When the arms of an experiment change, blocks are left as they are. A block follows when it is next used, which gives
the same bits as if it had followed at once, because nothing has happened to it in between.
"""

from __future__ import annotations

import itertools
import math
import re
import sys
from collections import OrderedDict
from typing import TYPE_CHECKING, Any

import numpy as np

from sidelong.agent import state_file
from sidelong.agent.rounds import longer
from sidelong.errors import StateFileError
from sidelong.keys import Keys
from sidelong.service.store.agents import FittedGraphs, new_block, read_block
from sidelong.service.store.database import BlobKind, BlobName
from sidelong.service.store.graphs import content_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    import numpy.typing as npt

    from sidelong.graphs import FeedbackGraph
    from sidelong.service.store.agents import AdvisedRows, Block, Contents, Decider
    from sidelong.service.store.arms import OwnGraphs
    from sidelong.service.store.database import Reading
    from sidelong.service.store.journal import Key
    from sidelong.service.store.spec import Spec

    Integers = npt.NDArray[np.int64]
    Floats = npt.NDArray[np.float64]
    Find = Callable[[str], FeedbackGraph | None]

#: A block has so many keys at most, and about so many bytes: a transaction writes one, and a key's first use reads one.
KEYS, _BYTES = 1024, 2**22
_TOGETHER = 2**62
_LOOKED_AT = 64  # keys of an event, to say whom they trust
_CHECKSUM = 32  # bytes at the end of a state file
_NUMBER = re.compile(r"-?[0-9]{1,19}")
#: Bytes of a key beside its name that are always in memory: its counts, and its place in an index. Measured.
INDEX_BYTES = 250
_ALL = slice(None)  # places of decisions whose keys are in one block

COUNTED = ("decided", "told", "paid")
#: What is counted too where there is a ceiling.
SPENT = ("charged", "spent")


class KeyTable:
    """What is counted of each key: a row for each, in the order in which they came.

    Without names there is one row from the start.
    """

    def __init__(self, *, named: bool, spends: bool = False) -> None:
        self.named = named
        self._counted = (*COUNTED, *SPENT) if spends else COUNTED
        self.keys = Keys()
        self.name_bytes = 0  #: of the names of all keys, in memory
        first = 0 if named else 1
        self.decided = np.zeros(first, np.int64)
        self.told = np.zeros(first, np.int64)
        self.paid = np.zeros(first)  #: sum of the losses of the arms that were played
        #: Under a ceiling, how many were told what they cost, and how much that was: as the learner has it.
        self.charged, self.spent = np.zeros(first), np.zeros(first)

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

    def row(self, key: str | None) -> int:
        """Return the row of a key that is written as text, or of the one without a name; -1 if there is no such key."""
        if not self.named:
            return 0 if key is None else -1
        if self.keys.listed and isinstance(self.keys.listed[0], int):
            return self.keys.row(int(key)) if key is not None and _NUMBER.fullmatch(key) else -1
        return self.keys.row(key)

    def new_among(self, keys: list[Key] | None, rows: Integers) -> list[Key]:
        """Return the keys that are not there yet, in the order of the rows that `places` returned for them."""
        if keys is None:
            return []
        return list(dict.fromkeys(keys[place] for place in np.flatnonzero(rows >= len(self.keys)).tolist()))

    def add(self, new: list[Key]) -> None:
        """Count from now on what happens to new keys."""
        n, size = len(self.keys), len(self.keys) + len(new)
        for name in self._counted:
            setattr(self, name, longer(getattr(self, name), n, size))
        self.keys.add(new)
        self.name_bytes += names_size(new)

    def note_decided(self, rows: Integers) -> list[int]:
        """Count a decision for each row, and return which one of its key each is."""
        if len(rows) == 1:  # the same as below, but quicker
            row = rows.item(0)
            self.decided[row] += 1
            return [self.decided.item(row)]
        rounds = self.decided[rows] + _turns(rows) + 1
        self.decided[rows] = rounds  # of a row that is there twice, the last one counts
        return rounds.tolist()  # type: ignore[no-any-return]

    def note_told(self, rows: Integers, paid: Floats) -> None:
        """Count what decisions cost that were told; NaN where that was not revealed."""
        if len(rows) == 1:  # the same as below, but quicker
            row, loss = rows.item(0), paid.item(0)
            self.told[row] += 1
            self.paid[row] += 0.0 if math.isnan(loss) else loss
            return
        np.add.at(self.told, rows, 1)
        known = ~np.isnan(paid)
        np.add.at(self.paid, rows[known], paid[known])

    def note_spent(self, rows: Integers, spent: Floats) -> None:
        """Take note of what keys have spent: two columns, as `Block.spent` returns them."""
        self.charged[rows], self.spent[rows] = spent.T

    def contents(self) -> dict[str, np.ndarray]:
        """Return names and counts as arrays of a state file."""
        n = len(self)
        return self.keys.contents() | {f"keys.{name}": getattr(self, name)[:n] for name in self._counted}

    def resume(self, arrays: dict[str, np.ndarray]) -> None:
        """Go on from what `contents` returned; without counts, they begin with 0."""
        self.keys = Keys.from_contents(arrays)
        self.name_bytes = names_size(self.keys.listed)
        for name in self._counted:
            nothing = np.zeros(len(self), getattr(self, name).dtype)
            setattr(self, name, arrays.get(f"keys.{name}", nothing))


def names_size(keys: Sequence[Key]) -> int:
    """Return how many bytes keys take in memory."""
    return sum(map(sys.getsizeof, keys))


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
        self._loaded: OrderedDict[int, Block] = OrderedDict()  # the least recently used first
        self._changed: set[int] = set()  # since they were last written
        self._writing: dict[int, bytes] = {}  # that are being written, as they are
        self._checksums: dict[int, bytes] = {}
        self._sizes: dict[int, int] = {}  # in bytes, of those that were written
        self._saved = 0  # the event behind which all others are in the database
        self._loaded[0] = self._new()
        self._changed |= {0} if len(self._loaded[0]) else set()  # it has a key, and is not written yet
        self.key_bytes: int = self._loaded[0].key_bytes  #: that each key takes in memory
        #: How many keys a block has. Keys that learn or spend together are in one.
        self.size = size or (_TOGETHER if is_together(spec) else max(1, min(KEYS, _BYTES // max(self.key_bytes, 1))))

    def _new(self) -> Block:
        block = new_block(self._spec, self._own.graphs[0].graph)
        self._follow(block)
        return block

    def _follow(self, block: Block) -> bool:
        """Let a block play with the arms that there are now; tell whether there was anything to do."""
        missed = self._own.changes[block.arm_changes :]
        for change in missed:
            block.change_arms(change)
        block.arm_changes += len(missed)
        return bool(missed)

    def _used(self, number: int) -> Block:
        """Return a block in memory, which something happens to."""
        block = self._loaded[number]
        if block.arm_changes < len(self._own.changes) and self._follow(block):
            self._changed.add(number)
        return block

    def _looked_at(self, number: int) -> Block:
        """Return a block in memory with the arms that there are now. Looking at it changes nothing that is written."""
        block = self._loaded[number]
        if block.arm_changes < len(self._own.changes):
            block = self._unpacked(self._packed(block), f"block {number}")
            self._follow(block)
        return block

    @property
    def loaded_bytes(self) -> int:
        """What the keys in memory take there, about."""
        return self.key_bytes * sum(map(len, list(self._loaded.values())))  # whoever asks may not hold the lock

    @property
    def changed_bytes(self) -> int:
        """What those of them take that cannot be dropped."""
        found = map(self._loaded.get, self._changed | self._writing.keys())
        return self.key_bytes * sum(len(each) for each in found if each is not None)

    @property
    def unwritten_bytes(self) -> int:
        """What a snapshot would write of them, about."""
        found = {number: self._loaded.get(number, ()) for number in list(self._changed)}
        return sum(max(self._sizes.get(number, 0), self.key_bytes * len(each)) for number, each in found.items())

    @property
    def all_stay(self) -> bool:
        """Whether all keys are in memory, and none leaves it."""
        return not self.key_bytes and bool(self._loaded)

    def load(self, reading: Reading, owner: str, rows: Integers, most: int | None = None) -> None:
        """Bring the blocks of some keys into memory; others leave it while all take more than `most` bytes.

        Raises:
            BlockMissing: one is not there as it was written.
        """
        wanted = self._numbers(rows)
        for number in wanted:
            if number in self._loaded:
                self._loaded.move_to_end(number)
            elif number in self._checksums:
                self._loaded[number] = self._read(reading, owner, number)
            else:
                self._loaded[number] = self._new()
        if most is not None and self.loaded_bytes > most:
            self.drop(most, but=wanted)

    def check(self, reading: Reading, owner: str) -> None:
        """Check that all blocks of the last snapshot are in the database as they were written, one after the other.

        Raises:
            BlockMissing: one is not.
        """
        for number in self._checksums:
            self._read(reading, owner, number)

    def is_loaded(self, rows: Integers) -> bool:
        """Tell whether keys are in memory, or new."""
        return not self.key_bytes or all(
            number in self._loaded or number not in self._checksums for number in self._numbers(rows)
        )

    def _numbers(self, rows: Integers) -> list[int]:
        """Return the numbers of the blocks that keys are in."""
        if len(rows) == 1:
            return [rows.item(0) // self.size]
        return np.unique(rows // self.size).tolist()  # type: ignore[no-any-return]

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
        block = read_block(self._spec, header, arrays, place)
        block.arm_changes = followed
        return block

    def _graph_like(self, content: str, find: Find) -> FeedbackGraph | None:
        return self._own.like(content) or find(content)

    def drop(self, most: int, but: Sequence[int] = ()) -> None:
        """Let blocks leave memory that have not changed, those first that were not used for long."""
        kept = self._changed | self._writing.keys() | set(but)
        taken = self.loaded_bytes
        for number in [each for each in self._loaded if each not in kept]:
            if taken <= most:
                return
            taken -= self.key_bytes * len(self._loaded.pop(number))

    # What keys play. They were added, and are in memory.

    def add(self, keys: list[Key], rows: Integers) -> None:
        """Add new keys before they are asked for; their rows ascend."""
        for number in self._numbers(rows):
            if number not in self._loaded:
                self._loaded[number] = self._new()
        for block, places, _ in self.changing(rows):
            block.add(keys if places is _ALL else [keys[place] for place in places.tolist()])

    def agent_of(self, row: int) -> Decider:
        """Return one key, to be looked at like an agent."""
        return self._looked_at(row // self.size).agent_of(row % self.size)

    def learn(self, row: int, log: dict[str, Any]) -> None:
        """Let a key learn a log before its first round."""
        self._changed.add(row // self.size)
        self._used(row // self.size).agent_of(row % self.size).learn(log)

    @property
    def advisers(self) -> tuple[str, ...]:
        """The names of those who have advised some of the keys in memory; of others, the first ones have."""
        return max((block.advisers for block in self._loaded.values()), key=len)

    def read(self, x: list[Any], keys: list[Key] | None) -> Any:
        """Return what is seen of the contexts of keys as `ask` takes it, or refuse; all blocks read alike."""
        return next(iter(self._loaded.values())).read(x, keys)

    def fit(self, rows: Integers, graph: FeedbackGraph | None) -> FittedGraphs:
        """Return the graph of each row, which need not be there yet, without the arms that do not fit."""
        graphs: list[FeedbackGraph] = []
        of = np.empty(len(rows), np.int64)
        for number, places, local in self._parts(rows):
            found = self._looked_at(number).fit(local, graph)
            of[places] = found.of + len(graphs)
            graphs += found.graphs
        return FittedGraphs(graphs, of)

    def ask(
        self,
        rows: Integers,
        graph: FittedGraphs | FeedbackGraph | None,
        x: Any = None,
        advised: AdvisedRows | None = None,
    ) -> tuple[list[int], list[int], list[float]]:
        """Draw an arm for each key; return rounds, arms and probabilities."""
        parts = self.changing(rows)
        if len(parts) == 1:
            return parts[0][0].ask(parts[0][2], graph, x, advised)
        n = len(rows)
        rounds, arms, probabilities = np.empty(n, np.int64), np.empty(n, np.int64), np.empty(n)
        for block, places, local in parts:
            shown = graph.at(places) if isinstance(graph, FittedGraphs) else graph
            rounds[places], arms[places], probabilities[places] = block.ask(
                local, shown, x and x.at(places), advised and advised.at(places)
            )
        return rounds.tolist(), arms.tolist(), probabilities.tolist()

    def changing(self, rows: Integers) -> list[tuple[Block, Any, Integers]]:
        """Return the blocks that some keys are in and that are about to change, their places, and their rows there."""
        found = []
        for number, places, local in self._parts(rows):
            self._changed.add(number)
            found.append((self._used(number), places, local))
        return found

    def outlook(self, rows: Integers, graph: FeedbackGraph | None, advised: AdvisedRows | None = None) -> Floats:
        """Return with which probabilities each key would play next."""
        p = np.empty((len(rows), self._own.now.graph.n_arms))
        for number, places, local in self._parts(rows):
            if advised is not None:
                self._changed.add(number)  # who is new joins now
            p[places] = self._used(number).outlook(local, graph, advised and advised.at(places))
        return p

    def observe(self, row: int, round_: int) -> Floats:
        """Return with which probability each arm that a pending decision reveals is revealed."""
        return self._looked_at(row // self.size).observe(np.array([row % self.size]), np.array([round_]))

    def spent(self, rows: Integers) -> Floats:
        """Return what keys have spent: see `Block.spent`."""
        found = np.empty((len(rows), 2))
        for number, places, local in self._parts(rows):
            found[places] = self._looked_at(number).spent(local)
        return found

    def trust(self, rows: Integers, names: Sequence[str]) -> list[float]:
        """Return how far each adviser is followed, in the mean of these keys or, of many, of some of them."""
        some = rows[:: -(-len(rows) // _LOOKED_AT)].tolist()
        shares = [self.agent_of(row).trust() for row in some]
        return [math.fsum(each.get(name, 0.0) for each in shares) / len(some) for name in names]

    @property
    def price(self) -> float:
        """The price of the ceiling of the one block that there is; NaN before its first key, or if it left memory."""
        block = self._loaded.get(0)
        return block.agent_of(0).spending().price if block is not None and len(block) else math.nan

    def best(self, rows: Integers) -> list[int | None]:
        """Return the arm with the least mean of each key, None where nothing was seen."""
        found = np.empty(len(rows), object)
        for number, places, local in self._parts(rows):
            found[places] = self._looked_at(number).best(local)
        return found.tolist()

    def names(self, rows: Integers, rounds: Integers) -> list[Any]:
        """Return what the agent or family calls pending decisions."""
        found = np.empty(len(rows), object)
        for number, places, local in self._parts(rows):
            found[places] = self._looked_at(number).names(local, rounds[places])
        return found.tolist()

    def _parts(self, rows: Integers) -> list[tuple[int, Any, Integers]]:
        """Return the number of each block that keys are in, their places (`_ALL` or an array), and their rows there."""
        if len(rows) == 1:
            number = rows.item(0) // self.size
            return [(number, _ALL, rows - number * self.size if number else rows)]
        of = rows // self.size
        if not of.size:
            return []
        if (of[0] == of).all():
            return [(int(of[0]), _ALL, rows - of * self.size)]
        order = np.argsort(of, kind="stable")
        numbers, first = np.unique(of[order], return_index=True)
        parts = zip(numbers.tolist(), np.split(order, first[1:]), strict=True)
        return [(number, places, rows[places] - number * self.size) for number, places in parts]

    # Blocks as a whole

    def together(self) -> Contents:
        """Return the contents of one agent or family that has all keys; they are in memory."""
        first, *others = (self._looked_at(number) for number in sorted(self._loaded))
        return first.joined(others)

    def begin_write(self) -> dict[int, bytes]:
        """Return the blocks that have changed; until `written` or `not_written` is called they are not dropped."""
        self._writing |= {number: self._packed(self._loaded[number]) for number in sorted(self._changed)}
        self._changed = set()
        return self._writing

    def written(self, blocks: Mapping[int, bytes], seq: int) -> None:
        """Note that what `begin_write` returned is in the database, in a snapshot behind an event."""
        self._checksums |= {number: data[-_CHECKSUM:] for number, data in blocks.items()}
        self._sizes |= {number: len(data) for number, data in blocks.items()}
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
        block = self._unpacked(data, "The clone", find)
        block.cancel_all()
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


def is_together(spec: Spec) -> bool:
    """Tell whether the keys of an experiment learn or spend together."""
    return spec.pooled or (spec.ceiling is not None and spec.ceiling_over == "all")


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
