"""Arms that are absent for a while, and arms that come later.

An absent arm is neither played nor revealed. So the graph of a round in which some are absent is the graph without
their edges, in both directions, with the same arms by the same numbers.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

import numpy as np

from sidelong.checks import is_whole, nearest, short
from sidelong.errors import GraphError
from sidelong.graphs import layout
from sidelong.graphs.graph import FeedbackGraph

if TYPE_CHECKING:
    from collections.abc import Iterable

    import numpy.typing as npt

    Mask = npt.NDArray[np.bool_]

#: So many edges may be written out where the present arms are no longer contiguous ranges.
_MAX_EDGES = 2**26

# A graph that is made anew must be checked and hashed anew, which takes longer than to learn. So the restrictions of a
# graph are kept as long as the graph itself, the most recently used ones last: the last one in any case, and others
# before it while all of them together list no more edges than this.
_KEPT_GRAPHS, _KEPT_EDGES = 64, 2**21
_kept: WeakKeyDictionary[FeedbackGraph, OrderedDict[tuple[object, ...], FeedbackGraph]] = WeakKeyDictionary()
_lock = threading.Lock()


def mask_of(graph: FeedbackGraph, arms: Iterable[int | str | bool], name: str = "available") -> Mask:
    """Return a flag for each arm: whether it is among `arms`, given by number, by label or as such flags.

    Raises:
        GraphError: something in `arms` is no arm of the graph.
    """
    if isinstance(arms, str | bytes) or not hasattr(arms, "__iter__") or getattr(arms, "ndim", 1) != 1:
        raise GraphError(f"{name} must be arms, by number or label, or a flag for each arm, not {short(arms)}.")
    listed = list(arms)
    mask = np.zeros(graph.n_arms, np.bool_)
    if listed and all(isinstance(each, bool | np.bool_) for each in listed):
        if len(listed) != mask.size:
            raise GraphError(f"{name} has one flag for each of the {mask.size} arms, not {len(listed)}.")
        mask[:] = listed
    else:
        for arm in listed:
            number = arm_of(graph, arm, name)
            if mask[number]:
                raise GraphError(
                    f"{name} names arm {graph.arm_name(number)} twice. Flags are True and False, not 1 and 0."
                )
            mask[number] = True
    return mask


def arm_of(graph: FeedbackGraph, arm: Any, name: str = "arm") -> int:
    """Return the number of an arm that is given by its number or its label."""
    if isinstance(arm, str):
        if graph.labels is None or arm not in graph.labels:
            known = nearest(arm, graph.labels or ())
            why = "the graph has no labels" if graph.labels is None else f"no arm is called so.{known}"
            raise GraphError(f"{name} names the arm {short(arm)}, and {why.rstrip('.')}.")
        return graph.labels.index(arm)
    if not is_whole(arm) or not 0 <= int(arm) < graph.n_arms:
        raise GraphError(f"{name} must name arms from 0 to {graph.n_arms - 1}, not {short(arm)}.")
    return int(arm)


def present(graph: FeedbackGraph) -> Mask:
    """Tell for each arm whether it is there: whether it reveals or is revealed."""
    if not graph.arms_without_self_loop.size:
        return np.ones(graph.n_arms, np.bool_)
    arrays = graph.arrays
    some: Mask = arrays.start < arrays.stop
    if arrays.contiguous:
        some |= arrays.in_start < arrays.in_stop
        return some
    return some | (np.bincount(arrays.targets, minlength=graph.n_arms) > 0)


def only(graph: FeedbackGraph, mask: Mask) -> FeedbackGraph:
    """Return the graph in which the other arms are absent; the graph itself if none of them is there now."""
    if (mask >= present(graph)).all():
        return graph
    key = graph.representation, graph.name, graph.labels, mask.tobytes()
    with _lock:
        kept = _kept.setdefault(graph, OrderedDict())
        if key in kept:
            kept.move_to_end(key)
            return kept[key]
    made = _restricted(graph, mask)
    with _lock:
        kept[key] = made
        while len(kept) > 1 and (len(kept) > _KEPT_GRAPHS or sum(map(_listed, kept.values())) > _KEPT_EDGES):
            kept.popitem(last=False)
    return made


def _listed(graph: FeedbackGraph) -> int:
    """Return how many edges are listed in memory, and arms."""
    return graph.n_arms + graph.arrays.targets.size


def _restricted(graph: FeedbackGraph, mask: Mask) -> FeedbackGraph:
    labels = graph.labels
    title = graph.name and f"{graph.name} without {int((~mask).sum())} of its arms"
    arrays, n = graph.arrays, graph.n_arms
    if arrays.contiguous:
        before = np.append(0, np.cumsum(mask))  # how many present arms come before each
        kept = np.flatnonzero(mask)
        first, behind = before[arrays.start], before[arrays.stop]
        degree = np.where(mask, behind - first, 0)
        low, high = np.zeros((2, n), np.int64)
        some = degree > 0
        low[some], high[some] = kept[first[some]], kept[behind[some] - 1] + 1
        if np.array_equal(high - low, degree):
            return FeedbackGraph(layout.intervals(low, high), title, labels)
        if degree.sum() > _MAX_EDGES:
            raise GraphError(
                f"Without these arms, what the others of {graph!r} reveal is no range of arms, and {degree.sum():,} "
                f"edges would have to be listed; at most {_MAX_EDGES:,} are. Let a range of arms be available."
            )
        steps = np.arange(int(degree.sum())) - np.repeat(np.cumsum(degree) - degree, degree)
        return FeedbackGraph(layout.arcs(degree, kept[np.repeat(first, degree) + steps]), title, labels)
    rows, columns = layout.pairs(arrays)
    there = mask[rows] & mask[columns]
    degree = np.bincount(rows[there], minlength=n)
    return FeedbackGraph(layout.arcs(degree, columns[there]), title, labels)


def with_arm(graph: FeedbackGraph, seen: Mask, seen_by: Mask, label: str | None) -> FeedbackGraph:
    """Return the graph with one more arm, the last: it reveals itself and the arms `seen`, and `seen_by` reveal it."""
    n = graph.n_arms
    if (label is None) != (graph.labels is None):
        has = "has no labels, and one was given" if graph.labels is None else "has labels: give label=..."
        raise GraphError(f"Either every arm has a label or none; the graph {has}.")
    labels = None if label is None else (*(graph.labels or ()), str(label))
    rows, columns = layout.pairs(graph.as_arcs().arrays)
    seen_arms, showing = np.flatnonzero(seen), np.flatnonzero(seen_by)
    edges = (
        np.concatenate([rows, np.full(seen_arms.size, n), showing, [n]]).astype(np.int64),
        np.concatenate([columns, seen_arms, np.full(showing.size, n), [n]]).astype(np.int64),
    )
    return FeedbackGraph(layout.from_pairs(*edges, n + 1)).labelled(labels)


def with_absent_arm(graph: FeedbackGraph, labels: tuple[str, ...] | None) -> FeedbackGraph:
    """Return the graph with one more arm, the last, which is absent: what a round before it came had."""
    arrays = graph.arrays
    degree = np.append(arrays.stop - arrays.start, 0)
    if arrays.contiguous:
        laid_out = layout.intervals(np.append(arrays.start, 0), np.append(arrays.stop, 0))
    else:
        laid_out = layout.arcs(degree, arrays.targets)
    return FeedbackGraph(laid_out, graph.name, labels)
