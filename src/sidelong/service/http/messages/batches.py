"""Feedback for many decisions in one request, and its reply."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BaseModel, Field, ValidationError, WrapValidator

from sidelong.service.http.messages.decisions import MOST_ITEMS, Losses
from sidelong.service.http.messages.graphs import GraphMessage  # noqa: TC001
from sidelong.service.http.messages.values import Body, Plain, Whole


class FeedbackItem(Body):
    """The losses that one decision revealed, as in feedback for it alone."""

    id: str = Field(max_length=100)
    losses: Losses
    graph: GraphMessage | None = Field(None, description="as in feedback for it alone")
    arm: Whole | None = Field(None, description="as in feedback for it alone")
    plain: Plain = False


def _leniently(value: Any, read: Any) -> Any:
    """Return an item, or what is wrong with it: the others may be right."""
    try:
        return read(value)
    except ValidationError as error:
        return error


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
