"""A decision: the arm to play, and the probabilities that it was drawn with."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from sidelong.errors import DecisionError

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy.typing as npt

    from sidelong.graphs.graph import FeedbackGraph


class Decision:
    """What an agent answers to `ask`. It cannot be changed, and keeps its probabilities, whatever is learned later.

    If its learner does not look at every arm (refresh="epoch"), it keeps those of its arm and of what that reveals.
    Those of all arms are made when they are first read, which must be before the agent is asked or told again.
    """

    __slots__ = ("_arm", "_graph", "_p", "_round", "_tag", "_trace")

    def __init__(self, tag: str, round_: int, arm: int, graph: FeedbackGraph, p: np.ndarray, trace: np.ndarray) -> None:
        self._tag = tag
        self._round = round_
        self._arm = arm
        self._graph = graph
        self._p = p
        self._trace = trace

    @property
    def id(self) -> str:
        """What names this decision: pass it to `tell` of the same agent, from anywhere.

        Agents with the same learner, options, seed and graph name their decisions alike. Give each its own seed.
        """
        return f"{self._round}-{self._tag}"

    @property
    def round(self) -> int:
        """The number of the round, from 1."""
        return self._round

    @property
    def arm(self) -> int:
        """The arm to play."""
        return self._arm

    @property
    def graph(self) -> FeedbackGraph:
        """The graph that the arm was drawn for."""
        return self._graph

    @property
    def probability(self) -> float:
        """The probability with which `arm` was drawn; NaN if the learner draws without knowing it, as ts-n does."""
        return float(self._p[self._arm])

    @property
    def probabilities(self) -> npt.NDArray[np.float64]:
        """The probability of each arm."""
        view = self._p.view()
        view.flags.writeable = False
        return view

    @property
    def observe_probabilities(self) -> npt.NDArray[np.float64]:
        """The probability, before the draw, that the loss of each arm would be revealed."""
        unknown = np.isnan(self._p[self._arm])
        return np.full_like(self._p, np.nan) if unknown else self._graph.observe_probabilities(self._p)

    @property
    def reveals(self) -> npt.NDArray[np.int32]:
        """The arms whose losses playing `arm` reveals: what `tell` wants to know."""
        return self._graph.row(self._arm)

    @property
    def revealed_probabilities(self) -> npt.NDArray[np.float64]:
        """The probability, before the draw, that the loss of each arm in `reveals` would be revealed."""
        return self.observe_probabilities[self.reveals]

    @property
    def kept_bytes(self) -> int:
        """How many bytes it keeps in memory until it is told, without its graph."""
        return self._p.nbytes + self._trace.nbytes

    def __repr__(self) -> str:
        arm = self._graph.arm_name(self._arm)
        return f"<Decision {self.id}: play arm {arm}, drawn with probability {self.probability:.4g}>"


class SparingDecision(Decision):
    """A decision of a learner that does not look at every arm: `p` holds P of the revealed arms alone."""

    __slots__ = ("_all", "_make", "_probability")

    def __init__(
        self,
        tag: str,
        round_: int,
        arm: int,
        graph: FeedbackGraph,
        p: np.ndarray,
        trace: np.ndarray,
        probability: float,
        make: Callable[[int, FeedbackGraph], np.ndarray | None] | None,
        every: np.ndarray | None = None,
    ) -> None:
        super().__init__(tag, round_, arm, graph, p, trace)
        self._probability = probability
        self._make = make
        self._all = every

    def __reduce__(self) -> tuple[Any, ...]:
        """Copy without the agent: the probabilities of all arms go along only if they were read."""
        known = (self._tag, self._round, self._arm, self._graph, self._p, self._trace, self._probability)
        return type(self), (*known, None, self._all)

    @property
    def probability(self) -> float:
        """The probability with which `arm` was drawn."""
        return self._probability

    @property
    def probabilities(self) -> npt.NDArray[np.float64]:
        """The probability of each arm, made when it is first read."""
        if self._all is None and self._make is not None:
            self._all = self._make(self._round, self._graph)
        if self._all is None:
            raise DecisionError(
                f"The agent was asked or told since decision {self.id}, or this is a copy of it, and its learner does "
                f"not keep the probabilities of all arms. Read them before; `probability` and `tell` work at any time."
            )
        view = self._all.view()
        view.flags.writeable = False
        return view

    @property
    def observe_probabilities(self) -> npt.NDArray[np.float64]:
        """The probability, before the draw, that the loss of each arm would be revealed."""
        return self._graph.observe_probabilities(self.probabilities)

    @property
    def revealed_probabilities(self) -> npt.NDArray[np.float64]:
        """The probability, before the draw, that the loss of each arm in `reveals` would be revealed; always there."""
        return self._p.copy()
