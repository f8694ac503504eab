"""How a graph is named on the command line: a file, or a family with its arguments.

A family is written ``NAME:ARGUMENT,ARGUMENT,...`` with the names and arguments of `sidelong.graphs`: ``nested:24``,
``star:10,hub=3``, ``circulant:12,2``, ``erdos_renyi:50,0.1,seed=1,directed=true``, ``petersen``. A hyphen may stand for
each underscore. The sizes of cliques are listed, ``cliques:4,3,3``, and ``cliques:4x5`` is four of five. Anything with
the suffix of a graph file is a file.
"""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn

from sidelong.errors import GraphError

if TYPE_CHECKING:
    from sidelong.graphs import FeedbackGraph

HELP = "A graph file, or a family with its arguments, such as nested:24, star:10,hub=3, cliques:4x5, grid:3,4."
_SUFFIXES = (".txt", ".edges", ".tsv", ".csv", ".json", ".npz")
_LONG = 2**24  # bytes; fewer are read within a second


def read_graph(text: str, *, self_loops: bool = False) -> FeedbackGraph:
    """Return the graph that `text` names, with a self-loop for each arm if so wished."""
    graph = _load(Path(text)) if text.lower().endswith(_SUFFIXES) else _family(text)
    return graph.with_self_loops() if self_loops else graph


def _load(path: Path) -> FeedbackGraph:
    """Read a file, with a bar on the terminal if that takes long."""
    from sidelong.graphs import files  # noqa: PLC0415  # the compiler takes half a second to load

    size = path.stat().st_size if path.is_file() else 0
    console = Console(stderr=True)
    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal or size < _LONG) as bar:
        task = bar.add_task(f"reading {path.name}", total=size)

        def show(done: int) -> None:
            bar.update(task, completed=done, description="making the graph" if done >= size else None)

        return files.load(path, show)


def _family(text: str) -> FeedbackGraph:
    from sidelong.checks import nearest  # noqa: PLC0415
    from sidelong.graphs.makers import makers  # noqa: PLC0415

    families = makers(over_time=False)
    written, _, arguments = text.partition(":")
    name = written.strip().replace("-", "_")
    if name not in families:
        raise GraphError(
            f"{written!r} is neither a graph file ({', '.join(_SUFFIXES)}) nor a family.{nearest(name, families)} "
            f"The families are: {', '.join(families)}."
        )
    family = families[name]
    listed = [part.strip() for part in arguments.split(",") if part.strip()]
    positional = [part for part in listed if "=" not in part]
    named = dict(part.split("=", 1) for part in listed if "=" in part)
    try:
        takes_list = family.takes_list(next(iter(family.kinds), ""))
        values: list[Any] = [_sizes(positional)] if takes_list else [_value(part) for part in positional]
        bound = inspect.signature(family.make).bind(*values, **{key.strip(): _value(named[key]) for key in named})
    except (TypeError, ValueError) as error:
        usage = ",".join(f"{key}={family.defaults[key]}" if key in family.defaults else key for key in family.kinds)
        raise GraphError(f"{text!r} cannot be made: {error}. The arguments are {name}:{usage}.") from None
    return family.make(*bound.args, **bound.kwargs)  # type: ignore[no-any-return]


def _sizes(parts: list[str]) -> list[int]:
    sizes: list[int] = []
    for part in parts:
        count, times, size = part.partition("x")
        sizes += [int(size)] * int(count) if times else [int(part)]
    return sizes


def _value(text: str) -> Any:
    for read in (int, float):
        try:
            return read(text)
        except ValueError:
            continue
    return {"true": True, "false": False}.get(text.strip().lower(), text.strip())
