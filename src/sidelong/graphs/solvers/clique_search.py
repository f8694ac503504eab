"""The largest clique of a graph by branch and bound over sets of 64 arms a word, in slices that can be interrupted.

A node of the search is a clique and the candidates that are joined with all of it. The candidates are divided into
*colours*, sets in which no two are joined, so that a clique has at most one of each colour. If the clique and as many
colours as are needed to beat the best one so far have room for some candidates, these need not be branched on.

P. San Segundo, D. Rodriguez-Losada, A. Jimenez, "An exact bit-parallel algorithm for the maximum clique problem",
Computers & Operations Research 38 (2011); the step that moves one candidate to another colour to make room is that of
E. Tomita et al., "A simple and faster branch-and-bound algorithm for finding a maximum clique", WALCOM 2010. With
weights, a candidate gives parts of its weight to several colours, each of which takes the same from all in it, as in
"A new upper bound for the maximum weight clique problem", European Journal of Operational Research (2018).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from sidelong._jit import kernel, rare_kernel
from sidelong.graphs.solvers import bits
from sidelong.graphs.solvers.budget import call

if TYPE_CHECKING:
    from sidelong.graphs.arrays import Flags, Integers
    from sidelong.graphs.solvers.budget import Budget
    from sidelong.numerics import Whole

_ZERO = np.uint64(0)
_ONE = np.uint64(1)
_SLICE = 0.02  # seconds, about


class Tree(NamedTuple):
    """Where the search stands: the path from the root to a node, and room to colour its candidates."""

    adjacency: np.ndarray  #: uint64, (n, words)
    weight: np.ndarray  #: int64, (n,)
    candidates: np.ndarray  #: uint64, (depths, words)
    branches: np.ndarray  #: int32, (depths, n); the last one is taken first
    bounds: np.ndarray  #: int32, (depths, n); colours that the candidates up to this branch need; (1, n) with weights
    left: np.ndarray  #: int64, (depths,); how many branches are left; -1 if the node is new
    clique: np.ndarray  #: int64, (depths,)
    heavy: np.ndarray  #: int64, (depths,); the weight of the clique before each depth
    best: np.ndarray  #: int64, (depths,)
    state: np.ndarray  #: int64, (4,); depth, size of the best clique, its weight, nodes
    uncolored: np.ndarray  #: uint64, (words,)
    free: np.ndarray  #: uint64, (words,)
    colors: np.ndarray  #: uint64, (depths, words)
    rest: np.ndarray  #: int64, (n,); what is left of each weight
    members: np.ndarray  #: int64, (n,)


@rare_kernel
def search(tree: Tree, most: int) -> None:
    """Visit at most `most` nodes. The search has ended when its depth is -1."""
    state = tree.state
    equal = tree.bounds.shape[0] > 1
    depth = state[0]
    nodes = 0
    while depth >= 0:
        if tree.left[depth] < 0:
            if nodes == most:
                break
            nodes += 1
            room = state[2] - tree.heavy[depth]
            tree.left[depth] = _color(tree, depth, room) if equal else _divide(tree, depth, room)
        at = tree.left[depth] - 1
        if at < 0 or (equal and depth + tree.bounds[depth, at] <= state[1]):
            depth -= 1
            continue
        heavy = tree.heavy[depth] + tree.weight[tree.branches[depth, at]]
        if _descend(tree, depth, at):
            depth += 1
            tree.heavy[depth] = heavy
        elif heavy > state[2]:
            _keep(tree, depth, heavy)
    state[0] = depth
    state[3] += nodes


@kernel
def _keep(tree: Tree, depth: Whole, heavy: Whole) -> None:
    """Write down the clique that ends at this depth as the best."""
    tree.state[1] = depth + 1
    tree.state[2] = heavy
    for k in range(depth + 1):
        tree.best[k] = tree.clique[k]


@kernel
def _descend(tree: Tree, depth: Whole, at: Whole) -> bool:
    """Take a branch; tell whether there are candidates behind it."""
    v = np.int64(tree.branches[depth, at])
    tree.left[depth] = at
    tree.left[depth + 1] = -1
    tree.clique[depth] = v
    bits.discard(tree.candidates[depth], v)
    for w in range(tree.adjacency.shape[1]):
        tree.candidates[depth + 1, w] = tree.candidates[depth, w] & tree.adjacency[v, w]
    return not bits.is_empty(tree.candidates[depth + 1])


@rare_kernel
def _color(tree: Tree, depth: Whole, room: Whole) -> Whole:
    """List the candidates for which `room` colours are not enough, each with the colours needed up to it."""
    uncolored, free = tree.uncolored, tree.free
    bits.assign(tree.candidates[depth], uncolored)
    count = 0
    color = 0
    first = bits.following(uncolored, np.int64(0))
    while first >= 0:
        if color < room:
            bits.clear(tree.colors[color])
        bits.assign(uncolored, free)
        v = first
        while v >= 0:
            bits.discard(uncolored, v)
            for w in range(v >> 6, free.size):
                free[w] &= ~tree.adjacency[v, w]
            if color < room:
                bits.add(tree.colors[color], v)
            elif not _fits(tree.adjacency, tree.colors, v, room):
                tree.branches[depth, count] = v
                tree.bounds[depth, count] = color + 1
                count += 1
            v = bits.following(free, v + 1)
        color += 1
        first = bits.following(uncolored, first + 1)
    return count


@rare_kernel
def _fits(adjacency: np.ndarray, colors: np.ndarray, v: Whole, room: Whole) -> bool:
    """Make room for v among the first colours, if that takes to move one candidate from a colour to another."""
    for a in range(room):
        u = _only_common(adjacency[v], colors[a])
        if u == -1:
            bits.add(colors[a], v)
            return True
        if u < -1:
            continue
        for b in range(room):
            if b != a and not bits.meet(adjacency[u], colors[b]):
                bits.discard(colors[a], u)
                bits.add(colors[b], u)
                bits.add(colors[a], v)
                return True
    return False


@kernel
def _only_common(a: np.ndarray, b: np.ndarray) -> Whole:
    """Return what two sets have in common: -1 if nothing, -2 if more than one."""
    found = np.int64(-1)
    for w in range(a.size):
        both = a[w] & b[w]
        if both != _ZERO:
            if found >= 0 or both & (both - _ONE) != _ZERO:
                return -2
            found = np.int64(64 * w + bits.lowest_bit(both))
    return found


@rare_kernel
def _divide(tree: Tree, depth: Whole, room: Whole) -> Whole:
    """List the candidates whose weight is not used up when colours of total weight `room` are."""
    uncolored, free = tree.uncolored, tree.free
    bits.assign(tree.candidates[depth], uncolored)
    v = bits.following(uncolored, np.int64(0))
    while v >= 0:
        tree.rest[v] = tree.weight[v]
        v = bits.following(uncolored, v + 1)
    first = bits.following(uncolored, np.int64(0))
    while room > 0 and first >= 0:
        size = 0
        part = room
        bits.assign(uncolored, free)
        v = first
        while v >= 0:
            for w in range(v >> 6, free.size):
                free[w] &= ~tree.adjacency[v, w]
            tree.members[size] = v
            size += 1
            part = min(part, tree.rest[v])
            v = bits.following(free, v + 1)
        _use_up(tree, size, part)
        room -= part
        first = bits.following(uncolored, first)
    count = 0
    v = first
    while v >= 0:
        tree.branches[depth, count] = v
        count += 1
        v = bits.following(uncolored, v + 1)
    return count


@kernel
def _use_up(tree: Tree, size: Whole, part: Whole) -> None:
    """Take a part of the weight of each member of a colour."""
    for k in range(size):
        v = tree.members[k]
        tree.rest[v] -= part
        if tree.rest[v] == 0:
            bits.discard(tree.uncolored, v)


def _order_by_degeneracy(joined: Flags) -> Integers:
    """Take away a vertex with the fewest neighbours, again and again; return the last one taken first."""
    n = joined.shape[0]
    degree = joined.sum(axis=1)
    order = np.empty(n, np.int64)
    for k in range(n - 1, -1, -1):
        v = int(degree.argmin())
        order[k] = v
        degree -= joined[v]
        degree[v] = 2 * n
    return order


class CliqueSearch:
    """Looks for a largest clique, and goes on where it was when a budget ended; weights are positive whole numbers."""

    def __init__(
        self,
        joined: Flags,
        weight: Integers,
        known: Integers,
        most: int | None = None,
    ) -> None:
        """Begin with a matrix of which vertices are joined, a clique, and a bound on the size of any."""
        n = joined.shape[0]
        self._order = _order_by_degeneracy(joined)
        self._unit = bool((weight == 1).all())
        depths = 2 + (n if most is None else min(n, most))
        words = bits.words_for(n)
        self._tree = tree = Tree(
            adjacency=bits.pack(joined[np.ix_(self._order, self._order)]),
            weight=np.ascontiguousarray(weight[self._order]),
            candidates=np.zeros((depths, words), np.uint64),
            branches=np.zeros((depths, n), np.int32),
            bounds=np.zeros((depths if self._unit else 1, n), np.int32),
            left=np.full(depths, -1),
            clique=np.zeros(depths, np.int64),
            heavy=np.zeros(depths, np.int64),
            best=np.zeros(depths, np.int64),
            state=np.zeros(4, np.int64),
            uncolored=np.zeros(words, np.uint64),
            free=np.zeros(words, np.uint64),
            colors=np.zeros((depths if self._unit else 1, words), np.uint64),
            rest=np.zeros(n, np.int64),
            members=np.zeros(n, np.int64),
        )
        tree.candidates[0] = bits.all_of(n)
        place = np.empty(n, np.int64)
        place[self._order] = np.arange(n)
        tree.best[: known.size] = place[known]
        tree.state[1:3] = known.size, weight[known].sum()
        self._nodes = 1 + 1_000_000 // n**2  # to visit in the next slice, which takes about as long as one may be late

    def run(self, budget: Budget) -> bool:
        """Search until the end, or the end of the budget; tell whether it was the end."""
        while not self.ended:
            before = budget.spent
            call(search, self._tree, self._nodes)
            if budget.ended:
                break
            if budget.spent - before < _SLICE:
                self._nodes *= 2
        return self.ended

    @property
    def ended(self) -> bool:
        """Whether the best clique is a largest one."""
        return bool(self._tree.state[0] < 0)

    @property
    def best(self) -> Integers:
        """The best clique so far, ascending."""
        return np.sort(self._order[self._tree.best[: self._tree.state[1]]])

    @property
    def upper(self) -> int | None:
        """No clique has more; None if nothing is known. Without weights only."""
        tree = self._tree
        if self.ended:
            return int(tree.state[2])
        if not self._unit or tree.left[0] < 0:
            return None
        return max(int(tree.state[1]), int(tree.bounds[0, tree.left[0]]))
