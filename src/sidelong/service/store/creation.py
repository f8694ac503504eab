"""Making an experiment: it is made without being stored, or refused, and then stored."""

from __future__ import annotations

import hashlib
import json
import math
import secrets
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from sidelong.agent import ContextualAgent, state_file
from sidelong.agent.rules import check_losses
from sidelong.errors import (
    EvaluationError,
    FamilyError,
    GraphError,
    LearnerError,
    LossError,
    OutcomeError,
    ServiceError,
)
from sidelong.graphs import complete
from sidelong.graphs.presence import arm_of
from sidelong.service.store import agents
from sidelong.service.store.agents import scale_of
from sidelong.service.store.commands import taken
from sidelong.service.store.database import Identity, TakenError
from sidelong.service.store.graphs import PART, KnownGraph, identify, stored_size
from sidelong.service.store.keyed import cloning, warm_start
from sidelong.service.store.keyed.experiment import KeyedExperiment, kind_of
from sidelong.service.store.life import written
from sidelong.service.store.replay import Replayed

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from sidelong.graphs import FeedbackGraph
    from sidelong.service.store.database import Reading
    from sidelong.service.store.experiment import LiveExperiment
    from sidelong.service.store.life import Life
    from sidelong.service.store.store import Store

#: What a request for an experiment does not say.
_MADE_HERE = {"seed", "created_at", "learner_version", "begins_with"}
#: What a log has beside `action`: one's own columns, or those that are exported.
_LOG_FORMS = (("loss", "pscore"), ("observed", "losses", "observe_probabilities"))
#: How a sentence names what differs, where "another" and the name of the field would not do.
_OTHER = {"options": "other options", "features": "other features", "labels": "other labels"}
_OTHER |= {"graph_name": "another graph", "certificate": "no certificate"}


class Draft(NamedTuple):
    """An experiment that is not stored yet; or one that is, without its state."""

    identity: Identity
    graph: KnownGraph
    live: LiveExperiment | None = None
    learned: bytes | None = None  #: what it begins with, of a clone or after a log: the state file of an agent
    named: dict[str, Any] | None = None  #: of a clone, what the request says of it


def clone(store: Store, of: str, name: str, wanted: dict[str, Any], *, learned: bool) -> Draft:
    """Make the agent of an experiment like another, with or without what that has learned; nothing is stored."""
    if learned and wanted.get("seed") is not None:
        raise _invalid("A clone that has learned goes on with the seed of what it learned. Leave seed out.", "seed")

    def copied(experiment: LiveExperiment, reading: Reading) -> tuple[Identity, Life, int, Callable[[], bytes]]:
        if learned and isinstance(experiment, KeyedExperiment):
            made = cloning.copied(experiment, reading)
        else:
            made = partial(_without_waiting, state_file.pack(*experiment.agent.contents()))
        return experiment.identity, experiment.life, experiment.head, made

    source, life, sequence, make = store.view(of, copied)
    origin = {"name": source.name, "key": source.key, "sequence": sequence, "learned": learned}
    lasting = {"description": life.description, "labels": life.labels, "expire_after": life.expire_after}
    spec = {**source.spec, **lasting, **wanted, "created_at": store.clock.now().at}
    for part in ("begins_with",) if learned else ("begins_with", "log"):
        spec.pop(part, None)
    with store.database.reading() as reading:
        before = reading.find(name)
        graph = store.shelf.find(reading, spec["graph"]).named(spec["graph_name"])
    known = KnownGraph(spec["graph"], graph)
    spec = _with_holdout(spec, graph)
    named = {part: spec.get(part) for part in (*wanted, "keyed")}
    if before is not None:
        return Draft(_same_clone(before, origin, named), known)
    if spec.get("seed") is None or not (learned or "seed" in wanted):
        spec["seed"] = secrets.randbelow(2**53)
    spec["learner_version"] = agents.module_of(spec).version
    state = make() if learned else None
    spec["origin"] = {**origin, "state": None if state is None else hashlib.sha256(state).hexdigest()}
    identity = Identity(0, secrets.token_hex(8), name, spec)
    return Draft(identity, known, kind_of(identity).new(identity, graph, state), state, named)


def _without_waiting(data: bytes) -> bytes:
    """Return an agent without the decisions that wait: whoever made them tells the original."""
    place = "The clone"
    agent = agents.resumed(*state_file.unpack(data, place), place)
    for decision in agent.pending:
        agent.cancel(decision)
    return state_file.pack(*agent.contents())


def draft(
    store: Store, name: str, spec: dict[str, Any], graph: FeedbackGraph | str, log: dict[str, Any] | None = None
) -> Draft:
    """Make the agent of an experiment, which may take some seconds of compilation, or refuse; nothing is stored.

    It learns the `log`, in columns, before its first round.
    """
    with store.database.reading() as reading:
        before = reading.find(name)
        if isinstance(graph, str):
            graph = store.shelf.find(reading, graph)
    labels = graph.labels if spec["labels"] is None else spec["labels"]
    check_labels(labels, graph.n_arms)
    graph = graph.labelled(None)  # the experiment has them
    known = identify(graph)
    spec = _with_prior(_with_holdout({**spec, "labels": labels and list(labels)}, graph), graph)
    spec = {**spec, "graph": known.id, "graph_name": graph.name}
    if log is not None:  # which is not kept, but what was learned from it
        digest = hashlib.sha256(json.dumps(log, sort_keys=True).encode()).hexdigest()
        spec["log"] = {"rounds": len(log["action"]), "digest": digest}
    if before is not None:
        return Draft(_same(before, spec), known)
    _check_scale(spec)
    spec = {**spec, "created_at": store.clock.now().at}
    spec["seed"] = secrets.randbelow(2**53) if spec["seed"] is None else spec["seed"]
    try:
        json.dumps(spec, allow_nan=False)
        identity = Identity(0, secrets.token_hex(8), name, spec)
        live = kind_of(identity).new(identity, graph)
        spec["learner_version"] = agents.module_of(spec).version
        _check_models(agents.model_bytes(spec, graph), store.settings.max_model_bytes)
        _check_default(live)
        learned = None if log is None else _learned(live, log)
        if learned is not None:
            spec["begins_with"] = hashlib.sha256(learned).hexdigest()
            live = kind_of(identity).new(identity, graph, learned)
        made = Draft(identity, known, live, learned)
    except LearnerError as error:
        raise _invalid(str(error), "learner", spec["learner"]) from error
    except GraphError as error:
        raise _invalid(str(error), "graph") from error
    except (TypeError, ValueError, ArithmeticError) as error:  # of values that no learner thought of
        raise _invalid(f"These options cannot be used: {error}.", "options") from error
    if stored_size(graph) > PART:  # so that it is not written while others wait to decide
        store.shelf.keep(store.database, known, store.clock.now().clock)
    return made


def create(store: Store, draft: Draft, by: str | None = None) -> tuple[Identity, bool]:
    """Store a new experiment, which somebody made; return it, and whether it is new."""
    identity, known, live, learned, named = draft
    if live is None:
        return identity, False
    try:
        with store.database.writing() as writing:
            before = writing.find(identity.name)
            if before is not None:  # another was faster
                return _repeated(before, identity, named), False
            check_count(writing, store.settings.max_experiments)
            store.shelf.put(writing, known, store.clock.now().clock)
            live.identity = identity._replace(id=writing.create(identity))
            about = {part: value for part, value in (("origin", identity.spec.get("origin")), ("by", by)) if value}
            if learned is not None:
                writing.keep_initial_state(live.identity.id, learned)
            writing.append({live.identity.id: [live.create(store.clock.now(), written(about) if about else None)]})
            writing.commit()
    except TakenError as error:
        store.shelf.forget()
        raise ServiceError(
            "Another server is making an experiment of this name. Send the request again.",
            status=503,
            code="busy",
            retry_after=1.0,
        ) from error
    except BaseException:
        store.shelf.forget()
        raise
    store.adopt(Replayed(live.identity, store.shelf, store.clock, live))
    return live.identity, True


def keep_graph(store: Store, graph: FeedbackGraph) -> tuple[KnownGraph, bool]:
    """Keep a graph; return it with its id, and tell whether it is new."""
    known = identify(graph)
    return known, store.shelf.keep(store.database, known, store.clock.now().clock)


def _with_holdout(spec: dict[str, Any], graph: FeedbackGraph) -> dict[str, Any]:
    """Return a spec with the number of the arm that a holdout follows."""
    holdout = spec.get("holdout")
    if holdout is None:
        return spec
    if "features" in spec:
        raise _invalid("A learner that sees features has no holdout here. Leave one of the two out.", "holdout")
    return {**spec, "holdout": {**holdout, "arm": arm_called(holdout["arm"], graph, spec["labels"], "holdout.arm")}}


def _with_prior(spec: dict[str, Any], graph: FeedbackGraph) -> dict[str, Any]:
    """Return a spec with the numbers of the arms of which something is believed."""
    if spec.get("prior") is None:
        return spec
    if "features" in spec:
        raise _invalid("A learner that sees features has no prior. Leave one of the two out.", "prior")
    _check_scale(spec)
    scale = scale_of(spec)
    low, high = (0.0, 1.0) if scale is None else sorted((scale.best, scale.worst))
    believed: dict[int, dict[str, Any]] = {}
    for place, each in enumerate(spec["prior"]):
        arm = arm_called(each["arm"], graph, spec["labels"], f"prior.{place}.arm")
        if arm in believed:
            raise _invalid(f"prior names arm {arm} twice.", f"prior.{place}.arm", each["arm"])
        if not low <= each["mean"] <= high:
            text = f"The mean that is believed of arm {arm} must be from {low:g} to {high:g}, not {each['mean']!r}."
            raise _invalid(text, f"prior.{place}.mean", each["mean"])
        believed[arm] = {**each, "arm": arm}
    return {**spec, "prior": list(believed.values())}


def _learned(live: LiveExperiment, log: dict[str, Any]) -> bytes:
    """Return what a new experiment begins with after it has learned a log."""
    if isinstance(live.agent, ContextualAgent):
        raise _invalid("A learner that sees features learns from no log here. Leave one of the two out.", "log")
    columns = _read_log(live, log)
    try:
        if isinstance(live, KeyedExperiment):
            return warm_start.learned(live, columns)
        live.agent.learn(columns)
    except (EvaluationError, FamilyError) as error:
        raise _invalid(str(error), "log") from error
    return state_file.pack(*live.agent.contents())


def _read_log(live: LiveExperiment, log: dict[str, Any]) -> dict[str, Any]:
    """Return the columns of a log with losses from 0 to 1."""
    keyed = isinstance(live, KeyedExperiment)
    if keyed != ("key" in log):
        text = "needs a column key in its log" if keyed else "has no column key in its log"
        raise _invalid(f"An experiment {'with' if keyed else 'without'} keys {text}.", "log.key")
    forms = [[name in log for name in form] for form in _LOG_FORMS]
    if sorted(map(any, forms)) != [False, True] or not any(map(all, forms)):
        either = " or ".join(", ".join(form) for form in _LOG_FORMS)
        raise _invalid(f"Beside action, a log has the columns {either}; this one has {', '.join(log)}.", "log")
    if len({len(column) for column in log.values()}) > 1:
        raise _invalid("The columns of a log have one entry for each round: all are equally long.", "log")
    if "loss" not in log:
        return {**log, "loss": [math.nan] * len(log["action"])}  # `losses` has it, where it was revealed
    try:
        return {**log, "loss": agents.losses_of(live.identity.spec, log["loss"])}
    except OutcomeError as error:
        raise _invalid(str(error), "log") from error


def _check_default(live: LiveExperiment) -> None:
    """Refuse a default that could not be told."""
    told = live.identity.spec.get("default_loss")
    if told is not None:
        try:
            losses = np.array(live.losses_of([told]))
            check_losses(live.module, losses, complete(1), 0)
        except (ServiceError, LossError) as error:
            raise _invalid(f"default_loss cannot be told: {error}", "default_loss", told) from error


def check_labels(labels: Sequence[str] | None, n_arms: int) -> None:
    """Refuse labels that do not name each arm, or that name two alike: either could be meant."""
    if labels is None:
        return
    if len(labels) != n_arms:
        raise _invalid(f"labels has one for each of the {n_arms} arms, not {len(labels)}.", "labels", len(labels))
    first: dict[str, int] = {}
    for arm, label in enumerate(labels):
        other = first.setdefault(label, arm)
        if other != arm:
            text = f"Arms {other} and {arm} have the same label. Labels name arms, and must differ."
            raise _invalid(text, f"labels.{arm}", label)


def _check_scale(spec: dict[str, Any]) -> None:
    try:
        scale_of(spec)
    except OutcomeError as error:
        raise _invalid(str(error), "scale", spec["scale"]) from error


def arm_called(arm: int | str, graph: FeedbackGraph, labels: Sequence[str] | None, name: str) -> int:
    """Return the number of an arm that a request names by number or label."""
    try:
        return arm_of(graph.labelled(labels if isinstance(arm, str) else None), arm, name)
    except GraphError as error:
        raise _invalid(str(error), name, arm) from error


def check_count(writing: Reading, most: int) -> None:
    """Refuse one more experiment than there may be; archived ones do not count."""
    count = sum(each.state != "archived" for each in writing.experiments())
    if count >= most:
        raise ServiceError(f"There are {count:,} experiments, the most there may be.", status=409, code="full")


def _check_models(wanted: int, most: int) -> None:
    if wanted > most:
        raise _invalid(
            f"The regressions of all arms would have {wanted:,} bytes, and an experiment may have {most:,}. "
            f"Give a smaller option hashed, or raise SIDELONG_MAX_MODEL_BYTES.",
            "options",
        )


def _repeated(before: Identity, identity: Identity, named: dict[str, Any] | None) -> Identity:
    """Return the experiment that was made of the same request in the meantime, by this server or by another."""
    if named is not None:
        return _same_clone(before, identity.spec["origin"], named)
    return _same(before, {key: value for key, value in identity.spec.items() if key not in _MADE_HERE})


def _same_clone(before: Identity, origin: dict[str, Any], named: dict[str, Any]) -> Identity:
    """Return the experiment of a name, if it is a clone of the same and what was `named` of it."""
    made_of = before.spec.get("origin", {})
    is_held = "holdout" in named and named["holdout"] is None and before.spec.get("holdout") is not None
    if is_held or any(made_of.get(part) != origin[part] for part in ("key", "learned")):
        raise taken(before.name)
    return _same(before, named)


def _same(before: Identity, spec: dict[str, Any]) -> Identity:
    """Return the experiment of a name, if it is what `spec` says."""
    other = [key for key, value in spec.items() if value is not None and before.spec.get(key) != value]
    has_keys = bool(before.spec.get("keyed"))
    how = f"with {_OTHER.get(other[0], f'another {other[0]}')}" if other else ""
    if has_keys != bool(spec.get("keyed")):
        how = "which has keys" if has_keys else "which has no keys"
    if how:
        raise ServiceError(
            f"There is an experiment {before.name!r} already, {how}. Choose another name.",
            status=409,
            code="exists",
            path="body.name",
            value=before.name,
        )
    return before


def _invalid(message: str, part: str, value: object = None) -> ServiceError:
    return ServiceError(message, status=422, code="invalid", path=f"body.{part}", value=value)
