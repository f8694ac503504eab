"""The largest set of arms without a directed cycle, by branch and bound over sets of 64 arms a word, in slices.

To *take* an arm is to join all that lead to it with all that it leads to, and to leave it out of the graph; an arm that
leads to itself then is dropped. So a node of the search is a smaller graph. At each node, again and again, an arm that
nothing leads to, or that leads to nothing, is taken; and so is one with a single arm before or after it, since every
cycle through it passes through that one (H. Levy and D. Low, "A contraction algorithm for finding small cycle cutsets",
Journal of Algorithms 9, 1988).

Bounded is what is left by disjoint cliques, of which all but one arm go, and disjoint cycles, of which one goes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from sidelong._jit import kernel, rare_kernel
from sidelong.graphs.solvers import bits
from sidelong.graphs.solvers.budget import Search, call

if TYPE_CHECKING:
    from sidelong.graphs.arrays import Flags, Integers
    from sidelong.numerics import Whole

MOST_ARMS = 512
_ZERO = np.uint64(0)
_ONE = np.uint64(1)


class AcyclicPath(NamedTuple):
    """The graphs on the path from the root to a node, the arms taken on it, and room to work in."""

    after: np.ndarray  #: uint64, (depths, n, words); what each arm leads to
    before: np.ndarray  #: uint64, (depths, n, words); what leads to each arm
    alive: np.ndarray  #: uint64, (depths, words)
    taken: np.ndarray  #: int64, (n,)
    size: np.ndarray  #: int64, (depths,); how many arms are taken at each depth
    branch: np.ndarray  #: int64, (depths,); the arm that was taken, to be dropped now; -1 if the node is new
    best: np.ndarray  #: int64, (n,)
    state: np.ndarray  #: int64, (3,); depth, size of the best set, nodes
    rooms: np.ndarray  #: uint64, (3, words)
    queue: np.ndarray  #: int64, (n,)
    parent: np.ndarray  #: int64, (n,)


@rare_kernel
def search(path: AcyclicPath, most: int) -> None:
    """Visit at most `most` nodes. The search has ended when the depth is -1."""
    state = path.state
    depth = state[0]
    nodes = 0
    while depth >= 0:
        if path.branch[depth] >= 0:  # the second branch takes the place of the node
            _drop(path, depth, path.branch[depth])
            path.branch[depth] = -1
        if nodes == most:
            break
        nodes += 1
        _simplify(path, depth)
        size = path.size[depth]
        if bits.is_empty(path.alive[depth]):
            if size > state[1]:
                state[1] = size
                for k in range(size):
                    path.best[k] = path.taken[k]
            depth -= 1
        elif size + _bound(path, depth) <= state[1]:
            depth -= 1
        else:
            v = _choose(path, depth)
            path.branch[depth] = v
            _copy_down(path, depth)
            depth += 1
            _take(path, depth, v)
    state[0] = depth
    state[2] += nodes


@kernel
def _copy_down(path: AcyclicPath, depth: Whole) -> None:
    v = bits.following(path.alive[depth], np.int64(0))
    while v >= 0:
        bits.assign(path.after[depth, v], path.after[depth + 1, v])
        bits.assign(path.before[depth, v], path.before[depth + 1, v])
        v = bits.following(path.alive[depth], v + 1)
    bits.assign(path.alive[depth], path.alive[depth + 1])
    path.size[depth + 1] = path.size[depth]
    path.branch[depth + 1] = -1


@rare_kernel
def _drop(path: AcyclicPath, depth: Whole, v: Whole) -> None:
    """Take an arm out of the graph; its own rows stay as they are."""
    bits.discard(path.alive[depth], v)
    u = bits.following(path.before[depth, v], np.int64(0))
    while u >= 0:
        bits.discard(path.after[depth, u], v)
        u = bits.following(path.before[depth, v], u + 1)
    u = bits.following(path.after[depth, v], np.int64(0))
    while u >= 0:
        bits.discard(path.before[depth, u], v)
        u = bits.following(path.after[depth, v], u + 1)


@rare_kernel
def _take(path: AcyclicPath, depth: Whole, v: Whole) -> None:
    """Take an arm into the set."""
    path.taken[path.size[depth]] = v
    path.size[depth] += 1
    after, before = path.after[depth], path.before[depth]
    _drop(path, depth, v)
    u = bits.following(after[v], np.int64(0))
    while u >= 0:
        if bits.has(before[v], u):
            _drop(path, depth, u)
            bits.discard(after[v], u)
            bits.discard(before[v], u)
        u = bits.following(after[v], u + 1)
    _join(after[v], before[v], before)
    _join(before[v], after[v], after)


@kernel
def _join(some: np.ndarray, others: np.ndarray, rows: np.ndarray) -> None:
    """Add a set to the row of each of some arms."""
    u = bits.following(some, np.int64(0))
    while u >= 0:
        for w in range(others.size):
            rows[u, w] |= others[w]
        u = bits.following(some, u + 1)


@rare_kernel
def _simplify(path: AcyclicPath, depth: Whole) -> None:
    changed = True
    while changed:
        changed = False
        v = bits.following(path.alive[depth], np.int64(0))
        while v >= 0:
            if bits.count(path.after[depth, v]) <= 1 or bits.count(path.before[depth, v]) <= 1:
                _take(path, depth, v)
                changed = True
            v = bits.following(path.alive[depth], v + 1)


@rare_kernel
def _bound(path: AcyclicPath, depth: Whole) -> Whole:
    """Return how many of the arms that are left a set without a cycle has at most."""
    left, single = path.rooms[0], path.rooms[1]
    bits.assign(path.alive[depth], left)
    bits.clear(single)
    bound = 0
    v = bits.following(left, np.int64(0))
    while v >= 0:
        bound += 1
        if not _cut_clique(path, depth, v, left):
            bits.add(single, v)
        v = bits.following(left, v + 1)
    v = bits.following(single, np.int64(0))
    while v >= 0:
        if _cut_cycle(path, depth, v, single):
            bound -= 1
        v = bits.following(single, v + 1)
    return bound


@kernel
def _cut_clique(path: AcyclicPath, depth: Whole, v: Whole, within: np.ndarray) -> bool:
    """Take a clique around v, its lowest arm, out of a set; tell whether it has another arm."""
    room = path.rooms[2]
    bits.assign(within, room)
    larger = False
    u = v
    while u >= 0:
        bits.discard(within, u)
        for w in range(room.size):
            room[w] &= path.after[depth, u, w] & path.before[depth, u, w]
        u = bits.following(room, u + 1)
        if u >= 0:
            larger = True
    return larger


@rare_kernel
def _cut_cycle(path: AcyclicPath, depth: Whole, v: Whole, within: np.ndarray) -> bool:
    """Take a shortest cycle through v out of a set, or v alone; tell whether there is one."""
    queue, parent = path.queue, path.parent
    seen = path.rooms[2]
    bits.clear(seen)
    bits.add(seen, v)
    queue[0] = v
    waiting = 1
    k = 0
    while k < waiting:
        u = queue[k]
        k += 1
        if bits.has(path.after[depth, u], v):
            while u != v:
                bits.discard(within, u)
                u = parent[u]
            bits.discard(within, v)
            return True
        for w in range(seen.size):
            new = path.after[depth, u, w] & within[w] & ~seen[w]
            seen[w] |= new
            while new != _ZERO:
                queue[waiting] = 64 * w + bits.lowest_bit(new)
                parent[queue[waiting]] = u
                waiting += 1
                new &= new - _ONE
    bits.discard(within, v)
    return False


@kernel
def _choose(path: AcyclicPath, depth: Whole) -> Whole:
    """Return the arm with the most ways through it."""
    best = np.int64(-1)
    most = np.int64(-1)
    v = bits.following(path.alive[depth], np.int64(0))
    while v >= 0:
        ways = np.int64(bits.count(path.before[depth, v]) * bits.count(path.after[depth, v]))
        if ways > most:
            most = ways
            best = np.int64(v)
        v = bits.following(path.alive[depth], v + 1)
    return best


class AcyclicSearch(Search):
    """Looks for a largest acyclic set of at most 512 arms."""

    def __init__(self, reveals: Flags, known: Integers) -> None:
        """Begin with a matrix, of which the diagonal does not matter, and an acyclic set."""
        n = reveals.shape[0]
        words = bits.words_for(n)
        arcs = reveals & ~np.eye(n, dtype=np.bool_)
        self._path = path = AcyclicPath(
            after=np.zeros((n + 1, n, words), np.uint64),
            before=np.zeros((n + 1, n, words), np.uint64),
            alive=np.zeros((n + 1, words), np.uint64),
            taken=np.zeros(n, np.int64),
            size=np.zeros(n + 1, np.int64),
            branch=np.full(n + 1, -1),
            best=np.zeros(n, np.int64),
            state=np.array([0, known.size, 0]),
            rooms=np.zeros((3, words), np.uint64),
            queue=np.zeros(n, np.int64),
            parent=np.zeros(n, np.int64),
        )
        path.after[0], path.before[0] = bits.pack(arcs), bits.pack(arcs.T)
        path.alive[0] = bits.all_of(n)
        path.best[: known.size] = known
        self.nodes = 1 + 300_000 // n**2

    def visit(self, nodes: int) -> None:
        """Visit at most so many nodes."""
        call(search, self._path, nodes)

    @property
    def ended(self) -> bool:
        """Whether the best set is a largest one."""
        return bool(self._path.state[0] < 0)

    @property
    def best(self) -> Integers:
        """The best set so far, ascending."""
        return np.sort(self._path.best[: self._path.state[1]])
