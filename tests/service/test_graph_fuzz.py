"""Graph files of any kind: for a bounded time, none crashes the reader, and none takes more than 200 MB."""

import io
import pickle
import subprocess
import sys
import time
import zipfile

import numpy as np
import pytest

from sidelong.errors import ServiceError
from sidelong.graphs import nested
from sidelong.service.http.graphs import read_upload
from sidelong.service.settings import Settings

FILES = 2_500
SEEDS = {}


def seeds(folder):
    """Return whole files of each kind, to be broken."""
    for suffix in (".json", ".edges", ".npz"):
        path = folder / f"graph{suffix}"
        nested(6).as_arcs().save(path)
        SEEDS[suffix] = [path.read_bytes()]
    nested(6).save(folder / "intervals.json")
    SEEDS[".json"].append((folder / "intervals.json").read_bytes())
    return SEEDS


def archive(shape, dtype="<i4", compress=zipfile.ZIP_DEFLATED, name="edges", size=None):
    """Return a .npz whose array says that it has this shape, and is zeros."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", compress) as zipped:
        for key, value in (("version", 1), ("n_arms", 3)):
            content = io.BytesIO()
            np.save(content, np.int64(value))
            zipped.writestr(f"{key}.npy", content.getvalue())
        header = f"{{'descr': '{dtype}', 'fortran_order': False, 'shape': {shape!r}, }}".encode()
        header += b" " * (-(len(header) + 11) % 64) + b"\n"
        start = b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header
        zipped.writestr(f"{name}.npy", start + b"\0" * (16_000_000 if size is None else size))
    return file.getvalue()


HOSTILE = {
    "pickle": (".npz", pickle.dumps({"n_arms": 3})),
    "an object array": (".npz", archive((1,), "|O", size=100)),
    "a pickle in an array": (".json", pickle.dumps([0])),
    "a bomb of zeros": (".npz", archive((10**6, 2), "<i8")),
    "more edges than allowed": (".npz", archive((50_000_000, 2))),
    "a shape that overflows": (".npz", archive((2**62, 2))),
    "a negative shape": (".npz", archive((-1, 2))),
    "deep lists": (".json", b"[" * 2_000_000),
    "deep lists in a graph": (".json", b'{"format":"sidelong-graph","version":1,"edges":' + b"[" * 500_000),
    "many lists": (".json", b'{"format":"sidelong-graph","version":1,"edges":[' + b"[]," * 1_300_000 + b"[]]}"),
    "a long number": (".json", b'{"format":"sidelong-graph","version":1,"n_arms":' + b"9" * 1_000_000 + b"}"),
    "many numbers": (
        ".json",
        b'{"format":"sidelong-graph","version":1,"n_arms":3,"low":[' + b"0," * 1_900_000 + b"0]}",
    ),
    "a long line": (".edges", b"0 " * 2_000_000),
    "many edges": (".edges", b"0 1\n" * 1_000_000),
    "large arms": (".edges", b"999999999999999999 0\n"),
    "many arms": (".edges", b"# arms: 16777216\n0 0\n"),
    "nothing": (".edges", b""),
    "zeros": (".edges", b"\0" * 1_000_000),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_file_is_refused_in_a_sentence(name):
    suffix, data = HOSTILE[name]
    begun = time.process_time()
    with pytest.raises(ServiceError) as caught:
        read_upload(data, suffix, Settings())
    assert caught.value.status in {413, 422}
    assert len(str(caught.value)) < 500
    assert time.process_time() - begun < 30


def test_hostile_files_take_less_than_200_mb_all_together():
    """In a process of its own, whose memory beyond what it needs to start is limited by the system."""
    program = (
        "import resource, sys; sys.path[:0] = sys.argv[1:]\n"
        "from service import test_graph_fuzz as fuzz\n"
        "from sidelong.errors import ServiceError\n"
        "used = int(open('/proc/self/statm').read().split()[0]) * resource.getpagesize()\n"
        "resource.setrlimit(resource.RLIMIT_AS, (used + 200_000_000,) * 2)\n"
        "for suffix, data in fuzz.HOSTILE.values():\n"
        "    try: fuzz.read_upload(data, suffix, fuzz.Settings())\n"
        "    except ServiceError as error: assert error.status in (413, 422), error\n"
        "print('survived')\n"
    )
    done = subprocess.run([sys.executable, "-c", program, "tests"], capture_output=True, text=True, check=False)
    assert done.stdout == "survived\n", done.stderr[-2000:]


def test_files_that_are_broken_at_random_are_read_or_refused(tmp_path):
    draws = np.random.default_rng(20_26)
    files, refused, read = seeds(tmp_path), [], 0
    for _ in range(FILES):
        suffix = str(draws.choice(list(files)))
        data = bytearray(files[suffix][int(draws.integers(len(files[suffix])))])
        for _ in range(int(draws.integers(1, 6))):
            place, kind = int(draws.integers(len(data) + 1)), draws.integers(4)
            if kind == 0:
                data[place:place] = draws.bytes(int(draws.integers(1, 9)))
            elif kind == 1:
                del data[place : place + int(draws.integers(1, 20))]
            elif kind == 2:
                data[place : place + 1] = draws.choice(list(b'0123456789[]{},:" -\n')).astype(np.uint8).tobytes()
            else:
                data[place:place] = data[: int(draws.integers(1, 40))]
        try:
            graph = read_upload(bytes(data), suffix, Settings())
        except ServiceError as error:
            refused.append(error.status)
        else:
            assert graph.n_arms <= Settings().max_arms
            read += 1
    assert set(refused) <= {413, 422}
    assert len(refused) > 50
    assert read > 5
