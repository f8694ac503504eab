"""Graphs in files. The suffix gives the format.

.txt, .edges, .tsv, .csv
    An edge list: a line "i j" for each edge; `sidelong.graphs.edge_list` has the details.
.json
    ``{"format": "sidelong-graph", "version": 1, "n_arms": 3, "edges": [[0, 1], [1, 2]]}``; or in place of
    "edges", ``"low": [...], "high": [...]``: playing i reveals the arms low[i] to high[i] - 1. If the arms have
    names, ``"labels": ["small", ...]``.
.npz
    Arrays of the same names, without "format". The labels are the bytes of a list in JSON.

An edge list does not keep labels.

A file may come from anyone. What it declares is checked before it is read, nothing in it is executed, and no
self-loop is added. A file is written under another name first, so that a crash leaves the old one.
"""

from __future__ import annotations

import json
import os
import stat
import zipfile
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np

from sidelong._install import NEWER
from sidelong.checks import check_whole, short
from sidelong.errors import GraphError, GraphFileError
from sidelong.graphs import edge_list, npz
from sidelong.graphs.graph import FeedbackGraph
from sidelong.machine import replacing

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy.typing as npt

#: A file beyond one of these limits is refused before it is read.
MAX_BYTES = 2**30
MAX_JSON_BYTES = 2**27  # parsing takes many times as much memory
MAX_JSON_EDGES = 2**24
MAX_ARMS = 2**24
MAX_EDGES = 50_000_000

_SEPARATORS = {".txt": " ", ".edges": " ", ".tsv": "\t", ".csv": ","}
_VERSION = 1


def load(
    path: str | os.PathLike[str],
    progress: Callable[[int], None] | None = None,
    *,
    max_arms: int | None = None,
    max_edges: int | None = None,
) -> FeedbackGraph:
    """Read a graph from a file, and name it after the file.

    An edge list of millions of lines takes seconds: `progress` is told how many bytes of it have been read. `max_arms`
    and `max_edges` may lower the limits.
    """
    path = Path(path)
    suffix = _suffix(path)
    max_arms, max_edges = max_arms or MAX_ARMS, max_edges or MAX_EDGES
    try:
        with path.open("rb") as file:
            _check_size(file, MAX_JSON_BYTES if suffix == ".json" else MAX_BYTES)
            if suffix in _SEPARATORS:
                n_arms, edges = edge_list.read(path, file, max_arms, max_edges, progress or _tell_nobody)
                graph = FeedbackGraph.from_edges(edges, n_arms)
            else:
                content = (_read_json if suffix == ".json" else _read_npz)(file, max_arms, max_edges)
                graph = _build(content, max_arms)
    except OSError as error:
        raise GraphFileError(f"{path}: cannot be read: {error.strerror or error}.") from error
    except GraphFileError:
        raise
    except GraphError as error:
        raise GraphFileError(f"{path}: {error}") from error
    return graph.named(path.name)


def save(graph: FeedbackGraph, path: str | os.PathLike[str]) -> None:
    """Write a graph to a file."""
    path = Path(path)
    suffix = _suffix(path)
    if graph.n_arms > MAX_ARMS:
        raise GraphError(f"A graph file holds at most {MAX_ARMS:,} arms, and {graph!r} has more.")
    listed = suffix in _SEPARATORS or graph.representation == "arcs"
    if listed and graph.n_edges > MAX_EDGES:
        raise GraphError(
            f"A graph file lists at most {MAX_EDGES:,} edges, and {graph!r} has more. "
            f"Intervals can be saved as .json or .npz, which do not list them."
        )
    parts = {"edges": graph.edges()} if listed else {"low": graph.arrays.start, "high": graph.arrays.stop}
    try:
        with replacing(path) as file:
            if suffix in _SEPARATORS:
                edge_list.write(file, graph.n_arms, parts["edges"], _SEPARATORS[suffix])
            elif suffix == ".json":
                _write_json(file, graph, parts)
            else:
                small = {name: part.astype(np.int32) for name, part in parts.items()}
                if graph.labels is not None:
                    small["labels"] = np.frombuffer(json.dumps(graph.labels).encode(), np.uint8)
                np.savez(file, allow_pickle=False, version=_VERSION, n_arms=graph.n_arms, **small)
    except OSError as error:
        raise GraphFileError(f"{path}: cannot be written: {error.strerror or error}.") from error


def _tell_nobody(_: int) -> None:
    pass


def _check_size(file: BinaryIO, limit: int) -> None:
    status = os.fstat(file.fileno())
    if not stat.S_ISREG(status.st_mode):
        raise GraphError("a graph file must be an ordinary file, whose size is known.")
    if status.st_size > limit:
        raise GraphError(f"a file of this format has at most {limit:,} bytes, and this one {status.st_size:,}.")


def _suffix(path: Path) -> str:
    suffix = path.suffix.lower()
    if suffix not in {*_SEPARATORS, ".json", ".npz"}:
        raise GraphFileError(
            f"{path}: the suffix of a graph file gives its format, and must be one of "
            f"{', '.join(_SEPARATORS)}, .json, .npz; not {suffix!r}."
        )
    return suffix


def _write_json(file: BinaryIO, graph: FeedbackGraph, parts: dict[str, npt.NDArray[np.int64]]) -> None:
    content = {"format": "sidelong-graph", "version": _VERSION, "n_arms": graph.n_arms}
    content |= {name: part.tolist() for name, part in parts.items()}
    content |= {} if graph.labels is None else {"labels": graph.labels}
    text = json.dumps(content, separators=(",", ":")).encode()
    if len(text) > MAX_JSON_BYTES or len(parts.get("edges", ())) > MAX_JSON_EDGES:
        raise GraphError(f"{graph!r} is too large for a .json file; use .npz.")
    file.write(text)


def _read_json(file: BinaryIO, max_arms: int, max_edges: int) -> dict[str, Any]:
    text = file.read(os.fstat(file.fileno()).st_size)  # and not up to the limit, for which room would be made at once
    most = min(max_edges, MAX_JSON_EDGES)
    if text.count(b"[") + text.count(b"{") > most + 2:  # each takes as much memory as an edge
        raise GraphError(f"a .json file holds at most {most:,} edges here, and this one has more. Use .npz.")
    try:
        content = json.loads(text)
    except RecursionError:
        raise GraphError("this is not a graph: its lists are nested too deeply.") from None
    except ValueError as error:
        raise GraphError(f"this is not JSON: {error}.") from error
    if not isinstance(content, dict) or content.get("format") != "sidelong-graph":
        raise GraphError('this is not a graph: it must be an object with "format": "sidelong-graph".')
    _check_version(content.get("version"))
    for name in ("edges", "low", "high"):
        if name in content:
            content[name] = _integers(name, content[name], max_arms)
    return content


def _integers(name: str, values: Any, max_arms: int) -> npt.NDArray[np.int64]:  # whatever JSON holds
    """Return a list of arms, or of pairs of arms, as an array."""
    if type(values) is not list:
        raise GraphError(f'"{name}" must be a list, not {short(values)}.')
    flat, width = values, 1
    if name == "edges":
        for number, pair in enumerate(values):
            if type(pair) is not list or len(pair) != 2:
                raise GraphError(f'"edges"[{number}] must be a pair [i, j], not {short(pair)}.')
        flat, width = list(chain.from_iterable(values)), 2
    for number, arm in enumerate(flat):
        if type(arm) is not int or not 0 <= arm <= max_arms:  # a bool is an int to Python, but no arm
            raise GraphError(
                f'"{name}"[{number // width}] must hold whole numbers from 0 to {max_arms:,}, not {short(arm)}.'
            )
    return np.array(flat, np.int64).reshape((-1, 2) if width == 2 else -1)


def _read_npz(file: BinaryIO, max_arms: int, max_edges: int) -> dict[str, Any]:
    try:
        with zipfile.ZipFile(file) as archive:
            _check_version(npz.read_array(archive, "version", ()))
            content = {"n_arms": npz.read_array(archive, "n_arms", ())}
            shapes = {"edges": (max_edges, 2), "low": (max_arms,), "high": (max_arms,)}
            given = [name for name in shapes if f"{name}.npy" in archive.namelist()]
            content |= {name: npz.read_array(archive, name, shapes[name]) for name in given}
            if "labels.npy" in archive.namelist():
                content["labels"] = json.loads(npz.read_array(archive, "labels", (MAX_JSON_BYTES,)).tobytes())
            return content
    except GraphError:
        raise
    except npz.ERRORS as error:
        raise GraphError(f"this is not a whole .npz file: {error}.") from error


def _check_version(version: object) -> None:
    if check_whole(GraphError, "the version of a graph file", version, 1) > _VERSION:
        raise GraphError(
            f"this file has version {version}, and this sidelong reads up to {_VERSION}: it is newer. {NEWER}"
        )


def _build(content: dict[str, Any], max_arms: int) -> FeedbackGraph:
    """Make the graph that a file of either format describes."""
    n_arms, labels = check_whole(GraphError, '"n_arms"', content.get("n_arms"), 1, max_arms), content.get("labels")
    if labels is not None and not (type(labels) is list and all(type(label) is str for label in labels)):
        raise GraphError(f'"labels" must be a list of texts, not {short(labels)}.')
    return _unlabelled(content, n_arms).labelled(labels)


def _unlabelled(content: dict[str, Any], n_arms: int) -> FeedbackGraph:
    given = content.keys() & {"edges", "low", "high"}
    if given == {"low", "high"}:
        graph = FeedbackGraph.from_intervals(content["low"], content["high"])
        if graph.n_arms != n_arms:
            raise GraphError(
                f'"low" and "high" must have one number for each of the {n_arms} arms, not {graph.n_arms}.'
            )
        return graph
    if given != {"edges"}:
        raise GraphError(f'a graph has either "edges", or "low" and "high"; this one has {sorted(given)}.')
    graph = FeedbackGraph.from_edges(content["edges"], n_arms)
    if graph.n_edges != len(content["edges"]):
        _, first = np.unique(content["edges"], axis=0, return_index=True)
        again = np.setdiff1d(np.arange(len(content["edges"])), first)[0]
        raise GraphError(f"each edge stands once; edge number {again} is {content['edges'][again].tolist()} again.")
    return graph
