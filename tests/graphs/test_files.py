"""Graph files: what is written comes back, and what is wrong is named with its place."""

import io
import json
import os
import pickle
import tracemalloc
import zipfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sidelong import graphs
from sidelong.errors import GraphError, GraphFileError
from sidelong.graphs import edge_list, files
from sidelong.graphs.graph import FeedbackGraph

SUFFIXES = [".txt", ".edges", ".tsv", ".csv", ".json", ".npz", ".JSON"]
GRAPHS = [
    graphs.nested(7),
    graphs.petersen(),
    graphs.complete(1),
    FeedbackGraph.from_edges([], 3),
    FeedbackGraph.from_edges([(0, 2), (2, 0)], 5),
    FeedbackGraph.from_intervals([3, 0, 1, 4], [4, 0, 4, 4]),
]


def text_file(folder, text, name="g.txt"):
    path = folder / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def json_file(folder, **changes):
    content = {"format": "sidelong-graph", "version": 1, "n_arms": 3, "edges": [[0, 1], [1, 2]]} | changes
    return text_file(folder, json.dumps({k: v for k, v in content.items() if v is not ...}), "g.json")


def npz_file(folder, **changes):
    content = {"version": 1, "n_arms": 3, "edges": np.array([[0, 1], [1, 2]])} | changes
    path = folder / "g.npz"
    np.savez(path, **{k: v for k, v in content.items() if v is not ...})
    return path


@pytest.mark.parametrize("suffix", SUFFIXES)
@pytest.mark.parametrize("graph", GRAPHS, ids=repr)
def test_what_is_saved_comes_back(tmp_path, graph, suffix):
    path = tmp_path / f"graph{suffix}"
    graph.save(path)
    loaded = FeedbackGraph.load(str(path))
    assert loaded == graph
    assert loaded.n_arms == graph.n_arms
    assert loaded.representation == graph.representation
    assert loaded.name == path.name
    assert [entry.name for entry in tmp_path.iterdir()] == [path.name]


@given(
    st.integers(1, 30).flatmap(
        lambda n: st.tuples(st.just(n), st.sets(st.tuples(st.integers(0, n - 1), st.integers(0, n - 1))))
    ),
    st.sampled_from(SUFFIXES),
)
def test_any_graph_comes_back(tmp_path, made, suffix):
    n, edges = made
    graph = FeedbackGraph.from_edges(edges, n)
    graph.save(tmp_path / f"graph{suffix}")
    assert FeedbackGraph.load(tmp_path / f"graph{suffix}") == graph


def test_a_ladder_is_saved_without_its_edges(tmp_path):
    graph = graphs.nested(100_000)
    for suffix in (".json", ".npz"):
        graph.save(tmp_path / f"n{suffix}")
        assert (tmp_path / f"n{suffix}").stat().st_size < 2_000_000
        assert FeedbackGraph.load(tmp_path / f"n{suffix}") == graph
    with pytest.raises(GraphError, match=r"at most 50,000,000 edges.*\.json or \.npz"):
        graph.save(tmp_path / "n.txt")
    assert not (tmp_path / "n.txt").exists()


def test_files_of_version_1_open_for_ever(tmp_path):
    listed = '{"format": "sidelong-graph", "version": 1, "n_arms": 3, "edges": [[0, 1], [1, 2]]}'
    ranges = '{"format": "sidelong-graph", "version": 1, "n_arms": 3, "low": [0, 0, 3], "high": [1, 2, 3]}'
    assert FeedbackGraph.load(text_file(tmp_path, listed, "a.json")).edges().tolist() == [[0, 1], [1, 2]]
    assert FeedbackGraph.load(text_file(tmp_path, ranges, "b.json")).edges().tolist() == [
        [0, 0],
        [1, 0],
        [1, 1],
    ]
    arrays = {"version": 1, "n_arms": 3, "low": np.array([0, 0, 3]), "high": np.array([1, 2, 3])}
    np.savez_compressed(tmp_path / "c.npz", **arrays)
    assert FeedbackGraph.load(tmp_path / "c.npz").edges().tolist() == [[0, 0], [1, 0], [1, 1]]


def test_an_edge_list_may_be_written_in_many_ways(tmp_path):
    text = "\ufeff# by hand\r\n\r\n  # arms: 5 \r\n0 1\r\n1,2\t# to the right\n\t3 ,\t0\n2\t \t2\n#4 4\n4 0"
    graph = FeedbackGraph.load(text_file(tmp_path, text))
    assert graph.n_arms == 5
    assert graph.edges().tolist() == [[0, 1], [1, 2], [2, 2], [3, 0], [4, 0]]
    assert FeedbackGraph.load(text_file(tmp_path, "0 1\n7 2\n")).n_arms == 8
    assert FeedbackGraph.load(text_file(tmp_path, "# arms: 4")).n_edges == 0


@pytest.mark.parametrize("block", [1, 7, 64, 2**24])
@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        ("0 1\n\n# x\n1 x\n2 2\n", 4, r"expected two arms such as '0 1'.*found '1 x'"),
        ("0 1\n1\n", 2, "found '1'"),
        ("0 1\n1 2 3\n", 2, "found '1 2 3'"),
        ("0 1\n1,,2\n", 2, "found '1,,2'"),
        ("0 1\n-1 2\n", 2, "found '-1 2'"),
        ("0 1\n1.0 2\n", 2, r"found '1\.0 2'"),
        ("source,target\n0,1\n", 1, "found 'source,target'"),
        ("0 1\n1 2;\n", 2, "found '1 2;'"),
        ("0 1\n0 2\n0 1\n0 2\n", 3, "each edge once.*found '0 1'"),
        ("# arms: 3\n0 1\n0 3\n", 3, r"arms from 0 to 2.*'# arms: 3'.*found '0 3'"),
        ("0 1\n0 3\n# arms: 3\n", 2, "arms from 0 to 2"),
        ("0 1\n0 99999999999\n", 2, "at most 16,777,216 arms.*found '0 99999999999'"),
        ("0 1\n0 9999999999999999999999\n", 2, "found '0 99999"),
        ("# arms: many\n0 1\n", 1, "'# arms: N' once.*found '# arms: many'"),
        ("# arms: 0\n0 1\n", 1, "N from 1 to"),
        ("# arms: 99999999999999999999999\n0 1\n", 1, "N from 1 to"),
        ("# arms: 3\n0 1\n# arms: 3\n", 3, "once"),
        (b"0 1\n\x80\x00\xff\n", 2, "found '"),
        (b"\xef\xbb\xbf0 1\n0 1\n", 2, "each edge once"),
    ],
)
def test_a_wrong_line_is_named(tmp_path, monkeypatch, block, text, line, message):
    monkeypatch.setattr(edge_list, "_BLOCK", block)
    path = text_file(tmp_path, text)
    with pytest.raises(GraphFileError, match=message) as caught:
        FeedbackGraph.load(path)
    assert str(caught.value).startswith(f"{path}, line {line}: ")


@given(st.text("019 ,\t#\nx\r", max_size=40), st.sampled_from([5, 2**24]))
def test_an_edge_list_means_what_its_lines_mean(tmp_path, text, block):
    """Compare with a reader that goes line by line."""
    edges, right = [], True
    for line in text.split("\n"):
        before = line.removesuffix("\r").split("#")[0].strip(" \t")
        comma = "," in before
        parts = [part.strip(" \t") for part in before.split(",")] if comma else before.split()
        if before and not (len(parts) == 2 and all(part.isdigit() for part in parts) and "\r" not in before):
            right = False
        elif before:
            edges.append(tuple(map(int, parts)))
    right = right and len(set(edges)) == len(edges) and max(map(max, edges), default=0) < files.MAX_ARMS
    path = text_file(tmp_path, text)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(edge_list, "_BLOCK", block)
        if right and edges:
            assert list(map(tuple, FeedbackGraph.load(path).edges().tolist())) == sorted(edges)
        else:
            with pytest.raises(GraphFileError):
                FeedbackGraph.load(path)


def test_a_long_line_takes_one_pass(tmp_path):
    for text in (
        " " * 10**6 + "x",
        "1" + " " * 10**6 + "x",
        "1" * 10**6,
        "1 2" + " " * 10**6 + "x",
        "," * 10**6,
    ):
        with pytest.raises(GraphFileError, match="line 1") as caught:
            FeedbackGraph.load(text_file(tmp_path, text))
        assert len(str(caught.value)) < 500


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"format": ...}, "must be an object with"),
        ({"version": 2}, "version 2.*newer.*Install the version of sidelong that wrote it"),
        ({"version": "1"}, "whole number of at least 1, not '1'"),
        ({"version": True}, "not True"),
        ({"version": ...}, "not None"),
        ({"n_arms": ...}, '"n_arms" must be a whole number'),
        ({"n_arms": 0}, "not 0"),
        ({"n_arms": 2.0}, r"not 2\.0"),
        ({"n_arms": 10**12}, "from 1 to 16,777,216"),
        ({"n_arms": 2}, r"arms 0 to 1; edge number 1 is \(1, 2\)"),
        ({"edges": ...}, 'either "edges", or "low" and "high"'),
        ({"edges": ..., "low": [0, 0, 0]}, 'either "edges", or "low" and "high"'),
        ({"low": [0, 0, 0], "high": [0, 0, 0]}, 'either "edges", or "low" and "high"'),
        ({"edges": "many"}, '"edges" must be a list'),
        ({"edges": [[0, 1], [1, 2, 0]]}, r'"edges"\[1\] must be a pair \[i, j\], not \[1, 2, 0\]'),
        ({"edges": [[0, 1], [1]]}, r'"edges"\[1\]'),
        ({"edges": [[0, 1], 5]}, r'"edges"\[1\]'),
        ({"edges": [[0, 1], [1, 1.5]]}, r'"edges"\[1\].*not 1\.5'),
        ({"edges": [[0, 1], [1, True]]}, r'"edges"\[1\].*not True'),
        ({"edges": [[0, 1], [1, None]]}, r'"edges"\[1\].*not None'),
        ({"edges": [[0, 1], [1, float("nan")]]}, r'"edges"\[1\].*not nan'),
        ({"edges": [[0, 1], [1, -1]]}, r'"edges"\[1\].*not -1'),
        ({"edges": [[0, 1], [1, 10**30]]}, r'"edges"\[1\]'),
        ({"edges": [[0, 1], [1, 2], [0, 1]]}, r"each edge stands once; edge number 2 is \[0, 1\] again"),
        ({"edges": ..., "low": [0, 0], "high": [1, 1]}, "each of the 3 arms, not 2"),
        ({"edges": ..., "low": [0, 0, 0], "high": [1, 1, 4]}, r"arm 2 is \[0, 4\)"),
        ({"edges": ..., "low": [0, 0, "0"], "high": [1, 1, 1]}, r'"low"\[2\]'),
    ],
)
def test_wrong_json_is_named(tmp_path, changes, message):
    path = json_file(tmp_path, **changes)
    with pytest.raises(GraphFileError, match=message) as caught:
        FeedbackGraph.load(path)
    assert str(caught.value).startswith(f"{path}: ")


@pytest.mark.parametrize(
    "text", ["", "[", "[1, 2]", "nothing", '{"format": "sidelong-graph"', b"\xff\xfe\x00", "1" * 5000]
)
def test_what_is_not_a_graph_in_json(tmp_path, text):
    with pytest.raises(GraphFileError, match="this is not"):
        FeedbackGraph.load(text_file(tmp_path, text, "g.json"))


def test_deep_json_is_refused(tmp_path):
    for depth in (50, 900, 100_000):
        nested = "[" * depth + "]" * depth
        text = f'{{"format": "sidelong-graph", "version": 1, "n_arms": 3, "edges": [{nested}]}}'
        with pytest.raises(GraphFileError, match=r"nested too deeply|must be a pair"):
            FeedbackGraph.load(text_file(tmp_path, text, "g.json"))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"version": ...}, 'no array "version"'),
        ({"version": 2}, "newer"),
        ({"version": np.array([1])}, '"version" must hold integers and have at most the shape'),
        ({"n_arms": ...}, 'no array "n_arms"'),
        ({"n_arms": 2}, "edge number 1"),
        ({"n_arms": 3.0}, "dtype float64"),
        ({"edges": ...}, 'either "edges", or "low" and "high"'),
        ({"edges": np.zeros((2, 2))}, "dtype float64"),
        ({"edges": np.zeros(4, int)}, r"shape \(4,\)"),
        ({"edges": np.zeros((2, 3), int)}, r"shape \(2, 3\)"),
        ({"edges": np.array([[0, 1], [0, 1]])}, r"edge number 1 is \[0, 1\] again"),
        ({"edges": np.array([[0, -1]])}, r"edge number 0 is \(0, -1\)"),
        ({"edges": ..., "low": np.zeros(3, int), "high": np.zeros(2, int)}, r"shapes \(3,\) and \(2,\)"),
    ],
)
def test_wrong_arrays_are_named(tmp_path, changes, message):
    path = npz_file(tmp_path, **changes)
    with pytest.raises(GraphFileError, match=message) as caught:
        FeedbackGraph.load(path)
    assert str(caught.value).startswith(f"{path}: ")


def test_arrays_of_any_byte_order_are_read(tmp_path):
    for dtype in (">i4", "<u2", "i1", ">u8"):
        edges = np.asfortranarray(np.array([[0, 1], [1, 2]], dtype))
        assert FeedbackGraph.load(npz_file(tmp_path, edges=edges)).edges().tolist() == [[0, 1], [1, 2]]


class Trap:
    def __reduce__(self):
        return os.putenv, ("SIDELONG_TRAP", "sprung")


def test_a_pickle_is_never_opened(tmp_path, monkeypatch):
    def refuse(*_, **__):
        raise AssertionError("unpickled")

    edges = np.empty((2, 2), object)
    edges[:] = Trap()
    path = npz_file(tmp_path, edges=edges)
    monkeypatch.setattr(pickle, "load", refuse)
    monkeypatch.setattr(pickle, "loads", refuse)
    with pytest.raises(GraphFileError, match="must hold integers"):
        FeedbackGraph.load(path)


def forged(folder, header, payload=b"\0" * 64):
    """Write a graph whose array "low" has a header of our making."""
    path = folder / "g.npz"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name in ("version", "n_arms"):
            part = io.BytesIO()
            np.save(part, np.array(1))
            archive.writestr(f"{name}.npy", part.getvalue())
        text = header.encode().ljust(118) + b"\n"
        archive.writestr("low.npy", b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text + payload)
    return path


@pytest.mark.parametrize(
    ("header", "message"),
    [
        (
            "{'descr': '<i8', 'fortran_order': False, 'shape': (1000000000000,), }",
            r"shape \(1000000000000,\)",
        ),
        ("{'descr': '<i8', 'fortran_order': False, 'shape': (-1,), }", r"shape \(-1,\)"),
        ("{'descr': '<i8', 'fortran_order': False, 'shape': (16000000,), }", "cut short"),
        ("{'descr': '|O', 'fortran_order': False, 'shape': (1,), }", "dtype object"),
        ("{'descr': [('a', '<i8')], 'fortran_order': False, 'shape': (1,), }", "dtype"),
        ("{'descr': '<i8', 'shape': (1,), }", '"low" cannot be read'),
        ("__import__('os')", '"low" cannot be read'),
        ("(" * 100, '"low" cannot be read'),
        ("'", '"low" cannot be read'),
    ],
)
def test_what_a_header_declares_is_checked_first(tmp_path, header, message):
    path = forged(tmp_path, header)
    tracemalloc.start()
    with pytest.raises(GraphFileError, match=message):
        FeedbackGraph.load(path)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 20e6


def test_a_zip_bomb_is_not_unpacked(tmp_path):
    header = "{'descr': '<i8', 'fortran_order': False, 'shape': (3,), }"
    path = forged(tmp_path, header, b"\0" * 60_000_000)
    assert path.stat().st_size < 1_000_000
    tracemalloc.start()
    with pytest.raises(GraphFileError, match=r'either "edges", or "low" and "high"'):
        FeedbackGraph.load(path)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 20e6


def test_an_archive_that_numpy_would_not_write(tmp_path):
    path = tmp_path / "g.npz"
    for method in (zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA):
        with zipfile.ZipFile(path, "w", method) as archive:
            archive.writestr("version.npy", b"x")
        with pytest.raises(GraphFileError, match="compressed in a way"):
            FeedbackGraph.load(path)
    for content in (b"", b"PK", b"PK\x05\x06" + b"\0" * 18, b"\x80\x04N."):
        path.write_bytes(content)
        with pytest.raises(GraphFileError, match=r"not a whole \.npz file|no array"):
            FeedbackGraph.load(path)


@pytest.mark.parametrize("suffix", [".npz", ".json", ".txt"])
def test_a_damaged_file_is_read_or_refused_but_nothing_else(tmp_path, suffix):
    path = tmp_path / f"g{suffix}"
    rng = np.random.default_rng(0)
    graphs.petersen().save(path)
    whole = path.read_bytes()
    for _ in range(150):
        damaged = bytearray(whole)
        for position in rng.integers(len(whole), size=rng.integers(1, 4)):
            damaged[position] = rng.integers(256)
        path.write_bytes(damaged[: rng.integers(len(whole))] if rng.random() < 0.3 else damaged)
        try:
            graph = FeedbackGraph.load(path)
        except GraphFileError as error:
            assert str(path) in str(error)  # noqa: PT017  # either outcome is right
        else:
            assert graph.n_arms >= 1


@pytest.mark.parametrize("suffix", [".txt", ".json", ".npz"])
def test_a_file_that_is_too_large_is_not_read(tmp_path, suffix):
    path = tmp_path / f"huge{suffix}"
    with path.open("wb") as file:
        file.truncate(10 * 2**30)  # takes no room on the disk
    tracemalloc.start()
    with pytest.raises(GraphFileError, match="bytes, and this one 10,737,418,240"):
        FeedbackGraph.load(path)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 1e6


def test_limits_on_edges_and_arms(tmp_path, monkeypatch):
    path = text_file(tmp_path, "0 1\n1 2\n2 3\n")
    monkeypatch.setattr(files, "MAX_EDGES", 2)
    monkeypatch.setattr(files, "MAX_JSON_EDGES", 1)
    with pytest.raises(GraphFileError, match="at most 2 edges"):
        FeedbackGraph.load(path)
    with pytest.raises(GraphFileError, match="at most 1 edges"):
        FeedbackGraph.load(json_file(tmp_path, edges=[[0, 1], [1, 2]]))
    assert FeedbackGraph.load(json_file(tmp_path, edges=[[0, 1]])).n_edges == 1
    with pytest.raises(GraphFileError, match=r"at most the shape \(2, 2\)"):
        FeedbackGraph.load(npz_file(tmp_path, edges=np.array([[0, 1], [1, 2], [2, 0]])))
    with pytest.raises(GraphError, match="at most 2 edges"):
        graphs.cycle(4).save(tmp_path / "b.npz")
    monkeypatch.setattr(files, "MAX_ARMS", 2)
    with pytest.raises(GraphError, match="at most 2 arms"):
        graphs.nested(3).save(tmp_path / "b.json")
    with pytest.raises(GraphFileError, match=r"line 1.*at most 2 arms"):
        FeedbackGraph.load(text_file(tmp_path, "0 2\n"))
    monkeypatch.setattr(files, "MAX_JSON_BYTES", 20)
    with pytest.raises(GraphError, match=r"too large for a \.json file; use \.npz"):
        graphs.nested(2).save(tmp_path / "b.json")
    assert not list(tmp_path.glob("b.*"))


def test_a_file_without_arms(tmp_path):
    for text in ("", "# nothing here\n"):
        with pytest.raises(GraphFileError, match="at least one arm") as caught:
            FeedbackGraph.load(text_file(tmp_path, text))
        assert "# arms: N" in str(caught.value)


def test_files_that_are_not_there(tmp_path):
    with pytest.raises(GraphFileError, match=r"none\.txt: cannot be read: No such file"):
        FeedbackGraph.load(tmp_path / "none.txt")
    with pytest.raises(GraphFileError, match="cannot be written: No such file"):
        graphs.nested(3).save(tmp_path / "none" / "g.txt")
    plain = text_file(tmp_path, "0 1", "plain.txt")
    with pytest.raises(GraphFileError, match="cannot be written: Not a directory"):
        graphs.nested(3).save(plain / "g.txt")
    (tmp_path / "folder.txt").mkdir()
    with pytest.raises(GraphFileError, match="cannot be read: Is a directory"):
        FeedbackGraph.load(tmp_path / "folder.txt")
    with pytest.raises(GraphFileError, match=r"one of \.txt, \.edges, \.tsv, \.csv, \.json, \.npz; not '\.pkl'"):
        FeedbackGraph.load(tmp_path / "g.pkl")
    with pytest.raises(GraphFileError, match="not ''"):
        graphs.nested(3).save(tmp_path / "g")


def test_a_device_is_not_read(tmp_path):
    (tmp_path / "zero.txt").symlink_to(Path(os.devnull).with_name("zero"))
    with pytest.raises(GraphFileError, match="ordinary file"):
        FeedbackGraph.load(tmp_path / "zero.txt")


@pytest.mark.parametrize("error", [RuntimeError("stopped"), OSError(28, "No space left on device")])
def test_a_write_that_fails_leaves_the_old_file(tmp_path, monkeypatch, error):
    path = tmp_path / "g.txt"
    graphs.nested(3).save(path)

    def fail(file, *_):
        file.write(b"half of")
        raise error

    monkeypatch.setattr(edge_list, "write", fail)
    with pytest.raises((RuntimeError, GraphFileError), match=r"stopped|cannot be written: No space left"):
        graphs.nested(5).save(path)
    assert FeedbackGraph.load(path) == graphs.nested(3)
    assert list(tmp_path.iterdir()) == [path]


def test_a_saved_file_has_ordinary_permissions(tmp_path):
    text_file(tmp_path, "0 1", "a.txt")
    graphs.nested(3).save(tmp_path / "b.txt")
    assert (tmp_path / "a.txt").stat().st_mode == (tmp_path / "b.txt").stat().st_mode


def test_large_edge_lists_are_read_in_blocks(tmp_path):
    edges = np.unique(np.random.default_rng(0).integers(0, 50_000, (200_000, 2)), axis=0)
    graph = FeedbackGraph.from_edges(edges, 50_000)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(edge_list, "_BLOCK", 2**16)
        graph.save(tmp_path / "g.csv")
        assert FeedbackGraph.load(tmp_path / "g.csv") == graph
    assert (tmp_path / "g.csv").read_text().splitlines()[:2] == [
        "# arms: 50000",
        f"{edges[0][0]},{edges[0][1]}",
    ]


def test_reading_an_edge_list_tells_how_far_it_is(tmp_path, monkeypatch):
    monkeypatch.setattr(edge_list, "_BLOCK", 1000)
    path, told = tmp_path / "path.txt", []
    graphs.path(500).save(path)
    files.load(path, told.append)
    assert told == sorted(told)
    assert len(told) > 5
    assert told[-1] == path.stat().st_size
