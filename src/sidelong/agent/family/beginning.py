"""What keys begin with: the first state of a learner, and scales and priors, of all keys or of some."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from sidelong.agent import head_start
from sidelong.agent.family.graphs import Bank
from sidelong.agent.family.store import KeyStore
from sidelong.checks import check_whole, short
from sidelong.errors import FamilyError, GraphError, LearnerError
from sidelong.graphs.graph import FeedbackGraph
from sidelong.keys import read_keys
from sidelong.learners import catalogue
from sidelong.outcomes.scale import Scale, checked_scale

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from types import ModuleType

    from sidelong.keys import Key
    from sidelong.learners.interface import Learner

    Prior = Mapping[int | str, tuple[float, float]]


def begin(
    learner: str | ModuleType | Learner,
    graph: FeedbackGraph,
    seed: int,
    scale: Scale | None,
    prior: Prior | None,
    options: dict[str, Any],
) -> tuple[KeyStore, str]:
    """Return the store of a family without keys, and the tag that the names of its decisions have."""
    if not isinstance(graph, FeedbackGraph):
        raise GraphError(
            f"graph must be a FeedbackGraph, not {type(graph).__name__}. "
            f"Make one with sidelong.graphs or FeedbackGraph.from_matrix."
        )
    if "certificate" in options:
        raise FamilyError(
            "A family keeps no certificates. For a key that needs one, make Agent(..., certificate=True) with the "
            "seed that family.seed_of(key) returns: it plays the same."
        )
    seed = check_whole(LearnerError, "seed", seed, 0, 2**64 - 1)
    scale = checked_scale(scale)
    module = catalogue.choose(learner, options)
    if prior is not None and "prior" in catalogue.option_names(module):  # as ts-n has one
        options, prior = options | {"prior": prior}, None
    options = catalogue.plain_options(module, options)
    params = catalogue.configure(module, graph, options)
    state = module.init(params, graph)
    if prior is not None:
        head_start.tilt(module, params, state, graph, prior, scale)
    believed = None if prior is None else [str(sorted(prior.items(), key=str)), str(scale)]  # others are others
    identity = json.dumps([module.name, options, seed, graph.content_hash, believed], sort_keys=True)
    tag = hashlib.sha256(identity.encode()).hexdigest()[:8]
    return KeyStore(module, params, Bank(module, options, [graph]), seed, state, scale), tag


def add(
    store: KeyStore,
    keys: Iterable[Key],
    scale: Scale | Sequence[Scale] | None,
    prior: Prior | Sequence[Prior | None] | None,
) -> None:
    """Add keys with a scale or a prior of their own."""
    listed = read_keys(keys)
    found = store.keys.find(listed)
    new = store.keys.new_among(listed, found)
    if len(new) < len(listed):
        often = Counter(listed)
        known = next(key for key, row in zip(listed, found, strict=True) if row >= 0 or often[key] > 1)
        raise FamilyError(f"The family has the key {short(known)} already, or it is given twice. Add new keys.")
    scales = [checked_scale(each) or store.scale for each in _each_of(scale, new, (Scale, type(None)))]
    priors = _each_of(prior, new, (Mapping, type(None)))
    states = [_tilted(store, each, of) for each, of in zip(priors, scales, strict=True)]
    if any(of != store.scale for of in scales) and not store.rows.scale.shape[1]:
        store.rows = store.rows._replace(scale=store.scales())
    rows = store.add(new)
    for row, state, of in zip(rows.tolist(), states, scales, strict=True):
        if state is not None:
            store.rows.state[row], store.rows.common[row] = state, -1
        if of is not None and store.rows.scale.shape[1]:
            store.rows.scale[row] = of.best, of.worst


def _tilted(store: KeyStore, prior: Prior | None, scale: Scale | None) -> np.ndarray | None:
    """Return the first state with a prior of one key's own."""
    if prior is None:
        return None
    state = store.learner.init(store.params, store.bank.own)
    head_start.tilt(store.learner, store.params, state, store.bank.own, prior, scale)
    return np.asarray(store.layout.filled(state)[: store.layout.kept])


def _each_of(given: Any, keys: list[Key], one: tuple[type, ...]) -> list[Any]:
    """Return what each key is given: the same, or its own."""
    if isinstance(given, one):
        return [given] * len(keys)
    listed = list(given) if hasattr(given, "__iter__") else []
    if len(listed) != len(keys):
        raise FamilyError(f"Give one for all keys, or one for each of the {len(keys)}, not {short(given)}.")
    return listed
