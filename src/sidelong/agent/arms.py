"""Arms that come and go: the graph of a round in which some are absent, a new arm, and one that is retired.

An arm is there if the graph lets it reveal anything; an absent or retired one is a row and a column without edges.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from sidelong.agent.decision import Decision
from sidelong.agent.running import RunningLearner
from sidelong.agent.seen import Seen
from sidelong.errors import GraphError, LearnerError
from sidelong.graphs.graph import FeedbackGraph
from sidelong.graphs.presence import arm_of, mask_of, only, present, with_absent_arm, with_arm
from sidelong.learners import catalogue

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    import numpy.typing as npt

    from sidelong.agent.ledger import Ledger
    from sidelong.learners.interface import Learner


def checked(
    learner: Learner, options: Mapping[str, Any], own: FeedbackGraph, graph: FeedbackGraph, whose: str
) -> FeedbackGraph:
    """Return the graph of a round, if the learner can play on it; `whose` graph its own is, messages say."""
    if not isinstance(graph, FeedbackGraph):
        raise GraphError(f"graph must be a FeedbackGraph, not {type(graph).__name__}.")
    if graph.n_arms != own.n_arms:
        raise GraphError(f"The graph of a round must have the {whose}'s {own.n_arms} arms, and {graph!r} does not.")
    if graph != own:
        catalogue.check_fixed(learner, options, f"The {whose} began on {own!r}, and this round has {graph!r}.")
    catalogue.check_graph(learner, graph, options)
    return graph


def graph_of_round(
    learner: Learner, own: FeedbackGraph, graph: FeedbackGraph, available: Iterable[Any] | None
) -> FeedbackGraph:
    """Return the graph of a round, of those arms alone that are available and not retired in the agent's own graph."""
    if available is None:
        return graph if graph is own or not learner.sleeps else _some(as_present(graph, own))
    catalogue.check_absence(learner, "available=...")
    mask = _mask(own, available, "available")
    if not mask.any():
        raise GraphError("available names no arm, and one must be played. Skip the round, or name the arms there are.")
    return only(graph, mask) if graph is own else _some(only(graph, mask))


def _some(graph: FeedbackGraph) -> FeedbackGraph:
    """Return a graph if some arm is there: that of a round may lack the very arms that could be played."""
    if not present(graph).any():
        raise GraphError(
            "Of the arms that can be played, none is in the graph of this round, and one must be played. Give a graph "
            "in which each of them reveals itself, or skip the round."
        )
    return graph


def as_present(graph: FeedbackGraph, like: FeedbackGraph) -> FeedbackGraph:
    """Return a graph with those arms alone that are there in another one."""
    return only(graph, present(like)) if like.arms_without_self_loop.size else graph


def widened(learner: Learner, graph: Any, own: FeedbackGraph, made: Decision | None) -> Any:
    """Return the graph of a round with the arms that have come since, as absent; another one as it is."""
    if not isinstance(graph, FeedbackGraph) or graph.n_arms >= own.n_arms or not learner.sleeps:
        return graph
    if made is not None and present(made.graph)[graph.n_arms :].any():
        return graph  # which has too few arms
    while graph.n_arms < own.n_arms:
        graph = with_absent_arm(graph, None)
    return graph.labelled(own.labels)


def retire(learner: Learner, graph: FeedbackGraph, arm: int | str) -> FeedbackGraph:
    """Return the agent's graph without an arm."""
    catalogue.check_absence(learner, "retire")
    number = arm_of(graph, arm)
    mask = present(graph) & ~_mask(graph, [number], "arm")
    if not mask.any():
        raise GraphError(f"Arm {graph.arm_name(number)} is the last one, and one must be played.")
    return only(graph, mask)


def add(
    learner: RunningLearner,
    ledger: Ledger,
    seen: Seen,
    graph: FeedbackGraph,
    reveals: Iterable[int | str],
    revealed_by: Iterable[int | str],
    label: str | None,
) -> tuple[RunningLearner, Seen, FeedbackGraph]:
    """Return the learner, what was seen and the graph, with one more arm; the decisions that wait get it as absent."""
    module = learner.module
    catalogue.check_absence(module, "add_arm")
    if module.grow is None:
        raise LearnerError(f"add_arm needs a learner that can take in a new arm, and {module.title} cannot.")
    wider = with_arm(graph, _mask(graph, reveals, "reveals"), _mask(graph, revealed_by, "revealed_by"), label)
    params, state = module.grow(learner.params, learner.state)
    grown = RunningLearner(module, wider, int(learner.seed), params)
    grown.state = state
    ledger.waiting.grew()
    for t, made in ledger.pending.items():
        p, trace = made._p, made._trace  # noqa: SLF001  # what users see of them is read-only
        before = with_absent_arm(made.graph, wider.labels)
        ledger.pending[t] = Decision(ledger.tag, t, made.arm, before, np.append(p, 0.0), trace)
    return grown, Seen(np.append(seen.counts, 0), np.append(seen.means, 0.0), np.append(seen.squares, 0.0)), wider


def _mask(graph: FeedbackGraph, arms: Iterable[Any], name: str) -> npt.NDArray[np.bool_]:
    mask = mask_of(graph, arms, name)
    gone = np.flatnonzero(mask & ~present(graph))
    if gone.size:
        raise GraphError(f"{name} names arm {graph.arm_name(int(gone[0]))}, which is retired.")
    return mask
