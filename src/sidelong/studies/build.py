"""From the tables of a cell to what `simulate` takes.

There is no list of names here: a learner is found by `sidelong.learners`, and graphs and worlds are whatever
the functions of `sidelong.graphs` and `sidelong.losses` make of their own arguments.
"""

from __future__ import annotations

import importlib.util
import inspect
import sys
import threading
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from sidelong import graphs, losses
from sidelong.errors import LearnerError
from sidelong.graphs.graph import FeedbackGraph
from sidelong.learners import catalogue
from sidelong.learners.options import nearest
from sidelong.studies.cell import options_of
from sidelong.studies.lines import MisplacedError

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
    graph = build_graph(spec["graph"], locate)
    learner = build_learner(spec["learner"], locate)
    return Game(learner, options_of(spec["learner"]), graph, build_world(spec["world"], graph, spec["rounds"], locate))


def build_learner(table: Table, locate: Locate) -> str | ModuleType:
    """Return the name of a learner, or the module that is one."""
    if "file" in table:
        module = _module(locate(table["file"]))
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
        return FeedbackGraph.load(locate(table["file"])).named(table["file"]["name"])
    maker = _maker(graphs, "graph", table)
    given = {key: _graphs(value, locate) for key, value in options_of(table).items()}
    _check_arguments(maker, given, {})
    return maker(**given)  # type: ignore[no-any-return]


def build_world(table: Table, graph: FeedbackGraph | GraphSequence, rounds: int, locate: Locate) -> World:
    """Make a world for a graph; `graph`, `n_arms` and `rounds` are filled in where a world takes them."""
    maker = _maker(losses, "world", table)
    given = {key: _argument(key, value, graph.n_arms, locate) for key, value in options_of(table).items()}
    filled = {"graph": graph, "n_arms": graph.n_arms, "rounds": rounds}
    _check_arguments(maker, given, filled)
    taken = {key: value for key, value in filled.items() if key in inspect.signature(maker).parameters}
    if isinstance(given.get("gaps", given.get("means")), list):
        taken.pop("n_arms", None)  # the list tells
    return maker(**{**taken, **given})  # type: ignore[no-any-return]


def takes_list(table: Table, key: str) -> bool:
    """Tell whether an argument takes a list as one value, such as `means`."""
    for room in (graphs, losses):
        parameter = inspect.signature(_makers(room).get(table.get("name", ""), lambda: 0)).parameters.get(key)
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


def _maker(room: ModuleType, kind: str, table: Table) -> Callable[..., Any]:
    makers, name = _makers(room), table.get("name")
    if name is None:
        raise MisplacedError(f"A {kind} needs a name{' or a file' if kind == 'graph' else ''}.")
    if name not in makers:
        raise MisplacedError(
            f"There is no {kind} named {name!r}.{nearest(str(name).lower(), makers)} "
            f"The names are: {', '.join(sorted(makers))}.",
            "name",
        )
    return makers[name]


def _check_arguments(maker: Callable[..., Any], given: Table, filled: Table) -> None:
    parameters = inspect.signature(maker).parameters
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
        return _from_file(key, value, locate)
    unknown = sorted(value.keys() - {"gap", "best", "center"})
    if key != "means" or unknown or "gap" not in value:
        raise MisplacedError(
            f"{key} is a value or {{ file = ... }}, and means also {{ gap = ..., best = 0, center = 0.5 }}; "
            f"not {value!r}.",
            key,
            *unknown[:1],
        )
    return _means(value, n_arms)


def _means(value: Table, n_arms: int) -> list[float]:
    """Return the means of one arm that is better than all others by a gap."""
    gap, best, center = value["gap"], value.get("best", 0), value.get("center", 0.5)
    if not all(isinstance(number, int | float) and not isinstance(number, bool) for number in (gap, center)):
        raise MisplacedError(f"gap and center are numbers, not {gap!r} and {center!r}.", "means")
    if not isinstance(best, int) or isinstance(best, bool) or not 0 <= best < n_arms:
        raise MisplacedError(f"best is one of the arms 0 to {n_arms - 1}, not {best!r}.", "means", "best")
    return [center - gap / 2 if arm == best else center + gap / 2 for arm in range(n_arms)]


def _from_file(key: str, value: Table, locate: Locate) -> Any:
    path = locate(value["file"])
    if "function" in value:
        function = getattr(_module(path), str(value["function"]), None)
        if not callable(function):
            raise MisplacedError(f"{path.name} has no function {value['function']!r}.", key, "function")
        return function
    try:
        if path.suffix == ".npy":
            return np.load(path, mmap_mode="r", allow_pickle=False)
        if path.suffix in {".csv", ".txt"}:
            return np.loadtxt(path, delimiter="," if path.suffix == ".csv" else None)
    except (ValueError, OSError) as error:
        raise MisplacedError(f"{path.name} is not a table of numbers: {error}.", key, "file") from error
    raise MisplacedError(
        f"{key} is read from a file .npy, .csv or .txt, or is a function of a file .py, with function = ...; "
        f"not {path.name!r}.",
        key,
        "file",
    )


def _module(path: Path) -> ModuleType:
    """Import a file of a user. Its name comes from its folder too, which is named by its content."""
    name = f"{path.stem}_{path.parent.name[:12]}"
    with _importing:
        return sys.modules.get(name) or _import(name, path)


_importing = threading.Lock()  # a worker of a cluster has several threads


def _import(name: str, path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, path)
    if path.suffix != ".py" or spec is None or spec.loader is None:
        raise MisplacedError(f"Code is in a file .py, not {path.name!r}.", "file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except BaseException as error:
        del sys.modules[name]
        if isinstance(error, KeyboardInterrupt):
            raise
        raise MisplacedError(f"{path.name} cannot be imported: {type(error).__name__}: {error}", "file") from error
    return module
