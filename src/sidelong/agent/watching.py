"""An agent's alarm: what `sidelong.evaluation.turning` keeps of the rounds that it was told."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from sidelong._jit import entry
from sidelong.agent.running import revealed
from sidelong.evaluation.turning import Turning, WorldHealth, health, look, watch
from sidelong.learners.interface import is_sparing

if TYPE_CHECKING:
    from collections.abc import Mapping
    from types import ModuleType
    from typing import Self

    from sidelong.agent.decision import Decision
    from sidelong.graphs.graph import FeedbackGraph


class Watching:
    """The alarm of one agent."""

    def __init__(self, graph: FeedbackGraph, learner: ModuleType, turning: Turning | None = None) -> None:
        self._turning = Turning.new(graph.n_arms) if turning is None else turning
        self._sparing = sparing = is_sparing(learner)
        self._blind = hasattr(learner, "draw") and not sparing
        self._room = room = np.empty(graph.n_arms)
        arms = revealed(graph, 0)
        self._look: Any
        if sparing:
            self._look = entry(look, self._turning, arms, room, room, 1)
        else:
            self._look = entry(watch, self._turning, graph.arrays, 0, room, room, 1, room)

    def told(self, made: Decision, graph: FeedbackGraph, losses: np.ndarray) -> None:
        """Count what a decision was told."""
        p, t = made._p, made.round  # noqa: SLF001  # what users see of it is read-only
        if self._sparing:
            self._look(self._turning, revealed(graph, made.arm), p, losses, t)
        elif not math.isnan(p[made.arm]):
            self._look(self._turning, graph.arrays, made.arm, p, losses, t, self._room)

    def health(self, last: int) -> WorldHealth:
        """Return what is known after the draw of round `last`."""
        found = health(self._turning, last)
        why = "the learner draws without knowing the probabilities"
        return found._replace(unknown=why) if self._blind else found

    def grown(self, graph: FeedbackGraph, learner: ModuleType) -> Self:
        """Return it with the arms that `graph` has more, of which nothing was seen until now."""
        more = Turning.new(graph.n_arms - self._room.size).arms
        arms, window = np.concatenate([self._turning.arms, more], axis=1), self._turning.window.copy()
        return type(self)(graph, learner, Turning(arms, window))

    def contents(self) -> dict[str, np.ndarray]:
        """Return everything, as arrays of a state file."""
        return {f"turning.{name}": array for name, array in self._turning._asdict().items()}

    @classmethod
    def from_contents(
        cls, graph: FeedbackGraph, learner: ModuleType, last: int, arrays: Mapping[str, np.ndarray]
    ) -> Self:
        """Go on from what `contents` returned; a file from before there was an alarm begins to watch now."""
        if "turning.arms" in arrays:
            turning = Turning(*(arrays[f"turning.{name}"] for name in Turning._fields))
        else:
            turning = Turning.new(graph.n_arms, last + 1)
        return cls(graph, learner, turning)
