"""What a cell costs beside its rounds."""

import time

from sidelong._cache import source_hash
from sidelong.studies import execute, local, work
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


def test_a_thousand_small_cells_would_take_ten_seconds_of_two_cores_at_most(tmp_path):
    """Processor time of all that is done for a cell, in one process, since other people may use the machine."""
    study = load(small.write(tmp_path, 201, TINY))
    work.play(work.Task(study.cells[0].spec, 1, source_hash()), study.files)  # compiles
    begun = time.process_time()
    summary = execute.run(study, tmp_path / "results", lambda *_: Inline(study.files))
    assert summary.played == 201
    assert (time.process_time() - begun) / 201 < 10.0 * 2 / 1000


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
    begun = time.monotonic()
    summary = execute.run(study, tmp_path / "results", lambda results, n: local.Local(2, n, results.path / "files"))
    assert summary.failed == {}
    assert time.monotonic() - begun < 120
