"""What a snapshot of an experiment with keys holds: the family's state file, the decisions that wait, what is counted.

::

    by_key.*     decided, told and paid, a row for each key in the order of the family's
    drawn.*      of each batch of which some decisions wait: at and clock, how many, and the place of its graph's id in
                 the header, -1 for the experiment's own
    waiting.*    the decisions that wait, batch after batch: number, row of the key, round, arm, probability
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from sidelong.agent.family import Batch, Family
from sidelong.agent.state_file import read_graphs
from sidelong.learners import catalogue
from sidelong.learners.interface import is_sparing
from sidelong.service.store.experiment import Moment
from sidelong.service.store.graphs import KnownGraph
from sidelong.service.store.keyed.experiment import DrawnBatch, KeyedExperiment

if TYPE_CHECKING:
    from collections.abc import Callable

    from sidelong.graphs import FeedbackGraph
    from sidelong.service.store.database import Identity
    from sidelong.service.store.tallies import Tallies

    Arrays = dict[str, np.ndarray]

_COUNTED = ("decided", "told", "paid")


def contents(live: KeyedExperiment) -> tuple[dict[str, Any], Arrays, dict[str, Any]]:
    """Return the header and the arrays, and what the service says beside them."""
    header, arrays = live.family.contents()
    _tidy(header, arrays)
    n = len(live.by_key.keys)
    arrays |= {f"by_key.{name}": getattr(live.by_key, name)[:n] for name in _COUNTED}
    batches = list(live.drawn.values())
    ids: dict[str, int] = {}
    for drawn in batches:
        if drawn.graph is not None:
            ids.setdefault(drawn.graph.id, len(ids))
    arrays["drawn.moment"] = np.array([drawn.moment for drawn in batches], np.int64).reshape(-1, 2)
    arrays["drawn.left"] = np.array([drawn.left for drawn in batches], np.int64)
    which = [-1 if drawn.graph is None else ids[drawn.graph.id] for drawn in batches]
    arrays["drawn.graph"] = np.array(which, np.int64)
    columns: dict[str, list[np.ndarray]] = {name: [] for name in ("number", "row", "round", "arm", "probability")}
    for drawn in batches:
        batch, waits = drawn.batch, drawn.waits
        of = (drawn.numbers, drawn.rows, batch.rounds, batch.arms, batch.probabilities)
        for name, array in zip(columns, of, strict=True):
            columns[name].append(array[waits])
    for name, parts in columns.items():
        kind = np.float64 if name == "probability" else np.int64
        arrays[f"waiting.{name}"] = np.concatenate([np.empty(0, kind), *parts]).astype(kind)
    return header, arrays, {"drawn_graphs": list(ids)}


def _tidy(header: dict[str, Any], arrays: Arrays) -> None:
    """Let a learner that does not look at every arm have zeros where it wrote nothing: equal states, equal bytes."""
    if not arrays["pending.arm"].size or not is_sparing(catalogue.choose(header["learner"], header["options"])):
        return
    graphs = read_graphs("a snapshot", header, arrays)
    p = arrays["pending.p"].copy()
    of = zip(arrays["pending.graph"].tolist(), arrays["pending.arm"].tolist(), strict=True)
    for row, (graph, arm) in enumerate(of):
        p[row, graphs[graph].row(arm).size :] = 0.0
    arrays["pending.p"] = p


def restore(
    identity: Identity,
    header: dict[str, Any],
    arrays: Arrays,
    service: dict[str, Any],
    tallies: Tallies,
    find: Callable[[str], FeedbackGraph],
) -> KeyedExperiment:
    """Go on from what `contents` returned, with graphs that `find` finds by their ids."""
    family = Family.from_contents(header, arrays, f"the snapshot of {identity.name}")
    live = KeyedExperiment(identity, family, tallies)
    listed = family.keys
    live.by_key.rows(listed)
    for name in _COUNTED:
        setattr(live.by_key, name, arrays[f"by_key.{name}"])
    graphs = [KnownGraph(id_, find(id_)) for id_ in service["drawn_graphs"]]
    names = ("number", "row", "round", "arm", "probability")
    waiting = [arrays[f"waiting.{name}"] for name in names]
    ends = np.cumsum(arrays["drawn.left"])
    for k, end in enumerate(ends.tolist()):
        some = slice(end - int(arrays["drawn.left"][k]), end)
        numbers, rows, rounds, arms, probabilities = (column[some].copy() for column in waiting)
        which = int(arrays["drawn.graph"][k])
        graph = None if which < 0 else graphs[which]
        shown = family.graph if graph is None else graph.graph
        revealed = [shown.row(arm) for arm in arms.tolist()]
        offsets = np.append(0, np.cumsum([row.size for row in revealed]))
        keys = [listed[row] for row in rows.tolist()]
        reveals = np.concatenate(revealed).astype(np.int32)
        batch = Batch(header["tag"], keys, rounds, arms, probabilities, reveals, offsets)
        moment = Moment._make(arrays["drawn.moment"][k].tolist())
        live.keep(DrawnBatch(numbers, batch, rows, graph, moment))
    return live
