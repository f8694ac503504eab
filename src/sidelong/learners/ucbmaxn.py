r"""UCB-MaxN: UCB-N that lets the best of the arms that reveal an arm do the exploring.

S. Caron, B. Kveton, M. Lelarge, S. Bhagat, "Leveraging Side Observations in Stochastic Bandits", UAI 2012; for
losses in place of rewards.

::

    for t = 1, 2, ...
        J = the arm of the smallest mean_i - sqrt(2 ln t / O_i), as in UCB-N                  1
        play the arm I of the smallest mean among those that reveal J                         2
        O_i += 1, and mean_i takes in l_i,   for each i that I reveals                        3

The paper's graphs are undirected, where the arms that reveal J are its neighbours and J. Here, on directed graphs,
they are those with an arc to J. Where the page is silent: an arm that was never observed has no mean, and is played in
line 2 only if it is J and no arm that reveals J was observed; the lowest index goes first between equal ones.

In a stochastic world Caron et al. prove a bound of the kind of UCB-N's, a sum over the cliques that cover the graph.
Against an adversary nothing is proved. Late feedback is treated as in UCB-N. Unlike UCB-N, this learner must know the
graph of a round before the draw.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from sidelong._jit import kernel
from sidelong.learners.interface import About, Asked, Learner, Need
from sidelong.learners.ucbn import Params, State, configure, init, lowest, proved, update

if TYPE_CHECKING:
    from sidelong.graphs.arrays import GraphArrays


@kernel
def distribution(params: Params, state: State, graph: GraphArrays, asked: Asked) -> None:
    """Write into `p` the probabilities of round t: 1 for one arm."""
    t, p = asked.t, asked.p
    J = lowest(params, state, t)  # 1
    arm, least = J, math.inf
    if graph.contiguous:
        for i in range(p.size):
            if graph.start[i] <= J < graph.stop[i] and state.O[i] > 0.0 and state.mean[i] < least:  # 2
                arm, least = i, state.mean[i]
    else:
        for e in range(graph.in_start[J], graph.in_stop[J]):
            i = int(graph.sources[e])
            if state.O[i] > 0.0 and state.mean[i] < least:  # 2
                arm, least = i, state.mean[i]
    p[:] = 0.0
    p[arm] = 1.0


LEARNER = Learner(
    name="ucb-maxn",
    module=__name__,
    params=Params,
    configure=configure,
    init=init,
    distribution=distribution,
    update=update,
    ranges={"unseen": "any", "bound": "any", "O": "counts", "log_delta": "shares"},
    needs=frozenset({Need.SELF_LOOPS, Need.GRAPH_BEFORE}),
    proved_with=proved,
    about=About(
        paper="Caron, Kveton, Lelarge, Bhagat 2012",
        cite=("caron2012leveraging",),
        proved=("stochastic",),
        cost="O(K)",
        bound="undirected: sum over covering cliques of ln T max gap / min gap^2",
        theorem="Caron, Kveton, Lelarge, Bhagat 2012",
    ),
)
