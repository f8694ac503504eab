r"""EXP3-SET with refresh="epoch": a round whose cost does not grow with the number of arms.

The schedule is that of `sidelong.learners.exp3gpp_epoch`, without initial rounds and without exploration.

::

    Theta = K
    for t = 1, 2, ...
        if t > e or Theta > (1 + growth) Theta_r or the graph is another:
            r = t,  Theta_r = Theta,  e = floor((1 + growth) t),  eta = m sqrt(ln K / Theta)
        p_i ~ exp(-eta Lhat_i)
        draw I ~ p, observe the losses l_i of all arms i that I reveals
        Lhat_i += l_i / P_i   for each observed i,  P_i = sum of p_j over the arms j that reveal i
        Theta += X,  where X = theta = sum_i p_i / P_i if t = r, and else its estimate from two arms

Steps 1 and 4 to 7 of the proof in `docs/epoch.md` hold as they stand, with q = p: for m = 1 the regret is at most
(1 + sqrt(1 + growth)) sqrt(ln K (K + sum_t E theta_t)). The graph must be known before the draw.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from sidelong.learners import exp3set
from sidelong.learners.epoch_refresh import Params, init
from sidelong.learners.epochs import TRACES, draw, probability, update
from sidelong.learners.interface import About, Learner, Need
from sidelong.learners.options import number, one_of

if TYPE_CHECKING:
    from sidelong.graphs.graph import FeedbackGraph


def configure(
    graph: FeedbackGraph,
    *,
    refresh: str = "epoch",
    growth: float = 0.05,
    eta_scale: float = 1.0,
    late: str = "plain",
) -> Params:
    """Turn options into constants.

    Args:
        graph: the graph that the learner starts on.
        refresh: "epoch".
        growth: from 0 to 1, by which share the round or Theta grows until all arms are looked at again (0.05).
        eta_scale: m, a factor on the learning rate.
        late: "plain".
    """
    one_of("refresh", refresh, ("epoch",))
    one_of("late", late, ("plain",))
    paper = exp3set.configure(graph, eta_scale=eta_scale)
    return without_exploration(paper.log_K, math.sqrt(2.0) * paper.eta_scale, growth, graph.n_arms)


def without_exploration(log_K: float, eta_scale: float, growth: float, K: int, implicit: float = 0.0) -> Params:
    """Return the constants of the schedule for a learner that only has weights; eta is that of EXP3.G++ scaled."""
    return Params(
        growth=number("growth", growth, least=0, most=1),
        log_K=log_K,
        adaptive=True,
        alpha=1.0,
        gamma=1.0,
        beta=1.0,
        lambda_=0.0,
        eta_scale=eta_scale,
        largest_first=False,
        initial=np.empty(0, np.uint32),
        Theta_0=float(K),
        implicit=implicit,
    )


LEARNER = Learner(
    name="exp3-set",
    chosen_by="refresh='epoch'",
    params=Params,
    configure=configure,
    init=init,
    draw=draw,
    probability=probability,
    update=update,
    needs=exp3set.LEARNER.needs | {Need.GRAPH_BEFORE},
    traces=TRACES,
    settled=("late", "refresh"),
    about=About(
        paper="this package, after Alon et al. 2017",
        cite=("alon2017nonstochastic",),
        proved=("adversarial",),
        cost="O(log K) for each revealed arm",
        bound="(1 + sqrt(1 + growth)) sqrt(ln K sum_t mas(G_t))",
        theorem="docs/epoch.md",
        published=False,
    ),
)
