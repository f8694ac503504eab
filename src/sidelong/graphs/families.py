"""Named families of graphs. In all of them every arm reveals itself.

Each docstring gives five numbers of the family, in this order. *Independence* is the most arms with no edge between any
two of them. *Acyclic* is the most arms with no directed cycle among them. *Strong independence* is the most arms no two
of which reveal each other. *Domination* is the fewest arms that together reveal all. *Clique cover* is the fewest
groups, in each of which all arms reveal each other. The first three are equal in an undirected graph.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from sidelong.checks import check_number, check_whole
from sidelong.errors import GraphError
from sidelong.graphs.convert import MAX_ARMS
from sidelong.graphs.graph import FeedbackGraph
from sidelong.graphs.layout import MAX_ARCS
from sidelong.graphs.makers import family
from sidelong.tables import are_several

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt


@family(n="whole", size=lambda n: (n, 0))
def complete(n: int) -> FeedbackGraph:
    """Let every arm reveal every arm: full information. Numbers: 1, 1, 1, 1, 1."""
    n = _size("complete", n, "n", 1)
    return FeedbackGraph.from_intervals(np.zeros(n, np.int64), np.full(n, n)).named(f"complete({n})")


@family(n="whole", size=lambda n: (n, 0))
def self_loops(n: int) -> FeedbackGraph:
    """Let every arm reveal itself alone: a bandit. Numbers: n, n, n, n, n."""
    n = _size("self_loops", n, "n", 1)
    return FeedbackGraph.from_intervals(np.arange(n), np.arange(n) + 1).named(f"self_loops({n})")


@family(n="whole", hub="whole", size=lambda n, **_: (n, 3 * n))
def star(n: int, hub: int = 0) -> FeedbackGraph:
    """Let the hub and each other arm reveal each other. Numbers (n >= 3): n-1, n-1, n-1, 1, n-1."""
    return _undirected(_spokes("star", n, hub), n, f"star({n}{_hub(hub)})")


@family(n="whole", hub="whole", size=lambda n, **_: (n, 2 * n))
def out_star(n: int, hub: int = 0) -> FeedbackGraph:
    """Let the hub reveal every arm. Numbers (n >= 3): n-1, n, n, 1, n."""
    spokes = _spokes("out_star", n, hub)
    return FeedbackGraph.from_edges(spokes, n, self_loops=True).named(f"out_star({n}{_hub(hub)})")


@family(n="whole", hub="whole", size=lambda n, **_: (n, 2 * n))
def in_star(n: int, hub: int = 0) -> FeedbackGraph:
    """Let every arm reveal the hub. Numbers (n >= 3): n-1, n, n, n-1, n."""
    spokes = _spokes("in_star", n, hub)[:, ::-1]
    return FeedbackGraph.from_edges(spokes, n, self_loops=True).named(f"in_star({n}{_hub(hub)})")


@family(n="whole", size=lambda n: (n, 0))
def path(n: int) -> FeedbackGraph:
    """Let each arm reveal the one before and the one after it.

    Numbers: ceil(n/2) three times, ceil(n/3), ceil(n/2).
    """
    return _band("path", n, 1, 1).named(f"path({n})")


@family(n="whole", size=lambda n: (n, 0))
def directed_path(n: int) -> FeedbackGraph:
    """Let each arm reveal the one after it. Numbers: ceil(n/2), n, n, ceil(n/2), n."""
    return _band("directed_path", n, 0, 1).named(f"directed_path({n})")


@family(n="whole", size=lambda n: (n, 3 * n))
def cycle(n: int) -> FeedbackGraph:
    """Put the arms around a circle; each reveals both neighbours.

    Numbers (n >= 4; n = 3 is complete): floor(n/2) three times, ceil(n/3), ceil(n/2).
    """
    return _around("cycle", n, (-1, 1), 3).named(f"cycle({n})")


@family(n="whole", size=lambda n: (n, 2 * n))
def directed_cycle(n: int) -> FeedbackGraph:
    """Put the arms around a circle; each reveals the next one. Numbers: floor(n/2), n-1, n, ceil(n/2), n."""
    return _around("directed_cycle", n, (1,), 3).named(f"directed_cycle({n})")


@family(a="whole", b="whole", size=lambda a, b: (a + b, 2 * a * b + a + b))
def complete_bipartite(a: int, b: int) -> FeedbackGraph:
    """Let each of the first `a` arms and each of the other `b` reveal each other.

    Numbers: max(a, b) three times, min(2, a, b), max(a, b).
    """
    a, b = _size("complete_bipartite", a, "a", 1), _size("complete_bipartite", b, "b", 1)
    name = f"complete_bipartite({a}, {b})"
    _refuse_above(name, 2 * a * b)
    first, second = np.repeat(np.arange(a), b), np.tile(np.arange(a, a + b), a)
    return _undirected(np.column_stack([first, second]), a + b, name)


@family(sizes="list", size=lambda sizes: (sum(sizes), 0))
def cliques(sizes: Sequence[int]) -> FeedbackGraph:
    """Divide the arms into groups that reveal each other, such as ``cliques([4, 3, 3])``.

    Numbers, with k groups: k, k, k, k, k.
    """
    if not are_several(sizes):
        raise GraphError(f"cliques takes a list of sizes, such as [4, 3, 3], not {sizes!r}.")
    listed = [_size("cliques", size, "each size", 1) for size in sizes]
    _size("cliques", len(listed), "the number of sizes", 1)
    _size("cliques", sum(listed), "the sum of the sizes", 1)
    end = np.repeat(np.cumsum(listed), listed)
    if len(listed) > 2 and len(set(listed)) == 1:
        shown = f"[{listed[0]}] * {len(listed)}"
    else:
        shown = f"[{', '.join(map(str, listed[:9]))}{', ...' if len(listed) > 9 else ''}]"
    return FeedbackGraph.from_intervals(end - np.repeat(listed, listed), end).named(f"cliques({shown})")


@family(n="whole", size=lambda n: (n, 0))
def transitive_tournament(n: int) -> FeedbackGraph:
    """Let each arm reveal itself and every later one. Numbers: 1, n, n, 1, n."""
    n = _size("transitive_tournament", n, "n", 1)
    return nested(n, reveals="higher").named(f"transitive_tournament({n})")


@family(n="whole", size=lambda n: (n, n * (n // 2 + 1)))
def rotational_tournament(n: int) -> FeedbackGraph:
    """Put the arms, an odd number, around a circle; each reveals the next (n-1)/2.

    Numbers: 1, (n+1)/2, n, 2, n.
    """
    if _size("rotational_tournament", n, "n", 3) % 2 == 0:
        raise GraphError(
            f"rotational_tournament takes an odd n, so that between two arms one reveals the other; not {n}."
        )
    return _around("rotational_tournament", n, range(1, n // 2 + 1), 3).named(f"rotational_tournament({n})")


@family(n="whole", k="whole", size=lambda n, k: (n, n * (2 * k + 1)))
def circulant(n: int, k: int) -> FeedbackGraph:
    """Put the arms around a circle; each reveals k neighbours on each side; n >= 2k+2.

    Numbers: floor(n/(k+1)) three times, ceil(n/(2k+1)), ceil(n/(k+1)).
    """
    k = _size("circulant", k, "k", 0)
    return _around("circulant", n, range(-k, k + 1), 2 * k + 2).named(f"circulant({n}, {k})")


@family(n="whole", k="whole", size=lambda n, k: (n, n * (k + 1)))
def directed_circulant(n: int, k: int) -> FeedbackGraph:
    """Put the arms around a circle; each reveals the next k; n >= 2k+1.

    Numbers: floor(n/(k+1)), n-k, n, ceil(n/(k+1)), n.
    """
    k = _size("directed_circulant", k, "k", 0)
    return _around("directed_circulant", n, range(k + 1), 2 * k + 1).named(f"directed_circulant({n}, {k})")


@family(n="whole", size=lambda n: (n, n * n))
def cocktail_party(n: int) -> FeedbackGraph:
    """Pair the arms, 0 and 1, 2 and 3, ...; each reveals all but its partner. Numbers: 2, 2, 2, 2, 2."""
    if _size("cocktail_party", n, "n", 4) % 2:
        raise GraphError(f"cocktail_party takes an even n, because arms come in pairs; not {n}.")
    _refuse_above(f"cocktail_party({n})", n * n)
    matrix = np.ones((n, n), np.bool_)
    matrix[np.arange(n), np.arange(n) ^ 1] = False
    return FeedbackGraph.from_matrix(matrix).named(f"cocktail_party({n})")


@family(n="whole", size=lambda n: (n, 5 * n))
def wheel(n: int) -> FeedbackGraph:
    """Add to a cycle of n-1 arms a hub, arm 0, that reveals and is revealed by each of them; n >= 5.

    Numbers: floor((n-1)/2) three times, 1, ceil((n-1)/2).
    """
    n = _size("wheel", n, "n", 5)
    rim = np.arange(1, n)
    edges = [np.column_stack([rim, np.zeros_like(rim)]), np.column_stack([rim, rim % (n - 1) + 1])]
    return _undirected(np.concatenate(edges), n, f"wheel({n})")


@family(d="whole", size=lambda d: (_corners(d), _corners(d) * (d + 1)))
def hypercube(d: int) -> FeedbackGraph:
    """Take the 2**d corners of a cube of dimension d; arms that differ in one bit reveal each other.

    Numbers: 2**(d-1) three times, no formula (1, 2, 2, 4 for d = 1 to 4), 2**(d-1).
    """
    d = _size("hypercube", d, "d", 1)
    _refuse_above(f"hypercube({d})", _corners(d) * (d + 1))
    corner = np.arange(1 << d)
    edges = [np.column_stack([corner, corner ^ (1 << bit)]) for bit in range(d)]
    return _undirected(np.concatenate(edges), 1 << d, f"hypercube({d})")


@family(rows="whole", columns="whole", size=lambda rows, columns: (rows * columns, 5 * rows * columns))
def grid(rows: int, columns: int) -> FeedbackGraph:
    """Lay the arms out as a grid, row by row; neighbours in a row or a column reveal each other.

    Numbers, with n = rows * columns: ceil(n/2) three times, no simple formula (3 for 3 x 3, 4 for 3 x 4),
    ceil(n/2).
    """
    rows, columns = _size("grid", rows, "rows", 1), _size("grid", columns, "columns", 1)
    n = _size("grid", rows * columns, "rows * columns", 1)
    arm = np.arange(n).reshape(rows, columns)
    along = np.column_stack([arm[:, :-1].ravel(), arm[:, 1:].ravel()])
    across = np.column_stack([arm[:-1].ravel(), arm[1:].ravel()])
    return _undirected(np.concatenate([along, across]), n, f"grid({rows}, {columns})")


@family(size=lambda: (10, 40))
def petersen() -> FeedbackGraph:
    """Join a pentagon, 0 to 4, and a pentagram, 5 to 9: the Petersen graph. Numbers: 4, 4, 4, 3, 5."""
    i = np.arange(5)
    edges = [
        np.column_stack([i, (i + 1) % 5]),
        np.column_stack([i, i + 5]),
        np.column_stack([i + 5, (i + 2) % 5 + 5]),
    ]
    return _undirected(np.concatenate(edges), 10, "petersen()")


@family(n="whole", reveals="text", size=lambda n, **_: (n, 0))
def nested(n: int, reveals: str = "lower") -> FeedbackGraph:
    """Let each arm reveal itself and every lower one, as an order of 20 units shows what a smaller one costs.

    With ``reveals="higher"``, itself and every higher one. Numbers: 1, n, n, 1, n.
    """
    n = _size("nested", n, "n", 1)
    arm = np.arange(n)
    if reveals == "lower":
        return FeedbackGraph.from_intervals(np.zeros(n, np.int64), arm + 1).named(f"nested({n})")
    if reveals == "higher":
        return FeedbackGraph.from_intervals(arm, np.full(n, n)).named(f'nested({n}, reveals="higher")')
    raise GraphError(f'nested takes reveals="lower" or reveals="higher", not {reveals!r}.')


@family(n="whole", width="whole", size=lambda n, **_: (n, 0))
def banded(n: int, width: int) -> FeedbackGraph:
    """Let each arm reveal those at most `width` away.

    Numbers: ceil(n/(width+1)) three times, ceil(n/(2 width+1)), ceil(n/(width+1)).
    """
    width = _size("banded", width, "width", 0)
    return _band("banded", n, width, width).named(f"banded({n}, {width})")


@family(n="whole", r="number", seed="whole", directed="flag", size=lambda n, **_: (n, n * n))
def erdos_renyi(n: int, r: float, seed: int, *, directed: bool = False) -> FeedbackGraph:
    """Let each two arms reveal each other with chance `r`; if directed, draw each edge on its own.

    The graph depends on the arguments alone: not on the machine, nor on the version of NumPy.

    Numbers, for large n: independence is about 2 ln(nr) / -ln(1-r). If directed, put 1-(1-r)**2 in the place
    of r for it, and r**2 for strong independence.
    """
    n = _size("erdos_renyi", n, "n", 1)
    r = check_number(GraphError, "r of erdos_renyi", r, least=0, most=1)
    seed = _size("erdos_renyi", seed, "seed", 0, 2**64 - 1)
    name = f"erdos_renyi({n}, {r:g}, seed={seed}{', directed=True' if directed else ''})"
    _refuse_above(name, int(n * n * r))
    # Raw words are the one thing that NumPy keeps the same for ever; 53 bits of each are compared with r.
    words, below = np.random.Philox(key=seed), int(r * 2**53)
    rows = []
    for i in range(n):
        others = np.arange(i + 1, n) if not directed else np.delete(np.arange(n), i)
        drawn = others[(words.random_raw(others.size) >> np.uint64(11)) < below]
        rows.append(np.column_stack([np.full(drawn.size, i), drawn]))
    edges = np.concatenate(rows)
    return FeedbackGraph.from_edges(edges, n, undirected=not directed, self_loops=True).named(name)


def _size(family: str, value: int, name: str, least: int, most: int = MAX_ARMS) -> int:
    return check_whole(GraphError, f"{name} of {family}", value, least, most)


def _refuse_above(name: str, edges: int) -> None:
    if edges > MAX_ARCS:
        raise GraphError(
            f"{name} would have about {edges:,} edges, and at most {MAX_ARCS:,} are listed. Make it smaller."
        )


def _corners(d: int) -> int:
    return 1 << max(0, min(d, 64))


def _undirected(edges: npt.NDArray[np.int64], n: int, name: str) -> FeedbackGraph:
    return FeedbackGraph.from_edges(edges, n, undirected=True, self_loops=True).named(name)


def _spokes(family: str, n: int, hub: int) -> npt.NDArray[np.int64]:
    n, hub = _size(family, n, "n", 1), _size(family, hub, "hub", 0)
    if hub >= n:
        raise GraphError(f"{family} takes as hub one of the arms 0 to {n - 1}, not {hub}.")
    return np.column_stack([np.full(n, hub), np.arange(n)])


def _hub(hub: int) -> str:
    return f", hub={hub}" if hub else ""


def _band(family: str, n: int, before: int, after: int) -> FeedbackGraph:
    arm = np.arange(_size(family, n, "n", 1))
    return FeedbackGraph.from_intervals(np.maximum(arm - before, 0), np.minimum(arm + after + 1, n))


def _around(family: str, n: int, steps: Sequence[int], least: int) -> FeedbackGraph:
    n = _size(family, n, "n", least)
    _refuse_above(f"{family} of {n:,} arms", n * (len(steps) + 1))
    edges = np.column_stack([np.repeat(np.arange(n), len(steps)), (np.arange(n)[:, None] + list(steps)).ravel() % n])
    return FeedbackGraph.from_edges(edges, n, self_loops=True)
