"""A large set of arms without a conflict, quickly and without a proof: swaps, and now and then a push.

An arm outside of the set that conflicts with none in it comes in. If there is none, one that conflicts with a single
one takes its place, an arm that was moved long ago first. Every so often a random arm is forced in, so that the search
leaves where it is stuck.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from sidelong._jit import kernel, rare_kernel
from sidelong.graphs.solvers.budget import call

if TYPE_CHECKING:
    from sidelong.graphs.arrays import Integers
    from sidelong.graphs.solvers.conflicts import Conflicts
    from sidelong.numerics import Whole

_ONE = np.uint64(1)
_LOOKS = 12  # at how many arms before one is chosen


class SearchRoom(NamedTuple):
    """The set as it is, and the arms outside by how many in it they conflict with."""

    inside: np.ndarray  #: bool, (n,)
    conflicts: np.ndarray  #: int32, (n,); with arms in the set
    lists: np.ndarray  #: int32, (2, n); arms outside with no conflict, and with one
    size: np.ndarray  #: int64, (3,); of both lists, and of the set
    place: np.ndarray  #: int32, (n,); where an arm is in its list
    moved: np.ndarray  #: int64, (n,); the step in which it was moved
    best: np.ndarray  #: bool, (n,)
    state: np.ndarray  #: int64, (3,); the size of the best set, steps so far, random bits


@kernel
def _next(state: np.uint64) -> np.uint64:
    """Return the next random word: Marsaglia's xorshift."""
    state ^= state << np.uint64(13)
    state ^= state >> np.uint64(7)
    return state ^ (state << np.uint64(17))


@kernel
def _enlist(room: SearchRoom, v: Whole) -> None:
    k = room.conflicts[v]
    if k <= 1:
        room.place[v] = room.size[k]
        room.lists[k, room.size[k]] = v
        room.size[k] += 1


@kernel
def _strike(room: SearchRoom, v: Whole) -> None:
    k = room.conflicts[v]
    if k <= 1:
        room.size[k] -= 1
        last = np.int64(room.lists[k, room.size[k]])
        room.lists[k, room.place[v]] = last
        room.place[last] = room.place[v]


@rare_kernel
def _move(conflicts: Conflicts, room: SearchRoom, v: Whole, by: Whole) -> None:
    """Put in an arm that has no conflict (by 1), or take one out (by -1)."""
    if by > 0:
        _strike(room, v)
    room.inside[v] = by > 0
    room.size[2] += by
    for e in range(conflicts.start[v], conflicts.start[v + 1]):
        u = np.int64(conflicts.targets[e])
        _strike(room, u)
        room.conflicts[u] += by
        _enlist(room, u)
    if by < 0:
        _enlist(room, v)


@rare_kernel
def begin(conflicts: Conflicts, order: np.ndarray, room: SearchRoom) -> None:
    """Put in the arms in order, as far as they go."""
    for k in range(order.size):
        v = np.int64(k)
        room.place[v] = v
        room.lists[0, v] = v
    room.size[0] = order.size
    for k in range(order.size):
        v = order[k]
        if room.conflicts[v] == 0:
            _move(conflicts, room, v, np.int64(1))
    _keep(room)


@rare_kernel
def improve(conflicts: Conflicts, room: SearchRoom, steps: int) -> None:
    """Search on for some steps, and write the best set found."""
    random = np.uint64(room.state[2])
    for step in range(room.state[1], room.state[1] + steps):
        random = _next(random)
        v = _pick(room, random)
        if not room.inside[v]:
            for e in range(conflicts.start[v], conflicts.start[v + 1]):
                u = np.int64(conflicts.targets[e])
                if room.inside[u]:
                    _move(conflicts, room, u, np.int64(-1))
                    room.moved[u] = step
            _move(conflicts, room, v, np.int64(1))
            room.moved[v] = step
        if room.size[2] > room.state[0]:
            _keep(room)
    room.state[1] += steps
    room.state[2] = np.int64(random >> _ONE)


@kernel
def _keep(room: SearchRoom) -> None:
    room.state[0] = room.size[2]
    for v in range(room.best.size):
        room.best[v] = room.inside[v]


@kernel
def _pick(room: SearchRoom, random: np.uint64) -> Whole:
    """Return an arm to move in: one without a conflict, else with a single one, and now and then any."""
    k = 0 if room.size[0] > 0 else 1
    size = room.size[k]
    if k == 1 and (size == 0 or random % np.uint64(2 * room.size[2] + 8) == np.uint64(0)):
        return np.int64((random >> np.uint64(20)) % np.uint64(room.inside.size))
    oldest = np.int64(-1)
    for _ in range(min(_LOOKS, size)):
        random = _next(random)
        v = np.int64(room.lists[k, np.int64(random % np.uint64(size))])
        if oldest < 0 or room.moved[v] < room.moved[oldest]:
            oldest = v
    return oldest


class LocalSearch:
    """Looks for a large set without a conflict, the same way every time."""

    def __init__(self, conflicts: Conflicts) -> None:
        n = conflicts.n
        self._conflicts = conflicts
        self._room = SearchRoom(
            inside=np.zeros(n, np.bool_),
            conflicts=np.zeros(n, np.int32),
            lists=np.zeros((2, n), np.int32),
            size=np.zeros(3, np.int64),
            place=np.zeros(n, np.int32),
            moved=np.zeros(n, np.int64),
            best=np.zeros(n, np.bool_),
            state=np.array([0, 0, 0x1E3779B97F4A7C15]),
        )
        order = np.argsort(np.diff(conflicts.start), kind="stable")
        call(begin, conflicts, order, self._room)

    def run(self, steps: int) -> Integers:
        """Make some more steps; return the best set so far, ascending."""
        call(improve, self._conflicts, self._room, steps)
        return np.flatnonzero(self._room.best)
