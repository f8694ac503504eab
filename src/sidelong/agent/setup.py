"""What an agent or a family begins with: its learner with constants and options, graph, seed, scale, and prior."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from sidelong.agent import advice as advising
from sidelong.agent.ceiling import read_ceiling
from sidelong.agent.observers import Observers
from sidelong.checks import check_flag, check_number, check_whole, short
from sidelong.errors import GraphError, LearnerError
from sidelong.graphs.graph import FeedbackGraph
from sidelong.graphs.presence import arm_of
from sidelong.learners import catalogue
from sidelong.learners.interface import trace_size
from sidelong.outcomes.scale import checked_scale, ends_of

if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import ModuleType

    from sidelong.agent.ceiling import Ceiling
    from sidelong.learners.interface import Learner
    from sidelong.outcomes.scale import Scale

    Prior = Mapping[int | str, tuple[float, float]]


@dataclass(frozen=True, eq=False)
class Setup:
    """What does not change from round to round, for one key or for many; an arm that comes or goes makes a new one."""

    learner: Learner
    params: Any  #: the learner's constants
    options: dict[str, Any]
    graph: FeedbackGraph  #: of every round that `ask` is not given another one for
    seed: int
    scale: Scale | None  #: of keys without one of their own
    state: Any  #: before the first round
    prior_cost: float = 0.0  #: what the prior adds to the bound on the regret at most
    certificate: bool = False  #: whether one is kept
    alarm: bool = True  #: whether `health` is
    tag: str = ""  #: what the ids of decisions have in them
    advisers: tuple[str, ...] = ()  #: the names of those who have advised, in the order in which they came
    incumbent: str = ""  #: the first of them, if it may be fallen behind by no more than an allowance; else empty
    allowance: float = 0.0  #: in the scale
    pooled: bool = False  #: whether the keys of a family learn together whom to trust
    ceiling: Ceiling | None = None  #: what a decision may cost on average

    @cached_property
    def n_traces(self) -> int:
        """How many numbers a decision keeps beside its probabilities."""
        return trace_size(self.learner, self.graph.n_arms, len(self.advisers))

    @cached_property
    def n_means(self) -> int:
        """How many a decision keeps for the certificate, and for what is known of advisers."""
        return self.graph.n_arms if self.certificate or self.advisers else 0

    @cached_property
    def initial(self) -> int:
        """How many initial rounds there are, which enter no weights."""
        name = self.learner.initial
        return int(getattr(self.params, name).size) if name else 0

    def gaps(self, state: Any) -> np.ndarray:
        """Return what the learner estimates the gap of each arm to be; NaN if it does not estimate them."""
        name = self.learner.gaps
        return getattr(state, name).copy() if name else np.full(self.graph.n_arms, np.nan)

    @property
    def ends(self) -> tuple[float, float]:
        """The best and the worst of the scale."""
        return ends_of(self.scale)

    def observers(self) -> Observers:
        """Return the observers of a key before its first round."""
        return Observers.new(self)

    def advised(self, names: tuple[str, ...]) -> Setup:
        """Return it with more advisers."""
        params, state = self.with_advisers(self.state, len(names))
        return replace(self, params=params, state=state, advisers=self.advisers + names)

    def with_regressors(self, names: tuple[str, ...]) -> Setup:
        """Return it with regressors that advise under these names, if there are such."""
        advising.check_names(self.advisers, names)
        return self.advised(names) if names else self

    def with_advisers(self, state: Any, n: int) -> tuple[Any, Any]:
        """Return the constants, and a state, with so many advisers more."""
        params, add = self.params, self.learner.add_adviser
        for _ in range(n):
            params, state = add(params, state)  # type: ignore[misc]  # it was checked that there is one
        return params, state

    def new_state(self, scale: Scale | None) -> Any:
        """Return the state before the first round of a key with this scale, without a prior."""
        state = self.with_advisers(self.learner.init(self.params, self.graph), len(self.advisers))[1]
        if self.incumbent:
            best, worst = ends_of(scale)
            getattr(state, self.learner.budget)[0] = self.allowance / abs(worst - best)
        return state

    def allowance_left(self, state: Any, ends: tuple[float, float]) -> float:
        """Return what a key with this state has left of its allowance, in numbers of its scale."""
        if not self.incumbent:
            raise LearnerError(
                "There is no allowance without an incumbent. Make it with incumbent=... and allowance=..."
            )
        allowed, spent = getattr(state, self.learner.budget).tolist()
        return float((allowed - spent) * abs(ends[1] - ends[0]))

    def tilted(self, prior: Any, scale: Scale | None) -> Setup:
        """Return it with a prior, in which means are numbers of this scale."""
        state = self.new_state(scale)
        cost = _tilt(self.learner, self.params, state, self.graph, prior, scale)
        return replace(self, state=state, prior_cost=cost)


def prepare(
    learner: str | ModuleType | Learner,
    graph: FeedbackGraph,
    *,
    seed: int,
    scale: Scale | None,
    prior: Prior | None,
    options: dict[str, Any],
    certificate: bool = False,
    alarm: bool = True,
    features: bool = False,
    incumbent: str | None = None,
    allowance: float | None = None,
    pooled: bool = False,
    ceiling: tuple[Any, ...] = (None, None, None),
) -> Setup:
    """Return what an agent or a family begins with, or refuse; with `features`, of a learner that plays by them."""
    if not isinstance(graph, FeedbackGraph):
        raise GraphError(
            f"graph must be a FeedbackGraph, not {type(graph).__name__}. "
            f"Make one with sidelong.graphs or FeedbackGraph.from_matrix."
        )
    seed = check_whole(LearnerError, "seed", seed, 0, 2**64 - 1)
    scale = checked_scale(scale)
    module = catalogue.choose(learner, options, features=features)
    if prior is not None and "prior" in catalogue.option_names(module):  # as ts-n has one
        options, prior = options | {"prior": prior}, None
    if certificate := check_flag(LearnerError, "certificate", certificate):
        catalogue.check_certifiable(module)
    alarm, pooled = check_flag(LearnerError, "health", alarm), check_flag(LearnerError, "pooled", pooled)
    limits = _check_incumbent(module, incumbent, allowance)
    if pooled and not module.pooled:
        able = catalogue.names_where(lambda each: bool(each.pooled))
        raise LearnerError(f"{module.title} learns no trust that keys could share. Use {able}, or pooled=False.")
    spent = read_ceiling(module, graph, *ceiling)
    if spent is not None and limits:
        raise LearnerError("An incumbent and a ceiling do not go together: an arm that it advises may not fit.")
    options = catalogue.plain_options(module, options)
    params = catalogue.configure(module, graph, options)
    plain = [] if spent is None else spent.plain()
    made = Setup(
        module,
        params,
        options,
        graph,
        seed,
        scale,
        module.first_state(params, graph),
        certificate=certificate,
        alarm=alarm,
        pooled=pooled,
        ceiling=spent,
        tag=tag_of(module, options, seed, graph, None if prior is None else [prior, scale], [*limits, *plain]),
    )
    if incumbent is not None:
        made = replace(made, advisers=(incumbent,), incumbent=incumbent, allowance=limits[1])
        made = replace(made, state=made.new_state(scale))
    return made if prior is None else made.tilted(prior, scale)


def _check_incumbent(learner: Learner, incumbent: Any, allowance: Any) -> list[Any]:
    """Return the name of the incumbent and the allowance, if there are such."""
    if incumbent is None and allowance is None:
        return []
    if incumbent is None or allowance is None:
        missing = "incumbent" if incumbent is None else "allowance"
        raise LearnerError(f"incumbent and allowance go together, and {missing} is not given.")
    if not isinstance(incumbent, str) or not incumbent:
        raise LearnerError(f"incumbent is the name of the adviser who decides today, as text, not {short(incumbent)}.")
    number = check_number(LearnerError, "allowance", allowance, above=0)
    if not learner.budget:
        able = catalogue.names_where(lambda each: bool(each.budget))
        raise LearnerError(f"{learner.title} has no rule for an incumbent. Use {able}.")
    return [incumbent, number]


def tag_of(
    learner: Learner,
    options: Any,
    seed: int,
    graph: FeedbackGraph,
    believed: list[Any] | None,
    limits: Sequence[Any] = (),
) -> str:
    """Return what tells the decisions of an agent or a family from those of others."""
    more = [*([] if believed is None else [str(believed)]), *limits]
    identity = json.dumps([learner.name, options, seed, graph.content_hash, *more], sort_keys=True)
    return hashlib.sha256(identity.encode()).hexdigest()[:8]


def _tilt(learner: Learner, params: Any, state: Any, graph: FeedbackGraph, prior: Any, scale: Scale | None) -> float:
    """Let a learner begin with a prior; return the most that it can add to the bound on the regret."""
    if learner.tilt is None:
        title = learner.title
        able = catalogue.names_where(lambda each: each.tilt is not None)
        raise LearnerError(
            f"prior needs a learner with a rule for it, and {title} has none. Use {able}, with default options."
        )
    if not isinstance(prior, Mapping):
        raise LearnerError(f"prior is {{arm: (mean, weight)}}, not {short(prior)}.")
    believed = {}
    for arm, pair in prior.items():
        if not isinstance(pair, tuple | list) or len(pair) != 2:
            raise LearnerError(f"The prior of an arm is (mean, weight); that of {short(arm)} is {short(pair)}.")
        mean, weight = pair
        try:
            number = arm_of(graph, arm, "prior")
        except GraphError as error:
            raise LearnerError(str(error)) from error
        if number in believed:
            raise LearnerError(f"prior names arm {graph.arm_name(number)} twice, by number and by label.")
        mean = mean if scale is None else scale.losses([mean])[0]
        name = graph.arm_name(number)
        believed[number] = (
            check_number(LearnerError, f"The mean that is believed of arm {name}", mean, least=0, most=1),
            check_number(LearnerError, f"The weight of the prior of arm {name}", weight, least=0, most=1e6),
        )
    return float(learner.tilt(params, state, believed))
