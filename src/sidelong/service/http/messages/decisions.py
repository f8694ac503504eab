"""Decisions in requests and replies."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, Discriminator, Field, StringConstraints, Tag

from sidelong.service.http.messages.graphs import GraphMessage  # noqa: TC001  # pydantic reads the annotations
from sidelong.service.http.messages.values import Arm, Body, Loss, Timestamp, Whole

#: An Idempotency-Key.
Key = Annotated[str, StringConstraints(pattern=r"^[\x21-\x7e]{1,200}$")]

Losses = Annotated[
    Annotated[dict[Arm, Loss], Tag("[by arm]")] | Annotated[list[Loss], Tag("[in order]")],
    Discriminator(lambda value: "[in order]" if isinstance(value, list) else "[by arm]"),
]


#: Arms by number or label, or a flag for each arm.
Available = list[
    Annotated[
        Annotated[bool, Field(strict=True), Tag("[flag]")]
        | Annotated[Whole, Tag("[number]")]
        | Annotated[str, Tag("[label]")],
        Discriminator(
            lambda value: "[flag]" if isinstance(value, bool) else "[label]" if isinstance(value, str) else "[number]"
        ),
    ]
]


class DecideRequest(Body):
    """The body may be empty."""

    graph: GraphMessage | None = Field(None, description="the graph of this round alone")
    available: Available | None = Field(
        None,
        description="the arms that can be played in this round, by number or label, or a flag for each arm; the others "
        "are neither played nor revealed",
    )
    context: dict[str, Any] | None = Field(None, description="kept in the log; the learner does not see it")


class DecisionReply(BaseModel):
    """What to play."""

    id: str
    round: int
    arm: int
    probability: float | None  #: null if the learner draws without knowing it, as ts-n does
    reveals: list[int]
    expires_at: Timestamp | None
    duplicate: bool  #: whether this Idempotency-Key was answered before


class Feedback(Body):
    """The losses that a decision revealed: by arm, or in the order of `reveals`."""

    losses: Losses
    graph: GraphMessage | None = Field(
        None, description="where only the outcome shows what is revealed: what every arm would have revealed"
    )


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
    status: Literal["outstanding", "told", "cancelled", "expired", "late"]
    context: dict[str, Any] | None
    decided_at: Timestamp
    expires_at: Timestamp | None
    settled_at: Timestamp | None
