"""A decision: the arm to play, and the probabilities that it was drawn with."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from sidelong.graphs.graph import FeedbackGraph

__all__ = ["Decision"]


class Decision:
    """What an agent answers to `ask`. It keeps its probabilities, whatever the agent learns later."""

    __slots__ = ("arm", "graph", "p", "round", "tag", "trace")

    def __init__(self, tag: str, round_: int, arm: int, graph: FeedbackGraph, p: np.ndarray, trace: np.ndarray) -> None:
        # The agent's own: which agent it was, and what its kernels need to learn from this round.
        self.tag = tag
        self.p = p
        self.trace = trace
        #: The number of the round, from 1.
        self.round = round_
        #: The arm to play.
        self.arm = arm
        #: The graph that the arm was drawn for.
        self.graph = graph

    @property
    def id(self) -> str:
        """What names this decision, in this agent and in no other: pass it to `tell` from anywhere."""
        return f"{self.round}-{self.tag}"

    @property
    def probability(self) -> float:
        """The probability with which `arm` was drawn."""
        return float(self.p[self.arm])

    @property
    def probabilities(self) -> npt.NDArray[np.float64]:
        """The probability of each arm."""
        view = self.p.view()
        view.flags.writeable = False
        return view

    @property
    def observe_probabilities(self) -> npt.NDArray[np.float64]:
        """The probability, before the draw, that the loss of each arm would be revealed."""
        return self.graph.observe_probabilities(self.p)

    @property
    def reveals(self) -> npt.NDArray[np.int32]:
        """The arms whose losses playing `arm` reveals: what `tell` wants to know."""
        return self.graph.out_neighbors(self.arm)

    def __repr__(self) -> str:
        return f"<Decision {self.id}: play arm {self.arm}, drawn with probability {self.probability:.4g}>"
