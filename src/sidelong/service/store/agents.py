"""What decides in an experiment: an agent, or one that sees what the experiment says of each context."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from sidelong.agent import Agent, ContextualAgent
from sidelong.checks import nearest
from sidelong.errors import FeatureError, LearnerError
from sidelong.learners import catalogue
from sidelong.outcomes.scale import Scale

if TYPE_CHECKING:
    from sidelong.graphs import FeedbackGraph
    from sidelong.learners.interface import Learner
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


def new(spec: Spec, graph: FeedbackGraph) -> Decider:
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
