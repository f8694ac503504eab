"""What the service shows of the keys of an experiment."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

import numpy as np
from pydantic import BaseModel, Field

from sidelong.errors import ServiceError
from sidelong.service.http.endpoints import Endpoints, Reply
from sidelong.service.http.messages import Offset  # noqa: TC001  # pydantic reads the annotations
from sidelong.service.store.tokens import Scope

if TYPE_CHECKING:
    from sidelong.service.http.endpoints import Call
    from sidelong.service.store.database import Reading
    from sidelong.service.store.experiment import LiveExperiment

endpoints = Endpoints()
_BINS = 20
_QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)
#: By key, by what the arms that were played cost per told round, or by how many decisions were made.
KeySort = Literal["key", "worst", "best", "decided"]


class KeysQuery(BaseModel):
    """Which keys to show."""

    search: Annotated[str, Field(max_length=200)] = ""  #: a part of the key
    sort: KeySort = "key"  #: by key; by cost, most or least first; or by how many decisions
    offset: Offset = 0  #: how many to leave out
    limit: Annotated[int, Field(ge=1, le=1000)] = 50  #: how many to return


class KeyState(BaseModel):
    """What is counted of a key."""

    key: str | int  #: text or a whole number
    decided: int  #: how many decisions were made for it
    told: int  #: how many of them were told
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
    offset: int  #: how many come before the first of these
    limit: int  #: how many were asked for
    sort: KeySort  #: in which order they come
    items: list[KeyState]  #: the keys
    distribution: CostDistribution  #: of all keys, whatever was searched for


@endpoints.add("GET", "/v1/experiments/{name}/keys", Scope.READ, {200: KeyPage}, query=KeysQuery)
async def show_keys(call: Call) -> Reply:
    """Return some of the keys of an experiment, and how much all of them cost."""
    query: KeysQuery = call.query
    return Reply(await call.server.view(call.of, lambda each, reading: page(each, query, reading)))


def page(experiment: LiveExperiment, query: KeysQuery, reading: Reading) -> KeyPage:
    """Return some of the keys."""
    if not experiment.keys.named:
        raise ServiceError("This experiment has no keys.", status=404, code="not_found", path="path.name")
    known, n = experiment.keys, len(experiment.keys)
    listed, told = known.keys.listed, known.told[:n]
    with np.errstate(invalid="ignore"):
        cost = known.paid[:n] / told
    rows = np.arange(n)
    if query.search:
        rows = np.array([row for row in range(n) if query.search in str(listed[row])], np.int64)
    if query.sort == "key":
        ordered = np.array(sorted(rows.tolist(), key=listed.__getitem__), np.int64)
    else:
        by = {"worst": -cost, "best": cost, "decided": -known.decided[:n]}[query.sort]
        ordered = rows[np.argsort(by[rows], kind="stable")]  # NaN comes last
    shown = ordered[query.offset : query.offset + query.limit].tolist()
    rows_shown = np.array(shown, np.int64)
    experiment.load(reading, rows_shown)
    best = experiment.blocks.best(rows_shown)
    items = [
        KeyState(
            key=listed[row],
            decided=int(known.decided[row]),
            told=int(told[row]),
            cost=None if np.isnan(cost[row]) else float(cost[row]),
            best=best[place],
        )
        for place, row in enumerate(shown)
    ]
    distribution = _distribution(cost[~np.isnan(cost)])
    return KeyPage(
        total=rows.size,
        offset=query.offset,
        limit=query.limit,
        sort=query.sort,
        items=items,
        distribution=distribution,
    )


def _distribution(cost: np.ndarray) -> CostDistribution:
    bins = np.bincount(np.minimum((cost * _BINS).astype(np.int64), _BINS - 1), minlength=_BINS)
    return CostDistribution(
        keys=cost.size,
        mean=float(cost.mean()) if cost.size else None,
        quantiles=np.quantile(cost, _QUANTILES).tolist() if cost.size else [],
        bins=bins.tolist(),
    )
