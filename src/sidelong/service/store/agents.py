"""What decides in an experiment without keys: an agent, or one that sees what the experiment says of each context.

`AgentBlock` lets it be asked and told in the same way as a block of named keys: see `sidelong.service.store.keys`.
"""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING, Any

import numpy as np

from sidelong._jit import bind
from sidelong.agent import Agent, ContextualAgent
from sidelong.agent.decision import SparingDecision
from sidelong.checks import nearest
from sidelong.errors import FeatureError, LearnerError
from sidelong.graphs.arrays import observe
from sidelong.learners import catalogue
from sidelong.outcomes.scale import Scale
from sidelong.service.store.counters import LearnedColumns
from sidelong.service.store.graphs import content_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from sidelong.agent import Decision
    from sidelong.graphs import FeedbackGraph
    from sidelong.learners.interface import Learner
    from sidelong.service.store.arms import ArmChange
    from sidelong.service.store.spec import RequestedSpec, Spec

    Decider = Agent | ContextualAgent

_OPTIONS = ("gamma_scale", "penalty", "forgetting", "hashed")
_HASHED = 64  # the default of `ContextualAgent`


def module_of(spec: RequestedSpec) -> Learner:
    """Return the module of an experiment's learner, or refuse one that does not fit its features."""
    learner, known = spec.learner, catalogue.names_with_features()
    if spec.features is None and learner in known:
        raise LearnerError(f"{learner} plays by features: say which names of a context it sees, features=[...].")
    if spec.features is not None and learner not in known:
        raise LearnerError(f"{learner} does not see contexts. With features, the learner is {' or '.join(known)}.")
    return catalogue.choose(spec.learner, spec.options, features=spec.features is not None)


def new_agent(spec: Spec, graph: FeedbackGraph) -> Decider:
    """Return what decides in a new experiment, or refuse."""
    learner, options, module = spec.learner, spec.options, module_of(spec)
    given: dict[str, Any] = {"seed": spec.seed, "certificate": spec.certificate}
    if spec.features is None:
        if "prior" in options and module.tilt is not None:
            raise LearnerError("What is believed of arms is no option. Name it beside the options, as prior.")
        return Agent(learner, graph, prior=_prior(spec), **given, **options)
    for name in options:
        if name not in _OPTIONS:
            raise LearnerError(
                f"{learner} has no option {name!r}.{nearest(name, _OPTIONS)} Its options are: {', '.join(_OPTIONS)}."
            )
    return ContextualAgent(learner, graph, **given, **options)


def _prior(spec: RequestedSpec) -> dict[int | str, tuple[float, float]] | None:
    """Return what is believed of arms, as losses and not in the scale of feedback."""
    if spec.prior is None:
        return None
    means = losses_of(spec, [each.mean for each in spec.prior])
    return {each.arm: (mean, each.weight) for each, mean in zip(spec.prior, means, strict=True)}


def scale_of(spec: RequestedSpec) -> Scale | None:
    """Return the scale of what an experiment is told, if it has one."""
    return None if spec.scale is None else Scale(spec.scale.best, spec.scale.worst)


def losses_of(spec: RequestedSpec, told: list[float]) -> list[float]:
    """Return numbers of an experiment's scale as losses."""
    scale = scale_of(spec)
    return told if scale is None else list(scale.losses(told))


def resumed(header: dict[str, Any], arrays: dict[str, Any], place: str) -> Decider:
    """Go on from the contents of an agent."""
    if "regressor" in header:
        return ContextualAgent.from_contents(header, arrays, place)
    return Agent.from_contents(header, arrays, place)


def model_bytes(spec: RequestedSpec, graph: FeedbackGraph) -> int:
    """Return how many bytes the regressions of an experiment will take: a matrix for each arm."""
    return 8 * graph.n_arms * (int(spec.options.get("hashed", _HASHED)) + 1) ** 2 if spec.features is not None else 0


def seen(spec: Spec, context: str | None) -> dict[str, Any]:
    """Return what a learner sees of a context: the features that are there. Not one may be too few."""
    names = spec.features or []
    given = {} if context is None else json.loads(context)
    found = {name: given[name] for name in names if name in given}
    if not found:
        some = ", ".join(names[:5]) + ", ..." * (len(names) > 5)
        raise FeatureError(f"This experiment decides by features: send a context with at least one of {some}.")
    return found


class AgentBlock:
    """The one key of an experiment without keys: a block with an agent in it."""

    def __init__(self, agent: Decider, spec: Spec) -> None:
        agent.remembers = 0  # the journal does
        self.agent = agent
        self.contents = agent.contents
        self.arm_changes = 0
        self._spec = spec
        self._made: dict[int, Decision] = {each.round: each for each in agent.pending}
        unseen = np.empty(agent.graph.n_arms)
        self._observe: Callable[..., None]
        bind(self, "_observe", observe, agent.graph.arrays, unseen, unseen)

    def change_arms(self, change: ArmChange) -> None:
        """Let an arm come or go."""
        change.play(self.agent)
        self._made = {each.round: each for each in self.agent.pending}

    @property
    def graphs(self) -> list[FeedbackGraph]:
        """The graphs in `contents`: the own one, and those of pending decisions."""
        found: dict[str, FeedbackGraph] = {}
        for graph in (self.agent.graph, *(each.graph for each in self.agent.pending)):
            found.setdefault(content_of(graph), graph)
        return list(found.values())

    def __len__(self) -> int:
        return 1

    def ask(
        self, rows: Any, graph: FeedbackGraph | None, context: str | None
    ) -> tuple[list[int], list[int], list[float]]:
        """Draw an arm for each row, which are all the same."""
        rounds, arms, probabilities = [], [], []
        for _ in range(len(rows)):
            made = self._draw(graph, context)
            round_ = made.round
            self._made[round_] = made
            rounds.append(round_)
            arms.append(made.arm)
            probabilities.append(made.probability)
        return rounds, arms, probabilities

    def _draw(self, graph: FeedbackGraph | None, context: str | None) -> Decision:
        """Ask the agent, which sees the context if the experiment says so."""
        if isinstance(self.agent, ContextualAgent):
            return self.agent.ask(seen(self._spec, context), graph)
        return self.agent.ask(graph)

    def tell(
        self,
        rows: Any,  # noqa: ARG002  # there is one
        rounds: list[int],
        losses: np.ndarray,
        offsets: list[int],
        graph: FeedbackGraph | None,
        *,
        learn: bool,
    ) -> LearnedColumns:
        """Learn losses, or give up the decisions, which are lost; return what was known of them before."""
        agent, parts, every, delays = self.agent, [], [], []
        for k, round_ in enumerate(rounds):
            made = self._made.pop(round_)
            observe, p = self._observed(made, made.graph if graph is None else graph)
            parts.append(observe)
            every.append(p)
            delays.append(agent.round - round_)
            if learn:
                agent.tell(made, losses[offsets[k] : offsets[k + 1]], graph)
            else:
                agent.cancel(made, lost=True)
        known = None if any(p is None for p in every) else every
        return LearnedColumns(parts[0] if len(parts) == 1 else np.concatenate(parts), known, delays)

    def _observed(self, made: Decision, graph: FeedbackGraph) -> tuple[np.ndarray, np.ndarray | None]:
        """Return the probability of observing what a decision reveals, and those of all arms, if they are known."""
        drawn = made.drawn
        reveals = graph.row(drawn.arm)
        if isinstance(made, SparingDecision):
            return made.revealed_probabilities, None
        p = drawn.p
        if math.isnan(p[drawn.arm]):
            return np.full(reveals.size, np.nan), None
        P = np.empty(p.size)
        self._observe(graph.arrays, p, P)
        return P[reveals.astype(np.intp)], p

    def cancel(self, rows: Any, rounds: list[int], *, lost: bool) -> None:  # noqa: ARG002  # there is one
        """Give up decisions."""
        for round_ in rounds:
            self.agent.cancel(self._made.pop(round_), lost=lost)

    def override(self, rows: Any, rounds: list[int], arm: int) -> None:  # noqa: ARG002  # there is one
        """Let a pending decision be carried out with another arm."""
        (round_,) = rounds
        self._made[round_] = self.agent.override(self._made[round_], arm)

    def outlook(self, rows: Any, graph: FeedbackGraph | None) -> np.ndarray:
        """Return with which probabilities it would play next, a row for each row."""
        return np.tile(self.agent.outlook(graph), (len(rows), 1))

    def observe(self, rows: Any, rounds: Any) -> np.ndarray:  # noqa: ARG002  # there is one
        """Return with which probability each arm that pending decisions reveal is revealed; NaN if it is not known."""
        made = [self._made[int(round_)] for round_ in rounds]
        return np.concatenate([self._observed(each, each.graph)[0] for each in made])

    def names(self, rows: Any, rounds: Any) -> list[Any]:  # noqa: ARG002  # there is one
        """Return what the agent calls pending decisions: their rounds."""
        return [int(round_) for round_ in rounds]
