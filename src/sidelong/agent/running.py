"""A learner at work: its constants and its state, with the kernels compiled for them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from sidelong._jit import entry
from sidelong.agent.decision import Decision, SparingDecision
from sidelong.checks import short
from sidelong.learners.interface import Need, all_probabilities, drawing, is_sparing, trace_size

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType

    import numpy.typing as npt

    from sidelong.graphs.graph import FeedbackGraph

__all__ = ["Estimates", "RunningLearner", "degree"]


class Estimates(NamedTuple):
    """What an agent knows about each arm; NaN, and counts of 0, where its learner does not keep such a thing."""

    means: npt.NDArray[np.float64]  #: the mean of the losses it was told; NaN for an arm never revealed
    counts: npt.NDArray[np.int64]  #: how many losses it was told
    gaps: npt.NDArray[np.float64]  #: by how much the arm is worse than the best one, with confidence; 0 if unknown
    weights: npt.NDArray[np.float64]  #: the probability that the next `ask` would play it
    labels: tuple[str, ...] | None = None  #: what the graph calls the arms

    def __str__(self) -> str:
        """Return a table for people: the arms that would be played most, by their labels."""
        first = np.argsort(-self.weights, kind="stable")[:20].tolist()
        names = [short(self.labels[arm]) if self.labels else str(arm) for arm in first]
        width = max(map(len, ["arm", *names]))
        rows = [f"{'arm':<{width}}  weight   mean    gap  count"]
        for name, arm in zip(names, first, strict=True):
            numbers = f"{self.weights[arm]:6.4f} {self.means[arm]:6.4f} {self.gaps[arm]:6.4f}"
            rows.append(f"{name:<{width}}  {numbers} {self.counts[arm]:6,}")
        return "\n".join([*rows, *["..."] * (len(first) < self.weights.size)])


class RunningLearner:
    """A learner that plays. Only its `state` changes."""

    def __init__(self, module: ModuleType, graph: FeedbackGraph, seed: int, params: Any) -> None:
        self.module = module
        self.params = params
        self.state = module.init(params, graph)
        self.seed = np.uint64(seed)
        self.is_sparing = is_sparing(module)
        self.binary = str(module.NAME) if Need.BINARY_LOSSES in module.NEEDS else ""  #: for `read_losses`
        self.losses = np.empty(graph.n_arms)  #: where `update` finds those of the revealed arms
        self.drawn = 0  #: the last round, until something is learned
        self._trace_size = trace_size(module, graph.n_arms)
        known, trace = (params, self.state, graph.arrays, 1), np.empty(self._trace_size)
        self._draw = entry(drawing(module), *known, self.seed, 0, self.losses, trace)
        self._update = entry(module.update, *known, 0, self.losses, self.losses, trace)
        self._probability = entry(module.probability, *known, 0) if self.is_sparing else None
        self._all_probabilities: Callable[..., None] | None = None

    def draw(self, graph: FeedbackGraph, t: int, tag: str) -> Decision:
        """Decide round t."""
        p = self.losses if self.is_sparing else np.empty(self.losses.size)
        trace = np.zeros(self._trace_size)
        arm = int(self._draw(self.params, self.state, graph.arrays, t, self.seed, 0, p, trace))
        self.drawn = t
        if self._probability is None:
            return Decision(tag, t, arm, graph, p, trace)
        probability = self._probability(self.params, self.state, graph.arrays, t, arm)
        P = p[: degree(graph, arm)].copy()
        return SparingDecision(tag, t, arm, graph, P, trace, probability, self.all_probabilities)

    def update(self, graph: FeedbackGraph, made: Decision) -> None:
        """Learn from `losses` what a decision revealed."""
        p, trace = made._p, made._trace  # noqa: SLF001  # what users see of them is read-only
        self._update(self.params, self.state, graph.arrays, made.round, made.arm, p, self.losses, trace)
        self.drawn = 0

    def all_probabilities(self, t: int, graph: FeedbackGraph) -> np.ndarray | None:
        """Return the probabilities of all arms in round t, or None if that is not the one just drawn."""
        if t != self.drawn:
            return None
        p = np.empty(graph.n_arms)
        known = (self.params, self.state, graph.arrays, t, p)
        if self._all_probabilities is None:  # compiled when it is first needed, which may be never
            self._all_probabilities = entry(all_probabilities(self.module), *known)
        self._all_probabilities(*known)
        return p

    def estimates(self, graph: FeedbackGraph, t: int) -> Estimates:
        """Return what is known about each arm before round t, which is not drawn."""
        before = self.state, self.drawn
        state = self.state = type(self.state)(*(array.copy() for array in self.state))
        try:
            weights = self.draw(graph, t, "").probabilities.copy()
        finally:
            self.state, self.drawn = before
        unknown = np.full(weights.size, np.nan)
        counts = getattr(state, "O", np.zeros(weights.size)).astype(np.int64)
        means = np.where(counts > 0, getattr(state, "mean", unknown), np.nan)
        return Estimates(means, counts, getattr(state, "gap", unknown), weights, graph.labels)


def degree(graph: FeedbackGraph, arm: int) -> int:
    """Return how many arms an arm reveals."""
    return int(graph.arrays.stop[arm] - graph.arrays.start[arm])
