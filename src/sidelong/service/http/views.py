"""What the service shows of an experiment."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from sidelong.agent import ContextualAgent, state_file
from sidelong.agent.member import Member
from sidelong.agent.rounds import REMEMBERED_BY_AGENT
from sidelong.errors import FeatureError, ServiceError
from sidelong.graphs.presence import present
from sidelong.service.http import estimates
from sidelong.service.http.graphs import GraphDrawing, GraphSummary
from sidelong.service.http.guarantees import alarms, guarantee
from sidelong.service.http.messages.decisions import DecisionState
from sidelong.service.http.messages.experiments import (
    ArchivedExperiment,
    Arms,
    ArmState,
    ChangeList,
    ChangeState,
    CheapestArm,
    DeletedExperiment,
    ExperimentList,
    ExperimentState,
    ExperimentSummary,
    LoadingExperiment,
    Prediction,
    Predictions,
    Rates,
    RefusedExperiment,
    StateQuery,
)
from sidelong.service.http.problems import invalid
from sidelong.service.store import agents, journal, snapshots
from sidelong.service.store.clock import expires_at, timestamp
from sidelong.service.store.history import History
from sidelong.service.store.journal import DRAWN_BY, LATE_SLOT, Kind

if TYPE_CHECKING:
    from sidelong.agent import Estimates
    from sidelong.graphs import FeedbackGraph
    from sidelong.service.store.agents import Decider
    from sidelong.service.store.database import Listed, Reading
    from sidelong.service.store.experiment import LiveExperiment
    from sidelong.service.store.graphs import GraphCache
    from sidelong.service.store.journal import Event, Key
    from sidelong.service.store.store import Store

_MOST_EDGES = 5000
_USUAL = StateQuery()
#: What the state of an experiment says as its specification does, and `Life` says the rest of it.
_AS_SPECIFIED = (
    *("learner", "learner_version", "options", "seed", "features", "sticky", "scale", "default_loss", "prior"),
    *("origin", "incumbent", "allowance"),
)


def _agent(
    experiment: LiveExperiment, reading: Reading, key: str | None = None, path: str = "query.key"
) -> Decider | None:
    """Return what decides, for a key if one is named; None where there are many, and none is named."""
    if experiment.keys.named and key is None:
        return None
    row = experiment.keys.row(key)
    if row < 0:
        text = f"There is no key {key!r}." if experiment.keys.named else "This experiment has no keys."
        raise ServiceError(text, status=404, code="not_found", path=path, value=key)
    return experiment.agent_of(reading, row)


def summary(experiment: LiveExperiment, reading: Reading) -> ExperimentSummary:
    """Return a line of the list."""
    identity, agent = experiment.identity, _agent(experiment, reading)
    world = None if agent is None else estimates.world(experiment, agent)
    return ExperimentSummary(
        name=identity.name,
        learner=identity.spec.learner,
        n_arms=experiment.n_arms,
        description=experiment.life.description,
        state=experiment.life.state,
        created_at=timestamp(identity.spec.created_at),
        counts=estimates.counts(experiment),
        keys=_keys(experiment),
        alarms=alarms(experiment, estimates.sample_ratio(experiment.counters), world),
    )


def summaries(store: Store, offset: int, limit: int, only: str | None = None) -> ExperimentList:
    """Return a page of the list of experiments. It waits for none that is not in memory.

    `only` is the key of a single one, for who may reach no other.
    """
    total, names = store.names(offset, limit, only)
    items, loading, refused = [], [], []
    for name in names:
        found = store.named(name)
        try:
            if found.is_settled:
                items.append(store.view(name, summary))
            else:
                done, head = found.progress or (0, None)
                loading.append(LoadingExperiment(name=name, done=done, events=head))
        except ServiceError as error:
            refused.append(RefusedExperiment(name=name, why=str(error)))
    with store.database.reading() as reading:
        deletions = reading.experiments(deleted=True) if only is None else []
    away = [each for each in store.listed(only) if each.state == "archived"]
    archived = [
        ArchivedExperiment(name=each.name, at=timestamp(each.changed_at or 0), by=each.changed_by) for each in away
    ]
    deleted = [deleted_experiment(each) for each in deletions]
    return ExperimentList(
        total=total, items=items, loading=loading, refused=refused, archived=archived, deleted=deleted
    )


def deleted_experiment(line: Listed) -> DeletedExperiment:
    """Return what is left of an experiment that was deleted."""
    return DeletedExperiment(name=line.name, at=timestamp(line.changed_at or 0), by=line.changed_by)


def state(experiment: LiveExperiment, reading: Reading, query: StateQuery = _USUAL) -> ExperimentState:
    """Return all about an experiment, with some of its arms.

    With keys, what is counted is over all of them, and what a learner knows is shown of the key that is named.
    """
    identity, counters, life = experiment.identity, experiment.counters, experiment.life
    agent = _agent(experiment, reading, query.key)
    spec, ratio = identity.spec, estimates.sample_ratio(counters)
    known = None if agent is None else agent.estimates()
    world, lift = None if agent is None else estimates.world(experiment, agent), estimates.lift(experiment)
    certified = spec.certificate and not experiment.keys.named  # one of a key does not bound what all have lost
    regret = estimates.regret(counters, agent if certified else None)
    return ExperimentState(
        name=identity.name,
        **life._asdict(),
        **{part: getattr(spec, part) for part in _AS_SPECIFIED},
        logged=None if spec.log is None else spec.log.rounds,
        created_at=timestamp(spec.created_at),
        graph=graph_summary(experiment.own.now.id, experiment.graph),
        keys=_keys(experiment),
        round=experiment.round,
        sequence=experiment.head,
        digest=snapshots.digest(experiment) if query.digest else None,
        counts=estimates.counts(experiment),
        best=None if known is None else _best(known, life.labels),
        arms=_arms(experiment, known, query),
        guarantee=None if agent is None else guarantee(experiment, agent, ratio),
        sample_ratio=ratio,
        amounts=estimates.amounts(experiment, lift, regret),
        lift=lift,
        regret=regret,
        certificate=None if agent is None else estimates.certificate(experiment, agent),
        advisers=None if agent is None else estimates.advisers(agent),
        spending=estimates.spending(experiment, agent),
        allowance_left=None if agent is None else estimates.allowance_left(experiment, agent),
        world=world,
        alarms=alarms(experiment, ratio, world),
    )


def _keys(experiment: LiveExperiment) -> int | None:
    return len(experiment.keys) if experiment.keys.named else None


def _best(known: Estimates, labels: list[str] | None) -> CheapestArm | None:
    arm = known.best
    if arm is None:
        return None
    return CheapestArm(arm=arm, label=labels[arm] if labels else None, mean=float(known.means[arm]), chance=known.sure)


def _arms(experiment: LiveExperiment, known: Estimates | None, query: StateQuery) -> Arms:
    """Return some of the arms; `known` is what the learner knows of them, if there is one."""
    counters, labels = experiment.counters, experiment.life.labels
    p = np.full(experiment.n_arms, np.nan) if known is None else known.weights
    P = np.full_like(p, np.nan) if np.isnan(p).any() else experiment.graph.observe_probabilities(p)
    mean = estimates.costs(counters)
    with np.errstate(invalid="ignore"):
        seen = counters.losses / counters.observations if known is None else known.means
    counts = counters.observations if known is None else known.counts
    by = {"arm": np.arange(p.size), "probability": -p, "mean": mean, "plays": -counters.plays}[query.sort]
    shown = np.argsort(by, kind="stable")[query.offset : query.offset + query.limit].tolist()
    ends = estimates.intervals(counters, shown)
    there = present(experiment.graph)
    doubtful = ends.rejected | np.isnan(mean[shown])
    items = [
        ArmState(
            arm=arm,
            label=labels[arm] if labels else None,
            retired=not there[arm],
            probability=_known(p[arm]),
            observe_probability=_known(P[arm]),
            plays=counters.plays[arm],
            observations=int(counters.observations[arm]),
            mean=_known(mean[arm]),
            low=None if doubtful[place] else float(ends.lower[place]),
            high=None if doubtful[place] else float(ends.upper[place]),
            rejected=bool(ends.rejected[place]),
            observed_count=int(counts[arm]),
            observed_mean=_known(seen[arm]),
            observed_spread=None if known is None else _known(known.spreads[arm]),
        )
        for place, arm in enumerate(shown)
    ]
    return Arms(total=p.size, offset=query.offset, limit=query.limit, sort=query.sort, items=items)


def predictions(
    experiment: LiveExperiment, reading: Reading, context: dict[str, Any], limit: int, key: Key | None
) -> Predictions:
    """Return what each arm is predicted to cost for a context, the cheapest first; where there are keys, for one."""
    spec = experiment.identity.spec
    if spec.features is None:
        text = f"{spec.learner} sees nothing of a context, and predicts nothing from it."
        raise ServiceError(text, status=409, code="no_features", path="path.name", value=experiment.identity.name)
    agent = _agent(experiment, reading, None if key is None else str(key), "body.key")
    if not isinstance(agent, ContextualAgent | Member):
        raise invalid("Each key has its own predictions: send the key.", "body.key")
    try:
        losses = agent.predict(agents.seen(spec, context))
    except FeatureError as error:
        raise ServiceError(str(error), status=422, code="invalid", path="body.context") from error
    labels, cheapest = experiment.life.labels, np.argsort(losses, kind="stable")[:limit].tolist()
    items = [Prediction(arm=arm, label=labels[arm] if labels else None, loss=float(losses[arm])) for arm in cheapest]
    return Predictions(round=agent.round, total=losses.size, items=items)


def drawing(experiment: LiveExperiment, reading: Reading, limit: int) -> GraphDrawing:
    """Return the arms that are played most, and the edges between them."""
    graph, labels, agent = experiment.graph, experiment.life.labels, _agent(experiment, reading)
    weights = experiment.counters.plays if agent is None else agent.estimates().weights
    most = np.argsort(-weights, kind="stable")[:limit]
    arms = np.sort(most)
    edges = []
    for arm in arms.tolist():
        seen = np.intersect1d(graph.out_neighbors(arm), arms, assume_unique=True)
        edges += [[arm, other] for other in seen.tolist()]
    return GraphDrawing(
        total_arms=graph.n_arms,
        total_edges=graph.n_edges,
        truncated=arms.size < graph.n_arms or len(edges) > _MOST_EDGES,
        arms=arms.tolist(),
        edges=edges[:_MOST_EDGES],
        labels=labels and [labels[arm] for arm in arms],
    )


def rates(experiment: LiveExperiment, minutes: int, now: int) -> Rates:
    """Return what happened in each of the last minutes; `now` is in microseconds."""
    last = now // 60_000_000
    span = range(last - minutes + 1, last + 1)
    found = [experiment.counters.minutes.get(minute, [0] * len(Kind)) for minute in span]
    counted = {kind.name.lower(): [each[kind] for each in found] for kind in Kind}
    counted["decided"] = [sum(each[kind] for kind in DRAWN_BY) for each in found]
    kept: dict[str, Any] = {name: counted[name] for name in ("decided", "told", "expired", "late")}
    costs = [experiment.counters.costs.get(minute, [0.0] * 4) for minute in span]
    kept["held_cost"], kept["cost"] = ([row[at + 1] / row[at] if row[at] else None for row in costs] for at in (0, 2))
    shares = [experiment.counters.trust.get(minute, []) for minute in span]
    names = experiment.advisers if experiment.counters.trust else ()
    kept["trust"] = {name: [row[k] if k < len(row) else None for row in shares] for k, name in enumerate(names)}
    return Rates(minutes=[timestamp(minute * 60_000_000).replace(".000", "") for minute in span], **kept)


def decision(store: Store, of: str, number: int) -> DecisionState:
    """Return a decision in any state."""
    return store.view(of, lambda each, reading: _decision(each, number, reading, store.graphs))


def _decision(experiment: LiveExperiment, number: int, reading: Reading, graphs: GraphCache) -> DecisionState:
    identity, labels = experiment.identity, experiment.life.labels
    history = History(reading, experiment)
    history.check(number)
    made, draws = history.draws(number)
    columns = journal.read_columns(made)
    _, key, round_, arm, probability, by = draws.row(number - made.round)
    settled = None if number in experiment.pending else history.settled(number)
    late = None if settled is None else history.found(number, LATE_SLOT)
    # What came after a default changes nothing of what was learned.
    told = settled if settled is not None and settled[0].kind is Kind.DEFAULTED else late or settled
    carried = experiment.pending.arm(number) if settled is None else history.carried_out(number)
    graph_id = made.graph if told is None or told[0].graph is None else told[0].graph
    graph = graphs.find(reading, graph_id or identity.spec.graph)
    if graph_id == made.graph:
        graph = draws.graph(number - made.round, graph)
    losses = observe = costs = None
    if told is None:
        observe = experiment.observe_pending(number, reading)
    elif told[0].kind in {Kind.TOLD, Kind.LATE, Kind.DEFAULTED}:
        losses, observe = told[1].losses_of(told[2]).tolist(), told[1].observe_of(told[2])
        costs = told[1].costs_of(told[2])
    return DecisionState(
        id=f"{identity.key}-{number}",
        experiment=identity.name,
        key=key,
        round=round_,
        arm=arm,
        label=None if labels is None else labels[arm],
        carried_out=carried,
        probability=None if np.isnan(probability) else probability,
        reveals=graph.row(carried).tolist(),
        observe_probabilities=None if observe is None or np.isnan(observe).any() else observe.tolist(),
        losses=losses,
        costs=None if costs is None else costs.tolist(),
        drawn_by=by,
        status=cast("Any", "outstanding" if told is None else told[0].kind.name.lower()),
        context=_context(made, number - made.round),
        decided_at=timestamp(made.at),
        expires_at=expires_at(made.at, experiment.life.expire_after),
        settled_at=None if settled is None else timestamp(settled[0].at),
        subject=journal.subject_of(columns),
        advice=journal.advice_of(columns, number - made.round),
        reports=None if settled is not None or identity.spec.sticky is None else experiment.sticky.count(number),
    )


def _context(made: Event, place: int) -> dict[str, Any] | None:
    given = None if made.context is None else json.loads(made.context)
    return given[place] if isinstance(given, list) else given


def graph_summary(id_: str, graph: FeedbackGraph) -> GraphSummary:
    """Return a graph without its edges."""
    return GraphSummary(
        id=id_,
        name=graph.name,
        n_arms=graph.n_arms,
        n_edges=graph.n_edges,
        representation=graph.representation,
        undirected=graph.is_undirected,
    )


def _known(value: float) -> float | None:
    return None if np.isnan(value) else float(value)


def agent_file(experiment: LiveExperiment, reading: Reading) -> bytes:
    """Return the agent as a state file, or a family, which knows what waits by the ids that the service gave it.

    It has the labels of the arms, and the scale of what it is told.
    """
    experiment.load_all(reading)
    header, arrays = experiment.blocks.together()
    header["names"] = experiment.names_of_pending()
    if "remembers" in header:
        header["remembers"] = REMEMBERED_BY_AGENT  # until now the journal did
    scale, labels = experiment.scale, experiment.life.labels
    if scale is not None:
        header["scale"] = [scale.best, scale.worst]
    if labels is not None and len(set(labels)) == len(labels):
        header["labels"] = labels
    return state_file.pack(header, arrays)


def changes(store: Store, of: str) -> ChangeList:
    """Return who made an experiment, and who changed what."""
    identity = store.identity(of)
    with store.database.reading() as reading:
        events = [*reading.events(identity.id, 0, 1), *journal.changes(reading, identity.id)]
    items = []
    for event in events:
        change = json.loads(event.context or "{}")
        by = change.pop("by", None)
        made = {"state": "created"} if event.kind is Kind.CREATED else {}
        items.append(ChangeState(at=timestamp(event.at), by=by, change={**made, **change}))
    return ChangeList(items=items)
