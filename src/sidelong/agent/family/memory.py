"""What a family keeps: a row for each key, and a row for each decision that waits.

The state of a learner is a NamedTuple of arrays. Of all keys together it is one table of 64-bit words: a row is laid
out like a buffer that a state of views lies on. To play a key is to copy its row into the buffer, to call the learner's
kernel with the views, and to copy the row back. What the learner only computes in (its ``scratch``) comes last in the
buffer and is in no row.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt

    from sidelong.learners.interface import Learner

    Words = npt.NDArray[np.uint64]

#: A key remembers what it was told for this many decisions, to recognise a repetition.
REMEMBERED = 4
#: The columns of `Rows.told`: round, how many losses were given, hashes of them and of their arms.
ROUND, SIZE, LOSSES, ARMS = range(4)


class Rows(NamedTuple):
    """A row for each key."""

    state: np.ndarray  #: uint64 words; not written before a key has a state that others do not have
    common: np.ndarray  #: int64: the place of its state in `Common`; -1 if it is the one in `state`
    seed: np.ndarray  #: uint64
    round: np.ndarray  #: int64: how many decisions were made
    first: np.ndarray  #: int64: the oldest decision that waits, as a row of `Outstanding`; -1 if there is none
    last: np.ndarray  #: int64: the newest one
    counts: np.ndarray  #: of the losses that were told, by arm; with the next two as in `sidelong.agent.seen`
    means: np.ndarray
    squares: np.ndarray
    told: np.ndarray  #: int64, (REMEMBERED, 4): the decisions that were told last
    scale: np.ndarray  #: best and worst, if keys have scales of their own; else of no columns


class Outstanding(NamedTuple):
    """A row for each decision that waits, and free ones."""

    key: np.ndarray  #: int64: its row of `Rows`; -1 if it is free
    round: np.ndarray  #: int64
    arm: np.ndarray  #: int64
    graph: np.ndarray  #: int64: its place in the bank
    next: np.ndarray  #: int64: the next one of the same key, -1 if there is none
    probability: np.ndarray  #: with which the arm was drawn
    p: np.ndarray  #: what `update` gets: of all arms, or of a sparing learner, of those that are revealed
    trace: np.ndarray


def new_rows(layout: Layout, n_arms: int) -> Rows:
    """Return the table of no keys."""
    longs, reals = np.empty(0, np.int64), np.empty((0, n_arms))
    counts, told = np.empty((0, n_arms), np.int64), np.empty((0, REMEMBERED, 4), np.int64)
    words = np.empty((0, layout.kept), np.uint64)
    return Rows(words, longs, np.empty(0, np.uint64), longs, longs, longs, counts, reals, reals, told, np.empty((0, 0)))


def new_waiting(n_arms: int, n_traces: int, size: int = 0) -> Outstanding:
    """Return a table of free rows."""
    key, round_, arm, graph, following = np.full((5, size), -1, np.int64)
    reals = np.empty(size), np.empty((size, n_arms)), np.empty((size, n_traces))
    return Outstanding(key, round_, arm, graph, following, *reals)


def longer(array: np.ndarray, used: int, size: int) -> np.ndarray:
    """Return an array with room for `size` rows, of which the first `used` are kept; it grows by half at least."""
    if size <= len(array):
        return array
    grown = np.zeros((max(size, min(len(array) + len(array) // 2, 2 * size)), *array.shape[1:]), array.dtype)
    grown[:used] = array[:used]
    return grown


class Layout:
    """Where each array of a learner's state lies in a buffer of words."""

    def __init__(self, learner: Learner, state: Any) -> None:
        room = learner.scratch
        names = sorted(state._fields, key=lambda name: name in room)  # stable: what is kept comes first
        self._kind = type(state)
        self._places: dict[str, tuple[int, np.dtype[Any], tuple[int, ...]]] = {}
        self.size = self.kept = 0  #: of a buffer, and of a row
        for name in names:
            array = getattr(state, name)
            self._places[name] = (self.size, array.dtype, array.shape)
            self.size += -(-array.nbytes // 8)
            if name not in room:
                self.kept = self.size
        self.names = [name for name in names if name not in room]  #: of the arrays that a row has

    def on(self, buffer: Words) -> Any:
        """Return the state whose arrays are views of a buffer."""
        return self._kind(**{name: self._view(buffer, name) for name in self._kind._fields})

    def column(self, rows: Words, name: str) -> np.ndarray:
        """Return one array of all rows, as a view."""
        first, dtype, shape = self._places[name]
        size = int(np.prod(shape, dtype=np.int64))
        if size == 0:
            return np.empty((len(rows), *shape), dtype)
        words = rows[:, first : first + -(-size * dtype.itemsize // 8)]
        flat = np.lib.stride_tricks.as_strided(  # which, unlike `view`, takes rows that lie apart
            words.view(dtype) if dtype.itemsize == 8 else words[:, :1].view(dtype),
            (len(rows), size),
            (rows.strides[0], dtype.itemsize),
        )
        return flat.reshape(len(rows), *shape) if len(shape) != 1 else flat

    def filled(self, state: Any) -> Words:
        """Return a buffer with the values of a state."""
        buffer = np.zeros(self.size, np.uint64)
        for name, array in state._asdict().items():
            self._view(buffer, name)[...] = array
        return buffer

    def _view(self, buffer: Words, name: str) -> np.ndarray:
        first, dtype, shape = self._places[name]
        size = int(np.prod(shape, dtype=np.int64))
        words = buffer[first : first + -(-size * dtype.itemsize // 8)]
        return words.view(dtype)[:size].reshape(shape)
