"""What an agent does in `ask` and in `tell`, as one kernel each for every learner.

To call a kernel takes as long as most of them run: the arrays of learner and graph are handed over one by one. So what
the learner learns, what was seen of each arm, how late it came and the alarm are one call.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from sidelong.agent.lateness import places, settle
from sidelong.agent.seen import Seen, note
from sidelong.evaluation.turning import Turning, look, watch
from sidelong.learners.interface import (
    Asked,
    Told,
    bound,
    draw,
    drawing,
    is_sparing,
    mark_present,
    marking,
    name_of,
    update,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy as np

    from sidelong.graphs.arrays import GraphArrays
    from sidelong.learners.interface import Learner

SPARING = False  # whether p holds the probabilities of observing the revealed arms
ETA, THETA, MASS = -1, -1, -1  # where the trace has what is summed for `lateness`


def _draw(
    params: Any,
    state: Any,
    graph: GraphArrays,
    t: int,
    seed: int,
    p: np.ndarray,
    trace: np.ndarray,
    present: np.ndarray,
) -> int:
    """Return the arm of round t; `present` has a flag for each arm, all of them set before the first round."""
    absent = mark_present(graph, present)
    return draw(params, state, graph, Asked(t, p, trace, present, absent, seed, 0))


def _learn(
    params: Any,
    state: Any,
    graph: GraphArrays,
    t: int,
    arm: int,
    p: np.ndarray,
    losses: np.ndarray,
    trace: np.ndarray,
    present: np.ndarray,
    foreseen: bool,  # noqa: FBT001  # kernels have no names
    seen: Seen,
    turning: Turning,
    room: np.ndarray,
    tally: np.ndarray,
    sigma: int,
    last: int,
) -> None:
    """Learn, and count.

    Of a graph that came with the losses, and was not `foreseen`, only the loss of `arm` itself is seen. `sigma` others
    were outstanding when the decision was drawn, -1 for an initial one, and `last` is the last round that was.
    """
    absent = mark_present(graph, present)
    update(params, state, graph, Told(t, arm, p, losses, trace, present, absent))
    arms = graph.targets[graph.start[arm] : graph.stop[arm]]
    for k in range(arms.size):
        if foreseen or arms[k] == arm:
            note(arms[k], losses[k], seen.counts, seen.means, seen.squares)
    if SPARING:
        look(turning, arms, p, losses, t)
    elif not math.isnan(p[arm]):
        watch(turning, graph, arm, p, losses, t, room)
    if sigma >= 0:
        eta = trace[ETA] if ETA >= 0 else 0.0
        theta = trace[THETA] if THETA >= 0 else 0.0
        settle(tally, t < last, float(sigma), eta, theta, trace[MASS] if MASS >= 0 else 0.0)


def asking(learner: Learner) -> Callable[..., int]:
    """Return the kernel that draws."""
    name = f"ask_{name_of(learner)}"
    return bound(_draw, name, draw=drawing(learner), mark_present=marking(learner))  # type: ignore[no-any-return]


def learning(learner: Learner) -> Callable[..., None]:
    """Return the kernel that learns."""
    eta, theta, mass = places(learner)
    bindings = {"update": learner.update, "SPARING": is_sparing(learner), "ETA": eta, "THETA": theta, "MASS": mass}
    return bound(_learn, f"learn_{name_of(learner)}", mark_present=marking(learner), **bindings)  # type: ignore[no-any-return]
