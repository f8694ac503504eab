"""The specification of an experiment: what a request says of it, and what is stored when it is created.

It never changes. What can be changed later begins with what the specification says: see
`sidelong.service.store.lifecycle.Life`. `Spec.to_json` and `Spec.from_json` are the only place that knows the stored
form.
"""

from __future__ import annotations

import json
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Discriminator, Field, StringConstraints, Tag

from sidelong.errors import ServiceError

#: What an experiment keeps of labels.
MOST_LABELS, LONGEST_LABEL = 10_000, 200

#: A number: neither a text that looks like one nor true or false.
Finite = Annotated[float, Field(allow_inf_nan=False, strict=True)]
Label = Annotated[str, StringConstraints(max_length=LONGEST_LABEL)]
Cost = Annotated[Finite, Field(gt=0)]
Seconds = Annotated[Finite, Field(gt=0, le=10**9)]
Seed = Annotated[int, Field(ge=0, lt=2**64, strict=True)]
Whole = Annotated[int, Field(ge=0, le=2**31 - 1, strict=True)]
#: An arm by its number or its label.
ArmName = Annotated[
    Annotated[Whole, Tag("[number]")] | Annotated[str, Tag("[label]")],
    Discriminator(lambda value: "[label]" if isinstance(value, str) else "[number]"),
]


class Part(BaseModel):
    """A part of a specification: it never changes, and a name that nobody knows is a mistake."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class ScaleSpec(Part):
    """The range of one's own costs or scores: see `sidelong.outcomes.Scale`."""

    best: Finite  #: what becomes a loss of 0: the lowest cost, or the highest score
    worst: Finite  #: what becomes a loss of 1


class HoldoutSpec(Part):
    """A share of the rounds that follows an arm."""

    arm: ArmName  #: the arm that it follows, by number or label
    share: Annotated[Finite, Field(ge=0.001, le=0.5)]  #: of the rounds, in the mean


class StickySpec(Part):
    """How long the decision of a subject lasts."""

    seconds: Seconds  #: how long a decision lasts


class Belief(Part):
    """What one believes of an arm before the first round: see `prior` of `sidelong.Agent`."""

    arm: ArmName  #: which arm, by number or label
    mean: Annotated[Finite, Field(description="what it loses per round, in the scale of feedback")]
    weight: Annotated[Finite, Field(ge=0, le=10**6, description="how many rounds of evidence that is worth")]


class LearnedLog(Part):
    """The log that an experiment learned before its first round. The log itself is not stored."""

    rounds: int  #: how many
    digest: str  #: SHA-256 of its columns


class Origin(Part):
    """What an experiment is a clone of."""

    name: str  #: what that was called then
    key: str  #: what the ids of its decisions begin with
    sequence: int  #: its last event then
    learned: bool  #: whether the clone has what that had learned


class RequestedSpec(Part):
    """What an experiment is. Some of it can be changed later."""

    learner: str = Field("glance", max_length=64)  #: who decides; `GET /v1/catalogue` lists all
    options: dict[str, Any] = Field(default_factory=dict, max_length=32)  #: options of the learner, by name
    seed: Seed | None = Field(None, description="drawn if not given")
    expire_after: Seconds | None = Field(
        86_400.0, description="seconds until a decision without feedback expires; null: never"
    )
    description: str = Field("", max_length=2000)  #: for people; shown in the list and on the dashboard
    labels: list[Label] | None = Field(
        None, max_length=MOST_LABELS, description="what to call each arm; if not given, as the graph's file does"
    )
    features: list[Annotated[str, StringConstraints(min_length=1, max_length=200)]] | None = Field(
        None,
        min_length=1,
        max_length=1000,
        description="the names in the context of a decision that the learner sees, as numbers, words or flags; the "
        "learner is then glance, which they advise, or squarecb.g. If not given, it sees nothing of a context",
        examples=[["weekday", "temperature"]],
    )
    holdout: HoldoutSpec | None = Field(
        None, description="a share of the rounds, drawn at random, that follows an arm and not the learner"
    )
    scale: ScaleSpec | None = Field(None, description="the range of what feedback tells, if it is not losses")
    default_loss: Finite | None = Field(
        None, description="what an expired decision is told, in the scale of feedback; if not given, nothing is learned"
    )
    sticky: StickySpec | None = Field(
        None,
        description="every decision is for a subject, who gets the same one for so many seconds; then the mean of its "
        "losses is learned. This takes the place of expire_after",
    )
    prior: list[Belief] | None = Field(
        None,
        min_length=1,
        max_length=MOST_LABELS,
        description="what is believed of some arms; the learner is glance or exp3-set",
    )
    incumbent: Annotated[str, StringConstraints(min_length=1, max_length=200)] | None = Field(
        None,
        description="the name of the adviser who decides today, and advises in every decision; what is lost beyond it "
        "is at most the allowance, on average. The learner is glance",
    )
    allowance: Annotated[Finite, Field(gt=0)] | None = Field(
        None, description="that much, in the scale of feedback, and of each key"
    )
    ceiling: Cost | None = Field(
        None, description="what a decision may cost on average; costs are then told beside losses, in any unit"
    )
    cost_bounds: Annotated[list[Cost], Field(max_length=MOST_LABELS)] | dict[str, Cost] | None = Field(
        None, description="the most that each arm can cost, in their order or by number or label, for a hard limit"
    )
    overspend: Annotated[Finite, Field(ge=0)] | None = Field(
        None, description="by how much the total may ever exceed the ceiling times the decisions, with cost_bounds"
    )
    ceiling_over: Literal["key", "all"] = Field(
        "key", description="whether each key has a line of its own, or all have one together"
    )
    pooled: bool = Field(
        default=False, strict=True, description="whether keys learn together whom to trust; the learner is glance"
    )
    keyed: bool = Field(
        default=False,
        strict=True,
        description="whether it plays for many keys, each of which learns on its own, as a family does",
    )
    certificate: bool = Field(default=False, strict=True, description="whether to keep a certificate of the regret")


class Spec(RequestedSpec):
    """What is stored of an experiment: what was requested, with arms by number, and what the service has added."""

    seed: Seed
    graph: str  #: its id
    graph_name: str | None
    created_at: int
    learner_version: int  #: a server that has another version of the learner refuses the experiment
    log: LearnedLog | None = None
    origin: Origin | None = None
    initial_state: str | None = None  #: SHA-256 of the state that a clone or an experiment with a log begins with

    def to_json(self) -> str:
        """Return it as it is stored; equal specifications give equal text. Raises ValueError for NaN in an option."""
        return json.dumps(self.model_dump(), sort_keys=True, separators=(",", ":"), allow_nan=False)

    @classmethod
    def from_json(cls, text: str, name: str) -> Spec:
        """Read what was stored of the experiment of a name, or refuse the experiment."""
        try:
            return cls.model_validate(json.loads(text))
        except ValueError as error:
            raise ServiceError(
                f"The specification of {name!r} cannot be read: it was altered, or was written by a newer version. "
                f"Restore the database from a copy, and start the service again. Until then nothing is learned or "
                f"decided.",
                status=503,
                code="refused",
            ) from error
