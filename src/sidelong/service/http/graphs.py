"""Graphs that come over HTTP from anyone: limits before anything is built."""

from __future__ import annotations

import inspect
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from sidelong.errors import GraphError, ServiceError, SidelongError
from sidelong.graphs import FeedbackGraph, families
from sidelong.graphs import files as graph_files
from sidelong.learners.options import nearest
from sidelong.service.http.messages import EdgesGraph, IntervalsGraph, NamedGraph
from sidelong.service.http.problems import for_temporary_files

if TYPE_CHECKING:
    from collections.abc import Callable

    from sidelong.service.settings import Settings

__all__ = ["build", "read_upload"]

#: At most how many edges a family lists; those that are not here list a few for each arm, or none.
_LISTED: dict[str, Callable[..., int]] = {
    "circulant": lambda n, k: n * (2 * k + 1),
    "cocktail_party": lambda n: n * n,
    "complete_bipartite": lambda a, b: (a + b) ** 2,
    "cliques": lambda sizes: sum(sizes),  # noqa: PLW0108  # called by name
    "directed_circulant": lambda n, k: n * (k + 1),
    "erdos_renyi": lambda n, r, seed, directed=False: n * n,  # noqa: ARG005
    "grid": lambda rows, columns: 5 * rows * columns,
    "hypercube": lambda d: (d + 1) * 2 ** min(d, 64),
    "rotational_tournament": lambda n: n * n,
}


def build(message: Any, settings: Settings) -> FeedbackGraph:
    """Make the graph that a request describes."""
    try:
        if isinstance(message, NamedGraph):
            graph = _family(message, settings)
        elif isinstance(message, EdgesGraph):
            graph = _edges(message, settings)
        elif isinstance(message, IntervalsGraph):
            _limit(len(message.low), settings.max_arms, "arms")
            graph = FeedbackGraph.from_intervals(message.low, message.high)
        else:
            raise TypeError(message)
    except GraphError as error:
        raise ServiceError(str(error), status=422, code="invalid", path="body.graph") from error
    _limit(graph.n_arms, settings.max_arms, "arms")
    return graph


def read_upload(data: bytes, suffix: str, settings: Settings) -> FeedbackGraph:
    """Read a graph file."""
    with for_temporary_files(), tempfile.TemporaryDirectory(prefix="sidelong-") as folder:
        path = Path(folder) / f"graph{suffix}"
        path.write_bytes(data)
        try:
            graph = graph_files.load(path, max_arms=settings.max_arms, max_edges=settings.max_edges)
        except SidelongError as error:
            reason = str(error).replace(str(path), "the file")
            raise ServiceError(reason, status=422, code="invalid", path="body") from error
    return graph.named(None)


def _family(message: NamedGraph, settings: Settings) -> FeedbackGraph:
    name, arguments = message.name.replace("-", "_"), message.model_extra or {}
    if name not in families.__all__:
        raise GraphError(
            f"There is no graph named {message.name!r}.{nearest(name, families.__all__)} "
            f"The names are: {', '.join(families.__all__)}."
        )
    make = getattr(families, name)
    for key, value in arguments.items():
        if not _is_plain(key, value):
            raise GraphError(f"The arguments of {name} are {_usage(make)}; {key} cannot be {value!r}.")
    sizes = [value for key, value in arguments.items() if key != "seed" and type(value) is int]
    _limit(max(sizes, default=0), settings.max_arms, "arms")
    try:
        bound = inspect.signature(make).bind(**arguments)
        if name in _LISTED:
            _limit(_LISTED[name](**arguments), settings.max_edges, "edges")
        return make(*bound.args, **bound.kwargs)  # type: ignore[no-any-return]
    except (TypeError, ValueError, OverflowError) as error:
        if isinstance(error, GraphError):
            raise
        raise GraphError(f"{name} cannot be made: {error}. Its arguments are {_usage(make)}.") from None


def _is_plain(key: str, value: object) -> bool:
    if key == "sizes":
        return isinstance(value, list) and all(type(each) is int for each in value)
    return type(value) is bool if key == "directed" else type(value) in {int, float, str}


def _usage(make: Any) -> str:
    return ", ".join(inspect.signature(make).parameters) or "none"


def _edges(message: EdgesGraph, settings: Settings) -> FeedbackGraph:
    _limit(message.n_arms, settings.max_arms, "arms")
    _limit(len(message.edges), settings.max_edges, "edges")
    edges = np.array(message.edges, np.int64).reshape(-1, 2)
    unique, first = np.unique(edges, axis=0, return_index=True)
    if len(unique) < len(edges):
        again = int(np.setdiff1d(np.arange(len(edges)), first)[0])
        raise GraphError(f"Each edge stands once; edge number {again} is {edges[again].tolist()} again.")
    return FeedbackGraph.from_edges(edges, message.n_arms, undirected=message.undirected, self_loops=message.self_loops)


def _limit(number: float, most: int, what: str) -> None:
    if number > most:
        raise ServiceError(
            f"A graph has at most {most:,} {what} here, and this one {number:,}.",
            status=413,
            code="too_large",
            path="body.graph",
            value=number,
        )
