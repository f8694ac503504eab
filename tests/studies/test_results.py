"""Result files: every bit is guarded, columns are as documented, and others read them."""

import json
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import sidelong as sl
from sidelong.errors import ResultFileError, StudyError
from sidelong.studies import execute, provenance, results, work
from sidelong.studies.cell import Cell
from sidelong.studies.files import Files
from sidelong.studies.provenance import source_hash
from sidelong.studies.spec import load
from studies import small
from studies.killer import Inline

STUDY = """\
rounds = 120
runs = 3
seed = [5, 18446744073709551615]
delay = 2
checkpoints = [1, 60, 120]

[[learner]]
name = ["uniform", "ts-n"]

[graph]
name = "star"
n = 4

[world]
name = "bernoulli"
means = {{ gap = 0.2 }}
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("results")
    study = load(small.write(place, text=STUDY))
    summary = execute.run(study, place / "results", lambda *_: Inline(study.files))
    assert (summary.done, summary.failed) == (4, {})
    return place / "results"


@pytest.fixture(scope="module")
def file(folder):
    return min((folder / "cells").iterdir(), key=lambda path: path.stat().st_size).read_bytes()


def test_the_table_is_what_simulate_returns(folder):
    table = sl.read_results(folder).to_pandas()
    assert len(table) == 4 * 3 * 3
    world, graph = sl.losses.bernoulli([0.4, 0.6, 0.6, 0.6]), sl.graphs.star(4)
    for (learner, seed), rows in table.groupby(["learner", "seed"], observed=True):
        played = sl.simulate(learner, graph, world, 120, runs=3, seed=int(seed), checkpoints=[1, 60, 120], delay=2)
        for run in range(3):
            mine = rows[rows["run"] == run]
            np.testing.assert_array_equal(mine["round"], played.rounds)
            np.testing.assert_array_equal(mine["regret"], played.regret[run])
            np.testing.assert_array_equal(mine["loss"], played.loss[run])
            assert mine["plays"].notna().tolist() == mine["observations"].notna().tolist() == [False, False, True]
            np.testing.assert_array_equal(mine["plays"].iloc[-1], played.plays[run])
            np.testing.assert_array_equal(mine["observations"].iloc[-1], played.observations[run])
            for name, trace in played.traces.items():
                np.testing.assert_array_equal(mine[f"trace_{name}"], trace[run])


def test_cells_come_in_the_order_of_the_study(folder):
    study = load(folder.parent / "study.toml")
    assert sl.read_results(folder)["cell"].unique().to_pylist() == [cell.name for cell in study.cells]


def test_the_columns_are_those_of_the_documents(folder):
    names = [name for name in sl.read_results(folder).column_names if not name.startswith("trace_")]
    assert re.findall(r"^``(\w+)`` +(?:text|int64|uint64|double|list)", results.__doc__, re.MULTILINE) == names
    page = (Path(__file__).parents[2] / "docs" / "study-file.md").read_text()
    assert re.findall(r"^\| `(\w+)` \| (?:text|int64|uint64|double|list)", page, re.MULTILINE) == names


THREADS = """\
import os, sys
from pathlib import Path
from sidelong.studies import results
def threads():
    names = [(each / "comm").read_text() for each in Path("/proc/self/task").iterdir()]
    return len([name for name in names if "jemalloc" not in name])
before = threads()
tables = [table for table, _ in results.read_tables(Path(sys.argv[1]))]
print(len(tables), threads() - before)
"""


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="only Linux tells the threads of a process")
def test_no_thread_of_arrow_reads_results_since_it_may_abort_a_process_that_ends(folder):
    done = subprocess.run([sys.executable, "-c", THREADS, folder], capture_output=True, text=True, check=True)
    assert done.stdout == "4 0\n"


def test_what_a_learner_does_not_trace_is_null(folder):
    table = sl.read_results(folder).to_pandas()
    assert table.loc[table["learner"] == "ts-n", "trace_observed"].isna().all()
    assert table.loc[table["learner"] == "uniform", "trace_observed"].notna().all()


def test_duckdb_polars_and_pandas_read_the_files(folder):
    table = sl.read_results(folder)
    expected = table.to_pandas().groupby("learner", observed=True)["regret"].sum().to_dict()
    files = folder / "cells" / "*.parquet"
    query = (
        f"SELECT learner, sum(regret) FROM read_parquet('{files}', union_by_name = true) "  # noqa: S608
        "WHERE world_options ->> '$.means.gap' = '0.2' GROUP BY learner"
    )
    # In a process of its own: DuckDB tells of leaks at the end of every process that has imported it.
    program = "import duckdb, json, sys; print(json.dumps(dict(duckdb.sql(sys.argv[1]).fetchall())))"
    told = subprocess.run([sys.executable, "-c", program, query], capture_output=True, text=True, check=True).stdout
    assert json.loads(told) == pytest.approx(expected, rel=1e-12)
    for frame in (
        pl.from_arrow(table),
        pl.scan_parquet(files, missing_columns="insert", extra_columns="ignore").collect(),
    ):
        grouped = frame.group_by("learner").agg(pl.col("regret").sum())
        assert dict(grouped.rows()) == pytest.approx(expected, rel=1e-12)
    assert pl.from_arrow(table)["seed"].max() == 2**64 - 1


def test_the_metadata_tells_where_results_come_from_but_no_path(folder, file):
    told = results.read_provenance(file)
    assert Cell(told["cell"]).name == pq.read_table(pa.BufferReader(file))["cell"][0].as_py()
    assert told["seed"] == told["cell"]["seed"]
    assert told["version"] == sl.__version__
    assert told["learner_version"] == 1
    assert told["source"] == source_hash()
    assert {"platform", "python", "numpy", "numba", "seconds", "finished"} <= told.keys()
    for path in (folder, Path.home(), Path.cwd()):
        assert str(path).encode() not in file


def test_every_flipped_bit_is_found(file):
    results.check(file)
    flipped = bytearray(file)
    for place in range(len(file)):
        flipped[place] ^= 1 << (place % 8)
        with pytest.raises(ResultFileError):
            results.check(bytes(flipped))
        flipped[place] = file[place]


def test_every_truncation_is_found(file):
    for length in range(len(file)):
        with pytest.raises(ResultFileError):
            results.check(file[:length])
    with pytest.raises(ResultFileError):
        results.check(file + b"\0")


def test_the_same_cell_gives_the_same_columns_on_any_number_of_threads(folder):
    study = load(folder.parent / "study.toml")
    for path in (folder / "cells").iterdir():
        cell = next(each for each in study.cells if each.name == path.stem)
        again = work.play(work.Task(cell.spec, 3, source_hash()), study.files)
        path.with_name("again").write_bytes(again.content)
        assert pq.read_table(path.with_name("again")).equals(pq.read_table(path))
        path.with_name("again").unlink()


def test_a_worker_of_another_version_is_refused(folder):
    study = load(folder.parent / "study.toml")
    outcome = work.play(work.Task(study.cells[0].spec, 1, "another"), Files())
    assert not outcome.content
    assert "another version of sidelong" in outcome.error


def test_reading_says_what_is_wrong(folder, tmp_path):
    with pytest.raises(StudyError, match="there are no results here"):
        sl.read_results(tmp_path)
    (tmp_path / "cells").mkdir()
    content = next((folder / "cells").iterdir()).read_bytes()
    (tmp_path / "cells" / "x.parquet").write_bytes(content[:-1])
    with pytest.raises(ResultFileError, match=r"x\.parquet: .*checksum does not hold. Run the study again"):
        sl.read_results(tmp_path)


def test_a_file_of_a_newer_format_says_so(folder, tmp_path, monkeypatch):
    study = load(folder.parent / "study.toml")
    monkeypatch.setattr(provenance, "FORMAT", 2)
    (tmp_path / "cells").mkdir()
    made = work.play(work.Task(study.cells[0].spec, 1, source_hash()), study.files).content
    (tmp_path / "cells" / "x.parquet").write_bytes(made)
    monkeypatch.undo()
    with pytest.raises(StudyError, match=r"it is newer\. Install the version"):
        sl.read_results(tmp_path)
