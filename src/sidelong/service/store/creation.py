"""Making an experiment: it is made without being stored, or refused, and then stored."""

from __future__ import annotations

import hashlib
import json
import math
import secrets
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

from sidelong.errors import (
    EvaluationError,
    FamilyError,
    GraphError,
    LearnerError,
    LossError,
    OutcomeError,
    ServiceError,
)
from sidelong.graphs.presence import arm_of, present
from sidelong.outcomes.scale import ends_of
from sidelong.service.store import agents, snapshots
from sidelong.service.store.agents import scale_of
from sidelong.service.store.database import (
    CHUNK,
    BlobKind,
    BlobName,
    Identity,
    TakenError,
    keep_blob,
    keep_chunks,
)
from sidelong.service.store.experiment import LiveExperiment
from sidelong.service.store.feedback import number_or_label
from sidelong.service.store.graphs import KnownGraph, identify, stored_size
from sidelong.service.store.lifecycle import written
from sidelong.service.store.replay import Replayed
from sidelong.service.store.rules import taken
from sidelong.service.store.spec import LearnedLog, Origin, RequestedSpec, Spec, StickySpec

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from sidelong.graphs import FeedbackGraph
    from sidelong.service.store.database import Reading
    from sidelong.service.store.lifecycle import Life
    from sidelong.service.store.spec import Belief, HoldoutSpec
    from sidelong.service.store.store import Store

#: What a request says of an experiment beside what `RequestedSpec` has.
_SAID = frozenset(RequestedSpec.model_fields) | {"graph", "graph_name", "log"}
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
    learned: bytes | None = None  #: what it begins with, of a clone or after a log: see `snapshots`
    said: frozenset[str] = frozenset()  #: the parts of its specification that the request has named


def clone(store: Store, of: str, name: str, wanted: dict[str, Any], *, learned: bool) -> Draft:
    """Make the agent of an experiment like another, with or without what that has learned; nothing is stored."""
    if learned and wanted.get("seed") is not None:
        raise _invalid("A clone that has learned goes on with the seed of what it learned. Leave seed out.", "seed")

    def copied(
        experiment: LiveExperiment, reading: Reading
    ) -> tuple[Identity, Life, str, int, Callable[[], bytes] | None]:
        make = snapshots.copied(experiment, reading) if learned else None
        return experiment.identity, experiment.life, experiment.own.now.id, experiment.head, make

    source, life, graph_id, sequence, make = store.view(of, copied)
    wanted = {part: value for part, value in wanted.items() if part != "seed" or value is not None}
    spec = source.spec.model_copy(
        update={
            "description": life.description,
            "labels": life.labels,
            "expire_after": life.expire_after,
            "seed": source.spec.seed if learned else secrets.randbelow(2**53),
            "log": source.spec.log if learned else None,
            "graph": graph_id,
            "graph_name": source.spec.graph_name if graph_id == source.spec.graph else None,
            "origin": Origin(name=source.name, key=source.key, sequence=sequence, learned=learned),
            "initial_state": None,
            "sticky": source.spec.sticky and StickySpec.model_validate({"seconds": life.expire_after}),
            "created_at": store.clock.now().at,
            "learner_version": agents.module_of(source.spec).version,
            **wanted,
        }
    )
    with store.database.reading() as reading:
        before = reading.find(name)
        graph = store.graphs.find(reading, spec.graph).named(spec.graph_name)
    known, said = KnownGraph(spec.graph, graph), frozenset(wanted)
    spec = spec.model_copy(update={"holdout": _resolved_holdout(spec, graph, spec.labels)})
    _resolved_bounds(spec, graph, spec.labels)
    if before is not None:
        return Draft(_same(before, spec, said), known)
    state = None if make is None else make()
    if state is not None:
        spec = spec.model_copy(update={"initial_state": hashlib.sha256(state).hexdigest()})
    identity = Identity(0, secrets.token_hex(8), name, spec.to_json())
    live = LiveExperiment.new(identity, graph, state)
    _keep_large(store, identity, state)
    return Draft(identity, known, live, state, said)


def draft(
    store: Store,
    name: str,
    request: RequestedSpec,
    graph: FeedbackGraph | str,
    log: dict[str, Any] | None = None,
) -> Draft:
    """Make the agent of an experiment, which may take some seconds of compilation, or refuse; nothing is stored.

    It learns the `log`, in columns, before its first round.
    """
    with store.database.reading() as reading:
        before = reading.find(name)
        if isinstance(graph, str):
            graph = store.graphs.find(reading, graph)
    labels = graph.labels if request.labels is None else request.labels
    check_labels(labels, graph.n_arms)
    graph = graph.labelled(None)  # the experiment has them
    known = identify(graph)
    said = _SAID if request.seed is not None else _SAID - {"seed"}
    with _refused_by_learner(request):
        spec = Spec(
            **{
                **{part: getattr(request, part) for part in RequestedSpec.model_fields},
                "seed": secrets.randbelow(2**53) if request.seed is None else request.seed,
                "labels": labels and list(labels),
                "holdout": _resolved_holdout(request, graph, labels),
                "prior": _resolved_prior(request, graph, labels),
                "cost_bounds": _resolved_bounds(request, graph, labels),
            },
            graph=known.id,
            graph_name=graph.name,
            log=None if log is None else _learned_log(log),
            created_at=store.clock.now().at,
            learner_version=agents.module_of(request).version,
        )
        if before is not None:
            return Draft(_same(before, spec, said), known)
        _check_scale(spec)
        identity = Identity(0, secrets.token_hex(8), name, spec.to_json())
        live = LiveExperiment.new(identity, graph)
        _check_models(agents.model_bytes(spec, graph), store.settings.max_model_bytes)
        _check_default(live)
        _check_sticky(live)
        learned = None if log is None else _learned(live, log)
        if learned is not None:
            spec = spec.model_copy(update={"initial_state": hashlib.sha256(learned).hexdigest()})
            identity = replace(identity, document=spec.to_json())
            live = LiveExperiment.new(identity, graph, learned)
    if stored_size(graph) > CHUNK:  # so that it is not written while others wait to decide
        store.graphs.keep(store.database, known, store.clock.now().clock)
    _keep_large(store, identity, learned)
    return Draft(identity, known, live, learned, said)


def _keep_large(store: Store, identity: Identity, learned: bytes | None) -> None:
    """Keep what an experiment will begin with if that is large, so that it is not written while others wait.

    If the experiment is not created then, this is forgotten as a graph is that nothing uses.
    """
    if learned is not None and len(learned) > CHUNK:
        keep_blob(store.database, _initial_state(identity), learned, store.clock.now().clock)


def _initial_state(identity: Identity) -> BlobName:
    return BlobName(BlobKind.INITIAL_STATE, identity.key)


@contextmanager
def _refused_by_learner(request: RequestedSpec) -> Iterator[None]:
    """Turn what a learner says of an experiment that it cannot play into the error of the request."""
    try:
        yield
    except LearnerError as error:
        raise _invalid(str(error), "learner", request.learner) from error
    except GraphError as error:
        raise _invalid(str(error), "graph") from error
    except (TypeError, ValueError, ArithmeticError) as error:  # of values that no learner thought of
        raise _invalid(f"These options cannot be used: {error}.", "options") from error


def _learned_log(log: dict[str, Any]) -> LearnedLog:
    digest = hashlib.sha256(json.dumps(log, sort_keys=True).encode()).hexdigest()
    return LearnedLog(rounds=len(log["action"]), digest=digest)


def create(store: Store, draft: Draft, by: str | None = None) -> tuple[Identity, bool]:
    """Store a new experiment, which somebody made; return it, and whether it is new."""
    identity, known, live, learned, said = draft
    if live is None:
        return identity, False
    try:
        with store.database.writing() as writing:
            before = writing.find(identity.name)
            if before is not None:  # another was faster
                return _same(before, identity.spec, said), False
            check_count(writing, store.settings.max_experiments)
            store.graphs.put(writing, known, store.clock.now().clock)
            live.identity = replace(identity, id=writing.create(identity, known.id))
            origin, state = identity.spec.origin, identity.spec.initial_state
            about: dict[str, Any] = {} if origin is None else {"origin": {**origin.model_dump(), "state": state}}
            about |= {"by": by} if by else {}
            if learned is not None and not writing.hold(_initial_state(identity)):
                keep_chunks(writing, _initial_state(identity), learned, store.clock.now().clock)
            writing.append({live.identity.id: [live.create(store.clock.now(), written(about) if about else None)]})
            writing.commit()
    except TakenError as error:
        store.graphs.forget()
        raise ServiceError(
            "Another server is making an experiment of this name. Send the request again.",
            status=503,
            code="busy",
            retry_after=1.0,
        ) from error
    except BaseException:
        store.graphs.forget()
        raise
    store.add(Replayed(live.identity, store.graphs, store.clock, live))
    return live.identity, True


def keep_graph(store: Store, graph: FeedbackGraph) -> tuple[KnownGraph, bool]:
    """Keep a graph; return it with its id, and tell whether it is new."""
    known = identify(graph)
    return known, store.graphs.keep(store.database, known, store.clock.now().clock)


def _resolved_holdout(spec: RequestedSpec, graph: FeedbackGraph, labels: Sequence[str] | None) -> HoldoutSpec | None:
    """Return the holdout of a specification with the number of its arm."""
    if spec.holdout is None:
        return None
    if spec.features is not None:
        raise _invalid("A learner that sees features has no holdout here. Leave one of the two out.", "holdout")
    return spec.holdout.model_copy(update={"arm": played_arm(spec.holdout.arm, graph, labels, "holdout.arm")})


def _resolved_prior(spec: RequestedSpec, graph: FeedbackGraph, labels: Sequence[str] | None) -> list[Belief] | None:
    """Return the prior of a specification with the numbers of its arms."""
    if spec.prior is None:
        return None
    if spec.features is not None:
        raise _invalid("A learner that sees features has no prior. Leave one of the two out.", "prior")
    _check_scale(spec)
    scale = scale_of(spec)
    low, high = sorted(ends_of(scale))
    believed: dict[int, Belief] = {}
    for place, each in enumerate(spec.prior):
        arm = arm_called(each.arm, graph, labels, f"prior.{place}.arm")
        if arm in believed:
            raise _invalid(f"prior names arm {arm} twice.", f"prior.{place}.arm", each.arm)
        if not low <= each.mean <= high:
            text = f"The mean that is believed of arm {arm} must be from {low:g} to {high:g}, not {each.mean!r}."
            raise _invalid(text, f"prior.{place}.mean", each.mean)
        believed[arm] = each.model_copy(update={"arm": arm})
    return list(believed.values())


def _resolved_bounds(spec: RequestedSpec, graph: FeedbackGraph, labels: Sequence[str] | None) -> list[float] | None:
    """Return the bounds of a specification in the order of the arms; refuse a ceiling that is none."""
    given: Any = spec.cost_bounds
    if isinstance(given, dict):
        named = [arm_called(number_or_label(arm), graph, labels, f"cost_bounds.{arm}") for arm in given]
        given = dict(zip(named, given.values(), strict=True))
    try:
        found = agents.ceiling_of(spec.model_copy(update={"cost_bounds": given}), graph)
    except LearnerError as error:
        where = "ceiling" if spec.cost_bounds is None else "cost_bounds"
        raise _invalid(str(error), where, getattr(spec, where)) from error
    if found is None:
        return None
    if spec.holdout is not None:
        raise _invalid(
            "What a holdout plays is under no ceiling. Make an experiment without one of the two.",
            "ceiling",
            spec.ceiling,
        )
    if spec.default_loss is not None and found.bounds is None:
        text = "With a ceiling, default_loss needs cost_bounds: an expired decision counts as the most it can cost."
        raise _invalid(text, "default_loss", spec.default_loss)
    return None if found.bounds is None else list(found.bounds.tolist())


def _learned(live: LiveExperiment, log: dict[str, Any]) -> bytes:
    """Return what a new experiment begins with after it has learned a log."""
    if live.identity.spec.features is not None:
        raise _invalid("A learner that sees features learns from no log here. Leave one of the two out.", "log")
    columns = _read_log(live, log)
    try:
        return snapshots.learned(live, columns)
    except (EvaluationError, FamilyError) as error:
        raise _invalid(str(error), "log") from error


def _read_log(live: LiveExperiment, log: dict[str, Any]) -> dict[str, Any]:
    """Return the columns of a log with losses from 0 to 1."""
    keyed = live.keys.named
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
    """Refuse a default that could not even be told of the decision that reveals most."""
    told, degrees = live.identity.spec.default_loss, live.graph.arrays.stop - live.graph.arrays.start
    if told is not None:
        try:
            live.losses_of([told] * int(degrees.max()), live.graph, int(degrees.argmax()))
        except LossError as error:
            raise _invalid(f"default_loss cannot be told: {error}", "default_loss", told) from error


def _check_sticky(live: LiveExperiment) -> None:
    """Refuse means of several losses where a learner takes single ones alone."""
    sticky = live.identity.spec.sticky
    if sticky is not None and live.takes_binary:
        text = f"{live.identity.spec.learner} takes losses of 0 and 1 alone, and the mean of several is between them"
        raise _invalid(f"{text}: its decisions cannot be sticky.", "sticky", sticky.model_dump())


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


def _check_scale(spec: RequestedSpec) -> None:
    try:
        scale_of(spec)
    except OutcomeError as error:
        raise _invalid(str(error), "scale", spec.scale and spec.scale.model_dump()) from error


def arm_called(arm: int | str, graph: FeedbackGraph, labels: Sequence[str] | None, name: str) -> int:
    """Return the number of an arm that a request names by number or label."""
    try:
        return arm_of(graph.labelled(labels if isinstance(arm, str) else None), arm, name)
    except GraphError as error:
        raise _invalid(str(error), name, arm) from error


def played_arm(arm: int | str, graph: FeedbackGraph, labels: Sequence[str] | None, name: str) -> int:
    """Return the number of an arm that is to be played without the learner, and so must not be retired."""
    found = arm_called(arm, graph, labels, name)
    if not present(graph)[found]:
        raise _invalid(f"Arm {found} is retired, and is played no more. Name one that is there.", name, arm)
    return found


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


def _same(before: Identity, spec: Spec, said: frozenset[str]) -> Identity:
    """Return the experiment of a name, if it is what a request has said of it; what it left out is not compared."""
    old = before.spec
    wanted, made_of = spec.origin, old.origin
    if wanted is not None:  # a clone, of which the rest is as in the original
        is_held = "holdout" in said and spec.holdout is None and old.holdout is not None
        if is_held or made_of is None or (made_of.key, made_of.learned) != (wanted.key, wanted.learned):
            raise taken(before.name)
    other = next((part for part in sorted(said) if _differs(getattr(spec, part), getattr(old, part))), None)
    how = "" if other is None else f"with {_OTHER.get(other, f'another {other}')}"
    if old.keyed != spec.keyed:
        how = "which has keys" if old.keyed else "which has no keys"
    if how:
        raise ServiceError(
            f"There is an experiment {before.name!r} already, {how}. Choose another name.",
            status=409,
            code="exists",
            path="body.name",
            value=before.name,
        )
    return before


def _differs(wanted: object, before: object) -> bool:
    return wanted is not None and wanted is not False and wanted != before


def _invalid(message: str, part: str, value: object = None) -> ServiceError:
    return ServiceError(message, status=422, code="invalid", path=f"body.{part}", value=value)
