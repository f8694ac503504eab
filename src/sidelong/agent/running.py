"""A learner at work: its constants and its state, with the kernels compiled for them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from sidelong._jit import bind
from sidelong.agent.decision import Decision, SparingDecision
from sidelong.agent.learning import asking, learning
from sidelong.agent.seen import Seen
from sidelong.evaluation.turning import Turning
from sidelong.learners.interface import Asked, Need, all_probabilities, is_sparing, refusal, release, trace_size

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy.typing as npt

    from sidelong.graphs.graph import FeedbackGraph
    from sidelong.learners.interface import Learner


class RunningLearner:
    """A learner that plays. Only its `state` changes."""

    def __init__(self, module: Learner, graph: FeedbackGraph, seed: int, params: Any) -> None:
        self.module = module
        self.params = params
        self.state = module.init(params, graph)
        self.seed = np.uint64(seed)
        self.is_sparing = is_sparing(module)
        self.binary = str(module.name) if Need.BINARY_LOSSES in module.needs else ""  #: for `read_losses`
        self.losses = np.empty(graph.n_arms)  #: where `update` finds those of the revealed arms
        self.slots: Any = self.losses.data  #: the same, for numbers one by one
        self._n_arms = graph.n_arms
        self.room = np.empty(graph.n_arms)
        self.present = np.ones(graph.n_arms, np.bool_)  #: where the kernels mark the arms that can be played
        self.drawn = 0  #: the last round, until something is learned
        self._trace_size = trace_size(module, graph.n_arms)
        known, trace = (params, self.state, graph.arrays, 1), np.empty(self._trace_size)
        self._draw: Callable[..., int]
        self.learn: Callable[..., None]  #: the kernel of `agent.learning`
        self._release: Callable[..., None] | None = None
        self._probability: Callable[..., float] | None = None
        self._all_probabilities: Callable[..., None] | None = None
        of = str(module.name)
        bind(self, "_draw", asking(module), *known, self.seed, self.losses, trace, self.present, of=of)
        seen, turning = Seen.nothing(graph.n_arms), Turning.new(graph.n_arms)
        told = 0, self.losses, self.losses, trace, self.present, True, seen, turning, self.room, self.room, 0, 1
        bind(self, "learn", learning(module), *known, *told, of=of)
        asked = self._asked(graph, 1, self.losses, trace)
        if module.release is not release:
            bind(self, "_release", module.release, *known[:-1], asked, of=of)
        if self.is_sparing:
            bind(self, "_probability", module.probability, *known[:-1], asked, 0, of=of)

    def draw(self, graph: FeedbackGraph, t: int, tag: str) -> Decision:
        """Decide round t."""
        p = self.losses if self.is_sparing else np.empty(self._n_arms)
        trace = np.zeros(self._trace_size)
        arm = self._draw(self.params, self.state, graph.arrays, t, self.seed, p, trace, self.present)
        if type(arm) is not int:  # plain Python gives a number of NumPy
            arm = int(arm)
        if not 0 <= arm < self._n_arms:
            raise refusal(self.module, t, p, arm, self._n_arms)
        self.drawn = t
        if self._probability is None:
            return Decision(tag, t, arm, graph, p, trace)
        probability = self._probability(self.params, self.state, graph.arrays, self._asked(graph, t, p, trace), arm)
        P = p[: revealed(graph, arm).size].copy()
        return SparingDecision(tag, t, arm, graph, P, trace, probability, self.all_probabilities)

    def _asked(self, graph: FeedbackGraph, t: int, p: np.ndarray, trace: np.ndarray) -> Asked:
        if self.module.sleeps:
            np.less(graph.arrays.start, graph.arrays.stop, out=self.present)
        return Asked.new(t, p, trace, self.present, seed=int(self.seed))

    def release(self, decision: Decision) -> None:
        """Let go of a decision that will never be told."""
        if self._release is not None:
            graph, t = decision._graph, decision._round  # noqa: SLF001  # users see copies
            asked = self._asked(graph, t, decision._p, decision._trace)  # noqa: SLF001
            self._release(self.params, self.state, graph.arrays, asked)

    def all_probabilities(self, t: int, graph: FeedbackGraph) -> np.ndarray | None:
        """Return the probabilities of all arms in round t, or None if that is not the one just drawn."""
        if t != self.drawn:
            return None
        p = np.empty(graph.n_arms)
        known = (self.params, self.state, graph.arrays, self._asked(graph, t, p, np.empty(self._trace_size)))
        if self._all_probabilities is None:  # compiled when it is first needed, which may be never
            bind(self, "_all_probabilities", all_probabilities(self.module), *known)
        self._all_probabilities(*known)  # type: ignore[misc]  # it is there now
        return p

    def outlook(self, graph: FeedbackGraph, t: int) -> tuple[np.ndarray, np.ndarray]:
        """Return the gap and the probability of each arm before round t, which is not drawn."""
        before = self.state, self.drawn
        state = self.state = type(self.state)(*(array.copy() for array in self.state))
        try:
            weights = self.draw(graph, t, "").probabilities.copy()
        finally:
            self.state, self.drawn = before
        return getattr(state, "gap", np.full(weights.size, np.nan)), weights


def revealed(graph: FeedbackGraph, arm: int) -> npt.NDArray[np.int32]:
    """Return the arms that an arm reveals; unlike `out_neighbors` it does not check that there is such an arm."""
    arrays = graph.arrays
    return arrays.targets[arrays.start[arm] : arrays.stop[arm]]
