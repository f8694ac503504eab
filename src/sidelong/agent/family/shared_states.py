"""States that keys have in common: those of keys that were asked the same and told nothing yet.

A million new keys begin with one state, and the first `ask` leads most of them to one other. To write it a million
times would take most of the time of that `ask`. So a key has a row of its own only when its state is no other key's.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt

    Words = npt.NDArray[np.uint64]

#: So many states are kept. A key whose state is another one has its own.
_MANY = 64


class Common:
    """A few states by their places, and where a question leads from each."""

    def __init__(self, size: int) -> None:
        self.states = np.zeros((_MANY, size), np.uint64)
        self._places: dict[bytes, int] = {}
        self._after: dict[tuple[int, int], int] = {}

    def place(self, state: Words) -> int:
        """Return the place of a state, which is added if there is room for it; -1 if there is none."""
        name = state.tobytes()
        if name not in self._places and len(self._places) < _MANY:
            self.states[len(self._places)] = state
            self._places[name] = len(self._places)
        return self._places.get(name, -1)

    def after(self, place: int, graph: int) -> int | None:
        """Return the place of the state that an `ask` with the graph of this key leads to; None if nobody knows."""
        return self._after.get((place, graph))

    def expect(self, place: int, graph: int, state: Words) -> int:
        """Note the state that such an `ask` led to for one key, and return its place."""
        self._after[place, graph] = made = self.place(state)
        return made
