"""Off-policy estimates in requests and replies, and what an experiment can be made of."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, Field

from sidelong.service.http.messages.values import Arm, Body

Share = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]


class EvaluationRequest(Body):
    """What to estimate, beside each arm and the uniform distribution."""

    distribution: dict[Arm, Share] | None = Field(
        None, description="the share of some arms; they have the sum 1", examples=[{"3": 0.5, "4": 0.5}]
    )
    confidence: Annotated[float, Field(gt=0, lt=1)] = 0.95
    where: dict[str, str | bool | int | float] | None = Field(
        None,
        min_length=1,
        description="count the decisions alone whose context had these values",
        examples=[{"weekday": "Monday"}],
    )
    limit: Annotated[int, Field(ge=0, le=1000)] = Field(20, description="how many arms to return, the cheapest first")


class Estimate(BaseModel):
    """What something would have cost per round: see `sidelong.evaluation.offpolicy`."""

    value: float | None
    lower: float | None  #: of the interval; null where its limits cross
    upper: float | None
    rejected: bool  #: whether they do: then an assumption of the interval is false, at the given confidence
    rounds: int
    effective: float
    weight: float


class ArmEstimate(Estimate):
    """What an arm would have cost."""

    arm: int
    label: str | None


class DistributionEstimate(Estimate):
    """What a distribution would have cost."""

    name: Literal["uniform", "distribution"]


class EvaluatedRegret(BaseModel):
    """What was paid beyond the best arm, in all rounds."""

    value: float | None
    lower: float | None
    upper: float | None
    best: int | None
    rejected: bool  #: whether the limits of some arm cross, at the given confidence for all arms together


class EvaluatedCertificate(BaseModel):
    """At most `bound` was lost beyond any fixed arm, at every moment of the log: see `evaluation.certificates`."""

    bound: float
    arm: int
    confidence: float
    rounds: int
    paid: float
    silent: int
    seen: int
    there: int
    mean: float
    why: str


class Evaluation(BaseModel):
    """Off-policy estimates from the log of all decisions."""

    rounds: int
    without_feedback: int
    confidence: float
    played: float | None  #: what was paid a round
    regret: EvaluatedRegret
    certificate: EvaluatedCertificate
    distributions: list[DistributionEstimate]
    arms: list[ArmEstimate]


class Argument(BaseModel):
    """An argument of a family of graphs; `default` is null if it must be given."""

    name: str
    kind: Literal["whole", "number", "text", "flag", "list"]
    default: str | None


class FamilyEntry(BaseModel):
    """A family of graphs."""

    name: str
    arguments: list[Argument]


class Catalogue(BaseModel):
    """What an experiment can be made of."""

    learners: list[str]
    with_features: list[str]  #: learners that see features of a context
    families: list[FamilyEntry]
