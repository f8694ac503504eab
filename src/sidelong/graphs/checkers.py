"""Certificates of graph numbers, and checkers that know nothing of how they were found.

A set proves that a largest set has at least as many arms, or a smallest one at most. A *cover* proves that no set has
more, and a *packing* that none has fewer: both are solutions of the dual linear program, in whole multiples of
1 / unit, so that checking them involves no rounding.

All checkers take time in proportion to the graph and the certificate (sorting apart). On intervals they list no edge.
"""

from __future__ import annotations

import math
import operator
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Literal

import numpy as np

from sidelong.graphs import layout

if TYPE_CHECKING:
    import numpy.typing as npt
    from scipy import sparse

    from sidelong.graphs.arrays import Flags, Integers
    from sidelong.graphs.graph import FeedbackGraph

    Joined = Literal["either", "mutual"]

_PAIRS = 1_000_000  # how many are looked up at a time


@dataclass(frozen=True, eq=False)
class Cover:
    """Groups of arms that cover every arm at least once, or as often as it weighs.

    The groups are cliques, of which a set has at most one arm, and, for acyclic sets, directed cycles, of which it has
    not all arms. Group g counts ``weight[g] / unit`` times, so that no set weighs more than `bound`.
    """

    start: Integers  #: group g has the arms ``arms[start[g]:start[g + 1]]``; those of a cycle in its order
    arms: Integers
    is_cycle: Flags
    weight: Integers
    unit: float  #: a power of two

    @property
    def bound(self) -> Fraction:
        """What no set exceeds."""
        most = np.where(self.is_cycle, np.diff(self.start) - 1, 1)
        return Fraction(sum(map(operator.mul, self.weight.tolist(), most.tolist()))) / Fraction(self.unit)


@dataclass(frozen=True, eq=False)
class Shares:
    """A share of each arm, as ``weight / unit``."""

    weight: Integers
    unit: int  #: a power of two

    @property
    def total(self) -> Fraction:
        """The sum of all."""
        return Fraction(sum(self.weight.tolist()), self.unit)


def is_independent(graph: FeedbackGraph, arms: npt.ArrayLike) -> bool:
    """Tell whether `arms` are different arms with no edge between any two."""
    chosen = _marked(graph, arms)
    if chosen is None:
        return False
    inside = np.flatnonzero(chosen)
    revealed = _sum_revealed(graph, chosen.astype(np.int64))[inside]
    return bool((revealed == layout.reveals_itself(graph.arrays)[inside]).all())


def is_strongly_independent(graph: FeedbackGraph, arms: npt.ArrayLike) -> bool:
    """Tell whether `arms` are different arms no two of which reveal each other."""
    chosen = _marked(graph, arms)
    if chosen is None:
        return False
    if on_intervals(graph):
        return not _two_reveal_each_other(graph, np.flatnonzero(chosen))
    inside = _among(graph, np.flatnonzero(chosen))
    return not inside.multiply(inside.T).nnz


def is_acyclic(graph: FeedbackGraph, arms: npt.ArrayLike) -> bool:
    """Tell whether `arms` are different arms without a directed cycle among them; self-loops do not count.

    On intervals that contain their own arm, a shortest cycle has two arms. Let m be the highest arm of a cycle, a the
    next one and u the one before. If u >= a then m, which reveals all from a on, reveals u, and u reveals m. If
    u < a then u, which reveals all up to m, reveals a, and m can be left out of the cycle.
    """
    chosen = _marked(graph, arms)
    if chosen is None:
        return False
    if on_intervals(graph):
        return not _two_reveal_each_other(graph, np.flatnonzero(chosen))
    from scipy.sparse import csgraph  # noqa: PLC0415  # it takes a while to load

    inside = _among(graph, np.flatnonzero(chosen))
    count = csgraph.connected_components(inside, connection="strong", return_labels=False)
    return bool(count == inside.shape[0])


def dominates(graph: FeedbackGraph, arms: npt.ArrayLike, targets: npt.ArrayLike | None = None) -> bool:
    """Tell whether `arms` are different arms that together reveal every arm, or every one of `targets`."""
    chosen = _marked(graph, arms)
    return chosen is not None and dominates_in_shares(graph, Shares(chosen.astype(np.int64), 1), targets)


def dominates_in_shares(graph: FeedbackGraph, shares: Shares, targets: npt.ArrayLike | None = None) -> bool:
    """Tell whether the shares of the arms that reveal it sum to 1 or more, for every arm or every one of `targets`."""
    if not _are_shares(graph, shares):
        return False
    seen = _sum_revealing(graph, shares.weight)
    return bool((seen[_all_or(graph, targets)] >= shares.unit).all())


def packs(graph: FeedbackGraph, shares: Shares, targets: npt.ArrayLike | None = None) -> bool:
    """Tell whether no arm reveals shares of more than 1 in all; then to reveal `targets` takes their sum of arms."""
    if not _are_shares(graph, shares):
        return False
    others = np.ones(graph.n_arms, np.bool_)
    others[_all_or(graph, targets)] = False
    return not shares.weight[others].any() and bool((_sum_revealed(graph, shares.weight) <= shares.unit).all())


def is_clique_cover(graph: FeedbackGraph, groups: npt.ArrayLike) -> bool:
    """Tell whether arms with the same number in `groups`, which has one for each arm, all reveal each other."""
    groups = np.asarray(groups)
    if groups.shape != (graph.n_arms,) or groups.dtype.kind not in "iu":
        return False
    arms = np.argsort(groups, kind="stable").astype(np.int64)
    start = np.append(np.flatnonzero(np.diff(groups[arms], prepend=groups.min() - 1)), arms.size)
    return _are_cliques(graph, arms, start, "mutual")


def covers(
    graph: FeedbackGraph,
    cover: Cover,
    joined: Joined,
    *,
    cycles: bool = False,
    weights: npt.ArrayLike | None = None,
) -> bool:
    """Tell whether a cover is what it says, so that no set of its kind weighs more than its bound.

    Args:
        graph: the graph.
        cover: the cover.
        joined: two arms of a clique are joined if "either" reveals the other, or if it is "mutual".
        cycles: whether a group may be a directed cycle: for acyclic sets, beside mutual cliques.
        weights: what each arm weighs; 1 if not given.

    """
    K, arms, size = graph.n_arms, cover.arms, np.diff(cover.start)
    if not _is_laid_out(cover, K) or (cover.is_cycle.any() and not cycles):
        return False
    group = np.repeat(np.arange(size.size), size)
    covered = np.zeros(K, np.int64)
    np.add.at(covered, arms, cover.weight[group])
    wanted = np.ones(K) if weights is None else np.asarray(weights, np.float64)
    if not (covered >= np.ldexp(wanted, round(math.log2(cover.unit)))).all():  # exact: the unit is a power of two
        return False
    after = np.arange(1, arms.size + 1)
    after[cover.start[1:] - 1] = cover.start[:-1]
    in_cycle = cover.is_cycle[group]
    if not _reveal(graph, arms[in_cycle], arms[after[in_cycle]]).all():
        return False
    return _are_cliques(graph, arms[~in_cycle], np.append(0, np.cumsum(size[~cover.is_cycle])), joined)


def _is_laid_out(cover: Cover, K: int) -> bool:
    """Tell whether groups are not empty, have arms that exist and are different, and weights that are not negative."""
    start, arms, size = cover.start, cover.arms, np.diff(cover.start)
    group = np.repeat(np.arange(size.size), np.maximum(size, 0))
    return bool(
        start[0] == 0
        and start[-1] == arms.size
        and (size > 0).all()
        and cover.is_cycle.size == cover.weight.size == size.size
        and (size[cover.is_cycle] > 1).all()
        and (cover.weight >= 0).all()
        and cover.unit > 0
        and 2 ** Fraction(round(math.log2(cover.unit))) == Fraction(cover.unit)
        and ((arms >= 0) & (arms < K)).all()
        and np.unique(group * K + arms).size == arms.size
    )


# Looking things up in a graph


def _marked(graph: FeedbackGraph, arms: npt.ArrayLike) -> Flags | None:
    """Return which arms are listed; None if one is listed twice or does not exist."""
    arms = np.atleast_1d(np.asarray(arms))
    chosen = np.zeros(graph.n_arms, np.bool_)
    if not arms.size:
        return chosen
    if arms.ndim > 1 or arms.dtype.kind not in "iu" or not ((arms >= 0) & (arms < graph.n_arms)).all():
        return None
    chosen[arms] = True
    return chosen if chosen.sum() == arms.size else None


def _all_or(graph: FeedbackGraph, targets: npt.ArrayLike | None) -> Integers:
    return np.arange(graph.n_arms) if targets is None else np.asarray(targets, np.int64)


def _are_shares(graph: FeedbackGraph, shares: Shares) -> bool:
    return shares.unit >= 1 and shares.weight.shape == (graph.n_arms,) and not (shares.weight < 0).any()


def on_intervals(graph: FeedbackGraph) -> bool:
    """Tell whether every arm reveals an interval that it is in."""
    return graph.representation == "intervals" and not graph.arms_without_self_loop.size


def _sum_revealed(graph: FeedbackGraph, value: Integers) -> Integers:
    """Return for each arm the sum over what it reveals."""
    sums = np.append(0, np.cumsum(value[graph.arrays.targets]))
    return sums[graph.arrays.stop] - sums[graph.arrays.start]  # type: ignore[no-any-return]


def _sum_revealing(graph: FeedbackGraph, value: Integers) -> Integers:
    """Return for each arm the sum over the arms that reveal it."""
    arrays = graph.arrays
    if not arrays.contiguous:
        sums = np.append(0, np.cumsum(value[arrays.sources]))
        return sums[arrays.in_stop] - sums[arrays.in_start]  # type: ignore[no-any-return]
    change = np.zeros(graph.n_arms + 1, np.int64)
    np.add.at(change, arrays.start, value)
    np.subtract.at(change, arrays.stop, value)
    return np.cumsum(change)[:-1]


def _reveal(graph: FeedbackGraph, i: Integers, j: Integers) -> Flags:
    """Tell for each pair whether i reveals j."""
    arrays = graph.arrays
    if arrays.contiguous:
        return (arrays.start[i] <= j) & (j < arrays.stop[i])
    K = graph.n_arms
    edges = np.repeat(np.arange(K), arrays.stop - arrays.start) * K + arrays.targets
    wanted = i * K + j
    at = np.minimum(np.searchsorted(edges, wanted), edges.size - 1)
    return edges[at] == wanted if edges.size else np.zeros(wanted.size, np.bool_)


def _among(graph: FeedbackGraph, arms: Integers) -> sparse.csr_array:
    """Return the edges among some arms, without self-loops."""
    from scipy import sparse  # noqa: PLC0415  # it takes a while to load

    inside = sparse.coo_array(graph.to_scipy()[arms][:, arms])
    keep = inside.row != inside.col
    return sparse.csr_array((inside.data[keep], (inside.row[keep], inside.col[keep])), shape=inside.shape)


def _two_reveal_each_other(graph: FeedbackGraph, arms: Integers) -> bool:
    """Tell whether any two of `arms`, ascending, do, on intervals that contain their own arm."""
    start, stop = graph.arrays.start[arms].tolist(), graph.arrays.stop[arms].tolist()
    reaching: list[int] = []  # arms that reveal beyond the last one
    for k, arm in enumerate(arms.tolist()):
        while reaching and stop[reaching[-1]] <= arm:
            reaching.pop()
        if reaching and arms[reaching[-1]] >= start[k]:  # the last one that reveals this arm
            return True
        reaching.append(k)
    return False


def _are_cliques(graph: FeedbackGraph, arms: Integers, start: Integers, joined: Joined) -> bool:
    """Tell whether in each group of arms any two are joined."""
    size = np.diff(start)
    if not arms.size:
        return True
    if not on_intervals(graph):
        return all(
            _pairs_are_joined(graph, arms[start[:-1][size == s][:, None] + np.arange(s)], joined)
            for s in np.unique(size[size > 1])
        )
    low, high, K = graph.arrays.start, graph.arrays.stop, graph.n_arms
    group = np.repeat(np.arange(size.size), size)
    if joined == "mutual":  # each arm reveals the lowest and the highest of its group
        least, most = np.minimum.reduceat(arms, start[:-1]), np.maximum.reduceat(arms, start[:-1])
        return bool((low[arms] <= least[group]).all() and (high[arms] > most[group]).all())
    # An arm j and a lower one i are not joined if i < low[j] and high[i] <= j. For each j take the least high[i] there.
    order = np.lexsort((arms, group))
    arms, group = arms[order], group[order]
    before = np.searchsorted(group * K + arms, group * K + low[arms])
    least = np.minimum.accumulate(high[arms] - group * (K + 1))  # less in each later group
    some = before > start[group]
    return not (least[before[some] - 1] + group[some] * (K + 1) <= arms[some]).any()


def _pairs_are_joined(graph: FeedbackGraph, cliques: Integers, joined: Joined) -> bool:
    """Tell whether any two arms in a row of `cliques` are joined."""
    if cliques.shape[1] * (cliques.shape[1] - 1) > 2 * graph.n_edges:
        return False
    first, second = np.triu_indices(cliques.shape[1], k=1)
    step = max(1, _PAIRS // first.size)
    for k in range(0, cliques.shape[0], step):
        i, j = cliques[k : k + step][:, first].ravel(), cliques[k : k + step][:, second].ravel()
        there, back = _reveal(graph, i, j), _reveal(graph, j, i)
        if not (there & back if joined == "mutual" else there | back).all():
            return False
    return True
