"""Ask and tell where something is known before each decision: the weather, the request, the customer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self, cast

import numpy as np

from sidelong.agent import advice as advising
from sidelong.agent import codec, state_file
from sidelong.agent.agent import Agent
from sidelong.agent.estimates import estimates_of
from sidelong.agent.regressors import Ridge, best_arms, make_regressor
from sidelong.agent.rounds import REMEMBERED_BY_AGENT, Rounds
from sidelong.agent.setup import prepare
from sidelong.checks import nearest, short
from sidelong.errors import AdviceError, LearnerError, StateFileError
from sidelong.learners import catalogue, squarecb

if TYPE_CHECKING:
    from collections.abc import Iterable
    from os import PathLike

    from sidelong.agent.decision import ContextualDecision
    from sidelong.agent.setup import Prior
    from sidelong.estimates import Estimates
    from sidelong.graphs.graph import FeedbackGraph
    from sidelong.outcomes.scale import Scale


class ContextualAgent(Agent):
    """A learner that takes features with each `ask`, and predicts from them the loss of each arm.

    The regressor learns from all arms that a decision reveals, not only from the one that was played. With "ridge", the
    same graph, seed, options, features and feedback give the same decisions, bit for bit, on any machine. An agent is
    not safe to share between threads.

    Args:
        learner: "glance", which takes the arm with the least predicted loss as advice, so that its guarantee holds even
            if the features say nothing; or "squarecb.g", which plays by the predictions alone.
        graph: says which losses playing an arm reveals, and how many arms there are. Each must reveal itself.
        regressor: "ridge", online ridge regression; or a model with `learn_one` and `predict_one`, as those of river,
            or with `partial_fit` and `predict`, as those of scikit-learn. Each arm gets a copy of it, unless `ask` is
            given a row of features for each arm: then one model predicts for all arms. With "glance" also a dict of
            names to such, which compete; one without a name is called "features".
        seed: a whole number from 0 to 2**64 - 1.
        scale: the range of your own costs or scores. `tell` then takes those instead of losses in [0, 1].
        certificate: whether to record what `certificate` needs, as for `Agent`.
        prior: what you believe about some arms, as for `Agent`. `glance` takes a prior; regressors do not learn it.
        incumbent: the name of the adviser who decides today, as for `Agent`. `glance` takes an incumbent.
        allowance: how much the trial may lose in total, in expectation, in the unit of the scale.
        ceiling: what a decision may cost on average, as for `Agent`; `tell` then takes costs. Regressors predict losses
            and not costs, so that their predictions are as without a ceiling.
        cost_bounds: the most that each arm can cost, as for `Agent`.
        overspend: by how much the total cost may ever exceed the ceiling times the number of decisions.
        gamma_scale: for "squarecb.g": the larger it is, the less often arms are played that are predicted to be worse.
            30 by default.
        penalty: for "ridge". Scale features to about 1, or make this smaller.
        forgetting: for "ridge". With 0.99, the hundredth last loss of an arm counts about a third as much as the last.
        hashed: the number of features that a mapping of names becomes.

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
        prior: Prior | None = None,
        incumbent: str | None = None,
        allowance: float | None = None,
        ceiling: float | None = None,
        cost_bounds: Any = None,
        overspend: float | None = None,
        gamma_scale: float | None = None,
        penalty: float | None = None,
        forgetting: float | None = None,
        hashed: int = 64,
    ) -> None:
        known = catalogue.names_seeing_features()
        if learner not in known:
            able = " or ".join(map(repr, known))
            more = nearest(str(learner), known)
            raise LearnerError(
                f"A ContextualAgent takes the learner {able}, not {short(learner)}.{more} Without features, use Agent."
            )
        own: dict[str, Any] = {"penalty": penalty, "forgetting": forgetting}
        given = {name: value for name, value in own.items() if value is not None}
        options = {} if gamma_scale is None else {"gamma_scale": gamma_scale}
        keeps: dict[str, Any] = {"scale": scale, "prior": prior, "certificate": certificate, "features": True}
        keeps |= {"incumbent": incumbent, "allowance": allowance, "ceiling": (ceiling, cost_bounds, overspend)}
        setup = prepare(learner, graph, seed=seed, options=options, **keeps)
        advises = setup.learner.add_adviser is not None
        chosen = make_regressor(graph.n_arms, regressor, given, hashed, advises=advises)
        self._play(Rounds(setup.with_regressors(chosen.advisers), None, REMEMBERED_BY_AGENT, chosen, single=True))

    @property
    def regressor_names(self) -> tuple[str, ...]:
        """The names under which regressors advise the learner; empty if it plays by the predictions themselves."""
        return tuple(self._regressor.advisers)

    @property
    def pending(self) -> tuple[ContextualDecision, ...]:
        """The decisions that were neither told nor cancelled, oldest first."""
        return cast("tuple[ContextualDecision, ...]", super().pending)

    def ask(  # type: ignore[override]  # what is known comes first
        self,
        x: Any,
        graph: FeedbackGraph | None = None,
        available: Iterable[int | str | bool] | None = None,
        advice: Any = None,
    ) -> ContextualDecision:
        """Draw an arm.

        Args:
            x: what is known: a list of numbers, a mapping of names to numbers and words, or a row of either kind for
                each arm, where arms have features. All must be like the first one. It is copied.
            graph: the graph of this round alone, where graphs change from round to round.
            available: the arms that can be played in this round, by number or label, or a flag for each arm; all if not
                given. The others are neither played nor revealed.
            advice: with "glance", what others would play, as for `Agent.ask`.
        """
        shown, place = self._graph, 0
        if graph is not None or available is not None or self._ceiling is not None:
            shown, place = self._shown(graph, available)
        regressor = self._regressor
        kept = regressor.read(x)
        if regressor.advisers:
            rows = advising.read_one(advice, self._graph)
            advising.check_names(rows, regressor.advisers)
            new = self._new_advisers(rows, shown)
        elif advice is not None:
            raise AdviceError(f"{self.learner} takes no advice. Use glance.")
        if not regressor.kind:
            self._rounds.keep_features(*regressor.shape_of(kept))
        f = regressor.predictions(kept)
        given: Any = f[0]
        if regressor.advisers:
            given = self._lay_out(rows | dict(zip(regressor.advisers, best_arms(f, shown), strict=True)), new)
        made = self._decide(shown, place, given, kept)
        return made.with_features(kept)

    def predict(self, x: Any) -> Any:
        """Return the predicted loss of each arm, from 0 to 1, without a decision; 0 before the first one.

        Of several regressors it is a dict, by name.
        """
        kept, regressor = self._regressor.read(x), self._regressor
        f = np.zeros((max(1, len(regressor.advisers)), self.graph.n_arms))
        if regressor.kind:  # the first decision fixes the features, and a look does not
            f = regressor.predictions(kept)
        return dict(zip(regressor.advisers, f, strict=True)) if len(f) > 1 else f[0]

    def estimates(self) -> Estimates:
        """Return what was seen of each arm, whatever its features. `gaps` and `weights` depend on these, and are NaN.

        `predict` returns what an arm will cost.
        """
        unknown = np.full(self.graph.n_arms, np.nan)
        return estimates_of(self._observers, unknown, unknown, self.graph)

    def outlook(self, graph: FeedbackGraph | None = None, advice: Any = None) -> np.ndarray:  # noqa: ARG002
        """Return NaN for each arm, because the next play depends on its features."""
        return np.full(self.graph_of_round(graph).n_arms, np.nan)

    @classmethod
    def load(cls, path: str | PathLike[str]) -> Self:  # type: ignore[override]  # there is one learner
        """Resume from a file that `save` wrote."""
        return cls.from_contents(*state_file.read(path), path)

    def _resume(self, path: Any, header: dict[str, Any], arrays: dict[str, np.ndarray], learner: Any) -> None:
        """Go on, in a new object, from what was saved."""
        if "regressor" not in header:
            raise StateFileError(f"{path} is of an agent without features. Load it with Agent.load.")
        name = header["learner"] if header["learner"] in catalogue.names_seeing_features() else squarecb.LEARNER.name
        super()._resume(path, header, arrays, learner or catalogue.find(name, features=True))

    def __reduce__(self) -> tuple[Any, ...]:
        if isinstance(self._regressor, Ridge):
            return super().__reduce__()
        saved = self._rounds.saved()
        x, n = saved.pending["x"], saved.pending["key"].size
        saved = saved._replace(regressor=None, pending=saved.pending | {"x": np.empty((n, 0))})
        header, arrays = codec.write("agent", saved)
        data = state_file.pack(header | {"remembers": self.remembers}, arrays)
        return _restore, (type(self), data, self._regressor, x)

    def __repr__(self) -> str:
        name = self._regressor.title
        pending = f", {len(self.pending)} pending" if self.pending else ""
        return f"<ContextualAgent {self.learner} with {name} on {self.graph!r}: {self.round} decisions{pending}>"


def _restore(kind: type[ContextualAgent], data: bytes, regressor: Any, x: np.ndarray) -> ContextualAgent:
    header, arrays = state_file.unpack(data, "The pickle")
    saved = codec.read("The pickle", "agent", header, arrays, catalogue.find(header["learner"], features=True))
    agent = kind.__new__(kind)
    agent._go_on(saved._replace(regressor=regressor, pending=saved.pending | {"x": x}), header)  # noqa: SLF001  # its own
    return agent
