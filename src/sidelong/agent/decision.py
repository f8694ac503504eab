"""A decision: the arm to play, and the probabilities that it was drawn with."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from sidelong.agent.advice import advice_in
from sidelong.agent.kernels import Pending
from sidelong.agent.observers import DrawnRound
from sidelong.errors import DecisionError
from sidelong.learners import squarecb

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy.typing as npt

    from sidelong.agent.rounds import Rounds
    from sidelong.graphs.graph import FeedbackGraph


class Decision:
    """What an agent answers to `ask`. It cannot be changed, and keeps its probabilities, whatever is learned later.

    If its learner does not look at every arm (refresh="epoch"), it keeps those of its arm and of what that reveals.
    Those of all arms are made when they are first read, which must be before the agent is asked or told again.
    """

    # The row of a table that it lies in, which is written once; and what `tell` needs without looking there.
    __slots__ = ("_advisers", "_arm", "_carried", "_graph", "_slot", "_t", "_table", "_tag")

    def __init__(
        self,
        tag: str,
        graph: FeedbackGraph,
        table: Pending,
        slot: int,
        drawn: tuple[int, int, int],
        advisers: tuple[str, ...] = (),
    ) -> None:
        self._tag = tag
        self._graph = graph
        self._table = table
        self._slot = slot
        self._t, self._arm, self._carried = drawn
        self._advisers = advisers  # those who were known, and may have been silent

    def __reduce__(self) -> tuple[Any, ...]:
        """Copy what is its own, and not those that lie in the same table."""
        return type(self), (self._tag, self._graph, self._own(), 0, self._numbers, self._advisers)

    def __eq__(self, other: object) -> bool:
        """Tell whether both are one draw: an agent makes a new object each time that its `pending` is read."""
        if not isinstance(other, Decision):
            return NotImplemented
        same = self._t == other._t and self._tag == other._tag and self._arm == other._arm
        return same and self._p.tobytes() == other._p.tobytes()

    def __hash__(self) -> int:
        return hash((self._t, self._tag))

    @property
    def _numbers(self) -> tuple[int, int, int]:
        return self._t, self._arm, self._carried

    def _own(self) -> Pending:
        """Return its row as a table of one row."""
        return Pending(*(column[self._slot : self._slot + 1].copy() for column in self._table))

    @property
    def id(self) -> str:
        """What names this decision: pass it to `tell` of the same agent, from anywhere.

        Agents with the same learner, options, seed and graph name their decisions alike. Give each its own seed.
        """
        return f"{self._t}-{self._tag}"

    @property
    def drawn(self) -> DrawnRound:
        """The decision as kernels see it. Its arrays belong to the agent."""
        table, slot = self._table, self._slot
        return DrawnRound(*self._numbers, int(table.outstanding[slot]), self._p, table.trace[slot], table.mean[slot])

    @property
    def _p(self) -> np.ndarray:
        return self._table.p[self._slot]  # type: ignore[no-any-return]

    @property
    def round(self) -> int:
        """The number of the round, from 1."""
        return self._t

    @property
    def arm(self) -> int:
        """The arm to play."""
        return self._arm

    @property
    def label(self) -> str | None:
        """What the arm is called, if the graph has labels."""
        labels = self._graph.labels
        return None if labels is None else labels[self._arm]

    @property
    def carried_out(self) -> int:
        """The arm that was carried out: `arm`, unless the agent was told by `override` that it was another one."""
        return self._carried

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
        p = self._p
        unknown = np.isnan(p[self._arm])
        return np.full_like(p, np.nan) if unknown else self._graph.observe_probabilities(p)

    @property
    def advice(self) -> dict[str, npt.NDArray[np.float64]]:
        """The probabilities that each adviser gave to the arms, by name; those who were silent are not there."""
        return advice_in(self._table.trace[self._slot], self._advisers, self._graph.n_arms)

    @property
    def reveals(self) -> npt.NDArray[np.int32]:
        """The arms whose losses are revealed, by the arm that was carried out: what `tell` wants to know."""
        return self._graph.row(self._carried)

    @property
    def revealed_probabilities(self) -> npt.NDArray[np.float64]:
        """The probability, before the draw, that the loss of each arm in `reveals` would be revealed."""
        return self.observe_probabilities[self.reveals]

    @property
    def kept_bytes(self) -> int:
        """How many bytes it keeps in memory until it is told, without its graph."""
        return sum(part.nbytes for part in self.drawn if isinstance(part, np.ndarray))

    def with_features(self, x: Any) -> ContextualDecision:
        """Return the same decision with the features that it was made with."""
        return ContextualDecision(self._tag, self._graph, self._table, self._slot, self._numbers, x, self._advisers)

    def __repr__(self) -> str:
        arm = self._graph.arm_name(self._arm)
        return f"<Decision {self.id}: play arm {arm}, drawn with probability {self.probability:.4g}>"


class SparingDecision(Decision):
    """A decision of a learner that does not look at every arm: `p` holds P of the revealed arms alone."""

    __slots__ = ("_all", "_make")

    def __init__(
        self,
        tag: str,
        graph: FeedbackGraph,
        table: Pending,
        slot: int,
        drawn: tuple[int, int, int],
        make: Callable[[int, FeedbackGraph], np.ndarray | None] | None,
        every: np.ndarray | None = None,
    ) -> None:
        super().__init__(tag, graph, table, slot, drawn)
        self._make = make
        self._all = every

    def __reduce__(self) -> tuple[Any, ...]:
        """Copy without the agent: the probabilities of all arms go along only if they were read."""
        return type(self), (self._tag, self._graph, self._own(), 0, self._numbers, None, self._all)

    @property
    def _p(self) -> np.ndarray:
        return self._table.p[self._slot, : self._graph.row(self._arm).size]

    @property
    def probability(self) -> float:
        """The probability with which `arm` was drawn."""
        return float(self._table.probability[self._slot])

    @property
    def probabilities(self) -> npt.NDArray[np.float64]:
        """The probability of each arm, made when it is first read."""
        if self._all is None and self._make is not None:
            self._all = self._make(self._t, self._graph)
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
        if self._carried != self._arm:
            return np.full(self.reveals.size, np.nan)  # it keeps those of the arm that was drawn
        return self._p.copy()


class ContextualDecision(Decision):
    """A decision with features, as a `ContextualAgent` answers to `ask`, which it keeps until it is told."""

    __slots__ = ("_x",)

    def __init__(
        self,
        tag: str,
        graph: FeedbackGraph,
        table: Pending,
        slot: int,
        drawn: tuple[int, int, int],
        x: Any,
        advisers: tuple[str, ...] = (),
    ) -> None:
        super().__init__(tag, graph, table, slot, drawn, advisers)
        self._x = x

    def __reduce__(self) -> tuple[Any, ...]:
        """Copy what is its own."""
        return type(self), (self._tag, self._graph, self._own(), 0, self._numbers, self._x, self._advisers)

    @property
    def x(self) -> Any:
        """The features, as the regressor has read them."""
        return self._x

    @property
    def predictions(self) -> npt.NDArray[np.float64]:
        """The loss that was predicted for each arm when this was asked for, from 0 to 1."""
        self._check_played()
        view = self._table.trace[self._slot, -self._graph.n_arms :]
        view.flags.writeable = False
        return view

    def _check_played(self) -> None:
        if self._advisers:
            raise DecisionError(
                "Predictions were advice here, and were not played: see `advice`, and `predict` for predictions."
            )

    @property
    def gamma(self) -> float:
        """How strongly a worse prediction keeps an arm from being played: about 1 / (gamma times how much worse)."""
        self._check_played()
        return float(self._table.trace[self._slot, squarecb.LEARNER.traces.index("gamma")])

    @property
    def value(self) -> float:
        """What `probabilities` can cost beyond the best arm, beside what errors of the predictions cost."""
        self._check_played()
        return float(self._table.trace[self._slot, squarecb.LEARNER.traces.index("value")])

    @property
    def kept_bytes(self) -> int:
        """How many bytes it keeps in memory until it is told, without its graph."""
        return super().kept_bytes + sum(part.nbytes for part in self._x if isinstance(part, np.ndarray))


def decision_at(
    rounds: Rounds, slot: int, every: Callable[[int, FeedbackGraph], np.ndarray | None] | None = None
) -> Decision:
    """Return a pending decision of some key."""
    table, setup = rounds.pending, rounds.setup
    graph, tag = rounds.bank.graphs[table.graph[slot]], rounds.tag_of(int(table.key[slot]))
    drawn = int(table.round[slot]), int(table.arm[slot]), int(table.carried[slot])
    if not rounds.single:  # the table of many keys is large, and goes with the last of its decisions
        table, slot = Pending(*(column[slot : slot + 1].copy() for column in table)), 0
    if rounds.regressor is not None:
        x = rounds.regressor.kept(table.x[slot])
        return ContextualDecision(tag, graph, table, slot, drawn, x, setup.advisers)
    if setup.learner.is_sparing:
        return SparingDecision(tag, graph, table, slot, drawn, every)
    return Decision(tag, graph, table, slot, drawn, setup.advisers)


def redraw(decision: Decision, arm: int) -> None:
    """Let a pending decision have drawn another arm: for checks that play every draw once, with its probability."""
    decision._arm = decision._carried = arm  # noqa: SLF001  # its own
    decision._table.arm[decision._slot] = decision._table.carried[decision._slot] = arm  # noqa: SLF001
