"""Experiments in requests and replies."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, Field, StringConstraints

from sidelong.service.http.messages.graphs import (
    LONGEST_LABEL,
    MOST_LABELS,
    GraphMessage,
    GraphSummary,
)
from sidelong.service.http.messages.values import Body, Name, Offset, Timestamp
from sidelong.service.store.tallies import MINUTES

Sort = Literal["arm", "probability", "mean", "plays"]
#: The number of an event.
Sequence = Annotated[int, Field(ge=0, lt=10**18)]


class CreateExperiment(Body):
    """What an experiment is. It cannot be changed later."""

    name: Name
    learner: str = Field("glance", max_length=64)
    options: dict[str, Any] = Field(default_factory=dict, max_length=32)
    graph: GraphMessage
    seed: Annotated[int, Field(ge=0, lt=2**64, strict=True)] | None = Field(None, description="drawn if not given")
    expire_after: Annotated[float, Field(gt=0, le=10**9, allow_inf_nan=False)] | None = Field(
        86_400.0, description="seconds until a decision without feedback expires; null: never"
    )
    description: str = Field("", max_length=2000)
    labels: list[Annotated[str, StringConstraints(max_length=LONGEST_LABEL)]] | None = Field(
        None, max_length=MOST_LABELS, description="what to call each arm; if not given, as the graph's file does"
    )
    certificate: bool = Field(default=False, strict=True, description="whether to keep a certificate of the regret")


class ListQuery(BaseModel):
    """Which experiments to list."""

    offset: Offset = 0
    limit: Annotated[int, Field(ge=1, le=1000)] = 100


class StateQuery(BaseModel):
    """Which arms to show."""

    offset: Offset = 0
    limit: Annotated[int, Field(ge=1, le=1000)] = 50
    sort: Sort = "arm"
    digest: bool = False  #: takes longer than all the rest, and decisions wait for it


class DrawingQuery(BaseModel):
    """How many arms to draw."""

    limit: Annotated[int, Field(ge=1, le=500)] = 200


class RatesQuery(BaseModel):
    """How far to look back."""

    minutes: Annotated[int, Field(ge=1, le=MINUTES)] = 60


class Counts(BaseModel):
    """What became of decisions; decided = told + outstanding + expired + cancelled."""

    decided: int
    told: int
    outstanding: int
    expired: int
    cancelled: int
    late: int  #: of the expired, how many were told after all, too late


class ExperimentSummary(BaseModel):
    """An experiment in a list."""

    name: str
    learner: str
    n_arms: int
    description: str
    created_at: Timestamp
    counts: Counts
    degraded: bool


class RefusedExperiment(BaseModel):
    """One that is kept, and whose log can be exported, but that cannot go on."""

    name: str
    why: str


class LoadingExperiment(BaseModel):
    """One that is being brought into memory."""

    name: str
    done: int  #: events of its journal that are replayed
    events: int | None  #: how many there are; null if it has not begun


class ExperimentList(BaseModel):
    """Some of the experiments, by name."""

    total: int
    items: list[ExperimentSummary]
    loading: list[LoadingExperiment]  #: in the place of their items
    refused: list[RefusedExperiment]  #: in the place of their items


class ArmState(BaseModel):
    """What is known about an arm."""

    arm: int
    label: str | None
    probability: float | None  #: that the next decision would play it
    observe_probability: float | None  #: that it would reveal it
    plays: int
    observations: int
    mean: float | None  #: what it would have cost per round: see `sidelong.evaluation.weighing`
    low: float | None
    high: float | None  #: of the 95% interval
    rejected: bool  #: whether its limits cross: then an assumption of the interval is false, at the level of 5%
    observed_count: int  #: how many losses count in the next two: see `sidelong.agent.seen`
    observed_mean: float | None
    observed_spread: float | None  #: their standard deviation


class Arms(BaseModel):
    """Some of the arms."""

    total: int
    offset: int
    limit: int
    sort: Sort
    items: list[ArmState]


class CheapestArm(BaseModel):
    """The arm with the least mean of what was seen."""

    arm: int
    label: str | None
    mean: float
    chance: float  #: that it is the cheapest of all arms, if losses go on as they were


class ArmDelayState(BaseModel):
    """Whether some arms report later than others, by a test that may be looked at after every decision."""

    p_value: float | None
    ok: bool
    level: float  #: the chance that it is ever not ok though delays do not depend on the arm
    unknown: str | None  #: why there is no p_value, if there is none


class DelayState(BaseModel):
    """How late feedback was; the initial rounds of a learner are not counted."""

    late: int  #: how many decisions were told after a later one was drawn
    mean: float  #: how many others were outstanding when one was drawn, in the mean
    most: int  #: and at most
    by_arm: ArmDelayState


class Guarantee(BaseModel):
    """Whether the theorems of the learner hold for what happened."""

    holds: bool
    proved: list[Literal["adversarial", "stochastic"]]  #: the halves that hold
    reasons: list[str]  #: why a half does not hold, or none does
    notes: list[str]  #: what the halves that hold take for granted, and what they count
    bound: float | None  #: on the regret so far, against any adversary, made of what happened; in the mean
    random: float  #: what drawing arms at random loses at most in as many rounds
    worth_from: int | None  #: the round from which on the theorem promises less than that, with prompt feedback
    delay: DelayState


class SampleRatio(BaseModel):
    """Whether the arms of the told decisions came as often as their probabilities say."""

    p_value: float | None
    ok: bool
    told: int
    unknown: str | None  #: why there is no p_value, if there is none


class CertificateState(BaseModel):
    """At most `bound` was lost beyond any fixed arm: see `sidelong.evaluation.certificates`."""

    bound: float
    arm: int  #: against which that is most
    label: str | None
    confidence: float  #: at every moment at once
    paid: float
    rounds: int
    silent: int  #: rounds without feedback, which count as the worst they can be
    why: str  #: why it says little, if it does


class WorldState(BaseModel):
    """Whether the world has turned: see `sidelong.evaluation.turning`."""

    turned: bool
    arm: int | None
    above: float | None  #: what the arm cost at least in one window of rounds
    below: float | None  #: and at most in another
    level: float
    said: str


class RegretState(BaseModel):
    """Loss beyond the best arm's, estimated from what was told; the interval holds whichever arm that is."""

    estimate: float | None
    low: float | None
    high: float | None
    own_loss: float | None
    best_arm: int | None
    best_loss: float | None
    rounds: int  #: all that were not cancelled; those without feedback count as much as the others
    rejected: bool  #: whether the limits of some arm cross, at the level of 5% for all arms together


class ExperimentState(BaseModel):
    """All about an experiment."""

    name: str
    learner: str
    options: dict[str, Any]
    seed: int
    description: str
    expire_after: float | None
    created_at: Timestamp
    graph: GraphSummary
    round: int
    sequence: int
    digest: str | None  #: equal states have equal digests, as a replay of the journal must; null unless asked for
    counts: Counts
    best: CheapestArm | None  #: null before anything was told
    arms: Arms
    guarantee: Guarantee
    sample_ratio: SampleRatio
    regret: RegretState
    certificate: CertificateState | None  #: null if none is kept
    world: WorldState


class Rates(BaseModel):
    """What happened in each of the last minutes, oldest first."""

    minutes: list[Timestamp]
    decided: list[int]
    told: list[int]
    expired: list[int]
    late: list[int]
