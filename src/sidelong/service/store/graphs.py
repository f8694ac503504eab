"""The graphs that the service keeps: an id for each, and the shelf they stand on."""

from __future__ import annotations

import hashlib
import json
import threading
from collections import OrderedDict
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from sidelong.agent import state_file
from sidelong.errors import ServiceError, StateFileError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from sidelong.graphs import FeedbackGraph
    from sidelong.service.store.database import Reading, Writing


class KnownGraph(NamedTuple):
    """A graph and its id."""

    id: str
    graph: FeedbackGraph


def identify(graph: FeedbackGraph) -> KnownGraph:
    """Return a graph with its id, and without a name. Labels go along: a graph of other labels has another id."""
    # By representation too: arcs and intervals of one graph may differ in the last bit of a probability.
    content = f"{graph.content_hash} {graph.representation}"
    content += "" if graph.labels is None else f" {json.dumps(graph.labels)}"
    return KnownGraph(hashlib.sha256(content.encode()).hexdigest()[:32], graph.named(None))


def size(graph: FeedbackGraph) -> int:
    """Return how many bytes a graph takes in memory."""
    return sum(array.nbytes for array in graph.arrays if isinstance(array, np.ndarray))


def stored_size(graph: FeedbackGraph) -> int:
    """Return how many bytes a graph takes in the database, but for some hundred."""
    return sum(array.nbytes for array in state_file.graph_to_arrays(graph).values())


class Shelf:
    """The graphs of the database, the last used in memory."""

    _KEPT = 64
    _BYTES = 2**26

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._recent: OrderedDict[str, FeedbackGraph] = OrderedDict()

    def put(self, writing: Writing, known: KnownGraph, now: int) -> bool:
        """Keep a graph; tell whether it was not kept before."""
        if self._recall(known.id) is not None and writing.hold_graph(known.id):
            return False
        arrays = {f"graph.0.{name}": array for name, array in state_file.graph_to_arrays(known.graph).items()}
        labels = {} if known.graph.labels is None else {"labels": known.graph.labels}
        new = writing.keep_graph(known.id, state_file.pack({"graphs": [None], **labels}, arrays), now)
        self._remember(known.id, known.graph)
        return new

    def hold(self, writing: Writing, id_: str) -> FeedbackGraph:
        """Return a graph that is about to be named: it was not forgotten, and is not before that is written."""
        if not writing.hold_graph(id_):
            self.forget([id_])
        return self.find(writing, id_)

    def has(self, reading: Reading, id_: str) -> bool:
        """Tell whether a graph is kept."""
        return self._recall(id_) is not None or reading.graph(id_) is not None

    def same(self, known: KnownGraph) -> KnownGraph:
        """Return a graph as it stands here, if it does: so that all who use it share one."""
        return known._replace(graph=self._recall(known.id) or known.graph)

    def find(self, reading: Reading, id_: str) -> FeedbackGraph:
        """Return a graph by its id."""
        found = self._recall(id_)
        if found is not None:
            return found
        data = reading.graph(id_)
        if data is None:
            raise ServiceError(
                f"There is no graph {id_!r}. Send the graph itself, or upload it first.",
                status=422,
                code="invalid",
                path="body.graph.id",
                value=id_,
            )
        place = f"graph {id_}"
        try:
            graph = state_file.read_graphs(place, *state_file.unpack(data, place))[0]
        except StateFileError as error:
            text = f"The database is damaged: {error} Restore it from a copy, and start the service again."
            raise ServiceError(text, status=503, code="refused") from error
        return self._remember(id_, graph)

    def forget(self, ids: Iterable[str] | None = None) -> None:
        """Forget these graphs, or all: some may not have come to the disk."""
        with self._lock:
            for id_ in list(self._recent if ids is None else ids):
                self._recent.pop(id_, None)

    def _recall(self, id_: str) -> FeedbackGraph | None:
        with self._lock:
            if id_ in self._recent:
                self._recent.move_to_end(id_)
            return self._recent.get(id_)

    def _remember(self, id_: str, graph: FeedbackGraph) -> FeedbackGraph:
        with self._lock:
            graph = self._recent.setdefault(id_, graph)
            self._recent.move_to_end(id_)
            while len(self._recent) > 1 and (len(self._recent) > self._KEPT or self._size() > self._BYTES):
                self._recent.popitem(last=False)
            return graph

    def _size(self) -> int:
        return sum(map(size, self._recent.values()))
