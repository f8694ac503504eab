"""Which arms can be learned about, and how well.

Alon, Cesa-Bianchi, Dekel and Koren, "Online learning with feedback graphs: beyond bandits", COLT 2015: an arm is
*observable* if some arm reveals it. It is *strongly* observable if it reveals itself or all other arms reveal it, and
otherwise *weakly*. If all arms are strongly observable, regret grows as the square root of the time. If some are only
weakly observable, it grows as the power 2/3 of the time. If one is never revealed, it grows in proportion to the time.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

from sidelong.graphs import layout

if TYPE_CHECKING:
    import numpy.typing as npt

    from sidelong.graphs.arrays import GraphArrays
    from sidelong.graphs.graph import FeedbackGraph


@dataclass(frozen=True, eq=False)
class Observability:
    """The class of a graph, and the arms that keep it out of a better one."""

    kind: Literal["strong", "weak", "none"]
    arm: int | None  #: the first arm that keeps the graph from being better; None if it is strongly observable
    weak_arms: npt.NDArray[np.int64]  #: the weakly observable arms
    unobservable_arms: npt.NDArray[np.int64]  #: the arms that no arm reveals

    def __str__(self) -> str:
        if self.kind == "none":
            return f"Not observable: no arm reveals arm {self.arm}{_others(self.unobservable_arms)}."
        if self.kind == "weak":
            return (
                f"Weakly observable: arm {self.arm} does not reveal itself, and not all other arms reveal it"
                f"{_others(self.weak_arms)}."
            )
        return "Strongly observable: every arm reveals itself or is revealed by all other arms."


def _others(arms: npt.NDArray[np.int64]) -> str:
    return f" (the first of {arms.size:,} such arms)" if arms.size > 1 else ""


def classify(graph: GraphArrays) -> Observability:
    """Return the class of a graph, in O(K) on intervals and O(K + E) on arcs."""
    in_degree = graph.in_stop - graph.in_start
    loop = layout.reveals_itself(graph)
    unobservable = np.flatnonzero(in_degree == 0)
    weak = np.flatnonzero(~loop & (in_degree > 0) & (in_degree < in_degree.size - 1))
    for arms in (unobservable, weak):
        arms.setflags(write=False)
    if unobservable.size:
        return Observability("none", int(unobservable[0]), weak, unobservable)
    if weak.size:
        return Observability("weak", int(weak[0]), weak, unobservable)
    return Observability("strong", None, weak, unobservable)


def self_loop_subgraph(graph: FeedbackGraph) -> FeedbackGraph | None:
    """Return the subgraph induced by the arms that reveal themselves, or None if there are none."""
    if not graph.arms_without_self_loop.size:
        return graph
    loops = layout.reveals_itself(graph.arrays)
    edges = graph.edges()
    inside = edges[loops[edges].all(axis=1)]
    return type(graph).from_edges(np.cumsum(loops)[inside] - 1, int(loops.sum())) if loops.any() else None
