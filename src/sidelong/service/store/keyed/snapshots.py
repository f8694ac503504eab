"""What a snapshot of an experiment with keys holds: its keys without their states, and the decisions that wait.

::

    keys.*       the keys, in the order in which they came, as in the state file of a family
    by_key.*     decided, told and paid, a row for each key
    drawn.*      of each batch of which some decisions wait: at and clock, how many, the kind of its event, and the
                 place of its graph's id in the header, -1 for the experiment's own
    waiting.*    the decisions that wait, batch after batch: number, row of the key, round of the learner (0 if it did
                 not decide), arm, probability; and of those that it did not decide, the probability of revealing
                 each arm that they reveal
    blocks       the checksum of each block: see `sidelong.service.store.keyed.blocks`
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from sidelong.agent import Batch
from sidelong.keys import Keys
from sidelong.service.store.experiment import Moment
from sidelong.service.store.graphs import KnownGraph
from sidelong.service.store.journal import Kind
from sidelong.service.store.keyed.asides import Mixed
from sidelong.service.store.keyed.counting import COUNTED
from sidelong.service.store.keyed.drawn import DrawnBatch
from sidelong.service.store.keyed.experiment import KeyedExperiment

if TYPE_CHECKING:
    from collections.abc import Callable

    from sidelong.graphs import FeedbackGraph
    from sidelong.service.store.database import Identity
    from sidelong.service.store.tallies import Tallies

    Arrays = dict[str, np.ndarray]

_WAITING = ("number", "row", "round", "arm", "probability")


def contents(live: KeyedExperiment) -> tuple[dict[str, Any], Arrays, dict[str, Any]]:
    """Return the header and the arrays, and what the service says beside them."""
    header = {"kind": "keyed"}
    n = len(live.by_key.keys)
    arrays = live.by_key.keys.contents() | {f"by_key.{name}": getattr(live.by_key, name)[:n] for name in COUNTED}
    batches = list(live.drawn.values())
    ids: dict[str, int] = {}
    for drawn in batches:
        if drawn.graph is not None:
            ids.setdefault(drawn.graph.id, len(ids))
    arrays["drawn.moment"] = np.array([drawn.moment for drawn in batches], np.int64).reshape(-1, 2)
    arrays["drawn.left"] = np.array([drawn.left for drawn in batches], np.int64)
    which = [-1 if drawn.graph is None else ids[drawn.graph.id] for drawn in batches]
    arrays["drawn.graph"] = np.array(which, np.int64)
    arrays["drawn.kind"] = np.array([drawn.kind for drawn in batches], np.int64)
    columns: dict[str, list[np.ndarray]] = {name: [] for name in _WAITING}
    for drawn in batches:
        batch, waits = drawn.batch, drawn.waits
        of = (drawn.numbers, drawn.rows, batch.rounds, batch.arms, batch.probabilities)
        for name, array in zip(columns, of, strict=True):
            columns[name].append(array[waits])
    for name, parts in columns.items():
        kind = np.float64 if name == "probability" else np.int64
        arrays[f"waiting.{name}"] = np.concatenate([np.empty(0, kind), *parts]).astype(kind)
    observe = [drawn.observed(np.flatnonzero(drawn.waits & drawn.given)) for drawn in batches]
    arrays["waiting.observe"] = np.concatenate([np.empty(0), *observe])
    arrays["blocks"] = live.blocks.checksums()
    return header, arrays, {"drawn_graphs": list(ids), "block_size": live.blocks.size}


def restore(
    identity: Identity,
    arrays: Arrays,
    service: dict[str, Any],
    tallies: Tallies,
    find: Callable[[str], FeedbackGraph],
) -> KeyedExperiment:
    """Go on from what `contents` returned, with graphs that `find` finds by their ids."""
    spec = identity.spec
    own = find(spec.graph).named(spec.graph_name)
    live = KeyedExperiment(identity, own, tallies, service["block_size"])
    live.by_key.keys = Keys.from_contents(arrays)
    for name in COUNTED:
        setattr(live.by_key, name, arrays[f"by_key.{name}"])
    live.blocks.resume(arrays["blocks"], service["head"])
    listed = live.by_key.keys.listed
    graphs = [KnownGraph(id_, find(id_)) for id_ in service["drawn_graphs"]]
    waiting = [arrays[f"waiting.{name}"] for name in _WAITING]
    ends, observe = np.cumsum(arrays["drawn.left"]), arrays["waiting.observe"]
    for k, end in enumerate(ends.tolist()):
        some = slice(end - int(arrays["drawn.left"][k]), end)
        numbers, rows, rounds, arms, probabilities = (column[some].copy() for column in waiting)
        which = int(arrays["drawn.graph"][k])
        graph = None if which < 0 else graphs[which]
        shown = own if graph is None else graph.graph
        revealed = [shown.row(arm) for arm in arms.tolist()]
        offsets = np.append(0, np.cumsum([row.size for row in revealed]))
        keys = [listed[row] for row in rows.tolist()]
        reveals = np.concatenate(revealed).astype(np.int32)
        batch = Batch(live.blocks.tag, keys, rounds, arms, probabilities, reveals, offsets)
        moment = Moment._make(arrays["drawn.moment"][k].tolist())
        own_observe, observe = np.split(observe, [int(np.diff(offsets)[rounds == 0].sum())])
        made = Mixed(Kind(int(arrays["drawn.kind"][k])), batch, rounds == 0, own_observe)
        live.keep(DrawnBatch(numbers, made, rows, graph, moment))
    return live
