"""Feedback for many decisions in one request, and its reply."""

from __future__ import annotations

from typing import Annotated, Any, NamedTuple

from pydantic import BaseModel, Field, ValidationError, WrapValidator

from sidelong.service.http.messages.decisions import MOST_ITEMS, Losses
from sidelong.service.http.messages.graphs import GraphMessage  # noqa: TC001
from sidelong.service.http.messages.values import Body, Plain
from sidelong.service.store.spec import ArmName  # noqa: TC001  # pydantic reads the annotations

_LONGEST_ID = 100


class FeedbackItem(Body):
    """The losses that one decision revealed, as in feedback for it alone."""

    id: str = Field(max_length=_LONGEST_ID)
    losses: Losses
    graph: GraphMessage | None = Field(None, description="as in feedback for it alone")
    arm: ArmName | None = Field(None, description="as in feedback for it alone")
    plain: Plain = False


class Unread(NamedTuple):
    """An item that cannot be read."""

    id: str | None  #: if it has one
    error: ValidationError


def _leniently(value: Any, read: Any) -> Any:
    """Return an item, or what is wrong with it: the others may be right."""
    try:
        return read(value)
    except ValidationError as error:
        id_ = value.get("id") if isinstance(value, dict) else None
        return Unread(id_[:_LONGEST_ID] if isinstance(id_, str) else None, error)


class FeedbackBatch(Body):
    """Feedback for decisions, of one experiment or of several."""

    items: list[Annotated[FeedbackItem, WrapValidator(_leniently)]] = Field(min_length=1, max_length=MOST_ITEMS)
    partial: bool = Field(
        default=False,
        strict=True,
        description="whether to learn the others if an item is wrong; if not, nothing is stored, and all items are "
        "decisions of one experiment",
    )


class ItemProblem(BaseModel):
    """Why an item was not learned, as in an error for it alone."""

    status: int
    code: str
    detail: str
    path: str | None


class ItemVerdict(BaseModel):
    """What became of an item."""

    id: str | None  #: null if it had none
    round: int | None  #: null if there is a problem
    learned: bool
    duplicate: bool  #: whether the same was told before
    problem: ItemProblem | None


class FeedbackBatchReply(BaseModel):
    """What became of each item, in their order."""

    learned: int
    items: list[ItemVerdict]
