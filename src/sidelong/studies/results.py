"""The results of a cell as a Parquet file, and all results of a study as one table.

A row is one run at one checkpoint:

===================  ======  ====================================================================================
column               type    what it is
===================  ======  ====================================================================================
``cell``             text    the hash that names the cell, and its file
``learner``          text    the learner's name; for one's own, the one it was given, or that of its file
``learner_options``  text    its options, as JSON
``graph``            text    the graph's name, a function of ``sidelong.graphs`` or one's own, or that of its file
``graph_options``    text    its arguments, as JSON
``arms``             int64   how many arms the graph has
``world``            text    the world's name, a function of ``sidelong.losses`` or one's own
``world_options``    text    its arguments, as JSON
``horizon``          int64   how many rounds were played in all
``delay``            int64   how many rounds later feedback came; at most, if by a law
``seed``             uint64  the seed
``run``              int64   the number of the run: run r of every learner meets the same losses
``round``            int64   how many rounds had been played
``regret``           double  the regret so far, against the best arm
``loss``             double  the losses suffered so far
``plays``            list    of int64, for each arm: how often it was played, by the end; null but on a run's last row
``observations``     list    of int64, for each arm: how often its loss was revealed, by the end; the same
``trace_...``        double  what a learner traces, mean since the checkpoint before; null for learners without it
===================  ======  ====================================================================================

The columns are the same bytes whoever ran the cell. What may differ is kept beside them, in the file's metadata:
``sidelong`` is JSON with the cell's spec, versions, platform and time, and ``sidelong.checksum`` is the SHA-256 of the
file with zeros in its place.
"""

from __future__ import annotations

import hashlib
import io
import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from sidelong._install import NEWER
from sidelong.errors import ResultFileError, StudyError
from sidelong.simulation.delays import read_delay
from sidelong.studies.cell import canonical, name_of, options_of
from sidelong.studies.files import read_regular
from sidelong.studies.provenance import FORMAT, provenance

if TYPE_CHECKING:
    from collections.abc import Iterator
    from os import PathLike

    import numpy.typing as npt

    from sidelong.simulation import Result
    from sidelong.studies.cell import Cell

_EMPTY = b"0" * 64
_CHECKSUM = re.compile(rb"sidelong\.checksum\x18\x40([0-9a-f]{64})")  # as Parquet's footer has a key and a value


def to_parquet(cell: Cell, n_arms: int, result: Result) -> bytes:
    """Return the Parquet file of a cell."""
    spec = cell.spec
    rows, marks = result.regret.shape
    size = rows * marks
    options = {kind: canonical(options_of(spec[kind])) for kind in ("learner", "graph", "world")}
    alike: dict[str, Any] = {  # on all rows
        "cell": cell.name,
        "learner": name_of(spec["learner"]),
        "learner_options": options["learner"],
        "graph": name_of(spec["graph"]),
        "graph_options": options["graph"],
        "arms": np.int64(n_arms),
        "world": name_of(spec["world"]),
        "world_options": options["world"],
        "horizon": np.int64(spec["rounds"]),
        "delay": np.int64(read_delay(cell.delay, n_arms).most),
        "seed": np.uint64(spec["seed"]),
    }
    texts = [name for name, value in alike.items() if isinstance(value, str)]
    columns = {
        **{name: _repeated(value, size) for name, value in alike.items()},
        "run": _numbers(np.repeat(result.runs, marks)),
        "round": _numbers(np.tile(result.rounds, rows)),
        "regret": _numbers(result.regret),
        "loss": _numbers(result.loss),
        "plays": _on_last_rows(result.plays, marks),
        "observations": _on_last_rows(result.observations, marks),
        **{f"trace_{name}": _numbers(trace) for name, trace in result.traces.items()},
    }
    table = pa.table(columns)
    sink = io.BytesIO()
    # Statistics and dictionaries of numbers are of no use in so small a file, and half of its size.
    with pq.ParquetWriter(
        sink, table.schema, compression="snappy", use_dictionary=texts, write_statistics=False
    ) as writer:
        writer.write_table(table)
        # Not through the schema, of which the file keeps a second, encoded copy.
        writer.add_key_value_metadata(
            {"sidelong": canonical(provenance(cell, result.seconds)), "sidelong.checksum": _EMPTY.decode()}
        )
    content = sink.getvalue()
    return _with_checksum(content, hashlib.sha256(content).hexdigest().encode())


# The next two are not pa.array, which imports pandas, if it is there, to see whether it was given a part of it: a
# second for each worker.


def _repeated(value: str | np.integer, size: int) -> pa.Array:
    if not isinstance(value, str):
        return _numbers(np.full(size, value))
    word = value.encode()
    ends = pa.py_buffer(np.array([0, len(word)], np.int32))
    dictionary = pa.StringArray.from_buffers(1, ends, pa.py_buffer(word))
    return pa.DictionaryArray.from_arrays(_numbers(np.zeros(size, np.int32)), dictionary)


def _numbers(values: npt.NDArray[Any]) -> pa.Array:
    flat = values.ravel()
    return pa.Array.from_buffers(pa.from_numpy_dtype(flat.dtype), flat.size, [None, pa.py_buffer(flat)])


def _on_last_rows(counts: npt.NDArray[np.int64], marks: int) -> pa.ListArray:
    """Return a column that is null but for the last checkpoint of each run, where it has a row of counts."""
    rows, n_arms = counts.shape
    lengths = np.zeros((rows, marks), np.int32)
    lengths[:, -1] = n_arms
    ends = np.append(np.int32(0), np.cumsum(lengths, dtype=np.int32))
    there = pa.py_buffer(np.packbits(lengths.ravel() > 0, bitorder="little"))
    kind = pa.list_(pa.int64())
    return pa.Array.from_buffers(kind, rows * marks, [there, pa.py_buffer(ends)], children=[_numbers(counts)])


def _with_checksum(content: bytes, checksum: bytes) -> bytes:
    found = [*_CHECKSUM.finditer(content)]
    if len(found) != 1:
        raise ResultFileError("this is not a whole result file: it has no checksum.")
    first, last = found[0].span(1)
    return content[:first] + checksum + content[last:]


def check(content: bytes) -> None:
    """Refuse a result file of which a single bit differs from what was written."""
    found = _CHECKSUM.search(content)
    if found is None or hashlib.sha256(_with_checksum(content, _EMPTY)).hexdigest().encode() != found[1]:
        raise ResultFileError("this result file is truncated or altered: its checksum does not hold.")


def read_provenance(content: bytes) -> dict[str, Any]:
    """Return what a result file tells beside its columns, and check it."""
    check(content)
    told: dict[str, Any] = json.loads(pq.read_metadata(pa.BufferReader(content)).metadata[b"sidelong"])
    if told["format"] > FORMAT:
        raise StudyError(
            f"This result file has format {told['format']}, and this sidelong reads up to {FORMAT}: "
            f"it is newer. {NEWER}"
        )
    return told


def read_tables(folder: Path) -> Iterator[tuple[pa.Table, dict[str, Any]]]:
    """Yield the table of each cell in a folder, in the order of the study, and what its file tells beside it."""
    for path in in_order(folder):
        try:
            content = read_regular(path)
            told = read_provenance(content)
        except ResultFileError as error:
            raise ResultFileError(f"{path}: {error} Run the study again: it will be replaced.") from error
        except StudyError as error:
            raise StudyError(f"{path}: {error}") from error
        except OSError as error:
            raise StudyError(f"{path}: cannot be read: {error.strerror or error}.") from error
        # In this thread: one of Arrow's that frees what Python owns while the process ends aborts it, now and then.
        yield pq.ParquetFile(pa.BufferReader(content)).read(use_threads=False), told


def read_results(folder: str | PathLike[str]) -> pa.Table:
    """Return all results in a folder as one Arrow table, with one row for each run at each checkpoint.

    The columns are described in `sidelong.studies.results`. Cells come in the order of the study. ``.to_pandas()``
    and ``polars.from_arrow`` make data frames of it; DuckDB and other programs that read Parquet can open the
    files in ``cells``.

    Args:
        folder: what `sidelong run` wrote to.

    Raises:
        StudyError: there are no results, or a file is truncated or altered.

    """
    tables = [table for table, _ in read_tables(Path(folder))]
    return pa.concat_tables(tables, promote_options="default").unify_dictionaries()


def in_order(folder: Path) -> list[Path]:
    """Return the result files in a folder, of which there is one at least, in the order of the study."""
    there = {path.stem: path for path in sorted((folder / "cells").glob("*.parquet")) if not path.name.startswith(".")}
    if not there:
        raise StudyError(f"{folder}: there are no results here; `sidelong run` writes them.")
    try:
        order = json.loads(read_regular(folder / "study.json"))["cells"]
    except (OSError, ValueError, KeyError):
        order = []
    return [there.pop(name) for name in order if name in there] + [*there.values()]
