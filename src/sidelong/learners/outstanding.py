r"""late="guarded", of EXP3.G++ and EXP3-SET: a rate that counts the decisions whose feedback has not come.

Feedback is often later than the next draw. The adaptive rates are right then, too, but their bounds grow with the delay
d as d sqrt(T). Here Theta counts what is outstanding as soon as it is asked for, and the bounds grow as sqrt(d T).

::

    for t = 1, 2, ...
        sigma = how many decisions were made before t and neither told nor given up
        Theta += sigma for EXP3.G++, 2 sigma for EXP3-SET                                     1
        eta from Theta, and p, as the learner has them, from what was told                    2
        Theta += theta = sum_i p_i / P_i,  where P_i = sum of p_j over the arms j that reveal i  3
        draw I ~ p
    whenever the losses of round s come, in any order
        what the learner does, with the P of round s, but Theta += theta                      4

The initial rounds of EXP3.G++ enter no weights, and are in no sigma. If every round is told before the next one is
asked for, sigma is 0, and both are what they are with late="plain", to the bit. Let D be the sum of all sigma. If the
delay of a round depends on neither its draw nor its losses, the regret of EXP3.G++ and of EXP3-SET, with m = 1, is at
most

    2 sqrt(2 ln K (K + sum_t E theta_t + E D)) + sqrt(T ln K) + K,
    2 sqrt(ln K (sum_t E theta_t + 2 E D)) + sqrt(K ln K)

plus 1 for each round that is given up (`sidelong.theory.delay`; docs/proofs.md has the proof). For any eta_scale m the
leading 2 becomes m + 1 / m. For a stochastic world nothing is proved with late feedback, and in an easy world both lose
more than with late="plain" (docs/late.md has the numbers).

The graph must be known before the draw. If another one is shown with the losses, Theta grows by what its theta is
above that of line 3; the closed bound is then lost, and the one that is computed from what happened stays.

The fixed rate has no Theta, the estimates of the shifted estimator may be negative, which the proof does not allow, and
the epoch schedule only estimates theta: none of them can be guarded.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sidelong._jit import kernel, rare_kernel
from sidelong.graphs.arrays import observe
from sidelong.learners.weights import theta

if TYPE_CHECKING:
    import numpy as np

    from sidelong.graphs.arrays import GraphArrays


@rare_kernel
def count_asked(state: Any, graph: GraphArrays, p: np.ndarray) -> float:
    """Count a round that is asked for, with its theta; return that."""
    observe(graph, p, state.P)
    counted = theta(p, state.P)
    state.Theta[0] += counted  # 3
    state.outstanding[0] += 1.0
    return counted


@kernel
def count_told(state: Any, counted: float, found: float) -> None:
    """Take away a round that was told. Theta was counted before; of the graph that was told, only more is added."""
    state.Theta[0] += max(found - counted, 0.0)  # 4
    state.outstanding[0] -= 1.0
