"""From the tables of a cell to what `simulate` takes.

There is no list of names here: a learner is found by `sidelong.learners`, and graphs and worlds are whatever
the functions of `sidelong.graphs` and `sidelong.losses` make of their own arguments.
"""

from __future__ import annotations

import inspect
import json
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

from sidelong import graphs, losses
from sidelong.checks import nearest
from sidelong.errors import GraphError, LearnerError
from sidelong.graphs.graph import FeedbackGraph
from sidelong.learners import catalogue
from sidelong.studies.cell import canonical, options_of
from sidelong.studies.lines import MisplacedError
from sidelong.studies.values import from_file, import_file, means_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path
    from types import ModuleType

    from sidelong.graphs.sequences import GraphSequence
    from sidelong.losses.world import World

    Locate = Callable[[Mapping[str, str]], Path]  #: from the name and the hash of a file to where it lies

__all__ = ["Game", "build", "build_graph", "build_learner", "build_world", "takes_list"]

Table = dict[str, Any]


class Game(NamedTuple):
    """What a cell plays."""

    learner: str | ModuleType
    options: dict[str, Any]
    graph: FeedbackGraph | GraphSequence
    world: World


def build(spec: Table, locate: Locate) -> Game:
    """Make the learner, the graph and the world of a cell."""
    graph = _graph(canonical(spec["graph"]), locate)
    learner = build_learner(spec["learner"], locate)
    return Game(learner, options_of(spec["learner"]), graph, build_world(spec["world"], graph, spec["rounds"], locate))


@lru_cache(maxsize=4)
def _graph(table: str, locate: Locate) -> FeedbackGraph | GraphSequence:
    return build_graph(json.loads(table), locate)


def build_learner(table: Table, locate: Locate) -> str | ModuleType:
    """Return the name of a learner, or the module that is one."""
    if "file" in table:
        module = import_file(locate(table["file"]))
        catalogue.find(module)
        return module
    name = table.get("name")
    if not isinstance(name, str):
        raise MisplacedError(f"A learner has a name or a file; name is {name!r}.", "name")
    try:
        catalogue.find(name)
    except LearnerError as error:
        raise MisplacedError(str(error), "name") from error
    return name


def build_graph(table: Table, locate: Locate) -> FeedbackGraph | GraphSequence:
    """Make a graph, or a sequence of graphs."""
    if "file" in table:
        if table.keys() - {"file"}:
            raise MisplacedError("A graph from a file has no other keys.", *sorted(table.keys() - {"file"})[:1])
        return _load_graph(locate(table["file"]))
    maker = _maker(graphs, "graph", table)
    given = {key: _graphs(value, locate) for key, value in options_of(table).items()}
    _check_arguments(maker, given, {})
    return maker(**given)  # type: ignore[no-any-return]


def _load_graph(path: Path) -> FeedbackGraph:
    """Read a graph; a message has the name of the file, not where its copy lies."""
    try:
        return FeedbackGraph.load(path).named(path.name)
    except GraphError as error:
        raise MisplacedError(str(error).replace(f"{path.parent}/", ""), "file") from error


def build_world(table: Table, graph: FeedbackGraph | GraphSequence, rounds: int, locate: Locate) -> World:
    """Make a world for a graph; `graph`, `n_arms` and `rounds` are filled in where a world takes them."""
    maker = _maker(losses, "world", table)
    given = {key: _argument(key, value, graph.n_arms, locate) for key, value in options_of(table).items()}
    filled = {"graph": graph, "n_arms": graph.n_arms, "rounds": rounds}
    _check_arguments(maker, given, filled)
    taken = {key: value for key, value in filled.items() if key in _parameters(maker)}
    if isinstance(given.get("gaps", given.get("means")), list):
        taken.pop("n_arms", None)  # the list tells
    return maker(**{**taken, **given})  # type: ignore[no-any-return]


def takes_list(table: Table, key: str) -> bool:
    """Tell whether an argument takes a list as one value, such as `means`."""
    name = str(table.get("name", ""))
    for room in (graphs, losses):
        parameter = _parameters(_makers(room).get(name, _nothing)).get(key)
        if parameter is not None:
            return any(word in str(parameter.annotation) for word in ("ArrayLike", "Sequence", "Iterable"))
    return False


@cache
def _makers(room: ModuleType) -> dict[str, Callable[..., Any]]:
    """Return the functions of a room that make its things."""
    named = {name: getattr(room, name) for name in room.__all__}
    made = {"FeedbackGraph", "GraphSequence", "World"}
    return {
        name: each
        for name, each in named.items()
        if inspect.isfunction(each) and inspect.signature(each).return_annotation in made
    }


def _nothing() -> None:
    """Stand for what a name that nobody knows makes."""


def _maker(room: ModuleType, kind: str, table: Table) -> Callable[..., Any]:
    makers, name = _makers(room), table.get("name")
    if name is None:
        raise MisplacedError(f"A {kind} needs a name{' or a file' if kind == 'graph' else ''}.")
    if not isinstance(name, str):
        raise MisplacedError(f"A {kind} is named by text, not {name!r}.", "name")
    if name not in makers:
        raise MisplacedError(
            f"There is no {kind} named {name!r}.{nearest(str(name).lower(), makers)} "
            f"The names are: {', '.join(sorted(makers))}.",
            "name",
        )
    return makers[name]


@cache
def _parameters(maker: Callable[..., Any]) -> Mapping[str, inspect.Parameter]:
    return inspect.signature(maker).parameters


def _check_arguments(maker: Callable[..., Any], given: Table, filled: Table) -> None:
    parameters = _parameters(maker)
    for key in given:
        if key not in parameters:
            raise MisplacedError(
                f"{maker.__name__} takes no {key!r}.{nearest(key, parameters)} It takes: {', '.join(parameters)}.", key
            )
    for key, parameter in parameters.items():
        if parameter.default is parameter.empty and key not in given and key not in filled:
            raise MisplacedError(f"{maker.__name__} needs {key}. It takes: {', '.join(parameters)}.")


def _graphs(value: Any, locate: Locate) -> Any:
    """Return an argument of a graph, with the graphs in it made."""
    if isinstance(value, list):
        return [_graphs(each, locate) for each in value]
    return build_graph(value, locate) if isinstance(value, dict) else value


def _argument(key: str, value: Any, n_arms: int, locate: Locate) -> Any:
    """Return an argument of a world: itself, or what a table in braces says."""
    if not isinstance(value, dict):
        return value
    if key == "graph":
        return build_graph(value, locate)
    if "file" in value:
        return from_file(key, value, locate(value["file"]))
    unknown = sorted(value.keys() - {"gap", "best", "center"})
    if key != "means" or unknown or "gap" not in value:
        raise MisplacedError(
            f"{key} is a value or {{ file = ... }}, and means also {{ gap = ..., best = 0, center = 0.5 }}; "
            f"not {value!r}.",
            key,
            *unknown[:1],
        )
    return means_of(value, n_arms)
