"""A decision: the arm to play, and the probabilities that it was drawn with."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import numpy as np

from sidelong.agent.advice import advice_in
from sidelong.agent.observers import DrawnRound
from sidelong.errors import DecisionError
from sidelong.learners import squarecb

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    import numpy.typing as npt

    from sidelong.agent.setup import Setup
    from sidelong.graphs.graph import FeedbackGraph


class Decision:
    """What an agent answers to `ask`. It cannot be changed, and keeps its probabilities, whatever is learned later.

    If its learner does not look at every arm (refresh="epoch"), it keeps those of its arm and of what that reveals.
    Those of all arms are made when they are first read, which must be before the agent is asked or told again.
    """

    __slots__ = ("_advisers", "_drawn", "_graph", "_tag")

    def __init__(self, tag: str, graph: FeedbackGraph, drawn: DrawnRound, advisers: tuple[str, ...] = ()) -> None:
        self._tag = tag
        self._graph = graph
        self._drawn = drawn
        self._advisers = advisers  # those who were known, and may have been silent

    @property
    def id(self) -> str:
        """What names this decision: pass it to `tell` of the same agent, from anywhere.

        Agents with the same learner, options, seed and graph name their decisions alike. Give each its own seed.
        """
        return f"{self._drawn.t}-{self._tag}"

    @property
    def drawn(self) -> DrawnRound:
        """The decision as kernels see it. Its arrays belong to the agent."""
        return self._drawn

    @property
    def round(self) -> int:
        """The number of the round, from 1."""
        return self._drawn.t

    @property
    def arm(self) -> int:
        """The arm to play."""
        return self._drawn.arm

    @property
    def label(self) -> str | None:
        """What the arm is called, if the graph has labels."""
        labels = self._graph.labels
        return None if labels is None else labels[self._drawn.arm]

    @property
    def carried_out(self) -> int:
        """The arm that was carried out: `arm`, unless the agent was told by `override` that it was another one."""
        return self._drawn.carried

    @property
    def graph(self) -> FeedbackGraph:
        """The graph that the arm was drawn for."""
        return self._graph

    @property
    def probability(self) -> float:
        """The probability with which `arm` was drawn; NaN if the learner draws without knowing it, as ts-n does."""
        return float(self._drawn.p[self._drawn.arm])

    @property
    def probabilities(self) -> npt.NDArray[np.float64]:
        """The probability of each arm."""
        view = self._drawn.p.view()
        view.flags.writeable = False
        return view

    @property
    def observe_probabilities(self) -> npt.NDArray[np.float64]:
        """The probability, before the draw, that the loss of each arm would be revealed."""
        p = self._drawn.p
        unknown = np.isnan(p[self._drawn.arm])
        return np.full_like(p, np.nan) if unknown else self._graph.observe_probabilities(p)

    @property
    def advice(self) -> dict[str, npt.NDArray[np.float64]]:
        """The probabilities that each adviser gave to the arms, by name; those who were silent are not there."""
        return advice_in(self._drawn.trace, self._advisers, self._graph.n_arms)

    @property
    def reveals(self) -> npt.NDArray[np.int32]:
        """The arms whose losses are revealed, by the arm that was carried out: what `tell` wants to know."""
        return self._graph.row(self._drawn.carried)

    @property
    def revealed_probabilities(self) -> npt.NDArray[np.float64]:
        """The probability, before the draw, that the loss of each arm in `reveals` would be revealed."""
        return self.observe_probabilities[self.reveals]

    @property
    def kept_bytes(self) -> int:
        """How many bytes it keeps in memory until it is told, without its graph."""
        return sum(part.nbytes for part in self._drawn if isinstance(part, np.ndarray))

    def with_arms(self, graph: FeedbackGraph, drawn: DrawnRound) -> Self:
        """Return the same decision on another graph, or as it was carried out."""
        return type(self)(self._tag, graph, drawn, self._advisers)

    def with_features(self, x: Any) -> ContextualDecision:
        """Return the same decision with the features that it was made with."""
        return ContextualDecision(self._tag, self._graph, self._drawn, x)

    def __repr__(self) -> str:
        arm = self._graph.arm_name(self._drawn.arm)
        return f"<Decision {self.id}: play arm {arm}, drawn with probability {self.probability:.4g}>"


class SparingDecision(Decision):
    """A decision of a learner that does not look at every arm: `p` holds P of the revealed arms alone."""

    __slots__ = ("_all", "_make", "_probability")

    def __init__(
        self,
        tag: str,
        graph: FeedbackGraph,
        drawn: DrawnRound,
        probability: float,
        make: Callable[[int, FeedbackGraph], np.ndarray | None] | None,
        every: np.ndarray | None = None,
    ) -> None:
        super().__init__(tag, graph, drawn)
        self._probability = probability
        self._make = make
        self._all = every

    def __reduce__(self) -> tuple[Any, ...]:
        """Copy without the agent: the probabilities of all arms go along only if they were read."""
        return type(self), (self._tag, self._graph, self._drawn, self._probability, None, self._all)

    def with_arms(self, graph: FeedbackGraph, drawn: DrawnRound) -> Self:
        """Return the same decision on another graph, or as it was carried out."""
        return type(self)(self._tag, graph, drawn, self._probability, self._make, self._all)

    @property
    def probability(self) -> float:
        """The probability with which `arm` was drawn."""
        return self._probability

    @property
    def probabilities(self) -> npt.NDArray[np.float64]:
        """The probability of each arm, made when it is first read."""
        if self._all is None and self._make is not None:
            self._all = self._make(self._drawn.t, self._graph)
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
        if self._drawn.carried != self._drawn.arm:
            return np.full(self.reveals.size, np.nan)  # it keeps those of the arm that was drawn
        return self._drawn.p.copy()


class ContextualDecision(Decision):
    """A decision with features, as a `ContextualAgent` answers to `ask`, which it keeps until it is told."""

    __slots__ = ("_x",)

    def __init__(self, tag: str, graph: FeedbackGraph, drawn: DrawnRound, x: Any) -> None:
        super().__init__(tag, graph, drawn)
        self._x = x

    @property
    def x(self) -> Any:
        """The features, as the regressor has read them."""
        return self._x

    @property
    def predictions(self) -> npt.NDArray[np.float64]:
        """The loss that was predicted for each arm when this was asked for, from 0 to 1."""
        view = self._drawn.trace[-self._drawn.p.size :]
        view.flags.writeable = False
        return view

    @property
    def gamma(self) -> float:
        """How strongly a worse prediction keeps an arm from being played: about 1 / (gamma times how much worse)."""
        return float(self._drawn.trace[squarecb.LEARNER.traces.index("gamma")])

    @property
    def value(self) -> float:
        """What `probabilities` can cost beyond the best arm, beside what errors of the predictions cost."""
        return float(self._drawn.trace[squarecb.LEARNER.traces.index("value")])

    @property
    def kept_bytes(self) -> int:
        """How many bytes it keeps in memory until it is told, without its graph."""
        return super().kept_bytes + sum(part.nbytes for part in self._x if isinstance(part, np.ndarray))

    def with_arms(self, graph: FeedbackGraph, drawn: DrawnRound) -> Self:
        """Return the same decision on another graph, or as it was carried out."""
        return type(self)(self._tag, graph, drawn, self._x)


def decision_at(
    setup: Setup,
    columns: Mapping[str, np.ndarray],
    place: int,
    graph: FeedbackGraph,
    tag: str,
    every: Callable[[int, FeedbackGraph], np.ndarray | None] | None = None,
) -> Decision:
    """Return a pending decision of its own, from the place that it has in the columns of pending ones."""
    row = {name: column[place] for name, column in columns.items()}
    size = graph.row(int(row["arm"])).size if setup.learner.is_sparing else graph.n_arms
    t, arm, carried, outstanding = (int(row[name]) for name in ("round", "arm", "carried", "outstanding"))
    p, trace, mean = row["p"][:size].copy(), row["trace"].copy(), row["mean"].copy()
    drawn = DrawnRound(t, arm, carried, outstanding, p, trace, mean)
    if setup.learner.is_sparing:
        return SparingDecision(tag, graph, drawn, float(row["probability"]), every)
    return Decision(tag, graph, drawn, setup.advisers)
