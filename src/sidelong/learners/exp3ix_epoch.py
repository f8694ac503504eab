r"""EXP3-IX with refresh="epoch": a round whose cost does not grow with the number of arms.

It is `sidelong.learners.exp3set_epoch` with gamma = eta added to every P: Lhat_i += l_i / (P_i + gamma), and Theta
grows by Q = sum_i p_i / (P_i + gamma), or by its estimate from two arms. Both gamma and eta are those of the round in
which the epoch began. The graph must be known before the draw. The paper's Theorem 1 has not been proved again for it.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from sidelong.learners import epochs, exp3ix
from sidelong.learners.epoch_refresh import Params, init
from sidelong.learners.epochs import draw, probability, update
from sidelong.learners.exp3set_epoch import without_exploration
from sidelong.learners.interface import About, Learner, Need
from sidelong.learners.options import one_of

if TYPE_CHECKING:
    from sidelong.graphs.graph import FeedbackGraph


def configure(graph: FeedbackGraph, *, refresh: str = "epoch", growth: float = 0.05) -> Params:
    """Turn options into constants.

    Args:
        graph: the graph that the learner starts on.
        refresh: "epoch".
        growth: from 0 to 1, by which share the round or Theta grows until all arms are looked at again (0.05).
    """
    one_of("refresh", refresh, ("epoch",))
    return without_exploration(exp3ix.configure(graph).log_K, math.sqrt(2.0), growth, graph.n_arms, implicit=1.0)


LEARNER = Learner(
    name="exp3-ix",
    chosen_by="refresh='epoch'",
    params=Params,
    configure=configure,
    init=init,
    draw=draw,
    probability=probability,
    update=update,
    needs=exp3ix.LEARNER.needs | {Need.GRAPH_BEFORE},
    traces=("Q", *epochs.TRACES[1:]),
    settled=("refresh",),
    about=About(
        paper="this package, after Kocak et al. 2014",
        cite=("kocak2014implicit",),
        proved=(),
        cost="O(log K) for each revealed arm",
        bound="none proved",
        published=False,
    ),
)
