"""Outcomes of rounds in which arms were absent: whoever tells one may not know which arms were there."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from sidelong.agent.graphs import as_present

if TYPE_CHECKING:
    from collections.abc import Set as AbstractSet

    from sidelong.graphs import FeedbackGraph
    from sidelong.service.store.commands import Turn
    from sidelong.service.store.graphs import KnownGraph
    from sidelong.service.store.losses import Told


def as_decided(
    turn: Turn, graph: KnownGraph | None, losses: Told, decided: FeedbackGraph, arm: int
) -> tuple[KnownGraph | None, Told]:
    """Return the graph of an outcome, and its losses, without the arms that were absent when the decision was made."""
    if graph is None or not decided.arms_without_self_loop.size or graph.graph.n_arms != decided.n_arms:
        return graph, losses
    shown = as_present(graph.graph, decided)
    arms = graph.graph.row(arm).tolist()
    return turn.graph(shown), _without(losses, arms, set(shown.row(arm).tolist()))


def _without(losses: Told, arms: list[int], there: AbstractSet[int]) -> Told:
    """Return the losses of arms without those that were not there; where they were left out, nothing changes."""
    if isinstance(losses, Mapping):
        absent = {str(arm) for arm in arms if arm not in there}
        return {arm: loss for arm, loss in losses.items() if arm not in absent}
    if len(losses) != len(arms):
        return losses
    return [loss for arm, loss in zip(arms, losses, strict=True) if arm in there]
