"""What the state file of a family holds.

::

    header        kind ("family"), learner and its version, options, seed, scale, labels, names of graphs and traces,
                  and the tag that the names of decisions have
    params.*      the constants of the learner, as they were computed
    first.*       the state of a key before its first round, without the room that a learner computes in
    keys.*        the keys: number; or text, or digits of numbers beyond 64 bits, with where each key ends in it
    state.*       the arrays of the state, a row for each key
    rows.*        seed, round, counts, means, squares, told (and scale, if some key has its own): a row for each key
    graph.I.*     low and high, or degree and targets: of the family's own graph, then of those that decisions wait on
    pending.*     the decisions that wait, key after key, oldest first: key (a row), round, arm, graph,
                  probability, p and trace
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from sidelong.agent.contents import find_learner, read_params
from sidelong.agent.family.graphs import Bank
from sidelong.agent.family.memory import new_rows, new_waiting
from sidelong.agent.family.store import KeyStore
from sidelong.agent.state_file import graph_to_arrays, read_graphs
from sidelong.errors import StateFileError
from sidelong.keys import Keys
from sidelong.outcomes.scale import Scale

if TYPE_CHECKING:
    import os
    from types import ModuleType

    from sidelong.learners.interface import Learner

    Place = str | os.PathLike[str]  #: what messages call the file

_KEPT = ("seed", "round", "counts", "means", "squares", "told", "scale")
WAITING = ("key", "round", "arm", "graph", "probability", "p", "trace")


def write(store: KeyStore, tag: str) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """Return the header and the arrays."""
    store.part_states()
    n, rows, waiting, layout = len(store.keys), store.rows, store.waiting, store.layout
    slots = pending_in_order(store)
    used, places = np.unique(np.append(0, waiting.graph[slots]), return_inverse=True)
    graphs = [store.bank.graphs[g] for g in used.tolist()]
    header = {
        "kind": "family",
        "learner": store.learner.name,
        "learner_version": store.learner.version,
        "options": store.bank.options,
        "seed": store.seed,
        "graphs": [each.name for each in graphs],
        "traces": list(store.learner.traces),
        "tag": tag,
    }
    if store.names:
        header["names"] = store.names
    if store.scale is not None:
        header["scale"] = [store.scale.best, store.scale.worst]
    if graphs[0].labels is not None:
        header["labels"] = list(graphs[0].labels)
    arrays = {f"params.{name}": np.asarray(value) for name, value in store.params._asdict().items()}
    first = layout.on(store.first_state)
    arrays |= {f"first.{name}": getattr(first, name) for name in layout.names}
    arrays |= store.keys.contents()
    arrays |= {f"state.{name}": layout.column(rows.state[:n], name) for name in layout.names}
    arrays |= {f"rows.{name}": getattr(rows, name)[:n] for name in _KEPT}
    for index, each in enumerate(graphs):
        arrays |= {f"graph.{index}.{name}": array for name, array in graph_to_arrays(each).items()}
    pending = {f"pending.{name}": getattr(waiting, name)[slots] for name in WAITING}
    return header, arrays | pending | {"pending.graph": places.reshape(-1)[1:]}


def read(
    path: Place,
    header: dict[str, Any],
    arrays: dict[str, np.ndarray],
    given: ModuleType | Learner | None,
) -> tuple[KeyStore, str]:
    """Return what `write` was given; `given` is the module of a learner that is not one of the package's own."""
    if header.get("kind") != "family":
        raise StateFileError(f"{path} is of an agent, not of a family. Load it with Agent.load.")
    graphs = read_graphs(path, header, arrays)
    learner = find_learner(path, header, given, kind="Family")
    params = read_params(path, learner, arrays)
    state = learner.init(params, graphs[0])
    scale = Scale(*header["scale"]) if "scale" in header else None
    store = KeyStore(learner, params, Bank(learner, header["options"], graphs), header["seed"], state, scale)
    store.names = dict(header.get("names", {}))
    keys = Keys.from_contents(arrays)
    rows = new_rows(store.layout, graphs[0].n_arms)._replace(**{name: arrays[f"rows.{name}"] for name in _KEPT})
    n = len(keys)
    words = np.zeros((n, store.layout.kept), np.uint64)
    first = store.layout.on(store.first_state)
    for name in store.layout.names:
        _check_like(path, name, arrays, getattr(first, name))
        store.layout.column(words, name)[...] = arrays[f"state.{name}"]
        getattr(first, name)[...] = arrays[f"first.{name}"]
    none = np.full(n, -1, np.int64)
    store.keys, store.rows = keys, rows._replace(state=words, common=none, first=none.copy(), last=none.copy())
    let_wait(store, {name: arrays[f"pending.{name}"] for name in WAITING})
    return store, header["tag"]


def _check_like(path: Place, name: str, arrays: dict[str, np.ndarray], array: np.ndarray) -> None:
    found = arrays.get(f"state.{name}")
    if found is None or found.dtype != array.dtype or found.shape[1:] != array.shape:
        raise StateFileError(
            f"{path} was saved by another version of its learner: its {name} does not fit. "
            f"Load it with the version that saved it."
        )


def pending_in_order(store: KeyStore) -> np.ndarray:
    """Return where decisions wait, key after key, oldest first."""
    waiting = store.waiting
    slots = np.flatnonzero(waiting.key >= 0)
    return np.asarray(slots[np.lexsort((waiting.round[slots], waiting.key[slots]))])


def let_wait(store: KeyStore, columns: dict[str, np.ndarray]) -> None:
    """Let decisions wait, which are given key after key, oldest first."""
    key = columns["key"]
    n = key.size
    waiting = new_waiting(store.bank.own.n_arms, store.n_traces)
    same = np.append(key[1:] == key[:-1], False)[:n]
    following = np.where(same, np.arange(1, n + 1), -1)
    store.waiting = waiting._replace(**columns, next=following)
    store.rows.first[key[::-1]] = np.arange(n)[::-1]
    store.rows.last[key] = np.arange(n)
