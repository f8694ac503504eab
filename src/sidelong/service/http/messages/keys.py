"""The keys of an experiment, as replies show them."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, Field

from sidelong.service.http.messages.values import Offset  # noqa: TC001  # pydantic reads the annotations

#: By key, by what the arms that were played cost per told round, or by how many decisions were made.
KeySort = Literal["key", "worst", "best", "decided"]


class KeysQuery(BaseModel):
    """Which keys to show."""

    search: Annotated[str, Field(max_length=200)] = ""  #: a part of the key
    sort: KeySort = "key"
    offset: Offset = 0
    limit: Annotated[int, Field(ge=1, le=1000)] = 50


class KeyState(BaseModel):
    """What is counted of a key."""

    key: str | int
    decided: int
    told: int
    cost: float | None  #: the mean loss of the arms that were played; null before anything was told
    best: int | None  #: the arm with the least mean of what was seen


class CostDistribution(BaseModel):
    """What keys cost per told round."""

    keys: int  #: that were told something
    mean: float | None  #: of their costs
    quantiles: list[float]  #: 5, 25, 50, 75 and 95 of a hundred; empty if there is none
    bins: list[int]  #: how many keys cost 0 to .05, .05 to .1, and so on


class KeyPage(BaseModel):
    """Some of the keys, and all of them in one distribution."""

    total: int  #: that the search finds
    offset: int
    limit: int
    sort: KeySort
    items: list[KeyState]
    distribution: CostDistribution  #: of all keys, whatever was searched for
