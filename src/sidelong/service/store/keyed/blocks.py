"""The keys of an experiment in blocks: each is a family of up to a thousand keys, in the order in which they came.

A snapshot writes the blocks that have changed since the one before, and the next start reads none of them: a block
comes into memory when one of its keys is needed. One that has not changed since the last snapshot is in the database as
it is in memory, so that it can be dropped at any time. Each block that is written has a checksum, which the snapshot
keeps: what is read again is what was written.
"""

from __future__ import annotations

import itertools
from collections import OrderedDict
from typing import TYPE_CHECKING, Any

import numpy as np

from sidelong.agent import Batch, Family, state_file
from sidelong.errors import StateFileError
from sidelong.service.store.database import BlobKind, BlobName

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    import numpy.typing as npt

    from sidelong.agent.family import RowsOfKeys
    from sidelong.graphs import FeedbackGraph
    from sidelong.service.store.database import Reading
    from sidelong.service.store.keyed.columns import Key

    Integers = npt.NDArray[np.int64]
    Floats = npt.NDArray[np.float64]

#: A block has so many keys at most, and about so many bytes: a transaction writes one, and a key's first use reads one.
KEYS, _BYTES = 1024, 2**22
_CHECKSUM = 32  # bytes at the end of a state file


class Forgotten(Exception):  # noqa: N818  # no error: it is read anew
    """A block is not in the database as it was written: another server has gone on, or it is damaged."""


class Blocks:
    """Blocks by their numbers, in memory or in the database.

    Args:
        learner: what every key plays, with its graph, seed and options.
        size: how many keys a block has, if that is known; else as many as fit.
    """

    def __init__(
        self, learner: str, graph: FeedbackGraph, seed: int, options: Mapping[str, Any], size: int | None = None
    ) -> None:
        self._begin = learner, graph, seed, dict(options)
        none = self._new()
        first = sum(array.nbytes for name, array in none.contents()[1].items() if name.startswith("first."))
        self.key_bytes = first + 24 * graph.n_arms + 300  #: that each key takes in memory, about
        self.size = size or max(1, min(KEYS, _BYTES // self.key_bytes))
        self.tag: str = none.contents()[0]["tag"]
        self._awake: OrderedDict[int, Family] = OrderedDict()  # the least recently used first
        self._changed: set[int] = set()  # since they were last written
        self._leaving: dict[int, bytes] = {}  # that are being written, as they are
        self._checksums: dict[int, bytes] = {}
        self._saved = 0  # the event behind which all others are in the database

    def _new(self) -> Family:
        learner, graph, seed, options = self._begin
        return Family(learner, graph, seed=seed, threads=1, **options)  # a block is too small for several

    @property
    def awake_bytes(self) -> int:
        """What the keys in memory take there, about."""
        return self.key_bytes * sum(map(len, list(self._awake.values())))  # whoever asks may not hold the lock

    @property
    def changed_bytes(self) -> int:
        """What those of them take that cannot be dropped."""
        found = map(self._awake.get, self._changed | self._leaving.keys())
        return self.key_bytes * sum(len(each) for each in found if each is not None)

    def wake(self, reading: Reading, owner: str, rows: Integers, most: int | None = None) -> None:
        """Bring the blocks of some keys into memory; others leave it while all take more than `most` bytes.

        Raises:
            Forgotten: one is not there as it was written.
        """
        wanted = np.unique(rows // self.size).tolist()
        for number in wanted:
            if number in self._awake:
                self._awake.move_to_end(number)
            elif number in self._checksums:
                kept = reading.blob(BlobName(BlobKind.BLOCK, owner, number, self._saved))
                self._awake[number] = self._read(number, None if kept is None else kept.data)
            else:
                self._awake[number] = self._new()
        if most is not None:
            self.drop(most, but=wanted)

    def is_awake(self, rows: Integers) -> bool:
        """Tell whether keys are in memory, or new."""
        return all(n in self._awake or n not in self._checksums for n in np.unique(rows // self.size).tolist())

    def _read(self, number: int, data: bytes | None) -> Family:
        place = f"block {number}"
        if data is None or data[-_CHECKSUM:] != self._checksums[number]:
            raise Forgotten(place)
        try:
            family = Family.from_contents(*state_file.unpack(data, place), place)
        except StateFileError as error:
            raise Forgotten(place) from error
        family.threads = 1
        return family

    def drop(self, most: int, but: Sequence[int] = ()) -> None:
        """Let blocks leave memory that have not changed, those first that were not used for long."""
        kept = self._changed | self._leaving.keys() | set(but)
        taken = self.awake_bytes
        for number in [each for each in self._awake if each not in kept]:
            if taken <= most:
                return
            taken -= self.key_bytes * len(self._awake.pop(number))

    def ask(self, keys: list[Key], rows: Integers, graph: FeedbackGraph | None) -> Batch:
        """Draw an arm for each key; they were added, and are awake."""
        order, parts = self._in_order(rows)
        drawn = [self._rows_of(number).ask(rows[some] - number * self.size, graph) for number, some in parts]
        *columns, _ = map(np.concatenate, zip(*drawn, strict=True))
        offsets = np.append(0, np.cumsum(np.concatenate([np.diff(each.offsets) for each in drawn])))
        if order is None:
            return Batch(self.tag, keys, *columns, offsets)
        made = Batch(self.tag, [keys[place] for place in order.tolist()], *columns, offsets)
        return made[np.argsort(order)]

    def tell(
        self,
        rounds: Integers,
        rows: Integers,
        sizes: Integers,
        losses: Floats,
        graph: FeedbackGraph | None,
        *,
        learn: bool = True,
    ) -> Floats:
        """Learn, or give up what is not to be learned; return the probability with which each loss was revealed.

        Decisions are named by the rounds and the rows of their keys.
        """
        order, parts = self._in_order(rows)
        ends = np.append(0, np.cumsum(sizes if order is None else sizes[order]))
        if order is not None:
            of = np.repeat(np.append(0, np.cumsum(sizes))[order] - ends[:-1], sizes[order]) + np.arange(losses.size)
            losses = losses[of]
        told = np.empty(losses.size)
        first = 0
        for number, some in parts:
            last = first + rounds[some].size
            at = slice(ends[first], ends[last])
            row = rows[some] - number * self.size
            told[at] = self._rows_of(number).tell(row, rounds[some], losses[at], graph, learn=learn)
            first = last
        if order is None:
            return told
        observed = np.empty(losses.size)
        observed[of] = told
        return observed

    def cancel(self, rounds: Integers, rows: Integers) -> None:
        """Give up decisions, which are named by the rounds and the rows of their keys."""
        for number, some in self._in_order(rows)[1]:
            self._rows_of(number).cancel(rows[some] - number * self.size, rounds[some])

    def _rows_of(self, number: int) -> RowsOfKeys:
        """Return a block that is about to change."""
        self._changed.add(number)
        return self._awake[number].rows

    def _in_order(self, rows: Integers) -> tuple[Integers | None, list[tuple[int, slice | Integers]]]:
        """Return the places of keys block after block, None if that is how they come; and which are in each block."""
        of = rows // self.size
        if (np.diff(of) >= 0).all():
            numbers, first = np.unique(of, return_index=True)
            ends = itertools.pairwise([*first.tolist(), of.size])
            return None, [(number, slice(*some)) for number, some in zip(numbers.tolist(), ends, strict=True)]
        parts = [(number, np.flatnonzero(of == number)) for number in np.unique(of).tolist()]
        return np.concatenate([places for _, places in parts]), [*parts]

    def add(self, keys: list[Key], rows: Integers) -> None:
        """Add new keys before they are asked for; their rows ascend."""
        for number, places in self._divided(rows):
            self._awake[number].add(keys if places is None else [keys[place] for place in places.tolist()])
            self._changed.add(number)

    def outlook(self, keys: list[Key], rows: Integers, graph: FeedbackGraph | None) -> Floats:
        """Return with which probabilities each key would play next."""
        p = np.empty((len(keys), self._begin[1].n_arms))
        for number, places in self._divided(rows):
            at = np.arange(len(keys)) if places is None else places
            p[at] = self._awake[number].outlook([keys[place] for place in at.tolist()], graph)
        return p

    def observe(self, decision: Batch, row: int) -> Floats:
        """Return with which probability each arm that a decision reveals would be revealed."""
        return self._awake[row // self.size].observe_probabilities(decision)

    def best(self, keys: list[Key], rows: Integers) -> list[int | None]:
        """Return the arm with the least mean of each key, None where nothing was seen."""
        found: list[int | None] = [None] * len(keys)
        for number, places in self._divided(rows):
            at = range(len(keys)) if places is None else places.tolist()
            table = self._awake[number].estimates([keys[k] for k in at]).best.reshape(len(at), -1)
            for place, flags in zip(at, table, strict=True):
                found[place] = int(flags.argmax()) if flags.any() else None
        return found

    def together(self) -> Family:
        """Return all keys as one family; they are awake."""
        if not self._awake:
            return self._new()
        return Family.join([self._awake[number] for number in sorted(self._awake)])

    def _divided(self, rows: Integers) -> Iterator[tuple[int, Integers | None]]:
        """Yield the number of each block that keys are in, and their places; None if all are in one."""
        of = rows // self.size
        numbers = np.unique(of).tolist()
        for number in numbers:
            yield number, np.flatnonzero(of == number) if len(numbers) > 1 else None

    def leave(self) -> dict[int, bytes]:
        """Return those that have changed, to be written; until `stay` or `left` is called they are not dropped."""
        self._leaving |= {number: self._packed(number) for number in sorted(self._changed)}
        self._changed = set()
        return self._leaving

    def left(self, written: Mapping[int, bytes], seq: int) -> None:
        """Take notice that what `leave` returned is in the database, in a snapshot behind an event."""
        self._checksums |= {number: data[-_CHECKSUM:] for number, data in written.items()}
        self._leaving, self._saved = {}, seq

    def stay(self) -> None:
        """Take notice that nothing was written."""
        self._changed |= self._leaving.keys()
        self._leaving = {}

    def checksums(self) -> np.ndarray:
        """Return the checksum of each block, as it would be written now."""
        fresh = self._leaving | {number: self._packed(number) for number in self._changed}
        found = self._checksums | {number: data[-_CHECKSUM:] for number, data in fresh.items()}
        return np.frombuffer(b"".join(found[number] for number in sorted(found)), np.uint8).reshape(-1, _CHECKSUM)

    def resume(self, checksums: np.ndarray, seq: int) -> None:
        """Go on from blocks that are in the database."""
        self._checksums = {number: row.tobytes() for number, row in enumerate(checksums)}
        self._saved = seq

    def begin(self, given: Mapping[int, bytes]) -> None:
        """Take blocks that an experiment begins with, and that are not in the database."""
        self._checksums = {number: data[-_CHECKSUM:] for number, data in given.items()}
        self._awake |= {number: self._read(number, data) for number, data in given.items()}
        self._changed |= given.keys()

    def copied(self) -> dict[int, bytes]:
        """Return all blocks, which are awake, as they are now."""
        return {number: self._packed(number) for number in sorted(self._awake)}

    def _packed(self, number: int) -> bytes:
        header, arrays = self._awake[number].contents()
        _tidy(header, arrays)
        return state_file.pack(header, arrays)


def _tidy(header: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
    """Let equal states be equal bytes: graphs in one order."""
    if not arrays["pending.arm"].size:
        return
    graphs = state_file.read_graphs("a block", header, arrays)
    if len(graphs) <= 2:
        return
    order = [0, *sorted(range(1, len(graphs)), key=lambda g: (graphs[g].content_hash, graphs[g].representation))]
    # Even if they are in order already: what is written anew comes behind the other arrays.
    header["graphs"] = [header["graphs"][g] for g in order]
    for name in [name for name in arrays if name.startswith("graph.")]:
        del arrays[name]
    for place, g in enumerate(order):
        arrays |= {f"graph.{place}.{name}": array for name, array in state_file.graph_to_arrays(graphs[g]).items()}
    arrays["pending.graph"] = np.argsort(order)[arrays["pending.graph"]]
