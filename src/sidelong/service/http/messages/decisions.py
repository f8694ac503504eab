"""Decisions in requests and replies."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, Discriminator, Field, StringConstraints, Tag

from sidelong.service.http.graphs import GraphMessage  # noqa: TC001  # pydantic reads the annotations
from sidelong.service.http.messages import Body, Loss, Plain, Timestamp
from sidelong.service.store.journal import DrawnBy  # noqa: TC001
from sidelong.service.store.spec import ArmName, Whole

#: What an experiment with keys plays for, such as a product: text or a whole number.
ProductKey = Annotated[
    Annotated[str, StringConstraints(min_length=1, max_length=200), Tag("[text]")]
    | Annotated[int, Field(ge=-(2**63), lt=2**63, strict=True), Tag("[number]")],
    Discriminator(lambda value: "[text]" if isinstance(value, str) else "[number]"),
]

#: How many decisions with keys are made or told at once.
MOST_ITEMS = 10_000
#: How many decisions of one experiment without keys are made or told at once: others wait for them.
MOST_ROUNDS = 1000

#: An Idempotency-Key.
Key = Annotated[
    str,
    StringConstraints(pattern=r"^[\x21-\x7e]{1,200}$"),
    Field(description="your name for this request; the same request with the same one is carried out once"),
]

Losses = Annotated[
    Annotated[dict[str, Loss], Tag("[by arm]")] | Annotated[list[Loss], Tag("[in order]")],
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


Context = Annotated[
    Annotated[dict[str, Any], Tag("[for all]")] | Annotated[list[dict[str, Any]], Tag("[for each]")],
    Discriminator(lambda value: "[for each]" if isinstance(value, list) else "[for all]"),
]


class DecideRequest(Body):
    """The body may be empty."""

    graph: GraphMessage | None = Field(None, description="the graph of this round alone")
    available: Available | None = Field(
        None,
        description="the arms that can be played in this round, by number or label, or a flag for each arm; the others "
        "are neither played nor revealed",
    )
    context: Context | None = Field(
        None,
        description="kept in the log; the learner sees the features in it that the experiment names. With keys, one "
        "for all of them, or a list of one for each",
    )
    advice: Any = Field(
        None,
        description="what somebody would play: an arm by number or label, or a probability for each arm; or an object "
        "of the name of each adviser to either, or to null for silence. With keys, a list of that for each key",
        examples=[{"forecast": 3, "team": "large"}],
    )
    key: ProductKey | None = Field(None, description="which key it is for, if the experiment has keys")
    subject: Annotated[str, StringConstraints(min_length=1, max_length=200)] | None = Field(
        None, description="of a sticky experiment: who it is for, such as a visitor"
    )
    keys: list[ProductKey] | None = Field(
        None,
        min_length=1,
        max_length=MOST_ITEMS,
        description="many keys at once, which are answered in columns; one that stands twice is drawn twice",
    )
    count: Annotated[int, Field(ge=1, le=MOST_ROUNDS, strict=True)] | None = Field(
        None, description="how many decisions to make at once, which are answered in columns"
    )


class DecisionReply(BaseModel):
    """What to play."""

    id: str  #: of the decision, for feedback
    key: str | int | None  #: which it is for; null if the experiment has no keys
    round: int  #: from 1; of the key, if it has one
    arm: int  #: the arm to play
    label: str | None  #: what the arm is called now; null if it has no label
    probability: float | None  #: null if the learner draws without knowing it, as ts-n does
    drawn_by: DrawnBy  #: only what the learner has drawn is learned
    reveals: list[int]  #: the arms whose losses playing it reveals: feedback tells each of them
    expires_at: Timestamp | None  #: when it expires without feedback; null: never
    duplicate: bool  #: whether this Idempotency-Key was answered before, or the subject has this decision already


class DecisionBatch(BaseModel):
    """What to play in several rounds, in columns, in the order in which they were asked for."""

    ids: list[str]  #: of the decisions, for feedback
    rounds: list[int]  #: of each key, from 1; without keys, of the experiment
    arms: list[int]  #: the arms to play
    labels: dict[str, str] | None  #: by arm, what it is called now; null if the arms have no labels
    probabilities: list[float] | None  #: null if the learner draws without knowing them
    drawn_by: list[DrawnBy]  #: who drew each; only what the learner has drawn is learned
    reveals: dict[str, list[int]]  #: by arm, what playing it reveals
    #: Of each decision, the arms that did not fit under the ceiling, which it does not reveal; null if all did.
    absent: list[list[int]] | None
    expires_at: Timestamp | None  #: when those without feedback expire; null: never
    duplicate: bool  #: whether this Idempotency-Key was answered before


class OverrideRequest(Body):
    """With which arm a decision was carried out."""

    arm: ArmName = Field(description="by number or label")


class OverrideReply(DecisionReply):
    """A decision that was carried out with another arm. Its `reveals` are those of that arm."""

    carried_out: int  #: the arm that was carried out


class Feedback(Body):
    """The losses that a decision revealed, from 0 to 1 or in the experiment's scale: by arm, or in their order.

    An arm is named by its number, or by its label if that is not a number.
    """

    losses: Losses  #: one for each arm that the decision revealed, by arm or in the order of its `reveals`
    costs: Losses | None = Field(
        None, description="under a ceiling, what the same arms cost, in any unit: by arm, or in their order"
    )
    graph: GraphMessage | None = Field(
        None, description="where only the outcome shows what is revealed: what every arm would have revealed"
    )
    arm: ArmName | None = Field(
        None, description="that was played, by number or label; if the decision plays another one, it is refused"
    )
    plain: Plain = False


class FeedbackReply(BaseModel):
    """What became of feedback."""

    id: str  #: of the decision
    round: int  #: its round, from 1; of its key, if it has one
    learned: bool  #: not while frozen, not of a round that the learner did not decide, nor before a sticky one ends
    duplicate: bool  #: whether it was told the same before


class Cancelled(BaseModel):
    """What became of a cancellation."""

    id: str  #: of the decision
    round: int  #: its round, from 1; of its key, if it has one
    duplicate: bool  #: whether it was cancelled before


class DecisionState(BaseModel):
    """A decision, whatever became of it."""

    id: str  #: of the decision
    experiment: str  #: what its experiment is called now
    key: str | int | None  #: which it was made for; null if the experiment has no keys
    round: int  #: from 1; of its key, if it has one
    arm: int  #: the arm that was drawn
    label: str | None  #: what the arm is called now; null if it has no label
    carried_out: int  #: the arm that was carried out: `arm`, unless it was overridden
    probability: float | None  #: of drawing it; null if the learner draws without knowing it
    reveals: list[int]  #: by the arm that was carried out
    observe_probabilities: list[float] | None  #: in the order of `reveals`; null where they are not known
    losses: list[float] | None  #: in the order of `reveals`
    costs: list[float] | None  #: the same, under a ceiling
    drawn_by: DrawnBy  #: who drew it
    #: What became of it. One that is late was told after it had expired, one that is defaulted the default loss.
    status: Literal["outstanding", "told", "cancelled", "expired", "late", "defaulted"]
    context: dict[str, Any] | None  #: as it was given; null if there was none
    decided_at: Timestamp  #: when it was made
    expires_at: Timestamp | None  #: when it expires without feedback; null: never
    settled_at: Timestamp | None  #: when it was told or cancelled, or expired; null while it is outstanding
    subject: str | None  #: who it is for, if it is sticky
    advice: Any  #: as it was given for this decision; null if there was none
    reports: int | None  #: how often it was told so far, if it is sticky and outstanding
