"""The states of many keys: rows of words in one table, and states that several keys have in common.

The state of a learner is a NamedTuple of arrays. Of all keys together it is one table of 64-bit words: a row is laid
out like a buffer that a state of views lies on. To play a key is to copy its row into the buffer, to call the learner's
kernel with the views, and to copy the row back. What the learner only computes in (its `scratch`) comes last in the
buffer and is in no row.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt

    from sidelong.learners.interface import Learner

    Words = npt.NDArray[np.uint64]

#: So many states are held in common, and so many steps from one to another are known. A key whose state is another one
#: has its own.
MANY_STATES, _STEPS = 64, 1024


def kept_names(learner: Learner, state: Any) -> list[str]:
    """Return the names of the arrays of a state that the next round needs: all but scratch."""
    return [name for name in state._fields if name not in learner.scratch]


class Layout:
    """Where each array of a learner's state lies in a buffer of words."""

    def __init__(self, learner: Learner, state: Any) -> None:
        self.names = kept_names(learner, state)  #: of the arrays that a row has
        self._kind = type(state)
        self._places: dict[str, tuple[int, np.dtype[Any], tuple[int, ...]]] = {}
        self.size = self.kept = 0  #: of a buffer, and of a row
        for name in sorted(state._fields, key=lambda name: name not in self.names):  # stable: what is kept comes first
            array = getattr(state, name)
            self._places[name] = (self.size, array.dtype, array.shape)
            self.size += -(-array.nbytes // 8)
            if name in self.names:
                self.kept = self.size

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


class SharedStates:
    """A few states by their places, and where a question leads from each.

    A million new keys begin with one state, and the first `ask` leads most of them to one other. To write it a million
    times would take most of the time of that `ask`. So a key has a row of its own only when its state is no other
    key's.
    """

    def __init__(self, size: int, most: int = MANY_STATES) -> None:
        self.states = np.zeros((most, size), np.uint64)
        self._places: dict[bytes, int] = {}
        self._after: dict[tuple[int, int], int] = {}

    def place(self, state: Words) -> int:
        """Return the place of a state, which is added if there are not too many; -1 if there are."""
        name = state.tobytes()
        if name not in self._places and len(self._places) < len(self.states):
            self.states[len(self._places)] = state
            self._places[name] = len(self._places)
        return self._places.get(name, -1)

    def after(self, place: int, graph: int) -> int | None:
        """Return the place of the state that an `ask` with the graph of this key leads to; None if nobody knows."""
        return self._after.get((place, graph))

    def expect(self, place: int, graph: int, state: Words) -> int:
        """Note the state that such an `ask` led to for one key, and return its place."""
        if len(self._after) >= _STEPS:
            del self._after[next(iter(self._after))]  # the oldest
        self._after[place, graph] = made = self.place(state)
        return made
