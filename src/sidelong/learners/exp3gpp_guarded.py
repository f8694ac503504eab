r"""EXP3.G++ with late="guarded": a rate that counts the decisions whose feedback has not come.

Feedback is often later than the next draw. The adaptive rate of EXP3.G++ is right then, too, but its bound grows with
the delay d as d sqrt(T). Here Theta counts what is outstanding as soon as it is asked for, and the bound grows as
sqrt(d T).

::

    play each arm once, as EXP3.G++ does; these rounds enter no weights, and are in no sigma  1
    for t = K + 1, K + 2, ...
        sigma = how many rounds after K were asked for before t and neither told nor given up
        Theta += sigma                                                                        2
        eta = sqrt(ln K / (2 Theta)),  eps, q and p as EXP3.G++ has them, from what was told  3
        Theta += theta = sum_i p_i / P_i,  where P_i = sum of p_j over the arms j that reveal i  4
        draw I ~ p
    whenever the losses of round s come, in any order
        Ltilde_i += l_i / P_i,  Lhat_i += l_i,  O_i += 1   for each i that was observed       5

If every round is told before the next one is asked for, sigma is 0, and this is EXP3.G++ to the bit. Let D be the sum
of all sigma. If the delay of a round depends on neither its draw nor its losses, the regret is at most

    2 sqrt(2 ln K (K + sum_t E theta_t + E D)) + sqrt(T ln K) + K

plus 1 for each round that is given up (`sidelong.theory.delay`; docs/late.md has the proof). For any eta_scale m the
leading 2 becomes m + 1 / m. For a stochastic world nothing is proved with late feedback, and in an easy world it
loses more than EXP3.G++ does (docs/late.md has the numbers).

The graph must be known before the draw. If another one is shown with the losses, Theta grows by what its theta is
above that of line 4; the closed bound is then lost, and the one that is computed from what happened stays.

The fixed rate has no Theta, and the estimates of the shifted estimator may be negative, which the proof does not allow:
neither can be guarded.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from sidelong._jit import kernel
from sidelong.errors import LearnerError
from sidelong.learners import exp3gpp
from sidelong.learners.exp3gpp import TRACES, Params
from sidelong.learners.exp3gpp import distribution as plain_distribution
from sidelong.learners.exp3gpp import update as plain_update
from sidelong.learners.interface import About, Asked, Learner, Told
from sidelong.learners.options import one_of
from sidelong.learners.outstanding import begin, settle

if TYPE_CHECKING:
    from sidelong.graphs.arrays import GraphArrays
    from sidelong.graphs.graph import FeedbackGraph

_THETA = TRACES.index("theta")


def configure(
    graph: FeedbackGraph,
    *,
    late: str = "guarded",
    rate: str = "adaptive",
    gamma: float = 4.0,
    beta: float = 320.0,
    exploration: float | None = None,
    eta_scale: float = 1.0,
    ties: str = "paper",
    start: str = "all",
    estimator: str = "plain",
    refresh: str = "round",
) -> Params:
    """Turn options into constants.

    Args:
        graph: the graph that the learner starts on.
        late: "guarded".
        rate: "adaptive".
        gamma: the width of the confidence intervals (4).
        beta: the rate of exploration once a gap is known (320).
        exploration: lambda, in [1, K], the height of the cap on exploration (1). The second term of the bound is
            sqrt(lambda T ln K).
        eta_scale: m, a factor on the learning rate (1).
        ties: how the exploration set treats arms of equal gap: see `sidelong.learners.exp3gpp.configure`.
        start: the initial rounds: "all" arms once, a "cover" of the graph, or "none". The closed bound is for "all".
        estimator: "plain".
        refresh: "round".
    """
    one_of("late", late, ("guarded",))
    for name, value, only in (("rate", rate, "adaptive"), ("estimator", estimator, "plain")):
        if value != only:
            raise LearnerError(f"late='guarded' needs {name}={only!r}, and {name} is {value!r}. Or take late='plain'.")
    return exp3gpp.configure(
        graph,
        gamma=gamma,
        beta=beta,
        exploration=exploration,
        eta_scale=eta_scale,
        ties=ties,
        start=start,
        refresh=refresh,
    )


class State(NamedTuple):
    """That of EXP3.G++, and how many decisions are outstanding that enter the weights."""

    Ltilde: np.ndarray
    Lhat: np.ndarray
    O: np.ndarray
    mean: np.ndarray
    width: np.ndarray
    gap: np.ndarray
    eps: np.ndarray
    P: np.ndarray
    Theta: np.ndarray
    S: np.ndarray
    order: np.ndarray
    ties: np.ndarray
    known: np.ndarray
    free: np.ndarray
    heap: np.ndarray
    outstanding: np.ndarray


def init(params: Params, graph: FeedbackGraph) -> State:
    """Return the state before round 1."""
    return State(*exp3gpp.init(params, graph), np.zeros(1))


@kernel
def distribution(params: Params, state: Any, graph: GraphArrays, asked: Asked) -> None:
    """Write into `p` the probabilities of round t, which is outstanding from now on."""
    learning = asked.t > params.initial.size and asked.p.size > 1
    if learning:
        state.Theta[0] += state.outstanding[0]  # 2
    plain_distribution(params, state, graph, asked)  # 1, 3
    if learning:
        asked.trace[_THETA] = begin(state, graph, asked.p)  # 4


@kernel
def update(params: Params, state: Any, graph: GraphArrays, told: Told) -> None:
    """Learn the losses that playing `arm` revealed in round t, when the probabilities were `p`."""
    Theta, counted = state.Theta[0], told.trace[_THETA]
    plain_update(params, state, graph, told)  # 5
    if told.t > params.initial.size and told.p.size > 1:
        settle(state, Theta, counted, told.trace[_THETA])


@kernel
def release(params: Params, state: Any, graph: GraphArrays, asked: Asked) -> None:
    """Learn that round t will never be told: it is outstanding no more."""
    if asked.t > params.initial.size and asked.p.size > 1:
        state.outstanding[0] -= 1.0


LEARNER = Learner(
    name="exp3.g++",
    chosen_by="late='guarded'",
    params=Params,
    configure=configure,
    init=init,
    distribution=distribution,
    update=update,
    release=release,
    needs=exp3gpp.LEARNER.needs,
    traces=TRACES,
    settled=("estimator", "late", "rate", "refresh"),
    about=About(
        paper="this package, after Rouyer et al. 2022",
        cite=("rouyer2022near",),
        proved=("adversarial",),
        cost="O(K + E)",
        bound="2 sqrt(2 ln K (sum_t theta_t + D)) + sqrt(T ln K), where D sums the outstanding decisions of all rounds",
        theorem="docs/late.md",
        published=False,
        guess=True,
    ),
)
