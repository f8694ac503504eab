"""What the service shows of an experiment with keys: all of it together, a decision, and its keys."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import numpy as np

from sidelong.errors import ServiceError
from sidelong.service.http.endpoints import Endpoints, Reply
from sidelong.service.http.messages.decisions import DecisionState
from sidelong.service.http.messages.experiments import Arms, ArmState
from sidelong.service.http.messages.keys import CostDistribution, KeyPage, KeysQuery, KeyState
from sidelong.service.store.experiment import expires_at, timestamp
from sidelong.service.store.journal import SLOTS, Kind
from sidelong.service.store.keyed.experiment import KeyedExperiment
from sidelong.service.store.keyed.rules import History
from sidelong.service.store.tokens import Scope

if TYPE_CHECKING:
    from sidelong.service.http.endpoints import Call
    from sidelong.service.http.messages.experiments import StateQuery
    from sidelong.service.store.database import Reading
    from sidelong.service.store.experiment import LiveExperiment
    from sidelong.service.store.graphs import GraphCache

endpoints = Endpoints()
_BINS = 20
_QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)


@endpoints.add("GET", "/v1/experiments/{name}/keys", Scope.READ, {200: KeyPage}, query=KeysQuery)
async def show_keys(call: Call) -> Reply:
    """Return some of the keys of an experiment, and how much all of them cost."""
    query: KeysQuery = call.query
    return Reply(await call.server.view(call.of, lambda each, reading: page(each, query, reading)))


def page(experiment: LiveExperiment, query: KeysQuery, reading: Reading) -> KeyPage:
    """Return some of the keys."""
    if not isinstance(experiment, KeyedExperiment):
        raise ServiceError("This experiment has no keys.", status=404, code="not_found", path="path.name")
    known, n = experiment.by_key, len(experiment.by_key.keys)
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
    experiment.wake(reading, rows_shown)
    best = experiment.blocks.best([listed[row] for row in shown], rows_shown)
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


def arms(experiment: KeyedExperiment, query: StateQuery) -> Arms:
    """Return what is known about arms, over all keys."""
    tallies, labels = experiment.tallies, experiment.life.labels
    with np.errstate(invalid="ignore"):
        mean = tallies.losses / tallies.observations
    by = {"arm": np.arange(mean.size), "probability": np.arange(mean.size), "mean": mean, "plays": -tallies.plays}
    shown = np.argsort(by[query.sort], kind="stable")[query.offset : query.offset + query.limit].tolist()
    items = [
        ArmState(
            arm=arm,
            label=None if labels is None else labels[arm],
            probability=None,
            observe_probability=None,
            plays=int(tallies.plays[arm]),
            observations=int(tallies.observations[arm]),
            mean=None,
            low=None,
            high=None,
            rejected=False,
            observed_count=int(tallies.observations[arm]),
            observed_mean=None if np.isnan(mean[arm]) else float(mean[arm]),
            observed_spread=None,
        )
        for arm in shown
    ]
    return Arms(total=mean.size, offset=query.offset, limit=query.limit, sort=query.sort, items=items)


def decision(experiment: KeyedExperiment, number: int, reading: Reading, graph_cache: GraphCache) -> DecisionState:
    """Return a decision, whatever became of it."""
    identity, waits = experiment.identity, experiment.find(number)
    history = History(reading, experiment, [])
    if not 1 <= number <= experiment.round:
        text, id_ = "There is no such decision.", f"{identity.key}-{number}"
        raise ServiceError(text, status=404, code="not_found", path="path.id", value=id_)
    made, draws = history.draws(number)
    place = number - made.round
    arm, probability = int(draws.arms[place]), float(draws.probabilities[place])
    late = settled = None
    if waits is None:
        settled = history.settled(number)
        late = history.found(number, SLOTS[Kind.LATE])
    # What came after a default changes nothing of what was learned.
    told = settled if settled is not None and settled[0].kind is Kind.DEFAULTED else late or settled
    graph_id = made.graph if told is None or told[0].graph is None else told[0].graph
    graph = experiment.agent.graph if graph_id is None else graph_cache.find(reading, graph_id)
    losses = observe = None
    if told is not None and told[0].kind in {Kind.TOLD, Kind.LATE, Kind.DEFAULTED}:
        columns, at = told[1:]
        losses = columns.losses_of(at).tolist()
        if columns.observe is not None:
            observe = columns.observe[columns.offsets[at] : columns.offsets[at + 1]]
    elif waits is not None:
        observe = experiment.observe_waiting(*waits, reading)
    known = observe is not None and not np.isnan(observe).any()
    status: Any = "outstanding" if told is None else told[0].kind.name.lower()
    return DecisionState(
        id=f"{identity.key}-{number}",
        experiment=identity.name,
        key=draws.keys[place],
        round=int(draws.rounds[place]),
        arm=arm,
        label=None if experiment.life.labels is None else experiment.life.labels[arm],
        probability=None if np.isnan(probability) else probability,
        reveals=graph.row(arm).tolist(),
        observe_probabilities=observe.tolist() if observe is not None and known else None,
        losses=losses,
        drawn_by=draws.drawn_by[place],
        status=status,
        context=None if made.context is None else json.loads(made.context),
        decided_at=timestamp(made.at),
        expires_at=expires_at(made.at, experiment.life.expire_after),
        settled_at=None if settled is None else timestamp(settled[0].at),
    )
