"""What a cell costs beside its rounds."""

import functools
import os
import subprocess
import sys
import threading
from collections import Counter
from dataclasses import replace

import pytest

from sidelong import _jit
from sidelong.graphs import makers as graph_makers
from sidelong.losses import world_makers
from sidelong.studies import build, execute, local, work
from sidelong.studies.provenance import source_hash
from sidelong.studies.spec import load
from studies import small
from studies.killer import Inline

#: One cell a seed, of a millisecond or less.
TINY = (
    small.STUDY.replace("[200, 300]", "1_000")
    .replace('["nested", "star"]', '"star"')
    .replace("[0.1, 0.2]", "0.2")
    .replace("runs = 2", "runs = 1")
)


def test_a_cell_is_one_safe_file_and_nothing_is_compiled_or_typed_twice(tmp_path, monkeypatch):
    """Counts, not seconds: a cell costs milliseconds as long as these hold."""
    study = load(small.write(tmp_path, 21, TINY))
    work.play(work.Task(study.cells[0].spec, 1, source_hash()), study.files)
    fsync, safe = os.fsync, []
    monkeypatch.setattr(os, "fsync", lambda file: safe.append(fsync(file)))
    for once in ("signature_of", "specialise"):
        monkeypatch.setattr(_jit, once, lambda *_, **__: pytest.fail("this was done before"))
    monkeypatch.setattr(threading.Thread, "start", lambda *_: pytest.fail("a cell needs no thread"))
    for cell in study.cells:
        assert work.play(work.Task(cell.spec, 1, source_hash()), study.files).content
    monkeypatch.undo()
    monkeypatch.setattr(os, "fsync", lambda file: safe.append(fsync(file)))
    summary = execute.run(study, tmp_path / "results", lambda *_: Inline(study.files))
    assert summary.played == 21
    assert len(safe) == 21 + 1  # and study.json


def test_a_graph_and_a_world_are_built_once_to_check_them_and_once_to_play_them(tmp_path, monkeypatch):
    """By each process, however many cells share them, and though a process keeps only the last ones."""
    made = Counter()

    def counting(maker):
        @functools.wraps(maker.make)
        def make(*arguments, **named):
            made[maker.name, str(named)] += 1
            return maker.make(*arguments, **named)

        return replace(maker, make=make)

    for registry in (graph_makers._MAKERS, world_makers._MAKERS):
        for name, maker in [*registry.items()]:
            monkeypatch.setitem(registry, name, counting(maker))
    text = TINY.replace('"star"', '["star", "nested", "path", "complete", "cycle", "self_loops"]')
    text = text.replace("gap = 0.2", "gap = [0.1, 0.2, 0.3]").replace('"uniform"', '["uniform", "ucb-n"]')
    forget()
    study = load(small.write(tmp_path, 3, text))
    assert len(study.cells) == 6 * 3 * 2 * 3
    worlds = {key: count for key, count in made.items() if key[0] == "bernoulli"}
    assert sum(made.values()) == 6 + 6 * 3  # a world for each graph: some need its number of arms
    assert sum(worlds.values()) == 6 * 3
    made.clear()
    forget()  # as a process does that has read nothing
    summary = execute.run(study, tmp_path / "results", lambda *_: Inline(study.files))
    assert summary.played == len(study.cells)
    assert sum(made.values()) == 6 + 6 * 3


def forget():
    build._graph.cache_clear()
    build._world.cache_clear()


def test_a_worker_does_not_import_what_it_does_not_need(tmp_path):
    """Each takes as long to import as hundreds of cells to play. pandas is there: these tests need it."""
    spec = load(small.write(tmp_path, 1, TINY)).cells[0].spec
    program = (
        "import sys\n"
        "from sidelong.studies import local, work; from sidelong.studies.provenance import source_hash\n"
        "from sidelong.studies.files import Files\n"
        f"assert work.play(work.Task({spec}, 1, source_hash()), Files()).content\n"
        "print({'pandas', 'pydantic', 'matplotlib', 'distributed'} & sys.modules.keys())"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "set()\n"


def test_two_workers_play_at_the_same_time(tmp_path):
    """Each of two cells waits until two processes are there: one after the other they would wait in vain."""
    (tmp_path / "meeting.py").write_text(
        "import os, pathlib, time\n\n"
        "def wait(seed, run, t, arm):\n"
        "    if t == 1:  # which is played to see what must be compiled\n"
        "        return 0.5\n"
        f"    place = pathlib.Path({str(tmp_path / 'here')!r})\n"
        "    place.mkdir(exist_ok=True)\n"
        "    (place / str(os.getpid())).touch()\n"
        "    end = time.monotonic() + 120\n"
        "    while len(list(place.iterdir())) < 2 and time.monotonic() < end:\n"
        "        time.sleep(0.01)\n"
        "    return 0.5 if len(list(place.iterdir())) == 2 else 2.0\n"
    )
    text = TINY.replace("1_000", "2").replace(
        'name = "bernoulli"\nmeans = {{ gap = 0.2 }}',
        'name = "function"\nf = {{ file = "meeting.py", function = "wait" }}\nmeans = [0.5, 0.5, 0.5, 0.5]',
    )
    study = load(small.write(tmp_path, 2, text))
    summary = execute.run(study, tmp_path / "results", lambda results, n: local.Local(2, n, results.path / "files"))
    assert summary.failed == {}
