"""An agent's alarm: what `sidelong.evaluation.turning` keeps of the rounds that it was told."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from sidelong.evaluation.turning import Turning, WorldHealth, health
from sidelong.learners.interface import is_sparing

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Self

    from sidelong.graphs.graph import FeedbackGraph
    from sidelong.learners.interface import Learner


class Watching:
    """The alarm of one agent."""

    def __init__(self, graph: FeedbackGraph, learner: Learner, turning: Turning | None = None) -> None:
        self.turning = Turning.new(graph.n_arms) if turning is None else turning
        self._blind = learner.draws_itself and not is_sparing(learner)

    def health(self, last: int) -> WorldHealth:
        """Return what is known after the draw of round `last`."""
        found = health(self.turning, last)
        why = "the learner draws without knowing the probabilities"
        return found._replace(unknown=why) if self._blind else found

    def grown(self, graph: FeedbackGraph, learner: Learner) -> Self:
        """Return it with the arms that `graph` has more, of which nothing was seen until now."""
        more = Turning.new(graph.n_arms - self.turning.arms.shape[1]).arms
        arms, window = np.concatenate([self.turning.arms, more], axis=1), self.turning.window.copy()
        return type(self)(graph, learner, Turning(arms, window))

    def contents(self) -> dict[str, np.ndarray]:
        """Return everything, as arrays of a state file."""
        return {f"turning.{name}": array for name, array in self.turning._asdict().items()}

    @classmethod
    def from_contents(cls, graph: FeedbackGraph, learner: Learner, last: int, arrays: Mapping[str, np.ndarray]) -> Self:
        """Go on from what `contents` returned; a file from before there was an alarm begins to watch now."""
        if "turning.arms" in arrays:
            turning = Turning(*(arrays[f"turning.{name}"] for name in Turning._fields))
        else:
            turning = Turning.new(graph.n_arms, last + 1)
        return cls(graph, learner, turning)
