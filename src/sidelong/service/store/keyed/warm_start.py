"""What an experiment with keys begins with that has learned a log: the keys of the log, each with its own rounds.

It has the form of what a clone begins with: see `sidelong.service.store.keyed.cloning`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from sidelong.agent import Family, state_file
from sidelong.errors import EvaluationError
from sidelong.keys import Keys, read_keys

if TYPE_CHECKING:
    from sidelong.service.store.keyed.columns import Key
    from sidelong.service.store.keyed.experiment import KeyedExperiment


def learned(live: KeyedExperiment, log: dict[str, list[Any]]) -> bytes:
    """Let each key of a log learn its rounds, and return all of them; `live` is new, and stays as it is."""
    places: dict[Key, list[int]] = {}
    for place, key in enumerate(read_keys(log["key"])):
        places.setdefault(key, []).append(place)
    columns = {name: column for name, column in log.items() if name != "key"}
    listed, size, keys = list(places), live.blocks.size, Keys()
    keys.add(listed)
    arrays = keys.contents()
    for number, first in enumerate(range(0, len(listed), size)):
        some = listed[first : first + size]
        rounds = [{name: [column[k] for k in places[key]] for name, column in columns.items()} for key in some]
        arrays[f"block.{number}"] = np.frombuffer(_block(live, some, rounds), np.uint8)
    return state_file.pack({"kind": "keyed", "block_size": size}, arrays)


def _block(live: KeyedExperiment, keys: list[Key], rounds: list[dict[str, list[Any]]]) -> bytes:
    spec, graph = live.identity.spec, live.agent.graph
    family = Family(spec.learner, graph, seed=spec.seed, threads=1, **spec.options)
    family.add(keys)
    for key, log in zip(keys, rounds, strict=True):
        try:
            family[key].learn(log)
        except EvaluationError as error:
            raise EvaluationError(f"The log of the key {key!r} cannot be learned. {error}") from error
    return state_file.pack(*family.contents())
