r"""EXP3-IX with refresh="epoch": a round whose cost does not grow with the number of arms.

It is `sidelong.learners.exp3set_epoch` with gamma = eta added to every P: Lhat_i += l_i / (P_i + gamma), and Theta
grows by Q = sum_i p_i / (P_i + gamma), or by its estimate from two arms. Both gamma and eta are those of the round in
which the epoch began. The graph must be known before the draw. The paper's Theorem 1 has not been proved again for it.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from sidelong.learners import epochs, exp3ix
from sidelong.learners.epoch_refresh import Params, State, init  # noqa: F401, TC001  # parts of a learner
from sidelong.learners.epochs import draw, probability, update  # noqa: F401
from sidelong.learners.exp3ix import NAME  # noqa: F401  # the same learner, on another schedule
from sidelong.learners.exp3set_epoch import without_exploration
from sidelong.learners.interface import About, Need
from sidelong.learners.options import one_of

if TYPE_CHECKING:
    from sidelong.graphs.graph import FeedbackGraph

TITLE = "exp3-ix with refresh='epoch'"
VERSION = 1
NEEDS = exp3ix.NEEDS | {Need.GRAPH_BEFORE}
ABOUT = About(
    paper="this package, after Kocak et al. 2014",
    cite=("kocak2014implicit",),
    proved=(),
    cost="O(log K) for each revealed arm",
    bound="none proved",
    published=False,
)
#: Options that have one value here.
SETTLED = ("refresh",)
TRACES = ("Q", *epochs.TRACES[1:])


def configure(graph: FeedbackGraph, *, refresh: str = "epoch", growth: float = 0.05) -> Params:
    """Turn options into constants.

    Args:
        graph: the graph that the learner starts on.
        refresh: "epoch".
        growth: from 0 to 1, by which share the round or Theta grows until all arms are looked at again (0.05).
    """
    one_of("refresh", refresh, ("epoch",))
    return without_exploration(exp3ix.configure(graph).log_K, math.sqrt(2.0), growth, graph.n_arms, implicit=1.0)
