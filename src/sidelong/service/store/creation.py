"""Making an experiment: it is made without being stored, or refused, and then stored."""

from __future__ import annotations

import json
import secrets
from typing import TYPE_CHECKING, Any, NamedTuple

from sidelong.errors import GraphError, LearnerError, ServiceError
from sidelong.learners import catalogue
from sidelong.service.store.database import Identity, TakenError
from sidelong.service.store.experiment import LiveExperiment
from sidelong.service.store.graphs import KnownGraph, identify
from sidelong.service.store.replay import Replayed

if TYPE_CHECKING:
    from sidelong.graphs import FeedbackGraph
    from sidelong.service.store.store import Store

#: What a request for an experiment does not say. Experiments of older programs have no `learner_version`: theirs is 1.
_MADE_HERE = {"seed", "created_at", "learner_version"}


class Draft(NamedTuple):
    """An experiment that is not stored yet; or one that is, without its state."""

    identity: Identity
    graph: KnownGraph
    live: LiveExperiment | None = None


def draft(store: Store, name: str, spec: dict[str, Any], graph: FeedbackGraph | str) -> Draft:
    """Make the agent of an experiment, which may take some seconds of compilation, or refuse; nothing is stored."""
    with store.database.reading() as reading:
        before = store.find(reading, name)
        if isinstance(graph, str):
            graph = store.shelf.find(reading, graph)
    labels = graph.labels if spec["labels"] is None else spec["labels"]
    if labels is not None and len(labels) != graph.n_arms:
        raise _invalid(f"labels has one for each of the {graph.n_arms} arms, not {len(labels)}.", "labels")
    graph = graph.labelled(None)  # the experiment has them
    known = identify(graph)
    spec = {**spec, "labels": labels and list(labels), "graph": known.id, "graph_name": graph.name}
    if before is not None:
        return Draft(_same(before.identity, spec), known)
    spec = {**spec, "created_at": store.clock.now().at}
    spec["seed"] = secrets.randbelow(2**53) if spec["seed"] is None else spec["seed"]
    try:
        json.dumps(spec, allow_nan=False)
        spec["learner_version"] = catalogue.version(catalogue.choose(spec["learner"], spec["options"]))
        identity = Identity(0, secrets.token_hex(8), name, spec)
        return Draft(identity, known, LiveExperiment.new(identity, graph))
    except LearnerError as error:
        raise _invalid(str(error), "learner", spec["learner"]) from error
    except GraphError as error:
        raise _invalid(str(error), "graph") from error
    except (TypeError, ValueError, ArithmeticError) as error:  # of values that no learner thought of
        raise _invalid(f"These options cannot be used: {error}.", "options") from error


def create(store: Store, draft: Draft) -> tuple[Identity, bool]:
    """Store a new experiment; return it, and whether it is new."""
    identity, known, live = draft
    if live is None:
        return identity, False
    try:
        with store.database.writing() as writing:
            before = store.find(writing, identity.name)
            if before is not None:  # another was faster
                wanted = {key: value for key, value in identity.spec.items() if key not in _MADE_HERE}
                return _same(before.identity, wanted), False
            _check_count(len(writing.experiments()), store.settings.max_experiments)
            store.shelf.put(writing, known, store.clock.now().clock)
            live.identity = identity._replace(id=writing.create(identity))
            writing.append({live.identity.id: [live.create(store.clock.now())]})
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
    try:
        with store.database.writing() as writing:
            store.shelf.forget([known.id])  # so that one that was uploaded long ago counts as new
            new = store.shelf.put(writing, known, store.clock.now().clock)
            writing.commit()
    except BaseException:
        store.shelf.forget()
        raise
    return known, new


def _check_count(count: int, most: int) -> None:
    if count >= most:
        raise ServiceError(f"There are {count:,} experiments, the most there may be.", status=409, code="full")


def _same(before: Identity, spec: dict[str, Any]) -> Identity:
    """Return the experiment of a name, if it is what `spec` says."""
    other = [key for key, value in spec.items() if value is not None and before.spec.get(key) != value]
    if other:
        raise ServiceError(
            f"There is an experiment {before.name!r} already, with another {other[0]}. Choose another name.",
            status=409,
            code="exists",
            path="body.name",
            value=before.name,
        )
    return before


def _invalid(message: str, part: str, value: object = None) -> ServiceError:
    return ServiceError(message, status=422, code="invalid", path=f"body.{part}", value=value)
