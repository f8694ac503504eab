"""The graphs that the service keeps: an id for each, and a cache of the last used."""

from __future__ import annotations

import hashlib
import json
import threading
from collections import OrderedDict
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from sidelong.agent import state_file
from sidelong.errors import ServiceError, StateFileError
from sidelong.service.store.database import BlobKind, BlobName, TakenError, keep_blob, keep_chunks

if TYPE_CHECKING:
    from collections.abc import Iterable

    from sidelong.graphs import FeedbackGraph
    from sidelong.service.store.database import Database, Reading, Writing


class KnownGraph(NamedTuple):
    """A graph and its id."""

    id: str
    graph: FeedbackGraph
    new: bool = False  #: whether it was kept for the request at hand, so that its experiment pays for it


def identify(graph: FeedbackGraph) -> KnownGraph:
    """Return a graph with its id, and without a name. Labels go along: a graph of other labels has another id."""
    graph = graph.named(None)  # which keeps its hash for whoever asks next
    content = content_of(graph)
    content += "" if graph.labels is None else f" {json.dumps(graph.labels)}"
    return KnownGraph(hashlib.sha256(content.encode()).hexdigest()[:32], graph)


def blob_of(id_: str) -> BlobName:
    """Return what a graph is found by."""
    return BlobName(BlobKind.GRAPH, id_)


def content_of(graph: FeedbackGraph) -> str:
    """Return what two graphs have in common that are the same but for names and labels."""
    # By representation too: arcs and intervals of one graph may differ in the last bit of a probability.
    return f"{graph.content_hash} {graph.representation}"


def size(graph: FeedbackGraph) -> int:
    """Return how many bytes a graph takes in memory."""
    return sum(array.nbytes for array in graph.arrays if isinstance(array, np.ndarray))


def stored_size(graph: FeedbackGraph) -> int:
    """Return how many bytes a graph takes in the database, but for some hundred."""
    return sum(array.nbytes for array in state_file.graph_to_arrays(graph).values())


def unknown_graph(id_: str) -> ServiceError:
    """Return the error for a graph that is not kept."""
    text = f"There is no graph {id_!r}. Send the graph itself, or upload it first."
    return ServiceError(text, status=422, code="invalid", path="body.graph.id", value=id_)


class GraphCache:
    """The graphs of the database, the last used in memory."""

    _KEPT = 64
    _BYTES = 2**26

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._recent: OrderedDict[str, FeedbackGraph] = OrderedDict()

    def put(self, writing: Writing, known: KnownGraph, now: int) -> bool:
        """Keep a graph in a transaction; tell whether it was not kept before."""
        new = not writing.hold(blob_of(known.id))
        if new:
            keep_chunks(writing, blob_of(known.id), _packed(known.graph), now)
        self._remember(known.id, known.graph)
        return new

    def keep(self, database: Database, known: KnownGraph, now: int) -> bool:
        """Keep a graph aside of all commands; tell whether it was not kept before. One that was is as if kept now."""
        with database.writing(aside=True) as writing:
            new = not writing.hold(blob_of(known.id), now)
            writing.commit()
        try:
            if new:
                keep_blob(database, blob_of(known.id), _packed(known.graph), now)
        except TakenError:  # whoever kept it as well was refused, and took it away in between
            return self.keep(database, known, now)
        self._remember(known.id, known.graph)
        return new

    def same(self, known: KnownGraph) -> KnownGraph:
        """Return a graph as it stands here, if it does: so that all who use it share one."""
        return known._replace(graph=self.recall(known.id) or known.graph)

    def find(self, reading: Reading, id_: str) -> FeedbackGraph:
        """Return a graph by its id."""
        found = self.recall(id_)
        if found is not None:
            return found
        kept = reading.blob(blob_of(id_))
        if kept is None:
            raise unknown_graph(id_)
        place = f"graph {id_}"
        try:
            graph = state_file.read_graphs(place, *state_file.unpack(kept.data, place))[0]
        except StateFileError as error:
            text = f"The database is damaged: {error} Restore it from a copy, and start the service again."
            raise ServiceError(text, status=503, code="refused") from error
        return self._remember(id_, graph)

    def forget(self, ids: Iterable[str] | None = None) -> None:
        """Forget these graphs, or all: some may not have come to the disk."""
        with self._lock:
            for id_ in list(self._recent if ids is None else ids):
                self._recent.pop(id_, None)

    def recall(self, id_: str) -> FeedbackGraph | None:
        """Return a graph that is in memory."""
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


def _packed(graph: FeedbackGraph) -> bytes:
    arrays = {f"graph.0.{name}": array for name, array in state_file.graph_to_arrays(graph).items()}
    labels = {} if graph.labels is None else {"labels": graph.labels}
    return state_file.pack({"graphs": [None], **labels}, arrays)
