"""Graphs in requests and replies."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Discriminator, Field, StringConstraints, Tag

from sidelong.service.http.messages.values import Body
from sidelong.service.store.spec import Whole  # noqa: TC001  # pydantic reads the annotations


class NamedGraph(BaseModel):
    """A family of `sidelong.graphs`, with its arguments beside its name."""

    model_config = ConfigDict(extra="allow", json_schema_extra={"examples": [{"name": "nested", "n": 24}]})

    name: str = Field(max_length=64)


class EdgesGraph(Body):
    """A graph by its edges: playing i reveals j."""

    n_arms: Annotated[int, Field(ge=1, le=2**24, strict=True)]
    edges: list[tuple[Whole, Whole]]
    undirected: Annotated[bool, Field(strict=True)] = False
    self_loops: Annotated[bool, Field(strict=True)] = False


class IntervalsGraph(Body):
    """A graph in which playing i reveals low[i] to high[i] - 1."""

    low: list[Whole]
    high: list[Whole]


class GraphById(Body):
    """A graph that was sent before, by the id that the service gave it."""

    id: Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{32}$")]


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

    format: Literal["json", "edges", "npz"] = "json"


class GraphSummary(BaseModel):
    """A graph without its edges."""

    id: str
    name: str | None
    n_arms: int
    n_edges: int
    representation: Literal["arcs", "intervals"]
    undirected: bool


class GraphDrawing(BaseModel):
    """The graph for drawing: the arms that are played most, and the edges between them."""

    total_arms: int
    total_edges: int
    truncated: bool
    arms: list[int]
    edges: list[list[int]]
    labels: list[str] | None
