"""Ask and tell where something is known before each decision: the weather, the request, the customer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self, cast

import numpy as np

from sidelong.agent import state_file
from sidelong.agent.agent import Agent
from sidelong.agent.arms import as_present
from sidelong.agent.decision import Decision
from sidelong.agent.regressors import Foreign, Regressor, Ridge
from sidelong.checks import nearest, short
from sidelong.errors import LearnerError, StateFileError
from sidelong.learners import squarecb
from sidelong.outcomes.revealed import Revealed

if TYPE_CHECKING:
    from collections.abc import Iterable
    from os import PathLike

    import numpy.typing as npt

    from sidelong.agent.lateness import Lateness
    from sidelong.estimates import Estimates
    from sidelong.evaluation import Certificate, WorldHealth
    from sidelong.graphs.graph import FeedbackGraph
    from sidelong.outcomes.revealed import Losses
    from sidelong.outcomes.scale import Scale


class ContextualDecision(Decision):
    """What a `ContextualAgent` answers to `ask`. It keeps the features that it was made with until it is told."""

    __slots__ = ("_x",)

    def __init__(
        self, tag: str, round_: int, arm: int, graph: FeedbackGraph, p: np.ndarray, trace: np.ndarray, x: Any
    ) -> None:
        super().__init__(tag, round_, arm, graph, p, trace)
        self._x = x  # as the regressor has read it

    @property
    def predictions(self) -> npt.NDArray[np.float64]:
        """The loss that was predicted for each arm when this was asked for, from 0 to 1."""
        view = self._trace[-self._p.size :]
        view.flags.writeable = False
        return view

    @property
    def gamma(self) -> float:
        """How strongly a worse prediction keeps an arm from being played: about 1 / (gamma times how much worse)."""
        return float(self._trace[squarecb.TRACES.index("gamma")])

    @property
    def value(self) -> float:
        """What `probabilities` can cost beyond the best arm, beside what errors of the predictions cost."""
        return float(self._trace[squarecb.TRACES.index("value")])

    @property
    def kept_bytes(self) -> int:
        """How many bytes it keeps in memory until it is told, without its graph."""
        return super().kept_bytes + sum(part.nbytes for part in self._x if isinstance(part, np.ndarray))


class ContextualAgent:
    """A learner that is told what is known before each decision, and predicts the loss of each arm from it.

    All arms that a decision reveals teach the regressor, not the played one alone. The same graph, seed, options,
    features and feedback give the same decisions, bit for bit, on any machine, if the regressor is "ridge".
    An agent is not safe to share between threads.

    Args:
        learner: "squarecb.g".
        graph: whose losses playing an arm reveals. It also says how many arms there are. Each must reveal itself.
        regressor: "ridge", online ridge regression; or a model with `learn_one` and `predict_one`, as those of river,
            or with `partial_fit` and `predict`, as those of scikit-learn. Each arm gets a copy of it, unless `ask` is
            given a row of features for each arm: then one model predicts for all arms.
        seed: a whole number from 0 to 2**64 - 1.
        scale: the range of your own costs or scores, if `tell` is to take those in place of losses in [0, 1].
        certificate: whether to keep what `certificate` needs, as for `Agent`.
        gamma_scale: the larger, the less an arm is played that is predicted to be worse.
        penalty: of "ridge". Features should be of the size of 1, or this should be smaller.
        forgetting: of "ridge": with 0.99, the hundredth last loss of an arm counts about a third of the last one.
        hashed: how many numbers a mapping of names becomes.

    Example:
        >>> import sidelong as sl
        >>> agent = sl.ContextualAgent("squarecb.g", sl.graphs.nested(3), seed=7)
        >>> decision = agent.ask({"weekday": "Monday", "temperature": 0.3})
        >>> decision.arm, decision.predictions.tolist()
        (1, [0.0, 0.0, 0.0])
        >>> agent.tell(decision, {0: 0.3, 1: 0.2})
        True
    """

    def __init__(
        self,
        learner: str,
        graph: FeedbackGraph,
        regressor: Any = "ridge",
        *,
        seed: int = 0,
        scale: Scale | None = None,
        certificate: bool = False,
        gamma_scale: float = 30.0,
        penalty: float | None = None,
        forgetting: float | None = None,
        hashed: int = 64,
    ) -> None:
        if learner != squarecb.LEARNER.name:
            raise LearnerError(
                f"A ContextualAgent takes the learner {squarecb.LEARNER.name!r}, not {short(learner)}."
                f"{nearest(str(learner), [squarecb.LEARNER.name])} Without features, use Agent."
            )
        own = {"penalty": penalty, "forgetting": forgetting}
        given = {name: value for name, value in own.items() if value is not None}
        if isinstance(regressor, str) and regressor != "ridge":
            raise LearnerError(f"regressor must be 'ridge' or a model, not {short(regressor)}.")
        if given and not isinstance(regressor, str):
            raise LearnerError(f"{next(iter(given))} is an option of regressor='ridge'; a model has its own.")
        self._agent = Agent(squarecb, graph, seed=seed, scale=scale, certificate=certificate, gamma_scale=gamma_scale)
        self._regressor: Regressor = (
            Ridge(graph.n_arms, hashed=hashed, **given)
            if isinstance(regressor, str)
            else Foreign(graph.n_arms, regressor, hashed=hashed)
        )

    @property
    def learner(self) -> str:
        """The name of the learner."""
        return self._agent.learner

    @property
    def graph(self) -> FeedbackGraph:
        """The graph of every round that `ask` is not given another one for."""
        return self._agent.graph

    @property
    def seed(self) -> int:
        """The seed."""
        return self._agent.seed

    @property
    def scale(self) -> Scale | None:
        """The range of the numbers that `tell` takes; None if they are losses in [0, 1]."""
        return self._agent.scale

    @property
    def round(self) -> int:
        """How many decisions were asked for."""
        return self._agent.round

    @property
    def remembers(self) -> int:
        """For how many decisions it remembers what it was told, to recognise a repetition."""
        return self._agent.remembers

    @remembers.setter
    def remembers(self, decisions: int) -> None:
        self._agent.remembers = decisions

    @property
    def pending(self) -> tuple[ContextualDecision, ...]:
        """The decisions that were neither told nor cancelled, oldest first."""
        return cast("tuple[ContextualDecision, ...]", self._agent.pending)

    def ask(
        self, x: Any, graph: FeedbackGraph | None = None, available: Iterable[int | str | bool] | None = None
    ) -> ContextualDecision:
        """Draw an arm.

        Args:
            x: what is known: a list of numbers, a mapping of names to numbers and words, or a row of either kind for
                each arm, where arms have features. All must be like the first one. It is copied.
            graph: the graph of this round alone, where graphs change from round to round.
            available: the arms that can be played in this round, by number or label, or a flag for each arm; all if not
                given. The others are neither played nor revealed.
        """
        shown = None if graph is None and available is None else self._agent.graph_of_round(graph, available)
        kept = self._regressor.read(x)
        inner = self._agent
        self._regressor.predict(kept, inner._learner.state.f)  # noqa: SLF001  # the agent is its own
        decision = _with_features(inner.ask(shown), kept)
        inner._ledger.pending[decision.round] = decision  # noqa: SLF001
        return decision

    def graph_of_round(
        self, graph: FeedbackGraph | None = None, available: Iterable[int | str | bool] | None = None
    ) -> FeedbackGraph:
        """Return the graph that `ask` would draw an arm for: without the edges of the arms that are absent."""
        return self._agent.graph_of_round(graph, available)

    def predict(self, x: Any) -> npt.NDArray[np.float64]:
        """Return the predicted loss of each arm, from 0 to 1, without a decision; 0 before the first one."""
        f = np.zeros(self.graph.n_arms)
        kept = self._regressor.read(x)
        if self.round:  # the first decision fixes the features, and a look does not
            self._regressor.predict(kept, f)
        return f

    def tell(self, decision: Decision | str, losses: Losses | Revealed, graph: FeedbackGraph | None = None) -> bool:
        """Learn the losses that a decision revealed: now or later, in any order.

        Args:
            decision: the decision, or its id.
            losses: a number in [0, 1], or in the agent's `scale`, for every arm in `decision.reveals`, by arm or in
                their order; or what a function of `sidelong.outcomes` returned for the arm of this decision, whole.
            graph: where only the outcome shows what is revealed, the graph of the round as the outcome made it. The
                regressor then learns the loss of the played arm alone: the outcome may have selected the others.

        Returns:
            True if something was learned, False if the same was told before.
        """
        ledger = self._agent._ledger  # noqa: SLF001  # the agent is its own
        made: Any = ledger.pending.get(ledger.round_of(decision))
        if not self._agent.tell(decision, losses, graph):
            return False
        shown = losses.graph if isinstance(losses, Revealed) else graph
        shown = made.graph if shown is None else as_present(shown, made.graph)
        arms = shown.row(made.arm)
        told = self._agent._learner.losses[: arms.size]  # noqa: SLF001
        if shown != made.graph:
            told, arms = told[arms == made.arm], arms[arms == made.arm]
        self._regressor.learn(made._x, arms, told)  # noqa: SLF001
        return True

    def cancel(self, decision: Decision | str, *, lost: bool = False) -> None:
        """Give up a decision: nothing is learned from it; `lost` says that it was carried out."""
        self._agent.cancel(decision, lost=lost)

    def certificate(self, confidence: float = 0.95) -> Certificate:
        """Return how much was lost so far, at most, beyond any fixed arm: see `Agent.certificate`."""
        return self._agent.certificate(confidence)

    def estimates(self) -> Estimates:
        """Return what was seen of each arm, over all that was known; `gaps` and `weights` depend on that, and are NaN.

        What an arm will cost is what `predict` says.
        """
        inner, unknown = self._agent, np.full(self.graph.n_arms, np.nan)
        return inner._seen.estimates(unknown, unknown, inner.graph)  # noqa: SLF001  # the agent is its own

    def health(self) -> WorldHealth:
        """Return whether the world has turned, over all that was known: see `Agent.health`."""
        return self._agent.health()

    def lateness(self) -> Lateness:
        """Return how late feedback was."""
        return self._agent.lateness()

    def save(self, path: str | PathLike[str]) -> None:
        """Write everything to a file, from which `ContextualAgent.load` goes on as if it had never stopped.

        A model of another package has no format that would open for ever: an agent with one is pickled instead.
        """
        state_file.write(path, *self.contents())

    def contents(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """Return everything, as the header and the arrays of a state file."""
        regressor = self._regressor
        if not isinstance(regressor, Ridge):
            raise StateFileError(
                "An agent can be saved with regressor='ridge'. A model of another package has no format that opens "
                "for ever; pickle the agent, and load it with the same versions of all packages."
            )
        header, arrays = self._agent.contents()
        own, more = regressor.contents([each._x for each in self.pending])  # noqa: SLF001  # its own
        return header | {"regressor": own}, arrays | more

    @classmethod
    def load(cls, path: str | PathLike[str]) -> Self:
        """Go on from a file that `save` wrote."""
        return cls.from_contents(*state_file.read(path), path)

    @classmethod
    def from_contents(
        cls,
        header: dict[str, Any],
        arrays: dict[str, np.ndarray],
        path: str | PathLike[str],
    ) -> Self:
        """Go on from what `contents` returned; `path` is what messages call the place it was kept in."""
        if "regressor" not in header:
            raise StateFileError(f"{path} is of an agent without features. Load it with Agent.load.")
        inner = Agent.from_contents(header, arrays, path, squarecb)
        return cls._resumed(inner, *Ridge.from_contents(path, inner.graph.n_arms, header["regressor"], arrays))

    @classmethod
    def _resumed(cls, inner: Agent, regressor: Regressor, kept: list[Any]) -> Self:
        """Return an agent that goes on, with what the regressor read for each decision that waits."""
        waiting = inner._ledger.pending  # noqa: SLF001  # the agent is its own
        for made, x in zip(list(waiting.values()), kept, strict=True):
            waiting[made.round] = _with_features(made, x)
        agent = cls.__new__(cls)
        agent._agent, agent._regressor = inner, regressor  # noqa: SLF001
        return agent

    def __reduce__(self) -> tuple[Any, ...]:
        kept = [each._x for each in self.pending]  # noqa: SLF001  # its own
        return _restore, (type(self), state_file.pack(*self._agent.contents()), self._regressor, kept)

    def __repr__(self) -> str:
        name = "ridge" if isinstance(self._regressor, Ridge) else "a model of another package"
        pending = f", {len(self.pending)} pending" if self.pending else ""
        return f"<ContextualAgent {self.learner} with {name} on {self.graph!r}: {self.round} decisions{pending}>"


def _with_features(made: Decision, x: Any) -> ContextualDecision:
    """Return a decision with the features that it was made with."""
    known = made._tag, made._round, made._arm, made._graph, made._p, made._trace  # noqa: SLF001
    return ContextualDecision(*known, x)


def _restore(kind: type[ContextualAgent], data: bytes, regressor: Regressor, kept: list[Any]) -> ContextualAgent:
    inner = Agent.from_contents(*state_file.unpack(data, "The pickle"), "The pickle", squarecb)
    return kind._resumed(inner, regressor, kept)  # noqa: SLF001
