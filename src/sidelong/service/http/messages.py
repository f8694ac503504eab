"""What is said over HTTP: the requests and the replies. ``docs/service.md`` has each by example."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Discriminator, Field, StringConstraints, Tag

__all__ = [
    "Access",
    "ArmState",
    "Arms",
    "Cancelled",
    "Counts",
    "CreateExperiment",
    "DecideRequest",
    "DecisionReply",
    "DecisionState",
    "ExperimentList",
    "ExperimentState",
    "ExperimentSummary",
    "Feedback",
    "FeedbackReply",
    "GraphDrawing",
    "GraphMessage",
    "GraphSummary",
    "Guarantee",
    "Health",
    "Problem",
    "Rates",
    "Ready",
    "Regret",
    "SampleRatio",
]

#: A name goes into addresses and files.
Name = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$")]
#: Never clipped, never rounded: a loss outside is refused, and so are NaN, true and "0.5".
Loss = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False, strict=True)]
Arm = Annotated[str, StringConstraints(pattern=r"^(0|[1-9][0-9]{0,8})$")]
Whole = Annotated[int, Field(ge=0, le=2**31 - 1, strict=True)]


class _Request(BaseModel):
    model_config = ConfigDict(extra="forbid")


class NamedGraph(BaseModel):
    """A family of `sidelong.graphs`, with its arguments beside its name."""

    model_config = ConfigDict(extra="allow", json_schema_extra={"examples": [{"name": "nested", "n": 24}]})

    name: str = Field(max_length=64)


class EdgesGraph(_Request):
    """A graph by its edges: playing i reveals j."""

    n_arms: Annotated[int, Field(ge=1, le=2**24, strict=True)]
    edges: list[tuple[Whole, Whole]]
    undirected: Annotated[bool, Field(strict=True)] = False
    self_loops: Annotated[bool, Field(strict=True)] = False


class IntervalsGraph(_Request):
    """A graph in which playing i reveals low[i] to high[i] - 1."""

    low: list[Whole]
    high: list[Whole]


class KnownGraph(_Request):
    """A graph that was sent before, by the id that the service gave it."""

    id: Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{32}$")]


def _kind(value: Any) -> str:
    keys = value if isinstance(value, dict) else vars(value) if isinstance(value, BaseModel) else {}
    return next((f"[{kind}]" for kind in ("edges", "low", "id") if kind in keys), "[name]")


# The tags stand in the paths of pydantic's errors; the brackets tell them from what was sent.
GraphMessage = Annotated[
    Annotated[NamedGraph, Tag("[name]")]
    | Annotated[EdgesGraph, Tag("[edges]")]
    | Annotated[IntervalsGraph, Tag("[low]")]
    | Annotated[KnownGraph, Tag("[id]")],
    Discriminator(_kind),
]
Losses = Annotated[
    Annotated[dict[Arm, Loss], Tag("[by arm]")] | Annotated[list[Loss], Tag("[in order]")],
    Discriminator(lambda value: "[in order]" if isinstance(value, list) else "[by arm]"),
]


class CreateExperiment(_Request):
    """What an experiment is. It cannot be changed later."""

    name: Name
    learner: str = Field("exp3.g++", max_length=64)
    options: dict[str, Any] = Field(default_factory=dict, max_length=32)
    graph: GraphMessage
    seed: Annotated[int, Field(ge=0, lt=2**64, strict=True)] | None = Field(None, description="drawn if not given")
    expire_after: Annotated[float, Field(gt=0, le=10**9, allow_inf_nan=False)] | None = Field(
        86_400.0, description="seconds until a decision without feedback expires; null: never"
    )
    description: str = Field("", max_length=2000)
    labels: list[Annotated[str, StringConstraints(max_length=200)]] | None = Field(
        None, max_length=10_000, description="what to call each arm"
    )


class DecideRequest(_Request):
    """The body may be empty."""

    graph: GraphMessage | None = Field(None, description="the graph of this round alone")
    context: dict[str, Any] | None = Field(None, description="kept in the log; the learner does not see it")


class Feedback(_Request):
    """The losses that a decision revealed: by arm, or in the order of `reveals`."""

    losses: Losses
    graph: GraphMessage | None = Field(
        None, description="where only the outcome shows what is revealed: what every arm would have revealed"
    )


class Problem(BaseModel):
    """An error (RFC 9457, application/problem+json)."""

    type: str
    title: str
    status: int
    detail: str
    code: str
    path: str | None = None
    value: Any = None


class DecisionReply(BaseModel):
    """What to play."""

    id: str
    round: int
    arm: int
    probability: float | None  #: null if the learner draws without knowing it, as ts-n does
    reveals: list[int]
    expires_at: str | None
    duplicate: bool = False  #: whether this Idempotency-Key was answered before


class FeedbackReply(BaseModel):
    """What became of feedback."""

    id: str
    round: int
    learned: bool
    duplicate: bool


class Cancelled(BaseModel):
    """What became of a cancellation."""

    id: str
    round: int
    duplicate: bool


Status = Literal["outstanding", "told", "cancelled", "expired", "late"]


class DecisionState(BaseModel):
    """A decision, whatever became of it."""

    id: str
    experiment: str
    round: int
    arm: int
    probability: float | None
    reveals: list[int]
    observe_probabilities: list[float] | None  #: in the order of `reveals`; null where they are not known
    losses: list[float] | None  #: in the order of `reveals`
    status: Status
    context: dict[str, Any] | None
    decided_at: str
    expires_at: str | None
    settled_at: str | None


class GraphSummary(BaseModel):
    """A graph without its edges."""

    id: str
    name: str | None
    n_arms: int
    n_edges: int
    representation: Literal["arcs", "intervals"]
    undirected: bool


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
    created_at: str
    counts: Counts
    degraded: bool


class ExperimentList(BaseModel):
    """Some of the experiments, by name."""

    total: int
    items: list[ExperimentSummary]


class ArmState(BaseModel):
    """What is known about an arm."""

    arm: int
    label: str | None
    probability: float | None  #: that the next decision would play it
    observe_probability: float | None  #: that it would reveal it
    plays: int
    observations: int
    mean: float | None  #: what it would have cost a round: see `sidelong.evaluation.offpolicy`
    low: float | None
    high: float | None  #: of the guaranteed 95% interval
    observed_mean: float | None  #: of the losses that were seen


class Arms(BaseModel):
    """Some of the arms."""

    total: int
    offset: int
    limit: int
    sort: Literal["arm", "probability", "mean", "plays"]
    items: list[ArmState]


class Guarantee(BaseModel):
    """Whether the theorems of the learner hold for what happened."""

    holds: bool
    reasons: list[str]


class SampleRatio(BaseModel):
    """Whether the arms of the told decisions came as often as their probabilities say."""

    p_value: float | None
    ok: bool
    told: int
    unknown: str | None  #: why there is no p_value, if there is none


class Regret(BaseModel):
    """Loss beyond the best arm's, estimated from what was told; the interval holds whichever arm that is."""

    estimate: float | None
    low: float | None
    high: float | None
    own_loss: float | None
    best_arm: int | None
    best_loss: float | None
    rounds: int


class ExperimentState(BaseModel):
    """All about an experiment."""

    name: str
    learner: str
    options: dict[str, Any]
    seed: int
    description: str
    expire_after: float | None
    created_at: str
    graph: GraphSummary
    round: int
    sequence: int
    digest: (
        str | None
    )  #: equal states have equal digests: what a replay of the journal must give; null unless asked for
    counts: Counts
    arms: Arms
    guarantee: Guarantee
    sample_ratio: SampleRatio
    regret: Regret


class GraphDrawing(BaseModel):
    """The graph for drawing: the arms that are played most, and the edges between them."""

    total_arms: int
    total_edges: int
    truncated: bool
    arms: list[int]
    edges: list[list[int]]
    labels: list[str] | None


class Rates(BaseModel):
    """What happened in each of the last minutes, oldest first."""

    minutes: list[str]
    decided: list[int]
    told: list[int]
    expired: list[int]
    late: list[int]


class Health(BaseModel):
    """The process is alive."""

    status: Literal["ok"] = "ok"
    version: str


class Access(BaseModel):
    """What a token may do."""

    token: str | None
    scopes: list[Literal["decide", "feedback", "read", "admin"]]
    open: bool


class Ready(BaseModel):
    """The database answers."""

    status: Literal["ok", "degraded"]
    database: Literal["sqlite", "postgresql"]
    writes: str
