"""From the tables of a cell to a game that can be played.

There is no list of names here: a learner is found by `sidelong.learners`, and graphs and worlds are made by the
functions that register themselves in `sidelong.graphs.makers` and `sidelong.losses.world_makers`.
"""

from __future__ import annotations

import json
import sys
import threading
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from sidelong.checks import is_whole, nearest, plain
from sidelong.errors import CodeError, GraphError, LearnerError, SidelongError, WorldError
from sidelong.graphs.graph import FeedbackGraph
from sidelong.graphs.makers import makers as graph_makers
from sidelong.graphs.sequences import GraphSequence
from sidelong.learners import catalogue
from sidelong.losses.csv_file import read_csv
from sidelong.losses.world_makers import makers as world_makers
from sidelong.simulation.game import prepare
from sidelong.studies.cell import canonical, options_of
from sidelong.studies.source import MisplacedError
from sidelong.user_code import failing_line, import_file

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path
    from types import ModuleType

    from sidelong.graphs.makers import Maker
    from sidelong.learners.interface import Learner
    from sidelong.losses.world import World
    from sidelong.simulation.game import Game

    Locate = Callable[[Mapping[str, str]], Path]  #: from the name and the hash of a file to where it lies

Table = dict[str, Any]
_FUNCTION = "function"  # the name of a graph, as of a world, that a function of a user makes


def build(spec: Table, locate: Locate) -> Game:
    """Make the game of a cell."""
    return prepare(
        build_learner(spec["learner"], locate),
        build_graph(spec["graph"], locate),
        build_world(spec["world"], spec["graph"], spec["rounds"], locate),
        spec["rounds"],
        spec["delay"],
        options_of(spec["learner"]),
    )


def build_learner(table: Table, locate: Locate) -> str | ModuleType | Learner:
    """Return the name of a learner, or the module that is one."""
    if "file" in table:
        module = _import_file(locate(table["file"]))
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
    """Make a graph, or a sequence of graphs. The last ones are kept: most cells share theirs with others."""
    return _graph(canonical(table), locate)


@lru_cache(maxsize=4)
def _graph(text: str, locate: Locate) -> FeedbackGraph | GraphSequence:
    table = json.loads(text)
    if is_own_graph(table):
        return _own_graph(table, locate)
    if "file" not in table:
        return _make(graph_makers(), "graph", table, locate, {})  # type: ignore[no-any-return]
    if options_of(table):
        raise MisplacedError("A graph from a file has no other keys than a name.", *sorted(options_of(table))[:1])
    path = locate(table["file"])
    try:
        return FeedbackGraph.load(path).named(path.name)
    except GraphError as error:  # the message has the name of the file, not where its copy lies
        raise MisplacedError(str(error).replace(f"{path.parent}/", ""), "file") from error


def is_own_graph(table: Table) -> bool:
    """Tell whether a function of a user makes a graph: then nothing is known of it without running code."""
    return table.get("name") == _FUNCTION


def _own_graph(table: Table, locate: Locate) -> FeedbackGraph | GraphSequence:
    """Call a function of a user that makes graphs with all other keys of its table."""
    source = table.get("f")
    if not (isinstance(source, dict) and source.keys() == {"file", "function"}):
        raise MisplacedError('A graph of your own has f = { file = "graphs.py", function = "NAME" }.', "f")
    make = _from_file("f", source, locate(source["file"]))
    options = {key: value for key, value in options_of(table).items() if key != "f"}
    try:
        made = make(**options)
    except SidelongError:
        raise
    except Exception as error:
        place = failing_line(error)
        said = f"{type(error).__name__}: {error}{f', at {place}' * bool(place)}"
        raise MisplacedError(f"{source['function']} made no graph: {said}", "f") from error
    if not isinstance(made, FeedbackGraph | GraphSequence):
        raise MisplacedError(
            f"{source['function']} must return a sidelong.FeedbackGraph or a sequence of them, not {made!r}.", "f"
        )
    return made


def build_world(table: Table, graph: Table, rounds: int, locate: Locate) -> World:
    """Make the world of a cell, with what it takes from the cell. The last one is kept; it may be large."""
    return _world(canonical(table), canonical(graph), rounds, locate)


@lru_cache(maxsize=1)
def _world(text: str, graph_text: str, rounds: int, locate: Locate) -> World:
    graph = _graph(graph_text, locate)
    cell = {"graph": graph, "n_arms": graph.n_arms, "rounds": rounds}
    return _make(world_makers(), "world", json.loads(text), locate, cell)  # type: ignore[no-any-return]


def takes_list(table: Table, key: str) -> bool:
    """Tell whether an argument takes a list as one value, such as `means`."""
    maker = {**graph_makers(), **world_makers()}.get(str(table.get("name")))
    return maker is not None and maker.takes_list(key)


def _make(makers: Mapping[str, Maker], what: str, table: Table, locate: Locate, cell: Table) -> Any:
    """Call the maker that a table names with the arguments that it gives, and with what the cell fills in."""
    maker = _find(makers, what, table)
    kinds, listed = maker.kinds, ", ".join(maker.kinds)
    given = {}
    for key, value in options_of(table).items():
        if key not in kinds:
            raise MisplacedError(f"{maker.name} takes no {key!r}.{nearest(key, kinds)} It takes: {listed}.", key)
        given[key] = _argument(key, kinds[key], value, cell.get("n_arms", 0), locate)
    if any(isinstance(value, list) for value in given.values()):
        cell = {**cell, "n_arms": None}  # the list tells
    filled = {key: cell[kind] for key, kind in kinds.items() if cell.get(kind) is not None}
    for key in kinds:
        if not (key in given or key in filled or key in maker.defaults):
            raise MisplacedError(f"{maker.name} needs {key}. It takes: {listed}.")
    return maker.make(**{**filled, **given})


def _find(makers: Mapping[str, Maker], what: str, table: Table) -> Maker:
    name = table.get("name")
    if name is None:
        raise MisplacedError(f"A {what} needs a name{' or a file' if what == 'graph' else ''}.")
    if not isinstance(name, str):
        raise MisplacedError(f"A {what} is named by text, not {name!r}.", "name")
    if name not in makers:
        raise MisplacedError(
            f"There is no {what} named {name!r}.{nearest(name.lower(), makers)} The names are: {', '.join(makers)}"
            f"{', and function for one of your own' * (what == 'graph')}.",
            "name",
        )
    return makers[name]


def _argument(key: str, kind: str, value: Any, n_arms: int, locate: Locate) -> Any:
    """Return an argument: itself, or what a table in braces says."""
    if kind == "graphs" and isinstance(value, list):
        return [_argument(key, "graph", each, n_arms, locate) for each in value]
    if not isinstance(value, dict):
        return value
    if kind == "graph":
        return build_graph(value, locate)
    if "file" in value:
        return _from_file(key, value, locate(value["file"]))
    unknown = sorted(value.keys() - {"gap", "best", "center"})
    if kind != "means" or unknown or "gap" not in value:
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
    if not np.isfinite([plain(gap), plain(center)]).all():
        raise MisplacedError(f"gap and center are numbers, not {gap!r} and {center!r}.", "means")
    if not is_whole(best) or not 0 <= best < n_arms:
        raise MisplacedError(f"best is one of the arms 0 to {n_arms - 1}, not {best!r}.", "means", "best")
    return [center - gap / 2 if arm == best else center + gap / 2 for arm in range(n_arms)]


def _from_file(key: str, value: Table, path: Path) -> Any:
    """Return what an argument takes from a file: a table of numbers, or a function."""
    if "function" in value:
        function = getattr(_import_file(path), str(value["function"]), None)
        if not callable(function):
            raise MisplacedError(f"{path.name} has no function {value['function']!r}.", key, "function")
        return function
    try:
        if path.suffix == ".npy":
            return np.load(path, mmap_mode="r", allow_pickle=False)
        if path.suffix == ".csv" and key == "array":
            return read_csv(path)
        if path.suffix in {".csv", ".txt"}:
            return np.loadtxt(path, delimiter="," if path.suffix == ".csv" else None)
    except WorldError as error:  # the message has the name of the file, not where its copy lies
        raise MisplacedError(str(error).replace(f"{path.parent}/", ""), key, "file") from error
    except (ValueError, OSError) as error:
        raise MisplacedError(f"{path.name} is not a table of numbers: {error}.", key, "file") from error
    raise MisplacedError(
        f"{key} is read from a file .npy, .csv or .txt, or is a function of a file .py, with function = ...; "
        f"not {path.name!r}.",
        key,
        "file",
    )


def _import_file(path: Path) -> ModuleType:
    """Import a file of a user. Its name comes from its folder too, which is named by its content."""
    name = f"{path.stem}_{path.parent.name[:12]}"
    try:
        with _importing:
            return sys.modules.get(name) or import_file(path, name)
    except CodeError as error:
        raise MisplacedError(str(error), "file") from error


_importing = threading.Lock()  # a worker of a cluster has several threads
