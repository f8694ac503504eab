"""Graphs in requests and replies. They come from anyone: there are limits before anything is built."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import numpy as np
from pydantic import BaseModel, ConfigDict, Discriminator, Field, StringConstraints, Tag

from sidelong.checks import nearest
from sidelong.errors import GraphError, ServiceError, SidelongError
from sidelong.graphs import FeedbackGraph
from sidelong.graphs import files as graph_files
from sidelong.graphs.makers import makers
from sidelong.service.http.messages import Body
from sidelong.service.http.problems import for_temporary_files, invalid
from sidelong.service.store.spec import LONGEST_LABEL, MOST_LABELS, Whole

if TYPE_CHECKING:
    from sidelong.service.http.endpoints import Call
    from sidelong.service.server import Server
    from sidelong.service.settings import Settings
    from sidelong.service.store.graphs import KnownGraph


class NamedGraph(BaseModel):
    """A family of `sidelong.graphs`, with its arguments beside its name."""

    model_config = ConfigDict(extra="allow", json_schema_extra={"examples": [{"name": "nested", "n": 24}]})

    name: str = Field(max_length=64)  #: as in `sidelong.graphs`; `GET /v1/catalogue` lists all


class EdgesGraph(Body):
    """A graph by its edges: playing i reveals j."""

    n_arms: Annotated[int, Field(ge=1, le=2**24, strict=True)]  #: how many arms there are
    edges: list[tuple[Whole, Whole]]  #: [i, j]: playing i reveals j
    undirected: Annotated[bool, Field(strict=True)] = False  #: whether j then reveals i too
    self_loops: Annotated[bool, Field(strict=True)] = False  #: whether every arm reveals itself too


class IntervalsGraph(Body):
    """A graph in which playing i reveals low[i] to high[i] - 1."""

    low: list[Whole]  #: by arm, the first that it reveals
    high: list[Whole]  #: by arm, the one behind the last that it reveals


class GraphById(Body):
    """A graph that was sent before, by the id that the service gave it."""

    id: Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{32}$")]  #: of the graph, as `POST /v1/graphs` returned it


def _kind(value: Any) -> str:
    keys = value if isinstance(value, dict) else vars(value) if isinstance(value, BaseModel) else {}
    return next((f"[{kind}]" for kind in ("edges", "low", "id") if kind in keys), "[name]")


# The tags stand in the paths of pydantic's errors; the brackets tell them from what was sent.
GraphMessage = Annotated[
    Annotated[NamedGraph, Tag("[name]")]
    | Annotated[EdgesGraph, Tag("[edges]")]
    | Annotated[IntervalsGraph, Tag("[low]")]
    | Annotated[GraphById, Tag("[id]")],
    Discriminator(_kind),
]


class UploadQuery(BaseModel):
    """What kind of file is uploaded."""

    format: Literal["json", "edges", "npz"] = "json"  #: what kind of file it is


class GraphSummary(BaseModel):
    """A graph without its edges."""

    id: str  #: by which requests name it
    name: str | None  #: of its family, with the arguments; null if it has none
    n_arms: int  #: how many arms it has
    n_edges: int  #: how many edges, with those from an arm to itself
    representation: Literal["arcs", "intervals"]  #: how it is kept in memory
    undirected: bool  #: whether every edge goes both ways


class GraphDrawing(BaseModel):
    """The graph for drawing: the arms that are played most, and the edges between them."""

    total_arms: int  #: how many arms there are
    total_edges: int  #: how many edges there are
    truncated: bool  #: whether some arms or edges are left out
    arms: list[int]  #: the numbers of the arms that are drawn
    edges: list[list[int]]  #: [i, j]: playing i reveals j
    labels: list[str] | None  #: what these arms are called; null if arms have no labels


async def graph_of(message: Any, call: Call) -> FeedbackGraph | str:
    """Return the graph of a request, or the id of one that is known."""
    await _check_own(message, call)
    server = call.server
    return message.id if isinstance(message, GraphById) else await server.builds.run(build, message, server.settings)


async def graph_of_round(message: Any, call: Call, of: str) -> FeedbackGraph | KnownGraph | str:
    """Return the graph of a round of an experiment; a large one is ready for its turn then."""
    await _check_own(message, call)
    server = call.server
    if isinstance(message, GraphById) and server.store.graphs.recall(message.id) is not None:
        return message.id
    return await server.builds.run(_made_ready, message, server, of)


async def _check_own(message: Any, call: Call) -> None:
    """Refuse a graph of others, as if it were not known, to a token for one experiment."""
    only = None if call.access is None else call.access.experiment
    if only is not None and isinstance(message, GraphById):
        await call.server.look(call.server.store.check_own_graph, only, message.id)


def _made_ready(message: Any, server: Server, of: str) -> FeedbackGraph | KnownGraph | str:
    given = message.id if isinstance(message, GraphById) else build(message, server.settings)
    return server.store.made_ready(of, given)


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
        raise invalid(str(error), "body.graph") from error
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
            raise invalid(reason, "body") from error
    if graph.labels is not None and (graph.n_arms > MOST_LABELS or max(map(len, graph.labels)) > LONGEST_LABEL):
        most = f"At most {MOST_LABELS:,} arms can have labels here, of at most {LONGEST_LABEL} characters each."
        raise invalid(most, "body")
    return graph.named(None)


def _family(message: NamedGraph, settings: Settings) -> FeedbackGraph:
    name, arguments = message.name.replace("-", "_"), message.model_extra or {}
    families = makers(over_time=False)
    if name not in families:
        raise GraphError(
            f"There is no graph named {message.name!r}.{nearest(name, families)} The names are: {', '.join(families)}."
        )
    family = families[name]
    usage = f"The arguments of {name} are {', '.join(family.kinds) or 'none'}"
    for key, value in arguments.items():
        if key not in family.kinds or not family.fits(key, value):
            raise GraphError(f"{usage}; {key} cannot be {value!r}.")
    lacking = family.kinds.keys() - family.defaults.keys() - arguments.keys()
    if lacking:
        raise GraphError(f"{usage}; {', '.join(sorted(lacking))} must be given.")
    size = family.size(**arguments)
    _limit(size.arms, settings.max_arms, "arms")
    _limit(size.edges, settings.max_edges, "edges")
    return family.make(**arguments)  # type: ignore[no-any-return]


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
        text = f"A graph has at most {most:,} {what} here, and this one {number:,}."
        raise ServiceError(text, status=413, code="too_large", path="body.graph", value=number)
