"""Packs: a study that anybody can play again, to the bit; archives of strangers; and two folders compared."""

import hashlib
import json
import shutil
import zipfile
from types import SimpleNamespace

import numpy as np
import pyarrow.parquet as pq
import pytest

import sidelong as sl
from sidelong.cli.playing import play
from sidelong.studies import pack, results
from sidelong.studies.cell import Cell
from sidelong.studies.spec import load
from studies import small

pytestmark = pytest.mark.long

OWN = """\
from pathlib import Path
Path({mark!r}).write_text("run")
from sidelong.losses import compiled

@compiled
def loss(seed, run, t, arm):
    return 0.25 * (arm + t % 2)
"""
STUDY = """\
rounds = 50
runs = 2
checkpoints = 3
learner = "uniform"
graph = [{ name = "nested", n = 3 }, { file = "graph.json" }]
world = [{ name = "bernoulli", means = { gap = 0.2 } }]
"""


@pytest.fixture(scope="module")
def packed(tmp_path_factory):
    """A study of two cells, its results and its pack; and the same with code of one's own."""
    folder = tmp_path_factory.mktemp("pack")
    sl.graphs.star(3).save(folder / "graph.json")
    (folder / "worlds.py").write_text(OWN.format(mark=str(folder / "mark")))
    own = 'world = [{ name = "function", f = { file = "worlds.py", function = "loss" } }]\n'
    for name, text in (("plain", STUDY), ("code", STUDY.partition("world")[0] + own)):
        (folder / f"{name}.toml").write_text(text)
        assert play(load(folder / f"{name}.toml"), folder / name, workers=1).done == 2
        pack.write_pack(folder / name, folder / f"{name}.sidelong.zip")
    (folder / "mark").unlink()
    return folder


@pytest.fixture
def sidelong_in(sidelong, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return sidelong


def test_a_pack_is_one_archive_with_a_content_hash_and_the_same_bytes_twice(packed, sidelong_in, tmp_path):
    next((packed / "plain" / "files").iterdir()).joinpath("__pycache__").mkdir()  # which Python makes on import
    done = sidelong_in("pack", str(packed / "plain"))
    content = (tmp_path / "plain.sidelong.zip").read_bytes()
    assert content == (packed / "plain.sidelong.zip").read_bytes()
    with zipfile.ZipFile(tmp_path / "plain.sidelong.zip") as archive:
        about = json.loads(archive.read("pack.json"))
        assert sorted(archive.namelist()) == sorted(["pack.json", *about["entries"]])
        for name, digest in about["entries"].items():
            assert hashlib.sha256(archive.read(name)).hexdigest() == digest
    assert any(name.startswith("files/") and name.endswith("/graph.json") for name in about["entries"])
    assert {"version", "source", "python", "numpy", "numba", "platform"} == about["made_by"].keys()
    assert done.stdout == f"plain.sidelong.zip: {len(content):,} bytes, content hash {about['sha256']}\n"


def test_a_pack_is_played_again_in_a_fresh_folder_and_is_the_same_to_the_bit(packed, sidelong_in, tmp_path):
    shutil.copy(packed / "plain.sidelong.zip", tmp_path)
    done = sidelong_in("run", "plain.sidelong.zip", "--workers", "1")
    assert (done.returncode, done.stderr) == (0, "")
    assert "2 cells were played again.\nThe tables of all 2 cells are the same to the bit.\n" in done.stdout
    assert small.columns(tmp_path / "results" / "plain-again") == small.columns(packed / "plain")
    done = sidelong_in("diff", "plain.sidelong.zip", "results/plain-again")
    assert (done.returncode, done.stdout) == (0, "The tables of all 2 cells are the same to the bit.\n")


def test_code_of_a_pack_runs_only_if_it_is_trusted(packed, sidelong_in, tmp_path):
    archive = str(packed / "code.sidelong.zip")
    refused = sidelong_in("run", archive, "--workers", "1")
    assert (refused.returncode, refused.stdout) == (2, "")
    assert "has Python code ('worlds.py'), which can do whatever you can. Add --trust to run it." in refused.stderr
    dry = sidelong_in("run", archive, "--dry-run", "--trust")
    assert dry.returncode == 0
    assert "2 cells with code of your own" in dry.stdout
    assert not (packed / "mark").exists()
    assert not (tmp_path / "results").exists()
    done = sidelong_in("run", archive, "--trust", "--workers", "1")
    assert (packed / "mark").exists()
    assert (done.returncode, done.stderr) == (0, "")
    assert "The tables of all 2 cells are the same to the bit." in done.stdout


def test_the_study_of_a_folder_of_results_can_be_run(packed, sidelong_in, tmp_path):
    shutil.copytree(packed / "plain", tmp_path / "copy")
    done = sidelong_in("run", "copy/study.json", "--workers", "1")
    assert done.stdout.startswith("2 of 2 cells are done, 2 of them before.")
    (tmp_path / "copy" / "study.json").write_text("{}")
    done = sidelong_in("run", "copy/study.json")
    assert (done.returncode, done.stderr) == (
        2,
        "sidelong run: copy/study.json: this is no study.json of a folder of results.\n",
    )


def other_result(folder):
    """Replace regrets of the first cell of a folder by others, with a checksum that holds."""
    path = min((folder / "cells").glob("*.parquet"))
    cell, table = Cell(results.read_provenance(path.read_bytes())["cell"]), pq.read_table(path)
    counts = np.array([each for each in table["plays"].to_pylist() if each is not None])
    result = SimpleNamespace(
        runs=np.arange(2),
        rounds=np.unique(table["round"].to_numpy()),
        regret=table["regret"].to_numpy().reshape(2, -1) + np.array([[0.0], [0.5]]),
        loss=table["loss"].to_numpy().reshape(2, -1),
        plays=counts,
        observations=counts,
        traces={
            name.removeprefix("trace_"): table[name].to_numpy().reshape(2, -1)
            for name in table.column_names
            if name.startswith("trace_")
        },
        seconds=0.1,
    )
    path.write_bytes(results.to_parquet(cell, 3, result))


def test_what_differs_is_named_with_cell_and_column_and_code_1(packed, sidelong_in, tmp_path):
    shutil.copytree(packed / "plain", tmp_path / "other")
    other_result(tmp_path / "other")
    sorted((tmp_path / "other" / "cells").glob("*.parquet"))[1].unlink()
    done = sidelong_in("diff", str(packed / "plain"), "other")
    assert done.returncode == 1
    assert "differs: uniform on " in done.stdout
    assert "  regret differs in 3 of 6 rows, by up to 0.5" in done.stdout
    assert f"only in {packed / 'plain'}: uniform on " in done.stdout
    assert "0 cells are the same to the bit, 1 differ, 1 are only in" in done.stdout
    done = sidelong_in("pack", "other")
    assert (done.returncode, done.stderr) == (
        2,
        "sidelong pack: other: 1 of 2 cells are missing. Run the study to its end first.\n",
    )


def test_a_pack_with_other_results_has_code_1(packed, sidelong_in, tmp_path):
    shutil.copytree(packed / "plain", tmp_path / "other")
    other_result(tmp_path / "other")
    pack.write_pack(tmp_path / "other", tmp_path / "other.zip")
    shutil.copytree(packed / "plain", tmp_path / "results" / "other-again")  # as if it had been played again
    done = sidelong_in("run", "other.zip", "--workers", "1")
    assert done.returncode == 1
    assert "2 cells were played again, 2 of them before." in done.stdout
    assert "1 cells are the same to the bit, 1 differ" in done.stdout


def rewritten(source, target, change):
    """Write a pack with other entries: change gets a dict of name to content."""
    with zipfile.ZipFile(source) as archive:
        entries = {name: archive.read(name) for name in archive.namelist()}
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in change(entries).items():
            archive.writestr(name, content)


def alter(entries):
    return {name: content.replace(b'"runs": 2', b'"runs": 3') for name, content in entries.items()}


def rename(entries, new):
    about = json.loads(entries["pack.json"])
    name = next(name for name in about["entries"] if name.startswith("files/"))
    about["entries"][new] = about["entries"].pop(name)
    about["sha256"] = pack._hash(about["entries"])
    return {**entries, "pack.json": json.dumps(about).encode(), new: entries[name]}


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (alter, "this pack is altered: study.json has another hash than it lists."),
        (lambda e: {k: v for k, v in e.items() if k != "study.json"}, "it has other entries than its pack.json lists"),
        (lambda e: {**e, "../outside": b"x"}, "this is no pack of a study: it has the entry '../outside'."),
        (lambda e: {**e, "/etc/passwd": b"x"}, "it has the entry '/etc/passwd'."),
        (lambda e: rename(e, f"files/{'0' * 64}/.."), "this is no pack of a study: it has the entry"),
        (lambda e: rename(e, f"files/{'0' * 64}/graph.json"), "it has other entries than"),
        (lambda _: {"study.json": b"{}"}, "this is no pack of a study: `sidelong pack FOLDER` makes one."),
        (lambda e: {**e, "pack.json": b'{"format": 3}'}, "this is no pack of a study"),
        (lambda e: {**e, "pack.json": e["pack.json"].replace(b'"version": 1', b'"version": 2')}, "has version 2"),
    ],
)
def test_an_archive_of_a_stranger_is_refused_before_anything_is_run(packed, sidelong_in, tmp_path, change, said):
    (tmp_path / "in").mkdir()
    rewritten(packed / "plain.sidelong.zip", tmp_path / "in" / "bad.zip", change)
    for command in (("run", "in/bad.zip", "--trust"), ("diff", "in/bad.zip", str(packed / "plain"))):
        done = sidelong_in(*command)
        assert (done.returncode, done.stdout) == (2, "")
        assert said in done.stderr
        assert len(done.stderr.splitlines()) == 1
    assert [path.name for path in tmp_path.iterdir()] == ["in"]
    assert [path.name for path in (tmp_path / "in").iterdir()] == ["bad.zip"]


def test_what_would_unpack_to_too_much_is_refused(packed, sidelong_in, monkeypatch):
    monkeypatch.setattr(pack, "MAX_BYTES", 1000)
    done = sidelong_in("run", str(packed / "plain.sidelong.zip"))
    assert done.returncode == 2
    assert "a pack has at most 1,000 bytes when it is unpacked, and this one " in done.stderr


def test_a_truncated_pack_is_refused(packed, sidelong_in, tmp_path):
    content = bytearray((packed / "plain.sidelong.zip").read_bytes())
    content[len(content) // 2] ^= 0xFF
    (tmp_path / "bad.zip").write_bytes(content)
    done = sidelong_in("run", "bad.zip")
    assert done.returncode == 2
    assert "this pack is " in done.stderr


def test_a_folder_without_a_study_is_refused(sidelong_in, tmp_path):
    (tmp_path / "empty").mkdir()
    done = sidelong_in("pack", "empty")
    assert (done.returncode, done.stderr.partition(";")[0]) == (2, "sidelong pack: empty: there is no study here")
    assert sidelong_in("diff", "empty", "empty").returncode == 2
