"""Decisions and feedback for many keys in columns: less to write and to read than an object for each."""

from __future__ import annotations

from typing import Annotated, Any

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, GetPydanticSchema, WithJsonSchema
from pydantic_core import core_schema

from sidelong.service.http.messages.decisions import MOST_ITEMS, Available, ProductKey
from sidelong.service.http.messages.graphs import GraphMessage  # noqa: TC001  # pydantic reads the annotations
from sidelong.service.http.messages.values import Body, Plain, Timestamp
from sidelong.service.store.spec import ArmName, Whole  # noqa: TC001  # pydantic reads the annotations

#: How many graphs one batch of feedback may name.
MOST_GRAPHS = 256


def _reals(*_: Any) -> core_schema.CoreSchema:
    """Return how numbers are read: pydantic's parser decodes base64 in a fifth of Python's time."""
    numbers = core_schema.no_info_after_validator_function(
        lambda data: np.frombuffer(data, "<f8").astype(np.float64), core_schema.bytes_schema()
    )
    wrong = "This is no base64 of numbers of 8 bytes"
    return core_schema.custom_error_schema(numbers, "base64", custom_error_message=wrong)


#: Numbers of 8 bytes (float64, little-endian), one after the other, in base64.
Reals = Annotated[Any, GetPydanticSchema(_reals), WithJsonSchema({"type": "string", "format": "byte"})]


class KeysRequest(Body):
    """The keys to decide for, and what a request for one decision may say, for all of them."""

    keys: list[ProductKey] = Field(min_length=1, max_length=MOST_ITEMS)
    graph: GraphMessage | None = Field(None, description="the graph of this round alone")
    available: Available | None = Field(None, description="as at a single decision")
    context: dict[str, Any] | None = Field(None, description="kept in the log; the learner does not see it")


class DecisionColumns(BaseModel):
    """What to play for each key, in the order of the keys."""

    ids: str  #: what the ids begin with; the number of the decision follows
    first: int  #: that of the first key; the others count on from there
    rounds: list[int]  #: of each key, from 1
    arms: list[int]
    labels: dict[str, str] | None  #: by arm, what it is called; null if the arms have no labels
    probabilities: list[float] | None  #: null if the learner draws without knowing them
    reveals: dict[str, list[int]]  #: by arm, what playing it reveals
    expires_at: Timestamp | None
    duplicate: bool  #: whether this Idempotency-Key was answered before


class FeedbackColumns(Body):
    """The losses that decisions of one experiment revealed."""

    model_config = ConfigDict(val_json_bytes="base64")

    ids: list[Annotated[str, Field(max_length=100)]] = Field(min_length=1, max_length=MOST_ITEMS)
    sizes: list[Whole] = Field(max_length=MOST_ITEMS, description="how many losses each decision has")
    losses: Reals = Field(description="of all decisions, in the order of `reveals`, as float64, little-endian, base64")
    arms: list[ArmName] | None = Field(
        None,
        max_length=MOST_ITEMS,
        description="that were played, by number or label; one that the decision does not play is refused",
    )
    graphs: list[GraphMessage] | None = Field(None, max_length=MOST_GRAPHS, description="that came with outcomes")
    graph_of: list[Whole] | None = Field(
        None, max_length=MOST_ITEMS, description="for each decision, which of the graphs came with its outcome"
    )
    partial: bool = Field(default=False, strict=True, description="whether to learn the others if one is wrong")
    plain: Plain = False


class ColumnProblem(BaseModel):
    """Why a decision was not learned, as in an error for it alone."""

    id: str
    status: int
    code: str
    detail: str
    path: str | None


class FeedbackColumnsReply(BaseModel):
    """How many decisions were learned, and what became of the others."""

    learned: int
    duplicates: list[str]  #: the ids of those that were told the same before
    problems: list[ColumnProblem]  #: only where `partial` was asked for
